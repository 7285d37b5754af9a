// The two parts of a history: the storm, and the calm in which everything that can end has to end.
#include "sim/history.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <map>

#include "runtime/ids.hpp"
#include "sim/callers.hpp"
#include "sim/draw.hpp"
#include "sim/machine.hpp"
#include "store/memory_ledger.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace reprise::sim {
namespace {

using runtime::Operation;
using runtime::Question;

constexpr Time stormy_part = 60 * second;
constexpr Time patience = 48 * 3600 * second;  // virtual; what has not ended then never will
constexpr std::uint64_t happenings_max = 400'000;
constexpr std::uint64_t secret_of_all = 0x5eed;
constexpr std::uint32_t owners_max = 4;

std::string sqlite_path(std::uint64_t seed) {
  return "/dev/shm/reprise-sim-" + std::to_string(::getpid()) + "-" + std::to_string(seed) + ".db";
}

// Half of the seeds have one owner, and their histories are what they would be if there were no others.
std::uint32_t owners_of(std::uint64_t seed) {
  Random random{seed * 2 + 1};
  return random.next() % 2 == 0 ? 1 : static_cast<std::uint32_t>(random.between(2, owners_max));
}

// A folder of SQLite files, or the same in memory.
std::unique_ptr<store::Ledger> make_ledger(const std::string& path, std::uint32_t owners) {
  const store::LedgerSettings settings{.shards_max = owners};
  if (path.empty()) return std::make_unique<store::MemoryLedger>(secret_of_all, settings);
  // The first owner of a folder draws its secret; here every history of a seed has the same.
  if (auto made = store::open_sqlite_store(path, {.secret = secret_of_all}); !made)
    throw Violation{"the SQLite store cannot be made: " + made.error().message, 0};
  return *store::open_ledger("sqlite:" + path, settings);
}

// One shard: what must be true of it, those who use it, and the machine of its owner, whichever process that is.
struct Shard {
  Shard(World& world, const Program& program, const runtime::LoopSettings& settings)
      : model{world, pattern_compiler()},
        store{world, model},
        executor{world, model},
        machine{world, model, store, executor, program, settings},
        callers{world, machine, model} {}

  Model model;
  FaultyStore store;
  FaultyExecutor executor;
  Machine machine;
  Callers callers;
};

class SimulatedHistory {
 public:
  explicit SimulatedHistory(std::uint64_t seed)
      : world_{seed},
        on_sqlite_{seed % 50 == 17},
        owners_{owners_of(seed)},
        path_{on_sqlite_ ? sqlite_path(seed) : std::string{}},
        ledger_{make_ledger(path_, owners_)},
        settings_{draw_settings(world_)},
        program_{draw_program(world_)} {
    while (shards_.size() < owners_) add_shard();
    draw_troubles();
  }
  ~SimulatedHistory();
  SimulatedHistory(const SimulatedHistory&) = delete;
  SimulatedHistory& operator=(const SimulatedHistory&) = delete;

  void live();
  void fill(HistoryReport& report) const;
  std::string tell(std::uint64_t run) const;

 private:
  void add_shard();
  Shard& any_shard() { return owners_ == 1 ? shards_[0] : shards_[world_.below(owners_)]; }
  Shard& shard_of(const RunId& id);
  bool are_all_up() const;
  std::uint64_t open() const;
  void draw_troubles();
  void plan_callers();
  void plan_crashes();
  void plan_capacity();
  void do_something();
  void submit_something(Shard& shard);
  void submit(Shard& shard, std::vector<Task> tasks, store::KeysLock lock);
  void submit_with_keys(Shard& shard, std::vector<Task> tasks);
  void hold_until_settled(Shard& shard, store::KeysLock lock);
  void interfere(Shard& shard, const Known& known);
  PartOfRun any_part(Shard& shard, const Known& known);
  void run_until(Time when);

  void interrupt(Shard& shard);
  void turn_on();
  void boot(store::OwnedShard owned);
  void calm_down();
  void run_until_all_have_ended(const char* when);
  bool is_everything_done() const;
  void resume_all();
  void release_those_who_wait(bool by_signal);
  void ask_everybody();
  void check_the_end(Shard& shard);
  void check_recovery(Shard& shard);

  World world_;
  bool on_sqlite_;
  std::uint32_t owners_;
  std::string path_;
  std::unique_ptr<store::Ledger> ledger_;
  runtime::LoopSettings settings_;
  Program program_;
  std::deque<Shard> shards_;  // by slot
  std::vector<Behaviour> behaviours_;
  std::uint32_t crashes_planned_ = 0;
  std::vector<Time> bursts_;
  bool calm_ = false;
  std::uint64_t happenings_ = 0;
};

// ---- what the seed says ----------------------------------------

void SimulatedHistory::add_shard() {
  Shard& shard = shards_.emplace_back(world_, program_, settings_);
  shard.callers.max_open = settings_.max_open;
  shard.callers.retention = settings_.keep_ended || settings_.keep_count;
  if (shard.callers.retention) shard.model.retention_is_on();
  shard.executor.script = [this](const exec::Job& job) { return act(world_, behaviours_[job.handler], job, calm_); };
  shard.executor.prepare_script = [this](const exec::Preparation&) {
    return find_out(world_, behaviours_[world_.below(behaviours_.size())], calm_);
  };
  shard.machine.gone = [this, &shard] {
    shard.store.take();
    if (owners_ > 1) world_.after(world_.span(millisecond, second), [this] { turn_on(); });
  };
  shard.model.is_key_elsewhere = [this, &shard](const std::string& key) {
    return std::ranges::any_of(shards_,
                               [&](const Shard& other) { return &other != &shard && other.model.has_key(key); });
  };
}

SimulatedHistory::~SimulatedHistory() {
  for (Shard& shard : shards_) shard.store.take();
  if (path_.empty()) return;
  std::error_code ignored;
  const std::string stem = path_.substr(0, path_.size() - std::string_view{".db"}.size());
  for (std::uint32_t slot = 0; slot < owners_; ++slot) {
    const std::string path = slot == 0 ? path_ : stem + "-" + std::to_string(slot) + ".db";
    for (const char* ending : {"", "-wal", "-shm", "-owner", "-journal", "-keys"})
      std::filesystem::remove(path + ending, ignored);
  }
}

// An id says which shard has its run.
Shard& SimulatedHistory::shard_of(const RunId& id) {
  const auto slot = runtime::slot_in(secret_of_all, id);
  if (!slot || *slot >= owners_) throw Violation{"an id leads to no shard", 0};
  return shards_[*slot];
}

bool SimulatedHistory::are_all_up() const {
  return std::ranges::all_of(shards_, [](const Shard& shard) { return shard.machine.is_up(); });
}

std::uint64_t SimulatedHistory::open() const {
  std::uint64_t open = 0;
  for (const Shard& shard : shards_) open += shard.model.open();
  return open;
}

void SimulatedHistory::draw_troubles() {
  for (Shard& shard : shards_) {
    StoreFaults& faults = shard.store.faults;
    if (world_.chance(700)) faults.slowest = world_.span(100'000, 200 * millisecond);
    if (world_.chance(400)) faults.fails = static_cast<std::uint32_t>(world_.between(1, 200));
    if (world_.chance(400)) faults.unanswered = static_cast<std::uint32_t>(world_.between(1, 200));
    if (world_.chance(400)) faults.reopen_fails = static_cast<std::uint32_t>(world_.between(1, 700));
    if (world_.chance(600)) faults.slowest_read = world_.span(100'000, 500 * millisecond);
    if (world_.chance(250)) faults.read_fails = static_cast<std::uint32_t>(world_.between(1, 60));
    if (owners_ > 1 && world_.chance(300)) faults.forgets = static_cast<std::uint32_t>(world_.between(1, 200));
    shard.machine.lazy = world_.chance(500) ? 1000 : static_cast<std::uint32_t>(world_.between(0, 1000));
    shard.machine.watched = world_.chance(300);
    if (world_.chance(300)) shard.machine.handlers_come = world_.span(millisecond, 5 * second);
    shard.executor.threads = 1 + world_.below(16);
    shard.executor.waits_for_a_place = world_.below(4);
  }
  for (const Program::NamedHandler& handler : program_.handlers) {
    behaviours_.push_back(draw_behaviour(world_));
    behaviours_.back().is_limited = handler.options.concurrency > 0;
  }
  crashes_planned_ = world_.chance(850) ? static_cast<std::uint32_t>(world_.between(1, 6)) : 0;
}

void SimulatedHistory::plan_callers() {
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

void SimulatedHistory::plan_crashes() {
  for (std::uint32_t left = crashes_planned_; left > 0; --left) {
    // Mostly while something is going on.
    const bool anytime = bursts_.empty() || world_.chance(200);
    const Time when = anytime ? world_.now() + world_.between(0, stormy_part)
                              : bursts_[world_.below(bursts_.size())] + world_.span(1000, 3 * second);
    world_.at(when, [this] {
      Shard& shard = any_shard();
      if (!shard.machine.is_off() && !calm_) interrupt(shard);
    });
  }
  // The disk fills up for a while.
  if (!world_.chance(200)) return;
  const Time begin = world_.now() + world_.between(0, stormy_part / 2);
  const auto fill_up = [this](bool is_full) {
    for (Shard& shard : shards_) shard.store.is_full = is_full;
  };
  world_.at(begin, [fill_up] { fill_up(true); });
  world_.at(begin + world_.span(10 * millisecond, 20 * second), [fill_up] { fill_up(false); });
}

// It stops, crashes, or sleeps until its shard is another's. After a while the next process comes.
void SimulatedHistory::interrupt(Shard& shard) {
  constexpr Time longest_sleep = 5 * second;
  auto* const leases = dynamic_cast<store::MemoryLedger*>(ledger_.get());  // a lock on a file does not lapse
  if (world_.chance(100)) shard.machine.set_clock_back(world_.span(millisecond, 2 * second));
  if (world_.chance(150)) {
    shard.machine.stop();
  } else if (owners_ > 1 && leases != nullptr && world_.chance(250) && shard.machine.is_up() &&
             world_.now() < birth + stormy_part - longest_sleep) {
    leases->lapse(shard.store.slot());
    world_.after(world_.span(millisecond, longest_sleep), shard.machine.lose_shard());
  } else {
    shard.machine.crash();
    shard.store.take();
  }
  world_.after(world_.chance(500) ? world_.span(1, 100 * millisecond) : world_.span(millisecond, 30 * second),
               [this] { turn_on(); });
}

void SimulatedHistory::plan_capacity() {
  if (calm_) return;
  for (Shard& shard : shards_) {
    shard.executor.threads = 1 + world_.below(16);
    shard.executor.waits_for_a_place = world_.below(4);
  }
  world_.after(world_.span(millisecond, 5 * second), [this] { plan_capacity(); });
}

// ---- the first part ----------------------------------------

void SimulatedHistory::do_something() {
  if (calm_) return;
  Shard& shard = any_shard();
  if (!shard.machine.is_up()) return;
  const std::size_t what = world_.below(100);
  const Known* const known = shard.callers.any();
  if (what < 55 || known == nullptr) return submit_something(shard);
  if (what < 60) return shard.callers.ask_for_nonsense(program_);
  if (what < 64) return shard.callers.find_all();
  if (what < 68) return shard.callers.find_some();
  if (what < 78) return shard.callers.ask(known->id, static_cast<Question>(world_.below(3)));
  interfere(shard, *known);
}

void SimulatedHistory::submit_something(Shard& shard) {
  std::vector<Task> tasks;
  const std::size_t count = world_.chance(150) ? 1 + world_.below(12) : 1;
  while (tasks.size() < count) tasks.push_back(draw_task(world_, program_));
  const bool has_key = std::ranges::any_of(tasks, [](const Task& task) { return !task.key.empty(); });
  if (owners_ > 1 && has_key) return submit_with_keys(shard, std::move(tasks));
  submit(shard, std::move(tasks), {});
}

// As the command does: under one lock the key is looked up in all shards, and the shard that has it is asked.
void SimulatedHistory::submit_with_keys(Shard& shard, std::vector<Task> tasks) {
  if (calm_ || !shard.machine.is_up()) return;
  const store::KeysLock lock = ledger_->try_lock_keys().value();
  if (lock == nullptr) {
    world_.after(world_.span(millisecond, second),
                 [this, &shard, tasks = std::move(tasks)] { submit_with_keys(shard, tasks); });
    return;
  }
  const auto views = ledger_->look();
  std::map<Shard*, std::vector<Task>> by_shard;
  std::vector<Shard*> order{&shard};
  for (Task& task : tasks) {
    Shard* has_it = &shard;
    for (const store::ShardView& view : views) {
      if (!task.key.empty() && view.view.value()->run_of_key(task.key).value()) has_it = &shards_[view.shard.slot];
    }
    if (std::ranges::find(order, has_it) == order.end()) order.push_back(has_it);
    by_shard[has_it].push_back(std::move(task));
  }
  for (Shard* const each : order) {
    if (auto& wanted = by_shard[each]; !wanted.empty()) submit(*each, std::move(wanted), lock);
  }
}

void SimulatedHistory::submit(Shard& shard, std::vector<Task> tasks, store::KeysLock lock) {
  const auto then = [this, &shard, lock](const std::expected<void, Error>& answer, const std::vector<RunId>& ids) {
    if (lock != nullptr && !answer) hold_until_settled(shard, lock);
    if (!answer || calm_) return;
    for (const RunId& id : ids) {
      if (&shard_of(id) != &shard) throw Violation{"the id of a run names another shard", runtime_number(id)};
      if (world_.chance(400)) world_.after(0, [&shard, id] { shard.callers.ask(id, Question::ended); });
      for (std::size_t times = world_.chance(350) ? 1 + world_.below(4) : 0; times > 0; --times) {
        world_.after(world_.span(millisecond, 20 * second), [this, id] {
          Shard& owner = shard_of(id);
          const auto known = owner.callers.known().find(runtime_number(id));
          if (!calm_ && known != owner.callers.known().end()) interfere(owner, known->second);
        });
      }
    }
  };
  shard.callers.submit(std::move(tasks), then);
}

// Trouble with the store says nothing: the engine keeps trying, and until it is known nobody else may make a run with the key.
void SimulatedHistory::hold_until_settled(Shard& shard, store::KeysLock lock) {
  world_.after(100 * millisecond, [this, &shard, lock = std::move(lock), life = shard.model.life()] {
    if (shard.model.life() == life && !shard.machine.is_off() && shard.machine.loop()->outstanding() > 0)
      hold_until_settled(shard, lock);
  });
}

void SimulatedHistory::interfere(Shard& shard, const Known& known) {
  Callers& callers = shard.callers;
  const std::size_t what = world_.below(100);
  if (what < 15) return callers.operate(Operation::cancel, known.id, "enough");
  if (what < 35) return callers.operate(Operation::pause, known.id);
  if (what < 60) return callers.operate(Operation::resume, known.id);
  if (what < 75)
    return callers.operate(Operation::signal, known.id, world_.chance(500) ? "go" : "stop", draw_output(world_));
  if (what < 81) return callers.operate(Operation::retry_failed, known.id);
  if (what < 86) return callers.operate(Operation::retry_failed, known.id, {}, {}, {}, any_part(shard, known));
  if (what < 89) {
    PartOfRun part = any_part(shard, known);
    if (!part.item) part.item = 0;  // one dead letter for each that is asked for
    return callers.operate(Operation::drop, known.id, {}, {}, {}, part);
  }
  if (what < 94) return callers.operate(Operation::remove, known.id);
  callers.ask(known.id, static_cast<Question>(world_.below(3)));
}

PartOfRun SimulatedHistory::any_part(Shard& shard, const Known& known) {
  const RunStory& story = *shard.model.find(known.number);
  const std::size_t step = world_.below(story.steps.size());
  PartOfRun part{.step = *story.plan->steps[step].name};
  const std::size_t items = story.steps[step].items.size();
  if (items > 0 && world_.chance(600)) part.item = static_cast<std::uint32_t>(world_.below(items));
  return part;
}

void SimulatedHistory::run_until(Time when) {
  while (!world_.is_over() && world_.next() <= when) {
    if (++happenings_ > happenings_max) throw Violation{"more happens than can be: does somebody go in circles?", 0};
    world_.run_next();
  }
}

void SimulatedHistory::live() {
  for (std::uint32_t owner = 0; owner < owners_; ++owner) turn_on();
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
  if (open() > 0) throw Violation{"there are open runs after everything was cancelled", 0};
  ask_everybody();
  for (Shard& shard : shards_) check_the_end(shard);
}

// ---- the second part ----------------------------------------

void SimulatedHistory::calm_down() {
  calm_ = true;
  for (Shard& shard : shards_) {
    shard.store.faults = {};
    shard.store.is_full = false;
    shard.machine.handlers_come = 0;
    shard.executor.threads = 16;
    shard.executor.waits_for_a_place = 1;
  }
  // What crashed is started by its own alarm; the first part may have planned none.
  for (std::uint32_t owner = 0; owner < owners_; ++owner) world_.after(0, [this] { turn_on(); });
}

// A process starts: it takes the first shard that nobody owns, with the runs that its last owner has left. What is being stopped has an
// owner until it has stopped.
void SimulatedHistory::turn_on() {
  bool is_tried = false;
  for (Shard& shard : shards_) {
    if (!shard.machine.is_off() || !shard.store.is_given()) continue;  // its owner could not read it so far
    shard.machine.boot();
    is_tried = true;
  }
  auto owned = ledger_->claim();
  if (owned) return boot(*std::move(owned));
  if (owned.error().code != ErrorCode::full) throw Violation{"a shard cannot be claimed: " + owned.error().message, 0};
  if (!is_tried && !are_all_up()) world_.after(100 * millisecond, [this] { turn_on(); });
}

void SimulatedHistory::boot(store::OwnedShard owned) {
  Shard& shard = shards_.at(owned.shard.slot);
  if (shard.store.is_given()) throw Violation{"shard " + std::to_string(owned.shard.slot) + " has two owners", 0};
  shard.store.give(std::move(owned.store));
  shard.machine.boot();
}

bool SimulatedHistory::is_everything_done() const {
  return std::ranges::all_of(shards_, [](const Shard& shard) {
    if (!shard.machine.is_quiet() || !shard.machine.is_up()) return false;
    if (shard.model.open() == 0) return true;
    return std::ranges::all_of(shard.model.stories(), [&](const auto& entry) {
      return entry.second.ended || entry.second.removed || shard.model.waits_for_ever(entry.second);
    });
  });
}

void SimulatedHistory::run_until_all_have_ended(const char* when) {
  const Time end = world_.now() + patience;
  for (std::uint64_t round = 0; !world_.is_over() && world_.next() <= end; ++round) {
    if (++happenings_ > happenings_max) throw Violation{"more happens than can be: does somebody go in circles?", 0};
    world_.run_next();
    if (round % 32 == 0 && is_everything_done()) break;
  }
  if (is_everything_done()) return;
  for (const Shard& shard : shards_) {
    for (const auto& [number, story] : shard.model.stories()) {
      if (story.ended || story.removed || shard.model.waits_for_ever(story)) continue;
      throw Violation{"run " + std::to_string(number) + " does not end, " + when, number};
    }
  }
  throw Violation{std::string{"the engine does not come to rest, "} + when, 0};
}

void SimulatedHistory::resume_all() {
  for (Shard& shard : shards_) {
    for (const auto& [number, known] : shard.callers.known()) {
      const RunStory* const story = shard.model.find(number);
      if (!story->removed && story->paused_at != 0) shard.callers.operate(Operation::resume, known.id);
    }
  }
  // Runs whose submit was never answered may have been made all the same; nobody has paused them.
}

void SimulatedHistory::release_those_who_wait(bool by_signal) {
  for (Shard& shard : shards_) {
    for (const auto& [number, story] : shard.model.stories()) {
      if (story.ended || story.removed) continue;
      const RunId id = runtime_id(shard.store, number, story.created);
      const std::string signal = shard.model.wanted_signal(story);
      if (by_signal && !signal.empty() && world_.chance(600)) {
        shard.callers.operate(Operation::signal, id, signal, "at last");
      } else if (!by_signal) {
        shard.callers.operate(Operation::cancel, id, "the end");
      }
    }
  }
}

void SimulatedHistory::ask_everybody() {
  const auto answers = [this] {
    std::uint64_t answered = 0;
    for (const Shard& shard : shards_) answered += shard.callers.answered();
    return answered;
  };
  const std::uint64_t before = answers();
  std::uint64_t asked = 0;
  for (Shard& shard : shards_) {
    for (const auto& [number, known] : shard.callers.known()) {
      shard.callers.ask(known.id, Question::ended);
      shard.callers.ask(known.id, Question::past);
      asked += 2;
    }
    shard.callers.find_all();
    ++asked;
  }
  run_until(world_.now() + 10 * second);
  if (answers() != before + asked) throw Violation{"somebody got no answer, although nothing is wrong", 0};
}

void SimulatedHistory::check_the_end(Shard& shard) {
  shard.callers.check_tallies();
  runtime::Loop& loop = *shard.machine.loop();
  shard.model.compare(loop);
  shard.model.check_books(loop);
  if (loop.core().resident() > 0) throw Violation{"every run has ended, and memory is not empty", 0};
  if (loop.core().timers() > 0) throw Violation{"every run has ended, and timers are left", 0};
  shard.machine.crash();
  check_recovery(shard);
}

// The same store, read twice, gives the same; and what the model has seen is what is there.
void SimulatedHistory::check_recovery(Shard& shard) {
  shard.model.compare_history(shard.store.inner());
  std::string states[2];
  for (std::string& state : states) {
    runtime::Loop loop{shard.store, {&shard.executor}, settings_, 1, world_.now()};
    auto plans = loop.recover(pattern_compiler(), world_.now());
    if (!plans) throw Violation{"the store cannot be recovered: " + plans.error().message, 0};
    loop.core().for_each_run([&](const core::Run& run) { core::encode_state(run, state); });
  }
  if (states[0] != states[1]) throw Violation{"two recoveries of the same store differ", 0};
}

// Shards count on their own: each that has a run of this number tells of its own.
std::string SimulatedHistory::tell(std::uint64_t run) const {
  std::string told;
  for (std::size_t slot = 0; slot < shards_.size(); ++slot) {
    if (shards_[slot].model.find(run) == nullptr) continue;
    if (owners_ > 1) told += "  shard " + std::to_string(slot) + ":\n";
    told += shards_[slot].model.tell(run, 40);
  }
  return told;
}

void SimulatedHistory::fill(HistoryReport& report) const {
  for (const Shard& shard : shards_) {
    report.runs += shard.model.stories().size();
    report.events_recorded += shard.model.events();
    report.crashes += shard.machine.crashes();
    report.commits += shard.store.writes();
    for (const auto& [number, story] : shard.model.stories()) report.attempts_lost += story.lost;
  }
  report.settings = "memory " + std::to_string(settings_.memory) + ", park_after " +
                    std::to_string(settings_.park_after.count()) + "ns, journal_max " +
                    std::to_string(settings_.journal_max) + ", slowest write " +
                    std::to_string(shards_[0].store.faults.slowest) + "ns" + (on_sqlite_ ? ", on SQLite" : "") +
                    (shards_[0].callers.retention ? ", retention" : "") +
                    (owners_ > 1 ? ", " + std::to_string(owners_) + " owners" : "");
}

}  // namespace

HistoryReport run_history(std::uint64_t seed) {
  HistoryReport report;
  SimulatedHistory history{seed};
  try {
    history.live();
  } catch (const Violation& violation) {
    report.ok = false;
    report.what = violation.what();
    if (violation.run() != 0) report.events = history.tell(violation.run());
  }
  history.fill(report);
  return report;
}

}  // namespace reprise::sim
