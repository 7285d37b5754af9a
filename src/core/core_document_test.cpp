// The state machine with what only documents need: conditions, preparations, fallbacks, handlers of failures, steps that run finally,
// a part that is tried again, dead letters that are dropped, and runs that must be allowed to go on.
#include <gtest/gtest.h>

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
const Failure quota{.message = "no tokens left", .failure_class = FailureClass::budget_exhausted};

StepStatus status_of(const core::Run& run, std::uint32_t step) { return run.steps[step].status; }

std::size_t count_of(const core::Run& run, EventType type) {
  const std::vector<Recorded> events = events_of(run);
  return static_cast<std::size_t>(std::ranges::count(events, type, &Recorded::type));
}

Recorded last_of(const core::Run& run, EventType type) {
  Recorded found;
  for (Recorded& event : events_of(run)) {
    if (event.type() == type) found = std::move(event);
  }
  EXPECT_EQ(found.type(), type);
  return found;
}

std::set<std::uint32_t> steps_in(const std::vector<Start>& starts) {
  std::set<std::uint32_t> steps;
  for (const Start& start : starts) steps.insert(start.id.step);
  return steps;
}

// ---- plans ----------------------------------------

StepPlan prepares(StepPlan step) {
  step.prepares = true;
  return step;
}

StepPlan falls_back(StepPlan step, FallbackRule rule = FallbackRule::gave_up) {
  step.fallback = rule;
  return step;
}

StepPlan handles_failure(StepPlan step) {
  step.handles_failure = true;
  return step;
}

StepPlan lastly(StepPlan step) {
  step.runs_finally = true;
  return step;
}

// An item of its own for each element that the executor finds.
StepPlan each(std::string name, std::vector<std::uint32_t> needs = {}, Policy policy = steady(3, 1s)) {
  StepPlan step = prepares(call(std::move(name), std::move(needs), std::move(policy)));
  step.for_each = true;
  return step;
}

Plan document(std::vector<StepPlan> steps) {
  Plan plan = flow(std::move(steps));
  plan.is_document = true;
  return plan;
}

// A driver that leaves the questions of steps that prepare to the test.
class Asked : public CoreDriver {
 public:
  Asked() { answers_prepares = false; }
  std::vector<core::Prepare> take_prepares() { return std::exchange(core.effects().prepares, {}); }
  core::Prepare prepare_one() {
    const std::vector<core::Prepare> asked = take_prepares();
    EXPECT_EQ(asked.size(), 1U);
    return asked.empty() ? core::Prepare{} : asked.front();
  }
  bool asks_nothing() { return take_prepares().empty(); }
  void begin(const core::Prepare& asked, std::uint32_t items = 1, std::string_view list = {}) {
    core.prepared(asked.run, asked.step, items, {list, list.size(), false}, now);
  }
  void skip(const core::Prepare& asked) { core.condition_is_false(asked.run, asked.step, now); }
  void refuse(const core::Prepare& asked, const Failure& failure) {
    core.prepare_failed(asked.run, asked.step, failure, now);
  }
  bool fail_precondition(const AttemptId& id, const Failure& failure) {
    const bool taken = core.failed(id, failure, true, now);
    turn();
    return taken;
  }
  core::Run& restart(core::Run& run) {
    core::Run& loaded = reload(run);
    core.adopt(loaded, now);
    return loaded;
  }
};

// ---- steps that prepare ----------------------------------------

TEST(CorePrepare, a_step_begins_when_its_executor_says_so) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a"))}));
  const core::Prepare asked = driver.prepare_one();
  EXPECT_EQ(status_of(run, 0), StepStatus::preparing);
  EXPECT_EQ(run.preparing, 1U);
  EXPECT_TRUE(driver.starts_nothing());
  driver.begin(asked);
  EXPECT_EQ(run.preparing, 0U);
  driver.succeed(driver.start_one(), "done");
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(outcome_of(run).output, "done");
}

TEST(CorePrepare, an_answer_that_comes_twice_changes_nothing) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a"))}));
  const core::Prepare asked = driver.prepare_one();
  driver.begin(asked);
  const std::string state = state_of(run);
  driver.begin(asked);
  driver.skip(asked);
  driver.refuse(asked, broken);
  EXPECT_EQ(state_of(run), state);
}

TEST(CorePrepare, a_false_condition_skips_the_step_and_what_needs_it) {
  Asked driver;  // a → b → c, and d beside them
  auto& run = driver.submit(document({prepares(call("a")), call("b", {0}), call("c", {1}), call("d")}));
  driver.skip(driver.prepare_one());
  EXPECT_EQ(status_of(run, 0), StepStatus::skipped);
  EXPECT_EQ(status_of(run, 1), StepStatus::skipped);
  EXPECT_EQ(status_of(run, 2), StepStatus::skipped);
  EXPECT_EQ(run.preparing, 0U);
  EXPECT_FALSE(run.has_ended());
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CorePrepare, a_run_whose_steps_are_all_skipped_succeeds) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a")), call("b", {0})}));
  driver.skip(driver.prepare_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(output_of(run), nullptr);
}

TEST(CorePrepare, skips_what_needs_a_skipped_step_and_another_that_is_still_running) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a")), call("b"), call("c", {0, 1})}));
  driver.skip(driver.prepare_one());
  EXPECT_EQ(status_of(run, 2), StepStatus::skipped);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(count_of(run, EventType::skipped), 2U);
}

TEST(CorePrepare, the_items_and_their_list_come_from_the_executor) {
  Asked driver;
  auto& run = driver.submit(document({each("map"), call("after", {0})}));
  driver.begin(driver.prepare_one(), 3, "a list");
  EXPECT_EQ(run.steps[0].map->list.bytes, "a list");
  const std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 3U);
  for (const Start& item : items) driver.succeed(item.id);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CorePrepare, an_empty_list_completes_the_step) {
  Asked driver;
  auto& run = driver.submit(document({each("map"), call("after", {0})}));
  driver.begin(driver.prepare_one(), 0);
  EXPECT_EQ(status_of(run, 0), StepStatus::succeeded);
  EXPECT_EQ(driver.start_one().step, 1U);
}

TEST(CorePrepare, a_precondition_fails_the_step_at_once_whatever_its_policy_says) {
  Asked driver;
  auto& run = driver.submit(document({handles_failure(falls_back(prepares(call("a")))), call("b", {0})}));
  driver.refuse(driver.prepare_one(), timeout);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(status_of(run, 1), StepStatus::unreachable);
  EXPECT_EQ(outcome_of(run).failure.message, "no answer");
  EXPECT_EQ(outcome_of(run).attempts, 0U);
  const Recorded failed = last_of(run, EventType::failed);
  EXPECT_TRUE(failed.record.precondition);
  EXPECT_FALSE(failed.record.will_retry);
  EXPECT_EQ(count_of(run, EventType::started), 0U);
}

TEST(CorePrepare, a_precondition_of_one_item_gives_up_that_item_only) {
  Asked driver;
  StepPlan map = with(each("map"), OnFailure::dead_letter);
  map.tolerate = UINT32_MAX;
  auto& run = driver.submit(document({map}));
  driver.begin(driver.prepare_one(), 2);
  const std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 2U);
  EXPECT_TRUE(driver.fail_precondition(items[0].id, timeout));
  EXPECT_FALSE(driver.fail_precondition(items[0].id, timeout));
  driver.advance(10s);
  EXPECT_TRUE(driver.starts_nothing());
  EXPECT_TRUE(last_of(run, EventType::failed).record.precondition);
  EXPECT_TRUE(run.steps[0].touched(0)->dead_letter);
  driver.succeed(items[1].id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CorePrepare, a_precondition_that_fails_while_the_run_is_cancelled_is_a_cancel) {
  Asked driver;
  auto& run = driver.submit(document({call("a")}));
  const AttemptId attempt = driver.start_one();
  ASSERT_TRUE(driver.core.cancel(run, "why", driver.now));
  driver.fail_precondition(attempt, timeout);
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_EQ(run.steps[0].one.status, ItemStatus::canceled);
}

TEST(CorePrepare, is_asked_again_after_a_restart) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a"))}));
  driver.prepare_one();
  auto& loaded = driver.restart(run);
  driver.begin(driver.prepare_one());
  driver.succeed(driver.start_one());
  EXPECT_EQ(loaded.status, RunStatus::succeeded);
}

TEST(CorePrepare, is_not_answered_after_a_cancel_and_asked_again_when_the_run_is_resumed) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a"))}));
  const core::Prepare first = driver.prepare_one();
  ASSERT_TRUE(driver.core.cancel(run, "why", driver.now));
  EXPECT_EQ(run.status, RunStatus::canceled);
  ASSERT_EQ(driver.core.effects().cancels.size(), 1U);
  EXPECT_EQ(driver.core.effects().cancels[0], (AttemptId{run.number, 0, 0, 0}));
  driver.begin(first);  // too late
  EXPECT_EQ(status_of(run, 0), StepStatus::preparing);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.begin(driver.prepare_one());
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(run.preparing, 0U);
}

TEST(CorePrepare, answers_in_a_pause_are_kept_and_nothing_starts) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a"))}));
  const core::Prepare asked = driver.prepare_one();
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  driver.begin(asked);
  EXPECT_TRUE(driver.starts_nothing());
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CorePrepare, waits_count_from_the_answer) {
  Asked driver;
  auto& run = driver.submit(document({prepares(wait_step("wait", 10s))}));
  driver.now += Duration{1min}.count();
  driver.begin(driver.prepare_one());
  driver.advance(9s);
  EXPECT_FALSE(run.has_ended());
  driver.advance(1s);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CorePrepare, a_delayed_run_is_not_asked_before_its_delay_is_over) {
  Asked driver;
  auto& run = driver.submit(document({prepares(wait_step("wait", 10s))}), {.delay = 1min});
  EXPECT_TRUE(driver.asks_nothing());
  EXPECT_EQ(driver.core.idle_until(run), run.due);
  driver.advance(1min);
  driver.begin(driver.prepare_one());
  driver.advance(9s);
  EXPECT_FALSE(run.has_ended());
  driver.advance(1s);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CorePrepare, what_failed_before_its_first_attempt_is_asked_again_when_it_is_tried_again) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a")), each("map"), prepares(signal_step("s", "go", 1s))}));
  const std::vector<core::Prepare> asked = driver.take_prepares();
  ASSERT_EQ(asked.size(), 3U);
  driver.refuse(asked[0], broken);
  driver.refuse(asked[1], broken);
  driver.begin(asked[2]);
  driver.advance(1s);
  ASSERT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  for (const core::Prepare& again : driver.take_prepares()) driver.begin(again, 1);
  ASSERT_TRUE(driver.signal(run, "go"));
  for (const Start& start : driver.take_starts()) driver.succeed(start.id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CorePrepare, what_had_attempts_is_not_asked_again) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a", {}, steady(1, 1s)))}));
  driver.begin(driver.prepare_one());
  driver.fail(driver.start_one(), broken);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  EXPECT_TRUE(driver.asks_nothing());
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

// ---- visits ----------------------------------------

TEST(CoreVisits, ask_conditions_again) {
  Asked driver;  // a → b (condition) → c, which fails and goes back to a
  auto& run = driver.submit(
      document({call("a"), prepares(call("b", {0})), with(call("c", {0}, steady(1, 1s)), OnFailure::revisit, 0)}));
  driver.succeed(driver.start_one());
  driver.skip(driver.prepare_one());
  driver.fail(driver.start_one(), timeout);
  driver.succeed(driver.start_one());
  driver.begin(driver.prepare_one());
  for (const Start& start : driver.take_starts()) driver.succeed(start.id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(status_of(run, 1), StepStatus::succeeded);
}

TEST(CoreVisits, steps_that_need_one_skipped_by_its_condition_are_skipped_again) {
  Asked driver;  // a is skipped; b fails once and goes back to itself; c needs both
  auto& run = driver.submit(
      document({prepares(call("a")), with(call("b", {}, steady(1, 1s)), OnFailure::revisit, 1), call("c", {0, 1})}));
  driver.skip(driver.prepare_one());
  EXPECT_EQ(status_of(run, 2), StepStatus::skipped);
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(status_of(run, 2), StepStatus::skipped);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreVisits, an_old_question_is_withdrawn) {
  Asked driver;  // a → b (condition), a → c, which fails and goes back to a
  auto& run = driver.submit(
      document({call("a"), prepares(call("b", {0})), with(call("c", {0}, steady(1, 1s)), OnFailure::revisit, 0)}));
  driver.succeed(driver.start_one());
  const core::Prepare old = driver.prepare_one();
  driver.fail(driver.start_one(), timeout);
  ASSERT_EQ(driver.core.effects().cancels.size(), 1U);
  EXPECT_EQ(driver.core.effects().cancels[0], (AttemptId{run.number, 1, 0, 0}));
  driver.skip(old);
  EXPECT_EQ(status_of(run, 1), StepStatus::pending);
  EXPECT_EQ(run.preparing, 0U);
  driver.succeed(driver.start_one());
  driver.begin(driver.prepare_one());
  for (const Start& start : driver.take_starts()) driver.succeed(start.id);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreVisits, a_condition_that_is_asked_again_by_an_operator_is_the_same_visit) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a")), call("b", {}, steady(1, 1s))}));
  driver.skip(driver.prepare_one());
  for (int again = 0; again < 3; ++again) {
    driver.fail(driver.start_one(), broken);
    ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
    driver.skip(driver.prepare_one());
  }
  EXPECT_EQ(run.steps[0].visits, 1U);
}

// ---- other ways ----------------------------------------

TEST(CoreFallback, is_tried_when_everything_else_gave_up) {
  Asked driver;
  auto& run = driver.submit(document({falls_back(call("a", {}, steady(2, 0s))), call("b", {0})}));
  driver.fail(driver.start_one(), timeout);
  driver.fail(driver.start_one(), timeout);
  EXPECT_FALSE(run.has_ended());
  const std::vector<Start> other = driver.take_starts();
  ASSERT_EQ(other.size(), 1U);
  EXPECT_EQ(other[0].attempt, 3U);
  EXPECT_EQ(run.steps[0].one.stage, stage::fallback);
  EXPECT_TRUE(last_of(run, EventType::failed).record.will_retry);
  EXPECT_EQ(last_of(run, EventType::failed).record.reason, StopReason::attempts);
  EXPECT_EQ(last_of(run, EventType::fallback).record.stage, stage::fallback);
  EXPECT_EQ(count_of(run, EventType::retrying), 1U);
  driver.succeed(other[0].id);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreFallback, has_one_attempt_and_its_failure_fails_the_step) {
  Asked driver;
  auto& run = driver.submit(document({falls_back(call("a", {}, steady(1, 0s)))}));
  driver.fail(driver.start_one(), timeout);
  driver.fail(driver.start_one(), contract);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(run).failure.message, "missing field");
  EXPECT_EQ(outcome_of(run).reason, StopReason::attempts);  // why it was given up
  EXPECT_EQ(outcome_of(run).attempts, 2U);
  EXPECT_EQ(count_of(run, EventType::rework), 0U);
}

TEST(CoreFallback, for_an_exhausted_budget_is_for_nothing_else) {
  for (const bool over_budget : {false, true}) {
    Asked driver;
    auto& run = driver.submit(document({falls_back(call("a"), FallbackRule::budget_exhausted)}));
    driver.fail(driver.start_one(), over_budget ? quota : broken);
    EXPECT_EQ(count_of(run, EventType::fallback), over_budget ? 1U : 0U);
    EXPECT_EQ(run.has_ended(), !over_budget);
  }
}

TEST(CoreFallback, comes_before_the_handler_of_failures) {
  Asked driver;
  auto& run = driver.submit(document({handles_failure(falls_back(call("a", {}, steady(1, 0s))))}));
  driver.fail(driver.start_one(), timeout);
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(run.steps[0].one.stage, stage::failure_handler);
  EXPECT_FALSE(run.has_ended());
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(count_of(run, EventType::fallback), 2U);
}

TEST(CoreFallback, a_handler_of_failures_rescues_the_item) {
  Asked driver;
  auto& run = driver.submit(document({handles_failure(call("a"))}));
  driver.fail(driver.start_one(), broken);
  EXPECT_EQ(run.steps[0].one.trouble->failure.message, "broken");  // what the handler is told
  driver.succeed(driver.start_one(), "rescued");
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(outcome_of(run).output, "rescued");
}

TEST(CoreFallback, is_tried_after_an_open_circuit_and_after_the_time_was_over) {
  Asked driver;
  StepPlan guarded = falls_back(call("a", {}, steady(100, 0s)));
  guarded.breaker_limit = 1;
  guarded.breaker_classes = 0xFF;
  auto& run = driver.submit(document({guarded}));
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(count_of(run, EventType::circuit_opened), 1U);
  EXPECT_EQ(run.steps[0].one.stage, stage::fallback);

  Policy brief = steady(100, 1s);
  brief.max_elapsed = 5s;
  auto& late = driver.submit(document({falls_back(call("b", {}, brief))}));
  driver.take_starts();
  auto& loaded = driver.restart(late);  // its attempt is lost, and the timer of the retry comes late
  driver.now += Duration{1min}.count();
  driver.take_starts();
  EXPECT_EQ(last_of(loaded, EventType::failed).record.reason, StopReason::deadline);
  EXPECT_EQ(loaded.steps[0].one.stage, stage::fallback);
  EXPECT_EQ(loaded.steps[0].one.status, ItemStatus::running);
}

TEST(CoreFallback, a_lost_attempt_is_tried_again_in_the_same_way) {
  Asked driver;
  auto& run = driver.submit(document({handles_failure(falls_back(call("a", {}, steady(1, 0s))))}));
  driver.fail(driver.start_one(), broken);
  driver.start_one();
  auto& loaded = driver.restart(run);
  EXPECT_EQ(loaded.steps[0].one.stage, stage::fallback);
  const std::vector<Start> again = driver.take_starts();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].attempt, 3U);
  EXPECT_TRUE(last_of(loaded, EventType::failed).record.lost);
  driver.fail(again[0].id, timeout);
  EXPECT_EQ(loaded.steps[0].one.stage, stage::failure_handler);
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(outcome_of(loaded).reason, StopReason::permanent);  // of the first failure: a deterministic one
}

TEST(CoreFallback, an_interrupted_attempt_is_tried_again_in_the_same_way) {
  Asked driver;
  auto& run = driver.submit(document({falls_back(call("a", {}, steady(1, 0s)))}));
  driver.fail(driver.start_one(), timeout);
  driver.core.interrupted(driver.start_one(), driver.now);
  EXPECT_EQ(run.steps[0].one.stage, stage::fallback);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreFallback, a_cancel_ends_it_and_resume_goes_on_with_it) {
  Asked driver;
  auto& run = driver.submit(document({handles_failure(falls_back(call("a", {}, steady(1, 0s))))}));
  driver.fail(driver.start_one(), timeout);
  const AttemptId other = driver.start_one();
  ASSERT_TRUE(driver.core.cancel(run, "why", driver.now));
  driver.fail(other, timeout);
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_EQ(last_of(run, EventType::failed).record.reason, StopReason::canceled);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  const AttemptId again = driver.start_one();
  EXPECT_EQ(run.steps[0].one.stage, stage::fallback);
  EXPECT_EQ(run.steps[0].one.attempt, 3U);
  driver.fail(again, timeout);
  EXPECT_EQ(last_of(run, EventType::failed).record.reason, StopReason::attempts);  // why its main way was given up
  EXPECT_EQ(run.steps[0].one.stage, stage::failure_handler);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreFallback, what_says_canceled_there_cancels_the_run_as_everywhere) {
  Asked driver;
  auto& run = driver.submit(document({falls_back(call("a", {}, steady(1, 0s)))}));
  driver.fail(driver.start_one(), timeout);
  driver.fail(driver.start_one(), {.message = "stop", .failure_class = FailureClass::canceled});
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_EQ(count_of(run, EventType::cancel_requested), 1U);
}

TEST(CoreFallback, begins_anew_with_the_main_way_when_it_is_tried_again) {
  Asked driver;
  auto& run = driver.submit(document({falls_back(call("a", {}, steady(1, 0s)))}));
  driver.fail(driver.start_one(), timeout);
  driver.fail(driver.start_one(), timeout);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  driver.start_one();
  EXPECT_EQ(run.steps[0].one.stage, stage::main);
  EXPECT_EQ(run.steps[0].one.attempt, 3U);
  EXPECT_EQ(run.steps[0].one.used_attempts(), 1U);
}

TEST(CoreFallback, each_item_has_its_own) {
  Asked driver;
  auto& run = driver.submit(document({falls_back(each("map", {}, steady(1, 0s)))}));
  driver.begin(driver.prepare_one(), 3);
  const std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 3U);
  driver.fail(items[1].id, timeout);
  const AttemptId other = driver.start_one();
  EXPECT_EQ(other.item, 1U);
  driver.succeed(items[0].id);
  driver.succeed(items[2].id);
  EXPECT_FALSE(run.has_ended());
  driver.succeed(other);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreRework, is_told_before_an_attempt_that_follows_a_broken_contract) {
  Asked driver;
  auto& run = driver.submit(document({call("a", {}, steady(3, 0s))}));
  driver.fail(driver.start_one(), contract);
  driver.fail(driver.start_one(), timeout);
  driver.succeed(driver.start_one());
  EXPECT_EQ(count_of(run, EventType::rework), 1U);
  const std::vector<std::string> names = names_of(run);
  const auto rework = std::ranges::find(names, "rework");
  ASSERT_NE(rework, names.end());
  EXPECT_EQ(*(rework + 1), "started");
}

// ---- steps that run finally ----------------------------------------

TEST(CoreFinally, comes_after_everything_else_has_succeeded) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), call("b", {0}), lastly(call("notify"))}));
  const AttemptId first = driver.start_one();
  EXPECT_EQ(first.step, 0U);
  driver.succeed(first);
  driver.succeed(driver.start_one(), "b");
  const Recorded finishing = last_of(run, EventType::finishing);
  EXPECT_EQ(finishing.record.status, RunStatus::succeeded);
  const AttemptId last = driver.start_one();
  EXPECT_EQ(last.step, 2U);
  driver.succeed(last, "notified");
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(outcome_of(run).output, "b");  // what runs finally is not what the run was for
}

TEST(CoreFinally, comes_after_a_failure_and_the_run_has_failed_all_the_same) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), call("b", {0}), lastly(call("notify"))}));
  driver.fail(driver.start_one(), broken);
  EXPECT_EQ(last_of(run, EventType::finishing).record.status, RunStatus::failed);
  EXPECT_EQ(status_of_steps(run, false), RunStatus::failed);
  EXPECT_FALSE(run.has_ended());
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(run).failure.message, "broken");
}

TEST(CoreFinally, comes_after_everything_was_skipped) {
  Asked driver;
  auto& run = driver.submit(document({prepares(call("a")), lastly(call("notify"))}));
  driver.skip(driver.prepare_one());
  EXPECT_EQ(last_of(run, EventType::finishing).record.status, RunStatus::succeeded);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreFinally, fails_the_run_when_it_fails) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), lastly(call("notify", {}, steady(1, 0s)))}));
  driver.succeed(driver.start_one());
  driver.fail(driver.start_one(), broken);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(status_of_steps(run, false), RunStatus::succeeded);
  EXPECT_EQ(outcome_of(run).failure.message, "broken");
}

TEST(CoreFinally, steps_may_need_each_other) {
  Asked driver;
  auto& run = driver.submit(document(
      {call("a"), lastly(call("b")), lastly(call("c", {1})), lastly(prepares(call("d"))), lastly(call("e", {3}))}));
  driver.succeed(driver.start_one());
  EXPECT_EQ(count_of(run, EventType::finishing), 1U);
  const AttemptId b = driver.start_one();
  EXPECT_EQ(b.step, 1U);
  driver.skip(driver.prepare_one());
  EXPECT_EQ(status_of(run, 4), StepStatus::skipped);
  driver.succeed(b);
  const AttemptId c = driver.start_one();
  EXPECT_EQ(c.step, 2U);
  driver.succeed(c);
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(count_of(run, EventType::finishing), 1U);
}

TEST(CoreFinally, a_failed_one_makes_unreachable_what_needs_it) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), lastly(call("b")), lastly(call("c", {1})), lastly(call("d"))}));
  driver.succeed(driver.start_one());
  const std::vector<Start> last = driver.take_starts();
  ASSERT_EQ(steps_in(last), (std::set<std::uint32_t>{1, 3}));
  driver.fail(last[0].id, broken);
  EXPECT_EQ(status_of(run, 2), StepStatus::unreachable);
  driver.succeed(last[1].id);
  EXPECT_EQ(run.status, RunStatus::failed);
}

TEST(CoreFinally, takes_signals_that_came_before) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), lastly(signal_step("approve", "go"))}));
  ASSERT_TRUE(driver.signal(run, "go"));
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreFinally, does_not_come_when_the_run_is_cancelled_and_comes_when_it_was_resumed) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), lastly(call("notify"))}));
  const AttemptId attempt = driver.start_one();
  ASSERT_TRUE(driver.core.cancel(run, "why", driver.now));
  driver.fail(attempt, timeout);
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_EQ(count_of(run, EventType::finishing), 0U);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.succeed(driver.start_one());
  EXPECT_EQ(driver.start_one().step, 1U);
}

TEST(CoreFinally, is_begun_again_when_it_was_cancelled) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), lastly(call("b")), lastly(prepares(call("c")))}));
  driver.succeed(driver.start_one());
  driver.succeed(driver.start_one());
  driver.prepare_one();
  ASSERT_TRUE(driver.core.cancel(run, "why", driver.now));
  EXPECT_EQ(run.status, RunStatus::canceled);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  EXPECT_EQ(count_of(run, EventType::finishing), 2U);
  driver.succeed(driver.start_one());  // b once more
  driver.skip(driver.prepare_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(run.preparing, 0U);
}

TEST(CoreFinally, runs_again_after_what_is_tried_again) {
  Asked driver;
  auto& run = driver.submit(document({call("a", {}, steady(1, 0s)), lastly(call("b")), lastly(call("c", {1}))}));
  for (int times = 0; times < 3; ++times) {
    driver.fail(driver.start_one(), broken);
    driver.succeed(driver.start_one());
    driver.succeed(driver.start_one());
    ASSERT_EQ(run.status, RunStatus::failed);
    ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
    EXPECT_EQ(status_of(run, 1), StepStatus::pending);
    EXPECT_EQ(run.own_visits(1), 0U);
  }
  driver.succeed(driver.start_one());
  driver.succeed(driver.start_one());
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(count_of(run, EventType::finishing), 4U);
}

TEST(CoreFinally, is_tried_again_alone_when_it_alone_has_failed) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), lastly(call("notify", {}, steady(1, 0s)))}));
  driver.succeed(driver.start_one());
  driver.fail(driver.start_one(), broken);
  ASSERT_TRUE(driver.core.retry_failed(run, {.step = 1}, driver.now));
  const AttemptId again = driver.start_one();
  EXPECT_EQ(again.step, 1U);
  driver.succeed(again);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreFinally, goes_on_after_a_restart) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), lastly(call("notify"))}));
  driver.succeed(driver.start_one());
  driver.start_one();
  auto& loaded = driver.restart(run);
  driver.advance(1s);
  driver.succeed(driver.start_one());
  EXPECT_EQ(loaded.status, RunStatus::succeeded);
}

// ---- trying again ----------------------------------------

TEST(CoreRetryFailed, one_step_leaves_the_others_as_they_are) {
  Asked driver;  // a → b, c → d, and e needs b and d
  auto& run = driver.submit(document({call("a"), call("b", {0}), call("c"), call("d", {2}), call("e", {1, 3})}));
  for (const Start& start : driver.take_starts()) driver.fail(start.id, broken);
  ASSERT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {.step = 2}, driver.now));
  EXPECT_EQ(status_of(run, 0), StepStatus::failed);
  EXPECT_EQ(status_of(run, 1), StepStatus::unreachable);
  EXPECT_EQ(status_of(run, 3), StepStatus::pending);
  EXPECT_EQ(status_of(run, 4), StepStatus::unreachable);
  driver.succeed(driver.start_one());
  const AttemptId d = driver.start_one();
  EXPECT_EQ(d.step, 3U);
  driver.succeed(d);
  EXPECT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {.step = 0}, driver.now));
  for (int step = 0; step < 3; ++step) driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreRetryFailed, marks_what_a_failed_step_skips_as_skipped_again) {
  Asked driver;
  auto& run = driver.submit(document({with(call("a"), OnFailure::skip), call("b", {0}), call("c")}));
  for (const Start& start : driver.take_starts()) driver.fail(start.id, broken);
  ASSERT_TRUE(driver.core.retry_failed(run, {.step = 2}, driver.now));
  EXPECT_EQ(status_of(run, 1), StepStatus::skipped);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

class OneItem : public ::testing::TestWithParam<std::uint32_t> {};

// Whether the step can succeed with it or not: the item has its attempts, and the others stay.
TEST_P(OneItem, is_tried_again_and_the_others_stay) {
  Asked driver;
  StepPlan map = each("map", {}, steady(2, 0s));
  map.max_parallel = 3;
  auto& run = driver.submit(document({map, call("after", {0})}));
  driver.begin(driver.prepare_one(), 5);
  const std::vector<Start> items = driver.take_starts();
  ASSERT_EQ(items.size(), 3U);
  const std::uint32_t failures = GetParam();
  for (std::uint32_t index = 0; index < 3; ++index) {
    if (index < failures) {
      driver.fail(items[index].id, broken);
    } else {
      driver.succeed(items[index].id);
    }
  }
  ASSERT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {.step = 0, .item = 0}, driver.now));
  std::vector<Start> again = driver.take_starts();
  std::ranges::sort(again, {}, [](const Start& start) { return start.id.item; });
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0].id.item, 0U);
  EXPECT_EQ(again[0].attempt, 2U);
  EXPECT_EQ(again.size(), failures == 1 ? 3U : 1U);  // those nobody has touched only where the step may succeed
  driver.fail(again[0].id, timeout);
  again[0].id = driver.start_one();
  EXPECT_EQ(run.steps[0].touched(0)->attempt, 3U);
  for (const Start& start : again) driver.succeed(start.id);
  if (failures == 1) driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, failures == 1 ? RunStatus::succeeded : RunStatus::failed);
  EXPECT_EQ(run.steps[0].failed, failures - 1);
}

INSTANTIATE_TEST_SUITE_P(CoreRetryFailed, OneItem, ::testing::Values(1U, 2U, 3U));

TEST(CoreRetryFailed, one_item_of_a_failed_step_survives_a_restart_and_a_cancel) {
  Asked driver;
  auto& run = driver.submit(document({each("map", {}, steady(2, 1s))}));
  driver.begin(driver.prepare_one(), 3);
  for (const Start& item : driver.take_starts()) driver.fail(item.id, broken);
  ASSERT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {.step = 0, .item = 1}, driver.now));
  driver.fail(driver.start_one(), timeout);
  auto& loaded = driver.restart(run);
  ASSERT_TRUE(driver.core.cancel(loaded, "why", driver.now));
  ASSERT_EQ(loaded.status, RunStatus::canceled);
  ASSERT_TRUE(driver.core.retry_failed(loaded, {.step = 0, .item = 0}, driver.now));
  driver.succeed(driver.start_one());
  EXPECT_FALSE(loaded.has_ended());
  driver.advance(1s);
  const AttemptId goes_on = driver.start_one();  // what was cancelled, with its second attempt
  EXPECT_EQ(goes_on.item, 1U);
  driver.fail(goes_on, timeout);
  EXPECT_EQ(loaded.status, RunStatus::failed);
  EXPECT_EQ(loaded.steps[0].failed, 2U);
}

TEST(CoreRetryFailed, is_refused_where_nothing_has_failed) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), call("b")}));
  const std::vector<Start> both = driver.take_starts();
  EXPECT_FALSE(driver.core.retry_failed(run, {}, driver.now));
  driver.fail(both[0].id, broken);
  driver.succeed(both[1].id);
  const std::string before = state_of(run);
  EXPECT_FALSE(driver.core.retry_failed(run, {.step = 1}, driver.now));
  EXPECT_FALSE(driver.core.retry_failed(run, {.step = 0, .item = 1}, driver.now));
  EXPECT_EQ(state_of(run), before);
  EXPECT_TRUE(driver.core.retry_failed(run, {.step = 0, .item = 0}, driver.now));
}

TEST(CoreDrop, lets_one_dead_letter_go) {
  Asked driver;
  StepPlan map = with(each("map"), OnFailure::dead_letter);
  map.tolerate = UINT32_MAX;
  auto& run = driver.submit(document({map}));
  driver.begin(driver.prepare_one(), 2);
  const std::vector<Start> items = driver.take_starts();
  for (const Start& item : items) driver.fail(item.id, broken);
  ASSERT_EQ(run.status, RunStatus::succeeded);
  EXPECT_FALSE(driver.core.drop(run, {.step = 0, .item = 2}, driver.now));
  EXPECT_FALSE(driver.core.drop(run, {.step = 1, .item = 0}, driver.now));
  ASSERT_TRUE(driver.core.drop(run, {.step = 0, .item = 1}, driver.now));
  EXPECT_FALSE(run.steps[0].touched(1)->dead_letter);
  EXPECT_TRUE(run.steps[0].touched(0)->dead_letter);
  EXPECT_FALSE(driver.core.drop(run, {.step = 0, .item = 1}, driver.now));
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(names_of(run).back(), "dropped");
}

TEST(CoreTolerate, counts_the_larger_of_a_number_and_a_share) {
  struct Case {
    std::uint32_t tolerate, millionths, items, failures;
    RunStatus status;
  };
  for (const Case& c : {Case{0, 500'000, 4, 2, RunStatus::succeeded}, Case{0, 500'000, 4, 3, RunStatus::failed},
                        Case{0, 500'000, 3, 1, RunStatus::succeeded}, Case{0, 500'000, 3, 2, RunStatus::failed},
                        Case{2, 500'000, 3, 2, RunStatus::succeeded}, Case{0, 1'000'000, 3, 3, RunStatus::succeeded},
                        Case{0, 999'999, 3, 3, RunStatus::failed}, Case{0, 0, 3, 1, RunStatus::failed}}) {
    Asked driver;
    StepPlan map = each("map");
    map.tolerate = c.tolerate;
    map.tolerate_millionths = c.millionths;
    auto& run = driver.submit(document({map}));
    driver.begin(driver.prepare_one(), c.items);
    const std::vector<Start> items = driver.take_starts();
    ASSERT_EQ(items.size(), c.items);
    for (std::uint32_t index = 0; index < c.items; ++index) {
      if (index < c.failures) {
        driver.fail(items[index].id, broken);
      } else {
        driver.succeed(items[index].id);
      }
    }
    EXPECT_EQ(run.status, c.status) << c.tolerate << " or " << c.millionths << " of " << c.items << ", " << c.failures;
  }
}

// ---- waits, pauses and cancels ----------------------------------------

StepPlan wait_until(Time time) {
  StepPlan step = wait_step("wait", {});
  step.wait_until = time;
  return step;
}

TEST(CoreWaitUntil, a_time_that_comes) {
  Asked driver;
  auto& run = driver.submit(document({wait_until(start_of_time + Duration{1min}.count())}));
  driver.advance(59s);
  EXPECT_FALSE(run.has_ended());
  driver.advance(1s);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreWaitUntil, a_time_that_has_passed) {
  Asked driver;
  auto& run = driver.submit(document({wait_until(start_of_time - Duration{1min}.count())}));
  driver.advance(0s);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreWaitUntil, is_not_moved_by_a_pause) {
  Asked driver;
  auto& run = driver.submit(document({wait_until(start_of_time + Duration{1min}.count())}));
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  driver.advance(40s);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.advance(19s);
  EXPECT_FALSE(run.has_ended());
  driver.advance(1s);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreResume, a_cancelled_run_goes_on_with_its_attempts_and_its_wait) {
  Asked driver;
  auto& run = driver.submit(document({call("a", {}, steady(3, 10s))}));
  driver.fail(driver.start_one(), timeout);
  driver.advance(2s);
  ASSERT_TRUE(driver.core.cancel(run, "why", driver.now));
  ASSERT_EQ(run.status, RunStatus::canceled);
  driver.advance(2s);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.advance(5s);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1s);  // ten seconds after the failure
  const std::vector<Start> next = driver.take_starts();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].attempt, 2U);
}

TEST(CoreResume, a_wait_that_was_over_meanwhile_is_over) {
  Asked driver;
  auto& run = driver.submit(document({call("a", {}, steady(3, 10s)), wait_step("b", 10s)}));
  driver.fail(driver.start_one(), timeout);
  ASSERT_TRUE(driver.core.cancel(run, "why", driver.now));
  driver.now += Duration{1h}.count();
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreResume, a_run_cancelled_in_a_pause_waits_as_long_as_the_pause_was) {
  Asked driver;
  auto& run = driver.submit(document({call("a", {}, steady(3, 10s))}));
  driver.fail(driver.start_one(), timeout);
  driver.advance(4s);
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  driver.advance(1min);
  ASSERT_TRUE(driver.core.cancel(run, "why", driver.now));
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.advance(5s);
  EXPECT_TRUE(driver.starts_nothing());
  driver.advance(1s);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreResume, the_clock_of_work_that_had_not_begun_starts_again) {
  Asked driver;
  Policy brief = steady(3, 1s);
  brief.max_elapsed = 30s;
  driver.capacity = 0;
  auto& run = driver.submit(document({call("a", {}, brief)}));
  ASSERT_TRUE(driver.core.cancel(run, "why", driver.now));
  driver.now += Duration{1h}.count();
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.capacity = 1;
  driver.fail(driver.start_one(), timeout);
  EXPECT_FALSE(run.has_ended());
  driver.advance(1s);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

// ---- which runs may go on ----------------------------------------

TEST(CoreAllow, old_runs_of_documents_wait_until_they_are_allowed) {
  Asked driver;
  auto& old = driver.submit(document({call("a"), wait_step("b", 1s), prepares(call("c"))}));
  driver.core.restrict_documents(2);
  auto& fresh = driver.submit(document({call("a")}));
  const AttemptId started = driver.start_one();
  EXPECT_EQ(started.run, fresh.number);
  driver.succeed(started);
  EXPECT_EQ(fresh.status, RunStatus::succeeded);
  EXPECT_TRUE(driver.asks_nothing());
  driver.advance(1min);
  EXPECT_TRUE(driver.starts_nothing());
  EXPECT_EQ(status_of(old, 1), StepStatus::active);
  EXPECT_EQ(old.sequence, 1U);

  driver.core.allow(old.number, driver.now);
  driver.succeed(driver.start_one());
  driver.skip(driver.prepare_one());
  driver.advance(0s);
  EXPECT_EQ(old.status, RunStatus::succeeded);
}

TEST(CoreAllow, runs_that_are_no_documents_go_on) {
  Asked driver;
  auto& run = driver.submit(task(steady(1, 1s)));
  driver.core.restrict_documents(100);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreAllow, a_restarted_run_goes_on_when_it_is_allowed) {
  Asked driver;
  auto& run = driver.submit(document({call("a"), prepares(call("b", {0}))}));
  driver.succeed(driver.start_one());
  driver.prepare_one();
  auto& loaded = driver.reload(run);
  driver.core.restrict_documents(2);
  driver.core.adopt(loaded, driver.now);
  EXPECT_TRUE(driver.asks_nothing());
  EXPECT_EQ(loaded.preparing, 0U);
  driver.core.allow(loaded.number, driver.now);
  driver.begin(driver.prepare_one());
  driver.succeed(driver.start_one());
  EXPECT_EQ(loaded.status, RunStatus::succeeded);
}

// ---- stored forms ----------------------------------------

std::shared_ptr<const MessagePattern> no_pattern(std::string_view) { return nullptr; }

TEST(CorePlanForm, keeps_what_documents_need) {
  Plan plan = document({each("a"), lastly(handles_failure(falls_back(call("b"), FallbackRule::budget_exhausted))),
                        wait_until(start_of_time), falls_back(call("d", {0}))});
  plan.steps[0].tolerate_millionths = 50'000;
  plan.steps[3].reads = {0, 2};
  plan.types = {{"QuotaError", "TransientError"}, {"SoftQuotaError", "QuotaError"}};
  plan.adopt_types();
  const std::string bytes = encode_plan(plan);
  const auto read = decode_plan(bytes, no_pattern, nullptr);
  ASSERT_TRUE(read);
  EXPECT_EQ(encode_plan(*read), bytes);
  EXPECT_TRUE(read->is_document);
  EXPECT_EQ(read->finally_steps, 1U);
  EXPECT_EQ(read->types, plan.types);
  ASSERT_NE(read->type_tree, nullptr);
  EXPECT_TRUE(read->type_tree->is_a("SoftQuotaError", "QuotaError"));
  for (std::size_t index = 0; index < plan.steps.size(); ++index) {
    const StepPlan& left = plan.steps[index];
    const StepPlan& right = read->steps[index];
    EXPECT_EQ(right.policy.types, read->type_tree.get());
    EXPECT_EQ(std::tuple(left.prepares, left.fallback, left.handles_failure, left.runs_finally, left.wait_until),
              std::tuple(right.prepares, right.fallback, right.handles_failure, right.runs_finally, right.wait_until));
    EXPECT_EQ(std::tuple(left.tolerate_millionths, left.reads), std::tuple(right.tolerate_millionths, right.reads));
  }
}

TEST(CorePlanForm, refuses_reads_of_steps_that_do_not_exist) {
  Plan plan = document({call("a")});
  plan.steps[0].reads = {1};
  const auto read = decode_plan(encode_plan(plan), no_pattern, nullptr);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::store_damaged);
}

// A plan with two steps as version 1 wrote it: without the last six bytes of each step (bits, fallback, wait_until, share, the steps it
// reads, its effect) and the last of its policy (losses), and without the part of documents and the rules at the end.
std::string as_version_1(Plan plan) {
  Plan one = plan;
  std::string bytes(1, '\x01');
  for (std::size_t count = 0; count <= plan.steps.size(); ++count) {
    one.steps.assign(plan.steps.begin(), plan.steps.begin() + static_cast<std::ptrdiff_t>(count));
    const std::string whole = encode_plan(one);
    if (count == 0) {
      bytes += whole.substr(1, whole.size() - 5);  // its last bytes: no steps, no document, no types, rules
      bytes += static_cast<char>(plan.steps.size());
      continue;
    }
    Plan shorter = one;
    shorter.steps.pop_back();
    const std::size_t before = encode_plan(shorter).size();
    bytes += whole.substr(before - 3, whole.size() - before - 8);
  }
  return bytes;
}

TEST(CorePlanForm, plans_of_version_1_can_still_be_read) {
  const Plan plan = flow({call("a"), call("b", {0})});
  const auto read = decode_plan(as_version_1(plan), no_pattern, nullptr);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->steps.size(), 2U);
  EXPECT_EQ(*read->steps[1].name, "b");
  EXPECT_EQ(read->steps[1].needs, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(read->steps[1].reads, read->steps[1].needs);
  EXPECT_EQ(read->rules, Rules::all_ends_alike);
  EXPECT_EQ(read->steps[1].policy.max_attempts, plan.steps[1].policy.max_attempts);
  EXPECT_FALSE(read->is_document);
  EXPECT_TRUE(read->has_first_rules());
  EXPECT_FALSE(decode_plan(encode_plan(plan), no_pattern, nullptr)->has_first_rules());
  EXPECT_FALSE(decode_plan(std::string(1, '\0') + as_version_1(plan).substr(1), no_pattern, nullptr));
  const auto newer = decode_plan(std::string(1, '\x05') + as_version_1(plan).substr(1), no_pattern, nullptr);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::store_newer);
}

}  // namespace
}  // namespace reprise::core
