// What runs again after something was healed, the circuit of a map's items, and policies of single commands.
#include <gtest/gtest.h>

#include "core/core.hpp"
#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

const Failure broken{.message = "broken", .failure_class = FailureClass::transient};

std::uint32_t count_of(const core::Run& run, EventType type) {
  std::uint32_t count = 0;
  for (const Recorded& event : events_of(run)) count += event.type() == type ? 1 : 0;
  return count;
}

// A map that tolerates everything, and two steps behind it.
Plan map_and_reduce() {
  StepPlan map = with(call("map", {}, steady(1, 0s)), OnFailure::dead_letter);
  map.tolerate = UINT32_MAX;
  Plan plan = flow({map, call("reduce", {0}, steady(1, 0s)), call("report", {1}, steady(1, 0s))});
  for (StepPlan& step : plan.steps) step.runs_again = true;
  return plan;
}

class CoreRerun : public ::testing::Test {
 protected:
  // Of three items the second has failed; everything behind them is done.
  core::Run& done_but_one(Plan plan = map_and_reduce()) {
    driver_.capacity = 1;
    core::Run& run = driver_.submit(std::move(plan), {.items = 3});
    driver_.succeed(driver_.start_one());
    driver_.fail(driver_.start_one(), broken);
    driver_.succeed(driver_.start_one());
    driver_.succeed(driver_.start_one(), "old");
    driver_.succeed(driver_.start_one());
    EXPECT_EQ(run.status, RunStatus::succeeded);
    return run;
  }
  std::optional<AttemptId> next() {
    driver_.turn();
    if (driver_.starts.empty()) return std::nullopt;
    const AttemptId id = driver_.starts.front().id;
    driver_.starts.erase(driver_.starts.begin());
    return id;
  }
  std::vector<std::string> begun_from_now_on() {
    std::vector<std::string> steps;
    while (const auto id = next()) {
      steps.push_back(*driver_.core.find(id->run)->step_plan(id->step).name);
      driver_.succeed(*id);
    }
    return steps;
  }

  CoreDriver driver_;
};

using Steps = std::vector<std::string>;

TEST_F(CoreRerun, what_needs_a_healed_step_runs_again) {
  core::Run& run = done_but_one();
  ASSERT_TRUE(driver_.core.retry_failed(run, {}, driver_.now));
  EXPECT_EQ(begun_from_now_on(), (Steps{"map", "reduce", "report"}));
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(run.steps[1].visits, 2U);
  EXPECT_EQ(run.own_visits(1), 1U);
  EXPECT_EQ(count_of(run, EventType::revisited), 1U);
}

TEST_F(CoreRerun, it_waits_for_all_that_is_tried_again) {
  driver_.capacity = 1;
  core::Run& run = driver_.submit(map_and_reduce(), {.items = 2});
  driver_.fail(driver_.start_one(), broken);
  driver_.fail(driver_.start_one(), broken);
  driver_.succeed(driver_.start_one());
  driver_.succeed(driver_.start_one());
  ASSERT_TRUE(driver_.core.retry_failed(run, {}, driver_.now));
  EXPECT_EQ(begun_from_now_on(), (Steps{"map", "map", "reduce", "report"}));
  EXPECT_EQ(count_of(run, EventType::revisited), 1U);
}

TEST_F(CoreRerun, nothing_follows_when_it_fails_as_before) {
  core::Run& run = done_but_one();
  ASSERT_TRUE(driver_.core.retry_failed(run, {}, driver_.now));
  driver_.fail(driver_.start_one(), broken);
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(count_of(run, EventType::revisited), 0U);
}

TEST_F(CoreRerun, only_leaves_what_needs_it) {
  core::Run& run = done_but_one();
  ASSERT_TRUE(driver_.core.retry_failed(run, {.step = 0, .only = true}, driver_.now));
  EXPECT_EQ(begun_from_now_on(), (Steps{"map"}));
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST_F(CoreRerun, runs_from_before_keep_their_results) {
  Plan plan = map_and_reduce();
  for (StepPlan& step : plan.steps) step.runs_again = false;
  core::Run& run = done_but_one(std::move(plan));
  ASSERT_TRUE(driver_.core.retry_failed(run, {}, driver_.now));
  EXPECT_EQ(begun_from_now_on(), (Steps{"map"}));
  EXPECT_FALSE(driver_.core.retry_failed(run, {.step = 1}, driver_.now));
}

TEST_F(CoreRerun, a_step_that_succeeded_runs_again_when_it_is_chosen) {
  core::Run& run = done_but_one();
  ASSERT_TRUE(driver_.core.retry_failed(run, {.step = 1}, driver_.now));
  EXPECT_EQ(begun_from_now_on(), (Steps{"reduce", "report"}));
  ASSERT_TRUE(driver_.core.retry_failed(run, {.step = 1, .only = true}, driver_.now));
  EXPECT_EQ(begun_from_now_on(), (Steps{"reduce"}));
  EXPECT_EQ(run.steps[1].visits, 3U);
  EXPECT_EQ(run.own_visits(1), 1U);
}

TEST_F(CoreRerun, what_was_healed_before_a_crash_counts_after_it) {
  core::Run& run = done_but_one();
  ASSERT_TRUE(driver_.core.retry_failed(run, {}, driver_.now));
  driver_.succeed(driver_.start_one());
  core::Run& loaded = driver_.reload(run);
  driver_.core.adopt(loaded, driver_.now);
  EXPECT_EQ(begun_from_now_on(), (Steps{"reduce", "report"}));
  EXPECT_EQ(loaded.own_visits(2), 1U);
}

TEST_F(CoreRerun, a_map_none_of_whose_items_succeeded_has_failed) {
  Plan plan = map_and_reduce();
  plan.steps[0].needs_success = true;
  driver_.capacity = 1;
  core::Run& run = driver_.submit(std::move(plan), {.items = 2});
  driver_.fail(driver_.start_one(), broken);
  driver_.fail(driver_.start_one(), broken);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(run.steps[1].status, StepStatus::unreachable);
  ASSERT_TRUE(driver_.core.retry_failed(run, {.step = 0, .item = 1}, driver_.now));
  EXPECT_EQ(begun_from_now_on(), (Steps{"map", "reduce", "report"}));
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

// ---- the circuit of items ----------------------------------------

Plan guarded_map(std::uint32_t attempts = 1) {
  Plan plan = map_and_reduce();
  plan.steps.resize(1);
  plan.connect();
  plan.steps[0].policy = steady(attempts, 0s);
  plan.steps[0].item_breaker = {.failures = 2, .successes = 2, .probes = 1, .open_for = Duration{10s}.count()};
  return plan;
}

TEST_F(CoreRerun, failed_items_in_a_row_open_the_circuit_and_nothing_begins) {
  driver_.capacity = 1;
  core::Run& run = driver_.submit(guarded_map(), {.items = 10});
  driver_.fail(driver_.start_one(), broken);
  driver_.succeed(driver_.start_one());
  driver_.fail(driver_.start_one(), broken);
  EXPECT_EQ(count_of(run, EventType::circuit_opened), 0U) << "not in a row";
  driver_.fail(driver_.start_one(), broken);
  EXPECT_EQ(count_of(run, EventType::circuit_opened), 1U);
  EXPECT_FALSE(next());
  driver_.advance(9s);
  EXPECT_FALSE(next());
  driver_.advance(1s);
  const auto probe = next();
  ASSERT_TRUE(probe);
  EXPECT_FALSE(next()) << "one at a time tries";
  EXPECT_EQ(count_of(run, EventType::circuit_half_opened), 1U);
}

TEST_F(CoreRerun, items_that_try_close_it_or_open_it_again) {
  driver_.capacity = 4;
  core::Run& run = driver_.submit(guarded_map(), {.items = 20});
  std::vector<AttemptId> begun;
  while (const auto id = next()) begun.push_back(*id);
  for (const AttemptId& id : begun) driver_.fail(id, broken);  // those that had begun go on, and count
  EXPECT_EQ(count_of(run, EventType::circuit_opened), 1U);
  driver_.advance(10s);
  driver_.fail(driver_.start_one(), broken);
  EXPECT_EQ(count_of(run, EventType::circuit_opened), 2U);
  EXPECT_FALSE(next());
  driver_.advance(10s);
  driver_.succeed(driver_.start_one());
  EXPECT_EQ(count_of(run, EventType::circuit_closed), 0U);
  driver_.succeed(driver_.start_one());
  EXPECT_EQ(count_of(run, EventType::circuit_closed), 1U);
  EXPECT_TRUE(next());
  EXPECT_TRUE(next());
}

TEST_F(CoreRerun, an_open_circuit_survives_a_crash_a_pause_and_a_cancel) {
  driver_.capacity = 1;
  core::Run& first = driver_.submit(guarded_map(), {.items = 10});
  driver_.fail(driver_.start_one(), broken);
  driver_.fail(driver_.start_one(), broken);
  driver_.advance(4s);
  core::Run& run = driver_.reload(first);
  driver_.core.adopt(run, driver_.now);
  EXPECT_FALSE(next());
  ASSERT_TRUE(driver_.core.pause(run, driver_.now));
  driver_.advance(60s);
  ASSERT_TRUE(driver_.core.resume(run, driver_.now));
  driver_.advance(5s);
  EXPECT_FALSE(next()) << "the clock stood still";
  ASSERT_TRUE(driver_.core.cancel(run, "", driver_.now));
  ASSERT_TRUE(driver_.core.resume(run, driver_.now));
  EXPECT_FALSE(next());
  driver_.advance(1s);
  EXPECT_TRUE(next());
}

TEST_F(CoreRerun, retries_of_items_that_had_begun_go_on_and_do_not_count) {
  driver_.capacity = 1;
  core::Run& run = driver_.submit(guarded_map(3), {.items = 4});
  for (int failure = 0; failure < 4; ++failure) driver_.fail(driver_.start_one(), broken);
  EXPECT_EQ(count_of(run, EventType::circuit_opened), 0U) << "items count, not attempts";
}

// ---- commands ----------------------------------------

TEST_F(CoreRerun, the_policy_of_the_command_that_failed_judges) {
  StepPlan step = call("work", {}, steady(1, 0s));
  step.command_policies.push_back({.command = 2, .line = 7, .policy = steady(3, 5s)});
  core::Run& run = driver_.submit(flow({step}));
  Failure second = broken;
  second.command = 2;
  driver_.fail(driver_.start_one(), second);
  EXPECT_FALSE(run.has_ended());
  EXPECT_FALSE(next());
  driver_.advance(5s);
  driver_.fail(driver_.start_one(), broken);
  EXPECT_TRUE(run.has_ended()) << "the other command is judged by the step's policy";
}

TEST_F(CoreRerun, all_of_it_is_stored_with_the_plan) {
  Plan plan = guarded_map();
  plan.steps[0].needs_success = true;
  plan.steps[0].command_policies.push_back({.command = 2, .line = 7, .policy = steady(3, 5s)});
  const auto read = decode_plan(encode_plan(plan), {}, nullptr);
  ASSERT_TRUE(read);
  const StepPlan& step = read->steps[0];
  EXPECT_TRUE(step.runs_again && step.needs_success);
  EXPECT_EQ(step.item_breaker, plan.steps[0].item_breaker);
  ASSERT_NE(step.policy_of_command(2), nullptr);
  EXPECT_EQ(step.policy_of_command(2)->policy.initial, Duration{5s});
  EXPECT_EQ(step.policy_of_command(1), nullptr);
  EXPECT_EQ(encode_plan(*read), encode_plan(plan));
}

}  // namespace
}  // namespace reprise::core
