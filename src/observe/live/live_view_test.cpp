// The live view: what stands on the screen at a moment, and what stays above it.
#include "observe/live/live_view.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support/told_run.hpp"

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;
using testing_support::exit_failure;
using testing_support::text_of;
using testing_support::throttled_failure;
using testing_support::ToldRun;

TEST(ObserveLiveView, ShowsStepsMapsAndCountdowns) {
  ToldRun run{
      {.name = "list"}, {.name = "fetch", .for_each = true}, {.name = "notify"}, {.name = "report", .needs = {1, 2}}};
  LiveView view{run.plan(), unicode_symbols};
  view.add(run.submitted());
  view.add(run.started("list"));
  run.later(1200ms);
  EXPECT_EQ(text_of(view.frame(run.now(), 100, 20)),
            "● nightly · 0 of 4 steps · 1.2s\n"
            "● list  attempt 1/3 · 1.2s\n"
            "○ then: fetch, notify, report\n");
  view.add(run.completed("list", 0, 1, 1200ms));
  view.add(run.prepared("fetch", 120));
  view.add(run.started("notify"));
  view.add(run.failed("notify", 0, 1, exit_failure(1, "connection reset by peer")));
  view.add(run.retrying("notify", 0, 1, exit_failure(1, "connection reset by peer"), 5s));
  for (std::uint32_t item = 0; item < 60; ++item) {
    view.add(run.started("fetch", item));
    run.later(50ms);
    if (item == 57) {
      view.add(run.failed("fetch", item, 1, throttled_failure()));
      view.add(run.retrying("fetch", item, 1, throttled_failure(), 2200ms, true));
    } else if (item != 59) {
      view.add(run.completed("fetch", item));
    }
  }
  EXPECT_EQ(text_of(view.take_lines()), "✔ list (1.2s)\n");
  EXPECT_EQ(text_of(view.frame(run.now(), 100, 20)),
            "● nightly · 1 of 4 steps · 4.2s · 2 retries\n"
            "● fetch   ████████████░░░░░░░░░░░░░ 58/120 · 19/s · ETA 4s · 1 running · 1 retrying\n"
            "  ↻ fetch[57] attempt 1/3 · HTTP 429 · retry in 2.1s (Retry-After)\n"
            "↻ notify  attempt 1/3 · exit 1: connection reset by peer · retry in 2.0s\n"
            "○ then: report\n");
  run.later(10s);
  EXPECT_NE(text_of(view.frame(run.now(), 100, 20)).find("retry when there is room"), std::string::npos);
}

TEST(ObserveLiveView, IsCompactForWhatRecoveredAndForWhatFailed) {
  ToldRun run{{.name = "fetch_data"}, {.name = "load"}, {.name = "after", .needs = {1}}};
  LiveView view{run.plan(), unicode_symbols};
  view.add(run.submitted());
  for (const char* const step : {"fetch_data", "load"}) {
    for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
      view.add(run.started(step, 0, attempt));
      run.later(1s);
      view.add(run.failed(step, 0, attempt, exit_failure(1, "reset")));
      view.add(run.retrying(step, 0, attempt, exit_failure(1, "reset"), attempt * 1s, attempt == 2));
      run.later(attempt * 1s);
    }
    view.add(run.started(step, 0, 3));
    run.later(200ms);
  }
  EXPECT_EQ(text_of(view.take_lines()), "");
  view.add(run.completed("fetch_data", 0, 3, 5200ms));
  view.add(run.failed("load", 0, 3, exit_failure(2, "no such table"), StopReason::attempts));
  view.add(run.event(EventType::unreachable, "after"));
  EXPECT_EQ(text_of(view.take_lines()),
            "✔ fetch_data completed after 3 attempts (5.2s) ↻ recovered after 2 retries\n"
            "✖ load exhausted all 3 attempts (5.2s): exit 2: no such table (transient)\n"
            "○ after not reached: a step it needs has failed\n");
  view.add(run.ended(RunStatus::failed));
  EXPECT_TRUE(view.frame(run.now(), 100, 20).empty());
}

TEST(ObserveLiveView, TellsOnlyTheFirstOfManyItemsThatFail) {
  ToldRun run{{.name = "fetch", .for_each = true, .on_failure = OnFailure::dead_letter}};
  LiveView view{run.plan(), ascii_symbols};
  view.add(run.submitted());
  view.add(run.prepared("fetch", 1000));
  for (std::uint32_t item = 0; item < 1000; ++item) {
    view.add(run.started("fetch", item));
    view.add(item < 500 ? run.failed("fetch", item, 1, exit_failure(9, "no"), StopReason::permanent)
                        : run.completed("fetch", item));
  }
  const auto lines = view.take_lines();
  ASSERT_EQ(lines.size(), 10 + 1U);  // and the end of the step
  EXPECT_EQ(without_styles(lines[0]),
            "x fetch[0] gave up after 1 attempt (0.0s): this failure is permanent: exit 9: no (transient)");
  EXPECT_EQ(without_styles(lines.back()), "+ fetch 500 of 1000 items, 500 failed and kept as dead letters (0.0s)");
}

TEST(ObserveLiveView, SaysWhichSignalItWaitsFor) {
  ToldRun run{{.name = "build"}, {.name = "approve", .needs = {0}, .kind = core::StepKind::signal}};
  LiveView view{run.plan(), unicode_symbols};
  view.add(run.submitted());
  view.add(run.started("build"));
  EXPECT_EQ(text_of(view.frame(run.now(), 80, 20)).find("approval"), std::string::npos);
  view.add(run.completed("build"));
  EXPECT_NE(text_of(view.frame(run.now(), 80, 20)).find("● approve  waits for the signal approval"), std::string::npos);
}

TEST(ObserveLiveView, CountsWhatWasBeforeWithoutTellingIt) {
  ToldRun run{{.name = "a"}, {.name = "b", .needs = {0}}};
  LiveView view{run.plan(), unicode_symbols};
  view.recall(run.submitted());
  view.recall(run.started("a"));
  view.recall(run.completed("a"));
  view.add(run.event(EventType::recovered));
  view.add(run.started("b"));
  EXPECT_EQ(text_of(view.take_lines()), "● the engine had died; attempts that were running are lost\n");
  EXPECT_NE(text_of(view.frame(run.now(), 80, 20)).find("1 of 2 steps"), std::string::npos);
}

TEST(ObserveLiveView, TellsOnceMoreWhatCannotBeReachedWhenTheRunIsTriedAgain) {
  ToldRun run{{.name = "a"}, {.name = "b", .needs = {0}}};
  LiveView view{run.plan(), unicode_symbols};
  for (int time = 1; time <= 2; ++time) {
    view.add(run.started("a"));
    view.add(run.failed("a", 0, 1, exit_failure(1, "no"), StopReason::permanent));
    view.add(run.event(EventType::unreachable, "b"));
    EXPECT_NE(text_of(view.take_lines()).find("○ b not reached"), std::string::npos) << time;
    view.add(run.ended(RunStatus::failed));
    view.add(run.event(EventType::reopened));
  }
}

TEST(ObserveLiveView, KnowsNoSpeedFromBeforeAnInterruption) {
  ToldRun run{{.name = "fetch", .for_each = true}};
  LiveView view{run.plan(), unicode_symbols};
  view.recall(run.submitted());
  view.recall(run.prepared("fetch", 1000));
  for (std::uint32_t item = 0; item < 500; ++item) view.recall(run.completed("fetch", item));
  run.later(24h);
  view.add(run.event(EventType::recovered));
  EXPECT_EQ(text_of(view.frame(run.now(), 80, 20)).find("ETA"), std::string::npos);
  run.later(1s);
  for (std::uint32_t item = 500; item < 510; ++item) view.add(run.completed("fetch", item));
  EXPECT_NE(text_of(view.frame(run.now(), 80, 20)).find("510/1000 · 10/s · ETA 50s"), std::string::npos)
      << text_of(view.frame(run.now(), 80, 20));
}

TEST(ObserveLiveView, ShowsTheWaitOfAStepHoweverManyItemsWait) {
  ToldRun run{{.name = "fetch", .for_each = true}, {.name = "load"}};
  LiveView view{run.plan(), unicode_symbols};
  view.add(run.submitted());
  view.add(run.prepared("fetch", 5000));
  for (std::uint32_t item = 0; item < 5000; ++item) {
    view.add(run.failed("fetch", item, 1, exit_failure(1, "no")));
    view.add(run.retrying("fetch", item, 1, exit_failure(1, "no"), 10s));
  }
  view.add(run.started("load"));
  view.add(run.failed("load", 0, 1, exit_failure(1, "reset")));
  view.add(run.retrying("load", 0, 1, exit_failure(1, "reset"), 5s));
  EXPECT_NE(text_of(view.frame(run.now(), 80, 20)).find("↻ load   attempt 1/3 · exit 1: reset · retry in 5.0s"),
            std::string::npos)
      << text_of(view.frame(run.now(), 80, 20));
}

// `retry --step s --item 0` of a step with other items that stay failed: it is over when that item is.
TEST(ObserveLiveView, AStepIsNotOverWhileAnItemThatIsTriedAgainWaits) {
  ToldRun run{{.name = "s", .for_each = true}};
  LiveView view{run.plan(), unicode_symbols};
  view.recall(run.submitted());
  view.recall(run.prepared("s", 3));
  for (std::uint32_t item = 0; item < 3; ++item) {
    view.recall(run.started("s", item));
    view.recall(run.failed("s", item, 1, exit_failure(1, "no"), StopReason::permanent));
  }
  view.recall(run.ended(RunStatus::failed));
  Event reopened = run.event(EventType::reopened);
  reopened.text = "s";
  reopened.only_item = 0;
  view.add(reopened);
  view.add(run.started("s", 0));
  view.add(run.failed("s", 0, 1, exit_failure(1, "no")));
  view.add(run.retrying("s", 0, 1, exit_failure(1, "no"), 5s));
  EXPECT_EQ(text_of(view.take_lines()).find("✖"), std::string::npos);
  const std::string frame = text_of(view.frame(run.now(), 100, 20));
  EXPECT_TRUE(frame.starts_with("● nightly · 0 of 1 step")) << frame;
  EXPECT_NE(frame.find("↻ s[0] attempt 1/3 · exit 1: no · retry in 5.0s"), std::string::npos) << frame;
  view.add(run.started("s", 0, 2));
  view.add(run.completed("s", 0, 2, 6s));
  EXPECT_TRUE(text_of(view.take_lines()).starts_with("✖ s 1 of 3 items, 2 failed"));
}

TEST(ObserveLiveView, TheCountdownIsSeenInEightyColumns) {
  ToldRun run{{.name = "fetch_the_data"}, {.name = "each", .for_each = true}};
  LiveView view{run.plan(), unicode_symbols};
  const Failure failure = exit_failure(1, "ConnectionError: Connection timeout after a rather long while, or longer");
  view.add(run.submitted());
  view.add(run.prepared("each", 9));
  for (const char* const step : {"fetch_the_data", "each"}) {
    view.add(run.started(step));
    view.add(run.failed(step, 0, 1, failure));
    view.add(run.retrying(step, 0, 1, failure, 2s, true));
  }
  const auto frame = view.frame(run.now(), 79, 20);
  const std::string text = text_of(frame);
  EXPECT_NE(text.find("↻ fetch_the_data  attempt 1/3 · exit 1: Connect"), std::string::npos) << text;
  std::size_t countdowns = 0;
  for (const StyledLine& line : frame) {
    EXPECT_LE(columns_of(line), 79U);
    countdowns += without_styles(line).ends_with("… · retry in 2.0s (Retry-After)") ? 1 : 0;
  }
  EXPECT_EQ(countdowns, 2U) << text;
}

TEST(ObserveLiveView, CountsOnlyTheRetriesOfWhatRecovered) {
  ToldRun run{{.name = "s", .for_each = true, .on_failure = OnFailure::dead_letter}};
  LiveView view{run.plan(), unicode_symbols};
  view.add(run.submitted());
  view.add(run.prepared("s", 2));
  for (const std::uint32_t item : {0U, 1U}) {
    for (std::uint64_t attempt = 1; attempt <= 2; ++attempt) {
      view.add(run.started("s", item, attempt));
      view.add(run.failed("s", item, attempt, exit_failure(1, "no")));
      view.add(run.retrying("s", item, attempt, exit_failure(1, "no"), 1s));
    }
    view.add(run.started("s", item, 3));
  }
  view.add(run.completed("s", 0, 3));
  view.add(run.failed("s", 1, 3, exit_failure(1, "no"), StopReason::attempts));
  const std::string text = text_of(view.take_lines());
  EXPECT_NE(text.find("↻ 1 recovered after 2 retries\n"), std::string::npos) << text;
}

TEST(ObserveLiveView, FitsAnyTerminal) {
  rc::check([] {
    ToldRun run{{.name = "a_step_with_a_rather_long_name_indeed"},
                {.name = "b"},
                {.name = "c", .for_each = true},
                {.name = "d", .for_each = true},
                {.name = "e", .needs = {0, 1, 2, 3}}};
    LiveView view{run.plan(), *rc::gen::element(unicode_symbols, ascii_symbols)};
    view.add(run.submitted());
    const Failure failure =
        exit_failure(1, *rc::gen::element<std::string>("x", "日本語のとても長いメッセージです", std::string(300, 'y')));
    view.add(run.prepared("c", 1000));
    view.add(run.prepared("d", 10));
    for (int count = *rc::gen::inRange(0, 60); count > 0; --count) {
      const auto step = *rc::gen::element<std::string>("a_step_with_a_rather_long_name_indeed", "b", "c", "d");
      const auto item = step.size() == 1 && step != "b" ? *rc::gen::inRange<std::uint32_t>(0, 10) : 0;
      view.add(run.started(step, item));
      run.later(std::chrono::milliseconds{*rc::gen::inRange(0, 2000)});
      if (*rc::gen::arbitrary<bool>()) {
        view.add(run.failed(step, item, 1, failure));
        view.add(run.retrying(step, item, 1, failure, 3s));
      }
      const auto columns = *rc::gen::inRange<std::size_t>(0, 120);
      const auto rows = *rc::gen::inRange<std::size_t>(0, 12);
      const auto frame = view.frame(run.now(), columns, rows);
      RC_ASSERT(frame.size() <= rows);
      for (const StyledLine& line : frame) RC_ASSERT(columns_of(line) <= columns);
    }
  });
}

}  // namespace
}  // namespace reprise::observe
