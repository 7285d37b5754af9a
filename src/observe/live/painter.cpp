#include "observe/live/painter.hpp"

#include <algorithm>

#include "text/display.hpp"

namespace reprise::observe {
namespace {

constexpr std::string_view begin_of_picture = "\x1b[?2026h\x1b[?25l\r";
constexpr std::string_view end_of_picture = "\x1b[?25h\x1b[?2026l";
constexpr std::string_view erase_rest_of_line = "\x1b[K";
constexpr std::string_view erase_below = "\x1b[J";
constexpr std::string_view next_line = "\r\n";

// A wide character that does not fit into the last column goes to the next row as a whole, so columns alone do not tell.
std::size_t rows_of(std::string_view text, std::size_t columns) {
  std::size_t rows = 1;
  for (std::string_view row = text::clipped(text, columns); row.size() < text.size() && !row.empty(); ++rows) {
    text.remove_prefix(row.size());
    row = text::clipped(text, columns);
  }
  return rows;
}

}  // namespace

Painter::Drawn Painter::drawn(const StyledLine& line) const {
  const std::string text = without_styles(line);
  return {has_colours_ ? with_escape_codes(line) : text, text};
}

std::size_t Painter::rows_above(TerminalSize size) const {
  const std::size_t columns = std::max<std::size_t>(1, size.columns);
  std::size_t rows = 0;
  for (const Drawn& line : drawn_) rows += rows_of(line.text, columns);
  return std::min(rows, size.rows - std::min<std::size_t>(1, size.rows));
}

std::string Painter::paint(TerminalSize size, const std::vector<StyledLine>& staying,
                           const std::vector<StyledLine>& picture) {
  std::vector<Drawn> next;
  for (const StyledLine& line : picture) next.push_back(drawn(line));
  const bool is_resized = size != size_ && !drawn_.empty();
  const bool is_same = std::ranges::equal(next, drawn_, {}, &Drawn::bytes, &Drawn::bytes);
  if (staying.empty() && is_same && !is_resized) return "";
  std::string bytes{begin_of_picture};
  const std::size_t rows = rows_above(size);
  if (rows > 0) bytes += "\x1b[" + std::to_string(rows) + "A";
  const bool is_anew = is_resized || !staying.empty() || next.empty();
  if (is_anew) {  // lines that stay may be longer than a row
    // Not from the first row on: tmux takes that for a screen to be cleared, and keeps what was on it in its history.
    bytes += erase_rest_of_line;
    if (rows > 0) bytes.append("\n").append(erase_below).append("\x1b[A");
  }
  for (const StyledLine& line : staying) bytes.append(drawn(line).bytes).append(next_line);
  for (std::size_t index = 0; index < next.size(); ++index) {
    const bool is_there = !is_anew && index < drawn_.size() && drawn_[index].bytes == next[index].bytes;
    if (!is_there) bytes.append(next[index].bytes);
    if (!is_there && !is_anew) bytes.append(erase_rest_of_line);
    bytes.append(next_line);
  }
  if (!is_anew && next.size() < drawn_.size()) bytes += erase_below;
  bytes += end_of_picture;
  drawn_ = std::move(next);
  size_ = size;
  return bytes;
}

}  // namespace reprise::observe
