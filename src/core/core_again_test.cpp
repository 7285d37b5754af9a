// What is done again: visits of a step, work that somebody had tried again, breakers in between, and engines that died.
#include <gtest/gtest.h>

#include "core/core.hpp"
#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

const Failure timeout{.type = "TimeoutError", .message = "no answer", .failure_class = FailureClass::transient};
const Failure broken{.type = "ValueError", .message = "bad input", .failure_class = FailureClass::deterministic};

// What begins, as "step item attempt".
std::vector<std::string> begun(CoreDriver& driver, std::vector<Start>* starts = nullptr) {
  std::vector<std::string> words;
  for (const Start& start : driver.take_starts()) {
    words.push_back(std::to_string(start.id.step) + " " + std::to_string(start.id.item) + " " +
                    std::to_string(start.attempt));
    if (starts != nullptr) starts->push_back(start);
  }
  return words;
}

using Words = std::vector<std::string>;

Recorded last_of(const core::Run& run, EventType type) {
  const std::vector<Recorded> events = events_of(run);
  const auto found =
      std::find_if(events.rbegin(), events.rend(), [&](const Recorded& each) { return each.type() == type; });
  return found != events.rend() ? *found : Recorded{};
}

std::size_t count_of(const core::Run& run, EventType type) {
  const std::vector<Recorded> events = events_of(run);
  return static_cast<std::size_t>(std::ranges::count(events, type, &Recorded::type));
}

std::vector<Event> public_events_of(const core::Run& run) {
  event::EventHistory history{{}, step_labels(*run.plan->plan)};
  event::ChunkReader reader{run.events, run.events_first};
  event::Record record;
  std::vector<Event> events;
  while (reader.next(record)) events.push_back(history.add(record));
  return events;
}

// ---- visits ----------------------------------------

Plan loop(Rules rules = Rules::visits_go_on) {  // b goes back to a
  Plan plan = flow({call("a"), with(call("b", {0}, steady(2, 1s)), OnFailure::revisit, 0)});
  plan.rules = rules;
  return plan;
}

// One whole visit in which b fails twice. What begins.
Words visit(CoreDriver& driver) {
  Words all;
  for (const bool fails : {false, true, true}) {
    std::vector<Start> starts;
    const Words words = begun(driver, &starts);
    all.insert(all.end(), words.begin(), words.end());
    if (starts.empty()) return all;
    fails ? driver.fail(starts[0].id, timeout) : driver.succeed(starts[0].id);
    driver.advance(1s);
  }
  return all;
}

TEST(CoreAgain, numbers_of_attempts_go_on_over_visits) {
  CoreDriver driver;
  auto* run = &driver.submit(loop());
  EXPECT_EQ(visit(driver), (Words{"0 0 1", "1 0 1", "1 0 2"}));
  EXPECT_EQ(visit(driver), (Words{"0 0 2", "1 0 3", "1 0 4"})) << "with two attempts again";
  run = &driver.reload(*run);  // the numbers are part of the state
  driver.core.adopt(*run, driver.now);
  EXPECT_EQ(visit(driver), (Words{"0 0 4", "1 0 5", "1 0 6"})) << "the third of a was lost";
}

TEST(CoreAgain, a_run_of_rules_from_before_counts_each_visit_from_one) {
  CoreDriver driver;
  driver.submit(loop(Rules::own_failures));
  EXPECT_EQ(visit(driver), (Words{"0 0 1", "1 0 1", "1 0 2"}));
  EXPECT_EQ(visit(driver), (Words{"0 0 1", "1 0 1", "1 0 2"}));
}

TEST(CoreAgain, an_attempt_of_a_later_visit_is_no_retry_and_is_told_of_no_failure) {
  CoreDriver driver;
  auto& run = driver.submit(loop());
  visit(driver);
  driver.succeed(driver.start_one());
  driver.start_one();
  const Item& item = run.steps[1].one;
  EXPECT_EQ(item.attempt, 3U);
  EXPECT_EQ(item.used_attempts(), 1U);
  EXPECT_FALSE(item.has_begun_before());
  EXPECT_EQ(item.last_failure(), nullptr);
  const std::vector<Event> events = public_events_of(run);
  EXPECT_EQ(events.back().type, EventType::started);
  EXPECT_FALSE(events.back().is_retry);
  EXPECT_FALSE(events.back().failure);
  EXPECT_EQ(events.back().used_attempts, 1U);
}

// The step whose attempt is running when the run goes back begins anew: what is told of it, too.
TEST(CoreAgain, work_that_was_called_off_begins_anew) {
  CoreDriver driver;  // a → b, a → c; c goes back to a while b waits for its retry
  auto& run = driver.submit(
      flow({call("a"), call("b", {0}, steady(5, 1h)), with(call("c", {0}, steady(1, 1s)), OnFailure::revisit, 0)}));
  driver.succeed(driver.start_one());
  const std::vector<Start> both = driver.take_starts();
  ASSERT_EQ(both.size(), 2U);
  driver.fail(both[0].id.step == 1 ? both[0].id : both[1].id, timeout);
  driver.fail(both[0].id.step == 2 ? both[0].id : both[1].id, timeout);
  driver.succeed(driver.start_one());
  EXPECT_EQ(begun(driver), (Words{"1 0 2", "2 0 2"}));
  EXPECT_EQ(run.steps[1].one.used_attempts(), 1U);
  for (const Event& event : public_events_of(run))
    EXPECT_FALSE(event.type == EventType::started && event.is_retry) << event.sequence;
}

TEST(CoreAgain, items_keep_their_numbers_by_their_place) {
  CoreDriver driver;
  StepPlan each = with(for_each_step("each", 0, steady(1, 1s)), OnFailure::revisit, 1);
  auto& run = driver.submit(flow({call("list"), each}));
  driver.list_items = 3;
  driver.succeed(driver.start_one());
  std::vector<Start> items;
  ASSERT_EQ(begun(driver, &items), (Words{"1 0 1", "1 1 1", "1 2 1"}));
  driver.list_items = 4;
  driver.succeed(items[0].id);
  driver.fail(items[1].id, timeout);
  driver.fail(items[2].id, timeout);
  EXPECT_EQ(begun(driver), (Words{"1 0 2", "1 1 2", "1 2 2", "1 3 1"}));
  EXPECT_EQ(run.steps[1].visits, 2U);
}

TEST(CoreAgain, finally_steps_go_on_too_and_their_visits_do_not_count) {
  CoreDriver driver;
  StepPlan last = call("last", {}, steady(1, 1s));
  last.runs_finally = true;
  auto& run = driver.submit(flow({call("a", {}, steady(1, 1s)), last}));
  for (std::uint32_t round = 1; round <= 3; ++round) {
    driver.fail(driver.start_one(), timeout);
    std::vector<Start> starts;
    EXPECT_EQ(begun(driver, &starts), Words{"1 0 " + std::to_string(round)});
    driver.succeed(starts.at(0).id);
    ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
    EXPECT_EQ(run.steps[1].visits, round) << "each is work of its own";
    EXPECT_EQ(run.own_visits(1), 0U);
  }
}

// ---- breakers and retry by a person ----------------------------------------

Plan guarded_map(Policy policy) {
  StepPlan step = call("work", {}, std::move(policy));
  step.max_parallel = 1;
  step.tolerate = 100;
  step.breaker_limit = 4;
  step.breaker_classes = 0xFF;
  step.on_failure = OnFailure::dead_letter;
  return flow({step});
}

// Fails whatever begins, until nothing does. The items in order.
std::vector<std::uint32_t> fail_all(CoreDriver& driver) {
  std::vector<std::uint32_t> items;
  for (auto starts = driver.take_starts(); !starts.empty(); starts = driver.take_starts()) {
    for (const Start& start : starts) {
      items.push_back(start.id.item);
      driver.fail(start.id, broken);
    }
  }
  return items;
}

TEST(CoreAgain, a_retry_tries_first_what_had_failed_and_then_what_was_never_begun) {
  CoreDriver driver;
  auto& run = driver.submit(guarded_map(steady(1, 0s)), {.items = 8});
  EXPECT_EQ(fail_all(driver), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  ASSERT_EQ(run.status, RunStatus::failed);
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  EXPECT_FALSE(run.steps[0].circuit_open) << "the breaker begins afresh";
  std::vector<std::uint32_t> order;
  for (auto starts = driver.take_starts(); !starts.empty(); starts = driver.take_starts()) {
    order.push_back(starts.at(0).id.item);
    driver.succeed(starts[0].id);
  }
  EXPECT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST(CoreAgain, nothing_new_is_reserved_while_something_else_waits_for_a_place) {
  CoreDriver driver;
  auto& run = driver.submit(guarded_map(steady(1, 0s)), {.items = 8});
  fail_all(driver);
  driver.ahead = 1;
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  for (std::uint32_t item = 0; item < 3; ++item) {
    std::vector<Start> starts;
    EXPECT_EQ(begun(driver, &starts), Words{"0 " + std::to_string(item) + " 2"});
    ASSERT_EQ(starts.size(), 1U);
    EXPECT_FALSE(starts[0].reserved);
    driver.succeed(starts[0].id);
  }
  std::vector<Start> starts;
  EXPECT_EQ(begun(driver, &starts), (Words{"0 3 2", "0 4 1"})) << "the last of them, and one ahead";
  EXPECT_TRUE(starts.at(1).reserved);
}

TEST(CoreAgain, a_breaker_that_opens_again_skips_what_waits_and_remembers_what_had_failed) {
  CoreDriver driver;
  auto& run = driver.submit(guarded_map(steady(1, 0s)), {.items = 8});
  EXPECT_EQ(fail_all(driver), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  ASSERT_TRUE(driver.core.retry_failed(run, {}, driver.now));
  EXPECT_EQ(fail_all(driver), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  ASSERT_EQ(run.status, RunStatus::failed);
  // With a limit of two, the others of them are skipped before they have begun again.
  Plan stricter = guarded_map(steady(1, 0s));
  stricter.steps[0].breaker_limit = 2;
  stricter.steps[0].max_parallel = 4;
  auto& other = driver.submit(stricter, {.items = 8});
  fail_all(driver);
  ASSERT_TRUE(driver.core.retry_failed(other, {}, driver.now));
  driver.capacity = 2;
  fail_all(driver);
  ASSERT_EQ(other.status, RunStatus::failed);
  const Item& skipped = *other.steps[0].touched(3);
  EXPECT_EQ(skipped.status, ItemStatus::failed);
  EXPECT_FALSE(skipped.has_begun());
  EXPECT_TRUE(skipped.dead_letter);
  EXPECT_EQ(skipped.trouble->reason, StopReason::circuit_open);
  EXPECT_EQ(skipped.trouble->failure.message, "bad input") << "from before somebody asked";
  EXPECT_EQ(skipped.due, last_of(other, EventType::skipped).record.time) << "given up then, not when it was to begin";
}

// ---- engines that died ----------------------------------------

TEST(CoreAgain, the_death_of_an_engine_is_told_in_runs_that_waited) {
  CoreDriver driver;
  auto* waits = &driver.submit(task(steady(2, 1h)));
  driver.fail(driver.start_one(), timeout);
  driver.advance(1min);
  const Time back = driver.now;
  waits = &driver.reload(*waits);
  driver.advance(1min);  // it was parked, and is loaded later
  driver.core.adopt(*waits, driver.now, back);
  EXPECT_EQ(last_of(*waits, EventType::recovered).record.time, back);
  EXPECT_EQ(count_of(*waits, EventType::recovered), 1U);
  EXPECT_EQ(waits->steps[0].one.status, ItemStatus::waiting) << "and it goes on waiting";
  EXPECT_EQ(waits->steps[0].one.due, driver.now + Duration{58min}.count());
}

TEST(CoreAgain, it_is_told_once_and_only_where_something_had_happened) {
  CoreDriver driver;
  auto* runs = &driver.submit(task(steady(2, 1h)));
  driver.start_one();
  driver.advance(1s);
  runs = &driver.reload(*runs);
  driver.core.adopt(*runs, driver.now, driver.now);
  EXPECT_EQ(count_of(*runs, EventType::recovered), 1U) << "with the attempt that was lost";
  auto* fresh = &driver.submit(task(steady(2, 1h)), {.delay = 1h});
  driver.advance(1s);
  fresh = &driver.reload(*fresh);
  driver.core.adopt(*fresh, driver.now, driver.now);
  EXPECT_EQ(count_of(*fresh, EventType::recovered), 0U) << "nothing of it had begun";
}

TEST(CoreAgain, an_engine_that_was_stopped_has_not_died) {
  CoreDriver driver;
  auto* stopped = &driver.submit(task(steady(2, 1h)));
  driver.fail(driver.start_one(), timeout);
  stopped = &driver.reload(*stopped);
  driver.core.adopt(*stopped, driver.now);
  EXPECT_EQ(count_of(*stopped, EventType::recovered), 0U);
}

}  // namespace
}  // namespace reprise::core
