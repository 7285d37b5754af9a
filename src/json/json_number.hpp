// Numbers of JSON compared as numbers, exactly: whether they are held as a signed, an unsigned or a floating value or by their spelling
// does not matter.
//
// Thread safety: pure functions.
#pragma once

#include <compare>
#include <cstddef>

#include "json/json.hpp"

namespace reprise::json {

// Both must be numbers. Unordered only for NaN, which no JSON text can say.
std::partial_ordering compare_numbers(const Json& left, const Json& right);

// 3 and 3.0, not 3.5; false for everything that is no number.
bool is_whole(const Json& value);

// In decimal digits, as people mean it: 0.3 is a multiple of 0.1. Both must be numbers, the divisor greater than 0.
bool is_multiple(const Json& value, const Json& divisor) noexcept;

// Equal values have equal hashes: also 1 and 1.0, and objects whose members have another order.
std::size_t hash_of(const Json& value);

}  // namespace reprise::json
