// Sums of times that stop at the end of time instead of wrapping around.
//
// Thread safety: functions of their arguments.
#pragma once

#include <chrono>
#include <cstdint>

namespace reprise::base {

constexpr std::chrono::nanoseconds saturating_sum(std::chrono::nanoseconds left,
                                                  std::chrono::nanoseconds right) noexcept {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(left.count(), right.count(), &sum)) return std::chrono::nanoseconds{sum};
  return right.count() < 0 ? std::chrono::nanoseconds::min() : std::chrono::nanoseconds::max();
}

// A moment that is so much later. The clocks of this project count nanoseconds.
template <class Clock>
constexpr std::chrono::time_point<Clock, std::chrono::nanoseconds> later(
    std::chrono::time_point<Clock, std::chrono::nanoseconds> time, std::chrono::nanoseconds span) noexcept {
  return std::chrono::time_point<Clock, std::chrono::nanoseconds>{saturating_sum(time.time_since_epoch(), span)};
}

}  // namespace reprise::base
