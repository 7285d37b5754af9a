// The state machine, rule by rule: attempts, waits, limits, operators and recovery. Time is moved by hand; every run is also replayed.
#include "core/core.hpp"

#include <gtest/gtest.h>

#include <set>

#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

const Failure timeout{.type = "TimeoutError", .message = "no answer"};
const Failure broken{.type = "ValueError", .message = "broken", .failure_class = FailureClass::deterministic};
const Failure contract{.message = "missing field", .failure_class = FailureClass::contract_failure};

using Names = std::vector<std::string>;

const Recorded& last_of(const std::vector<Recorded>& events, EventType type) {
  for (auto at = events.rbegin(); at != events.rend(); ++at) {
    if (at->type() == type) return *at;
  }
  ADD_FAILURE() << "no event " << name_of(type);
  return events.front();
}

std::size_t count_of(const Run& run, EventType type) {
  const std::vector<Recorded> events = events_of(run);
  return static_cast<std::size_t>(std::ranges::count(events, type, &Recorded::type));
}

// Fails every attempt of the run until it has ended; returns how many there were.
std::uint64_t fail_to_the_end(CoreDriver& driver, const Run& run, const Failure& failure) {
  std::uint64_t attempts = 0;
  for (int rounds = 0; rounds < 100 && !run.has_ended(); ++rounds) {
    for (const Start& start : driver.take_starts()) {
      driver.fail(start.id, failure);
      ++attempts;
    }
    driver.now += Duration{1min}.count();
  }
  EXPECT_TRUE(run.has_ended());
  return attempts;
}

// ---- attempts and decisions ----------------------------------------

TEST(CoreAttempts, a_success_is_the_whole_story) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1s)));
  driver.succeed(driver.start_one(), "result");
  EXPECT_EQ(names_of(run), (Names{"submitted", "started", "completed", "ended"}));
  EXPECT_EQ(outcome_of(run), (RunOutcome{.status = RunStatus::succeeded, .output = "result", .attempts = 1}));
  EXPECT_EQ(driver.core.counters().succeeded, 1U);
  EXPECT_EQ(driver.core.counters().running, 0U);
}

TEST(CoreAttempts, a_failure_is_decided_and_the_numbers_are_recorded) {
  CoreDriver driver{7};
  Policy policy{.max_attempts = 3, .initial = 4s, .jitter = Jitter::equal};
  policy.only_on = FailureRules{FailureRule::of_type("KeyError"), FailureRule::of_type("TimeoutError")};
  auto& run = driver.submit(task(policy));
  driver.fail(driver.start_one(), timeout);
  Random random{7};
  const Decision expected = decide(policy, {.attempt = 1}, timeout, random);

  const std::vector<Recorded> events = events_of(run);
  EXPECT_EQ(names_of(run), (Names{"submitted", "started", "failed", "retrying"}));
  const event::Record& failed = events[2].record;
  EXPECT_TRUE(failed.will_retry);
  EXPECT_EQ(failed.attempt, 1U);
  EXPECT_EQ(failed.rule, 1);
  EXPECT_EQ(failed.failure_class, FailureClass::transient);
  EXPECT_EQ(events[2].failure, timeout);
  const event::Record& retrying = events[3].record;
  EXPECT_EQ(retrying.attempt, 2U);
  EXPECT_EQ(retrying.rule, 1);
  EXPECT_EQ(retrying.nominal, Duration{4s}.count());
  EXPECT_EQ(retrying.delay_min, Duration{2s}.count());
  EXPECT_EQ(retrying.delay_max, Duration{4s}.count());
  EXPECT_EQ(retrying.delay, expected.delay.count());
  EXPECT_EQ(retrying.due, driver.now + expected.delay.count());
}

TEST(CoreAttempts, the_last_failure_says_why_there_is_no_other) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1s)));
  EXPECT_EQ(fail_to_the_end(driver, run, timeout), 3U);
  EXPECT_EQ(last_of(events_of(run), EventType::failed).record.reason, StopReason::attempts);
  const RunOutcome outcome = outcome_of(run);
  EXPECT_EQ(outcome.status, RunStatus::failed);
  EXPECT_EQ(outcome.reason, StopReason::attempts);
  EXPECT_EQ(outcome.attempts, 3U);
  EXPECT_EQ(outcome.failure.message, "no answer");
  EXPECT_EQ(driver.core.counters().retries, 2U);
}

TEST(CoreAttempts, permanent_and_class_and_list_stop_at_once) {
  const auto reason_of = [](const Policy& policy, const Failure& failure) {
    CoreDriver driver;
    auto& run = driver.submit(task(policy));
    driver.fail(driver.start_one(), failure);
    EXPECT_EQ(run.status, RunStatus::failed);
    return last_of(events_of(run), EventType::failed).record.reason;
  };
  Failure permanent = timeout;
  permanent.permanent = true;
  EXPECT_EQ(reason_of(steady(3, 1s), permanent), StopReason::permanent);
  EXPECT_EQ(reason_of(steady(3, 1s), broken), StopReason::permanent);
  Policy listed = steady(3, 1s);
  listed.only_on = FailureRules{};
  EXPECT_EQ(reason_of(listed, timeout), StopReason::not_listed);
  Policy budget = steady(3, 2s);
  budget.retry_budget = 1s;
  EXPECT_EQ(reason_of(budget, timeout), StopReason::budget);
  Policy argyll = steady(3, 1s);
  argyll.needs_verdict = true;
  EXPECT_EQ(reason_of(argyll, timeout), StopReason::no_verdict);
}

TEST(CoreAttempts, waits_are_summed_for_the_budget_and_remembered_for_the_next_draw) {
  CoreDriver driver;
  Policy policy = steady(10, 2s);
  policy.retry_budget = 5s;
  auto& run = driver.submit(task(policy));
  EXPECT_EQ(fail_to_the_end(driver, run, timeout), 3U);  // 2s + 2s fit, a third does not
  EXPECT_EQ(outcome_of(run).reason, StopReason::budget);

  Policy drawn = policy::standard;
  drawn.backoff = Backoff::decorrelated;
  drawn.max.reset();
  drawn.max_attempts = 6;
  auto& other = driver.submit(task(drawn));
  fail_to_the_end(driver, other, timeout);
  std::int64_t previous = Duration{1s}.count();
  for (const Recorded& event : events_of(other)) {
    if (event.type() != EventType::retrying) continue;
    EXPECT_EQ(event.record.delay_max, 3 * previous);
    previous = event.record.delay;
  }
}

TEST(CoreAttempts, retry_after_is_a_floor) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1s)));
  Failure throttled = timeout;
  throttled.retry_after = 7s;
  driver.fail(driver.start_one(), throttled);
  EXPECT_TRUE(last_of(events_of(run), EventType::retrying).record.floored);
  driver.advance(7s - 1ns);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1ns);
  driver.start_one();
}

// ---- time ----------------------------------------

TEST(CoreTime, a_wait_is_never_short) {
  CoreDriver driver;
  driver.submit(task(steady(5, 1s)));
  for (int attempt = 1; attempt < 5; ++attempt) {
    driver.fail(driver.start_one(), timeout);
    driver.advance(1s - 1ns);
    EXPECT_TRUE(driver.starts_nothing());
    driver.advance(1ns);
  }
  driver.start_one();
}

TEST(CoreTime, no_delay_means_at_once) {
  CoreDriver driver;
  driver.submit(task(steady(3, 0s)));
  driver.fail(driver.start_one(), timeout);
  driver.start_one();
}

TEST(CoreTime, a_delayed_run_starts_when_its_delay_is_over) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1s)), {.delay = 1h});
  EXPECT_EQ(driver.core.idle_until(run), driver.now + Duration{1h}.count());
  driver.advance(1h - 1ns);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1ns);
  driver.start_one();
}

TEST(CoreTime, max_elapsed_counts_from_creation) {
  CoreDriver driver;
  Policy policy = steady(100, 1s);
  policy.max_elapsed = 10s;
  auto& run = driver.submit(task(policy));
  driver.now += Duration{8s}.count();        // nobody had a thread for it
  driver.fail(driver.start_one(), timeout);  // 8s + 1s < 10s
  driver.advance(1s);
  driver.fail(driver.start_one(), timeout);  // 9s + 1s is not
  EXPECT_EQ(outcome_of(run).reason, StopReason::deadline);
  EXPECT_EQ(outcome_of(run).attempts, 2U);
}

TEST(CoreTime, max_elapsed_counts_from_the_first_start_if_the_policy_says_so) {
  CoreDriver driver;
  Policy policy = steady(100, 1s);
  policy.max_elapsed = 2s + 1ns;
  policy.elapsed_from = ElapsedFrom::first_start;
  driver.capacity = 0;
  auto& run = driver.submit(task(policy));
  driver.advance(1h);
  driver.capacity = 1;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    ASSERT_FALSE(run.has_ended());
    driver.fail(driver.start_one(), timeout);
    driver.advance(1s);
  }
  EXPECT_EQ(outcome_of(run).attempts, 3U);
  EXPECT_EQ(outcome_of(run).reason, StopReason::deadline);
}

TEST(CoreTime, a_late_timer_does_not_start_an_attempt_after_max_elapsed) {
  CoreDriver driver;
  Policy policy = steady(100, 1s);
  policy.max_elapsed = 10s;
  auto& run = driver.submit(task(policy));
  driver.fail(driver.start_one(), timeout);
  driver.advance(10s);
  EXPECT_TRUE(driver.starts_nothing());
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(run).reason, StopReason::deadline);
  EXPECT_EQ(outcome_of(run).failure.message, "no answer");
  EXPECT_EQ(outcome_of(run).attempts, 1U);
}

TEST(CoreTime, the_deadline_of_a_run_cancels_it) {
  CoreDriver driver;
  Plan plan = task(steady(100, 3s));
  plan.deadline = Duration{10s}.count();
  auto& waiting = driver.submit(plan);
  driver.fail(driver.start_one(), timeout);
  auto& running = driver.submit(plan);
  const AttemptId attempt = driver.start_one();
  driver.now += Duration{10s}.count();
  driver.core.due(driver.now - 1, 100);
  EXPECT_FALSE(waiting.has_ended());
  driver.turn();
  EXPECT_EQ(outcome_of(waiting).status, RunStatus::canceled);
  EXPECT_EQ(outcome_of(waiting).reason, StopReason::deadline);
  ASSERT_EQ(driver.core.effects().cancels.size(), 1U);
  EXPECT_EQ(driver.core.effects().cancels[0], attempt);
  driver.fail(attempt, timeout);
  EXPECT_EQ(outcome_of(running).status, RunStatus::canceled);
  EXPECT_EQ(outcome_of(running).reason, StopReason::deadline);
}

TEST(CoreTime, a_deadline_and_the_waits_it_ends_may_be_due_in_the_same_moment) {
  CoreDriver driver;
  Plan plan = flow({call("a", {}, steady(3, 10s)), wait_step("b", 10s), signal_step("c", "go", 10s)});
  plan.deadline = Duration{10s}.count();
  std::vector<core::Run*> runs;
  for (int count = 0; count < 20; ++count) runs.push_back(&driver.submit(plan));
  for (const Start& start : driver.take_starts()) driver.fail(start.id, timeout);
  EXPECT_EQ(driver.core.timers(), 20U * 4);
  driver.advance(20s);
  for (const auto* run : runs) EXPECT_TRUE(run->has_ended());
  EXPECT_EQ(driver.core.timers(), 0U);
  auto& next = driver.submit(task(steady(2, 1s)));  // the wheel is still whole
  EXPECT_EQ(fail_to_the_end(driver, next, timeout), 2U);
}

TEST(CoreTime, the_longest_spans_do_not_wrap_around) {
  CoreDriver driver;
  Plan plan = flow({call("a", {}, steady(3, Duration::max())), wait_step("b", Duration::max()),
                    signal_step("c", "go", Duration::max())});
  plan.deadline = INT64_MAX;
  auto& run = driver.submit(plan);
  driver.fail(driver.start_one(), timeout);
  driver.advance(24h * 365 * 100);
  EXPECT_TRUE(driver.starts_nothing());
  EXPECT_EQ(run.status, RunStatus::running);
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  driver.advance(24h);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.advance(1h);
  EXPECT_EQ(run.status, RunStatus::running);
  EXPECT_EQ(driver.core.idle_until(run), INT64_MAX);
}

TEST(CoreTime, a_clock_that_was_set_back_delays_and_loses_nothing) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a", {}, steady(3, 0s)), call("b", {0})}));
  const AttemptId first = driver.start_one();
  driver.now -= Duration{1h}.count();
  driver.fail(first, timeout);  // recorded at the time of the start
  driver.turn();
  driver.advance(1h);
  driver.succeed(driver.start_one());
  driver.now -= Duration{1h}.count();
  driver.turn();
  driver.advance(1h);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
  Time last = 0;
  for (const Recorded& event : events_of(run)) {
    EXPECT_GE(event.record.time, last);
    last = event.record.time;
  }
}

// ---- tokens ----------------------------------------

TEST(CoreTokens, late_and_double_and_foreign_results_change_nothing) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a"), call("b", {0})}));
  const AttemptId first = driver.start_one();
  driver.fail(first, timeout);
  driver.advance(1s);
  const AttemptId second = driver.start_one();
  const std::string before = state_of(run);
  std::vector<AttemptId> strangers(6, second);
  strangers[0] = first;
  strangers[1].run = 99;
  strangers[2].step = 1;
  strangers[3].step = 9;
  strangers[4].item = 3;
  strangers[5].token += 1;
  for (const AttemptId& stranger : strangers) {
    EXPECT_FALSE(driver.succeed(stranger, "wrong"));
    EXPECT_FALSE(driver.fail(stranger, broken));
    EXPECT_FALSE(driver.core.interrupted(stranger, driver.now));
    driver.core.progressed(stranger, "wrong", driver.now);
    EXPECT_EQ(state_of(run), before);
  }
  EXPECT_EQ(driver.core.counters().late, 4 * strangers.size());
  EXPECT_TRUE(driver.succeed(second, "right"));
  const std::string after = state_of(run);
  EXPECT_FALSE(driver.succeed(second, "again"));
  EXPECT_FALSE(driver.fail(second, broken));
  EXPECT_EQ(state_of(run), after);
  driver.succeed(driver.start_one());
  EXPECT_FALSE(driver.succeed(second, "after the end"));
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreTokens, progress_is_recorded_and_changes_nothing_else) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1s)));
  const AttemptId attempt = driver.start_one();
  driver.core.progressed(attempt, "half", driver.now);
  EXPECT_EQ(last_of(events_of(run), EventType::progress).text, "half");
  driver.succeed(attempt);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

// ---- cancelling ----------------------------------------

TEST(CoreCancel, before_anything_has_started) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1s)));
  ASSERT_TRUE(driver.core.cancel(run, "no more", driver.now));
  EXPECT_TRUE(driver.starts_nothing());
  EXPECT_EQ(names_of(run), (Names{"submitted", "cancel_requested", "ended"}));
  EXPECT_EQ(last_of(events_of(run), EventType::cancel_requested).text, "no more");
  EXPECT_EQ(outcome_of(run).status, RunStatus::canceled);
  EXPECT_EQ(outcome_of(run).reason, StopReason::canceled);
  EXPECT_EQ(driver.core.cancel(run, "", driver.now).error().code, ErrorCode::invalid);
}

TEST(CoreCancel, and_resumed_at_once_it_starts) {
  CoreDriver driver;
  for (const bool looked_at_meanwhile : {false, true}) {
    auto& run = driver.submit(task(steady(3, 1s)));
    ASSERT_TRUE(driver.core.cancel(run, "", driver.now));
    if (looked_at_meanwhile) driver.turn();
    ASSERT_TRUE(driver.core.resume(run, driver.now));
    driver.succeed(driver.start_one());
    EXPECT_EQ(run.status, RunStatus::succeeded);
  }
}

TEST(CoreCancel, ends_a_wait_at_once) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1h)));
  driver.fail(driver.start_one(), timeout);
  ASSERT_TRUE(driver.core.cancel(run, "", driver.now));
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_EQ(count_of(run, EventType::interrupted), 1U);
  EXPECT_EQ(driver.core.timers(), 0U);
}

TEST(CoreCancel, asks_what_runs_to_stop_and_waits_for_its_answer) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 1s)));
  const AttemptId attempt = driver.start_one();
  ASSERT_TRUE(driver.core.cancel(run, "", driver.now));
  ASSERT_TRUE(driver.core.cancel(run, "twice is once", driver.now));
  EXPECT_EQ(count_of(run, EventType::cancel_requested), 1U);
  EXPECT_EQ(driver.core.effects().cancels, std::vector{attempt});
  EXPECT_EQ(run.status, RunStatus::running);
  driver.fail(attempt, timeout);
  EXPECT_EQ(last_of(events_of(run), EventType::failed).record.reason, StopReason::canceled);
  EXPECT_EQ(run.status, RunStatus::canceled);
}

TEST(CoreCancel, a_result_that_was_on_its_way_is_recorded_first) {
  CoreDriver driver;
  auto& task_run = driver.submit(task(steady(3, 1s)));
  const AttemptId only = driver.start_one();
  ASSERT_TRUE(driver.core.cancel(task_run, "", driver.now));
  driver.succeed(only, "kept");
  EXPECT_EQ(outcome_of(task_run).status, RunStatus::succeeded);  // there was nothing left to cancel
  EXPECT_EQ(outcome_of(task_run).output, "kept");

  auto& run = driver.submit(flow({call("a"), call("b", {0})}));
  const AttemptId first = driver.start_one();
  ASSERT_TRUE(driver.core.cancel(run, "", driver.now));
  driver.succeed(first, "kept");
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_TRUE(driver.starts_nothing());
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  const AttemptId second = driver.start_one();
  EXPECT_EQ(second.step, 1U);  // a is not run again
  driver.succeed(second);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreCancel, a_cancelled_run_goes_on_where_it_was) {
  CoreDriver driver;
  StepPlan map = call("map");
  map.max_parallel = 2;
  auto& run = driver.submit(flow({map}), {.items = 4});
  std::vector<Start> started = driver.take_starts();
  ASSERT_EQ(started.size(), 2U);
  driver.succeed(started[0].id, "kept");
  const AttemptId third = driver.start_one();
  driver.fail(started[1].id, timeout);
  driver.starts.clear();
  ASSERT_TRUE(driver.core.cancel(run, "", driver.now));
  driver.core.failed(third, timeout, false, driver.now);
  for (const Start& start : driver.take_starts()) driver.fail(start.id, timeout);
  if (!run.has_ended()) {  // item 3 may have been started too
    run.steps[0].for_each_item([&](std::uint32_t index, Item& item) {
      if (item.status == ItemStatus::running)
        driver.core.failed({run.number, 0, index, item.token}, timeout, false, driver.now);
    });
  }
  ASSERT_EQ(run.status, RunStatus::canceled);
  driver.now += Duration{1h}.count();
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  std::set<std::uint32_t> items;
  for (int rounds = 0; rounds < 4; ++rounds) {
    for (const Start& start : driver.take_starts()) {
      items.insert(start.id.item);
      EXPECT_EQ(start.attempt, 2U);  // they go on counting
      driver.core.succeeded(start.id, {}, driver.now);
    }
  }
  EXPECT_EQ(items, (std::set<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreCancel, a_handler_that_says_canceled_cancels_its_run) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a"), call("b")}));
  const std::vector<Start> started = driver.take_starts();
  ASSERT_EQ(started.size(), 2U);
  driver.fail(started[0].id, {.message = "interrupted", .failure_class = FailureClass::canceled});
  EXPECT_EQ(driver.core.effects().cancels, std::vector{started[1].id});
  driver.fail(started[1].id, timeout);
  EXPECT_EQ(run.status, RunStatus::canceled);
  ASSERT_TRUE(driver.core.resume(run, driver.now));  // the run is resumable
  for (const Start& start : driver.take_starts()) driver.succeed(start.id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreCancel, a_list_that_is_counted_after_the_end_changes_nothing) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("list"), for_each_step("each", 0)}));
  driver.core.succeeded(driver.start_one(), {}, driver.now);
  const std::vector<Prepare> asked = std::exchange(driver.core.effects().prepares, {});
  ASSERT_EQ(asked.size(), 1U);
  ASSERT_TRUE(driver.core.cancel(run, "", driver.now));
  ASSERT_EQ(run.status, RunStatus::canceled);
  const std::string before = state_of(run);
  driver.core.prepared(run.number, 1, 2, {}, driver.now);
  EXPECT_EQ(state_of(run), before);
  driver.core.prepare_failed(run.number, 1, broken, driver.now);
  EXPECT_EQ(state_of(run), before);
  ASSERT_TRUE(driver.core.resume(run, driver.now));  // asks again
  for (const Start& start : driver.take_starts()) driver.succeed(start.id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

// ---- pausing ----------------------------------------

TEST(CorePause, nothing_starts_and_what_runs_may_end) {
  CoreDriver driver;
  auto& run = driver.submit(flow({call("a"), call("b", {0})}));
  const AttemptId attempt = driver.start_one();
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  EXPECT_EQ(count_of(run, EventType::paused), 1U);
  EXPECT_EQ(run.status, RunStatus::paused);
  driver.succeed(attempt);
  EXPECT_TRUE(driver.starts_nothing());
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  EXPECT_EQ(count_of(run, EventType::resumed), 1U);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_FALSE(driver.core.pause(run, driver.now));
  EXPECT_FALSE(driver.core.resume(run, driver.now));
}

TEST(CorePause, a_wait_goes_on_with_what_was_left_of_it) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 10s)));
  driver.fail(driver.start_one(), timeout);
  driver.advance(4s);
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  EXPECT_EQ(driver.core.timers(), 0U);
  driver.advance(1h);
  EXPECT_TRUE(driver.starts_nothing());
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.advance(6s - 1ns);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1ns);
  driver.start_one();
}

TEST(CorePause, a_wait_that_began_during_the_pause_is_waited_from_its_end) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 10s)));
  const AttemptId attempt = driver.start_one();
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  driver.advance(30s);
  driver.fail(attempt, timeout);
  driver.advance(30s);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.advance(10s - 1ns);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1ns);
  driver.start_one();
}

TEST(CorePause, delays_wait_steps_signal_steps_and_the_deadline_stand_still) {
  CoreDriver driver;
  Plan plan = flow({call("a"), wait_step("b", 10s), signal_step("c", "go", 10s)});
  plan.deadline = Duration{1min}.count();
  auto& run = driver.submit(plan, {.delay = 20s});
  driver.advance(5s);
  for (int pauses = 0; pauses < 3; ++pauses) {
    ASSERT_TRUE(driver.core.pause(run, driver.now));
    driver.advance(10min);
    ASSERT_TRUE(driver.core.resume(run, driver.now));
  }
  driver.advance(15s - 1ns);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1ns);
  driver.start_one();
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  driver.advance(10min);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.advance(10s - 1ns);
  EXPECT_EQ(run.steps[1].status, StepStatus::active);
  EXPECT_EQ(run.steps[2].status, StepStatus::active);
  driver.advance(1ns);
  EXPECT_EQ(run.steps[1].status, StepStatus::succeeded);
  EXPECT_EQ(run.steps[2].status, StepStatus::failed);
  driver.advance(30s - 1ns);
  EXPECT_FALSE(run.cancel_requested);
  driver.advance(1ns);
  EXPECT_TRUE(run.cancel_requested);
}

TEST(CorePause, max_elapsed_stands_still) {
  for (const ElapsedFrom from : {ElapsedFrom::creation, ElapsedFrom::first_start}) {
    CoreDriver driver;
    Policy policy = steady(10, 1s);
    policy.max_elapsed = 5s;
    policy.elapsed_from = from;
    auto& run = driver.submit(task(policy));
    driver.fail(driver.start_one(), timeout);
    ASSERT_TRUE(driver.core.pause(run, driver.now));
    driver.advance(1h);
    ASSERT_TRUE(driver.core.resume(run, driver.now));
    driver.advance(1s);
    driver.fail(driver.start_one(), timeout);
    EXPECT_FALSE(run.has_ended());
    driver.advance(4s);
    driver.turn();
    EXPECT_EQ(outcome_of(run).reason, StopReason::deadline);
  }
}

TEST(CorePause, items_that_a_limit_held_back_come_after_the_pause) {
  CoreDriver driver;
  StepPlan map = call("map", {}, steady(3, 1s));
  map.max_parallel = 1;
  auto& run = driver.submit(flow({map}), {.items = 2});
  driver.fail(driver.start_one(), timeout);
  const AttemptId second = driver.start_one();
  driver.advance(1s);  // the first is due again, and held back
  EXPECT_TRUE(driver.starts_nothing());
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  driver.succeed(second);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CorePause, a_paused_run_that_is_loaded_again_has_no_clock_either) {
  CoreDriver driver;
  Plan plan = task(steady(3, 10s));
  plan.deadline = Duration{1min}.count();
  auto& run = driver.submit(plan);
  driver.fail(driver.start_one(), timeout);
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  auto& loaded = driver.reload(run);
  driver.core.adopt(loaded, driver.now);
  driver.advance(1h);
  EXPECT_EQ(loaded.status, RunStatus::paused);
  EXPECT_TRUE(driver.starts_nothing());
  ASSERT_TRUE(driver.core.resume(loaded, driver.now));
  driver.advance(10s);
  driver.succeed(driver.start_one());
  EXPECT_EQ(loaded.status, RunStatus::succeeded);
}

TEST(CorePause, the_deadline_of_a_loaded_run_moves_with_the_pause) {
  CoreDriver driver;
  Plan plan = task(steady(3, 1h));
  plan.deadline = Duration{1min}.count();
  auto& run = driver.submit(plan);
  driver.fail(driver.start_one(), timeout);
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  auto& loaded = driver.reload(run);
  driver.core.adopt(loaded, driver.now);
  driver.advance(30s);
  ASSERT_TRUE(driver.core.resume(loaded, driver.now));
  driver.advance(1min - 1ns);
  EXPECT_FALSE(loaded.has_ended());
  driver.advance(1ns);
  EXPECT_EQ(outcome_of(loaded).reason, StopReason::deadline);
}

TEST(CorePause, can_be_cancelled) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(3, 10s)));
  driver.fail(driver.start_one(), timeout);
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  ASSERT_TRUE(driver.core.cancel(run, "", driver.now));
  EXPECT_EQ(run.status, RunStatus::canceled);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.advance(10s - 1ns);
  EXPECT_TRUE(driver.starts_nothing()) << "its wait goes on";
  driver.advance(1ns);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CorePause, a_run_that_failed_while_paused_can_be_tried_again) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(1, 1s)));
  const AttemptId attempt = driver.start_one();
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  driver.fail(attempt, timeout);
  ASSERT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

}  // namespace
}  // namespace reprise::core
