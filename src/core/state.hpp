// The state of a run: made for millions, changed by apply() alone, equal after every replay of the same events.
//
// What is marked `volatile` is not part of it: places in queues and in the timer wheel, and the bookkeeping of the journal. It is
// worked out again when a run is loaded.
// Thread safety: none; the loop owns it all.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/facts.hpp"
#include "core/item_policies.hpp"
#include "core/plan.hpp"
#include "core/timer_wheel.hpp"
#include "event/record.hpp"

namespace reprise::core {

using event::AttemptId;
using event::Payload;
using event::Time;

// `outside`: the attempt goes on, and its end comes from elsewhere. It takes no place in the executor, and a restart does not lose it.
// `reserved`: the first attempt is recorded ahead of a free place, and begins when the executor has one. No clock runs.
// The numbers are stored.
enum class ItemStatus : std::uint8_t { untouched, waiting, running, succeeded, failed, canceled, outside, reserved };
enum class StepStatus : std::uint8_t { pending, preparing, active, succeeded, failed, skipped, unreachable };

// A time from now on, or the end of time: spans may be as long as they like.
constexpr Time later(Time time, std::int64_t span) noexcept {
  return span > 0 && time > INT64_MAX - span ? INT64_MAX : time + span;
}

std::string_view name_of(StepStatus status) noexcept;
constexpr bool is_final(StepStatus status) noexcept { return status >= StepStatus::succeeded; }

// What an item has only once something went wrong. Waits after losses count for nothing but themselves.
struct Trouble {
  Failure failure;                  // the last one of its own; without any: the last loss
  std::int64_t waited = 0;          // after failures
  std::int64_t previous_delay = 0;  // of the last of those waits
  std::int64_t wait = 0;            // the last wait of any kind
  std::uint32_t lost = 0;           // attempts, of those that were started
  std::uint32_t interrupted = 0;
  std::uint32_t earlier = 0;  // before it was retried on request: it has all its attempts again
  std::uint32_t lost_in_a_row = 0;
  StopReason reason = StopReason::none;
  enum class Cause : std::uint8_t { none, loss, own } cause = Cause::none;  // whose `failure` is
};

struct Item {
  Time due = 0;  // waiting: until then. outside: when its time is over; 0 = never
  Time first_started = 0;
  std::uint32_t attempt = 0;                    // attempts started so far
  std::uint32_t token = 0;                      // running, outside, reserved: which attempt may report
  TimerWheel::Handle timer = TimerWheel::none;  // volatile
  ItemStatus status = ItemStatus::untouched;
  bool queued = false;  // volatile: stands in a ready queue
  bool dead_letter = false;
  std::uint8_t stage = stage::main;
  std::unique_ptr<Trouble> trouble;
  std::unique_ptr<Payload> output;

  // Those that count towards max_attempts.
  std::uint32_t used_attempts() const noexcept {
    return trouble != nullptr ? attempt - trouble->earlier - trouble->lost - trouble->interrupted : attempt;
  }
  // Has an attempt begun since it was created, or retried on request?
  bool has_begun() const noexcept { return attempt > (trouble != nullptr ? trouble->earlier : 0); }
  bool has_begun_before() const noexcept { return attempt > 1 + (trouble != nullptr ? trouble->earlier : 0); }
  // What the next attempt is told; nullptr: nothing has failed.
  const Failure* last_failure() const noexcept {
    return trouble != nullptr && trouble->cause != Trouble::Cause::none ? &trouble->failure : nullptr;
  }
};

// What a step has only when it has more than one item.
struct Map {
  std::vector<Item> items;          // those touched so far
  std::vector<std::uint32_t> held;  // volatile: due items that max_parallel holds back
  // Untouched again: what was reserved for them was taken back. The last number comes first. Follows from the items.
  std::vector<std::uint32_t> returned;
  Payload list;  // for_each: the elements
};

struct StepState {
  Time activated = 0;  // when its items were created
  Time due = 0;  // items nobody has touched do not start before this; wait and signal steps: when the time is over
  std::uint32_t items = 1;
  std::uint32_t next = 0;  // items from here on are untouched
  std::uint32_t needs_left = 0;
  std::uint32_t running = 0;  // or outside
  std::uint32_t reserved = 0;
  std::uint32_t succeeded = 0;
  std::uint32_t failed = 0;
  std::uint32_t canceled = 0;
  std::uint32_t excused = 0;  // of the failed: those that were left alone when somebody had others tried again
  std::uint32_t visits = 0;
  TimerWheel::Handle timer = TimerWheel::none;  // volatile
  StepStatus status = StepStatus::pending;
  bool circuit_open = false;  // the same failure came too often: nothing of it starts any more
  bool queued = false;        // volatile: its untouched items stand in a ready queue
  Item one;                   // when there is one item ...
  std::unique_ptr<Map> map;   // ... and when there are more

  Item& item(std::uint32_t index) {
    if (map == nullptr) return one;
    if (map->items.size() <= index) map->items.resize(index + 1);
    return map->items[index];
  }
  // nullptr: nobody has touched it.
  const Item* touched(std::uint32_t index) const {
    if (map == nullptr) return index == 0 && next > 0 ? &one : nullptr;
    return index < map->items.size() ? &map->items[index] : nullptr;
  }
  bool has_untouched() const noexcept { return next < items || (map != nullptr && !map->returned.empty()); }
  std::uint32_t first_untouched() const noexcept {
    return map != nullptr && !map->returned.empty() ? map->returned.back() : next;
  }
  // Attempts that have a place under max_parallel, or are promised one.
  std::uint32_t taken() const noexcept { return running + reserved; }
  void touch(std::uint32_t index);   // no longer untouched
  void return_item(std::uint32_t index);  // untouched again
  template <class F>
  void for_each_item(F&& visit) {  // that was touched
    if (map == nullptr) {
      if (next > 0) visit(0U, one);
      return;
    }
    for (std::uint32_t index = 0; index < map->items.size(); ++index) visit(index, map->items[index]);
  }
};

struct Signal {
  std::string name;
  Payload payload;
};

// Where an item's attempt is while it is outside.
struct Outside {
  RunId run = {};        // the sub-flow that does its work; none: whoever has accepted it reports its end
  bool returns = false;  // the attempt checks what that brings
  bool reopens = false;  // an earlier attempt is having it cancelled: it is to begin again when it has ended

  bool operator==(const Outside&) const = default;
};

// What few steps have.
struct StepExtra {
  enum class Circuit : std::uint8_t { closed, open, half_open };  // of its item_breaker; open: until `due` of the step

  std::uint32_t reruns = 0;        // visits that were undone, or begun anew on request: they do not count towards max_visits
  bool keeps_dependants = false;   // it was tried again alone: the steps that need it keep what they have
  Circuit circuit = Circuit::closed;
  std::uint32_t failures = 0;   // of items in a row
  std::uint32_t successes = 0;  // half open: of items since then

  bool operator==(const StepExtra&) const = default;
};

// What few runs have.
struct Extra {
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // step, item
  struct Count {
    std::uint64_t fingerprint;
    std::uint32_t step;
    std::uint32_t count;
  };
  std::vector<Count> breakers;
  std::vector<Signal> signals;  // arrived and not yet consumed
  std::map<Place, Outside> outside;
  // By step: what an attempt fails with when its time is over while it is outside.
  std::map<std::uint32_t, Failure> overdue;
  std::map<std::uint32_t, std::shared_ptr<const ItemPolicies>> item_policies;  // by step
  std::map<std::uint32_t, StepExtra> steps;
  // By step and item: the last number of an attempt in the visits that are over; missing ones have none.
  std::map<std::uint32_t, std::vector<std::uint32_t>> attempts;
  std::string callback;  // where ends are reported that come from no run, as the executor says it
};

struct NumberedPlan {
  std::uint32_t number = 0;
  std::shared_ptr<const Plan> plan;
  std::vector<std::uint32_t> queues;  // of each step
};

// What a durable function does. Operations are steps of its run beside those of the plan, in the order in which they were begun.
struct Operation {
  const NumberedPlan* plan = nullptr;  // of a task that does the same: its only step is this one
  event::OperationKind kind = event::OperationKind::call;
  bool shielded = false;  // a cancel leaves it alone
  std::string path;       // which one of the function's
  std::string name;       // of the handler, the signal …
  std::string place;      // file:line
  Payload input;
  Time due = 0;  // the end of a sleep, or of a signal's patience; 0 = none
  Time called = 0;
  Time ended = 0;
  std::uint32_t ended_at = 0;  // the sequence number of its end; 0 = it is open
  StepState state;
};

struct LoopTurn {
  std::uint32_t turn = 0;
  Payload state;  // with which it began
};

struct FunctionState {
  bool canceling = false;  // it is told so where it waits, and its undos follow
  Payload published;       // how it stands, in its own words
  std::string divergence;  // why it is held; empty = it is not
  std::map<std::string, LoopTurn, std::less<>> loops;  // by path
  // These follow from the operations.
  std::vector<std::uint32_t> open;   // steps that have not ended; undos whose turn has not come are not among them
  std::vector<std::uint32_t> ended;  // steps whose end the function is to be told, in the order in which they ended
  // volatile
  std::size_t told = 0;     // of the ended
  bool has_begun = false;  // its executor has it
  bool is_due = false;     // there is something to tell it
  std::uint32_t deciding = 0;  // what its executor was told and has not answered yet
  std::size_t bytes = 0;    // of the operations, roughly
};

// The states of a run's steps: those of its plan, and operations that are added while it lives. References stay valid.
class StepTable {
 public:
  void create(std::size_t planned) {
    planned_ = std::make_unique<StepState[]>(planned);
    count_ = planned;
    operations_.reset();
  }
  bool operator==(std::nullptr_t) const noexcept { return planned_ == nullptr; }
  StepState& operator[](std::size_t step) const {
    return step < count_ ? planned_[step] : (*operations_)[step - count_].state;
  }
  Operation& add() {
    if (operations_ == nullptr) operations_ = std::make_unique<std::deque<Operation>>();
    return operations_->emplace_back();
  }
  void remove_last() { operations_->pop_back(); }
  std::size_t added() const noexcept { return operations_ == nullptr ? 0 : operations_->size(); }
  // nullptr: it is a step of the plan.
  Operation* operation(std::size_t step) const { return step < count_ ? nullptr : &(*operations_)[step - count_]; }

 private:
  std::unique_ptr<StepState[]> planned_;
  std::size_t count_ = 0;
  std::unique_ptr<std::deque<Operation>> operations_;
};

struct Run {
  std::uint64_t number = 0;
  const NumberedPlan* plan = nullptr;
  Time created = 0;
  Time due = 0;        // submitted with a delay: not before this
  Time last_time = 0;  // of the last event
  Time ended = 0;
  Time paused_at = 0;  // 0 = not paused
  std::int64_t paused_total = 0;
  std::uint32_t sequence = 0;  // of the last event
  std::uint32_t open_steps = 0;
  RunStatus status = RunStatus::running;
  StopReason reason = StopReason::none;  // canceled by its deadline, or by somebody
  std::uint8_t priority = 5;
  bool cancel_requested = false;
  std::string key;
  Payload input;
  StepTable steps;
  std::unique_ptr<Extra> extra;
  std::unique_ptr<const RunFacts> facts;  // what it has for itself; nullptr = nothing
  std::unique_ptr<FunctionState> function;  // nullptr: its steps are those of its plan

  // volatile
  bool live = false;          // stands in queues and in the wheel
  bool touched = false;       // has events that are in no commit yet
  bool has_row = false;       // the store has an image
  bool counted = false;       // among the open runs of the loop's books
  std::uint32_t running = 0;  // or outside ...
  std::uint32_t outside = 0;  // ... of those
  std::uint32_t reserved = 0;
  std::uint32_t queued = 0;   // entries in ready queues, held ones included
  std::uint32_t preparing = 0;
  TimerWheel::Handle deadline_timer = TimerWheel::none;
  std::vector<std::uint32_t> finished;  // steps whose end settle() has not looked at

  // volatile: the journal's view. `events` is a chunk of everything since the last image.
  std::string events;
  std::uint64_t events_first = 0;  // sequence of the first event in it
  std::size_t framed = 0;          // bytes of it that are in frames already
  std::uint32_t framed_sequence = 0;
  Time framed_time = 0;
  std::size_t accounted = 0;          // bytes of memory, as last estimated ...
  std::size_t accounted_waiting = 0;  // ... and as long as it waits for other runs
  std::uint64_t oldest_commit = 0;    // whose frame holds the first of them; 0 = none does
  std::uint64_t leaving_with = 0;     // the commit after which it leaves memory, unless it is touched again

  std::uint32_t taken() const noexcept { return running + reserved; }  // as of a step
  std::size_t planned_steps() const noexcept { return plan->plan->steps.size(); }
  std::size_t step_count() const noexcept { return planned_steps() + steps.added(); }
  const Operation* operation(std::uint32_t step) const { return steps.operation(step); }
  const StepPlan& step_plan(std::uint32_t step) const {
    const Operation* const added = steps.operation(step);
    return added == nullptr ? plan->plan->steps[step] : added->plan->plan->steps.front();
  }
  // Which queue its attempts wait in.
  std::uint32_t queue_of(std::uint32_t step) const {
    const Operation* const added = steps.operation(step);
    return added == nullptr ? plan->queues[step] : added->plan->queues.front();
  }
  bool waits_for_signal(std::uint32_t step) const {
    const Operation* const added = steps.operation(step);
    if (added != nullptr) return added->kind == event::OperationKind::signal;
    return plan->plan->steps[step].kind == StepKind::signal;
  }
  // What a step of this kind waits for.
  const std::string& signal_of(std::uint32_t step) const {
    const Operation* const added = steps.operation(step);
    return added == nullptr ? plan->plan->steps[step].signal : added->name;
  }
  // All steps but operations that have ended: there may be very many of those.
  template <class F>
  void for_each_open_step(F&& visit) const {
    for (std::uint32_t step = 0; step < planned_steps(); ++step) visit(step);
    if (function == nullptr) return;
    for (const std::uint32_t step : function->open) visit(step);
  }
  // Of one item: its own, the run's, or the step's.
  const Policy& policy(std::uint32_t step, std::uint32_t item) const {
    if (has_item_policies(step)) {
      if (const Policy* const own = extra->item_policies.at(step)->of(item); own != nullptr) return *own;
    }
    if (steps.operation(step) != nullptr) return step_plan(step).policy;
    return facts != nullptr && facts->policy != nullptr ? *facts->policy : plan->plan->steps[step].policy;
  }
  bool has_item_policies(std::uint32_t step) const { return extra != nullptr && extra->item_policies.contains(step); }
  // From its creation, pauses aside; 0 = none.
  std::int64_t deadline() const noexcept {
    return facts != nullptr && facts->deadline > 0 ? facts->deadline : plan->plan->deadline;
  }
  // Is a lost or interrupted attempt no failure of the work, and not counted?
  bool judges_own_failures_only() const noexcept { return plan->plan->rules >= Rules::own_failures; }
  // Do the numbers of attempts go on over the visits of a step, and is each visit work of its own?
  bool has_visits_that_go_on() const noexcept { return plan->plan->rules >= Rules::visits_go_on; }
  bool has_ended() const noexcept { return !is_open(status); }
  // How many attempts of this item have had a number, in all visits.
  std::uint32_t last_attempt(std::uint32_t step, std::uint32_t item) const;
  StepExtra step_extra(std::uint32_t step) const {
    if (extra == nullptr) return {};
    const auto found = extra->steps.find(step);
    return found != extra->steps.end() ? found->second : StepExtra{};
  }
  // Those that count towards max_visits.
  std::uint32_t own_visits(std::uint32_t step) const { return steps[step].visits - step_extra(step).reruns; }
  // nullptr: the item's attempt is not outside.
  const Outside* outside_of(std::uint32_t step, std::uint32_t item) const {
    if (extra == nullptr) return nullptr;
    const auto found = extra->outside.find({step, item});
    return found != extra->outside.end() ? &found->second : nullptr;
  }

  void reset();  // as new, but keeps its memory
};

// Where the clock of a policy's max_elapsed stands at 0 for this item; pauses have moved it. 0: it has not begun to run.
Time clock_start(const Run& run, std::uint32_t step, const Item* item, const Policy& policy) noexcept;

// The canonical bytes of the state. Two runs are equal when these are.
void encode_state(const Run& run, std::string& out);
// Fills in a fresh run whose number is set. False: the bytes are damaged, or from a newer version.
using PlanFinder = std::function<const NumberedPlan*(std::uint32_t)>;
bool decode_state(std::string_view bytes, const PlanFinder& plans, FactsDecoder& facts, Run& run);

// Works out what follows from its operations.
void index_operations(Run& run);

// Its plan with what it has for itself: what is told to people about its deadline and its policies.
std::shared_ptr<const Plan> own_plan(const Run& run);
// How it ended, or how it stands.
RunOutcome outcome_of(const Run& run);
// The result of a run that has succeeded; nullptr = it has none. A hashed one is missing from outcome_of().
const Payload* output_of(const Run& run);
// Roughly what it takes in memory.
std::size_t bytes_of(const Run& run) noexcept;

}  // namespace reprise::core
