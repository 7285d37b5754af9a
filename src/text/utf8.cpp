#include "text/utf8.hpp"

#include <algorithm>

namespace reprise::text {
namespace {

constexpr bool continues_character(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Unicode's Bidi_Control: text after them is shown in another order than it is read.
constexpr bool turns_the_order(std::uint32_t code_point) noexcept {
  return code_point == 0x061C || code_point == 0x200E || code_point == 0x200F ||
         (code_point >= 0x202A && code_point <= 0x202E) || (code_point >= 0x2066 && code_point <= 0x2069);
}

constexpr std::string_view replacement = "\xEF\xBF\xBD";

}  // namespace

Character first_character(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {1, lead};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes > text.size()) return {};
  std::uint32_t code_point = lead & (0xFFU >> (bytes + 1));
  for (const char c : text.substr(1, bytes - 1)) {
    if (!continues_character(c)) return {};
    code_point = (code_point << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
  }
  constexpr std::uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
  if (code_point < smallest[bytes] || code_point > 0x10FFFF || surrogate) return {};
  return {bytes, code_point};
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t bytes = first_character(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

bool is_control(std::uint32_t code_point) noexcept {
  const bool c0_or_c1 = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
  const bool line_separator = code_point == 0x2028 || code_point == 0x2029;
  const bool no_character = code_point == 0xFEFF || (code_point & 0xFFFEU) == 0xFFFE;
  return c0_or_c1 || line_separator || no_character || turns_the_order(code_point);
}

std::string safe_to_show(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    const bool blank = text.front() == '\t' || text.front() == '\n' || text.front() == '\r';
    if (blank) {
      shown += ' ';
    } else if (character.bytes == 0 || is_control(character.code_point)) {
      shown += replacement;
    } else {
      shown += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return shown;
}

std::string lines_safe_to_show(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() &&
           ((text[plain] >= ' ' && text[plain] < 0x7F) || text[plain] == '\n' || text[plain] == '\t'))
      ++plain;
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Character character = first_character(text);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    const bool is_safe = character.bytes != 0 && (character.code_point > 0xFFFF || !is_control(character.code_point));
    shown += is_safe ? text.substr(0, bytes) : replacement;
    text.remove_prefix(bytes);
  }
  return shown;
}

}  // namespace reprise::text
