#include "text/place.hpp"

#include <algorithm>

#include "text/utf8.hpp"

namespace reprise::text {
namespace {

// The part of a text that is safe to show already from one character to another, both counted from 1, the end excluded.
std::string_view characters(std::string_view shown, std::size_t first, std::size_t last) {
  std::size_t begin = shown.size();
  std::size_t end = shown.size();
  std::size_t number = 1;
  for (std::size_t at = 0; at < shown.size() && number <= last; ++number) {
    if (number == first) begin = at;
    if (number == last) end = at;
    at += first_character(shown.substr(at)).bytes;
  }
  return shown.substr(begin, end - begin);
}

}  // namespace

Place place_of_offset(std::string_view source, std::size_t offset) noexcept {
  source = source.substr(0, std::min(offset, source.size()));
  Place place;
  while (!source.empty()) {
    if (source.front() == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
    source.remove_prefix(std::max<std::size_t>(first_character(source).bytes, 1));
  }
  return place;
}

Excerpt excerpt(std::string_view line, std::uint32_t column) {
  constexpr std::uint32_t before_max = 60;
  constexpr std::uint32_t shown_max = 120;
  const std::string shown = safe_to_show(line);
  const std::uint32_t first = column > before_max + 20 ? column - before_max : 1;
  const std::string_view part = characters(shown, first, first + shown_max);
  const bool cut = part.data() + part.size() < shown.data() + shown.size();
  return {(first > 1 ? "…" : "") + std::string{part} + (cut ? "…" : ""), first > 1 ? column - first + 2 : column};
}

std::string shorten(std::string_view text, std::size_t characters_max) {
  constexpr std::size_t character_bytes_max = 4;
  const std::string shown = safe_to_show(text.substr(0, (characters_max + 1) * character_bytes_max));
  const std::string_view part = characters(shown, 1, characters_max + 1);
  return part.size() < shown.size() ? std::string{part} + "…" : shown;
}

}  // namespace reprise::text
