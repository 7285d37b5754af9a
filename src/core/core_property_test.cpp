// The state machine under random plans, inputs, clocks and restarts: what must hold whatever happens.
//
// After every input: the events replayed give the same bytes, twice; bytes survive being stored; counts and limits hold. At the end:
// the recorded story is a possible one, nothing began before its time, and every run can be brought to its end.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "core/core.hpp"
#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;
using event::OperationKind;

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_{seed} {}
  std::uint32_t below(std::uint32_t end) { return static_cast<std::uint32_t>(random_.between(0, end - 1)); }
  bool one_in(std::uint32_t chances) { return below(chances) == 0; }
  template <class T>
  const T& any_of(const std::vector<T>& values) {
    return values[below(static_cast<std::uint32_t>(values.size()))];
  }

 private:
  Random random_;
};

// ---- random plans ----------------------------------------

Policy any_policy(Dice& dice) {
  Policy policy;
  policy.max_attempts = 1 + dice.below(4);
  policy.backoff = static_cast<Backoff>(dice.below(6));
  policy.delays = {0s, 1s, 5s};
  policy.initial = dice.any_of<Duration>({0s, 1ms, 1s, 20s});
  policy.jitter = static_cast<Jitter>(dice.below(4));
  if (dice.one_in(4)) policy.max_elapsed = dice.any_of<Duration>({0s, 1s, 30s});
  if (dice.one_in(2)) policy.elapsed_from = ElapsedFrom::first_start;
  if (dice.one_in(5)) policy.retry_budget = 3s;
  policy.stops_on_class = !dice.one_in(3);
  return policy;
}

StepPlan any_step(Dice& dice, std::uint32_t index) {
  std::set<std::uint32_t> needed;
  for (std::uint32_t count = index > 0 ? dice.below(3) : 0; count > 0; --count) needed.insert(dice.below(index));
  const std::vector<std::uint32_t> needs{needed.begin(), needed.end()};
  const std::string name = "step " + std::to_string(index);
  StepPlan step;
  switch (index == 0 ? 9 : dice.below(10)) {
    case 0:
      step = wait_step(name, dice.any_of<Duration>({0s, 1s, 1min}), needs);
      break;
    case 1:
      step = signal_step(name, dice.one_in(2) ? "x" : "y", dice.any_of<Duration>({0s, 10s, 1min}), needs);
      break;
    case 2:
      step = call(name, needs, any_policy(dice));
      step.for_each = !needs.empty();
      step.list_step = needs.empty() ? 0 : dice.any_of(needs);
      break;
    default:
      step = call(name, needs, any_policy(dice));
  }
  if (step.kind == StepKind::call) step.handler = dice.one_in(3) ? "scarce" : "work";
  step.max_parallel = dice.below(3);
  step.on_failure = static_cast<OnFailure>(dice.below(5));
  step.tolerate = dice.one_in(3) ? dice.below(3) : step.on_failure == OnFailure::dead_letter ? UINT32_MAX : 0;
  step.revisit = needs.empty() || dice.one_in(2) ? index : dice.any_of(needs);
  step.max_visits = 1 + dice.below(3);
  step.breaker_limit = dice.below(4);
  step.breaker_classes = 0b1011;
  return step;
}

// What only documents have.
void make_document_step(Dice& dice, StepPlan& step) {
  step.prepares = dice.one_in(2);
  if (step.kind == StepKind::wait && dice.one_in(3)) step.wait_until = start_of_time + Duration{30s}.count();
  if (step.kind != StepKind::call) return;
  if (step.prepares && dice.one_in(3)) step.for_each = true;
  step.prepares = step.prepares || step.for_each;
  step.fallback = static_cast<FallbackRule>(dice.below(3));
  step.handles_failure = dice.one_in(3);
  if (dice.one_in(3)) step.tolerate_millionths = 400'000;
  step.runs_again = !dice.one_in(4);
  step.needs_success = dice.one_in(3);
  if (dice.one_in(3))
    step.item_breaker = {.failures = 1 + dice.below(2),
                         .successes = 1 + dice.below(3),
                         .probes = 1 + dice.below(2),
                         .open_for = dice.any_of<Duration>({0s, 1s, 1min}).count()};
}

// One more step, which runs when all others are over; it needs only such steps.
StepPlan any_final_step(Dice& dice, std::uint32_t index, std::uint32_t first_final) {
  StepPlan step = any_step(dice, index);
  std::erase_if(step.needs, [&](std::uint32_t need) { return need < first_final; });
  step.for_each = false;
  step.list_step = 0;
  step.revisit = index;
  step.runs_finally = true;
  return step;
}

Plan any_plan(Dice& dice) {
  if (dice.one_in(4)) return function_plan();
  Plan plan;
  plan.name = "flow";
  const std::uint32_t steps = 1 + dice.below(6);
  for (std::uint32_t index = 0; index < steps; ++index) plan.steps.push_back(any_step(dice, index));
  plan.is_document = dice.one_in(2);
  for (std::uint32_t more = plan.is_document ? dice.below(4) : 0; more > 0; --more) {
    plan.steps.push_back(any_final_step(dice, static_cast<std::uint32_t>(plan.steps.size()), steps));
  }
  for (StepPlan& step : plan.steps) {
    if (plan.is_document) make_document_step(dice, step);
  }
  if (dice.one_in(3)) plan.deadline = Duration{1min}.count();
  plan.max_parallel = dice.below(3);
  return plan;
}

Failure any_failure(Dice& dice) {
  Failure failure{.type = dice.one_in(2) ? "TimeoutError" : "ValueError", .message = dice.one_in(2) ? "this" : "that"};
  if (dice.one_in(3)) failure.failure_class = static_cast<FailureClass>(dice.below(dice.one_in(4) ? 6 : 5));
  if (dice.one_in(8)) failure.permanent = true;
  if (dice.one_in(8)) failure.retry_after = 7s;
  return failure;
}

std::string description_of(const core::Run& run) {
  std::string text =
      "run " + std::to_string(run.number) + ", max_parallel " + std::to_string(run.plan->plan->max_parallel);
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    const StepState& state = run.steps[step];
    const StepPlan& plan = run.step_plan(step);
    text += "\n  step " + std::to_string(step) +
            (plan.kind == StepKind::call   ? " call"
             : plan.kind == StepKind::wait ? " wait"
                                           : " signal");
    text += plan.for_each ? " each of " + std::to_string(plan.list_step) : "";
    for (const std::uint32_t need : plan.needs) text += " needs " + std::to_string(need);
    text += ", on_failure " + std::to_string(static_cast<int>(plan.on_failure)) + " tolerate " +
            std::to_string(plan.tolerate);
    text += ": status " + std::to_string(static_cast<int>(state.status)) + " items";
    for (std::uint32_t index = 0; index < state.items; ++index) {
      const Item* const item = state.touched(index);
      text += " " + (item == nullptr ? "-" : std::to_string(static_cast<int>(item->status)));
    }
  }
  text += "\n ";
  for (const Recorded& event : events_of(run)) {
    text += " " + std::string{name_of(event.type())} + "(" + std::to_string(event.record.step) + "." +
            std::to_string(event.record.item) + ")";
  }
  return text;
}

// ---- the world ----------------------------------------

constexpr std::uint32_t scarce_limit = 2;

class World {
 public:
  explicit World(std::uint64_t seed) : dice{seed}, driver{seed} {
    driver.open("scarce", scarce_limit);
    for (const StepPlan& step : {call("work", {}, any_policy(dice)), call("scarce", {}, any_policy(dice)),
                                 wait_step("sleep", {}), signal_step("signal", "x")}) {
      Plan plan = flow({step});
      if (*step.name == "scarce") plan.steps[0].handler = "scarce";
      driver.add(std::move(plan));
    }
    for (std::uint32_t count = 1 + dice.below(3); count > 0; --count) driver.add(any_plan(dice));
  }

  void one_input() {
    switch (dice.below(20)) {
      case 16:
      case 17:
      case 18:
      case 19:
        decide();
        break;
      case 0:
        submit();
        break;
      case 1:
      case 2:
        driver.now += Duration{dice.any_of<Duration>({0s, 1ns, 1ms, 1s, 5s, 1min})}.count();
        break;
      case 3:
        operate();
        break;
      case 4:
        late_result();
        break;
      case 5:
        if (dice.one_in(20)) driver.now -= Duration{dice.any_of<Duration>({1ns, 1s, 1min})}.count();
        break;
      case 6:
        if (dice.one_in(10)) new_process();
        break;
      case 7:
      case 8:
        prepare();
        break;
      case 9:
        fire();
        break;
      default:
        end_attempt();
    }
    dispatch();
  }

  // Whatever state the runs are in: with patience, successes, signals and resumes they end.
  void drain() {
    for (int round = 0; round < 400 && open() > 0; ++round) {
      for (core::Run* run : runs()) {
        if (!run->live) driver.core.adopt(*run, driver.now);
        driver.core.allow(run->number, driver.now);
        if (run->paused_at != 0 && !run->has_ended()) {
          EXPECT_TRUE(driver.core.resume(*run, driver.now));
        }
        for (const char* const name : {"x", "y"}) {
          const bool was_open = !run->has_ended();
          EXPECT_EQ(driver.core.signal(*run, name, {}, driver.now).has_value(), was_open);
        }
      }
      collect_prepares();
      while (!prepares_.empty()) prepare();
      while (driver.core.due(driver.now, 1000)) {
      }
      dispatch();
      for (const AttemptId& id : std::exchange(running_, {})) driver.core.succeeded(id, {}, driver.now);
      check();
      driver.now += Duration{30s}.count();
    }
    for (const core::Run* run : runs()) EXPECT_TRUE(run->has_ended()) << description_of(*run);
    EXPECT_EQ(driver.core.counters().running, 0U);
    EXPECT_EQ(driver.core.timers(), 0U);
  }

  void check() {
    std::uint32_t scarce = 0;
    std::uint64_t running = 0;
    for (const core::Run* run : runs()) {
      check_bytes(*run);
      std::uint32_t in_run = 0;
      for (std::uint32_t step = 0; step < run->step_count(); ++step) {
        check_step(*run, step);
        in_run += run->steps[step].running;
        if (run->step_plan(step).handler == "scarce") scarce += run->steps[step].running;
      }
      const std::uint32_t limit = run->plan->plan->max_parallel;
      EXPECT_TRUE(limit == 0 || in_run <= limit);
      if (run->live) {
        EXPECT_EQ(in_run, run->running);
      }
      if (run->has_ended()) {
        EXPECT_EQ(in_run, 0U);
      }
      running += in_run;
      if (run->extra != nullptr) running -= run->extra->outside.size();
    }
    EXPECT_LE(scarce, scarce_limit);
    EXPECT_EQ(driver.core.counters().running, running);
  }

  void check_stories() {
    for (const core::Run* run : runs()) {
      std::vector<Recorded> story = archive_[run->number];
      for (Recorded& event : events_of(*run)) story.push_back(std::move(event));
      check_story(*run, story);
    }
  }

  std::vector<core::Run*> runs() const {
    std::vector<core::Run*> all;
    driver.core.for_each_run([&](core::Run& run) { all.push_back(&run); });
    return all;
  }

 private:
  std::size_t open() const {
    const std::vector<core::Run*> all = runs();
    return static_cast<std::size_t>(std::ranges::count_if(all, [](const core::Run* run) { return !run->has_ended(); }));
  }

  void submit() {
    if (driver.next_run > 6) return;
    const NumberedPlan* const plan = driver.core.plan(operation_plans + dice.below(static_cast<std::uint32_t>(driver.plans.size()) - operation_plans));
    driver.submit(plan, {.items = dice.one_in(2) && !plan->plan->is_document && !plan->plan->is_function ? 1 + dice.below(4) : 0,
                         .delay = dice.any_of<Duration>({0s, 0s, 1s, 1min}),
                         .priority = static_cast<std::uint8_t>(dice.below(10)),
                         .asleep = dice.one_in(10),
                         .facts = {.deadline = dice.one_in(3) ? Duration{30s}.count() : 0}});
  }

  void operate() {
    const std::vector<core::Run*> all = runs();
    if (all.empty()) return;
    core::Run& run = *dice.any_of(all);
    if (!run.live) driver.core.adopt(run, driver.now);
    const std::string before = state_of(run);
    Core::Answer answer;
    switch (dice.below(9)) {
      case 0:
        answer = driver.core.cancel(run, "why", driver.now);
        break;
      case 1:
        answer = driver.core.pause(run, driver.now);
        break;
      case 2:
      case 3:
        answer = driver.core.resume(run, driver.now);
        break;
      case 4:
        answer = driver.core.signal(run, dice.one_in(2) ? "x" : "y", {"payload", 7, false}, driver.now);
        break;
      case 5:
      case 6:
        answer = driver.core.retry_failed(run, any_choice(run), driver.now);
        break;
      case 7:
        answer = driver.core.drop(run, any_choice(run), driver.now);
        break;
      case 8:
        driver.core.allow(run.number, driver.now);
        break;
    }
    if (!answer) {
      EXPECT_EQ(state_of(run), before) << "it was refused and has changed something";
    }
  }

  Core::Choice any_choice(const core::Run& run) {
    Core::Choice choice;
    if (dice.one_in(3)) return choice;
    choice.step = dice.below(static_cast<std::uint32_t>(run.step_count()));
    choice.only = dice.one_in(4);
    if (dice.one_in(2)) choice.item = dice.below(4);
    return choice;
  }

  // What a function may do that has begun and is not over.
  void decide() {
    std::vector<core::Run*> functions = runs();
    std::erase_if(functions, [](const core::Run* run) {
      const Item* const own = run->function != nullptr ? run->steps[0].touched(0) : nullptr;
      const bool is_at_work =
          own != nullptr && (own->status == ItemStatus::running || own->status == ItemStatus::outside);
      return !run->live || !is_at_work || run->paused_at != 0;
    });
    if (functions.empty()) return;
    core::Run& run = *dice.any_of(functions);
    const std::string path = (dice.one_in(2) ? "1." : "2.") + std::to_string(++paths_);
    switch (dice.below(12)) {
      case 0:
        if (run.step_count() > 1)
          driver.core.dismiss(run, 1 + dice.below(static_cast<std::uint32_t>(run.step_count() - 1)), driver.now);
        break;
      case 1:
        driver.core.continued(run, dice.one_in(2) ? "1" : "2", ++paths_, {"state", 5, false}, driver.now);
        break;
      case 2:
        driver.core.published(run, {"state", 5, false}, driver.now);
        break;
      case 3:
        driver.core.diverged(run, "what it does is not what it did", driver.now);
        break;
      default: {
        const std::uint32_t plan = dice.below(operation_plans);
        const Duration wait = dice.any_of<Duration>({0s, 1s, 1min});
        auto kind = plan == 2 ? OperationKind::sleep : plan == 3 ? OperationKind::signal : OperationKind::call;
        if (plan < 2 && dice.one_in(4)) kind = dice.one_in(2) ? OperationKind::undo : OperationKind::mark;
        driver.core.called(run,
                           {.kind = kind,
                            .plan = driver.core.plan(plan),
                            .path = path,
                            .name = dice.one_in(2) ? "x" : "y",
                            .place = "here.cpp:1",
                            .input = {"input", 5, false},
                            .due = plan == 2 || (plan == 3 && wait > 0s) ? driver.now + wait.count() : 0,
                            .shielded = dice.one_in(4)},
                           driver.now);
      }
    }
  }

  void fire() {
    const std::size_t limit = 1 + dice.below(5);
    while (driver.core.due(driver.now, limit)) {
    }
  }

  // A question that was withdrawn is answered no more, unless the answer was on its way.
  void collect_prepares() {
    for (const AttemptId& id : std::exchange(driver.core.effects().cancels, {})) {
      if (id.token != 0 || dice.one_in(4)) continue;
      std::erase_if(prepares_,
                    [&](const core::Prepare& asked) { return asked.run == id.run && asked.step == id.step; });
    }
    for (core::Prepare& prepare : driver.core.effects().prepares) prepares_.push_back(std::move(prepare));
    driver.core.effects().prepares.clear();
  }

  void dispatch() {
    collect_prepares();
    const std::size_t room = dice.below(5);
    driver.core.dispatch([&](const HandlerAddress&) { return room; }, 4096, driver.now);
    EXPECT_LE(driver.core.effects().starts.size(), room);
    for (const Start& start : driver.core.effects().starts) running_.push_back(start.id);
    driver.core.effects().starts.clear();
  }

  AttemptId take_running() {
    const std::size_t at = dice.below(static_cast<std::uint32_t>(running_.size()));
    const AttemptId id = running_[at];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
    over_.push_back(id);
    return id;
  }

  void end_attempt() {
    if (running_.empty()) return;
    const AttemptId id = take_running();
    switch (dice.below(10)) {
      case 0:
        driver.core.interrupted(id, driver.now, dice.one_in(2));
        break;
      case 1:
        driver.core.progressed(id, "on the way", driver.now);
        running_.push_back(id);
        over_.pop_back();
        break;
      case 2:
      case 3:
      case 4:
        driver.core.succeeded(id, {"output", 6, false}, driver.now);
        break;
      case 5:
      case 6:
        move_outside(id);
        running_.push_back(id);
        over_.pop_back();
        break;
      default:
        driver.core.failed(id, any_failure(dice), dice.one_in(10), driver.now);
    }
  }

  // Or back.
  void move_outside(const AttemptId& id) {
    const core::Run* const run = driver.core.find(id.run);
    if (id.step >= run->step_count()) return;  // forgotten
    if (run->step_plan(id.step).handler == "scarce") return;  // what comes back does not ask for room
    if (is_outside(id) && dice.one_in(3)) {
      EXPECT_TRUE(driver.core.handed_back(id, std::make_shared<const Payload>(), driver.now));
      driver.core.effects().starts.pop_back();
      return;
    }
    const Failure overdue = any_failure(dice);
    const Time due = dice.one_in(2) ? driver.now + Duration{dice.any_of<Duration>({1ms, 5s, 1min})}.count() : 0;
    RunId to;
    to.bytes[15] = dice.one_in(2) ? 1 : 0;
    const bool is_run = to != RunId{};
    driver.core.handed_over(id,
                            {.run = to,
                             .callback = is_run ? "" : "127.0.0.1:9000",
                             .due = due,
                             .overdue = due != 0 ? &overdue : nullptr,
                             .returns = dice.one_in(2),
                             .reopens = is_run && dice.one_in(4)},
                            driver.now);
    if (dice.one_in(4)) driver.core.extended(id, driver.now + Duration{1s}.count(), driver.now);
  }

  bool is_outside(const AttemptId& id) const {
    const core::Run& run = *driver.core.find(id.run);
    if (id.step >= run.step_count()) return false;
    const Item* const item =
        run.outside_of(id.step, id.item) != nullptr ? run.steps[id.step].touched(id.item) : nullptr;
    return item != nullptr && item->token == id.token;
  }

  void late_result() {
    if (over_.empty()) return;
    const AttemptId id = dice.any_of(over_);
    const core::Run* const run = driver.core.find(id.run);
    const std::string before = state_of(*run);
    const std::uint64_t late = driver.core.counters().late;
    if (dice.one_in(2)) {
      EXPECT_FALSE(driver.core.succeeded(id, {"late", 4, false}, driver.now));
    } else {
      EXPECT_FALSE(driver.core.failed(id, any_failure(dice), false, driver.now));
    }
    EXPECT_EQ(state_of(*run), before);
    EXPECT_EQ(driver.core.counters().late, late + 1);
  }

  void prepare() {
    if (prepares_.empty()) return;
    const core::Prepare asked = prepares_.front();
    prepares_.erase(prepares_.begin());
    const core::Run* const run = driver.core.find(asked.run);
    if (run->step_plan(asked.step).prepares && dice.one_in(4)) {
      driver.core.condition_is_false(asked.run, asked.step, driver.now);
    } else if (dice.one_in(6)) {
      driver.core.prepare_failed(asked.run, asked.step, any_failure(dice), driver.now);
    } else {
      driver.core.prepared(asked.run, asked.step, dice.below(5), {}, driver.now);
    }
  }

  // Everything that was only in memory is gone: attempts, questions, places in queues.
  void new_process() {
    const std::vector<core::Run*> before = runs();
    if (before.empty()) return;
    for (const core::Run* run : before) {
      for (Recorded& event : events_of(*run)) archive_[run->number].push_back(std::move(event));
      images_[run->number] = state_of(*run);
    }
    core::Run& last = driver.reload(*before.back());
    driver.core.adopt(last, driver.now);
    if (dice.one_in(2)) driver.core.restrict_documents(driver.next_run);
    driver.open("scarce", scarce_limit);
    for (const AttemptId& id : std::exchange(running_, {})) (is_outside(id) ? running_ : over_).push_back(id);
    prepares_.clear();
  }

  // The image, if there is one, and the events since then.
  std::string replayed(const core::Run& run) const {
    Core other{start_of_time, 99};
    for (std::uint32_t number = 0; number < driver.plans.size(); ++number) other.add_plan(number, driver.plans[number]);
    core::Run& copy = other.add(run.number);
    if (const auto image = images_.find(run.number); image != images_.end()) {
      EXPECT_TRUE(other.restore(copy, image->second));
    }
    if (!run.events.empty()) {
      EXPECT_TRUE(other.replay(copy, run.events, run.events_first));
    }
    return state_of(copy);
  }

  void check_bytes(const core::Run& run) {
    if (checked_[run.number] == run.sequence) return;
    checked_[run.number] = run.sequence;
    const std::string state = state_of(run);
    EXPECT_EQ(replayed(run), state);
    EXPECT_EQ(replayed(run), state);
    core::Run copy;
    ASSERT_TRUE(driver.core.restore(copy, state));
    EXPECT_EQ(state_of(copy), state);
    EXPECT_EQ(copy.open_steps, run.open_steps);
  }

  void check_step(const core::Run& run, std::uint32_t step) {
    const StepPlan& plan = run.step_plan(step);
    const StepState& state = run.steps[step];
    EXPECT_TRUE(plan.max_parallel == 0 || state.running <= plan.max_parallel);
    EXPECT_LE(run.own_visits(step), plan.max_visits);
    std::uint32_t running = 0, succeeded = 0, failed = 0, canceled = 0;
    for (std::uint32_t index = 0; index < state.items; ++index) {
      const Item* const item = state.touched(index);
      if (item == nullptr) continue;
      running += item->status == ItemStatus::running || item->status == ItemStatus::outside ? 1 : 0;
      EXPECT_EQ(item->status == ItemStatus::outside, run.outside_of(step, index) != nullptr);
      succeeded += item->status == ItemStatus::succeeded ? 1 : 0;
      failed += item->status == ItemStatus::failed ? 1 : 0;
      canceled += item->status == ItemStatus::canceled ? 1 : 0;
      if (item->stage == stage::main) {
        EXPECT_LE(item->used_attempts(), *plan.policy.max_attempts);
      }
    }
    EXPECT_EQ(std::tuple(running, succeeded, failed, canceled),
              std::tuple(state.running, state.succeeded, state.failed, state.canceled));
    EXPECT_LE(state.excused, state.failed);
  }

  // An independent reading of the recorded events.
  void check_story(const core::Run& run, const std::vector<Recorded>& story) const;
  void check_function_story(const std::vector<Recorded>& story) const;

 public:
  Dice dice;
  CoreDriver driver;

 private:
  static constexpr std::uint32_t operation_plans = 4;  // the first of the driver's plans
  std::uint32_t paths_ = 0;
  std::vector<AttemptId> running_;
  std::vector<AttemptId> over_;
  std::vector<core::Prepare> prepares_;
  std::map<std::uint64_t, std::string> images_;
  std::map<std::uint64_t, std::vector<Recorded>> archive_;
  std::map<std::uint64_t, std::uint32_t> checked_;
};

// Operations begin after they were called, end once, and nothing follows the end.
void World::check_function_story(const std::vector<Recorded>& story) const {
  std::map<std::uint32_t, bool> open{{0, true}};  // by step: those that may have attempts
  std::set<std::uint32_t> running;
  std::uint64_t sequence = 0;
  std::set<std::uint32_t> undos;
  bool ended = false;
  for (const Recorded& event : story) {
    const event::Record& record = event.record;
    SCOPED_TRACE("event " + std::to_string(record.sequence) + " " + std::string{name_of(record.type)});
    EXPECT_EQ(record.sequence, ++sequence);
    if (record.type == EventType::dropped) continue;
    EXPECT_FALSE(ended);
    switch (record.type) {
      case EventType::called:
        if (record.path.empty()) {
          EXPECT_TRUE(undos.contains(record.step)) << "only an undo is called a second time";
        } else {
          EXPECT_FALSE(open[record.step]) << "its number has another operation";
        }
        if (!record.path.empty() && record.operation == OperationKind::undo) undos.insert(record.step);
        open[record.step] = record.operation != OperationKind::mark;
        break;
      case EventType::started:
        EXPECT_TRUE(open[record.step]);
        EXPECT_TRUE(running.insert(record.step).second);
        break;
      case EventType::interrupted:
        running.erase(record.step);
        break;
      case EventType::completed:
      case EventType::dismissed:
      case EventType::failed:
        EXPECT_TRUE(open[record.step]) << "it has ended before";
        running.erase(record.step);
        open[record.step] = record.type == EventType::failed && record.will_retry;
        if (record.type == EventType::failed && record.reason == StopReason::canceled) open[record.step] = true;
        break;
      case EventType::ended:
        ended = true;
        break;
      default:
        break;
    }
  }
}

void World::check_story(const core::Run& run, const std::vector<Recorded>& story) const {
  if (run.function != nullptr) return check_function_story(story);
  struct Told {
    std::optional<Time> waits_from = {};  // in time without pauses
    std::int64_t delay = 0;
    bool is_running = false;
    bool has_succeeded = false;
    bool has_failed = false;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Told> items;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint8_t> stages;
  std::set<std::uint32_t> skipped;
  Time last = 0;
  Time paused_at = 0;
  std::int64_t paused = 0;
  bool ended = false, cancelled = false, finishing = false, lost = false;
  std::uint64_t sequence = 0;
  Time created = 0;
  std::int64_t delay = 0;
  for (const Recorded& event : story) {
    const event::Record& record = event.record;
    SCOPED_TRACE("run " + std::to_string(run.number) + ", event " + std::to_string(record.sequence));
    EXPECT_EQ(record.sequence, ++sequence);
    EXPECT_GE(record.time, last);
    last = record.time;
    if (ended && record.type != EventType::dropped) {
      EXPECT_EQ(record.type, EventType::reopened);
    }
    const Time counted = record.time - paused;  // pauses that are over
    Told& told = items[{record.step, record.item}];
    switch (record.type) {
      case EventType::submitted:
        created = record.time;
        delay = record.due == 0 ? 0 : record.due - record.time;
        break;
      case EventType::started:
        EXPECT_EQ(paused_at, 0) << "started in a pause";
        EXPECT_FALSE(cancelled);
        EXPECT_FALSE(told.is_running);
        EXPECT_FALSE(told.has_succeeded || told.has_failed);
        EXPECT_FALSE(skipped.contains(record.step)) << "its condition was false";
        EXPECT_EQ(run.step_plan(record.step).runs_finally, finishing);
        EXPECT_GE(counted - created, delay) << "before its delay was over";
        if (told.waits_from) {
          EXPECT_GE(counted - *told.waits_from, told.delay) << "before its wait was over";
        }
        told = {.is_running = true};
        break;
      case EventType::completed:
        if (run.step_plan(record.step).wait_until != 0) {
          EXPECT_GE(record.time, run.step_plan(record.step).wait_until);
        } else if (run.step_plan(record.step).kind == StepKind::wait) {
          EXPECT_GE(counted - created, delay + run.step_plan(record.step).wait);
        }
        EXPECT_FALSE(told.has_succeeded || told.has_failed);
        told = {.has_succeeded = true};
        break;
      case EventType::failed:
        told = {.has_failed = !record.will_retry && record.reason != StopReason::canceled};
        lost = record.lost;
        break;
      case EventType::fallback: {
        std::uint8_t& stage = stages[{record.step, record.item}];
        EXPECT_TRUE(record.stage > stage || (lost && record.stage == stage)) << "there is no way back";
        stage = record.stage;
        break;
      }
      case EventType::finishing:
        EXPECT_FALSE(finishing);
        finishing = true;
        break;
      case EventType::skipped:
        if (record.attempt == 0) {
          skipped.insert(record.step);
        } else {
          told = {.has_failed = true};  // its circuit is open
        }
        break;
      case EventType::retrying:
        // A wait that begins during a pause begins when the pause is over.
        told.waits_from = paused_at != 0 ? paused_at - paused : counted;
        told.delay = record.delay;
        EXPECT_GE(record.delay, record.delay_min);
        EXPECT_LE(record.delay, std::max(record.delay_max, record.delay_min));
        break;
      case EventType::interrupted:
        if (told.is_running) told = {};
        break;
      case EventType::paused:
        paused_at = record.time;
        break;
      case EventType::resumed:
        paused += record.time - paused_at;
        paused_at = 0;
        break;
      case EventType::cancel_requested:
        cancelled = true;
        paused_at = 0;
        break;
      case EventType::revisited:
        for (const std::uint32_t step : steps_from(*run.plan->plan, record.step)) {
          if (record.only_this && step != record.step) continue;
          std::erase_if(items, [&](const auto& entry) { return entry.first.first == step; });
          std::erase_if(stages, [&](const auto& entry) { return entry.first.first == step; });
          skipped.erase(step);
        }
        break;
      case EventType::reopened:
        EXPECT_TRUE(ended);
        ended = cancelled = finishing = false;
        paused_at = 0;
        skipped.clear();
        std::erase_if(items, [&](const auto& entry) {
          const auto [step, item] = entry.first;
          const bool is_chosen =
              !record.resumes && (record.from_step == 0 ||
                                  (record.from_step == step + 1 && (record.items == 0 || record.items == item + 1)));
          const bool anew = run.step_plan(step).runs_finally || (entry.second.has_failed && is_chosen);
          if (anew) stages.erase(entry.first);
          return anew;
        });
        break;
      case EventType::ended:
        ended = true;
        break;
      default:
        break;
    }
  }
}

// ---- what must hold ----------------------------------------

RC_GTEST_PROP(CoreProperties, hold_after_every_input, ()) {
  const auto seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>());
  SCOPED_TRACE("seed " + std::to_string(seed));
  World world{seed};
  for (int inputs = 0; inputs < 150 && !::testing::Test::HasFailure(); ++inputs) {
    world.one_input();
    world.check();
  }
  if (!::testing::Test::HasFailure()) world.drain();
  world.check_stories();
  RC_ASSERT(!::testing::Test::HasFailure());
}

RC_GTEST_PROP(CoreProperties, the_same_inputs_give_the_same_bytes, ()) {
  const auto seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>());
  World left{seed};
  World right{seed};
  for (int inputs = 0; inputs < 150; ++inputs) {
    left.one_input();
    right.one_input();
  }
  const std::vector<core::Run*> runs = left.runs();
  RC_ASSERT(runs.size() == right.runs().size());
  for (const core::Run* run : runs) RC_ASSERT(state_of(*run) == state_of(*right.driver.core.find(run->number)));
}

// Damaged bytes are refused or read as some state, and never crash.
void read_damaged(const std::string& bytes, Core& core) {
  core::Run run;
  if (!core.restore(run, bytes)) return;
  const std::string again = state_of(run);
  RC_ASSERT(!again.empty());
  outcome_of(run);
  bytes_of(run);
}

RC_GTEST_PROP(CoreState, damaged_bytes_do_no_harm, ()) {
  const auto seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>());
  World world{seed};
  for (int inputs = 0; inputs < 60; ++inputs) world.one_input();
  for (const core::Run* run : world.runs()) {
    const std::string whole = state_of(*run);
    for (std::size_t size = 0; size < whole.size(); ++size) read_damaged(whole.substr(0, size), world.driver.core);
    for (int damage = 0; damage < 50; ++damage) {
      std::string bytes = whole;
      for (std::uint32_t count = 1 + world.dice.below(3); count > 0; --count) {
        bytes[world.dice.below(static_cast<std::uint32_t>(bytes.size()))] = static_cast<char>(world.dice.below(256));
      }
      read_damaged(bytes, world.driver.core);
    }
  }
}

RC_GTEST_PROP(CoreState, arbitrary_bytes_do_no_harm, (const std::string& tail)) {
  World world{1};
  read_damaged(tail, world.driver.core);
  read_damaged(std::string{"\x01\x02\x00", 3} + tail, world.driver.core);
}

TEST(CoreState, a_run_whose_plan_is_not_there_can_be_forgotten) {
  CoreDriver driver;
  const std::string bytes = state_of(driver.submit(task(policy::standard)));
  core::Run& run = driver.core.add(4711);
  FactsDecoder facts;
  EXPECT_FALSE(decode_state(
      bytes, [&](std::uint32_t) { return decltype(driver.core.plan(0)){nullptr}; }, facts, run));
  driver.core.forget(run);
}

TEST(CoreState, a_newer_version_is_refused) {
  CoreDriver driver;
  std::string bytes = state_of(driver.submit(task(policy::standard)));
  bytes[0] = 4;
  core::Run run;
  EXPECT_FALSE(driver.core.restore(run, bytes));
}

}  // namespace
}  // namespace reprise::core
