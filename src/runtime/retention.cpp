#include "runtime/retention.hpp"

namespace reprise::runtime {
namespace {

constexpr Duration pause = std::chrono::seconds{1};

}  // namespace

void Retention::begin(event::Time now) {
  if (settings_.keep_ended || settings_.keep_count) next_ = now;
}

std::optional<Retention::Question> Retention::question(event::Time now, std::uint64_t durable) {
  if (!next_ || now < *next_ || removed_with_ > durable) return std::nullopt;
  next_ = now + pause.count();
  return Question{.ended_before = settings_.keep_ended ? now - settings_.keep_ended->count() : INT64_MIN,
                  .keep = settings_.keep_count.value_or(UINT64_MAX),
                  .limit = settings_.at_once};
}

void Retention::found(std::size_t runs, std::size_t removed, std::uint64_t commit, event::Time now) {
  if (removed == 0) return;
  removed_with_ = commit;
  if (runs == settings_.at_once) next_ = now;
}

void Retention::removed(std::span<const std::uint64_t> runs) {
  for (const std::uint64_t run : runs) removing_.erase(run);
}

}  // namespace reprise::runtime
