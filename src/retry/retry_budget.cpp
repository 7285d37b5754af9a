// The token bucket of reprise/retry_budget.hpp. No order between threads is needed: the count is all there is.
#include <reprise/retry_budget.hpp>

#include <algorithm>

namespace reprise {

bool RetryBudget::try_spend(bool throttled) noexcept {
  const std::uint32_t cost = throttled ? settings_.cost_throttled : settings_.cost_transient;
  std::uint32_t have = tokens_.load(std::memory_order_relaxed);
  while (have >= cost) {
    if (tokens_.compare_exchange_weak(have, have - cost, std::memory_order_relaxed)) return true;
  }
  return false;
}

void RetryBudget::put_back() noexcept {
  std::uint32_t have = tokens_.load(std::memory_order_relaxed);
  while (have < settings_.tokens_max) {
    const std::uint32_t room = settings_.tokens_max - have;
    const std::uint32_t more = have + std::min(settings_.refund_per_success, room);
    if (tokens_.compare_exchange_weak(have, more, std::memory_order_relaxed)) return;
  }
}

}  // namespace reprise
