// Dates and times as RFC 3339 writes them: 2026-11-15T10:00:00.123Z.
//
// Thread safety: functions of their arguments.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::base {

using UtcTime = std::chrono::sys_time<std::chrono::nanoseconds>;

// UTC; a fraction in thousandths, millionths or billionths of a second, whichever is enough. Years are those that nanoseconds reach, 1677 to 2262.
std::string to_rfc3339(UtcTime time);
std::string utc_clock(UtcTime time);  // 10:00:00

// From 1970 to 2261, in any zone; fractions of a second are cut to whole nanoseconds. std::nullopt: it is none.
std::optional<UtcTime> parse_rfc3339(std::string_view text);

}  // namespace reprise::base
