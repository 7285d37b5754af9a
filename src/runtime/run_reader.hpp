// One way to look at runs: which there are, how one stands, what happened in it, what its items were given and how they failed.
//
//   std::expected<RunPage, Error> failed = reader.find({.status = RunStatus::failed});
//   std::expected<std::optional<RunView>, Error> view = reader.run(*reader.resolve("@last"));
//
// Two implementations stand on one piece of code (shard_reader.hpp): the stored state (ShardSnapshot, and Snapshot for all shards of a store),
// which is as old as the last commit, and the live engine (LiveReader), which is never behind what was acknowledged.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/engine.hpp>
#include <reprise/error.hpp>
#include <reprise/event.hpp>

#include "core/plan.hpp"
#include "core/state.hpp"

namespace reprise::runtime {

struct StepView {  // as the state has it
  std::string name;
  core::StepStatus status = core::StepStatus::pending;
  bool has_items = false;  // it works through a list, also when that has one element
  std::uint32_t items = 1;
  std::uint32_t running = 0;
  std::uint32_t succeeded = 0;
  std::uint32_t failed = 0;
  std::uint32_t canceled = 0;
  std::uint32_t visits = 0;
};

struct RunView {
  RunInfo info;
  RunOutcome outcome;                      // as far as it is known; large outputs are loaded
  std::string input = {};                  // what it was submitted with
  std::uint64_t sequence = 0;              // of its last event
  std::shared_ptr<const core::Plan> plan;  // its steps and their resolved policies
  std::vector<StepView> steps = {};        // in the plan's order

  std::uint32_t given_items() const;  // of a task that was submitted with items; else 0
};

// A work item that has been touched. Views: valid during the call.
struct ItemView {
  std::string_view step = {};
  std::uint32_t item = 0;
  bool has_items = false;  // of the step
  core::ItemStatus status = core::ItemStatus::untouched;
  std::uint64_t attempts = 0;
  const Failure* failure = nullptr;  // the last one
  StopReason reason = StopReason::none;
  bool dead_letter = false;
  bool skipped = false;  // the circuit of its step was open before it had begun (again)
  WallTime due = {};  // waiting: until then; dead letter: since then
};

struct Replayed {
  RunView view;          // worked out from the events alone, from the first to the last
  bool is_same = false;  // equal to what is recorded, to the last byte of its state
};

struct DeadLetter {
  RunId run = {};
  std::string flow;  // or the name of the handler
  std::string step;
  std::uint32_t item = 0;
  bool has_items = false;
  std::uint64_t attempts = 0;
  Failure failure = {};
  StopReason reason = StopReason::none;
  bool skipped = false;  // the circuit of its step was open before it could be tried again; `failure` is from before
  WallTime time = {};    // when it was given up
};

class RunReader {
 public:
  RunReader() = default;
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;
  RunReader(RunReader&&) = default;
  RunReader& operator=(RunReader&&) = default;
  virtual ~RunReader() = default;

  // Newest first, by time of creation. A page is full unless it is the last.
  virtual std::expected<RunPage, Error> find(const RunQuery& query, std::string_view cursor = {}) = 0;
  virtual std::expected<std::optional<RunId>, Error> find_key(std::string_view key) = 0;
  // A full id, a unique prefix of one (at least 4 characters), @last or @last-failed. The error is a sentence; code `not_found` or,
  // when several runs match, `invalid`.
  std::expected<RunId, Error> resolve(std::string_view name);

  virtual std::expected<std::optional<RunView>, Error> run(const RunId& id) = 0;
  // Complete histories only: in order, with names and everything that can be worked out (event/history.hpp). The visitor returns false to
  // stop.
  virtual std::expected<void, Error> each_event(const RunId& id, const std::function<bool(Event&&)>& visit) = 0;
  std::expected<std::vector<Event>, Error> events(const RunId& id);
  // Those that have been touched, step by step, in order. The visitor returns false to stop.
  virtual std::expected<void, Error> each_item(const RunId& id, const std::function<bool(const ItemView&)>& visit) = 0;
  // What this work item was given: its element, or for a step without items what the run was submitted with.
  virtual std::expected<std::string, Error> item_input(const RunId& id, std::string_view step, std::uint32_t item) = 0;
  // Of the first `limit` items of a step of a document, as JSON for people; empty: its items are not known.
  virtual std::expected<std::vector<std::string>, Error> item_inputs(const RunId& id, std::string_view step,
                                                                     std::size_t limit) = 0;
  // The events once more through the engine's own rules, from the very first one. Nothing is executed.
  virtual std::expected<Replayed, Error> replay(const RunId& id) = 0;

  // Of all runs, newest run first, or of one; at most `limit`.
  virtual std::expected<std::vector<DeadLetter>, Error> dead_letters(std::size_t limit) = 0;
  virtual std::expected<std::vector<DeadLetter>, Error> dead_letters_of(const RunId& id, std::size_t limit) = 0;

  // `hash`: hexadecimal, as Event::output has it for large ones.
  virtual std::expected<std::string, Error> payload(const RunId& id, std::string_view hash) = 0;
  // What the failed attempt left behind, in the failure itself, wherever it was kept. What cannot be read stays as it is.
  void add_evidence(const RunId& id, Failure& failure);
};

// What readers say of a run that is not there.
Error no_such_run(std::string_view name);

}  // namespace reprise::runtime
