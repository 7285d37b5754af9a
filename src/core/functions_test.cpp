// Runs of durable functions: operations that are added while they live, cancel, undo, forgetting, and replay of all of it.
#include <gtest/gtest.h>

#include "core/core.hpp"
#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;
using event::OperationKind;

// A run whose function has been started and handed over: it waits for what it is told.
struct FunctionRun {
  CoreDriver driver;
  const NumberedPlan* charge = driver.add(task(steady(2, 1s)));
  const NumberedPlan* refund = driver.add(flow({call("refund")}));
  const NumberedPlan* sleep = driver.add(flow({wait_step("sleep", {})}));
  const NumberedPlan* signal = driver.add(flow({signal_step("signal", "paid")}));
  core::Run& run = driver.submit(function_plan());
  AttemptId self = driver.start_one();

  FunctionRun() { driver.core.handed_over(self, {.returns = true}, driver.now); }

  // What the function would be told, by paths.
  std::vector<std::string> news() {
    std::vector<std::string> paths;
    for (; run.function->told < run.function->ended.size(); ++run.function->told)
      paths.push_back(run.operation(run.function->ended[run.function->told])->path);
    driver.core.effects().functions.clear();
    run.function->is_due = false;
    return paths;
  }
  const Item& item(std::uint32_t step) const { return *run.steps[step].touched(0); }
};

using Names = std::vector<std::string>;

TEST(CoreFunctions, AnOperationIsAStepLikeOthers) {
  FunctionRun f;
  const std::uint32_t step = f.driver.begin(f.run, f.charge, "0");
  EXPECT_EQ(step, 1U);
  EXPECT_EQ(f.run.step_count(), 2U);
  f.driver.fail(f.driver.start_one(), {.type = "TimeoutError", .message = "slow"});
  EXPECT_TRUE(f.news().empty()) << "its policy has another attempt";
  f.driver.advance(1s);
  f.driver.succeed(f.driver.start_one(), "receipt");
  EXPECT_EQ(f.news(), Names{"0"});
  EXPECT_EQ(f.item(1).output->bytes, "receipt");
  EXPECT_EQ(f.run.status, RunStatus::running) << "the function has not ended";
  f.driver.succeed(f.self, "done");
  EXPECT_EQ(f.run.status, RunStatus::succeeded);
  EXPECT_EQ(outcome_of(f.run).output, "done");
}

TEST(CoreFunctions, EndsAreToldInTheirOrder) {
  FunctionRun f;
  f.driver.begin(f.run, f.sleep, "0", OperationKind::sleep, 2s);
  f.driver.begin(f.run, f.sleep, "1", OperationKind::sleep, 1s);
  f.driver.begin(f.run, f.signal, "2", OperationKind::signal);
  EXPECT_TRUE(f.driver.signal(f.run, "paid", "yes"));
  f.driver.advance(1s);
  EXPECT_EQ(f.news(), (Names{"2", "1"}));
  EXPECT_EQ(f.item(3).output->bytes, "yes");
  f.driver.advance(1s);
  EXPECT_EQ(f.news(), (Names{"0"}));
}

TEST(CoreFunctions, ASignalThatCameBeforeIsTaken) {
  FunctionRun f;
  EXPECT_TRUE(f.driver.signal(f.run, "paid"));
  f.driver.begin(f.run, f.signal, "0", OperationKind::signal);
  EXPECT_EQ(f.news(), Names{"0"});
}

TEST(CoreFunctions, AWaitForASignalEndsWithItsTime) {
  FunctionRun f;
  f.driver.begin(f.run, f.signal, "0", OperationKind::signal, 1min);
  f.driver.advance(1min);
  EXPECT_EQ(f.news(), Names{"0"});
  EXPECT_EQ(f.item(1).status, ItemStatus::failed);
  EXPECT_EQ(f.item(1).trouble->failure.kind, FailureKind::timeout);
}

TEST(CoreFunctions, ARestartLosesAttemptsOfOperationsAndNotTheFunction) {
  FunctionRun f;
  f.driver.begin(f.run, f.charge, "0");
  f.driver.start_one();
  core::Run& loaded = f.driver.reload(f.run);
  f.driver.core.adopt(loaded, f.driver.now);
  EXPECT_EQ(loaded.steps[0].touched(0)->status, ItemStatus::outside);
  EXPECT_EQ(loaded.steps[1].touched(0)->status, ItemStatus::waiting) << "its attempt was lost, and is made again";
  EXPECT_EQ(f.driver.core.effects().functions, (std::vector<std::uint64_t>{loaded.number})) << "it is replayed";
  EXPECT_TRUE(f.driver.core.succeeded(f.self, {}, f.driver.now)) << "its token is the same";
}

TEST(CoreFunctions, UndosComeNewestFirstWhenTheFunctionFails) {
  FunctionRun f;
  f.driver.begin(f.run, f.refund, "0", OperationKind::undo);
  f.driver.begin(f.run, f.charge, "1", OperationKind::undo);
  EXPECT_TRUE(f.driver.starts_nothing()) << "their turn has not come";
  f.driver.fail(f.self, {.type = "std::runtime_error", .message = "nobody shipped it"});
  const AttemptId newest = f.driver.start_one();
  EXPECT_EQ(newest.step, 2U);
  EXPECT_EQ(f.run.status, RunStatus::running);
  f.driver.succeed(newest);
  f.driver.succeed(f.driver.start_one());
  EXPECT_EQ(f.run.status, RunStatus::failed);
  EXPECT_EQ(outcome_of(f.run).failure.message, "nobody shipped it");
}

TEST(CoreFunctions, UndosDoNotComeWhenTheFunctionSucceeds) {
  FunctionRun f;
  f.driver.begin(f.run, f.refund, "0", OperationKind::undo);
  f.driver.succeed(f.self);
  EXPECT_EQ(f.run.status, RunStatus::succeeded);
  EXPECT_TRUE(f.driver.starts_nothing());
}

TEST(CoreFunctions, AnUndoThatGivesUpDoesNotStopTheOthers) {
  FunctionRun f;
  f.driver.begin(f.run, f.refund, "0", OperationKind::undo);
  f.driver.begin(f.run, f.charge, "1", OperationKind::undo);
  f.driver.fail(f.self, {.type = "X", .message = "no"});
  f.driver.fail(f.driver.start_one(), {.type = "X", .message = "for good", .permanent = true});
  const AttemptId next = f.driver.start_one();
  EXPECT_EQ(next.step, 1U);
  f.driver.succeed(next);
  EXPECT_EQ(f.run.status, RunStatus::failed);
}

TEST(CoreFunctions, ACancelIsToldToTheFunctionAndStopsWhatItHasNotShielded) {
  FunctionRun f;
  f.driver.begin(f.run, f.refund, "0", OperationKind::undo);
  f.driver.begin(f.run, f.charge, "1");
  const AttemptId charging = f.driver.start_one();
  const std::uint32_t kept = f.driver.core.called(
      f.run, {.plan = f.charge, .path = "2", .place = "here", .shielded = true}, f.driver.now);
  const AttemptId shielded = f.driver.start_one();
  EXPECT_TRUE(f.driver.core.cancel(f.run, "enough", f.driver.now));
  EXPECT_EQ(f.driver.core.effects().cancels, std::vector<AttemptId>{charging});
  EXPECT_EQ(f.run.steps[2].status, StepStatus::skipped);
  EXPECT_EQ(f.run.steps[kept].status, StepStatus::active);
  EXPECT_EQ(f.news(), Names{"1"});
  EXPECT_FALSE(f.driver.core.succeeded(charging, {}, f.driver.now)) << "it comes too late";
  f.driver.succeed(shielded);
  f.driver.fail(f.self, {.type = "Canceled", .failure_class = FailureClass::canceled});
  f.driver.succeed(f.driver.start_one());
  EXPECT_EQ(f.run.status, RunStatus::canceled);
  EXPECT_FALSE(f.driver.core.resume(f.run, f.driver.now));
}

TEST(CoreFunctions, ADeadlineIsACancelAndUndosHaveTheirTime) {
  CoreDriver driver;
  const NumberedPlan* const refund = driver.add(flow({call("refund")}));
  core::Run& run = driver.submit(function_plan(), {.facts = {.deadline = Duration{1min}.count()}});
  const AttemptId self = driver.start_one();
  driver.core.handed_over(self, {.returns = true}, driver.now);
  driver.begin(run, refund, "0", OperationKind::undo);
  driver.advance(1min);
  EXPECT_TRUE(run.function->canceling);
  driver.fail(self, {.type = "Canceled", .failure_class = FailureClass::canceled});
  driver.advance(1h);
  driver.succeed(driver.start_one());
  EXPECT_EQ(run.status, RunStatus::canceled);
  EXPECT_EQ(run.reason, StopReason::deadline);
}

TEST(CoreFunctions, AFunctionThatWasNeverBegunIsCancelledAtOnce) {
  CoreDriver driver;
  driver.capacity = 0;
  core::Run& run = driver.submit(function_plan());
  EXPECT_TRUE(driver.core.cancel(run, "", driver.now));
  EXPECT_EQ(run.status, RunStatus::canceled);
}

TEST(CoreFunctions, ATurnForgetsThoseBefore) {
  FunctionRun f;
  f.driver.begin(f.run, f.charge, "0");
  f.driver.succeed(f.driver.start_one(), "kept");
  for (std::uint32_t turn = 1; turn <= 100; ++turn) {
    f.driver.core.continued(f.run, "1", turn, {"state", 5, false}, f.driver.now);
    const std::string path = "1." + std::to_string(turn);
    EXPECT_EQ(f.driver.begin(f.run, f.charge, path + ".0"), 2U) << "its number is used again";
    f.driver.succeed(f.driver.start_one(), "forgotten");
    f.driver.begin(f.run, f.sleep, path + ".1", OperationKind::sleep, 1s);
    f.driver.advance(1s);
  }
  EXPECT_EQ(f.run.step_count(), 4U);
  EXPECT_EQ(f.run.function->ended.size(), 3U);
  EXPECT_EQ(f.item(1).output->bytes, "kept");
}

TEST(CoreFunctions, ADivergenceHoldsTheRun) {
  FunctionRun f;
  f.driver.begin(f.run, f.sleep, "0", OperationKind::sleep, 1s);
  f.driver.core.diverged(f.run, "it slept, and now it calls", f.driver.now);
  EXPECT_EQ(f.run.status, RunStatus::paused);
  f.driver.advance(1h);
  EXPECT_TRUE(f.news().empty());
  EXPECT_TRUE(f.driver.core.resume(f.run, f.driver.now));
  EXPECT_TRUE(f.run.function->divergence.empty());
  EXPECT_EQ(f.driver.core.effects().functions.size(), 1U) << "it is asked again";
}

TEST(CoreFunctions, TheStateSurvivesBeingStored) {
  FunctionRun f;
  f.driver.begin(f.run, f.charge, "0");
  f.driver.begin(f.run, f.refund, "1", OperationKind::undo);
  f.driver.begin(f.run, f.charge, "2", OperationKind::mark);
  f.driver.begin(f.run, f.sleep, "3", OperationKind::sleep, 1h);
  f.driver.core.published(f.run, {"half", 4, false}, f.driver.now);
  core::Run& loaded = f.driver.reload(f.run);
  EXPECT_EQ(loaded.function->open, (std::vector<std::uint32_t>{1, 4}));
  EXPECT_EQ(loaded.function->published.bytes, "half");
  EXPECT_EQ(loaded.operation(1)->place, "test.cpp:1");
  EXPECT_EQ(loaded.operation(2)->kind, OperationKind::undo);
}

TEST(CoreFunctions, ARunWithManyOperationsIsLookedAtByThoseThatAreOpen) {
  FunctionRun f;
  for (int count = 0; count < 1000; ++count) f.driver.begin(f.run, f.charge, std::to_string(count), OperationKind::mark);
  f.driver.begin(f.run, f.sleep, "s", OperationKind::sleep, 1h);
  std::size_t looked_at = 0;
  f.run.for_each_open_step([&](std::uint32_t) { ++looked_at; });
  EXPECT_EQ(looked_at, 2U);
  f.run.function->has_begun = true;  // its executor has it
  EXPECT_EQ(f.driver.core.idle_until(f.run), f.driver.now + Duration{1h}.count());
}

}  // namespace
}  // namespace reprise::core
