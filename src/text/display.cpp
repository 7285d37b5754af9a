#include "text/display.hpp"

#include <algorithm>
#include <array>

#include "text/utf8.hpp"

namespace reprise::text {
namespace {

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// The large blocks of each kind. Terminals themselves do not agree about the rest.
constexpr std::array combining{
    Range{0x0300, 0x036F}, Range{0x0483, 0x0489},  Range{0x0591, 0x05BD}, Range{0x0610, 0x061A}, Range{0x064B, 0x065F},
    Range{0x0900, 0x0902}, Range{0x093C, 0x093C},  Range{0x0941, 0x0948}, Range{0x0E31, 0x0E31}, Range{0x0E34, 0x0E3A},
    Range{0x1AB0, 0x1AFF}, Range{0x1DC0, 0x1DFF},  Range{0x200B, 0x200F}, Range{0x20D0, 0x20FF}, Range{0xFE00, 0xFE0F},
    Range{0xFE20, 0xFE2F}, Range{0xE0100, 0xE01EF}};
constexpr std::array wide{
    Range{0x1100, 0x115F},   Range{0x2329, 0x232A},   Range{0x231A, 0x231B},   Range{0x23E9, 0x23EC},
    Range{0x23F0, 0x23F0},   Range{0x23F3, 0x23F3},   Range{0x25FD, 0x25FE},   Range{0x2614, 0x2615},
    Range{0x26A1, 0x26A1},   Range{0x26BD, 0x26BE},   Range{0x2705, 0x2705},   Range{0x270A, 0x270B},
    Range{0x2728, 0x2728},   Range{0x274C, 0x274C},   Range{0x274E, 0x274E},   Range{0x2753, 0x2755},
    Range{0x2757, 0x2757},   Range{0x2795, 0x2797},   Range{0x2B1B, 0x2B1C},   Range{0x2B50, 0x2B50},
    Range{0x2B55, 0x2B55},   Range{0x2E80, 0x303E},   Range{0x3041, 0x33FF},   Range{0x3400, 0x4DBF},
    Range{0x4E00, 0x9FFF},   Range{0xA000, 0xA4CF},   Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},
    Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},   Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},
    Range{0x1F300, 0x1F64F}, Range{0x1F680, 0x1F6FF}, Range{0x1F900, 0x1F9FF}, Range{0x20000, 0x3FFFD}};

template <std::size_t Size>
bool is_in(const std::array<Range, Size>& ranges, std::uint32_t code_point) noexcept {
  return std::ranges::any_of(ranges,
                             [=](Range range) { return code_point >= range.first && code_point <= range.last; });
}

}  // namespace

std::size_t columns_of(std::uint32_t code_point) noexcept {
  if (code_point < 0x0300) return 1;
  if (is_in(combining, code_point)) return 0;
  return is_in(wide, code_point) ? 2 : 1;
}

std::size_t columns_of(std::string_view text) noexcept {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    columns += character.bytes == 0 ? 1 : columns_of(character.code_point);
    text.remove_prefix(std::max<std::size_t>(1, character.bytes));
  }
  return columns;
}

std::string_view clipped(std::string_view text, std::size_t columns) noexcept {
  std::size_t taken = 0;
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Character character = first_character(text.substr(bytes));
    taken += character.bytes == 0 ? 1 : columns_of(character.code_point);
    if (taken > columns) break;
    bytes += std::max<std::size_t>(1, character.bytes);
  }
  return text.substr(0, bytes);
}

std::string padded(std::string_view text, std::size_t columns) {
  const std::size_t has = columns_of(text);
  return std::string{text} + std::string(columns - std::min(columns, has), ' ');
}

}  // namespace reprise::text
