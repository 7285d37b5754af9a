// The projection: its states are the engine's, and what it counts beside them agrees with these.
#include "observe/projection.hpp"

#include <gtest/gtest.h>

#include "support/told_run.hpp"

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;
using core::ItemStatus;
using core::StepStatus;
using testing_support::exit_failure;
using testing_support::ToldRun;

const Failure no = exit_failure(1, "no");

// Three items: 0 succeeds after a retry, 1 and 2 fail for good; then the run ends.
struct FailedMap {
  ToldRun run{{.name = "s", .for_each = true}};
  RunProjection projection;

  explicit FailedMap(StoryLimits limits = {}) : projection{run.plan(), limits} {
    projection.add(run.submitted());
    projection.add(run.prepared("s", 3));
    projection.add(run.started("s", 0));
    projection.add(run.failed("s", 0, 1, no));
    projection.add(run.retrying("s", 0, 1, no, 2s));
    run.later(2s);
    projection.add(run.started("s", 0, 2));
    for (const std::uint32_t item : {1U, 2U}) projection.add(run.started("s", item));
    projection.add(run.completed("s", 0, 2, 2s));
    for (const std::uint32_t item : {1U, 2U}) projection.add(run.failed("s", item, 1, no, StopReason::attempts));
    projection.add(run.ended(RunStatus::failed));
  }

  void reopen(const std::string& step, std::optional<std::uint32_t> item) {
    Event event = run.event(EventType::reopened);
    event.text = step;
    event.only_item = item;
    projection.add(event);
  }
};

TEST(ObserveProjection, OneItemThatIsTriedAgainWaitsWhileTheOthersStayFailed) {
  FailedMap map;
  EXPECT_EQ(map.projection.status_of(0), StepStatus::failed);
  map.reopen("s", 1);
  EXPECT_EQ(map.projection.status_of(0), StepStatus::active) << "it is not over before the item is";
  EXPECT_EQ(map.projection.status_of(0, 1), ItemStatus::waiting);
  EXPECT_EQ(map.projection.status_of(0, 2), ItemStatus::failed);
  EXPECT_EQ(map.projection.waiting(0), 1U);
  EXPECT_TRUE(map.projection.is_under_way(0));
  map.projection.add(map.run.started("s", 1));
  map.projection.add(map.run.completed("s", 1));
  EXPECT_EQ(map.projection.status_of(0), StepStatus::failed) << "the other one still has";
  EXPECT_EQ(map.projection.waiting(0), 0U);
}

TEST(ObserveProjection, ARequestForAllStepsIsForAllThatFailed) {
  FailedMap map;
  map.reopen("", std::nullopt);
  EXPECT_EQ(map.projection.waiting(0), 2U);
  EXPECT_EQ(map.projection.standstills().size(), 1U);
  EXPECT_EQ(map.projection.standstills()[0].kind, Standstill::Kind::over);
}

TEST(ObserveProjection, KeepsOfSuccessfulWorkNothingUnlessAskedTo) {
  const FailedMap few;
  EXPECT_EQ(few.projection.story_of(0, 0), nullptr);
  EXPECT_EQ(few.projection.stories().size(), 2U);
  const FailedMap recovered{whole_stories};
  ASSERT_NE(recovered.projection.story_of(0, 0), nullptr);
  const WorkStory& story = *recovered.projection.story_of(0, 0);
  ASSERT_EQ(story.attempts.size(), 2U);
  EXPECT_EQ(story.attempts[0].end, AttemptEnd::failed);
  EXPECT_EQ(story.attempts[0].wait_ended, story.attempts[1].began);
  EXPECT_EQ(story.attempts[1].end, AttemptEnd::succeeded);
  EXPECT_EQ(story.failures, 1U);
  EXPECT_EQ(recovered.projection.totals(0).rescued, 1U);
}

TEST(ObserveProjection, AnInterruptedAttemptIsNeitherFailedNorRetried) {
  ToldRun run{{.name = "a"}};
  RunProjection projection{run.plan(), whole_stories};
  projection.add(run.submitted());
  projection.add(run.started("a"));
  projection.add(run.event(EventType::cancel_requested));
  projection.add(run.event(EventType::interrupted, "a", 0, 1));
  EXPECT_EQ(projection.status_of(0, 0), ItemStatus::canceled);
  ASSERT_EQ(projection.story_of(0, 0)->attempts.size(), 1U);
  EXPECT_EQ(projection.story_of(0, 0)->attempts[0].end, AttemptEnd::interrupted);
  EXPECT_EQ(projection.totals(0).retries, 0U);
}

TEST(ObserveProjection, ALongStoryKeepsItsEndAndAShortOneItsLastFailure) {
  ToldRun run{{.name = "a"}, {.name = "b"}};
  for (const std::size_t long_ones : {100U, 0U}) {
    RunProjection projection{run.plan(), {.long_stories_max = long_ones}};
    projection.add(run.submitted());
    for (std::uint64_t attempt = 1; attempt <= 40; ++attempt) {
      projection.add(run.started("a", 0, attempt));
      projection.add(run.failed("a", 0, attempt, no));
      projection.add(run.retrying("a", 0, attempt, no, 1s));
    }
    projection.add(run.started("a", 0, 41));
    const WorkStory& story = *projection.story_of(0, 0);
    EXPECT_EQ(story.attempts.back().number, 41U);
    ASSERT_NE(story.last_failed(), nullptr);
    EXPECT_EQ(story.last_failed()->number, 40U);
    EXPECT_EQ(story.attempts.size(), 13U) << "each step has ten long ones in any case";
    EXPECT_EQ(story.failures, 40U);
  }
}

// A hostile or damaged story changes nothing: no such step, no such item.
TEST(ObserveProjection, WhatDoesNotFitIsPassedOver) {
  ToldRun run{{.name = "a"}};
  RunProjection projection{run.plan()};
  projection.add(run.submitted());
  projection.add(run.started("b"));
  projection.add(run.started("a", 4'000'000'000U));
  EXPECT_EQ(projection.status_of(0, 0), ItemStatus::untouched);
  EXPECT_EQ(projection.status_of(0), StepStatus::active);
}

}  // namespace
}  // namespace reprise::observe
