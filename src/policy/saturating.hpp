// Sums of durations that stop at the longest one instead of wrapping around.
#pragma once

#include <reprise/failure.hpp>

namespace reprise {

// Neither side may be negative.
inline Duration saturating_sum(Duration left, Duration right) noexcept {
  std::int64_t sum = 0;
  return __builtin_add_overflow(left.count(), right.count(), &sum) ? Duration::max() : Duration{sum};
}

}  // namespace reprise
