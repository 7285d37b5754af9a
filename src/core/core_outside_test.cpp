// Attempts whose end comes from outside: no place in the executor, no loss in a restart, one end each, and within reach of everything
// that ends an attempt.
#include <gtest/gtest.h>

#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;
using testing_support::flow;

const Failure timeout{
    .type = "TimeoutError", .message = "timed out after 5s", .failure_class = FailureClass::transient};
const Failure trouble{.type = "IOError", .message = "no answer", .failure_class = FailureClass::transient};

RunId other_run(std::uint8_t number) {
  RunId id;
  id.bytes[15] = number;
  return id;
}

std::size_t count_of(const core::Run& run, EventType type) {
  return static_cast<std::size_t>(std::ranges::count(events_of(run), type, &Recorded::type));
}

Plan map_of(std::uint32_t max_parallel, Policy policy = steady(3, 1s)) {
  StepPlan step = call("work", {}, std::move(policy));
  step.max_parallel = max_parallel;
  return flow({step});
}

class CoreOutside : public ::testing::Test {
 protected:
  // Starts the next attempt, and hands it over.
  AttemptId hand_over(std::uint8_t to = 1, Duration limit = {}, bool returns = false) {
    const AttemptId id = driver.start_one();
    const Time due = limit > Duration{0} ? driver.now + limit.count() : 0;
    const Failure* const overdue = due != 0 ? &timeout : nullptr;
    EXPECT_TRUE(driver.core.handed_over(id, {.run = other_run(to), .due = due, .overdue = overdue, .returns = returns},
                                        driver.now));
    driver.turn();
    return id;
  }
  std::vector<RunId> take_recalls() {
    std::vector<RunId> runs;
    for (const Recall& recall : std::exchange(driver.core.effects().recalls, {})) runs.push_back(recall.run);
    return runs;
  }
  static const Item& item_of(const core::Run& run, std::uint32_t item = 0) { return *run.steps[0].touched(item); }

  CoreDriver driver;
};

TEST_F(CoreOutside, it_takes_no_place_in_the_executor) {
  driver.capacity = 1;
  core::Run& run = driver.submit(map_of(0), {.items = 3});
  const AttemptId first = hand_over(1);
  const AttemptId second = hand_over(2);
  const AttemptId third = hand_over(3);
  EXPECT_EQ(driver.core.counters().running, 0U);
  EXPECT_EQ(run.steps[0].running, 3U) << "the step waits for them all the same";
  for (const AttemptId& id : {third, first, second}) EXPECT_TRUE(driver.succeed(id, "done"));
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_TRUE(run.extra->outside.empty());
  EXPECT_EQ(driver.core.counters().running, 0U);
}

TEST_F(CoreOutside, it_counts_for_max_parallel) {
  core::Run& run = driver.submit(map_of(2), {.items = 3});
  const auto started = driver.take_starts();
  ASSERT_EQ(started.size(), 2U);
  for (const Start& start : started) driver.core.handed_over(start.id, {.run = other_run(1)}, driver.now);
  EXPECT_TRUE(driver.starts_nothing());
  driver.succeed(started[0].id);
  const AttemptId last = driver.start_one();
  driver.succeed(started[1].id);
  driver.succeed(last);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST_F(CoreOutside, its_end_is_taken_once_and_only_with_its_token) {
  core::Run& run = driver.submit(task(steady(2, 1s)));
  const AttemptId first = hand_over(1);
  EXPECT_TRUE(driver.fail(first, trouble));
  EXPECT_FALSE(driver.succeed(first)) << "an end that comes twice";
  driver.advance(1s);
  const AttemptId second = hand_over(1);
  EXPECT_FALSE(driver.succeed(first)) << "of an attempt that is over";
  EXPECT_FALSE(driver.core.handed_over(first, {.run = other_run(9)}, driver.now));
  EXPECT_EQ(run.outside_of(0, 0)->run, other_run(1));
  EXPECT_TRUE(driver.succeed(second));
  EXPECT_EQ(run.status, RunStatus::succeeded);
  EXPECT_EQ(item_of(run).attempt, 2U);
}

TEST_F(CoreOutside, a_restart_loses_what_ran_and_spares_what_is_outside) {
  core::Run* run = &driver.submit(map_of(0), {.items = 2});
  const auto started = driver.take_starts();
  ASSERT_EQ(started.size(), 2U);
  driver.core.handed_over(started[0].id, {.run = other_run(1)}, driver.now);
  run = &driver.reload(*run);
  driver.core.adopt(*run, driver.now);
  EXPECT_EQ(item_of(*run, 0).status, ItemStatus::outside);
  EXPECT_EQ(item_of(*run, 0).attempt, 1U);
  EXPECT_EQ(item_of(*run, 1).status, ItemStatus::waiting) << "lost, and tried again";
  EXPECT_EQ(run->running, 1U);
  EXPECT_EQ(run->outside, 1U);
  EXPECT_EQ(driver.core.counters().running, 0U);
  EXPECT_TRUE(driver.succeed(started[0].id));
  driver.advance(1s);
  EXPECT_TRUE(driver.succeed(driver.start_one()));
  EXPECT_EQ(run->status, RunStatus::succeeded);
}

TEST_F(CoreOutside, a_restart_with_nothing_but_outside_says_nothing) {
  core::Run* run = &driver.submit(task(steady(3, 1s)));
  const AttemptId id = hand_over();
  const std::uint32_t before = run->sequence;
  run = &driver.reload(*run);
  driver.core.adopt(*run, driver.now);
  EXPECT_EQ(run->sequence, before);
  EXPECT_TRUE(driver.succeed(id));
  EXPECT_EQ(run->status, RunStatus::succeeded);
}

TEST_F(CoreOutside, a_cancel_reaches_it_and_waits_for_its_end) {
  core::Run& run = driver.submit(task(steady(3, 1s)));
  const AttemptId id = hand_over(7);
  ASSERT_TRUE(driver.core.cancel(run, "enough", driver.now));
  EXPECT_EQ(take_recalls(), std::vector{other_run(7)});
  EXPECT_TRUE(driver.core.effects().cancels.empty()) << "the executor does not know it";
  EXPECT_EQ(run.status, RunStatus::running);
  driver.fail(id, {.type = "CanceledError", .message = "stopped", .failure_class = FailureClass::canceled});
  EXPECT_EQ(run.status, RunStatus::canceled);
}

TEST_F(CoreOutside, when_its_time_is_over_it_fails_and_is_called_back) {
  core::Run& run = driver.submit(task(steady(2, 1s)));
  const AttemptId first = hand_over(1, 5s);
  driver.advance(4999ms);
  EXPECT_EQ(item_of(run).status, ItemStatus::outside);
  driver.advance(1ms);
  EXPECT_EQ(item_of(run).status, ItemStatus::waiting);
  EXPECT_EQ(item_of(run).trouble->failure, timeout);
  EXPECT_EQ(take_recalls(), std::vector{other_run(1)});
  EXPECT_FALSE(driver.succeed(first)) << "too late";
  driver.advance(1s);
  hand_over(1, 5s);
  driver.advance(5s);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(run).failure.message, timeout.message);
  const auto events = events_of(run);
  const auto with_failure = std::ranges::count_if(events, [](const Recorded& event) {
    return event.type() == EventType::handed_over && !event.failure.message.empty();
  });
  EXPECT_EQ(with_failure, 1) << "what is the same for all attempts is recorded once";
}

TEST_F(CoreOutside, time_in_which_the_engine_did_not_run_is_not_held_against_it) {
  Policy policy = steady(1, 1s);
  policy.attempt_timeout = 5s;
  core::Run& run = driver.submit(task(policy));
  hand_over(1, 5s);
  driver.advance(8s);  // three too late
  EXPECT_EQ(item_of(run).status, ItemStatus::outside);
  EXPECT_EQ(count_of(run, EventType::extended), 1U);
  driver.advance(2999ms);
  EXPECT_EQ(item_of(run).status, ItemStatus::outside);
  driver.advance(1ms);
  EXPECT_EQ(run.status, RunStatus::failed) << "as much again as was missed, and no more";
}

TEST_F(CoreOutside, its_time_after_a_restart) {
  Policy policy = steady(1, 1s);
  policy.attempt_timeout = 5s;
  core::Run* run = &driver.submit(task(policy));
  hand_over(1, 5s);
  run = &driver.reload(*run);
  driver.core.adopt(*run, driver.now);
  driver.advance(5s);
  EXPECT_EQ(run->status, RunStatus::failed);
  EXPECT_EQ(outcome_of(*run).failure.message, timeout.message);
}

TEST_F(CoreOutside, its_lease_can_be_extended) {
  core::Run& run = driver.submit(task(steady(1, 1s)));
  const AttemptId id = hand_over(1, 5s);
  EXPECT_TRUE(driver.core.extended(id, driver.now + Duration{10s}.count(), driver.now));
  driver.advance(9s);
  EXPECT_EQ(item_of(run).status, ItemStatus::outside);
  driver.advance(1s);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_FALSE(driver.core.extended(id, driver.now + 1, driver.now));
}

TEST_F(CoreOutside, a_pause_lets_it_go_on_with_its_time) {
  core::Run& run = driver.submit(task(steady(2, 1s)));
  hand_over(1, 5s);
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  driver.advance(5s);
  EXPECT_EQ(item_of(run).status, ItemStatus::waiting);
  driver.advance(1h);
  EXPECT_TRUE(driver.starts_nothing()) << "the next attempt waits for the end of the pause";
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  driver.advance(1s);
  driver.succeed(hand_over(1, 5s));
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST_F(CoreOutside, the_deadline_of_the_run_reaches_it) {
  Plan plan = task(steady(3, 1s));
  plan.deadline = Duration{10s}.count();
  core::Run& run = driver.submit(std::move(plan));
  const AttemptId id = hand_over(3);
  driver.advance(10s);
  EXPECT_TRUE(run.cancel_requested);
  EXPECT_EQ(take_recalls(), std::vector{other_run(3)});
  driver.fail(id, {.type = "CanceledError", .message = "stopped", .failure_class = FailureClass::canceled});
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_EQ(run.reason, StopReason::deadline);
}

TEST_F(CoreOutside, it_comes_back_with_what_the_outside_has_brought) {
  core::Run& run = driver.submit(task(steady(3, 1s)));
  const AttemptId id = hand_over(1, {}, true);
  auto brought = std::make_shared<const Payload>(Payload::of("a result"));
  EXPECT_TRUE(driver.core.handed_back(id, brought, driver.now));
  EXPECT_FALSE(driver.core.handed_back(id, brought, driver.now)) << "once";
  const auto started = driver.take_starts();
  ASSERT_EQ(started.size(), 1U);
  EXPECT_EQ(started[0].id, id);
  EXPECT_EQ(started[0].attempt, 1U);
  EXPECT_EQ(started[0].brought->bytes, "a result");
  EXPECT_EQ(driver.core.counters().running, 1U);
  EXPECT_EQ(count_of(run, EventType::started), 1U) << "it is the same attempt";
  driver.succeed(id, "a result");
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST_F(CoreOutside, going_back_calls_it_back) {
  Plan plan = flow({call("first"), call("side", {0}), with(call("last", {0}, steady(1, 1s)), OnFailure::revisit, 0)});
  core::Run& run = driver.submit(std::move(plan));
  driver.succeed(driver.start_one());
  const auto started = driver.take_starts();
  ASSERT_EQ(started.size(), 2U);
  const AttemptId side = started[0].id.step == 1 ? started[0].id : started[1].id;
  const AttemptId last = started[0].id.step == 2 ? started[0].id : started[1].id;
  driver.core.handed_over(side, {.run = other_run(5)}, driver.now);
  driver.fail(last, trouble);
  EXPECT_EQ(take_recalls(), std::vector{other_run(5)});
  EXPECT_FALSE(driver.succeed(side)) << "of a visit that is over";
  EXPECT_EQ(run.running, 1U);
  EXPECT_EQ(run.outside, 0U);
}

TEST_F(CoreOutside, a_run_that_waits_for_nothing_else_may_leave_memory) {
  core::Run& run = driver.submit(task(steady(3, 1s)));
  const AttemptId id = driver.start_one();
  EXPECT_EQ(driver.core.idle_until(run), std::nullopt);
  driver.core.handed_over(id, {.run = other_run(1)}, driver.now);
  EXPECT_EQ(driver.core.idle_until(run), INT64_MAX);
  driver.core.handed_over(id, {.run = other_run(1), .due = driver.now + 5}, driver.now);
  EXPECT_EQ(driver.core.idle_until(run), driver.now + 5);
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  EXPECT_EQ(driver.core.idle_until(run), driver.now + 5) << "its clock goes on in a pause";
}

TEST_F(CoreOutside, what_a_passed_deadline_has_withdrawn_is_not_withdrawn_again) {
  StepPlan step = call("work");
  step.prepares = true;
  Plan plan = flow({step});
  plan.is_document = true;
  plan.deadline = Duration{1s}.count();
  driver.answers_prepares = false;
  core::Run* run = &driver.submit(std::move(plan));
  run = &driver.reload(*run);
  driver.now += Duration{2s}.count();
  driver.core.adopt(*run, driver.now);
  driver.core.restrict_documents(driver.next_run);
  EXPECT_EQ(run->preparing, 0U);
  EXPECT_EQ(run->status, RunStatus::canceled);
}

TEST_F(CoreOutside, a_run_of_a_document_tells_that_it_has_ended) {
  Plan plan = task(steady(1, 1s));
  plan.is_document = true;
  core::Run& run = driver.submit(std::move(plan));
  core::Run& plain = driver.submit(task(steady(1, 1s)));
  for (const Start& start : driver.take_starts()) driver.succeed(start.id);
  EXPECT_EQ(driver.core.effects().ended, std::vector{run.number});
  EXPECT_EQ(plain.status, RunStatus::succeeded);
}

TEST_F(CoreOutside, a_run_that_works_for_another_says_for_whom) {
  core::RunFacts facts;
  facts.parent = Parent{other_run(9), 2, 77, 5};
  core::Run* run = &driver.submit(driver.add(task(steady(1, 1s))), {.facts = facts});
  run = &driver.reload(*run);
  ASSERT_NE(run->facts, nullptr);
  EXPECT_EQ(run->facts->parent, facts.parent);
  driver.core.adopt(*run, driver.now);
  driver.succeed(driver.start_one());
  EXPECT_EQ(driver.core.effects().ended, std::vector{run->number});
}

// ---- what is reported ----------------------------------------

class CoreReports : public CoreOutside {
 protected:
  AttemptId accept(Duration limit = {}) {
    const AttemptId id = driver.start_one();
    const Time due = limit > Duration{0} ? driver.now + limit.count() : 0;
    EXPECT_TRUE(driver.core.handed_over(id, {.callback = "127.0.0.1:9000", .due = due}, driver.now));
    driver.turn();
    return id;
  }
  Core::ReportUse use(const AttemptId& id, bool success = true, bool only_own = false, std::uint32_t visit = 1) const {
    return driver.core.use_of({.id = id, .visit = visit, .success = success, .only_own = only_own});
  }
  bool report(const AttemptId& id) {
    const bool taken = driver.core.reported(id, event::PayloadView{"done", 4, false}, driver.now);
    driver.turn();
    return taken;
  }
};

TEST_F(CoreReports, ten_thousand_wait_for_reports_without_a_place) {
  constexpr std::uint32_t items = 10'000;
  driver.capacity = 1;
  core::Run* run = &driver.submit(map_of(0), {.items = items});
  std::vector<AttemptId> ids;
  for (std::uint32_t item = 0; item < items; ++item) ids.push_back(accept());
  EXPECT_EQ(driver.core.counters().running, 0U);
  run = &driver.reload(*run);
  driver.core.adopt(*run, driver.now);
  EXPECT_EQ(run->extra->callback, "127.0.0.1:9000");
  EXPECT_EQ(run->outside, items);
  EXPECT_EQ(count_of(*run, EventType::failed), 0U);
  for (const AttemptId& id : ids) ASSERT_TRUE(driver.core.reported(id, {}, driver.now));
  EXPECT_EQ(run->status, RunStatus::succeeded);
}

TEST_F(CoreReports, what_they_are_good_for_depends_on_the_item) {
  core::Run& run = driver.submit(task(steady(3, 1s)));
  const AttemptId first = driver.start_one();
  EXPECT_EQ(use(first), Core::ReportUse::early) << "it was not accepted yet";
  driver.core.handed_over(first, {}, driver.now);
  EXPECT_EQ(use(first, false), Core::ReportUse::judge);
  EXPECT_EQ(use(first, true, false, 2), Core::ReportUse::over) << "of another visit";
  driver.fail(first, trouble);
  EXPECT_EQ(use(first), Core::ReportUse::judge) << "it was done after all";
  EXPECT_EQ(use(first, false), Core::ReportUse::known);
  EXPECT_EQ(use(first, true, true), Core::ReportUse::over);
  driver.advance(1s);
  const AttemptId second = accept();
  EXPECT_EQ(use(first), Core::ReportUse::judge);
  EXPECT_EQ(use(first, false), Core::ReportUse::known);
  EXPECT_EQ(use(second, false, true), Core::ReportUse::judge);
  driver.succeed(second);
  EXPECT_EQ(use(first), Core::ReportUse::known);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST_F(CoreReports, nothing_counts_for_what_was_given_up) {
  driver.submit(task(steady(1, 1s)));
  const AttemptId id = accept();
  driver.fail(id, trouble);
  EXPECT_EQ(use(id), Core::ReportUse::over);
  EXPECT_FALSE(report(id));
}

TEST_F(CoreReports, an_earlier_success_ends_a_wait_a_running_attempt_and_one_outside) {
  for (const bool waits : {true, false}) {
    for (const bool is_outside : {true, false}) {
      core::Run& run = driver.submit(task(steady(3, 1s)));
      const AttemptId first = accept();
      driver.fail(first, trouble);
      if (!waits) {
        driver.advance(1s);
        const AttemptId second = driver.start_one();
        if (is_outside) driver.core.handed_over(second, {}, driver.now);
      }
      EXPECT_TRUE(report(first));
      EXPECT_EQ(run.status, RunStatus::succeeded);
      EXPECT_EQ(item_of(run).attempt, waits ? 1U : 2U);
      EXPECT_EQ(run.running, 0U);
      EXPECT_EQ(driver.core.counters().running, 0U);
      EXPECT_EQ(std::exchange(driver.core.effects().cancels, {}).size(), !waits && !is_outside ? 1U : 0U);
      EXPECT_FALSE(report(first)) << "twice";
    }
  }
}

TEST_F(CoreReports, a_time_that_is_over_needs_nobody_to_be_called_back) {
  core::Run& run = driver.submit(task(steady(1, 1s)));
  const AttemptId id = accept(5s);
  driver.advance(5s);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_TRUE(take_recalls().empty());
  const auto cancels = driver.core.effects().cancels;
  ASSERT_EQ(cancels.size(), 1U) << "what it reported may be in the executor";
  EXPECT_EQ(cancels[0], id);
}

}  // namespace
}  // namespace reprise::core
