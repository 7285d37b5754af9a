// Reports: what an engine did, told by its events, agrees with the engine's own state.
#include "observe/report/run_report.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <reprise/engine.hpp>

#include "runtime/snapshot.hpp"
#include "support/run_program.hpp"
#include "support/told_run.hpp"

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;
using testing_support::TemporaryDirectory;

std::shared_ptr<const core::Plan> plan_of(std::uint32_t tolerate = 0) {
  auto plan = std::make_shared<core::Plan>();
  plan->name = "test";
  core::StepPlan list;
  list.name = std::make_shared<const std::string>("list");
  core::StepPlan each;
  each.name = std::make_shared<const std::string>("each");
  each.needs = {0};
  each.for_each = true;
  each.tolerate = tolerate;
  plan->steps = {list, each};
  plan->connect();
  return plan;
}

class Story {  // events in order
 public:
  explicit Story(RunReporter& reporter) : reporter_{reporter} {}

  void tell(EventType type, std::string step = "", std::uint32_t item = 0, std::uint64_t attempt = 0) {
    Event event{.type = type,
                .sequence = ++sequence_,
                .time = WallTime{Duration{sequence_}},
                .step = std::move(step),
                .item = item,
                .attempt = attempt};
    if (type == EventType::prepared) event.items = item;
    if (type == EventType::failed) event.failure = Failure{.message = "no"};
    if (type == EventType::failed) event.reason = StopReason::attempts;
    if (type == EventType::retrying) event.delay = 1s;
    if (type == EventType::prepared) event.item = 0;
    reporter_.add(event);
  }
  void fail_once(std::uint32_t item) {
    tell(EventType::started, "each", item, 1);
    Event failed{.type = EventType::failed, .step = "each", .item = item, .attempt = 1, .will_retry = true};
    failed.failure = Failure{.message = "no"};
    reporter_.add(failed);
    tell(EventType::retrying, "each", item, 1);
  }
  void fail_many_items_and_then_the_other_step() {
    tell(EventType::prepared, "each", 200);
    for (std::uint32_t item = 0; item < 200; ++item) {
      tell(EventType::started, "each", item, 1);
      tell(EventType::failed, "each", item, 1);
    }
    tell(EventType::started, "list", 0, 1);
    tell(EventType::failed, "list", 0, 1);
  }

 private:
  RunReporter& reporter_;
  std::uint64_t sequence_ = 0;
};

TEST(ObserveRunReport, CountsStepsAndKeepsOnlyTrouble) {
  RunReporter reporter{plan_of()};
  Story story{reporter};
  story.tell(EventType::submitted);
  story.tell(EventType::started, "list", 0, 1);
  EXPECT_EQ(reporter.report().steps[0].running, 1U);
  story.tell(EventType::completed, "list", 0, 1);
  story.tell(EventType::prepared, "each", 4);
  story.tell(EventType::started, "each", 0, 1);
  story.tell(EventType::completed, "each", 0, 1);
  story.fail_once(1);
  EXPECT_EQ(reporter.report().troubled.size(), 1U);
  EXPECT_EQ(reporter.report().troubled[0].status, core::ItemStatus::waiting);
  story.tell(EventType::started, "each", 1, 2);
  story.tell(EventType::completed, "each", 1, 2);
  story.fail_once(2);
  story.tell(EventType::started, "each", 2, 2);
  story.tell(EventType::failed, "each", 2, 2);
  const RunReport report = reporter.report();
  EXPECT_EQ(report.steps[0].status, core::StepStatus::succeeded);
  const StepReport& each = report.steps[1];
  EXPECT_EQ(each.status, core::StepStatus::failed);  // more than it tolerates, and nothing runs
  EXPECT_EQ(each.items, 4U);
  EXPECT_EQ(each.succeeded, 2U);
  EXPECT_EQ(each.failed, 1U);
  EXPECT_EQ(each.attempts, 5U);
  EXPECT_EQ(each.retries, 2U);
  EXPECT_EQ(each.rescued, 1U);
  EXPECT_EQ(each.waited, 2ns) << "as far as they happened, and no more than was planned";
  ASSERT_EQ(report.troubled.size(), 1U);
  EXPECT_EQ(report.troubled[0].item, 2U);
  EXPECT_EQ(report.troubled[0].attempts, 2U);
  EXPECT_EQ(report.troubled[0].reason, StopReason::attempts);
  EXPECT_EQ(report.attempts(), 6U);
  EXPECT_EQ(report.failed(), 1U);
}

TEST(ObserveRunReport, KeepsAsManyDetailsAsItMay) {
  RunReporter reporter{plan_of(1000), {.stories_max = 10}};
  Story story{reporter};
  story.tell(EventType::prepared, "each", 100);
  for (std::uint32_t item = 0; item < 100; ++item) {
    story.tell(EventType::started, "each", item, 1);
    story.tell(EventType::failed, "each", item, 1);
  }
  const RunReport report = reporter.report();
  EXPECT_EQ(report.troubled.size(), 10U);
  EXPECT_EQ(report.without_details, 90U);
  EXPECT_EQ(report.steps[1].failed, 100U);
  EXPECT_EQ(report.steps[1].status, core::StepStatus::succeeded);  // all of that is tolerated
}

TEST(ObserveRunReport, BeginsAgainWhatIsReopenedOrRevisited) {
  RunReporter reporter{plan_of()};
  Story story{reporter};
  story.tell(EventType::started, "list", 0, 1);
  story.tell(EventType::failed, "list", 0, 1);
  story.tell(EventType::unreachable, "each");
  story.tell(EventType::ended);
  EXPECT_EQ(reporter.report().steps[1].status, core::StepStatus::unreachable);
  story.tell(EventType::reopened);
  EXPECT_EQ(reporter.report().steps[0].waiting, 1U);
  EXPECT_EQ(reporter.report().steps[0].failed, 0U);
  EXPECT_EQ(reporter.report().steps[1].status, core::StepStatus::pending);
  story.tell(EventType::started, "list", 0, 1);
  story.tell(EventType::completed, "list", 0, 1);
  story.tell(EventType::prepared, "each", 2);
  story.tell(EventType::started, "each", 1, 1);
  story.tell(EventType::failed, "each", 1, 1);
  story.tell(EventType::revisited, "list");
  const RunReport report = reporter.report();
  EXPECT_EQ(report.steps[0].status, core::StepStatus::active);  // it may begin at once
  EXPECT_EQ(report.steps[0].succeeded, 0U);
  EXPECT_EQ(report.steps[1].failed, 0U);
  EXPECT_TRUE(report.troubled.empty());
  EXPECT_EQ(report.steps[0].attempts, 2U);  // what was done stays done
}

// Runs of all kinds through the real engine; the report of their events says what the engine's state says.
TEST(ObserveRunReport, AgreesWithTheEngine) {
  const TemporaryDirectory folder;
  const std::string url = "sqlite:" + folder.path() + "/runs.db";
  std::vector<RunId> ids;
  {
    Engine engine{{.store = url, .threads = 4}};
    Policy quick;
    quick.max_attempts = 3;
    quick.initial = 1ms;
    ASSERT_TRUE(engine.handle("list", [](Work& work) -> std::expected<std::string, Failure> {
      std::vector<std::string> items;
      for (const char c : work.input()) items.emplace_back(1, c);
      return encode_list(items);
    }));
    ASSERT_TRUE(engine.handle("do",
                              [](Work& work) -> std::expected<std::string, Failure> {  // a digit: how often it fails
                                const std::string_view input = work.input();
                                if (input.empty() || input == "x")
                                  return std::unexpected{Failure{.type = "ValueError"}};
                                if (work.attempt() <= static_cast<std::uint64_t>(input[0] - '0'))
                                  return std::unexpected{Failure{.type = "TimeoutError"}};
                                return std::string{input};
                              },
                              {.retry = quick}));
    for (const OnFailure rule : {OnFailure::fail, OnFailure::proceed, OnFailure::skip, OnFailure::dead_letter}) {
      const std::string name = "flow" + std::to_string(static_cast<int>(rule));
      ASSERT_TRUE(engine.flow(
          {.name = name,
           .steps = {{.name = "list", .handler = "list"},
                     {.name = "each", .handler = "do", .needs = {"list"}, .for_each = "list", .on_failure = rule},
                     {.name = "pause", .needs = {"each"}, .wait = 1ms},
                     {.name = "last", .handler = "list", .needs = {"pause"}}}}));
      for (const std::string input : {"", "000", "0120", "123x", "xx"}) {
        ids.push_back(engine.submit({.flow = name, .input = input}).value());
      }
    }
    ids.push_back(engine.submit({.handler = "do", .items = {"0", "1", "x", "9"}}).value());
    for (const RunId& run : ids) ASSERT_TRUE(engine.wait(run, 60s));
    for (std::size_t index = 0; index < ids.size(); index += 2) {
      if (!engine.retry_failed(ids[index])) continue;  // nothing in it has failed
      ASSERT_TRUE(engine.wait(ids[index], 60s));
    }
  }
  auto snapshot = runtime::Snapshot::open(url);
  ASSERT_TRUE(snapshot);
  for (const RunId& run : ids) {
    const auto view = snapshot->run(run);
    ASSERT_TRUE(view && *view);
    const auto& steps = (*view)->steps;
    RunReporter reporter{(*view)->plan};
    ASSERT_TRUE(snapshot->each_event(run, [&](const Event& event) {
      reporter.add(event);
      return true;
    }));
    const RunReport report = reporter.report();
    EXPECT_EQ(report.status, (*view)->info.status);
    EXPECT_EQ(report.ended, (*view)->info.ended);
    for (std::size_t step = 0; step < steps.size(); ++step) {
      EXPECT_EQ(report.steps[step].status, steps[step].status) << steps[step].name;
      EXPECT_EQ(report.steps[step].items, steps[step].items) << steps[step].name;
      EXPECT_EQ(report.steps[step].succeeded, steps[step].succeeded) << steps[step].name;
      EXPECT_EQ(report.steps[step].failed, steps[step].failed) << steps[step].name;
      EXPECT_EQ(report.steps[step].running, steps[step].running) << steps[step].name;
    }
    EXPECT_TRUE(snapshot->replay(run)->is_same);
  }
}

TEST(ObserveRunReport, SaysWhatRetriesWereGoodFor) {
  testing_support::ToldRun run{{.name = "fetch", .for_each = true, .on_failure = OnFailure::dead_letter}};
  RunReporter reporter{run.plan()};
  const Failure no{.message = "no"};
  const auto retry = [&](std::uint32_t item, std::uint64_t attempt, Duration delay) {
    reporter.add(run.started("fetch", item, attempt));
    reporter.add(run.failed("fetch", item, attempt, no));
    reporter.add(run.retrying("fetch", item, attempt, no, delay));
  };
  const auto counts = [&] {
    const RunReport report = reporter.report();
    return std::vector<std::uint64_t>{report.retries(), report.sum(&StepReport::retried),
                                      report.sum(&StepReport::succeeded_after_retry),
                                      report.sum(&StepReport::failed_after_retries)};
  };
  reporter.add(run.prepared("fetch", 6));
  reporter.add(run.started("fetch", 0));
  reporter.add(run.completed("fetch", 0));
  reporter.add(run.started("fetch", 1));
  reporter.add(run.failed("fetch", 1, 1, no, StopReason::permanent));
  EXPECT_EQ(counts(), (std::vector<std::uint64_t>{0, 0, 0, 0})) << "work that needed no retry";
  retry(2, 1, 1s);
  reporter.add(run.started("fetch", 2, 2));
  reporter.add(run.completed("fetch", 2, 2));
  retry(3, 1, 2s);
  retry(3, 2, 4s);
  reporter.add(run.started("fetch", 3, 3));
  reporter.add(run.failed("fetch", 3, 3, no, StopReason::attempts));
  retry(4, 1, 8s);
  retry(5, 1, 16s);
  reporter.add(run.failed("fetch", 5, 2, no, StopReason::canceled));
  EXPECT_EQ(counts(), (std::vector<std::uint64_t>{5, 4, 1, 1}));
  EXPECT_EQ(reporter.report().waited(), 0s) << "planned were 31s, and no time has passed";
  reporter.add(run.event(EventType::reopened));
  reporter.add(run.started("fetch", 3));
  EXPECT_EQ(counts().back(), 0U) << "it is tried again";
  reporter.add(run.completed("fetch", 3));
  EXPECT_EQ(counts(), (std::vector<std::uint64_t>{5, 4, 2, 0}));
  Event for_ever = run.retrying("fetch", 4, 2, no, 1s);
  for_ever.delay = Duration::max();
  reporter.add(for_ever);
  Event later = run.started("fetch", 4, 3);
  later.time = for_ever.time + 3s;
  reporter.add(later);
  EXPECT_EQ(reporter.report().waited(), 3s);
}

// A list that may fail must not hide the step that made the run fail.
TEST(ObserveRunReport, KeepsDetailsOfEveryStepHoweverManyItemsFailedBefore) {
  RunReporter reporter{plan_of(1'000), {.stories_max = 2}};
  Story{reporter}.fail_many_items_and_then_the_other_step();
  const RunReport report = reporter.report();
  ASSERT_FALSE(report.troubled.empty());
  EXPECT_EQ(report.steps[report.troubled.front().step].name, "list");
  EXPECT_EQ(report.troubled.front().tries.size(), 1U);
  EXPECT_LT(report.troubled.size(), 20U);
  EXPECT_EQ(report.troubled.size() + report.without_details, 201U);
}

TEST(ObserveRunReport, KeepsTheAttemptsOfEveryStepHoweverManyItemsFailedBefore) {
  RunReporter reporter{plan_of(1'000)};
  Story{reporter}.fail_many_items_and_then_the_other_step();
  EXPECT_EQ(reporter.report().troubled.front().tries.size(), 1U);
  EXPECT_TRUE(reporter.report().troubled.back().tries.empty());
}

}  // namespace
}  // namespace reprise::observe
