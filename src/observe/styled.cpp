#include "observe/styled.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "text/display.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {
namespace {

std::string_view escape_code(Style style) {
  switch (style) {
    case Style::strong:
      return "\x1b[1m";
    case Style::dim:
      return "\x1b[2m";
    case Style::good:
      return "\x1b[32m";
    case Style::bad:
      return "\x1b[31m";
    case Style::warning:
      return "\x1b[33m";
    case Style::plain:
      break;
  }
  return "";
}

}  // namespace

std::string without_styles(const StyledLine& line) {
  std::string text;
  for (const Span& span : line) text += text::lines_safe_to_show(span.text);
  return text;
}

std::string with_escape_codes(const StyledLine& line) {
  std::string text;
  for (const Span& span : line) {
    const std::string shown = text::lines_safe_to_show(span.text);  // the only escape codes are those that we add
    if (span.style == Style::plain) {
      text += shown;
    } else if (!shown.empty()) {
      text.append(escape_code(span.style)).append(shown).append("\x1b[0m");
    }
  }
  return text;
}

std::size_t columns_of(const StyledLine& line) {
  std::size_t columns = 0;
  for (const Span& span : line) columns += text::columns_of(span.text);
  return columns;
}

StyledLine clipped(const StyledLine& line, std::size_t columns, std::string_view more) {
  if (columns_of(line) <= columns) return line;
  const std::size_t room = columns - std::min(columns, text::columns_of(more));
  StyledLine fitting;
  std::size_t taken = 0;
  for (const Span& span : line) {
    const std::string_view part = text::clipped(span.text, room - taken);
    if (!part.empty()) fitting.push_back({std::string{part}, span.style});
    taken += text::columns_of(part);
    if (part.size() < span.text.size()) break;
  }
  if (columns > room) fitting.push_back({std::string{text::clipped(more, columns - room)}, Style::plain});
  return fitting;
}

std::string in_ascii(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> known{
      {{"…", "..."}, {"·", "-"}, {"–", "-"}, {"—", "-"}, {"’", "'"}}};
  std::string ascii;
  while (!text.empty()) {
    const std::size_t bytes = std::max<std::size_t>(1, text::first_character(text).bytes);
    const std::string_view character = text.substr(0, bytes);
    const auto* const found =
        std::ranges::find(known, character, &std::pair<std::string_view, std::string_view>::first);
    if (static_cast<unsigned char>(character.front()) < 0x80) {
      ascii += character;
    } else {
      ascii += found != known.end() ? found->second : "?";
    }
    text.remove_prefix(bytes);
  }
  return ascii;
}

}  // namespace reprise::observe
