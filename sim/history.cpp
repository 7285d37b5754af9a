// The two parts of a history: the storm, and the calm in which everything that can end has to end.
#include "sim/history.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "sim/callers.hpp"
#include "sim/draw.hpp"
#include "sim/machine.hpp"

namespace reprise::sim {
namespace {

using runtime::Operation;
using runtime::Question;

constexpr Time stormy_part = 60 * second;
constexpr Time patience = 48 * 3600 * second;  // virtual; what has not ended then never will
constexpr std::uint64_t happenings_max = 400'000;

std::string sqlite_path(std::uint64_t seed) {
  return "/dev/shm/reprise-sim-" + std::to_string(::getpid()) + "-" + std::to_string(seed) + ".db";
}

class History {
 public:
  explicit History(std::uint64_t seed)
      : world_{seed},
        model_{world_, pattern_compiler()},
        on_sqlite_{seed % 50 == 17},
        store_{world_, model_, on_sqlite_ ? sqlite_path(seed) : std::string{}},
        executor_{world_, model_},
        settings_{draw_settings(world_)},
        program_{draw_program(world_)},
        machine_{world_, model_, store_, executor_, program_, settings_},
        callers_{world_, machine_, model_} {
    draw_troubles();
  }

  void live();
  void fill(HistoryReport& report) const;
  const Model& model() const noexcept { return model_; }

 private:
  void draw_troubles();
  void plan_callers();
  void plan_crashes();
  void plan_capacity();
  void do_something();
  void submit_something();
  void interfere(const Known& known);
  PartOfRun any_part(const Known& known);
  void run_until(Time when);

  void turn_on();
  void calm_down();
  void run_until_all_have_ended(const char* when);
  bool is_everything_done() const;
  void resume_all();
  void release_those_who_wait(bool by_signal);
  void ask_everybody();
  void check_the_end();
  void check_recovery();

  World world_;
  Model model_;
  bool on_sqlite_;
  FaultyStore store_;
  FaultyExecutor executor_;
  runtime::LoopSettings settings_;
  Program program_;
  Machine machine_;
  Callers callers_;
  std::vector<Behaviour> behaviours_;
  std::uint32_t crashes_planned_ = 0;
  std::vector<Time> bursts_;
  bool calm_ = false;
  std::uint64_t happenings_ = 0;
};

// ---- what the seed says ----------------------------------------

void History::draw_troubles() {
  if (world_.chance(700)) store_.faults.slowest = world_.span(100'000, 200 * millisecond);
  if (world_.chance(400)) store_.faults.fails = static_cast<std::uint32_t>(world_.between(1, 200));
  if (world_.chance(400)) store_.faults.unanswered = static_cast<std::uint32_t>(world_.between(1, 200));
  if (world_.chance(400)) store_.faults.reopen_fails = static_cast<std::uint32_t>(world_.between(1, 700));
  if (world_.chance(250)) store_.faults.read_fails = static_cast<std::uint32_t>(world_.between(1, 60));
  machine_.lazy = world_.chance(500) ? 1000 : static_cast<std::uint32_t>(world_.between(0, 1000));
  machine_.watched = world_.chance(300);
  if (world_.chance(300)) machine_.handlers_come = world_.span(millisecond, 5 * second);
  executor_.threads = 1 + world_.below(16);
  executor_.waits_for_a_place = world_.below(4);
  for (const Program::NamedHandler& handler : program_.handlers) {
    behaviours_.push_back(draw_behaviour(world_));
    behaviours_.back().is_limited = handler.options.concurrency > 0;
  }
  executor_.script = [this](const exec::Job& job) { return act(world_, behaviours_[job.handler], job, calm_); };
  executor_.prepare_script = [this](const exec::Preparation&) {
    return find_out(world_, behaviours_[world_.below(behaviours_.size())], calm_);
  };
  callers_.max_open = settings_.max_open;
  callers_.retention = settings_.keep_ended || settings_.keep_count;
  if (callers_.retention) model_.retention_is_on();
  crashes_planned_ = world_.chance(850) ? static_cast<std::uint32_t>(world_.between(1, 6)) : 0;
}

void History::plan_callers() {
  const std::int64_t actions = on_sqlite_ ? world_.between(10, 60) : world_.between(20, 180);
  // In bursts, so that batches fill and queues grow.
  Time when = world_.now();
  for (std::int64_t left = actions; left > 0; --left) {
    if (world_.chance(250)) {
      when = world_.now() + world_.between(0, stormy_part * 3 / 4);
      bursts_.push_back(when);
    }
    world_.at(when + world_.between(0, 20) * millisecond, [this] { do_something(); });
  }
}

void History::plan_crashes() {
  for (std::uint32_t left = crashes_planned_; left > 0; --left) {
    // Mostly while something is going on.
    const bool anytime = bursts_.empty() || world_.chance(200);
    const Time when = anytime ? world_.now() + world_.between(0, stormy_part)
                              : bursts_[world_.below(bursts_.size())] + world_.span(1000, 3 * second);
    world_.at(when, [this] {
      if (machine_.is_off() || calm_) return;
      if (world_.chance(100)) machine_.set_clock_back(world_.span(millisecond, 2 * second));
      if (world_.chance(150)) {
        machine_.stop();
      } else {
        machine_.crash();
      }
      world_.after(world_.chance(500) ? world_.span(1, 100 * millisecond) : world_.span(millisecond, 30 * second),
                   [this] { turn_on(); });
    });
  }
  // The disk fills up for a while.
  if (!world_.chance(200)) return;
  const Time begin = world_.now() + world_.between(0, stormy_part / 2);
  world_.at(begin, [this] { store_.is_full = true; });
  world_.at(begin + world_.span(10 * millisecond, 20 * second), [this] { store_.is_full = false; });
}

void History::plan_capacity() {
  if (calm_) return;
  executor_.threads = 1 + world_.below(16);
  executor_.waits_for_a_place = world_.below(4);
  world_.after(world_.span(millisecond, 5 * second), [this] { plan_capacity(); });
}

// ---- the first part ----------------------------------------

void History::do_something() {
  if (calm_ || !machine_.is_up()) return;
  const std::size_t what = world_.below(100);
  const Known* const known = callers_.any();
  if (what < 55 || known == nullptr) return submit_something();
  if (what < 60) return callers_.ask_for_nonsense(program_);
  if (what < 64) return callers_.find_all();
  if (what < 68) return callers_.find_some();
  if (what < 78) return callers_.ask(known->id, static_cast<Question>(world_.below(3)));
  interfere(*known);
}

void History::submit_something() {
  std::vector<Task> tasks;
  const std::size_t count = world_.chance(150) ? 1 + world_.below(12) : 1;
  while (tasks.size() < count) tasks.push_back(draw_task(world_, program_));
  callers_.submit(std::move(tasks), [this](const std::expected<void, Error>& answer, const std::vector<RunId>& ids) {
    if (!answer || calm_) return;
    for (const RunId& id : ids) {
      if (world_.chance(400)) world_.after(0, [this, id] { callers_.ask(id, Question::ended); });
      for (std::size_t times = world_.chance(350) ? 1 + world_.below(4) : 0; times > 0; --times) {
        world_.after(world_.span(millisecond, 20 * second), [this, id] {
          const auto known = callers_.known().find(runtime_number(id));
          if (!calm_ && known != callers_.known().end()) interfere(known->second);
        });
      }
    }
  });
}

void History::interfere(const Known& known) {
  const std::size_t what = world_.below(100);
  if (what < 15) return callers_.operate(Operation::cancel, known.id, "enough");
  if (what < 35) return callers_.operate(Operation::pause, known.id);
  if (what < 60) return callers_.operate(Operation::resume, known.id);
  if (what < 75)
    return callers_.operate(Operation::signal, known.id, world_.chance(500) ? "go" : "stop", draw_output(world_));
  if (what < 81) return callers_.operate(Operation::retry_failed, known.id);
  if (what < 86) return callers_.operate(Operation::retry_failed, known.id, {}, {}, {}, any_part(known));
  if (what < 89) return callers_.operate(Operation::drop, known.id, {}, {}, {}, any_part(known));
  if (what < 94) return callers_.operate(Operation::remove, known.id);
  callers_.ask(known.id, static_cast<Question>(world_.below(3)));
}

PartOfRun History::any_part(const Known& known) {
  const RunStory& story = *model_.find(known.number);
  const std::size_t step = world_.below(story.steps.size());
  PartOfRun part{.step = *story.plan->steps[step].name};
  const std::size_t items = story.steps[step].items.size();
  if (items > 0 && world_.chance(600)) part.item = static_cast<std::uint32_t>(world_.below(items));
  return part;
}

void History::run_until(Time when) {
  while (!world_.is_over() && world_.next() <= when) {
    if (++happenings_ > happenings_max) throw Violation{"more happens than can be: does somebody go in circles?", 0};
    world_.run_next();
  }
}

void History::live() {
  machine_.boot();
  plan_callers();
  plan_crashes();
  plan_capacity();
  run_until(birth + stormy_part);
  calm_down();
  run_until_all_have_ended("after the storm");
  resume_all();
  run_until_all_have_ended("after everything was resumed");
  for (int round = 0; round < 8; ++round) {
    release_those_who_wait(round < 7);
    run_until_all_have_ended("after the signals");
  }
  if (model_.open() > 0) throw Violation{"there are open runs after everything was cancelled", 0};
  ask_everybody();
  check_the_end();
}

// ---- the second part ----------------------------------------

void History::calm_down() {
  calm_ = true;
  store_.faults = {};
  store_.is_full = false;
  machine_.handlers_come = 0;
  executor_.threads = 16;
  executor_.waits_for_a_place = 1;
  // What crashed is started by its own alarm; the first part may have planned none.
  world_.after(0, [this] { turn_on(); });
}

// What is being stopped is started when it has stopped.
void History::turn_on() {
  if (machine_.is_off()) return machine_.boot();
  if (!machine_.is_up()) world_.after(100 * millisecond, [this] { turn_on(); });
}

bool History::is_everything_done() const {
  if (!machine_.is_quiet() || !machine_.is_up()) return false;
  if (model_.open() == 0) return true;
  return std::ranges::all_of(model_.stories(), [&](const auto& entry) {
    return entry.second.ended || entry.second.removed || model_.waits_for_ever(entry.second);
  });
}

void History::run_until_all_have_ended(const char* when) {
  const Time end = world_.now() + patience;
  for (std::uint64_t round = 0; !world_.is_over() && world_.next() <= end; ++round) {
    if (++happenings_ > happenings_max) throw Violation{"more happens than can be: does somebody go in circles?", 0};
    world_.run_next();
    if (round % 32 == 0 && is_everything_done()) break;
  }
  if (is_everything_done()) return;
  for (const auto& [number, story] : model_.stories()) {
    if (story.ended || story.removed || model_.waits_for_ever(story)) continue;
    throw Violation{"run " + std::to_string(number) + " does not end, " + when, number};
  }
  throw Violation{std::string{"the engine does not come to rest, "} + when, 0};
}

void History::resume_all() {
  for (const auto& [number, known] : callers_.known()) {
    const RunStory* const story = model_.find(number);
    if (!story->removed && story->paused_at != 0) callers_.operate(Operation::resume, known.id);
  }
  // Runs whose submit was never answered may have been made all the same; nobody has paused them.
}

void History::release_those_who_wait(bool by_signal) {
  for (const auto& [number, story] : model_.stories()) {
    if (story.ended || story.removed) continue;
    const RunId id = runtime_id(store_, number, story.created);
    const std::string signal = model_.wanted_signal(story);
    if (by_signal && !signal.empty() && world_.chance(600)) {
      callers_.operate(Operation::signal, id, signal, "at last");
    } else if (!by_signal) {
      callers_.operate(Operation::cancel, id, "the end");
    }
  }
}

void History::ask_everybody() {
  const std::uint64_t before = callers_.answered();
  std::uint64_t asked = 1;
  for (const auto& [number, known] : callers_.known()) {
    callers_.ask(known.id, Question::ended);
    callers_.ask(known.id, Question::past);
    asked += 2;
  }
  callers_.find_all();
  run_until(world_.now() + 10 * second);
  if (callers_.answered() != before + asked) throw Violation{"somebody got no answer, although nothing is wrong", 0};
}

void History::check_the_end() {
  callers_.check_tallies();
  model_.compare(*machine_.loop());
  model_.check_books(*machine_.loop());
  if (machine_.loop()->core().resident() > 0) throw Violation{"every run has ended, and memory is not empty", 0};
  if (machine_.loop()->core().timers() > 0) throw Violation{"every run has ended, and timers are left", 0};
  machine_.crash();
  check_recovery();
}

// The same store, read twice, gives the same; and what the model has seen is what is there.
void History::check_recovery() {
  model_.compare_history(store_.inner());
  std::string states[2];
  for (std::string& state : states) {
    runtime::Loop loop{store_, {&executor_}, settings_, 1, world_.now()};
    auto plans = loop.recover(pattern_compiler(), world_.now());
    if (!plans) throw Violation{"the store cannot be recovered: " + plans.error().message, 0};
    loop.core().for_each_run([&](const core::Run& run) { core::encode_state(run, state); });
  }
  if (states[0] != states[1]) throw Violation{"two recoveries of the same store differ", 0};
}

void History::fill(HistoryReport& report) const {
  report.runs = model_.stories().size();
  report.events_recorded = model_.events();
  report.crashes = machine_.crashes();
  report.commits = store_.writes();
  for (const auto& [number, story] : model_.stories()) report.attempts_lost += story.lost;
  report.settings = "memory " + std::to_string(settings_.memory) + ", park_after " +
                    std::to_string(settings_.park_after.count()) + "ns, journal_max " +
                    std::to_string(settings_.journal_max) + ", slowest write " + std::to_string(store_.faults.slowest) +
                    "ns" + (on_sqlite_ ? ", on SQLite" : "") + (callers_.retention ? ", retention" : "");
}

}  // namespace

HistoryReport run_history(std::uint64_t seed) {
  HistoryReport report;
  History history{seed};
  try {
    history.live();
  } catch (const Violation& violation) {
    report.ok = false;
    report.what = violation.what();
    if (violation.run() != 0) report.events = history.model().tell(violation.run(), 40);
  }
  history.fill(report);
  return report;
}

}  // namespace reprise::sim
