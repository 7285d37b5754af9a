// Places in a text, and how much of a line is shown for them.
#pragma once

#include <string>
#include <string_view>

#include "text/document.hpp"

namespace reprise::text {

// The place of a byte offset; columns count characters, also in text that is not valid UTF-8.
Place place_of_offset(std::string_view source, std::size_t offset) noexcept;

// The part of a line around a column, fit to be shown: control characters and broken UTF-8 replaced.
struct Excerpt {
  std::string text;
  std::uint32_t caret;  // where the column is in `text`, 1-based
};
Excerpt excerpt(std::string_view line, std::uint32_t column);

// At most `characters_max` characters, "…" at the end when something was left out; safe to show.
std::string shorten(std::string_view text, std::size_t characters_max);

}  // namespace reprise::text
