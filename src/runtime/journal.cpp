#include "runtime/journal.hpp"

#include <utility>

#include "base/check.hpp"

namespace reprise::runtime {

void Journal::add_frame(std::uint64_t commit, std::size_t bytes) {
  REPRISE_CHECK(frames_.empty() || frames_.back().commit < commit, 0);
  frames_.push_back({commit, bytes});
  bytes_ += bytes;
}

void Journal::add_run(std::uint64_t run, std::uint64_t oldest_commit) { runs_.push_back({run, oldest_commit}); }

std::optional<std::uint64_t> Journal::cut() {
  const bool is_inherited = std::exchange(is_inherited_, false);
  if (!is_too_long() && !is_inherited) return std::nullopt;
  std::optional<std::uint64_t> last;
  while (!frames_.empty() && (runs_.empty() || frames_.front().commit < runs_.front().oldest_commit)) {
    last = frames_.front().commit;
    bytes_ -= frames_.front().bytes;
    frames_.pop_front();
  }
  return last;
}

}  // namespace reprise::runtime
