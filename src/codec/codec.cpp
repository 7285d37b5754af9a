// Reading and writing the JSON of <reprise/codec.hpp>: a pull reader, so that values are filled in without a tree in between.
#include <reprise/codec.hpp>

#include "base/encoding.hpp"
#include "base/hex.hpp"
#include "base/rfc3339.hpp"

namespace reprise::codec {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// The grammar of RFC 8259: no leading zero, digits on both sides of the point.
std::size_t number_length(std::string_view text) noexcept {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > from;
  };
  if (at < text.size() && text[at] == '-') ++at;
  if (at < text.size() && text[at] == '0')
    ++at;
  else if (!digits())
    return 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    if (!digits()) return 0;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!digits()) return 0;
  }
  return at;
}

void put_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&out](std::uint32_t bits) { out += static_cast<char>(0x80U | (bits & 0x3FU)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | (code >> 6U));
    tail(code);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0U | (code >> 12U));
    tail(code >> 6U);
    tail(code);
  } else {
    out += static_cast<char>(0xF0U | (code >> 18U));
    tail(code >> 12U);
    tail(code >> 6U);
    tail(code);
  }
}

bool is_low_surrogate(std::uint32_t unit) noexcept { return unit >= 0xDC00 && unit <= 0xDFFF; }
bool is_surrogate(std::uint32_t unit) noexcept { return unit >= 0xD800 && unit <= 0xDFFF; }

}  // namespace

void JsonReader::skip_blanks() noexcept {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
}

bool JsonReader::wrong(std::string what) {
  if (mistake_.empty()) mistake_ = std::move(what) + " (byte " + std::to_string(at_) + ")";
  return false;
}

bool JsonReader::take(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

bool JsonReader::read_null() noexcept {
  skip_blanks();
  return !failed() && take("null");
}

bool JsonReader::at_string() noexcept {
  skip_blanks();
  return at_ < text_.size() && text_[at_] == '"';
}

bool JsonReader::read(bool& value) {
  skip_blanks();
  if (failed()) return false;
  if (take("true")) return value = true;
  if (!take("false")) return wrong("expected true or false");
  value = false;
  return true;
}

bool JsonReader::read_number(std::string_view& spelling) {
  skip_blanks();
  if (failed()) return false;
  const std::size_t length = number_length(text_.substr(at_));
  if (length == 0) return wrong("expected a number");
  spelling = text_.substr(at_, length);
  at_ += length;
  return true;
}

bool JsonReader::read_hex(std::uint32_t& unit) {
  unit = 0;
  for (int digit = 0; digit < 4; ++digit, ++at_) {
    const int value = at_ < text_.size() ? base::hex_value(text_[at_]) : -1;
    if (value < 0) return wrong("expected four hexadecimal digits after \\u");
    unit = unit * 16 + static_cast<std::uint32_t>(value);
  }
  return true;
}

// Behind the backslash.
bool JsonReader::read_escape(std::string& value) {
  static constexpr std::string_view written = "\"\\/bfnrt";
  static constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
  if (at_ == text_.size()) return wrong("the string is not closed");
  const char letter = text_[at_++];
  if (const std::size_t known = written.find(letter); known != std::string_view::npos) {
    value += meant[known];
    return true;
  }
  if (letter != 'u') return wrong("unknown escape");
  std::uint32_t unit = 0;
  if (!read_hex(unit)) return false;
  if (is_surrogate(unit)) {
    std::uint32_t low = 0;
    if (is_low_surrogate(unit) || !take("\\u")) return wrong("half of a character");
    if (!read_hex(low)) return false;
    if (!is_low_surrogate(low)) return wrong("half of a character");
    unit = 0x10000 + ((unit - 0xD800) << 10U) + (low - 0xDC00);
  }
  put_utf8(value, unit);
  return true;
}

bool JsonReader::read(std::string& value) {
  skip_blanks();
  if (failed()) return false;
  if (!take("\"")) return wrong("expected a string");
  value.clear();
  while (at_ < text_.size() && text_[at_] != '"') {
    const char c = text_[at_];
    if (static_cast<unsigned char>(c) < 0x20) return wrong("a control character in a string");
    ++at_;
    if (c != '\\')
      value += c;
    else if (!read_escape(value))
      return false;
  }
  return take("\"") || wrong("the string is not closed");
}

bool JsonReader::begin(char bracket) {
  skip_blanks();
  if (failed()) return false;
  if (!take({&bracket, 1})) return wrong(bracket == '[' ? "expected a list" : "expected an object");
  if (++depth_ > depth_max) return wrong("nested deeper than " + std::to_string(depth_max) + " levels");
  first_ = true;
  return true;
}

bool JsonReader::next(char end, bool& more) {
  skip_blanks();
  if (failed()) return false;
  more = !take({&end, 1});
  if (!more) {
    --depth_;
    first_ = false;
    return true;
  }
  if (!first_ && !take(",")) return wrong(std::string{"expected , or "} + end);
  first_ = false;
  return true;
}

bool JsonReader::next_element() {
  bool more = false;
  return next(']', more) && more;
}

bool JsonReader::next_field(std::string& name) {
  bool more = false;
  if (!next('}', more) || !more || !read(name)) return false;
  skip_blanks();
  return take(":") || wrong("expected a colon");
}

bool JsonReader::skip(std::string_view* spelling) {
  skip_blanks();
  const std::size_t from = at_;
  const char first = at_ < text_.size() ? text_[at_] : '\0';
  std::string text;
  std::string_view number;
  bool truth = false;
  bool fine = false;
  if (first == '{') {
    fine = begin('{');
    while (fine && next_field(text)) fine = skip();
  } else if (first == '[') {
    fine = begin('[');
    while (fine && next_element()) fine = skip();
  } else if (first == '"') {
    fine = read(text);
  } else if (first == 'n') {
    fine = read_null() || wrong("expected a value");
  } else if (first == 't' || first == 'f') {
    fine = read(truth);
  } else {
    fine = read_number(number);
  }
  if (!fine || failed()) return false;
  if (spelling != nullptr) *spelling = text_.substr(from, at_ - from);
  return true;
}

bool JsonReader::at_end() {
  skip_blanks();
  if (failed()) return false;
  return at_ == text_.size() || wrong("there is more text after the value");
}

void put_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      base::append_hex(out, static_cast<unsigned char>(c), 2);
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string to_base64(std::string_view bytes) { return base::base64(bytes); }
std::optional<std::string> from_base64(std::string_view text) { return base::from_base64(text); }

std::string to_text(std::chrono::sys_time<std::chrono::nanoseconds> time) { return base::to_rfc3339(time); }
std::optional<std::chrono::sys_time<std::chrono::nanoseconds>> time_in(std::string_view text) {
  return base::parse_rfc3339(text);
}

}  // namespace reprise::codec
