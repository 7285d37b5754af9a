// The state machine with many steps, items and runs: order, limits, what follows a failure, signals, visits, and coming back.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/core.hpp"
#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

const Failure timeout{.type = "TimeoutError", .message = "no answer"};
const Failure broken{.message = "broken", .failure_class = FailureClass::deterministic};
const Failure contract{.message = "missing field", .failure_class = FailureClass::contract_failure};

std::set<std::uint32_t> steps_in(const std::vector<Start>& starts) {
  std::set<std::uint32_t> steps;
  for (const Start& start : starts) steps.insert(start.id.step);
  return steps;
}

std::size_t count_of(const core::Run& run, EventType type) {
  const std::vector<Recorded> events = events_of(run);
  return static_cast<std::size_t>(std::ranges::count(events, type, &Recorded::type));
}

StepStatus status_of(const core::Run& run, std::uint32_t step) { return run.steps[step].status; }

// Succeeds with everything that is ready, round after round, a second between them.
void succeed_to_the_end(CoreDriver& driver, const core::Run& run) {
  for (int rounds = 0; rounds < 100 && !run.has_ended(); ++rounds) {
    for (const Start& start : driver.take_starts()) driver.core.succeeded(start.id, {}, driver.now);
    driver.now += Duration{1s}.count();
  }
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

// ---- steps ----------------------------------------

TEST(CoreSteps, a_sequence_goes_one_by_one) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a"), call("b", {0}), call("c", {1})}));
  for (std::uint32_t step = 0; step < 3; ++step) {
    const AttemptId attempt = driver.start_one();
    EXPECT_EQ(attempt.step, step);
    driver.succeed(attempt, std::to_string(step));
  }
  EXPECT_EQ(outcome_of(run).output, "2");
}

TEST(CoreSteps, there_is_no_barrier_between_levels) {
  CoreDriver driver;  // a → b → d, a → c
  auto& run = driver.submit(flow({call("a"), call("b", {0}), call("c", {0}), call("d", {1})}));
  driver.succeed(driver.start_one());
  const std::vector<Start> level = driver.take_starts();
  ASSERT_EQ(steps_in(level), (std::set<std::uint32_t>{1, 2}));
  driver.succeed(level[0].id.step == 1 ? level[0].id : level[1].id);
  const AttemptId last = driver.start_one();  // although c is still running
  EXPECT_EQ(last.step, 3U);
  driver.succeed(last);
  EXPECT_FALSE(run.has_ended());
  driver.succeed(level[0].id.step == 2 ? level[0].id : level[1].id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreSteps, a_diamond_joins_once_both_sides_are_done) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a"), call("b", {0}), call("c", {0}), call("d", {1, 2})}));
  driver.succeed(driver.start_one());
  const std::vector<Start> sides = driver.take_starts();
  ASSERT_EQ(sides.size(), 2U);
  driver.succeed(sides[0].id);
  EXPECT_TRUE(driver.starts_nothing());
  driver.fail(sides[1].id, timeout);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1s);
  driver.succeed(driver.start_one());
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(run.steps[3].visits, 1U);
}

TEST(CoreSteps, a_failed_step_makes_what_needs_it_unreachable_and_fails_the_run) {
  CoreDriver driver;  // a → b → c, and d beside them
  auto& run = driver.submit(flow({call("a"), call("b", {0}), call("c", {1}), call("d")}));
  const std::vector<Start> first = driver.take_starts();
  ASSERT_EQ(first.size(), 2U);
  driver.fail(first[0].id, broken);
  EXPECT_EQ(count_of(run, EventType::unreachable), 2U);
  EXPECT_FALSE(run.has_ended());  // d may finish
  driver.succeed(first[1].id);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(status_of(run, 2), StepStatus::unreachable);
  EXPECT_EQ(outcome_of(run).failure.message, "broken");
}

TEST(CoreSteps, skip_skips_what_needs_it_and_the_run_can_succeed) {
  CoreDriver driver;
  auto& run = driver.submit(
      flow({with(call("a"), OnFailure::skip), call("b", {0}), call("c"), call("d", {1, 2}), call("e", {2})}));
  const std::vector<Start> first = driver.take_starts();
  ASSERT_EQ(first.size(), 2U);
  driver.fail(first[0].id, broken);
  driver.succeed(first[1].id);
  EXPECT_EQ(status_of(run, 1), StepStatus::skipped);
  EXPECT_EQ(status_of(run, 3), StepStatus::skipped);
  const AttemptId last = driver.start_one();
  EXPECT_EQ(last.step, 4U);
  driver.succeed(last, "e");
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(outcome_of(run).output, "e");
}

TEST(CoreSteps, proceed_runs_what_needs_it_all_the_same) {
  CoreDriver driver;
  auto& run = driver.submit(flow({with(call("a"), OnFailure::proceed), call("b", {0})}));
  driver.fail(driver.start_one(), broken);
  const AttemptId next = driver.start_one();
  EXPECT_EQ(next.step, 1U);
  driver.succeed(next, "b");
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(outcome_of(run).output, "b");
}

TEST(CoreSteps, the_outcome_speaks_of_the_failure_that_decided_it) {
  CoreDriver driver;
  auto& run = driver.submit(flow({with(call("a"), OnFailure::proceed), call("b", {0}, steady(2, 0s))}));
  driver.fail(driver.start_one(), broken);
  driver.fail(driver.start_one(), timeout);
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(run).failure.message, "no answer");
  EXPECT_EQ(outcome_of(run).reason, StopReason::attempts);
  EXPECT_EQ(outcome_of(run).attempts, 2U);
}

TEST(CoreSteps, dead_letters_do_not_stop_the_rest) {
  CoreDriver driver;
  StepPlan map = with(call("map"), OnFailure::dead_letter);
  map.tolerate = UINT32_MAX;
  auto& run = driver.submit(flow({map, call("after", {0})}), {.items = 3});
  std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 3U);
  driver.fail(items[0].id, broken);
  driver.succeed(items[1].id);
  driver.fail(items[2].id, broken);
  EXPECT_EQ(count_of(run, EventType::dead_lettered), 2U);
  EXPECT_TRUE(run.steps[0].touched(0)->dead_letter);
  EXPECT_FALSE(run.steps[0].touched(1)->dead_letter);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreSteps, more_dead_letters_than_tolerated_fail_the_run) {
  CoreDriver driver;
  StepPlan map = with(call("map"), OnFailure::dead_letter);
  map.tolerate = 0;
  auto& run = driver.submit(flow({map, call("after", {0})}), {.items = 2});
  for (const Start& start : driver.take_starts()) driver.fail(start.id, broken);
  EXPECT_TRUE(driver.starts_nothing());
  EXPECT_EQ(run.status, RunStatus::failed);
}

TEST(CoreSteps, tolerate_counts_items) {
  for (const std::uint32_t failures : {0U, 1U, 2U, 3U}) {
    CoreDriver driver;
    StepPlan map = call("map");
    map.tolerate = 2;
    auto& run = driver.submit(flow({map, call("after", {0})}), {.items = 5});
    const std::vector<Start> items = driver.take_starts();
    ASSERT_EQ(items.size(), 5U);
    for (std::uint32_t index = 0; index < items.size(); ++index) {
      if (index < failures) {
        driver.fail(items[index].id, broken);
      } else {
        driver.succeed(items[index].id);
      }
    }
    for (const Start& start : driver.take_starts()) driver.succeed(start.id);
    EXPECT_EQ(run.status, failures <= 2 ? RunStatus::succeeded : RunStatus::failed) << failures;
  }
}

TEST(CoreSteps, a_step_that_cannot_succeed_any_more_starts_no_further_items) {
  CoreDriver driver;
  StepPlan map = call("map");
  map.max_parallel = 2;
  auto& run = driver.submit(flow({map}), {.items = 100});
  const std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 2U);
  driver.fail(items[0].id, broken);
  EXPECT_TRUE(driver.starts_nothing());
  EXPECT_FALSE(run.has_ended());
  driver.succeed(items[1].id);
  EXPECT_EQ(run.status, RunStatus::failed);
}

TEST(CoreSteps, a_step_that_cannot_succeed_any_more_does_not_wait_for_what_the_engine_stopped) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("map")}), {.items = 2});
  const std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 2U);
  driver.fail(items[0].id, broken);
  driver.core.interrupted(items[1].id, driver.now);
  driver.turn();
  EXPECT_EQ(run.status, RunStatus::failed);
}

TEST(CoreSteps, for_each_has_an_item_for_each_element) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("list"), for_each_step("each", 0), call("after", {1})}));
  driver.core.succeeded(driver.start_one(), {"elements", 8, false}, driver.now);
  ASSERT_EQ(driver.core.effects().prepares.size(), 1U);
  EXPECT_EQ(driver.core.effects().prepares[0].list.bytes, "elements");
  driver.list_items = 3;
  const std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 3U);
  EXPECT_EQ(run.steps[1].map->list.bytes, "elements");
  for (const Start& item : items) driver.succeed(item.id);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreSteps, an_empty_list_is_done_at_once) {
  CoreDriver driver;
  driver.list_items = 0;
  auto& run = driver.submit(flow({call("list"), for_each_step("each", 0), call("after", {1})}));
  driver.succeed(driver.start_one());
  const AttemptId after = driver.start_one();
  EXPECT_EQ(after.step, 2U);
  driver.succeed(after);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreSteps, a_list_that_cannot_be_counted_fails_its_step_before_attempt_1) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("list"), for_each_step("each", 0)}));
  driver.core.succeeded(driver.start_one(), {}, driver.now);
  driver.core.effects().prepares.clear();
  driver.core.prepare_failed(run.number, 1, broken, driver.now);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(run).attempts, 0U);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));  // counts again, and calls nobody before it has
  driver.core.dispatch([](const HandlerAddress&) { return 100U; }, 100, driver.now);
  EXPECT_TRUE(driver.core.effects().starts.empty());
  ASSERT_EQ(driver.core.effects().prepares.size(), 1U);
  const std::vector<Start> items = driver.take_starts();
  EXPECT_EQ(items.size(), 2U);
  for (const Start& item : items) driver.succeed(item.id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreSteps, a_wait_step_waits) {
  CoreDriver driver;
  auto& run = driver.submit(flow({wait_step("w", 10s), call("a", {0})}));
  driver.advance(10s - 1ns);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1ns);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

// ---- limits and queues ----------------------------------------

TEST(CoreLimits, max_parallel_of_a_step) {
  CoreDriver driver;
  StepPlan map = call("map", {}, steady(2, 1s));
  map.max_parallel = 2;
  auto& run = driver.submit(flow({map}), {.items = 5});
  std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 2U);
  driver.fail(items[0].id, timeout);
  const AttemptId third = driver.start_one();
  driver.advance(1s);  // the first one is due again and must wait for a place
  EXPECT_TRUE(driver.starts_nothing());
  driver.succeed(items[1].id);
  EXPECT_EQ(run.steps[0].running, 2U);
  driver.succeed(third);
  succeed_to_the_end(driver, run);
  EXPECT_EQ(run.steps[0].succeeded, 5U);
}

TEST(CoreLimits, max_parallel_of_a_run_over_all_its_steps) {
  CoreDriver driver;
  Plan plan = flow({call("a"), call("b"), call("c"), call("d", {0})});
  plan.max_parallel = 1;
  auto& run = driver.submit(plan);
  std::multiset<std::uint32_t> order;
  for (int count = 0; count < 4; ++count) {
    const AttemptId attempt = driver.start_one();
    order.insert(attempt.step);
    EXPECT_EQ(run.running, 1U);
    driver.succeed(attempt);
  }
  EXPECT_EQ(order, (std::multiset<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreLimits, max_parallel_of_a_run_holds_back_retries_too) {
  CoreDriver driver;
  StepPlan map = call("map");
  map.max_parallel = 2;
  Plan plan = flow({call("a"), map});
  plan.max_parallel = 1;
  auto& run = driver.submit(plan);
  driver.fail(driver.start_one(), timeout);
  const AttemptId second = driver.start_one();
  driver.advance(1s);  // the first is due again
  EXPECT_TRUE(driver.starts_nothing());
  driver.succeed(second);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreQueues, one_handler_has_at_most_its_concurrency) {
  CoreDriver driver;
  driver.open("work", 3);
  const NumberedPlan* const plan = driver.add(task(steady(3, 1s)));
  for (int count = 0; count < 10; ++count) driver.submit(plan);
  std::vector<Start> started = driver.take_starts();
  ASSERT_EQ(started.size(), 3U);
  driver.succeed(started[0].id);
  driver.fail(started[1].id, timeout);
  EXPECT_EQ(driver.take_starts().size(), 2U);
}

TEST(CoreQueues, work_waits_for_its_handler) {
  CoreDriver driver;
  StepPlan step = call("a");
  step.handler = "later";
  driver.submit(flow({step}));
  EXPECT_TRUE(driver.starts_nothing());
  EXPECT_EQ(driver.core.counters().ready, 1U);
  driver.open("later", 0);
  driver.start_one();
}

TEST(CoreQueues, first_by_priority_then_in_order) {
  CoreDriver driver;
  const NumberedPlan* const plan = driver.add(task(steady(3, 1s)));
  const std::vector<std::uint8_t> priorities_given = {5, 0, 9, 5, 9, 3, 0, 5};
  for (const std::uint8_t priority : priorities_given) driver.submit(plan, {.priority = priority});
  driver.capacity = 1;
  std::vector<std::uint64_t> order;
  for (std::size_t count = 0; count < priorities_given.size(); ++count) {
    const AttemptId attempt = driver.start_one();
    order.push_back(attempt.run);
    driver.core.succeeded(attempt, {}, driver.now);
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{3, 5, 1, 4, 8, 6, 2, 7}));
}

TEST(CoreQueues, large_runs_take_turns_with_others) {
  CoreDriver driver;
  auto& large = driver.submit(task(steady(3, 1s)), {.items = 1000});
  auto& small = driver.submit(task(steady(3, 1s)));
  driver.capacity = 3;
  std::set<std::uint64_t> runs;
  for (const Start& start : driver.take_starts()) runs.insert(start.id.run);
  EXPECT_EQ(runs, (std::set<std::uint64_t>{large.number, small.number}));
}

TEST(CoreQueues, capacity_is_shared_by_handlers) {
  CoreDriver driver;
  driver.open("other", 0);
  StepPlan other = call("b");
  other.handler = "other";
  for (int count = 0; count < 4; ++count) driver.submit(flow({call("a"), other}));
  driver.capacity = 3;
  EXPECT_EQ(driver.take_starts().size(), 3U);
}

// ---- signals ----------------------------------------

TEST(CoreSignals, an_early_one_is_kept) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a"), signal_step("s", "go", 0s, {0}), call("b", {1})}));
  ASSERT_TRUE(driver.signal(run, "go", "payload"));
  ASSERT_TRUE(driver.signal(run, "other", "not this"));
  EXPECT_EQ(status_of(run, 1), StepStatus::pending);
  driver.succeed(driver.start_one());
  EXPECT_EQ(status_of(run, 1), StepStatus::succeeded);
  EXPECT_EQ(run.steps[1].one.output->bytes, "payload");
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(driver.signal(run, "go").error().code, ErrorCode::invalid);
}

TEST(CoreSignals, each_is_consumed_once_and_in_order) {
  CoreDriver driver;
  auto& run = driver.submit(flow({signal_step("first", "go"), signal_step("second", "go", 0s, {0})}));
  ASSERT_TRUE(driver.signal(run, "go", "1"));
  EXPECT_EQ(status_of(run, 0), StepStatus::succeeded);
  EXPECT_EQ(status_of(run, 1), StepStatus::active);
  ASSERT_TRUE(driver.signal(run, "go", "2"));
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(outcome_of(run).output, "2");

  auto& twice =
      driver.submit(flow({call("a"), signal_step("first", "go", 0s, {0}), signal_step("second", "go", 0s, {1})}));
  ASSERT_TRUE(driver.signal(twice, "go", "1"));
  ASSERT_TRUE(driver.signal(twice, "go", "2"));
  driver.succeed(driver.start_one());
  EXPECT_EQ(twice.steps[1].one.output->bytes, "1");
  EXPECT_EQ(outcome_of(twice).output, "2");
}

TEST(CoreSignals, one_that_comes_too_late_finds_its_step_failed) {
  CoreDriver driver;
  auto& run = driver.submit(flow({signal_step("s", "go", 10s), call("b", {0}), call("c")}));
  driver.advance(10s - 1ns);
  EXPECT_EQ(status_of(run, 0), StepStatus::active);
  driver.advance(1ns);
  EXPECT_EQ(status_of(run, 0), StepStatus::failed);
  ASSERT_TRUE(driver.signal(run, "go"));
  EXPECT_EQ(status_of(run, 1), StepStatus::unreachable);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(run).failure.kind, FailureKind::timeout);
}

TEST(CoreSignals, a_timed_out_one_that_is_tried_again_has_its_time_again) {
  CoreDriver driver;
  auto& run = driver.submit(flow({signal_step("s", "go", 10s)}));
  driver.advance(10s);
  ASSERT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  driver.advance(10s - 1ns);
  EXPECT_FALSE(run.has_ended());
  driver.advance(1ns);
  EXPECT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  ASSERT_TRUE(driver.signal(run, "go", "here"));
  EXPECT_EQ(outcome_of(run).output, "here");
}

TEST(CoreSignals, wait_for_the_end_of_a_pause) {
  CoreDriver driver;
  auto& run = driver.submit(flow({signal_step("s", "go")}));
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  ASSERT_TRUE(driver.signal(run, "go", "x"));
  EXPECT_EQ(status_of(run, 0), StepStatus::active);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  EXPECT_EQ(outcome_of(run).output, "x");
}

TEST(CoreSignals, are_bounded) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a")}));
  for (int count = 0; count < 1024; ++count) ASSERT_TRUE(driver.signal(run, "x"));
  EXPECT_EQ(driver.signal(run, "x").error().code, ErrorCode::full);
}

// ---- breaker and visits ----------------------------------------

StepPlan guarded(std::uint32_t limit, Policy policy) {
  StepPlan step = call("guarded", {}, std::move(policy));
  step.breaker_limit = limit;
  step.breaker_classes = 1U << static_cast<unsigned>(FailureClass::contract_failure) |
                         1U << static_cast<unsigned>(FailureClass::deterministic);
  return step;
}

TEST(CoreBreaker, the_same_failure_again_and_again_opens_it) {
  CoreDriver driver;
  auto& run = driver.submit(flow({guarded(5, steady(100, 0s))}));
  for (int count = 0; count < 5; ++count) {
    ASSERT_FALSE(run.has_ended());
    driver.fail(driver.start_one(), contract);
  }
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(run).reason, StopReason::circuit_open);
  EXPECT_EQ(outcome_of(run).failure.message, "missing field");
  EXPECT_EQ(count_of(run, EventType::circuit_opened), 1U);
}

TEST(CoreBreaker, different_failures_and_classes_it_does_not_track_do_not_count) {
  CoreDriver driver;
  auto& run = driver.submit(flow({guarded(2, steady(100, 0s))}));
  for (const char* const message : {"a is missing", "b is missing", "c is missing", "d is missing"}) {
    driver.fail(driver.start_one(), {.message = message, .failure_class = FailureClass::contract_failure});
  }
  for (int count = 0; count < 10; ++count) driver.fail(driver.start_one(), timeout);
  EXPECT_FALSE(run.has_ended());
  // Numbers that vary from attempt to attempt do not make it a different one.
  driver.fail(driver.start_one(), {.message = "at 12:30:01 it broke", .failure_class = FailureClass::contract_failure});
  driver.fail(driver.start_one(), {.message = "at 12:30:09 it broke", .failure_class = FailureClass::contract_failure});
  EXPECT_EQ(outcome_of(run).reason, StopReason::circuit_open);
}

TEST(CoreBreaker, counts_for_the_whole_step_and_a_success_of_it_resets_the_count) {
  CoreDriver driver;
  driver.capacity = 1;
  auto& run = driver.submit(flow({guarded(3, steady(100, 1s))}), {.items = 10});
  driver.fail(driver.start_one(), contract);
  driver.fail(driver.start_one(), contract);
  driver.succeed(driver.start_one());
  driver.fail(driver.start_one(), contract);
  driver.fail(driver.start_one(), contract);
  EXPECT_EQ(count_of(run, EventType::circuit_opened), 0U);
  driver.fail(driver.start_one(), contract);
  EXPECT_EQ(count_of(run, EventType::circuit_opened), 1U);
}

TEST(CoreBreaker, counts_under_policies_that_know_no_classes) {
  CoreDriver driver;
  Policy policy = steady(100, 0s);
  policy.stops_on_class = false;
  auto& run = driver.submit(flow({guarded(3, policy)}));
  for (int count = 0; count < 3; ++count) {
    ASSERT_FALSE(run.has_ended());
    driver.fail(driver.start_one(), {.type = "ValueError", .message = "unreadable"});  // deterministic by its type
  }
  EXPECT_EQ(outcome_of(run).reason, StopReason::circuit_open);
}

TEST(CoreBreaker, survives_being_stored) {
  CoreDriver driver;
  auto& run = driver.submit(flow({guarded(3, steady(100, 1s))}));
  driver.fail(driver.start_one(), contract);
  driver.advance(1s);
  driver.fail(driver.start_one(), contract);
  auto& loaded = driver.reload(run);
  driver.core.adopt(loaded, driver.now);
  driver.advance(1s);
  driver.fail(driver.start_one(), contract);
  EXPECT_EQ(outcome_of(loaded).reason, StopReason::circuit_open);
}

TEST(CoreVisits, revisit_goes_back_and_runs_everything_from_there_again) {
  CoreDriver driver;  // a → b → c; c fails and goes back to b
  auto& run =
      driver.submit(flow({call("a"), call("b", {0}), with(call("c", {1}, steady(1, 1s)), OnFailure::revisit, 1)}));
  driver.succeed(driver.start_one(), "a");
  driver.succeed(driver.start_one());
  driver.fail(driver.start_one(), timeout);
  AttemptId again = driver.start_one();
  EXPECT_EQ(again.step, 1U);
  EXPECT_EQ(run.steps[1].visits, 2U);
  driver.succeed(again);
  again = driver.start_one();
  EXPECT_EQ(again.step, 2U);
  EXPECT_EQ(run.steps[2].one.attempt, 2U) << "a number names one attempt for ever";
  EXPECT_EQ(run.steps[2].one.used_attempts(), 1U);
  driver.succeed(again);
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(run.steps[0].visits, 1U);
}

TEST(CoreVisits, the_visit_after_the_limit_fails_the_step) {
  CoreDriver driver;
  Plan plan = flow({call("a"), with(call("b", {0}, steady(1, 1s)), OnFailure::revisit, 0)});
  for (StepPlan& step : plan.steps) step.max_visits = 3;
  auto& run = driver.submit(plan);
  for (int visit = 0; visit < 3; ++visit) {
    ASSERT_FALSE(run.has_ended());
    driver.succeed(driver.start_one());
    driver.fail(driver.start_one(), timeout);
  }
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(run).reason, StopReason::max_visits);
  EXPECT_EQ(outcome_of(run).failure.message, "no answer");
}

TEST(CoreVisits, what_runs_further_down_is_stopped_and_its_result_is_late) {
  CoreDriver driver;  // a → b, a → c; c fails and goes back to a
  auto& run =
      driver.submit(flow({call("a"), call("b", {0}), with(call("c", {0}, steady(1, 1s)), OnFailure::revisit, 0)}));
  driver.succeed(driver.start_one());
  const std::vector<Start> both = driver.take_starts();
  ASSERT_EQ(both.size(), 2U);
  const AttemptId stale = both[0].id.step == 1 ? both[0].id : both[1].id;
  driver.fail(both[0].id.step == 2 ? both[0].id : both[1].id, timeout);
  EXPECT_EQ(driver.core.effects().cancels, std::vector{stale});
  EXPECT_FALSE(driver.succeed(stale));
  EXPECT_EQ(driver.core.counters().late, 1U);
  driver.succeed(driver.start_one());
  for (const Start& start : driver.take_starts()) driver.succeed(start.id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(driver.core.counters().running, 0U);
}

TEST(CoreVisits, places_in_queues_from_the_visit_before_touch_nothing) {
  CoreDriver driver;  // each goes back to itself, and finds fewer elements the second time
  StepPlan each = with(for_each_step("each", 0, steady(2, 1s)), OnFailure::revisit, 1);
  each.tolerate = 1;
  auto& run = driver.submit(flow({call("list"), each}));
  driver.list_items = 5;
  driver.succeed(driver.start_one());
  const std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 5U);
  driver.capacity = 0;
  for (std::uint32_t index = 2; index < 5; ++index) driver.fail(items[index].id, timeout);
  driver.advance(1s);  // ready again, and there is no thread for them
  driver.list_items = 2;
  driver.fail(items[0].id, broken);
  driver.fail(items[1].id, broken);
  ASSERT_EQ(run.steps[1].visits, 2U);
  ASSERT_EQ(run.steps[1].items, 2U);
  driver.capacity = 10;
  const std::vector<Start> again = driver.take_starts();
  EXPECT_EQ(again.size(), 2U);
  EXPECT_EQ(run.steps[1].map->items.size(), 2U);
  driver.expect_replays(run);
  for (const Start& start : again) driver.succeed(start.id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreVisits, what_needs_a_step_that_failed_for_good_stays_unreachable) {
  for (const OnFailure rule : {OnFailure::fail, OnFailure::skip}) {
    CoreDriver driver;  // c needs a, which has failed, and b, which goes back to itself
    auto& run = driver.submit(
        flow({with(call("a"), rule), with(call("b", {}, steady(1, 1s)), OnFailure::revisit, 1), call("c", {0, 1})}));
    const std::vector<Start> both = driver.take_starts();
    ASSERT_EQ(both.size(), 2U);
    driver.fail(both[0].id, broken);
    driver.fail(both[1].id, timeout);
    driver.succeed(driver.start_one());
    EXPECT_EQ(run.status, rule == OnFailure::fail ? RunStatus::failed : RunStatus::succeeded);
    EXPECT_EQ(status_of(run, 2), rule == OnFailure::fail ? StepStatus::unreachable : StepStatus::skipped);
  }
}

TEST(CoreVisits, a_place_that_a_revisit_frees_is_taken) {
  CoreDriver driver;  // beside the loop a ↔ c stands x, for which the run had no room
  Plan plan = flow({call("a"), with(call("c", {0}, steady(1, 1s)), OnFailure::revisit, 0), call("x")});
  plan.max_parallel = 1;
  auto& run = driver.submit(plan);
  int failures = 0;
  std::set<std::uint32_t> seen;
  for (int count = 0; count < 10 && !run.has_ended(); ++count) {
    const AttemptId attempt = driver.start_one();
    seen.insert(attempt.step);
    if (attempt.step == 1 && failures++ == 0) {
      driver.fail(attempt, timeout);
    } else {
      driver.succeed(attempt);
    }
  }
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(seen.size(), 3U);
}

// ---- trying again ----------------------------------------

TEST(CoreRetryFailed, gives_failed_items_all_their_attempts_again) {
  CoreDriver driver;
  StepPlan map = with(call("map", {}, steady(2, 0s)), OnFailure::dead_letter);
  map.tolerate = UINT32_MAX;
  Plan plan = flow({map, call("after", {0})});
  plan.deadline = Duration{1min}.count();
  auto& run = driver.submit(plan, {.items = 3});
  for (int round = 0; round < 2; ++round) {
    for (const Start& start : driver.take_starts()) {
      if (start.id.item == 1) {
        driver.core.succeeded(start.id, {"kept", 4, false}, driver.now);
      } else {
        driver.core.failed(start.id, timeout, false, driver.now);
      }
    }
  }
  driver.succeed(driver.start_one());
  ASSERT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(count_of(run, EventType::dead_lettered), 2U);

  driver.now += Duration{1h}.count();  // the deadline is long over; it starts again
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  EXPECT_FALSE(driver.core.retry_failed(run, {}, driver.now));  // it has not ended
  std::vector<Start> again = driver.take_starts();
  ASSERT_EQ(again.size(), 2U);
  for (const Start& start : again) {
    EXPECT_NE(start.id.item, 1U);
    EXPECT_EQ(start.attempt, 3U) << "a number names one attempt for ever";
    EXPECT_FALSE(run.steps[0].touched(start.id.item)->dead_letter);
    driver.core.failed(start.id, timeout, false, driver.now);
  }
  for (const Start& start : driver.take_starts()) {
    EXPECT_EQ(start.attempt, 4U);
    driver.succeed(start.id);
  }
  EXPECT_TRUE(driver.starts_nothing());  // what came after does not run twice
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_FALSE(driver.core.retry_failed(run, {}, driver.now));  // nothing has failed any more
  EXPECT_EQ(run.steps[0].touched(1)->output->bytes, "kept");
}

TEST(CoreRetryFailed, the_deadline_starts_again) {
  CoreDriver driver;
  Plan plan = task(steady(1, 0s));
  plan.deadline = Duration{10s}.count();
  auto& run = driver.submit(plan);
  driver.fail(driver.start_one(), timeout);
  driver.advance(1h);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  driver.advance(10s - 1ns);
  EXPECT_FALSE(run.cancel_requested);
  driver.advance(1ns);
  EXPECT_TRUE(run.cancel_requested);
}

TEST(CoreRetryFailed, reaches_what_was_unreachable) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a"), call("b", {0}), call("c", {1})}));
  driver.fail(driver.start_one(), broken);
  ASSERT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  succeed_to_the_end(driver, run);
  EXPECT_EQ(status_of(run, 2), StepStatus::succeeded);
}

// ---- recovery ----------------------------------------

TEST(CoreRecovery, an_attempt_that_was_running_is_lost_and_made_again_at_once) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(2, 1s)));
  const AttemptId lost = driver.start_one();
  auto& loaded = driver.reload(run);
  driver.core.adopt(loaded, driver.now);
  const std::vector<Recorded> events = events_of(loaded);
  ASSERT_EQ(names_of(loaded), (std::vector<std::string>{"recovered", "failed", "retrying"}));
  EXPECT_TRUE(events[1].record.lost);
  EXPECT_EQ(events[1].failure.kind, FailureKind::worker_lost);
  EXPECT_FALSE(driver.succeed(lost));  // whoever ran it has lost the right to tell
  const std::vector<Start> next = driver.take_starts();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].attempt, 2U);
}

TEST(CoreRecovery, waits_so_far_count_for_the_budget) {
  CoreDriver driver;
  Policy policy = steady(10, 2s);
  policy.retry_budget = 5s;
  auto& run = driver.submit(task(policy));
  for (int attempt = 1; attempt <= 2; ++attempt) {
    driver.fail(driver.start_one(), timeout);
    driver.advance(2s);
  }
  const AttemptId third = driver.start_one();
  auto& loaded = driver.reload(run);
  driver.core.adopt(loaded, driver.now);
  EXPECT_FALSE(driver.succeed(third));
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(outcome_of(loaded).reason, StopReason::budget);
  EXPECT_EQ(outcome_of(loaded).attempts, 4U);
}

TEST(CoreRecovery, a_wait_goes_on_and_one_that_is_over_fires_at_once) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a", {}, steady(3, 10s)), wait_step("w", 20s), signal_step("s", "go", 30s)}));
  driver.fail(driver.start_one(), timeout);
  driver.now += Duration{4s}.count();
  auto& loaded = driver.reload(run);
  driver.core.adopt(loaded, driver.now);
  EXPECT_EQ(driver.core.idle_until(loaded), start_of_time + Duration{10s}.count());
  driver.advance(6s - 1ns);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1ns);
  driver.succeed(driver.start_one());
  driver.now += Duration{1h}.count();
  auto& late = driver.reload(loaded);
  driver.core.adopt(late, driver.now);
  driver.turn();
  EXPECT_EQ(status_of(late, 1), StepStatus::succeeded);
  EXPECT_EQ(status_of(late, 2), StepStatus::failed);
}

TEST(CoreRecovery, every_kind_of_state_comes_back_and_goes_on) {
  CoreDriver driver;
  driver.open("work", 4);
  StepPlan map = for_each_step("each", 0, steady(3, 5s));
  map.max_parallel = 2;
  auto& run = driver.submit(flow({call("list"), map, call("after", {1}), signal_step("s", "go", 0s, {2})}));
  core::Run* at = &run;
  driver.list_items = 5;
  const auto restart = [&] {
    at = &driver.reload(*at);
    driver.core.adopt(*at, driver.now);
  };
  restart();
  driver.core.succeeded(driver.start_one(), {"list", 4, false}, driver.now);
  driver.core.effects().prepares.clear();  // nobody has counted yet
  restart();
  driver.turn();
  EXPECT_EQ(at->steps[1].items, 5U);
  restart();  // two attempts are lost
  ASSERT_TRUE(driver.signal(*at, "go", "early"));
  restart();
  driver.now += Duration{5s}.count();
  succeed_to_the_end(driver, *at);
  EXPECT_EQ(outcome_of(*at).output, "early");
  EXPECT_EQ(driver.core.counters().running, 0U);
}

TEST(CoreRecovery, a_run_that_was_submitted_asleep_starts_when_it_is_adopted) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1s)), {.asleep = true});
  EXPECT_TRUE(driver.starts_nothing());
  EXPECT_EQ(driver.core.counters().ready, 0U);
  driver.core.adopt(run, driver.now);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreRecovery, the_engine_itself_may_stop_an_attempt) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1h)));
  ASSERT_TRUE(driver.core.interrupted(driver.start_one(), driver.now));
  EXPECT_EQ(count_of(run, EventType::failed), 0U);
  EXPECT_EQ(count_of(run, EventType::interrupted), 1U);
  driver.succeed(driver.start_one());  // at once, not after an hour
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreRecovery, a_clock_behind_the_last_event_delays_and_loses_nothing) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 0s)));
  driver.start_one();
  auto& loaded = driver.reload(run);
  driver.now -= Duration{1h}.count();
  driver.core.adopt(loaded, driver.now);
  driver.turn();
  driver.advance(1h);
  driver.succeed(driver.start_one());
  EXPECT_EQ(loaded.status, RunStatus::succeeded);
}

TEST(CoreRecovery, events_that_do_not_fit_are_refused) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 0s)));
  driver.fail(driver.start_one(), timeout);
  Core other{start_of_time, 1};
  EXPECT_FALSE(other.replay(other.add(1), run.events, 1));  // its plan is unknown
  other.add_plan(0, driver.plans[0]);
  EXPECT_FALSE(other.replay(other.add(2), run.events, 2));  // the first is missing
  auto& whole = other.add(3);
  EXPECT_TRUE(other.replay(whole, run.events, 1));
  const std::string state = state_of(whole);
  EXPECT_TRUE(other.replay(whole, run.events, 1));  // it has them already
  EXPECT_EQ(state_of(whole), state);
  auto& damaged = other.add(4);
  EXPECT_FALSE(other.replay(damaged, std::string_view{run.events}.substr(0, run.events.size() - 1), 1));
}

TEST(CoreRecovery, idle_until_tells_when_there_is_something_to_do) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a", {}, steady(3, 10s)), signal_step("s", "go")}));
  EXPECT_EQ(driver.core.idle_until(run), std::nullopt);  // ready
  const AttemptId attempt = driver.start_one();
  EXPECT_EQ(driver.core.idle_until(run), std::nullopt);  // running
  driver.fail(attempt, timeout);
  EXPECT_EQ(driver.core.idle_until(run), driver.now + Duration{10s}.count());
  driver.advance(10s);
  driver.succeed(driver.start_one());
  EXPECT_EQ(driver.core.idle_until(run), INT64_MAX);
  ASSERT_TRUE(driver.signal(run, "go"));
  EXPECT_EQ(driver.core.idle_until(run), std::nullopt);
}

}  // namespace
}  // namespace reprise::core
