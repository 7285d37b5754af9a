// The summary of a run, and what a GitHub workflow is told.
#include "observe/report/ending.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "observe/report/annotations.hpp"
#include "support/told_run.hpp"

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;
using testing_support::exit_failure;
using testing_support::text_of;
using testing_support::throttled_failure;
using testing_support::ToldRun;

struct Nightly {
  ToldRun run{{.name = "load"}, {.name = "fetch", .for_each = true}};
  RunReporter reporter{run.plan()};

  void retry(const std::string& step, std::uint32_t item, std::uint64_t attempt, const Failure& failure, bool floored) {
    reporter.add(run.started(step, item, attempt));
    run.later(1s);
    reporter.add(run.failed(step, item, attempt, failure));
    reporter.add(run.retrying(step, item, attempt, failure, 2s, floored));
    run.later(2s);
  }

  Nightly() {
    reporter.add(run.submitted());
    reporter.add(run.prepared("fetch", 3));
    retry("fetch", 0, 1, throttled_failure(), true);
    reporter.add(run.started("fetch", 0, 2));
    reporter.add(run.completed("fetch", 0, 2, 3s));
    retry("fetch", 2, 1, exit_failure(1, "reset"), false);
    retry("fetch", 2, 2, exit_failure(1, "reset"), false);
    reporter.add(run.started("fetch", 2, 3));
    run.later(100ms);
    reporter.add(run.failed("fetch", 2, 3, exit_failure(7, "100% wrong\nreally"), StopReason::attempts));
    reporter.add(run.started("fetch", 1));
    reporter.add(run.completed("fetch", 1));
    reporter.add(run.ended(RunStatus::failed));
  }
};

TEST(ObserveEnding, CountsWhatItDoesNotName) {
  RunReport report;
  StepReport& step = report.steps.emplace_back();
  step.name = "fetch";
  step.has_items = true;
  step.items = 60;
  step.failed = 50;
  for (std::uint32_t item = 0; item < 4; ++item) report.troubled.push_back({.item = item, .attempts = 1});
  EXPECT_NE(text_of(ending_of({}, report, {}, {}, no_symbols)).find("  and 46 more that failed\n"), std::string::npos);
}

TEST(ObserveEnding, BearsAClockThatWasSetBackAndAHostilePath) {
  Nightly nightly;
  RunReport report = nightly.reporter.report();
  report.ended = report.created - 1h;
  const std::string text = text_of(ending_of({}, report, {{.path = "logs\x1b[2J/x.log", .lines = {}}}, {}, no_symbols));
  EXPECT_NE(text.find(" failed in 0s: "), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

TEST(ObserveEnding, TellsAttemptsLastWordsStatisticsAndCommands) {
  Nightly nightly;
  const std::vector<LogTail> words{{.path = ".reprise/logs/fetch/2.3.log", .lines = {"one", "two\x1b[31m"}}};
  EXPECT_EQ(text_of(ending_of(nightly.run.id, nightly.reporter.report(), words,
                              {{"why", "reprise why X"}, {"try again", "reprise retry X"}}, unicode_symbols)),
            "✖ fetch[2] exhausted all 3 attempts (6.1s)\n"
            "    attempt  took  what                                   then\n"
            "          1  1.0s  exit 1: reset (transient)              waited 2s\n"
            "          2  1.0s  exit 1: reset (transient)              waited 2s\n"
            "          3  0.1s  exit 7: 100% wrong really (transient)  gave up\n"
            "    its final output, from .reprise/logs/fetch/2.3.log:\n"
            "    │ one\n"
            "    │ two�[31m\n"
            "\n"
            "retry statistics\n"
            "  work with retries         2\n"
            "  succeeded after retry     1 (50.0 %)\n"
            "  failed after all retries  1 (50.0 %)\n"
            "  total retries             3\n"
            "  average per retried item  1.5\n"
            "  time spent waiting        6s\n"
            "\n"
            "✖ run 01000000-0000-0000-0000-000000000000 failed in 9.1s: 2 steps, 6 attempts, 3 retries\n"
            "  why:       reprise why X\n"
            "  try again: reprise retry X\n"
            "✖ failed: fetch[2] exhausted all 3 attempts: exit 7: 100% wrong really\n");
}

TEST(ObserveEnding, IsOneLineForARunWithoutTrouble) {
  ToldRun run{{.name = "a"}};
  RunReporter reporter{run.plan()};
  reporter.add(run.submitted());
  reporter.add(run.started("a"));
  run.later(1s);
  reporter.add(run.completed("a"));
  reporter.add(run.ended(RunStatus::succeeded));
  EXPECT_EQ(text_of(ending_of(run.id, reporter.report(), {}, {}, no_symbols)),
            "run 01000000-0000-0000-0000-000000000000 succeeded in 1s: 1 step, 1 attempt, 0 retries\n"
            "succeeded\n");
}

TEST(ObserveEnding, HasStatisticsOfOneStepUnlessItIsACommand) {
  ToldRun run{{.name = "a"}};
  RunReporter reporter{run.plan()};
  reporter.add(run.submitted());
  reporter.add(run.started("a"));
  reporter.add(run.failed("a", 0, 1, exit_failure(1, "no")));
  reporter.add(run.retrying("a", 0, 1, exit_failure(1, "no"), 1s));
  reporter.add(run.started("a", 0, 2));
  reporter.add(run.completed("a", 0, 2));
  reporter.add(run.ended(RunStatus::succeeded));
  const std::string text = text_of(ending_of(run.id, reporter.report(), {}, {}, no_symbols));
  EXPECT_NE(text.find("  succeeded after retry     1 (100 %)\n"), std::string::npos) << text;
  EXPECT_EQ(text_of(ending_of(run.id, reporter.report(), {}, {}, no_symbols, EndingOf::command)),
            "run 01000000-0000-0000-0000-000000000000 succeeded in 0s: 1 step, 2 attempts, 1 retry\n");
}

TEST(ObserveEnding, TheVerdictIsHonest) {
  RunReport report;
  report.status = RunStatus::succeeded;
  EXPECT_EQ(verdict_of(report), "succeeded");
  StepReport& step = report.steps.emplace_back();
  step.items = 300;
  step.failed = 12;
  EXPECT_EQ(verdict_of(report), "succeeded with 12 failures");
  step.dead_letters = 12;
  EXPECT_EQ(verdict_of(report), "succeeded with 12 dead letters (of 300 items)");
  report.status = RunStatus::canceled;
  EXPECT_EQ(verdict_of(report), "cancelled");
  report.reason = StopReason::deadline;
  EXPECT_TRUE(verdict_of(report).starts_with("cancelled: ")) << verdict_of(report);
  report.status = RunStatus::failed;
  report.reason = StopReason::max_visits;
  EXPECT_TRUE(verdict_of(report).starts_with("failed: ")) << verdict_of(report);
}

TEST(ObserveEnding, NamesTenFailuresAndCountsTheRest) {
  ToldRun run{{.name = "fetch", .for_each = true}, {.name = "other"}};
  RunReporter reporter{run.plan()};
  reporter.add(run.prepared("fetch", 50));
  for (std::uint32_t item = 0; item < 50; ++item) {
    reporter.add(run.started("fetch", item));
    reporter.add(run.failed("fetch", item, 1, exit_failure(1, "no"), StopReason::permanent));
  }
  reporter.add(run.started("other"));
  reporter.add(run.failed("other", 0, 1, exit_failure(1, "no"), StopReason::permanent));
  const RunReport report = reporter.report();
  EXPECT_EQ(failures_of(report)[1].step, 1U) << "of each step one before the others";
  const std::string text = text_of(ending_of(run.id, report, {}, {}, ascii_symbols));
  EXPECT_NE(text.find("  and 41 more that failed\n"), std::string::npos) << text;
  EXPECT_NE(text.find("x fetch[8] "), std::string::npos) << text;
  EXPECT_EQ(text.find("x fetch[9] "), std::string::npos) << text;
}

TEST(ObserveAnnotations, AreErrorsForWhatFailedAndWarningsForWhatRecovered) {
  Nightly nightly;
  EXPECT_EQ(github_annotations(nightly.reporter.report(), {.path = "flows/a,b:c.yaml", .lines = {{"fetch", 12}}}),
            "::error file=flows/a%2Cb%3Ac.yaml,line=12,title=fetch[2] failed after 3 attempts::"
            "exit 7: 100%25 wrong really (transient)\n"
            "::warning file=flows/a%2Cb%3Ac.yaml,line=12,title=fetch recovered::"
            "1 of 3 items succeeded only when tried again; 3 retries in all\n");
}

TEST(ObserveAnnotations, AreNotMoreThanGithubKeeps) {
  ToldRun run{{.name = "fetch", .for_each = true}};
  RunReporter reporter{run.plan()};
  reporter.add(run.prepared("fetch", 50));
  for (std::uint32_t item = 0; item < 50; ++item)
    reporter.add(run.failed("fetch", item, 1, exit_failure(1, "no"), StopReason::permanent));
  const std::string text = github_annotations(reporter.report(), {});
  EXPECT_EQ(std::ranges::count(text, '\n'), 10);
  EXPECT_NE(text.find("%0Aand 40 more failed\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace reprise::observe
