// One shard of a store as it is at this moment, for those who only want to look: nothing is written, nothing is decided, nobody is locked
// out. Nothing is held open either: plans and journal are copied when it is opened, the rest is read when it is asked for, page by page,
// and whoever takes long over the answer hinders nobody. One run is seen as it was at one moment, as long as no other is asked for.
// snapshot.hpp puts all shards of a store together.
//
// Works while another process owns the store, and on one whose owner was killed: attempts that were running then still look running.
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
#include "store/store.hpp"

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
  WallTime time = {};  // when it was given up
};

class ShardSnapshot {
 public:
  static std::expected<ShardSnapshot, Error> open(std::unique_ptr<store::StoreView> view);
  static std::expected<ShardSnapshot, Error> open(
      const std::string& path);  // of its file; `not_found` when there is none
  ShardSnapshot(ShardSnapshot&&) noexcept;
  ShardSnapshot& operator=(ShardSnapshot&&) noexcept;
  ~ShardSnapshot();

  std::uint64_t secret() const noexcept;
  std::uint32_t slot() const noexcept;

  struct Page {
    std::vector<RunInfo> runs;
    bool has_more = false;  // below the number of the last one
  };
  // Newest (highest number) first, below that number; 0 = from the newest.
  std::expected<Page, Error> find(const RunQuery& query, std::uint64_t below_number = 0);
  std::expected<std::optional<RunId>, Error> find_key(std::string_view key);
  std::expected<std::optional<RunView>, Error> run(const RunId& id);
  // Complete histories only: in order, with names and everything that can be worked out (event/history.hpp).
  std::expected<std::vector<Event>, Error> events(const RunId& id);
  // The same one after the other, for runs with very many; the visitor returns false to stop.
  std::expected<void, Error> each_event(const RunId& id, const std::function<bool(Event&&)>& visit);
  // hexadecimal, as Event::output has it for large ones
  std::expected<std::string, Error> payload(std::string_view hash);
  // What this work item was given: its element, or for a step without items what the run was submitted with.
  // Of the first `limit` items of a step of a document, as JSON for people; empty: its items are not known.
  std::expected<std::vector<std::string>, Error> item_inputs(const RunId& id, std::string_view step, std::size_t limit);
  std::expected<std::string, Error> item_input(const RunId& id, std::string_view step, std::uint32_t item);

  // The events once more through the engine's own rules, from the very first one. Nothing is executed.
  std::expected<Replayed, Error> replay(const RunId& id);
  // Of one run, or of all, newest run first; at most `limit`.
  std::expected<std::vector<DeadLetter>, Error> dead_letters(const std::optional<RunId>& run, std::size_t limit);

 private:
  struct State;
  explicit ShardSnapshot(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::runtime
