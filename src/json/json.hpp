// JSON values, as flows compute with them: parameters, items, results.
//
// The values are Boost.JSON's; this header says how they are read (bounded) and written (computed numbers in the shortest form that reads
// back as the same value). A number that is read keeps its spelling: one that would be written otherwise (1.10, 1e2, 22 digits) is held as
// text, as the only member of an object with a name that neither JSON nor YAML nor the environment can bring. Therefore ask is_number(),
// is_map() and if_map() here instead of Boost.JSON (docs/decisions/0012 says why). Thread safety: plain values.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace reprise::json {

using Json = boost::json::value;

inline constexpr std::size_t json_depth_max = 64;

// The error says what is wrong and where: "line 3, column 7: expected a comma".
std::expected<Json, std::string> parse_json(std::string_view text);

bool is_number(const Json& value) noexcept;
bool is_map(const Json& value) noexcept;
const boost::json::object* if_map(const Json& value) noexcept;  // nullptr: it is none

// A number with the spelling that it has in the text. nullopt: it is no JSON number (010, +1, .5), or larger than any double.
std::optional<Json> number_in(std::string_view text);
// The number to compute with: an int64, a uint64 or a double of Boost.JSON. `value` must be a number.
Json computable(const Json& value) noexcept;

// One line, no blanks; numbers as they were read; computed ones as 0.2 and not 2E-1. What is not valid UTF-8 is replaced.
std::string to_text(const Json& value);

// As a person or a command expects it inside a text: strings as they are, null as nothing, everything else as JSON.
std::string to_plain(const Json& value);

// Equality as JSON means it: 1 and 1.0 are equal, the order of members does not matter.
bool equal(const Json& left, const Json& right);

}  // namespace reprise::json
