// Durations as people write them: 500ms, 1h30m, 1.5s. Three grammars, one way back.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include <reprise/failure.hpp>

namespace reprise::text {

enum class DurationGrammar : std::uint8_t {
  native,     // ns us ms s m h d w; sums; fractions such as 1.5s; a bare 0
  go,         // ns us µs ms s m h; sums; fractions, also .5s and 1.s; a bare 0
  humantime,  // ns us ms s m h d w; sums; whole numbers only; no bare 0
};

struct DurationProblem {
  std::string message;  // "has no unit"
  std::string remedy;   // "write 500ms or 500s"; may be empty
};

std::expected<Duration, DurationProblem> parse_duration(std::string_view text, DurationGrammar grammar);

// Exact, and read back by the given grammar as the same duration: 1h30m, 1.5s (humantime: 1s500ms), 0s.
std::string format_duration(Duration duration, DurationGrammar grammar = DurationGrammar::native);

// For people: three significant digits are plenty. 1.27s, 5m, 2h10m; less than nothing, after a clock was set back, is 0s.
std::string rough_duration(Duration duration);

}  // namespace reprise::text
