#include "json/jsonpath_tokens.hpp"

#include <charconv>
#include <cmath>

#include "base/hex.hpp"
#include "text/ascii.hpp"
#include "text/place.hpp"
#include "text/utf8.hpp"

namespace reprise::json::jsonpath {
namespace {

constexpr std::int64_t whole_max = 9'007'199'254'740'991;

constexpr bool is_small_letter(char c) noexcept { return c >= 'a' && c <= 'z'; }

constexpr bool begins_name(char c) noexcept {
  return is_small_letter(text::to_lower(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

void put_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](unsigned shift) { out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(6);
    tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

void Cursor::skip_blanks() noexcept {
  while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
}

std::unexpected<JsonPathMistake> Cursor::expected(std::string_view what) const {
  const std::string found = at_end() ? "the end" : text::shorten(rest(), 10);
  return mistake("expected " + std::string{what} + ", found " + found);
}

bool Cursor::sees_name() const noexcept { return begins_name(peek()); }

bool Cursor::sees_number() const noexcept { return peek() == '-' || text::is_digit(peek()); }

std::string Cursor::take_name() {
  const std::size_t begin = at_;
  while (begins_name(peek()) || text::is_digit(peek())) ++at_;
  return std::string{text_.substr(begin, at_ - begin)};
}

std::string_view Cursor::take_function_name() {
  const std::size_t begin = at_;
  if (!is_small_letter(peek())) return {};
  while (is_small_letter(peek()) || peek() == '_' || text::is_digit(peek())) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::size_t Cursor::take_digits() noexcept {
  const std::size_t begin = at_;
  while (text::is_digit(peek())) ++at_;
  return at_ - begin;
}

Parsed<std::int64_t> Cursor::take_whole() {
  const std::size_t begin = at_;
  const bool negative = takes("-");
  const bool zero = peek() == '0';
  const std::size_t digits = take_digits();
  if (digits == 0) return expected("a whole number");
  if (zero && (negative || digits > 1)) return mistake_at(begin, "a whole number has no leading zeros and no -0");
  std::int64_t number = 0;
  const auto read = std::from_chars(text_.data() + begin, text_.data() + at_, number);
  if (read.ec != std::errc{} || number > whole_max || number < -whole_max)
    return mistake_at(begin, "a whole number must lie between -9007199254740991 and 9007199254740991");
  return number;
}

Parsed<Json> Cursor::take_number() {
  const std::size_t begin = at_;
  takes("-");
  const bool zero = peek() == '0';
  const std::size_t digits = take_digits();
  if (digits == 0) return expected("a number");
  if (zero && digits > 1) return mistake_at(begin, "a number has no leading zeros");
  bool is_whole = true;
  if (takes(".")) {
    is_whole = false;
    if (take_digits() == 0) return expected("digits after the decimal point");
  }
  if (takes("e") || takes("E")) {
    is_whole = false;
    if (!takes("-")) takes("+");
    if (take_digits() == 0) return expected("the digits of the exponent");
  }
  const std::string_view text = text_.substr(begin, at_ - begin);
  std::int64_t whole = 0;
  if (is_whole && std::from_chars(text.data(), text.data() + text.size(), whole).ec == std::errc{}) return Json(whole);
  // JSON's numbers are written the same way, and parse_json() knows what is too large.
  auto number = parse_json(text);
  if (!number) return mistake_at(begin, "the number is too large");
  return *std::move(number);
}

Parsed<std::string> Cursor::take_string() {
  const std::size_t begin = at_;
  const char quote = peek();
  ++at_;
  std::string out;
  while (!at_end()) {
    const char c = peek();
    if (c == quote) {
      ++at_;
      return out;
    }
    if (static_cast<unsigned char>(c) < 0x20)
      return mistake("a control character in a string; write it as an escape like \\n or \\u001f");
    if (c != '\\') {
      out += c;
      ++at_;
      continue;
    }
    auto escaped = take_escape(quote);
    if (!escaped) return std::unexpected(std::move(escaped.error()));
    out += *escaped;
  }
  return mistake_at(begin, "the string is never closed");
}

Parsed<std::string> Cursor::take_escape(char quote) {
  const std::size_t begin = at_;
  ++at_;
  const char c = peek();
  if (c == 'u') {
    auto code = take_hex();
    if (!code) return std::unexpected(std::move(code.error()));
    if (*code >= 0xDC00 && *code < 0xE000)
      return mistake_at(begin, "the second half of a surrogate pair without the first");
    if (*code >= 0xD800 && *code < 0xDC00) {
      const auto low = sees("\\") ? (++at_, take_hex()) : Parsed<std::uint32_t>{0U};
      if (!low || *low < 0xDC00 || *low >= 0xE000)
        return mistake_at(begin, "the first half of a surrogate pair without the second");
      *code = 0x10000 + ((*code - 0xD800) << 10U) + (*low - 0xDC00);
    }
    std::string out;
    put_utf8(out, *code);
    return out;
  }
  constexpr std::string_view known = "b\bf\fn\nr\rt\t//\\\\";
  for (std::size_t index = 0; index < known.size(); index += 2) {
    if (known[index] != c || at_end()) continue;
    ++at_;
    return std::string(1, known[index + 1]);
  }
  if (c != quote) return mistake_at(begin, "unknown escape; in a string, \\ is written \\\\");
  ++at_;
  return std::string(1, quote);
}

Parsed<std::uint32_t> Cursor::take_hex() {
  constexpr std::size_t digits = 4;
  if (!takes("u") || rest().size() < digits) return mistake("expected u and four hexadecimal digits");
  std::uint32_t code = 0;
  if (!base::read_hex(rest().substr(0, digits), code)) return mistake("expected four hexadecimal digits after \\u");
  at_ += digits;
  return code;
}

}  // namespace reprise::json::jsonpath
