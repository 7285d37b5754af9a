// How long to wait before retry k: base, cap, jitter. Saturating throughout: no k, factor or unit can overflow.
#include "policy/delay.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/saturating_time.hpp"

namespace reprise {
namespace {

constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();

// F(1) = F(2) = 1; F(92) is the last that fits, everything later saturates.
constexpr auto fibonacci_numbers = [] {
  std::array<std::int64_t, 93> numbers{0, 1};
  for (std::size_t k = 2; k < numbers.size(); ++k) numbers[k] = numbers[k - 1] + numbers[k - 2];
  return numbers;
}();

std::int64_t saturating_multiply(std::int64_t value, std::uint64_t times) noexcept {
  std::int64_t product = 0;
  return __builtin_mul_overflow(value, times, &product) ? longest : product;
}

// Rounds to the nearest nanosecond.
std::int64_t saturating_scale(std::int64_t value, double times) noexcept {
  if (value == 0) return 0;  // before infinity can turn it into NaN
  const double product = static_cast<double>(value) * times;
  return product >= static_cast<double>(longest) ? longest : std::llround(product);
}

// Policies from text are in range already; one built in C++ may hold anything, and a negative delay must not come of it.
std::int64_t not_negative(Duration duration) noexcept { return std::max<std::int64_t>(duration.count(), 0); }

std::int64_t exponential_base(const Policy& policy, std::uint64_t retry) noexcept {
  const std::int64_t initial = not_negative(policy.initial);
  if (retry == 1 || !(policy.factor > 1.0)) return initial;  // exact where a double would round
  if (policy.factor == 2.0) {                                // the common one, exact and without pow()
    return retry > 63 ? (initial == 0 ? 0 : longest) : saturating_multiply(initial, std::uint64_t{1} << (retry - 1));
  }
  return saturating_scale(initial, std::pow(policy.factor, static_cast<double>(retry - 1)));
}

// Past the end comes `max`. Without a cap that would be forever, so the last entry (of an empty list: `initial`) goes on instead.
std::int64_t list_delay(const Policy& policy, std::uint64_t retry) noexcept {
  if (retry <= policy.delays.size()) return not_negative(policy.delays[retry - 1]);
  if (policy.max) return not_negative(*policy.max);
  return not_negative(policy.delays.empty() ? policy.initial : policy.delays.back());
}

std::int64_t base_delay(const Policy& policy, std::uint64_t retry) noexcept {
  const std::int64_t initial = not_negative(policy.initial);
  switch (policy.backoff) {
    case Backoff::constant:
      return initial;
    case Backoff::linear:
      return base::saturating_sum(
                 Duration{initial},
                 Duration{saturating_multiply(not_negative(policy.increment.value_or(policy.initial)), retry - 1)})
          .count();
    case Backoff::exponential:
      return exponential_base(policy, retry);
    case Backoff::fibonacci:
      if (initial == 0) return 0;
      return retry < fibonacci_numbers.size()
                 ? saturating_multiply(initial, static_cast<std::uint64_t>(fibonacci_numbers[retry]))
                 : longest;
    case Backoff::list:
      return list_delay(policy, retry);
    case Backoff::decorrelated:
      return initial;
  }
  return initial;
}

// The upper end before the cap: three times the delay before, which for the first retry is the initial one.
std::int64_t decorrelated_top(const Policy& policy, std::uint64_t retry, Duration previous) noexcept {
  const std::int64_t initial = not_negative(policy.initial);
  const std::int64_t before = retry > 1 && previous.count() > 0 ? previous.count() : initial;
  return std::max(initial, saturating_multiply(before, 3));
}

DelayRange with_jitter(const Policy& policy, std::int64_t nominal) noexcept {
  switch (policy.jitter) {
    case Jitter::none:
      break;
    case Jitter::full:
      return {Duration{nominal}, Duration{0}, Duration{nominal}};
    case Jitter::equal:
      return {Duration{nominal}, Duration{nominal / 2}, Duration{nominal}};
    case Jitter::ratio: {
      const double ratio = policy.jitter_ratio > 0 ? std::min(policy.jitter_ratio, 1.0) : 0;  // also for NaN
      const std::int64_t spread = std::min(nominal, saturating_scale(nominal, ratio));  // rounding never passes it
      return {Duration{nominal}, Duration{nominal - spread}, base::saturating_sum(Duration{nominal}, Duration{spread})};
    }
  }
  return {Duration{nominal}, Duration{nominal}, Duration{nominal}};
}

}  // namespace

DelayRange delay_range(const Policy& policy, std::uint64_t retry, Duration previous) noexcept {
  const std::int64_t cap = policy.max ? not_negative(*policy.max) : longest;
  if (policy.backoff == Backoff::decorrelated) {
    const std::int64_t low = std::min(not_negative(policy.initial), cap);
    const std::int64_t high = std::min(decorrelated_top(policy, retry, previous), cap);
    return {Duration{low + (high - low) / 2}, Duration{low}, Duration{high}};
  }
  return with_jitter(policy, std::min(base_delay(policy, std::max<std::uint64_t>(retry, 1)), cap));
}

Duration draw_delay(const Policy& policy, std::uint64_t retry, Duration previous, const DelayRange& range,
                    Random& random) noexcept {
  if (range.min == range.max) return range.nominal;
  if (policy.backoff == Backoff::decorrelated) {  // drawn first, capped then: what falls above the cap becomes the cap
    const std::int64_t drawn = random.between(not_negative(policy.initial), decorrelated_top(policy, retry, previous));
    return std::min(Duration{drawn}, range.max);
  }
  return Duration{random.between(range.min.count(), range.max.count())};
}

}  // namespace reprise
