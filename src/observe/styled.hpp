// Lines for people with the style of each part, so that the same words serve a terminal with colours and a file without.
//
// The words never depend on the style: colour carries no meaning of its own. Thread safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::observe {

enum class Style : std::uint8_t { plain, strong, dim, good, bad, warning };

struct Span {
  std::string text;
  Style style = Style::plain;

  bool operator==(const Span&) const = default;
};
using StyledLine = std::vector<Span>;

std::string without_styles(const StyledLine& line);
std::string with_escape_codes(const StyledLine& line);  // ends with the style it began with: none

std::size_t columns_of(const StyledLine& line);
// Not more columns than that; what had to be cut shows by `more` at its end.
StyledLine clipped(const StyledLine& line, std::size_t columns, std::string_view more);

// The signs for what words say too.
struct Symbols {
  std::string_view done;
  std::string_view failed;
  std::string_view again;
  std::string_view running;
  std::string_view pending;
  std::string_view dot;    // between parts
  std::string_view more;   // something was cut
  std::string_view bar;    // done
  std::string_view rest;   // not yet
  std::string_view quote;  // before lines that a program wrote
  bool is_ascii;
};
inline constexpr Symbols unicode_symbols{"✔", "✖", "↻", "●", "○", " · ", "…", "█", "░", "│", false};
inline constexpr Symbols ascii_symbols{"+", "x", "~", "*", "o", " - ", "...", "#", ".", "|", true};
inline constexpr Symbols no_symbols{"", "", "", "", "", ", ", "…", "", "", "|", false};

// For terminals that show nothing else: ? for every other character, the known signs by their counterparts.
std::string in_ascii(std::string_view text);

}  // namespace reprise::observe
