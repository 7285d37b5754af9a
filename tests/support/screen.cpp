// The grid, the bytes that move it, and how it is laid out anew for another size.
#include "support/screen.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

namespace reprise::testing_support {
namespace {

constexpr char escape = '\x1b';
constexpr std::size_t sequence_bytes_max = 64;  // longer ones are never meant for us

struct Range {
  char32_t first;
  char32_t last;
};

bool is_in(std::span<const Range> ranges, char32_t character) {
  return std::ranges::any_of(ranges,
                             [&](const Range& range) { return character >= range.first && character <= range.last; });
}

// The parts of Unicode's tables that texts of programs are made of.
constexpr std::array no_column{Range{0x0300, 0x036F}, Range{0x0483, 0x0489},  Range{0x0591, 0x05BD},
                               Range{0x064B, 0x065F}, Range{0x1AB0, 0x1AFF},  Range{0x1DC0, 0x1DFF},
                               Range{0x200B, 0x200F}, Range{0x20D0, 0x20FF},  Range{0xFE00, 0xFE0F},
                               Range{0xFE20, 0xFE2F}, Range{0xE0100, 0xE01EF}};
constexpr std::array two_columns{
    Range{0x1100, 0x115F},   Range{0x231A, 0x231B},  Range{0x2329, 0x232A},   Range{0x23E9, 0x23EC},
    Range{0x23F0, 0x23F0},   Range{0x23F3, 0x23F3},  Range{0x25FD, 0x25FE},   Range{0x2614, 0x2615},
    Range{0x2648, 0x2653},   Range{0x26A1, 0x26A1},  Range{0x26D4, 0x26D4},   Range{0x2705, 0x2705},
    Range{0x270A, 0x270B},   Range{0x2728, 0x2728},  Range{0x274C, 0x274C},   Range{0x274E, 0x274E},
    Range{0x2753, 0x2755},   Range{0x2757, 0x2757},  Range{0x2795, 0x2797},   Range{0x27B0, 0x27B0},
    Range{0x2B1B, 0x2B1C},   Range{0x2B50, 0x2B50},  Range{0x2B55, 0x2B55},   Range{0x2E80, 0x303E},
    Range{0x3041, 0x33FF},   Range{0x3400, 0x4DBF},  Range{0x4E00, 0x9FFF},   Range{0xA000, 0xA4CF},
    Range{0xA960, 0xA97F},   Range{0xAC00, 0xD7A3},  Range{0xF900, 0xFAFF},   Range{0xFE30, 0xFE6F},
    Range{0xFF00, 0xFF60},   Range{0xFFE0, 0xFFE6},  Range{0x1F300, 0x1F64F}, Range{0x1F680, 0x1F6FF},
    Range{0x1F900, 0x1F9FF}, Range{0x20000, 0x3FFFD}};

struct Decoded {
  std::size_t bytes = 0;                   // 0: more are needed
  std::optional<char32_t> character = {};  // none: this is not UTF-8
};

Decoded decode(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes.front());
  std::size_t length = 1;
  char32_t character = lead;
  char32_t smallest = 0;
  if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4, character = lead & 0x07U, smallest = 0x10000;
  } else if (lead >= 0xE0 && lead < 0xF0) {
    length = 3, character = lead & 0x0FU, smallest = 0x800;
  } else if (lead >= 0xC2 && lead < 0xE0) {
    length = 2, character = lead & 0x1FU, smallest = 0x80;
  } else if (lead >= 0x80) {
    return {.bytes = 1};
  }
  for (std::size_t at = 1; at < length; ++at) {
    if (at == bytes.size()) return {};
    const auto next = static_cast<unsigned char>(bytes[at]);
    if ((next & 0xC0U) != 0x80U) return {.bytes = at};
    character = character << 6U | (next & 0x3FU);
  }
  const bool valid = character >= smallest && character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF);
  return {.bytes = length, .character = valid ? std::optional{character} : std::nullopt};
}

std::string hex(char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto value = static_cast<unsigned char>(byte);
  return {digits[value >> 4U], digits[value & 0x0FU]};
}

// "38;5;208" as numbers; an empty one is 0. Nothing when it is something else.
std::optional<std::vector<int>> numbers_in(std::string_view parameters) {
  std::vector<int> numbers;
  while (true) {
    const std::string_view word = parameters.substr(0, parameters.find(';'));
    int number = 0;
    if (!word.empty()) {
      const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
      if (problem != std::errc{} || end != word.data() + word.size() || number < 0) return std::nullopt;
    }
    numbers.push_back(number);
    if (word.size() == parameters.size()) return numbers;
    parameters.remove_prefix(word.size() + 1);
  }
}

// The colour after 38 or 48: 5;N or 2;R;G;B. How many numbers it has taken; 0: it is none.
std::size_t long_colour(std::span<const int> rest, std::int32_t& colour) {
  const auto is_byte = [](int value) { return value <= 255; };
  if (rest.size() >= 2 && rest[0] == 5 && is_byte(rest[1])) {
    colour = rest[1];
    return 2;
  }
  if (rest.size() >= 4 && rest[0] == 2 && std::ranges::all_of(rest.subspan(1, 3), is_byte)) {
    colour = first_rgb_colour + (rest[1] << 16) + (rest[2] << 8) + rest[3];
    return 4;
  }
  return 0;
}

// One number of a colour sequence that stands for itself. False: nobody knows it.
bool short_style(int number, Style& style) {
  switch (number) {
    case 0:
      style = {};
      return true;
    case 1:
      style.bold = true;
      return true;
    case 2:
      style.dim = true;
      return true;
    case 3:
      style.italic = true;
      return true;
    case 4:
      style.underlined = true;
      return true;
    case 7:
      style.inverse = true;
      return true;
    case 22:
      style.bold = style.dim = false;
      return true;
    case 23:
      style.italic = false;
      return true;
    case 24:
      style.underlined = false;
      return true;
    case 27:
      style.inverse = false;
      return true;
    case 39:
      style.foreground = default_colour;
      return true;
    case 49:
      style.background = default_colour;
      return true;
    default:
      break;
  }
  if (number >= 30 && number <= 37) return style.foreground = number - 30, true;
  if (number >= 40 && number <= 47) return style.background = number - 40, true;
  if (number >= 90 && number <= 97) return style.foreground = number - 90 + 8, true;
  if (number >= 100 && number <= 107) return style.background = number - 100 + 8, true;
  return false;
}

std::string without_end_blanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string text_of(std::span<const Cell> cells) {
  std::string text;
  for (const Cell& cell : cells) {
    if (!cell.is_second) text += cell.text.empty() ? " " : cell.text;
  }
  return text;
}

}  // namespace

std::size_t columns_of(char32_t character) {
  if (is_in(no_column, character)) return 0;
  return is_in(two_columns, character) ? 2 : 1;
}

std::size_t Row::used() const {
  std::size_t count = cells.size();
  while (count > 0 && cells[count - 1].blank()) --count;
  return count;
}

std::string Row::text() const { return without_end_blanks(text_of(cells)); }

Screen::Screen(std::size_t width, std::size_t height)
    : width_{std::max<std::size_t>(width, 2)}, height_{std::max<std::size_t>(height, 1)}, all_(height_, empty_row()) {}

Row Screen::empty_row() const { return {.cells = std::vector<Cell>(width_)}; }

std::vector<std::string> Screen::rows() const {
  std::vector<std::string> texts;
  for (std::size_t number = 0; number < height_; ++number) texts.push_back(row(number).text());
  return texts;
}

std::vector<std::string> Screen::all_rows() const {
  std::vector<std::string> texts;
  for (const Row& part : all_) texts.push_back(part.text());
  return texts;
}

std::vector<std::string> Screen::lines() const {
  std::vector<std::string> texts;
  std::string line;
  for (const Row& part : all_) {
    line += text_of(std::span{part.cells}.first(part.continues ? part.used() : part.cells.size()));
    if (part.continues) continue;
    texts.push_back(without_end_blanks(std::exchange(line, {})));
  }
  while (!texts.empty() && texts.back().empty()) texts.pop_back();
  return texts;
}

void Screen::forget_clears() {
  for (std::size_t number = 0; number < height_; ++number) {
    for (Cell& cell : all_[top() + number].cells) cell.was_cleared = false;
  }
}

// ---- bytes ----

void Screen::feed(std::string_view bytes) {
  pending_ += bytes;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const std::size_t used = take_token(rest);
    if (used == 0) break;
    rest.remove_prefix(used);
  }
  pending_.erase(0, pending_.size() - rest.size());
}

std::size_t Screen::take_token(std::string_view bytes) {
  switch (bytes.front()) {
    case '\r':
      cursor_column_ = 0;
      wraps_next_ = false;
      return 1;
    case '\n':
      line_feed();
      return 1;
    case escape:
      return take_escape(bytes);
    default:
      break;
  }
  if (const auto byte = static_cast<unsigned char>(bytes.front()); byte < 0x20 || byte == 0x7F) {
    not_known("control character 0x" + hex(bytes.front()));
    return 1;
  }
  return take_character(bytes);
}

std::size_t Screen::take_escape(std::string_view bytes) {
  if (bytes.size() < 2) return 0;
  if (bytes[1] != '[') {
    not_known(std::string{"ESC "} + bytes[1]);
    return 2;
  }
  const auto is_final = [](char c) { return c >= 0x40 && c <= 0x7E; };
  const auto is_part = [](char c) { return c >= 0x20 && c <= 0x3F; };
  const std::string_view inside = bytes.substr(2, sequence_bytes_max);
  const auto end = std::ranges::find_if_not(inside, is_part);
  const std::string_view parameters = inside.substr(0, static_cast<std::size_t>(end - inside.begin()));
  if (end == inside.end()) {
    if (inside.size() < sequence_bytes_max) return 0;
    not_known("an endless sequence");
    return 2 + parameters.size();
  }
  if (!is_final(*end) || !control(parameters, *end))
    not_known("ESC[" + std::string{parameters} + (is_final(*end) ? *end : '?'));
  return 2 + parameters.size() + (is_final(*end) ? 1 : 0);
}

std::size_t Screen::take_character(std::string_view bytes) {
  const Decoded decoded = decode(bytes);
  if (decoded.bytes == 0) return 0;
  const std::string_view character = bytes.substr(0, decoded.bytes);
  if (!decoded.character || (*decoded.character >= 0x80 && *decoded.character < 0xA0)) {
    std::string codes;
    for (const char byte : character) codes += " " + hex(byte);
    not_known((decoded.character ? "control character" : "not UTF-8:") + codes);
    return decoded.bytes;
  }
  const std::size_t columns = columns_of(*decoded.character);
  columns == 0 ? combine(character) : put(character, columns);
  return decoded.bytes;
}

// False: it is not known, and nothing was done.
bool Screen::control(std::string_view parameters, char final) {
  const bool to_the_end = parameters.empty() || parameters == "0";
  if (final == 'm') return colours(parameters);
  if (final == 'A') {
    const auto numbers = numbers_in(parameters);
    if (!numbers || numbers->size() != 1) return false;
    const auto up = static_cast<std::size_t>(std::max(numbers->front(), 1));
    cursor_row_ -= std::min(cursor_row_, up);
    wraps_next_ = false;
  } else if (final == 'K' && to_the_end) {
    erase(cursor_line(), cursor_column_);
  } else if (final == 'J' && to_the_end) {
    erase(cursor_line(), cursor_column_);
    for (std::size_t below = cursor_row_ + 1; below < height_; ++below) erase(all_[top() + below], 0);
  } else if (parameters == "?25" && (final == 'h' || final == 'l')) {
    cursor_visible_ = final == 'h';
  } else if (parameters == "?2026" && (final == 'h' || final == 'l')) {
    updating_ = final == 'h';
  } else {
    return false;
  }
  return true;
}

bool Screen::colours(std::string_view parameters) {
  const auto numbers = numbers_in(parameters);
  if (!numbers) return false;
  Style next = style_;
  for (std::size_t at = 0; at < numbers->size(); ++at) {
    const int number = (*numbers)[at];
    if (number != 38 && number != 48) {
      if (!short_style(number, next)) return false;
      continue;
    }
    std::int32_t& colour = number == 38 ? next.foreground : next.background;
    const std::size_t taken = long_colour(std::span{*numbers}.subspan(at + 1), colour);
    if (taken == 0) return false;
    at += taken;
  }
  style_ = next;
  return true;
}

// ---- the grid ----

void Screen::put(std::string_view character, std::size_t columns) {
  if (wraps_next_ || cursor_column_ + columns > width_) {
    cursor_line().continues = true;
    cursor_column_ = 0;
    wraps_next_ = false;
    line_feed();
  }
  std::vector<Cell>& cells = cursor_line().cells;
  // Half of a wide character does not stay behind.
  if (cells[cursor_column_].is_second) cells[cursor_column_ - 1].text.clear();
  const std::size_t after = cursor_column_ + columns;
  if (after < width_ && cells[after].is_second) cells[after].is_second = false;
  for (std::size_t column = cursor_column_; column < after; ++column) {
    Cell& cell = cells[column];
    cell.text = column == cursor_column_ ? std::string{character} : std::string{};
    cell.is_second = column != cursor_column_;
    cell.style = style_;
  }
  wraps_next_ = after == width_;
  cursor_column_ = std::min(after, width_ - 1);
}

void Screen::combine(std::string_view character) {
  std::vector<Cell>& cells = cursor_line().cells;
  std::size_t column = wraps_next_ ? cursor_column_ : cursor_column_ - std::min<std::size_t>(cursor_column_, 1);
  if (cells[column].is_second) --column;
  if (cells[column].text.empty()) return;
  cells[column].text += character;
}

void Screen::line_feed() {
  wraps_next_ = false;
  if (cursor_row_ + 1 < height_) {
    ++cursor_row_;
  } else {
    all_.push_back(empty_row());  // the screen is the last `height` rows, so the first one moves to the scrollback
  }
}

void Screen::erase(Row& row, std::size_t from) {
  if (from > 0 && row.cells[from].is_second) row.cells[from - 1] = {};
  for (std::size_t column = from; column < row.cells.size(); ++column) {
    Cell& cell = row.cells[column];
    cell = {.was_cleared = cell.was_cleared || (!cell.blank() && cell.text != " ")};
  }
  row.continues = false;
}

// ---- another size ----

void Screen::resize(std::size_t width, std::size_t height) {
  const std::size_t cursor_at = top() + cursor_row_;
  width_ = std::max<std::size_t>(width, 2);
  height_ = std::max<std::size_t>(height, 1);

  std::vector<Row> old = std::exchange(all_, {});
  while (old.size() > cursor_at + 1 && old.back().used() == 0) old.pop_back();  // nothing was ever written there
  std::size_t new_cursor_at = 0;
  std::size_t new_column = 0;
  for (std::size_t first = 0; first < old.size();) {
    std::vector<Cell> line;
    std::optional<std::size_t> cursor_offset;
    std::size_t last = first;
    for (;; ++last) {
      if (last == cursor_at) cursor_offset = line.size() + cursor_column_ + (wraps_next_ ? 1 : 0);
      const std::vector<Cell>& cells = old[last].cells;
      line.insert(line.end(), cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(old[last].used()));
      if (!old[last].continues || last + 1 == old.size()) break;
    }
    first = last + 1;

    std::size_t offset = 0;
    do {
      std::size_t count = std::min(line.size() - offset, width_);
      const bool splits_a_wide_one = offset + count < line.size() && line[offset + count].is_second;
      if (splits_a_wide_one) --count;
      const bool is_last = offset + count == line.size();
      if (cursor_offset && *cursor_offset >= offset && (is_last || *cursor_offset < offset + count)) {
        new_cursor_at = all_.size();
        new_column = *cursor_offset - offset;
      }
      Row row = empty_row();
      std::copy_n(line.begin() + static_cast<std::ptrdiff_t>(offset), count, row.cells.begin());
      row.continues = !is_last;
      all_.push_back(std::move(row));
      offset += count;
    } while (offset < line.size());
  }
  while (all_.size() < height_) all_.push_back(empty_row());

  wraps_next_ = new_column >= width_;
  cursor_column_ = std::min(new_column, width_ - 1);
  cursor_row_ = new_cursor_at - std::min(new_cursor_at, top());
}

}  // namespace reprise::testing_support
