// The summary of a run, for a terminal as for a log file: how it ended, what failed and how often it was tried, and what its retries
// were good for.
//
//   ✖ fetch gave up after 3 attempts (7.0s): its attempts were used up
//       attempt   took   what                                          then
//             1   1.2s   exit 1: connection reset by peer (transient)  waited 1s
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/report/run_report.hpp"
#include "observe/styled.hpp"

namespace reprise::observe {

inline constexpr std::size_t failures_with_attempts_max = 3;  // of one run; others get a line each
inline constexpr std::size_t failures_named_max = 10;         // the rest is a number

struct LogTail {                   // of the attempt that gave up
  std::string path = {};           // of its log; empty = there is none
  std::vector<std::string> lines;  // the last ones in it
};

struct NextCommand {
  std::string purpose;  // "why", "try again"
  std::string command;  // to be copied
};

// What failed for good: what made the run fail comes first, and of each step one item before the others.
std::vector<TroubledItem> failures_of(const RunReport& report);

// "✔ fetch completed after 3 attempts (5.2s) ↻ recovered after 2 retries" or what else has become of a step without items.
StyledLine recovered_line(const std::string& work, std::uint64_t attempts, std::uint64_t retries, Duration elapsed,
                          const Symbols& symbols);
// "✖ fetch exhausted all 3 attempts (7.0s): exit 1: reset (transient)"
StyledLine failure_line(const std::string& work, const TroubledItem& item, const Symbols& symbols);

std::vector<StyledLine> statistics_of(const RunReport& report);  // nothing without retries

// "succeeded", "succeeded with 12 dead letters (of 300 items)", "failed: load[277] exhausted all 3 attempts: exit 1".
std::string verdict_of(const RunReport& report);

// A single command has neither statistics nor a verdict: its attempts and its exit code say it.
enum class EndingOf : std::uint8_t { flow, command };

// Its last line is the verdict. `tails`: of the first failures, in order.
std::vector<StyledLine> ending_of(const RunId& run, const RunReport& report, const std::vector<LogTail>& tails,
                                  const std::vector<NextCommand>& next, const Symbols& symbols,
                                  EndingOf what = EndingOf::flow);

}  // namespace reprise::observe
