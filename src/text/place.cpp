#include "text/place.hpp"

#include <algorithm>

namespace reprise::text {
namespace {

constexpr bool continues_character(char c) noexcept { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Bytes of the well-formed character that begins here; 0 if there is none.
std::size_t character_length(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || length > text.size()) return 0;
  return std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length), continues_character) ? length
                                                                                                                : 0;
}

// Calls `use` with each character, made safe to show.
template <class Use>
void for_each_shown(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const bool control = length == 1 && (static_cast<unsigned char>(text.front()) < 0x20 || text.front() == 0x7F);
    if (length == 0) {
      use("\xEF\xBF\xBD");  // U+FFFD
    } else if (control) {
      use(text.front() == '\t' ? " " : "\xEF\xBF\xBD");
    } else {
      use(text.substr(0, length));
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
}

}  // namespace

Place place_of_offset(std::string_view source, std::size_t offset) noexcept {
  Place place;
  for (const char c : source.substr(0, std::min(offset, source.size()))) {
    if (c == '\n') {
      ++place.line;
      place.column = 1;
    } else if (!continues_character(c)) {
      ++place.column;
    }
  }
  return place;
}

Excerpt excerpt(std::string_view line, std::uint32_t column) {
  constexpr std::uint32_t before_max = 60;
  constexpr std::uint32_t shown_max = 120;
  const std::uint32_t first = column > before_max + 20 ? column - before_max : 1;
  Excerpt result{first > 1 ? "…" : "", first > 1 ? column - first + 2 : column};
  std::uint32_t at = 0;
  for_each_shown(line, [&](std::string_view character) {
    ++at;
    if (at >= first && at < first + shown_max) result.text += character;
  });
  if (at >= first + shown_max) result.text += "…";
  return result;
}

std::string shorten(std::string_view text, std::size_t characters_max) {
  std::string shown;
  std::size_t count = 0;
  for_each_shown(text, [&](std::string_view character) {
    if (count++ < characters_max) shown += character;
  });
  return count > characters_max ? shown + "…" : shown;
}

}  // namespace reprise::text
