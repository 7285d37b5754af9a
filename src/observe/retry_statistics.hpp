// What retries were good for in a run: how much work needed them, and what came of it.
//
//   RetryCounter counter;
//   for (const Event& event : events) counter.add(event);
//   const RetryStatistics statistics = counter.statistics();
//
// Only work that was retried is remembered. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <reprise/event.hpp>

namespace reprise::observe {

struct RetryStatistics {
  std::uint64_t retries = 0;          // waits that were followed, or will be, by another attempt
  std::uint64_t work_retried = 0;     // items (or steps without items) with at least one of them
  std::uint64_t succeeded_after = 0;  // of these: done in the end
  std::uint64_t failed_after = 0;     // of these: failed for good all the same; the rest is under way or cancelled
  Duration waited{0};                 // sum of all waits between attempts

  bool operator==(const RetryStatistics&) const = default;
};

class RetryCounter {
 public:
  void add(const Event& event);
  RetryStatistics statistics() const;

 private:
  enum class Outcome : std::uint8_t { open, succeeded, failed };
  std::map<std::pair<std::string, std::uint32_t>, Outcome> retried_;  // by step and item
  std::uint64_t retries_ = 0;
  Duration waited_{0};
};

}  // namespace reprise::observe
