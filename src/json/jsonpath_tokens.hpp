// The smallest parts of a JSONPath query: blanks, names, whole numbers, literals.
//
// Each take_… function reads at the cursor and moves it; after a mistake the cursor's place does not matter any more.
// Thread safety: none, a cursor belongs to one parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "json/jsonpath.hpp"

namespace reprise::json::jsonpath {

template <typename T>
using Parsed = std::expected<T, JsonPathMistake>;

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_{text} {}

  std::size_t offset() const noexcept { return at_; }
  void back_to(std::size_t offset) noexcept { at_ = offset; }
  bool at_end() const noexcept { return at_ == text_.size(); }
  char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool sees(std::string_view words) const noexcept { return text_.substr(at_).starts_with(words); }
  bool takes(std::string_view words) noexcept {
    if (!sees(words)) return false;
    at_ += words.size();
    return true;
  }
  void skip_blanks() noexcept;

  std::unexpected<JsonPathMistake> mistake(std::string message) const { return mistake_at(at_, std::move(message)); }
  static std::unexpected<JsonPathMistake> mistake_at(std::size_t offset, std::string message) {
    return std::unexpected(JsonPathMistake{offset, std::move(message)});
  }
  // "expected a selector, found x".
  std::unexpected<JsonPathMistake> expected(std::string_view what) const;

  bool sees_name() const noexcept;    // of a member in shorthand
  bool sees_number() const noexcept;  // or at least something that can only be one
  std::string take_name();
  std::string_view take_function_name();  // empty when there is none
  Parsed<std::int64_t> take_whole();      // within the range that all JSON implementations share, ±(2^53 - 1)
  Parsed<Json> take_number();
  Parsed<std::string> take_string();  // with its quotes

 private:
  std::string_view rest() const noexcept { return text_.substr(at_); }
  std::size_t take_digits() noexcept;
  Parsed<std::string> take_escape(char quote);
  Parsed<std::uint32_t> take_hex();

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace reprise::json::jsonpath
