// Which lines name what failed in the words of several test runners, and when two runs failed in the same way.
#include "policy/failing_lines.hpp"

#include <gtest/gtest.h>

#include <reprise/classify.hpp>

namespace reprise {
namespace {

using Lines = std::vector<std::string>;

TEST(PolicyFailingLines, each_runner_names_its_tests) {
  EXPECT_EQ(
      failing_lines("=== RUN TestAdd\n--- FAIL: TestAdd (0.00s)\n    calc_test.go:9: broken\n    --- FAIL: TestAdd/one "
                    "(0.00s)\nFAIL\nFAIL\texample.org/calc\t0.003s\n"),
      (Lines{"--- FAIL: TestAdd (0.00s)", "--- FAIL: TestAdd/one (0.00s)"}));
  EXPECT_EQ(failing_lines("FAILED tests/test_a.py::test_b - assert 3 == 4\nERROR tests/test_c.py - ImportError\n"
                          "=== 1 failed, 1 error in 0.12s ===\n"),
            (Lines{"FAILED tests/test_a.py::test_b", "ERROR tests/test_c.py"}));
  EXPECT_EQ(failing_lines("ok 1 - a\nnot ok 3 - adds # TODO later\nnot ok 4 - divides\n"),
            (Lines{"not ok 4 - divides"}));
  EXPECT_EQ(failing_lines("  ✓ adds\n  ✕ divides (3 ms)\n"), (Lines{"✕ divides (3 ms)"}));
  EXPECT_EQ(
      failing_lines("[  FAILED  ] Calc.adds (0 ms)\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Calc.adds\n"),
      (Lines{"[  FAILED  ] Calc.adds"}));
  EXPECT_EQ(failing_lines("FAIL: test_add (calc.CalcTest)\nFAILED (failures=1)\n"),
            (Lines{"FAIL: test_add (calc.CalcTest)"}));
  EXPECT_EQ(failing_lines("test calc::adds ... FAILED\ntest result: FAILED. 0 passed; 1 failed\n"),
            (Lines{"test calc::adds ... FAILED"}));
}

TEST(PolicyFailingLines, a_summary_names_nothing) {
  for (const char* summary : {"FAIL\texample.org/calc\t0.003s", "FAIL", "2 failed, 3 passed", "FAILED (failures=2)",
                              "[  FAILED  ] 2 tests, listed below:", "Tests: 1 failed, 1 total", "", "ERROR something"})
    EXPECT_EQ(failing_lines(summary), Lines{}) << summary;
}

TEST(PolicyFailingLines, no_more_than_twenty_short_ones) {
  std::string text;
  for (int test = 0; test < 100; ++test)
    text +=
        "--- FAIL: Test" + std::string(300, 'x') + std::to_string(test) + "\n--- FAIL: T" + std::to_string(test) + "\n";
  const Lines lines = failing_lines(text);
  EXPECT_EQ(lines.size(), failing_lines_max);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 200U);
}

TEST(PolicyFailingLines, a_cause_is_the_set_of_tests_without_what_varies) {
  const std::uint64_t one = cause_of(Lines{"--- FAIL: TestA (0.01s)", "--- FAIL: TestB (0.00s)"});
  EXPECT_EQ(one, cause_of(Lines{"--- FAIL: TestB (1.50s)", "--- FAIL: TestA (0.00s)"}));
  EXPECT_NE(one, cause_of(Lines{"--- FAIL: TestA (0.01s)"}));
  EXPECT_NE(one, cause_of(Lines{"--- FAIL: TestA (0.01s)", "--- FAIL: TestC (0.00s)"}));
  EXPECT_EQ(cause_of(Lines{}), 0U);
}

TEST(PolicyFingerprint, a_cause_counts_in_place_of_the_message_except_by_the_first_rules) {
  const auto print = [](std::uint64_t cause, const char* message, FingerprintRules rules) {
    return fingerprint("t", FailureClass::test_failure, Failure{.message = message, .cause = cause}, rules);
  };
  constexpr auto by_cause = FingerprintRules::by_cause;
  constexpr auto by_message = FingerprintRules::by_message;
  EXPECT_EQ(print(7, "one", by_cause), print(7, "two", by_cause));
  EXPECT_NE(print(7, "one", by_cause), print(8, "one", by_cause));
  EXPECT_EQ(print(7, "one", by_message), print(8, "one", by_message));
  EXPECT_NE(print(7, "one", by_message), print(7, "two", by_message));
  // What 0.1.0 has stored for this failure.
  EXPECT_EQ(print(0, "exit 1: FAIL pkg 0.1 s", by_message), 7658102369936143831U);
  EXPECT_EQ(print(0, "took 0.1 s", by_cause), print(0, "took 12 s", by_cause));
  EXPECT_NE(print(0, "took 0.1 s", by_message), print(0, "took 0.2 s", by_message));
}

}  // namespace
}  // namespace reprise
