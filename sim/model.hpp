// What must be true: the story of every run as the store has it, and the promises of the design checked against it.
//
// The model reads every commit at the moment it becomes durable, and nothing else: it never asks the engine. For each run it keeps
//   - a story: a plain second reading of the events, which knows the grammar of events and when something is too early or too much;
//   - a shadow: the state that replaying the events from the first one gives. Every image and every state in memory must equal it.
// Executors and callers ask it whether what they see is allowed. A broken promise is thrown as a Violation.
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <reprise/failure.hpp>

#include "core/core.hpp"
#include "exec/executor.hpp"
#include "runtime/loop.hpp"
#include "sim/world.hpp"
#include "store/store.hpp"

namespace reprise::sim {

struct ItemStory {
  enum class Status : std::uint8_t { untouched, reserved, running, failing, waiting, succeeded, failed, canceled };
  Status status = Status::untouched;
  std::uint32_t attempt = 0;
  std::uint32_t token = 0;
  std::uint32_t earlier = 0;  // attempts of earlier visits, and before it was retried on request
  std::uint32_t unused = 0;   // of the others: lost or interrupted
  std::uint32_t lost_in_a_row = 0;
  std::uint32_t life = 0;   // of the engine that started it
  std::uint8_t stage = 0;   // core::stage
  bool lost = false;        // its last attempt was
  bool outside = false;     // running: its end comes from ...
  std::uint64_t child = 0;  // ... this run
  bool dead_letter = false;
  Time since = 0;           // waiting: from then on ...
  Time paused_then = 0;     // ... of the time the run had been paused by then
  Time delay = 0;           // ... for this long
  Time previous_delay = 0;  // after a failure of its own
  Time floor = 0;           // the failure's retry_after

  std::uint32_t used() const { return attempt - earlier - unused; }
  // Nobody has touched it since; the numbers of its attempts go on.
  void begin_anew(std::uint32_t attempts) {
    *this = {};
    attempt = earlier = attempts;
  }
};

struct StepStory {
  std::vector<ItemStory> items;
  std::uint32_t running = 0;
  std::uint32_t reserved = 0;
  std::uint32_t visits = 1;
  Time last_end = 0;    // of any of its items
  bool closed = false;  // skipped or unreachable
  bool circuit_open = false;
  bool prepared = false;  // its items were counted, or it was said that it may begin
};

struct RunStory {
  std::uint64_t number = 0;
  std::shared_ptr<const core::Plan> plan;
  std::string key;
  Time created = 0;
  Time due = 0;
  Time last_time = 0;
  Time previous_time = 0;  // of the event before that
  std::uint64_t sequence = 0;
  std::uint32_t running = 0;
  std::uint32_t reserved = 0;
  std::uint32_t lost = 0;
  bool ended = false;
  bool cancel_requested = false;
  bool finishing = false;  // those steps have begun that run in any case
  bool removed = false;
  Time removed_at = 0;
  Time paused_at = 0;
  Time paused_total = 0;
  Time epoch = 0;  // created, or when it was reopened
  Time paused_before_epoch = 0;
  std::uint32_t reopened = 0;
  RunStatus status = RunStatus::running;
  struct Ending {
    RunStatus status;
    Time when;
  };
  std::vector<Ending> endings;
  std::vector<StepStory> steps;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> breakers;
  std::deque<std::string> signals;
  std::array<std::uint32_t, 32> counts{};  // of its events, by type; cancels by a deadline are not among them

  Time paused_until(Time time) const { return paused_total + (paused_at != 0 ? time - paused_at : 0); }
  std::uint32_t count(EventType type) const { return counts[static_cast<std::size_t>(type)]; }
};

class Model {
 public:
  Model(World& world, core::PatternCompiler compile) : world_{world}, compile_{std::move(compile)}, shadow_{birth, 1} {
    shadow_.use(core::FactsDecoder{compile_, nullptr});
  }

  std::function<bool(const std::string& key)> is_key_elsewhere = {};  // has another shard a run with it?

  // ---- the store tells ----
  void durable(const store::Commit& commit);

  // ---- the executor tells ----
  void begun(const exec::Job& job, Time wall);
  void asked(const exec::Preparation& preparation) const;
  bool is_list(const event::AttemptId& step) const;  // has it an item for each element?
  void sent(const event::AttemptId& id, const event::PayloadView& output);
  void sent(const event::AttemptId& id, const Failure& failure);
  void handed(const event::AttemptId& id);  // to a run of its own

  // ---- the machine tells ----
  void new_life() { ++life_; }
  void clock_was_set_back(Time by) { slack_ = std::max(slack_, by); }
  void may_remove(std::uint64_t run) { removable_[run] = true; }
  void retention_is_on() { retention_ = true; }
  // An observer is told of what is durable, and of nothing else.
  void published(std::uint64_t run, std::uint64_t chunk_first, std::uint64_t new_first, std::string_view chunk) const;
  // When everything is durable: what is in memory is what a replay gives.
  void compare(runtime::Loop& loop) const;
  // The engine is as tidy as it says, when it has nothing to do.
  void check_books(runtime::Loop& loop) const;

  // ---- for everybody ----
  const RunStory* find(std::uint64_t run) const;
  bool has_key(const std::string& key) const { return keys_.contains(key); }
  const std::map<std::uint64_t, RunStory>& stories() const noexcept { return stories_; }
  std::uint64_t open() const noexcept { return open_; }
  std::uint64_t events() const noexcept { return events_; }
  std::uint32_t life() const noexcept { return life_; }
  // Open, and nothing but a signal or an operator can bring it further.
  bool waits_for_ever(const RunStory& story) const;
  std::string wanted_signal(const RunStory& story) const;
  std::string state_of(std::uint64_t run) const;
  // The last events of a run as text, one per line.
  std::string tell(std::uint64_t run, std::size_t last) const;
  // Every event of the run, in order.
  void for_each_event(std::uint64_t run, const std::function<void(const event::Record&)>& visit) const;
  // The history in the store is the one that was watched; two recoveries give the same.
  void compare_history(store::Store& store) const;

 private:
  [[noreturn]] void fail(const RunStory& story, const std::string& what) const;
  void take(std::uint64_t run, std::uint64_t first_sequence, std::string_view chunk);
  void read(RunStory& story, const event::Record& record);
  void submitted(RunStory& story, const event::Record& record);
  void reserved(RunStory& story, const event::Record& record);
  void check_clocks(const RunStory& story) const;
  void check_begin(const RunStory& story, const ItemStory& item, const event::Record& record) const;
  void started(RunStory& story, const event::Record& record);
  void completed(RunStory& story, const event::Record& record);
  void failed(RunStory& story, const event::Record& record);
  void retrying(RunStory& story, const event::Record& record);
  void judge_loss(const RunStory& story, ItemStory& item, const event::Record& record) const;
  void interrupted(RunStory& story, const event::Record& record);
  void fallback(RunStory& story, const event::Record& record);
  void finishing(RunStory& story, const event::Record& record);
  void closed(RunStory& story, const event::Record& record);
  void dead_letter(RunStory& story, const event::Record& record);
  bool reopen_step(const RunStory& story, std::uint32_t index, StepStory& step, const event::Record& record) const;
  void revisited(RunStory& story, const event::Record& record);
  void reopened(RunStory& story, const event::Record& record);
  void ended(RunStory& story, const event::Record& record);
  void handed_over(RunStory& story, const event::Record& record);
  void handed_back(RunStory& story, const event::Record& record);
  bool waits_for_children_only(const RunStory& story) const;
  bool is_held_up(const RunStory& story, std::uint32_t step) const;
  void check_children();
  void check_claims();
  void check_time(const RunStory& story, const ItemStory& item, const event::Record& record) const;
  void count_failure(RunStory& story, const event::Record& record);
  void remove(std::uint64_t run);
  ItemStory& item_of(RunStory& story, const event::Record& record);

  World& world_;
  core::PatternCompiler compile_;
  core::Core shadow_;  // its runs are never live
  std::map<std::uint64_t, RunStory> stories_;
  std::map<std::string, std::uint64_t, std::less<>> keys_;
  struct Sent {
    std::vector<event::Payload> outputs;
    std::vector<Failure> failures;
    bool handed = false;
    std::optional<Time> began = {};
  };
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, Sent>> sent_;  // by run and token
  std::map<std::uint64_t, bool> removable_;
  // Of the commit that is being read: runs that ended or were cancelled in it, and ends of attempts that are said to come from a child.
  struct Claim {
    std::uint64_t parent;
    std::uint64_t child;
    RunStatus status;
    event::Payload output;
  };
  std::vector<std::uint64_t> ended_now_;
  std::vector<std::uint64_t> canceled_now_;
  std::vector<Claim> claims_;
  std::uint64_t open_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t last_commit_ = 0;
  std::uint32_t life_ = 0;
  Time slack_ = 0;
  bool retention_ = false;
};

}  // namespace reprise::sim
