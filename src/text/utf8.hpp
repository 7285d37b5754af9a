// Characters of UTF-8 text, and which of them are safe to show or to write as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::text {

struct Character {
  std::size_t bytes = 0;  // 0: no well-formed character begins here
  std::uint32_t code_point = 0;
};

// The character that begins the text, which must not be empty. Overlong forms and surrogates are not well-formed.
Character first_character(std::string_view text) noexcept;

bool is_utf8(std::string_view text) noexcept;

// Control characters, those that turn the order of text (bidirectional controls), and the few others that YAML or terminals take for
// something else than text.
bool is_control(std::uint32_t code_point) noexcept;

// Fit to be shown on one line: blanks for tabs and line ends, U+FFFD for whatever is not a character or would control a terminal.
std::string safe_to_show(std::string_view text);

// The same for several lines: line ends and tabs stay.
std::string lines_safe_to_show(std::string_view text);

}  // namespace reprise::text
