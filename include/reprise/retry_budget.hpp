// RetryBudget keeps retries from making an outage worse: many calls share one bucket of tokens, a retry takes some out, a clean
// success puts one back, and when the bucket is empty calls fail at their first failure until the service recovers.
//
//   reprise::RetryBudget budget;   // one per service you call, shared by all its calls
//   auto body = reprise::retry(reprise::policy::standard, fetch, {.budget = &budget});
//   // body.error().reason == reprise::StopReason::budget when the bucket had nothing left for this retry
//
// With the defaults a full bucket pays for 35 retries in a burst, and in the long run for one retry per 14 clean calls.
// Thread safety: every member may be called from any thread at any time; lock-free, and a refund into a full bucket is one load.
// Not supported: refilling by time, waiting for tokens, more than 2^32-1 tokens.
#pragma once

#include <atomic>
#include <cstdint>

namespace reprise {

struct RetryBudgetSettings {
  std::uint32_t tokens_max = 500;        // full bucket, also where it starts
  std::uint32_t cost_transient = 14;     // taken by a retry after a fault
  std::uint32_t cost_throttled = 5;      // taken by a retry the server asked for
  std::uint32_t refund_per_success = 1;  // given back by a clean first attempt

  bool operator==(const RetryBudgetSettings&) const = default;
};

class RetryBudget {
 public:
  explicit RetryBudget(const RetryBudgetSettings& settings = {}) noexcept
      : settings_{settings}, tokens_{settings.tokens_max} {}
  RetryBudget(const RetryBudget&) = delete;
  RetryBudget& operator=(const RetryBudget&) = delete;

  // Pays for one retry, or takes nothing and answers false.
  [[nodiscard]] bool try_spend(bool throttled) noexcept;

  // A call succeeded at its first attempt. retry() says so by itself.
  void refund() noexcept {
    if (tokens_.load(std::memory_order_relaxed) < settings_.tokens_max) put_back();
  }

  std::uint32_t tokens() const noexcept { return tokens_.load(std::memory_order_relaxed); }
  const RetryBudgetSettings& settings() const noexcept { return settings_; }

 private:
  void put_back() noexcept;

  RetryBudgetSettings settings_;
  // Its own cache line: the settings beside it are read by every thread and written by none.
  alignas(64) std::atomic<std::uint32_t> tokens_;
};

}  // namespace reprise
