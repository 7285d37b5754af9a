// What retries were good for: only work that was retried counts, and what counts is how it ended last.
#include "observe/retry_statistics.hpp"

#include <gtest/gtest.h>

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;

Event of(EventType type, std::uint32_t item) { return {.type = type, .step = "fetch", .item = item}; }
Event retrying(std::uint32_t item, Duration delay) {
  Event event = of(EventType::retrying, item);
  event.delay = delay;
  return event;
}
Event failed(std::uint32_t item, bool will_retry, StopReason reason = StopReason::none) {
  Event event = of(EventType::failed, item);
  event.will_retry = will_retry;
  event.reason = reason;
  return event;
}

RetryStatistics after(const std::vector<Event>& events) {
  RetryCounter counter;
  for (const Event& event : events) counter.add(event);
  return counter.statistics();
}

TEST(ObserveRetryStatistics, WorkThatNeededNoRetryIsNotCounted) {
  EXPECT_EQ(after({of(EventType::started, 0), of(EventType::completed, 0), of(EventType::started, 1),
                   failed(1, false, StopReason::permanent)}),
            RetryStatistics{});
}

TEST(ObserveRetryStatistics, WhatCameOfIt) {
  const RetryStatistics statistics = after({
      failed(0, true), retrying(0, 1s), of(EventType::started, 0), of(EventType::completed, 0),  // done
      failed(1, true), retrying(1, 2s), failed(1, true), retrying(1, 4s),
      failed(1, false, StopReason::attempts),                                     // failed
      failed(2, true), retrying(2, 8s),                                           // waits
      failed(3, true), retrying(3, 16s), failed(3, false, StopReason::canceled),  // cancelled
  });
  EXPECT_EQ(statistics,
            (RetryStatistics{.retries = 5, .work_retried = 4, .succeeded_after = 1, .failed_after = 1, .waited = 31s}));
}

TEST(ObserveRetryStatistics, WhatIsTriedAgainLaterCountsAsItEndsThen) {
  std::vector<Event> events{failed(0, true), retrying(0, 1s), failed(0, false, StopReason::attempts)};
  EXPECT_EQ(after(events).failed_after, 1U);
  events.push_back(of(EventType::started, 0));
  EXPECT_EQ(after(events).failed_after, 0U);
  events.push_back(of(EventType::completed, 0));
  EXPECT_EQ(after(events).succeeded_after, 1U);
  EXPECT_EQ(after(events).work_retried, 1U);
}

TEST(ObserveRetryStatistics, WaitsLongerThanTimeAddUpToTheLongest) {
  EXPECT_EQ(after({retrying(0, Duration::max()), retrying(1, 1s), retrying(2, -1s)}).waited, Duration::max());
}

}  // namespace
}  // namespace reprise::observe
