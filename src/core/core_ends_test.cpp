// What ends an attempt and is not its own failure: losses, interruptions and deadlines cost none of its attempts and ask no list.
#include <gtest/gtest.h>

#include "core/core.hpp"
#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

const Failure timeout{.type = "TimeoutError", .message = "no answer", .failure_class = FailureClass::transient};
const Failure contract{.message = "missing field", .failure_class = FailureClass::contract_failure};
const Failure stopped{.type = "CanceledError", .message = "stopped", .failure_class = FailureClass::canceled};

std::size_t count_of(const core::Run& run, EventType type) {
  const std::vector<Recorded> events = events_of(run);
  return static_cast<std::size_t>(std::ranges::count(events, type, &Recorded::type));
}

Recorded last_of(const core::Run& run, EventType type) {
  const std::vector<Recorded> events = events_of(run);
  const auto found =
      std::find_if(events.rbegin(), events.rend(), [&](const Recorded& each) { return each.type() == type; });
  return found != events.rend() ? *found : Recorded{};
}

// The engine dies, and another one finds the run.
core::Run& crash(CoreDriver& driver, core::Run& run) {
  core::Run& loaded = driver.reload(run);
  driver.core.adopt(loaded, driver.now);
  return loaded;
}

// ---- lost ----------------------------------------

TEST(CoreEnds, a_loss_asks_neither_lists_nor_classes_nor_attempts) {
  Policy deaf = steady(1, 1h);
  deaf.only_on.emplace();
  deaf.needs_verdict = true;
  CoreDriver driver;
  auto* run = &driver.submit(task(deaf));
  driver.start_one();
  run = &crash(driver, *run);
  EXPECT_TRUE(last_of(*run, EventType::failed).record.lost);
  EXPECT_EQ(last_of(*run, EventType::retrying).record.delay, 0);
  const std::vector<Start> again = driver.take_starts();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].attempt, 2U);
  driver.succeed(again[0].id);
  EXPECT_EQ(run->status, RunStatus::succeeded);
}

TEST(CoreEnds, losses_in_a_row_wait_longer_and_have_a_limit) {
  Policy policy;
  policy.max_attempts = 1;
  policy.initial = 2s;
  policy.jitter = Jitter::none;
  CoreDriver driver;
  auto* run = &driver.submit(task(policy));
  const Duration waits[] = {0s, 2s, 4s};
  for (const Duration wait : waits) {
    driver.start_one();
    run = &crash(driver, *run);
    if (wait > 0s) {
      driver.advance(wait - 1ns);
      EXPECT_TRUE(driver.starts_nothing());
      driver.advance(1ns);
    }
  }
  driver.start_one();
  run = &crash(driver, *run);
  EXPECT_EQ(run->status, RunStatus::failed);
  EXPECT_EQ(outcome_of(*run).reason, StopReason::lost);
  EXPECT_EQ(outcome_of(*run).attempts, 4U);
}

TEST(CoreEnds, the_policy_says_how_many_losses_are_made_again) {
  for (const std::uint32_t limit : {0U, 1U, 5U}) {
    Policy policy = steady(1, 0s);
    policy.worker_lost_max = limit;
    CoreDriver driver;
    auto* run = &driver.submit(task(policy));
    std::uint32_t losses = 0;
    while (!run->has_ended() && losses < 10) {
      driver.start_one();
      run = &crash(driver, *run);
      ++losses;
    }
    EXPECT_EQ(losses, limit + 1);
    EXPECT_EQ(outcome_of(*run).reason, StopReason::lost);
  }
}

TEST(CoreEnds, an_end_of_its_own_begins_the_row_of_losses_anew_and_they_cost_no_attempt) {
  CoreDriver driver;
  auto* run = &driver.submit(task(steady(3, 0s)));
  for (int failures = 0; failures < 2; ++failures) {
    for (int losses = 0; losses < 3; ++losses) {
      driver.start_one();
      run = &crash(driver, *run);
    }
    driver.fail(driver.start_one(), timeout);
  }
  EXPECT_EQ(run->steps[0].one.attempt, 9U);
  EXPECT_EQ(run->steps[0].one.used_attempts(), 3U);
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(run->status, RunStatus::failed);
  EXPECT_EQ(outcome_of(*run).reason, StopReason::attempts);
}

TEST(CoreEnds, waits_after_losses_count_for_no_budget_and_are_not_the_previous_delay) {
  Policy policy = steady(10, 2s);
  policy.retry_budget = 5s;
  CoreDriver driver;
  auto* run = &driver.submit(task(policy));
  driver.fail(driver.start_one(), timeout);
  driver.advance(2s);
  for (int losses = 0; losses < 3; ++losses) {
    driver.start_one();
    run = &crash(driver, *run);
    driver.advance(2s);
  }
  const Trouble& trouble = *run->steps[0].one.trouble;
  EXPECT_EQ(trouble.waited, Duration{2s}.count());
  EXPECT_EQ(trouble.previous_delay, Duration{2s}.count());
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(last_of(*run, EventType::failed).record.reason, StopReason::none);
  EXPECT_TRUE(last_of(*run, EventType::failed).record.will_retry);
}

TEST(CoreEnds, nothing_lost_starts_at_or_after_the_deadline_of_its_item) {
  Policy policy = steady(10, 1s);
  policy.max_elapsed = 5s;
  CoreDriver driver;
  auto* run = &driver.submit(task(policy));
  driver.start_one();
  driver.now += Duration{5s}.count();
  run = &crash(driver, *run);
  EXPECT_EQ(outcome_of(*run).reason, StopReason::deadline);
}

TEST(CoreEnds, what_the_work_said_before_is_not_forgotten_when_it_is_lost) {
  CoreDriver driver;
  auto* run = &driver.submit(task(steady(3, 0s)));
  driver.fail(driver.start_one(), contract);
  driver.start_one();
  run = &crash(driver, *run);
  ASSERT_NE(run->steps[0].one.last_failure(), nullptr);
  EXPECT_EQ(run->steps[0].one.last_failure()->message, "missing field");
  driver.start_one();
  EXPECT_EQ(count_of(*run, EventType::rework), 1U) << "the attempt after the loss is told what was wrong, too";
}

TEST(CoreEnds, a_loss_is_not_shown_to_the_breaker) {
  StepPlan step = call("a", {}, steady(1, 0s));
  step.breaker_limit = 1;
  step.breaker_classes = 0xFF;
  CoreDriver driver;
  auto* run = &driver.submit(flow({step}));
  driver.start_one();
  run = &crash(driver, *run);
  EXPECT_EQ(count_of(*run, EventType::circuit_opened), 0U);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run->status, RunStatus::succeeded);
}

TEST(CoreEnds, a_worker_that_is_gone_loses_its_attempt_like_an_engine) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(1, 1h)));
  ASSERT_TRUE(driver.core.lost(driver.start_one(), driver.now));
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

// A plan as a version wrote it that judged losses like failures.
Plan of_before(Plan plan) {
  plan.rules = Rules::all_ends_alike;
  return plan;
}

TEST(CoreEnds, a_run_that_began_under_the_rules_of_before_keeps_them) {
  CoreDriver driver;
  auto* run = &driver.submit(of_before(task(steady(2, 1s))));
  driver.start_one();
  run = &crash(driver, *run);
  EXPECT_TRUE(driver.starts_nothing()) << "a loss waits like a failure";
  driver.advance(1s);
  driver.start_one();
  run = &crash(driver, *run);
  EXPECT_EQ(outcome_of(*run).reason, StopReason::attempts);
}

// ---- interrupted ----------------------------------------

TEST(CoreEnds, an_interruption_costs_nothing_and_is_made_again_at_once) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(1, 1h)));
  for (int stops = 0; stops < 5; ++stops) ASSERT_TRUE(driver.core.interrupted(driver.start_one(), driver.now));
  EXPECT_EQ(count_of(run, EventType::failed), 0U);
  const std::vector<Start> sixth = driver.take_starts();
  ASSERT_EQ(sixth.size(), 1U);
  EXPECT_EQ(sixth[0].attempt, 6U);
  EXPECT_EQ(run.steps[0].one.used_attempts(), 1U);
  driver.fail(sixth[0].id, timeout);
  EXPECT_EQ(outcome_of(run).reason, StopReason::attempts);
}

TEST(CoreEnds, a_cancelled_attempt_is_interrupted_and_no_failure) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(2, 0s)));
  driver.fail(driver.start_one(), contract);
  const AttemptId second = driver.start_one();
  ASSERT_TRUE(driver.core.cancel(run, "", driver.now));
  driver.fail(second, stopped);
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_EQ(count_of(run, EventType::failed), 1U);
  EXPECT_EQ(last_of(run, EventType::interrupted).failure, stopped);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  EXPECT_EQ(run.steps[0].one.last_failure()->message, "missing field");
  const std::vector<Start> third = driver.take_starts();
  ASSERT_EQ(third.size(), 1U);
  EXPECT_EQ(third[0].attempt, 3U);
  EXPECT_EQ(run.steps[0].one.used_attempts(), 2U);
  driver.fail(third[0].id, timeout);
  EXPECT_EQ(outcome_of(run).reason, StopReason::attempts);
}

TEST(CoreEnds, a_failure_that_comes_after_the_cancel_is_not_counted_either) {
  CoreDriver driver;
  auto& run = driver.submit(task(steady(1, 0s)));
  const AttemptId first = driver.start_one();
  ASSERT_TRUE(driver.core.cancel(run, "", driver.now));
  driver.fail(first, timeout);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.start_one();
  EXPECT_EQ(run.steps[0].one.used_attempts(), 1U);
}

// ---- deadlines ----------------------------------------

TEST(CoreEnds, an_attempt_that_its_own_limit_cuts_stops_with_deadline_whatever_the_lists_say) {
  Policy policy = steady(10, 0s);
  policy.max_elapsed = 5s;
  policy.only_on.emplace();
  CoreDriver driver;
  auto& run = driver.submit(task(policy));
  const AttemptId attempt = driver.start_one();
  driver.advance(5s);
  driver.core.failed(attempt, timeout, false, driver.now, AttemptEnd::deadline);
  EXPECT_EQ(outcome_of(run).reason, StopReason::deadline);
  EXPECT_TRUE(last_of(run, EventType::failed).record.cut);
}

TEST(CoreEnds, an_attempt_that_the_deadline_of_the_run_cuts_is_interrupted) {
  Plan plan = task(steady(10, 0s));
  plan.deadline = Duration{5s}.count();
  CoreDriver driver;
  auto& run = driver.submit(plan);
  const AttemptId attempt = driver.start_one();
  driver.now += Duration{5s}.count();
  driver.core.failed(attempt, timeout, false, driver.now, AttemptEnd::deadline);
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_EQ(run.reason, StopReason::deadline);
  EXPECT_EQ(count_of(run, EventType::failed), 0U);
  EXPECT_EQ(count_of(run, EventType::interrupted), 1U);
}

// ---- at most once ----------------------------------------

Plan at_most_once(OnFailure on_failure = OnFailure::fail) {
  StepPlan step = call("pay", {}, steady(5, 0s));
  step.effect = Effect::at_most_once;
  step.on_failure = on_failure;
  return flow({step});
}

void expect_unclear(const core::Run& run) {
  EXPECT_EQ(last_of(run, EventType::failed).record.reason, StopReason::unclear);
  EXPECT_EQ(count_of(run, EventType::dead_lettered), 1U);
  EXPECT_TRUE(run.steps[0].one.dead_letter);
  EXPECT_EQ(run.steps[0].one.status, ItemStatus::failed);
}

TEST(CoreEnds, work_that_may_be_done_once_only_is_kept_for_a_person_when_its_end_is_unclear) {
  CoreDriver driver;
  auto* lost = &driver.submit(at_most_once());
  driver.start_one();
  expect_unclear(crash(driver, *lost));

  auto& late = driver.submit(at_most_once());
  driver.core.failed(driver.start_one(), timeout, false, driver.now, AttemptEnd::timed_out);
  expect_unclear(late);

  auto& cut = driver.submit(at_most_once());
  driver.core.failed(driver.start_one(), timeout, false, driver.now, AttemptEnd::deadline);
  expect_unclear(cut);

  auto& interrupted = driver.submit(at_most_once());
  driver.core.interrupted(driver.start_one(), driver.now);
  expect_unclear(interrupted);

  auto& cancelled = driver.submit(at_most_once());
  const AttemptId attempt = driver.start_one();
  ASSERT_TRUE(driver.core.cancel(cancelled, "", driver.now));
  driver.fail(attempt, stopped);
  expect_unclear(cancelled);
}

TEST(CoreEnds, work_that_never_began_is_made_again_however_often_it_may_be_done) {
  CoreDriver driver;
  auto& run = driver.submit(at_most_once());
  driver.core.interrupted(driver.start_one(), driver.now, false);
  driver.fail(driver.start_one(), timeout);  // a failure of its own is judged as ever
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreEnds, no_other_way_is_tried_for_work_whose_end_is_unclear) {
  Plan plan = at_most_once();
  plan.is_document = true;
  plan.steps[0].fallback = FallbackRule::gave_up;
  plan.steps[0].handles_failure = true;
  CoreDriver driver;
  auto* run = &driver.submit(plan);
  driver.start_one();
  run = &crash(driver, *run);
  expect_unclear(*run);
  EXPECT_EQ(run->status, RunStatus::failed);
}

}  // namespace
}  // namespace reprise::core
