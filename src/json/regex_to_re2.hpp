// Regular expressions of the two standards that meet here, said in the syntax of RE2.
//
// I-Regexp (RFC 9485) is what JSONPath's match() and search() take; ECMA 262 is what JSON Schema's patterns are written in. Of the latter,
// what RE2 cannot do in linear time is refused: look-around and back-references. Repetitions beyond 1000 are refused for both.
// Thread safety: pure functions; patterns are immutable.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include <reprise/policy.hpp>

namespace reprise::json {

using Pattern = std::shared_ptr<const MessagePattern>;

enum class Anchoring : unsigned char {
  whole,    // match(): all of the text
  anywhere  // search(): a part of it
};

// The error says what is wrong with the expression.
std::expected<Pattern, std::string> compile_i_regexp(std::string_view expression, Anchoring anchoring);

// Unanchored, as JSON Schema has it.
std::expected<Pattern, std::string> compile_ecma_regex(std::string_view expression);

}  // namespace reprise::json
