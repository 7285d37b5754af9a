#include "runtime/young_keys.hpp"

#include "base/check.hpp"

namespace reprise::runtime {

void YoungKeys::add(const std::string& key, std::uint64_t run, std::uint64_t commit) {
  REPRISE_CHECK(order_.empty() || order_.back().commit <= commit, run);
  runs_.insert_or_assign(key, run);
  order_.push_back({commit, run, key});
}

std::optional<std::uint64_t> YoungKeys::find(const std::string& key) const {
  const auto found = runs_.find(key);
  if (found == runs_.end()) return std::nullopt;
  return found->second;
}

void YoungKeys::written(std::uint64_t commit) {
  for (; !order_.empty() && order_.front().commit <= commit; order_.pop_front()) {
    // A run that was removed meanwhile may have left its key to a younger one.
    const auto young = runs_.find(order_.front().key);
    if (young != runs_.end() && young->second == order_.front().run) runs_.erase(young);
  }
}

}  // namespace reprise::runtime
