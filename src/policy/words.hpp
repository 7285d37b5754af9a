// Finding phrases in messages as whole words, without regard to case: letters, digits and _ belong to a word.
#pragma once

#include <string_view>

namespace reprise::words {

// `phrase` is lower case. A phrase that begins or ends with something else than a word character needs no boundary there.
bool contains(std::string_view message, std::string_view phrase) noexcept;

// Does the message speak of a failing test run: a word such as "failed", or "exit code 1"?
bool reports_failure(std::string_view message) noexcept;

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr bool is_word(char c) noexcept {
  const char small = lower(c);
  return (small >= 'a' && small <= 'z') || is_digit(c) || c == '_';
}

}  // namespace reprise::words
