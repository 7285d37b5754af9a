// Work that is recorded ahead of a free place: it counts against its limit, has no clock, is taken back, and costs nothing in a crash.
#include <gtest/gtest.h>

#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;
using testing_support::flow;

const Failure trouble{.type = "IOError", .message = "no answer", .failure_class = FailureClass::transient};
const Failure hopeless{.type = "ValueError", .message = "bad", .failure_class = FailureClass::deterministic};

Plan map_of(std::uint32_t max_parallel, Policy policy = steady(3, 1s)) {
  StepPlan step = call("work", {}, std::move(policy));
  step.max_parallel = max_parallel;
  return flow({step});
}

class CoreReserve : public ::testing::Test {
 protected:
  CoreReserve() { driver.ahead = 1; }

  // Which items were handed to the executor since the last time, those that only wait for a place apart.
  struct Given {
    std::vector<AttemptId> started;
    std::vector<AttemptId> reserved;
  };
  Given take() {
    Given given;
    for (const Start& start : driver.take_starts())
      (start.reserved ? given.reserved : given.started).push_back(start.id);
    return given;
  }
  bool begins(const AttemptId& id, Duration ago = {}) {
    const std::uint64_t before = driver.core.counters().attempts;
    driver.core.began(id, driver.now - ago.count(), driver.now);
    driver.turn();
    return driver.core.counters().attempts > before;
  }
  bool give_back(const AttemptId& id) {
    const bool taken = driver.core.interrupted(id, driver.now, false);
    driver.turn();
    return taken;
  }
  std::vector<AttemptId> taken_back() { return std::exchange(driver.core.effects().take_backs, {}); }
  static ItemStatus status_of(const core::Run& run, std::uint32_t item) {
    const Item* const found = run.steps[0].touched(item);
    return found != nullptr ? found->status : ItemStatus::untouched;
  }

  CoreDriver driver;
};

TEST_F(CoreReserve, one_for_each_place_of_a_step) {
  core::Run& run = driver.submit(map_of(2), {.items = 10});
  Given given = take();
  ASSERT_EQ(given.started.size(), 2U);
  ASSERT_EQ(given.reserved.size(), 2U);
  EXPECT_EQ(run.running, 2U);
  EXPECT_EQ(run.reserved, 2U);
  EXPECT_EQ(driver.core.counters().running, 2U);
  EXPECT_EQ(driver.core.counters().attempts, 2U) << "nothing else has begun";
  EXPECT_EQ(status_of(run, 2), ItemStatus::reserved);
  EXPECT_TRUE(begins(given.reserved[0]));
  driver.succeed(given.started[0]);
  EXPECT_EQ(run.running, 2U);
  const Given next = take();
  EXPECT_TRUE(next.started.empty()) << "it could begin beside the one that was promised the place";
  ASSERT_EQ(next.reserved.size(), 1U);
  EXPECT_EQ(next.reserved[0].item, 4U);
}

TEST_F(CoreReserve, a_handlers_places_are_counted_over_all_runs) {
  driver.open("work", 2);
  driver.ahead = 2;
  const NumberedPlan* const plan = driver.add(task(steady(3, 1s)));
  for (int count = 0; count < 10; ++count) driver.submit(plan);
  const Given given = take();
  EXPECT_EQ(given.started.size(), 2U);
  EXPECT_EQ(given.reserved.size(), 4U);
}

TEST_F(CoreReserve, started_has_the_time_when_it_began) {
  core::Run& run = driver.submit(map_of(1), {.items = 2});
  const Given given = take();
  driver.advance(10s);
  EXPECT_TRUE(begins(given.reserved.at(0), 3s));
  EXPECT_FALSE(begins(given.reserved.at(0))) << "once";
  const Recorded started = events_of(run).back();
  EXPECT_EQ(started.type(), EventType::started);
  EXPECT_EQ(started.record.time, driver.now - Duration{3s}.count());
  EXPECT_EQ(run.steps[0].touched(1)->first_started, started.record.time);
  EXPECT_EQ(run.steps[0].touched(1)->token, given.reserved[0].token) << "its end is told by the token of the reservation";
  EXPECT_TRUE(driver.succeed(given.reserved[0]));
}

TEST_F(CoreReserve, never_before_the_event_ahead_of_it_nor_in_the_future) {
  core::Run& run = driver.submit(map_of(2), {.items = 4});
  const Given given = take();
  driver.advance(10s);
  driver.succeed(given.started.at(0));
  begins(given.reserved.at(0), 5s);
  EXPECT_EQ(events_of(run).back().record.time, driver.now) << "the success before it was recorded now";
  begins(given.reserved.at(1), -5s);
  EXPECT_EQ(events_of(run).back().record.time, driver.now);
}

TEST_F(CoreReserve, an_end_says_that_it_had_begun) {
  core::Run& run = driver.submit(map_of(1), {.items = 3});
  const Given given = take();
  EXPECT_TRUE(driver.succeed(given.reserved.at(0)));
  EXPECT_EQ(names_of(run), (std::vector<std::string>{"submitted", "started", "reserved", "started", "completed",
                                                     "reserved"}));
}

TEST_F(CoreReserve, only_first_attempts) {
  core::Run& run = driver.submit(map_of(1), {.items = 2});
  Given given = take();
  driver.fail(given.started.at(0), trouble);
  begins(given.reserved.at(0));
  driver.advance(5s);
  EXPECT_TRUE(driver.starts_nothing()) << "a retry waits for its place";
  driver.succeed(given.reserved.at(0));
  given = take();
  ASSERT_EQ(given.started.size(), 1U);
  EXPECT_EQ(given.started[0].item, 0U);
  driver.succeed(given.started[0]);
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST_F(CoreReserve, never_what_must_not_be_done_twice) {
  Plan plan = map_of(1);
  plan.steps[0].effect = Effect::at_most_once;
  driver.submit(std::move(plan), {.items = 3});
  EXPECT_TRUE(take().reserved.empty());
}

TEST_F(CoreReserve, never_for_runs_in_which_a_loss_costs_an_attempt) {
  Plan plan = map_of(1);
  plan.rules = Rules::all_ends_alike;
  driver.submit(std::move(plan), {.items = 3});
  EXPECT_TRUE(take().reserved.empty());
}

TEST_F(CoreReserve, never_where_a_clock_begins_with_the_first_start) {
  Policy policy = steady(3, 1s);
  policy.max_elapsed = 10s;
  policy.elapsed_from = ElapsedFrom::first_start;
  driver.submit(map_of(1, policy), {.items = 3});
  EXPECT_TRUE(take().reserved.empty());
}

TEST_F(CoreReserve, not_while_something_outside_has_a_place) {
  driver.ahead = 0;
  driver.submit(map_of(2), {.items = 5});
  const Given given = take();
  driver.ahead = 1;
  RunId other;
  other.bytes[15] = 1;
  EXPECT_TRUE(driver.core.handed_over(given.started.at(0), {.run = other}, driver.now));
  driver.succeed(given.started.at(1));
  const Given next = take();
  EXPECT_EQ(next.started.size(), 1U);
  EXPECT_TRUE(next.reserved.empty()) << "the executor does not know of the one outside";
  driver.succeed(given.started[0]);
  EXPECT_EQ(driver.core.effects().settled, std::vector{given.started[0]}) << "the executor kept its place";
}

// The sub-flow may need the place of the handler that the next item is promised.
TEST_F(CoreReserve, one_that_goes_outside_takes_the_others_back) {
  core::Run& run = driver.submit(map_of(1), {.items = 3});
  const Given given = take();
  RunId other;
  other.bytes[15] = 1;
  EXPECT_TRUE(driver.core.handed_over(given.started.at(0), {.run = other}, driver.now));
  EXPECT_EQ(taken_back(), given.reserved);
  give_back(given.reserved.at(0));
  EXPECT_EQ(run.taken(), 1U);
  EXPECT_TRUE(driver.starts_nothing());
}

TEST_F(CoreReserve, a_pause_takes_it_back_and_it_has_its_number_again) {
  core::Run& run = driver.submit(map_of(1), {.items = 4});
  const Given given = take();
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  EXPECT_EQ(taken_back(), given.reserved);
  EXPECT_TRUE(give_back(given.reserved.at(0)));
  EXPECT_EQ(status_of(run, 1), ItemStatus::untouched);
  EXPECT_EQ(run.reserved, 0U);
  EXPECT_FALSE(give_back(given.reserved[0])) << "once";
  driver.succeed(given.started.at(0));
  EXPECT_TRUE(driver.starts_nothing());
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  const Given again = take();
  ASSERT_EQ(again.started.size(), 1U);
  EXPECT_EQ(again.started[0].item, 1U);
  EXPECT_EQ(run.steps[0].touched(1)->attempt, 1U);
}

TEST_F(CoreReserve, what_began_before_it_could_be_taken_back_goes_on) {
  core::Run& run = driver.submit(map_of(1), {.items = 3});
  const Given given = take();
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  begins(given.reserved.at(0));
  driver.succeed(given.started.at(0));
  driver.succeed(given.reserved[0]);
  EXPECT_EQ(run.steps[0].succeeded, 2U);
  EXPECT_TRUE(driver.starts_nothing());
}

// They come back in any order, and are begun in theirs.
TEST_F(CoreReserve, several_that_are_given_back) {
  core::Run& run = driver.submit(map_of(3), {.items = 8});
  Given given = take();
  ASSERT_EQ(given.reserved.size(), 3U);  // 3, 4, 5
  ASSERT_TRUE(driver.core.pause(run, driver.now));
  give_back(given.reserved[1]);
  give_back(given.reserved[0]);
  begins(given.reserved[2]);
  core::Run& loaded = driver.reload(run);
  EXPECT_EQ(loaded.steps[0].map->returned, (std::vector<std::uint32_t>{4, 3})) << "it follows from the items";
  driver.core.adopt(loaded, driver.now);
  ASSERT_TRUE(driver.core.resume(loaded, driver.now));
  driver.advance(10s);
  std::set<std::uint32_t> items;
  for (int round = 0; round < 20; ++round) {
    given = take();
    for (const auto& list : {given.started, given.reserved}) {
      for (const AttemptId& id : list) {
        EXPECT_TRUE(items.insert(id.item).second) << id.item;
        driver.succeed(id);
      }
    }
  }
  EXPECT_EQ(items.size(), 8U);
  EXPECT_EQ(loaded.status, RunStatus::succeeded);
}

TEST_F(CoreReserve, a_cancel_ends_the_run_when_all_have_answered) {
  core::Run& run = driver.submit(map_of(1), {.items = 3});
  const Given given = take();
  ASSERT_TRUE(driver.core.cancel(run, "enough", driver.now));
  EXPECT_EQ(driver.core.effects().cancels, (std::vector{given.started.at(0), given.reserved.at(0)}));
  driver.core.interrupted(given.started[0], driver.now);
  EXPECT_EQ(run.status, RunStatus::running) << "one may have begun";
  give_back(given.reserved[0]);
  EXPECT_EQ(run.status, RunStatus::canceled);
  ASSERT_TRUE(driver.core.resume(run, driver.now));
  Given again = take();
  for (int round = 0; round < 5 && again.started.size() + again.reserved.size() > 0; ++round) {
    if (!again.started.empty()) driver.succeed(again.started[0]);
    if (!again.reserved.empty()) driver.succeed(again.reserved[0]);
    again = take();
  }
  EXPECT_EQ(run.status, RunStatus::succeeded);
}

TEST_F(CoreReserve, a_step_that_has_failed_takes_them_back_and_waits_for_them) {
  core::Run& run = driver.submit(map_of(2, steady(1, 0s)), {.items = 8});
  const Given given = take();
  driver.fail(given.started.at(0), hopeless);
  EXPECT_EQ(taken_back(), given.reserved);
  driver.succeed(given.started.at(1));
  EXPECT_EQ(run.status, RunStatus::running);
  give_back(given.reserved[0]);
  begins(given.reserved[1]);  // on another place, before the failure was known
  EXPECT_EQ(run.status, RunStatus::running);
  driver.succeed(given.reserved[1]);
  EXPECT_EQ(run.status, RunStatus::failed);
  EXPECT_TRUE(driver.starts_nothing());
}

TEST_F(CoreReserve, what_the_executor_was_not_given_yet_it_does_not_get) {
  core::Run& run = driver.submit(map_of(1, steady(1, 0s)), {.items = 3});
  driver.core.dispatch([](const HandlerAddress&) { return 10U; }, 100, driver.now,
                       [](const HandlerAddress&, std::uint32_t) { return 1U; });
  ASSERT_EQ(driver.core.effects().starts.size(), 2U);
  driver.core.failed(driver.core.effects().starts[0].id, hopeless, false, driver.now);
  EXPECT_EQ(driver.core.effects().starts.size(), 1U);
  EXPECT_TRUE(taken_back().empty());
  EXPECT_EQ(run.status, RunStatus::failed);
}

TEST_F(CoreReserve, going_back_forgets_it) {
  StepPlan work = for_each_step("work", 0);
  work.max_parallel = 1;
  Plan plan = flow({call("first"), work, with(call("other", {0}, steady(1, 0s)), OnFailure::revisit, 0)});
  for (StepPlan& step : plan.steps) step.max_visits = 3;
  driver.list_items = 4;
  core::Run& run = driver.submit(std::move(plan));
  driver.succeed(driver.start_one());
  const Given given = take();
  ASSERT_EQ(given.started.size(), 2U);
  ASSERT_EQ(given.reserved.size(), 1U);
  driver.core.failed(given.started[given.started[0].step == 2 ? 0 : 1], hopeless, false, driver.now);
  EXPECT_EQ(run.steps[0].visits, 2U);
  EXPECT_EQ(run.reserved, 0U);
  EXPECT_EQ(std::ranges::count(driver.core.effects().cancels, given.reserved[0]), 1);
  EXPECT_FALSE(give_back(given.reserved[0])) << "nobody waits for it";
  EXPECT_EQ(driver.core.counters().reserved, 0U);
}

TEST_F(CoreReserve, a_crash_loses_it_at_no_cost) {
  Policy once = steady(1, 0s);
  once.worker_lost_max = 0;
  core::Run& run = driver.submit(map_of(1, once), {.items = 3});
  take();
  core::Run& loaded = driver.reload(run);
  driver.core.adopt(loaded, driver.now);
  const Item& lost = *loaded.steps[0].touched(1);
  EXPECT_EQ(status_of(loaded, 0), ItemStatus::failed) << "its limit of losses is 0";
  EXPECT_EQ(lost.status, ItemStatus::waiting) << "nobody knows whether it had begun";
  EXPECT_EQ(lost.used_attempts(), 0U);
  EXPECT_EQ(lost.trouble->lost, 1U);
  EXPECT_EQ(lost.trouble->lost_in_a_row, 0U);
  EXPECT_EQ(lost.first_started, 0);
  EXPECT_EQ(lost.attempt, 1U) << "a number names one attempt for ever";
}

TEST_F(CoreReserve, it_is_reserved_once) {
  core::Run& run = driver.submit(map_of(1), {.items = 2});
  take();
  core::Run& loaded = driver.reload(run);
  driver.core.adopt(loaded, driver.now);
  const Given given = take();
  ASSERT_EQ(given.started.size(), 1U);
  EXPECT_TRUE(given.reserved.empty()) << "what may have killed the engine is recorded as started the next time";
  driver.succeed(given.started[0]);
  EXPECT_EQ(take().started.size(), 1U);
}

}  // namespace
}  // namespace reprise::core
