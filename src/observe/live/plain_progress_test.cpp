// Progress as lines: what a build server keeps, and how much of it.
#include "observe/live/plain_progress.hpp"

#include <gtest/gtest.h>

#include "support/told_run.hpp"

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;
using testing_support::exit_failure;
using testing_support::ToldRun;
using Lines = std::vector<std::string>;

TEST(ObservePlainProgress, TellsEverythingAboutStepsAndOnlyTroubleAboutItems) {
  ToldRun run{{.name = "list"}, {.name = "fetch", .for_each = true}};
  PlainProgress progress{run.plan(), false};
  progress.add(run.submitted());
  EXPECT_EQ(progress.add(run.started("list")), Lines{"12:00:00Z list attempt 1/3 started"});
  EXPECT_EQ(progress.add(run.completed("list")), Lines{"12:00:00Z list done after 1 attempt"});
  EXPECT_EQ(progress.add(run.prepared("fetch", 3)), Lines{"12:00:00Z fetch 3 items"});
  EXPECT_EQ(progress.add(run.started("fetch", 1)), Lines{});
  EXPECT_EQ(progress.add(run.failed("fetch", 1, 1, exit_failure(1, "no"))), Lines{});
  EXPECT_EQ(progress.add(run.retrying("fetch", 1, 1, exit_failure(1, "no"), 2s)),
            Lines{"12:00:00Z fetch[1] attempt 1/3 failed: exit 1: no (transient); retry in 2s"});
  EXPECT_EQ(progress.add(run.started("fetch", 1, 2)), Lines{});
  EXPECT_EQ(progress.add(run.completed("fetch", 1, 2, 2s)), Lines{"12:00:00Z fetch[1] done after 2 attempts in 2s"});
  EXPECT_EQ(progress.add(run.started("fetch", 2)), Lines{});
  EXPECT_EQ(progress.add(run.completed("fetch", 2)), Lines{});
}

TEST(ObservePlainProgress, HasAHeartbeatForMaps) {
  ToldRun run{{.name = "fetch", .for_each = true}};
  PlainProgress progress{run.plan(), false};
  progress.add(run.submitted());
  progress.add(run.prepared("fetch", 1000));
  for (std::uint32_t item = 0; item < 99; ++item) {
    progress.add(run.started("fetch", item));
    run.later(100ms);
    EXPECT_EQ(progress.add(run.completed("fetch", item)), Lines{});
  }
  progress.add(run.started("fetch", 99));
  run.later(100ms);
  EXPECT_EQ(progress.heartbeat(run.now()), Lines{"12:00:10Z fetch 99 of 1000 done (9.9/s, ETA 1m32s), 1 running"});
  EXPECT_EQ(progress.heartbeat(run.now()), Lines{});
  run.later(10s);
  EXPECT_EQ(progress.heartbeat(run.now()).size(), 1U);
}

TEST(ObservePlainProgress, BeatsOnWhenTheClockIsSetBack) {
  ToldRun run{{.name = "fetch", .for_each = true}};
  PlainProgress progress{run.plan(), false};
  progress.add(run.submitted());
  progress.add(run.prepared("fetch", 1000));
  run.later(-1h);
  for (std::uint32_t item = 0; item < 200; ++item) {
    progress.add(run.started("fetch", item));
    run.later(50ms);
    progress.add(run.completed("fetch", item));
  }
  run.later(10s);
  EXPECT_EQ(progress.heartbeat(run.now()), Lines{"11:00:20Z fetch 200 of 1000 done (10/s, ETA 1m21s)"});
}

TEST(ObservePlainProgress, SaysHowAMapEndedAndNamesItemsByTheirLabels) {
  ToldRun run{{.name = "fetch", .for_each = true, .on_failure = OnFailure::dead_letter}};
  PlainProgress progress{run.plan(), false,
                         [](std::string_view, std::uint32_t item) { return item == 0 ? "ulm" : ""; }};
  progress.add(run.submitted());
  progress.add(run.prepared("fetch", 2));
  progress.add(run.started("fetch", 0));
  progress.add(run.started("fetch", 1));
  const Lines lines = progress.add(run.failed("fetch", 0, 1, exit_failure(1, "no"), StopReason::attempts));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines.front().starts_with("12:00:00Z fetch[0] ulm attempt 1/3 failed: ")) << lines.front();
  progress.add(run.event(EventType::dead_lettered, "fetch", 0));
  run.later(9s);
  EXPECT_EQ(progress.add(run.completed("fetch", 1)),
            Lines{"12:00:09Z fetch finished: 1 of 2 succeeded, 1 dead letter, in 9s"});
}

TEST(ObservePlainProgress, SaysThatALongStepIsStillUnderWay) {
  ToldRun run{{.name = "build"}};
  PlainProgress progress{run.plan(), false};
  progress.add(run.submitted());
  progress.add(run.started("build"));
  run.later(59s);
  EXPECT_EQ(progress.heartbeat(run.now()), Lines{});
  run.later(11s);
  EXPECT_EQ(progress.heartbeat(run.now()), Lines{"12:01:10Z still under way: build"});
}

TEST(ObservePlainProgress, StaysShortForAHundredThousandItemsOfWhichManyFail) {
  ToldRun run{{.name = "fetch", .for_each = true, .on_failure = OnFailure::dead_letter}};
  PlainProgress progress{run.plan(), false};
  std::size_t lines = progress.add(run.submitted()).size();
  const auto add = [&](const Event& event) { lines += progress.add(event).size(); };
  add(run.prepared("fetch", 100'000));
  for (std::uint32_t item = 0; item < 100'000; ++item) {
    run.later(500ms);  // fourteen hours in all
    add(run.started("fetch", item));
    if (item % 3 == 0) {
      add(run.failed("fetch", item, 1, exit_failure(1, "no")));
      add(run.retrying("fetch", item, 1, exit_failure(1, "no"), 2s));
      add(run.started("fetch", item, 2));
    }
    if (item % 7 == 0) {
      add(run.failed("fetch", item, 2, exit_failure(1, "no"), StopReason::attempts));
      add(run.event(EventType::dead_lettered, "fetch", item));
    } else {
      add(run.completed("fetch", item, item % 3 == 0 ? 2 : 1));
    }
  }
  add(run.ended(RunStatus::failed));
  EXPECT_GT(lines, 50U);
  EXPECT_LT(lines, 300U);
}

TEST(ObservePlainProgress, OnlyTroubleMeansOnlyTrouble) {
  ToldRun run{{.name = "exec"}};
  PlainProgress progress{run.plan(), true};
  EXPECT_EQ(progress.add(run.submitted()), Lines{});
  EXPECT_EQ(progress.add(run.started("exec")), Lines{});
  run.later(59s);
  EXPECT_EQ(progress.heartbeat(run.now()), Lines{});
  run.later(1s);
  EXPECT_EQ(progress.heartbeat(run.now()), Lines{"12:01:00Z still under way: exec"});
  run.later(30s);
  EXPECT_EQ(progress.heartbeat(run.now()), Lines{});
  EXPECT_EQ(progress.add(run.retrying("exec", 0, 1, exit_failure(1, "no"), 2s)).size(), 1U);
  EXPECT_EQ(progress.add(run.completed("exec", 0, 2)), Lines{});
}

}  // namespace
}  // namespace reprise::observe
