// Drives the state machine by hand: plans in a few words, a clock that the test moves, and the events as they were recorded.
//
//   CoreDriver driver;
//   Run& run = driver.submit(task(steady(3, 1s)));
//   driver.fail(driver.start_one(), timeout);          // attempt 1
//   driver.advance(1s);
//   driver.succeed(driver.start_one(), "done");        // attempt 2
//   EXPECT_EQ(run.status, RunStatus::succeeded);
//
// When a driver goes away, every run it has is replayed from its events and must have the same bytes; and the public events of the run,
// which is what is shown to people, must lead to the same states of steps and items, one after the other.
// Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/core.hpp"
#include "event/codec.hpp"
#include "event/history.hpp"

namespace reprise::testing_support {

using core::AttemptId;
using core::Core;
using core::Plan;
using core::Run;
using core::StepPlan;
using core::Time;

inline constexpr Time start_of_time = 1'700'000'000'000'000'000;

// ---- plans ----------------------------------------

inline Policy steady(std::uint64_t attempts, Duration delay) {
  return {.max_attempts = attempts,
          .backoff = Backoff::constant,
          .initial = delay,
          .max = std::nullopt,
          .jitter = Jitter::none};
}

inline StepPlan call(std::string name, std::vector<std::uint32_t> needs = {},
                     Policy policy = steady(3, std::chrono::seconds{1})) {
  StepPlan step;
  step.name = std::make_shared<const std::string>(std::move(name));
  step.handler = "work";
  step.needs = std::move(needs);
  step.policy = std::move(policy);
  return step;
}

inline StepPlan wait_step(std::string name, Duration wait, std::vector<std::uint32_t> needs = {}) {
  StepPlan step = call(std::move(name), std::move(needs));
  step.kind = core::StepKind::wait;
  step.handler.clear();
  step.wait = wait.count();
  return step;
}

inline StepPlan signal_step(std::string name, std::string signal, Duration timeout = {},
                            std::vector<std::uint32_t> needs = {}) {
  StepPlan step = wait_step(std::move(name), timeout, std::move(needs));
  step.kind = core::StepKind::signal;
  step.signal = std::move(signal);
  return step;
}

inline StepPlan for_each_step(std::string name, std::uint32_t list_step,
                              Policy policy = steady(3, std::chrono::seconds{1})) {
  StepPlan step = call(std::move(name), {list_step}, std::move(policy));
  step.for_each = true;
  step.list_step = list_step;
  return step;
}

inline StepPlan with(StepPlan step, OnFailure rule, std::uint32_t revisit = 0) {
  step.on_failure = rule;
  step.revisit = revisit;
  return step;
}

inline Plan flow(std::vector<StepPlan> steps) {
  Plan plan{.name = "flow", .steps = std::move(steps)};
  plan.connect();
  return plan;
}

// A durable function; what it does is added while it lives.
inline Plan function_plan() {
  Plan plan{.name = "function", .steps = {call("function", {}, steady(1, {}))}};
  plan.is_function = true;
  return plan;
}

inline Plan task(Policy policy) { return flow({call("work", {}, std::move(policy))}); }

// ---- events ----------------------------------------

// A record with its own memory.
struct Recorded {
  event::Record record;
  Failure failure;
  std::string text;
  std::string payload;

  EventType type() const { return record.type; }
};

inline std::vector<Recorded> events_of(const Run& run) {
  std::vector<Recorded> events;
  event::ChunkReader reader{run.events, run.events_first};
  event::Record record;
  while (reader.next(record)) {
    Recorded& kept =
        events.emplace_back(Recorded{record, {}, std::string{record.text}, std::string{record.payload.bytes}});
    if (record.failure != nullptr) kept.failure = *record.failure;
    kept.record.failure = nullptr;
    kept.record.text = {};
    kept.record.payload = {};
  }
  EXPECT_TRUE(reader.ok());
  return events;
}

inline std::vector<std::string> names_of(const Run& run) {
  std::vector<std::string> names;
  for (const Recorded& event : events_of(run)) names.emplace_back(name_of(event.type()));
  return names;
}

inline std::string state_of(const Run& run) {
  std::string bytes;
  core::encode_state(run, bytes);
  return bytes;
}

// What people are shown of a state; all of it follows from the public events.
inline std::vector<std::uint64_t> shown_of(const Run& run) {
  std::vector<std::uint64_t> all{static_cast<std::uint64_t>(run.status),    static_cast<std::uint64_t>(run.reason),
                                 static_cast<std::uint64_t>(run.created),   static_cast<std::uint64_t>(run.ended),
                                 static_cast<std::uint64_t>(run.paused_at), run.cancel_requested ? 1U : 0U};
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    core::StepState& state = run.steps[step];
    for (const auto number : {static_cast<std::uint64_t>(state.status), std::uint64_t{state.items},
                              std::uint64_t{state.running}, std::uint64_t{state.succeeded}, std::uint64_t{state.failed},
                              std::uint64_t{state.canceled}, static_cast<std::uint64_t>(state.activated)})
      all.push_back(number);
    state.for_each_item([&](std::uint32_t index, const core::Item& item) {
      for (const auto number : {std::uint64_t{index}, static_cast<std::uint64_t>(item.status),
                                static_cast<std::uint64_t>(item.due), std::uint64_t{item.attempt},
                                std::uint64_t{item.stage}, item.dead_letter ? std::uint64_t{1} : std::uint64_t{0},
                                static_cast<std::uint64_t>(item.trouble != nullptr ? item.trouble->waited : 0)})
        all.push_back(number);
    });
  }
  return all;
}

// ---- the driver ----------------------------------------

struct SubmitOptions {
  std::uint32_t items = 0;
  Duration delay{0};
  std::uint8_t priority = 5;
  bool asleep = false;
  core::RunFacts facts = {};  // what the run has for itself; its bytes are worked out
};

class CoreDriver {
 public:
  explicit CoreDriver(std::uint64_t seed = 1) : seed_{seed} { open("work", 0); }
  CoreDriver(const CoreDriver&) = delete;
  CoreDriver& operator=(const CoreDriver&) = delete;
  ~CoreDriver() {
    core.for_each_run([&](Run& run) { expect_replays(run); });
  }

  const core::NumberedPlan* add(Plan plan) {
    plan.connect();
    plans.push_back(std::make_shared<const Plan>(std::move(plan)));
    return core.add_plan(static_cast<std::uint32_t>(plans.size() - 1), plans.back());
  }

  Run& submit(Plan plan, const SubmitOptions& options = {}) { return submit(add(std::move(plan)), options); }
  Run& submit(const core::NumberedPlan* plan, const SubmitOptions& options = {}) {
    std::unique_ptr<const core::RunFacts> facts;
    if (const std::string bytes = core::encode_facts(options.facts); !bytes.empty())
      facts = core::FactsDecoder{}.read(bytes);
    return core.submit({.run = next_run++,
                        .plan = plan,
                        .items = options.items,
                        .due = options.delay.count() > 0 ? now + options.delay.count() : 0,
                        .priority = options.priority,
                        .facts = std::move(facts),
                        .asleep = options.asleep},
                       now);
  }

  // Fires what is due, counts every list as `list_items` says (unless the test does), and starts what is ready.
  void turn() {
    while (core.due(now, timers_a_turn)) {
    }
    std::vector<core::Prepare> prepares;
    if (answers_prepares) prepares.swap(core.effects().prepares);
    for (const core::Prepare& prepare : prepares)
      core.prepared(prepare.run, prepare.step, list_items, prepare.list.view(), now);
    const std::size_t running = core.counters().running;
    core.dispatch([&](const core::HandlerAddress&) { return capacity > running ? capacity - running : 0; }, 4096, now,
                  [&](const core::HandlerAddress&, std::uint32_t places) { return ahead * places; });
    for (core::Start& start : core.effects().starts) starts.push_back(start);
    core.effects().starts.clear();
  }
  void advance(Duration span) {
    now += span.count();
    turn();
  }

  // What was started and nobody has taken yet.
  std::vector<core::Start> take_starts() {
    turn();
    return std::exchange(starts, {});
  }
  AttemptId start_one() {
    const std::vector<core::Start> started = take_starts();
    EXPECT_EQ(started.size(), 1U);
    return started.empty() ? AttemptId{} : started.front().id;
  }
  bool starts_nothing() { return take_starts().empty(); }

  // An operation of a function, as a task with this plan would do it. Its step.
  std::uint32_t begin(Run& run, const core::NumberedPlan* plan, std::string_view path,
                      event::OperationKind kind = event::OperationKind::call, Duration wait = {}) {
    const std::uint32_t step = core.called(run,
                                           {.kind = kind,
                                            .plan = plan,
                                            .path = path,
                                            .name = plan->plan->steps.front().signal,
                                            .place = "test.cpp:1",
                                            .due = wait.count() > 0 ? now + wait.count() : 0},
                                           now);
    turn();
    return step;
  }

  bool succeed(const AttemptId& id, std::string_view output = {}) {
    const bool taken = core.succeeded(id, {output, output.size(), false}, now);
    turn();
    return taken;
  }
  bool fail(const AttemptId& id, const Failure& failure) {
    const bool taken = core.failed(id, failure, false, now);
    turn();
    return taken;
  }
  Core::Answer signal(Run& run, std::string_view name, std::string_view payload = {}) {
    auto answer = core.signal(run, name, {payload, payload.size(), false}, now);
    turn();
    return answer;
  }
  // A new process, in which the bytes of the runs are all that is left. This run is still to be adopted; the others are.
  Run& reload(Run& run) {
    const std::uint64_t number = run.number;
    std::map<std::uint64_t, std::string> images;
    core.for_each_run([&](Run& other) { images.emplace(other.number, state_of(other)); });
    starts.clear();
    storage_.emplace(now, seed_ + images.size());
    for (std::uint32_t plan = 0; plan < plans.size(); ++plan) core.add_plan(plan, plans[plan]);
    open("work", work_limit_);
    for (const auto& [other, image] : images) {
      Run& loaded = core.add(other);
      EXPECT_TRUE(core.restore(loaded, image));
      EXPECT_EQ(state_of(loaded), image);
      if (other != number) core.adopt(loaded, now);
    }
    return *core.find(number);
  }
  void open(std::string_view handler, std::uint32_t limit) {
    core.open_queue(handler, {}, limit);
    if (handler == "work") work_limit_ = limit;
  }

  // The state of the run as its events tell it, on a core that knows nothing else.
  std::string replayed(const Run& run) const {
    Core other{start_of_time, 99};
    for (std::uint32_t number = 0; number < plans.size(); ++number) other.add_plan(number, plans[number]);
    Run& copy = other.add(run.number);
    EXPECT_TRUE(other.replay(copy, run.events, run.events_first));
    EXPECT_EQ(copy.events, run.events);
    return copy.plan == nullptr ? "" : state_of(copy);
  }
  void expect_replays(const Run& run) const {
    if (run.plan == nullptr || run.events.empty() || run.events_first != 1) return;  // its first events are elsewhere
    EXPECT_EQ(replayed(run), state_of(run)) << "run " << run.number << " after " << run.sequence << " events";
    if (run.function == nullptr) expect_shown_alike(run);  // operations are no steps of the plan, and not shown as such
  }
  // Records on the one side, the public events made of them on the other.
  void expect_shown_alike(const Run& run) const {
    std::vector<std::string> names;
    event::StepNumbers numbers;
    for (const StepPlan& step : run.plan->plan->steps) {
      numbers.emplace(*step.name, static_cast<std::uint32_t>(names.size()));
      names.push_back(*step.name);
    }
    if (numbers.size() != names.size()) return;  // only tests have two steps of one name
    event::EventHistory history{{}, step_labels(*run.plan->plan)};
    Core recorded{start_of_time, 99};
    for (std::uint32_t number = 0; number < plans.size(); ++number) recorded.add_plan(number, plans[number]);
    Core told{start_of_time, 99};
    told.add_plan(0, run.plan->plan);
    Run& by_records = recorded.add(1);
    Run& by_events = told.add(1);
    event::ChunkReader reader{run.events, run.events_first};
    event::Record record;
    while (reader.next(record)) {
      const Event event = history.add(record);
      const auto back = event::record_of(event, numbers);
      ASSERT_TRUE(back && told.replay(by_events, *back) && recorded.replay(by_records, record));
      ASSERT_EQ(shown_of(by_events), shown_of(by_records))
          << "run " << run.number << " after event " << record.sequence << ", " << name_of(record.type);
    }
  }

 private:
  std::uint64_t seed_;
  std::uint32_t work_limit_ = 0;
  std::optional<Core> storage_{std::in_place, start_of_time, seed_};

 public:
  Core& core = *storage_;
  Time now = start_of_time;
  std::vector<std::shared_ptr<const Plan>> plans;
  std::vector<core::Start> starts;
  std::uint64_t next_run = 1;
  std::size_t capacity = 1000;
  std::size_t ahead = 0;  // attempts that are recorded ahead of each place
  std::size_t timers_a_turn = 1000;
  std::uint32_t list_items = 2;
  bool answers_prepares = true;  // false: the test does, from core.effects().prepares
};

}  // namespace reprise::testing_support
