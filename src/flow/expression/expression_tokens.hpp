// The words of an expression: names, numbers, quoted text and signs, each with its place.
//
// Signs and words of other languages are known here too, so that a mistake can say what is written instead.
// Thread safety: one reader belongs to one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "flow/expression/expression.hpp"

namespace reprise::flow::detail {

struct Token {
  enum class Kind : std::uint8_t { end, name, number, text, sign };
  Kind kind = Kind::end;
  std::size_t offset = 0;
  std::size_t bytes = 0;  // in the source
  std::string text = {};  // as written; of quoted text what it means

  bool is_sign(std::string_view sign) const noexcept { return kind == Kind::sign && text == sign; }
  bool is_word(std::string_view word) const noexcept { return kind == Kind::name && text == word; }
};

class TokenReader {
 public:
  explicit TokenReader(std::string_view source) noexcept : source_{source} {}

  std::expected<Token, ExpressionMistake> next();

 private:
  Token take(Token::Kind kind, std::size_t bytes);
  std::expected<Token, ExpressionMistake> number();
  std::expected<Token, ExpressionMistake> quoted();
  std::expected<Token, ExpressionMistake> sign();

  std::string_view source_;
  std::size_t at_ = 0;
};

// How many bytes of a name stand at the beginning of the text; 0 if none does. A name begins with a letter or `_`; digits may follow,
// and `-` where a letter follows it: `fetch-data` is a name, `total-1` is a difference.
std::size_t name_bytes(std::string_view text) noexcept;

// The bytes of quoted text including both quotes; npos if the closing one is missing. The text begins with a quote.
std::size_t quoted_bytes(std::string_view text) noexcept;

}  // namespace reprise::flow::detail
