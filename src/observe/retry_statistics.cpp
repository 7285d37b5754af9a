#include "observe/retry_statistics.hpp"

#include <algorithm>

namespace reprise::observe {

void RetryCounter::add(const Event& event) {
  if (event.type == EventType::retrying) {
    ++retries_;
    waited_ += std::min(std::max(event.delay, Duration{0}), Duration::max() - waited_);
    retried_[{event.step, event.item}] = Outcome::open;
    return;
  }
  if (event.type != EventType::started && event.type != EventType::completed && event.type != EventType::failed) return;
  const auto found = retried_.find({event.step, event.item});
  if (found == retried_.end()) return;
  found->second = Outcome::open;
  if (event.type == EventType::completed) found->second = Outcome::succeeded;
  const bool is_for_good = !event.will_retry && event.reason != StopReason::canceled;
  if (event.type == EventType::failed && is_for_good) found->second = Outcome::failed;
}

RetryStatistics RetryCounter::statistics() const {
  const auto with = [&](Outcome outcome) {
    return static_cast<std::uint64_t>(
        std::ranges::count(retried_, outcome, [](const auto& entry) { return entry.second; }));
  };
  return {.retries = retries_,
          .work_retried = retried_.size(),
          .succeeded_after = with(Outcome::succeeded),
          .failed_after = with(Outcome::failed),
          .waited = waited_};
}

}  // namespace reprise::observe
