// JSON values, as flows compute with them: parameters, items, results.
//
// The values are Boost.JSON's; this header says how they are read (bounded, numbers exact where they fit) and written (shortest form that
// reads back as the same value). Thread safety: plain values.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace reprise::flow {

using Json = boost::json::value;

inline constexpr std::size_t json_depth_max = 64;

// The error says what is wrong and where: "line 3, column 7: expected a comma".
std::expected<Json, std::string> parse_json(std::string_view text);

// One line, no blanks; 0.2 and not 2E-1; 3.0 stays 3.0. What is not valid UTF-8 is replaced.
std::string to_text(const Json& value);

// As a person or a command expects it inside a text: strings as they are, null as nothing, everything else as JSON.
std::string to_plain(const Json& value);

// Equality as JSON means it: 1 and 1.0 are equal, the order of members does not matter.
bool equal(const Json& left, const Json& right);

}  // namespace reprise::flow
