#include "flow/expression/expression_tokens.hpp"

#include <array>
#include <optional>
#include <utility>

#include "base/hex.hpp"
#include "text/ascii.hpp"
#include "text/utf8.hpp"

namespace reprise::flow::detail {
namespace {

using Mistake = std::unexpected<ExpressionMistake>;

constexpr char32_t no_break_space = 0xA0;
constexpr char32_t punctuation_first = 0x2000;  // the block General Punctuation: blanks, dashes, typographic quotes
constexpr char32_t punctuation_last = 0x206F;
constexpr char32_t wide_space = 0x3000;

// Longest first: `!==` must not be read as `!=` and something.
constexpr std::array<std::string_view, 17> signs{"==", "!=", "<=", ">=", "<", ">", "+", "-", "*",
                                                 "/",  "%",  "(",  ")",  "[", "]", ".", ","};

struct ForeignSign {
  std::string_view sign;
  std::string_view help;
};
constexpr std::array<ForeignSign, 19> foreign_signs{{
    {"===", "write =="},
    {"!==", "write !="},
    {"&&", "write `and`"},
    {"||", "write `or`"},
    {"**", "there is no power; write a product"},
    {"//", "write /"},
    {"<>", "write !="},
    {"??", "write default(value, otherwise)"},
    {"?.", "write default(path, otherwise): a missing member is no mistake there"},
    {"${{", "write ${…} with single braces"},
    {"{{", "write ${…} instead of {{ }}"},
    {"${", "inside an expression a path stands alone: steps.list.output"},
    {"$", "a path begins with its name: params.date"},
    {"!", "write `not`"},
    {"=", "write == to compare"},
    {"?", "there is no `? :`; use `if` of the step, or default(value, otherwise)"},
    {"|", "there are no filters; write default(value, otherwise), length(value) …"},
    {"&", "write `and`"},
    {":", "for the shell's own ${name:-value} write $${name:-value}; in an expression default(name, 'value')"},
}};

bool is_ascii_letter(char c) noexcept { return (text::to_lower(c) >= 'a' && text::to_lower(c) <= 'z') || c == '_'; }

bool is_typographic(char32_t code_point) noexcept {
  return code_point == no_break_space || code_point == wide_space ||
         (code_point >= punctuation_first && code_point <= punctuation_last);
}

// The bytes of the letter at the beginning; letters of any language count.
std::size_t letter_bytes(std::string_view text) noexcept {
  if (text.empty()) return 0;
  if (static_cast<unsigned char>(text.front()) < 0x80) return is_ascii_letter(text.front()) ? 1 : 0;
  const text::Character character = text::first_character(text);
  return is_typographic(character.code_point) || text::is_control(character.code_point) ? 0 : character.bytes;
}

std::size_t digits_at(std::string_view text, std::size_t at) noexcept {
  std::size_t count = 0;
  while (at + count < text.size() && text::is_digit(text[at + count])) ++count;
  return count;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  const auto low = [&](unsigned shift) { return static_cast<char>(0x80U | (code_point >> shift & 0x3FU)); };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += {static_cast<char>(0xC0U | code_point >> 6U), low(0)};
  } else if (code_point < 0x10000) {
    out += {static_cast<char>(0xE0U | code_point >> 12U), low(6), low(0)};
  } else {
    out += {static_cast<char>(0xF0U | code_point >> 18U), low(12), low(6), low(0)};
  }
}

// Four hexadecimal digits behind \u.
std::optional<std::uint32_t> code_unit(std::string_view text) noexcept {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t value = 0;
  if (!base::read_hex(text.substr(0, 4), value)) return std::nullopt;
  return value;
}

// \uXXXX, or two of them for one character beyond U+FFFF; `text` begins behind the backslash. Returns the bytes that were read, 0 if none.
std::size_t append_unicode(std::string& out, std::string_view text) {
  const auto first = code_unit(text.substr(1));
  if (!first || (*first >= 0xDC00 && *first <= 0xDFFF)) return 0;
  if (*first < 0xD800 || *first > 0xDBFF) {
    append_utf8(out, *first);
    return 5;
  }
  if (!text.substr(5).starts_with("\\u")) return 0;
  const auto second = code_unit(text.substr(7));
  if (!second || *second < 0xDC00 || *second > 0xDFFF) return 0;
  append_utf8(out, 0x10000 + ((*first - 0xD800) << 10U) + (*second - 0xDC00));
  return 11;
}

// What stands behind a backslash; returns the bytes that were read, 0 if it is no escape.
std::size_t append_escape(std::string& out, std::string_view text) {
  constexpr std::string_view letters = "\\'\"/nrtbf";
  constexpr std::string_view meanings = "\\'\"/\n\r\t\b\f";
  if (text.empty()) return 0;
  if (text.front() == 'u') return append_unicode(out, text);
  const std::size_t found = letters.find(text.front());
  if (found == std::string_view::npos) return 0;
  out += meanings[found];
  return 1;
}

}  // namespace

std::size_t name_bytes(std::string_view text) noexcept {
  std::size_t bytes = letter_bytes(text);
  while (bytes != 0 && bytes < text.size()) {
    const std::string_view rest = text.substr(bytes);
    if (const std::size_t letter = letter_bytes(rest); letter != 0) {
      bytes += letter;
    } else if (text::is_digit(rest.front())) {
      ++bytes;
    } else if (const std::size_t behind = rest.front() == '-' ? letter_bytes(rest.substr(1)) : 0; behind != 0) {
      bytes += 1 + behind;
    } else {
      break;
    }
  }
  return bytes;
}

std::size_t quoted_bytes(std::string_view text) noexcept {
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == text.front()) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

Token TokenReader::take(Token::Kind kind, std::size_t bytes) {
  Token token{kind, at_, bytes, std::string{source_.substr(at_, bytes)}};
  at_ += bytes;
  return token;
}

std::expected<Token, ExpressionMistake> TokenReader::next() {
  while (at_ < source_.size() && std::string_view{" \t\r\n"}.contains(source_[at_])) ++at_;
  if (at_ == source_.size()) return Token{.offset = at_};
  const char first = source_[at_];
  if (text::is_digit(first)) return number();
  if (first == '\'' || first == '"') return quoted();
  if (const std::size_t bytes = name_bytes(source_.substr(at_)); bytes != 0) return take(Token::Kind::name, bytes);
  return sign();
}

std::expected<Token, ExpressionMistake> TokenReader::number() {
  std::size_t end = at_ + digits_at(source_, at_);
  if (const std::size_t fraction = source_.substr(end).starts_with('.') ? digits_at(source_, end + 1) : 0;
      fraction != 0) {
    end += 1 + fraction;
  }
  if (end < source_.size() && text::to_lower(source_[end]) == 'e') {
    const std::size_t sign = std::string_view{source_}.substr(end + 1).find_first_not_of("+-") == 1 ? 1 : 0;
    if (const std::size_t exponent = digits_at(source_, end + 1 + sign); exponent != 0) end += 1 + sign + exponent;
  }
  if (end < source_.size() && (letter_bytes(source_.substr(end)) != 0 || source_[end] == '.')) {
    return Mistake{{at_, "this is neither a number nor a name",
                    "a name that begins with a digit, or has one behind a dash, stands in brackets: steps['step-1']"}};
  }
  return take(Token::Kind::number, end - at_);
}

std::expected<Token, ExpressionMistake> TokenReader::quoted() {
  const std::size_t bytes = quoted_bytes(source_.substr(at_));
  if (bytes == std::string_view::npos) {
    return Mistake{{at_, std::string{"this text has no closing "} + source_[at_],
                    "a quote inside the text is written \\' or \\\""}};
  }
  const std::string_view inside = source_.substr(at_ + 1, bytes - 2);
  std::string meaning;
  for (std::size_t index = 0; index < inside.size(); ++index) {
    if (inside[index] != '\\') {
      meaning += inside[index];
      continue;
    }
    const std::size_t read = append_escape(meaning, inside.substr(index + 1));
    if (read == 0) {
      return Mistake{{at_ + 1 + index, "this escape is unknown",
                      R"(known are \\ \' \" \/ \n \r \t \b \f and \uXXXX; a backslash itself is \\)"}};
    }
    index += read;
  }
  Token token = take(Token::Kind::text, bytes);
  token.text = std::move(meaning);
  return token;
}

std::expected<Token, ExpressionMistake> TokenReader::sign() {
  const std::string_view rest = source_.substr(at_);
  for (const ForeignSign& foreign : foreign_signs) {
    const bool is_ours = rest.starts_with("!=") && foreign.sign.size() == 1;  // `!=` begins with `!`
    const bool is_equal = rest.starts_with("==") && foreign.sign.size() == 1;
    if (!is_ours && !is_equal && rest.starts_with(foreign.sign)) {
      return Mistake{
          {at_, "`" + std::string{foreign.sign} + "` means nothing in an expression", std::string{foreign.help}}};
    }
  }
  for (const std::string_view sign : signs) {
    if (rest.starts_with(sign)) return take(Token::Kind::sign, sign.size());
  }
  const text::Character character = text::first_character(rest);
  if (character.bytes == 0) return Mistake{{at_, "this byte is no UTF-8 text"}};
  return Mistake{{at_, "`" + text::safe_to_show(rest.substr(0, character.bytes)) + "` means nothing in an expression",
                  is_typographic(character.code_point) ? "use plain blanks, dashes and quotes: ' or \"" : ""}};
}

}  // namespace reprise::flow::detail
