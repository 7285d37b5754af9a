// Which lines of what a test run wrote name what failed, and which number stands for a set of such lines.
//
// Pure. Thread safety: everything is an argument. Bounds: the last 256 KiB are read, 20 lines of 200 bytes are given.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise {

inline constexpr std::size_t failing_lines_max = 20;

// `--- FAIL: TestX`, `FAILED path::test`, `not ok 3 - …`, `✕ name`, `[  FAILED  ] Suite.Test` …: each once, in the order of the text, without
// blanks around it. A summary ("FAIL pkg 0.003s", "2 failed") names nothing and is none of them.
std::vector<std::string> failing_lines(std::string_view written);

// The same number for the same lines in any order, without what varies from attempt to attempt. 0: there are no lines.
std::uint64_t cause_of(std::span<const std::string> lines);

}  // namespace reprise
