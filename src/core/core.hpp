// The state machine at the heart: what happened goes in, events to record and effects to release come out.
//
// There is one function for each kind of input (submit, ended, due, cancel …). Each decides, emits events, and changes state only through
// apply(), which is also what recovery calls: so the state after a replay is the state before the crash. Events go into the run
// they concern (Run::events) and the run into effects().touched; the loop writes them, and releases the effects when they are durable.
// Draws of chance happen here and are recorded with the decision.
//
// Pure: no clock, no I/O, no thread; the time is an argument. Thread safety: none.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/error.hpp>
#include <reprise/random.hpp>

#include "core/chosen.hpp"
#include "core/run_table.hpp"
#include "core/state.hpp"
#include "core/timer_wheel.hpp"

namespace reprise::core {

inline constexpr std::uint32_t untouched_items = UINT32_MAX;  // in place of an item: those nobody has touched
inline constexpr std::uint32_t whole_run = UINT32_MAX;        // in place of a step
inline constexpr std::size_t priorities = 10;

struct Submission {
  std::uint64_t run = 0;  // a number that was never used
  const NumberedPlan* plan = nullptr;
  event::PayloadView input = {};
  std::uint32_t items = 0;  // the input is a list with this many elements; 0 = it is not a list
  std::string_view key = {};
  Time due = 0;  // 0 = at once
  std::uint8_t priority = 5;
  std::unique_ptr<const RunFacts> facts = {};
  bool asleep = false;  // memory is short: it takes no place in queues and wheel, and is loaded later
};

// Who does the work of a queue: which executor of the engine's list, and which of that executor's handlers.
struct HandlerAddress {
  std::uint32_t executor = 0;
  std::uint32_t handler = 0;

  bool operator==(const HandlerAddress&) const = default;
};

struct Start {
  AttemptId id;
  std::uint32_t attempt = 0;
  Run* run = nullptr;
  std::shared_ptr<const Payload> brought = {};  // the attempt was outside and goes on with this; nullptr = it begins
  bool reserved = false;                        // it begins when the executor has a place for it
};

// An attempt goes on elsewhere.
struct HandOver {
  RunId run = {};                    // the sub-flow that does its work; none: its end is reported ...
  std::string_view callback = {};    // ... there
  Time due = 0;                      // when its time is over; 0 = never
  const Failure* overdue = nullptr;  // what it fails with then
  bool returns = false;              // the attempt checks what that brings
  bool reopens = false;              // see Outside
};

struct Recall {  // the end of an attempt that is outside is wanted no more: it is to be stopped there
  AttemptId id;
  RunId run;
};

struct
    Prepare {  // asks for the number of elements in a list, or whatever else the executor has to find out before a step begins
  std::uint64_t run = 0;
  std::uint32_t step = 0;
  Payload list = {};
};

struct Effects {
  std::vector<Run*> touched;  // runs with events that are in no commit yet
  std::vector<Start> starts;
  std::vector<AttemptId> cancels;
  std::vector<AttemptId> take_backs;  // reserved ones that are not to begin any more
  // What followed from their ends is decided: the places that the executor keeps for them may be taken.
  std::vector<AttemptId> settled;
  std::vector<Prepare> prepares;
  // For the loop, which answers them before the next commit, so that nothing of it is lost:
  std::vector<Recall> recalls;
  std::vector<std::uint64_t> ended;  // runs that may do the work of another's attempt
  std::vector<std::uint64_t> functions;  // runs whose function is to be told something: it may decide in the same turn
};

// An operation that a durable function begins.
struct Call {
  event::OperationKind kind = event::OperationKind::call;
  const NumberedPlan* plan = nullptr;  // of a task that does the same
  std::string_view path = {};
  std::string_view name = {};
  std::string_view place = {};
  event::PayloadView input = {};
  Time due = 0;
  bool shielded = false;
};

struct Counters {
  std::uint64_t ready = 0;
  std::uint64_t running = 0;
  std::uint64_t reserved = 0;
  std::uint64_t accepted = 0;
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t canceled = 0;
  std::uint64_t attempts = 0;
  std::uint64_t retries = 0;
  std::uint64_t late = 0;
  std::uint64_t events = 0;
};

class Core {
 public:
  Core(Time now, std::uint64_t seed) : wheel_{now}, random_{seed} {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // ---- plans and queues ----
  const NumberedPlan* add_plan(std::uint32_t number, std::shared_ptr<const Plan> plan);
  const NumberedPlan* plan(std::uint32_t number) const;
  // How facts of runs are read. Before anything is replayed or restored.
  void use(FactsDecoder decoder) { facts_ = std::move(decoder); }
  // Work waits in the queue of its handler until this says that there is one. `limit` 0 = no limit.
  void open_queue(std::string_view handler, HandlerAddress address, std::uint32_t limit);
  const HandlerAddress& address_of(const Run& run, std::uint32_t step) const {
    return queues_[run.queue_of(step)].address;
  }
  // How many attempts of its handler may run at a time; 0 = no limit.
  std::uint32_t limit_of(const Run& run, std::uint32_t step) const { return queues_[run.queue_of(step)].limit; }
  // From now on runs of documents only go on if they are new (this number or higher), or allowed.
  void restrict_documents(std::uint64_t first_new);
  void allow(std::uint64_t run, Time now);
  bool is_allowed(const Run& run) const;

  // ---- inputs ----
  Run& submit(Submission submission, Time now);
  // The executor had a place for an attempt that was reserved: it began at that time.
  void began(const AttemptId& id, Time when, Time now);
  // A result that comes late or twice changes nothing. False: it was one of those.
  bool succeeded(const AttemptId& id, const event::PayloadView& output, Time now, std::string_view whole_output = {});
  // `end` says what ended it: itself, its own time (timed_out), or the deadline that the job was given.
  bool failed(const AttemptId& id, const Failure& failure, bool precondition, Time now,
              AttemptEnd end = AttemptEnd::failed);
  // The engine itself stopped it: neither a success nor a failure. `began`: the work may have had effects already. One that was
  // reserved and has not begun is as if it had never been.
  bool interrupted(const AttemptId& id, Time now, bool began = true);
  bool lost(const AttemptId& id, Time now);  // what worked on it is gone
  // The attempt leaves the executor: its end comes from outside, as one of the three above, and is taken once, by its token. Told again,
  // it waits for something else.
  bool handed_over(const AttemptId& id, const HandOver& to, Time now);
  // It comes back into the executor, with what the outside has brought.
  bool handed_back(const AttemptId& id, std::shared_ptr<const Payload> brought, Time now);
  bool extended(const AttemptId& id, Time due, Time now);  // it is outside, and its time is over later
  Run* run_of(const AttemptId& id);                        // whose attempt may still report; nullptr: it is over
  // The executor has let it go, to be handed over: if that came to nothing, its places are free.
  void settle_unless_open(const AttemptId& id);

  // What a report about an attempt is good for, if it was made in that visit of its step. An earlier attempt's success counts as long as
  // the item is open, unless it is `only_own`: the work is done.
  enum class ReportUse : std::uint8_t {
    judge,  // its meaning is to be found out
    early,  // as soon as the attempt is outside
    known,  // it changes nothing
    over    // it comes too late
  };
  struct ReportFacts {
    AttemptId id;
    std::uint32_t visit = 0;
    bool success = false;
    bool only_own = false;
  };
  ReportUse use_of(const ReportFacts& report) const;
  // The success of an attempt of this item, or of an earlier one, as reported. False: it is over.
  bool reported(const AttemptId& id, const event::PayloadView& output, Time now);
  void progressed(const AttemptId& id, std::string_view text, Time now);
  // A step may begin: with so many items of a list, or with its only one.
  // `policies`: those that items bring along (item_policies.hpp); what cannot be read counts as none.
  void prepared(std::uint64_t run, std::uint32_t step, std::uint32_t items, const event::PayloadView& list, Time now,
                std::string_view policies = {});
  void condition_is_false(std::uint64_t run, std::uint32_t step, Time now);
  void prepare_failed(std::uint64_t run, std::uint32_t step, const Failure& failure, Time now);
  // Fires what is due, up to `limit` timers. True: there may be more.
  bool due(Time now, std::size_t limit);

  using Answer = std::expected<void, Error>;
  // `asked`: who asks, for the event.
  Answer cancel(Run& run, std::string_view why, Time now, const event::RequestView& asked = {});
  Answer pause(Run& run, Time now, const event::RequestView& asked = {});
  Answer resume(Run& run, Time now, const event::RequestView& asked = {});
  Answer signal(Run& run, std::string_view name, const event::PayloadView& payload, Time now,
                const event::RequestView& asked = {});
  struct Choice {                            // what an operator speaks of
    std::optional<std::uint32_t> step = {};  // none = every step
    std::optional<std::uint32_t> item = {};  // none = every item
    Chosen several = {};                     // instead of both, when it is more than one
    bool only = false;                       // retry_failed: the steps that need it keep what they have
  };
  // Tries again what has failed. A step that is chosen, and has succeeded, runs again as a whole.
  Answer retry_failed(Run& run, const Choice& choice, Time now, const event::RequestView& asked = {});
  Answer drop(Run& run, const Choice& choice, Time now, const event::RequestView& asked = {});  // dead letters

  // ---- durable functions (functions.cpp) ----
  // The number of the step that the run has from now on.
  std::uint32_t called(Run& run, const Call& call, Time now);
  // The function waits for this operation no more.
  void dismiss(Run& run, std::uint32_t step, Time now);
  // The turn of a loop begins: operations of those before, whose paths begin like this one's, are forgotten.
  void continued(Run& run, std::string_view path, std::uint32_t turn, const event::PayloadView& state, Time now);
  void published(Run& run, const event::PayloadView& state, Time now);
  // Its code and its log do not agree: nothing happens until somebody resumes it.
  void diverged(Run& run, std::string_view what, Time now);
  // Its executor is to be told what is new, or everything if it does not have it.
  void announce(Run& run);
  // The operation of a promise with this path has this end, unless it has one.
  Answer resolved(Run& run, std::uint32_t step, const event::PayloadView& value, const Failure* failure, Time now);

  // Starts ready work, first those of high priority: as much as the limits allow, and as `room` says for a handler. What is started for
  // one handler takes the room of all that have the same executor.
  using Room = std::function<std::size_t(const HandlerAddress& address)>;
  // Where a limit is reached, first attempts are recorded ahead (`reserved`): so many as may wait in the executor for one of the places
  // that the limit allows.
  using Ahead = std::function<std::size_t(const HandlerAddress& address, std::uint32_t places)>;
  void dispatch(const Room& room, std::size_t limit, Time now, const Ahead& ahead = {});

  // ---- recovery, and coming and going ----
  Run* find(std::uint64_t number) const noexcept { return runs_.find(number); }
  Run& add(std::uint64_t number) { return runs_.add(number); }  // empty, to be filled by restore() or replay()
  bool restore(Run& run, std::string_view state);               // decode_state() with the plans and facts of this core
  // Applies events from the journal to a run that is not live. False: they do not fit.
  bool replay(Run& run, std::string_view chunk, std::uint64_t first_sequence);
  // The same with one event, for those who show a run: nothing of it is kept for the journal, and its number is not looked at.
  bool replay(Run& run, const event::Record& record);
  // Takes its place in queues and wheel. Attempts that were running are lost, and decided like failures; those outside are not.
  // `back_since`: the engine before this one had died, which is told in the story of a run that was waiting, too; 0: it was stopped.
  void adopt(Run& run, Time now, Time back_since = 0);
  // When this run will have something to do, if it has nothing to do now; INT64_MAX = only when somebody signals or resumes it.
  // std::nullopt: it is busy, or too large to come and go.
  std::optional<Time> idle_until(const Run& run) const;
  bool is_backlog(const Run& run) const;  // nothing but work that waits for a thread
  void forget(Run& run);                  // leaves memory; must not be touched

  // ---- what there is to see ----
  Effects& effects() noexcept { return effects_; }
  const Effects& effects() const noexcept { return effects_; }
  const Counters& counters() const noexcept { return counters_; }
  std::optional<Time> next_due() const { return wheel_.next_expiry(); }
  std::size_t timers() const noexcept { return wheel_.size(); }
  std::size_t resident() const noexcept { return runs_.size(); }
  bool has_ready() const noexcept { return counters_.ready > 0; }
  template <class F>
  void for_each_run(F&& visit) const {
    runs_.for_each(visit);
  }

 private:
  struct Entry {
    std::uint64_t run;
    std::uint32_t step;
    std::uint32_t item;  // or untouched_items
  };
  struct Queue {
    std::string handler;
    bool open = false;
    HandlerAddress address = {};
    std::uint32_t limit = 0;
    std::uint32_t taken = 0;  // by attempts that run or are reserved
    std::size_t size = 0;
    std::size_t room = 0;  // in dispatch(): of its executor, as that handler has it
    std::array<std::deque<Entry>, priorities> levels;
  };

  // apply.cpp: the only functions that change the state of a run
  void apply(Run& run, const event::Record& record);
  void apply_submitted(Run& run, const event::Record& record);
  void apply_started(Run& run, const event::Record& record);
  void apply_reserved(Run& run, const event::Record& record);
  void apply_completed(Run& run, const event::Record& record);
  void apply_failed(Run& run, const event::Record& record);
  void apply_retrying(Run& run, const event::Record& record);
  void apply_prepared(Run& run, const event::Record& record);
  void apply_item_policies(Run& run, const event::Record& record);
  void apply_interrupted(Run& run, const event::Record& record);
  void apply_handed_over(Run& run, const event::Record& record);
  void apply_handed_back(Run& run, const event::Record& record);
  void apply_extended(Run& run, const event::Record& record);
  void apply_cancel(Run& run, const event::Record& record);
  void apply_resumed(Run& run, const event::Record& record);
  void end_pause(Run& run, Time now);
  void apply_revisited(Run& run, const event::Record& record);
  void forget_circuits(Run& run, std::uint32_t step);
  void apply_reopened(Run& run, const event::Record& record);
  void reopen_step(Run& run, std::uint32_t step, const event::Record& record, const Chosen& chosen);
  void apply_fallback(Run& run, const event::Record& record);
  void apply_skipped(Run& run, const event::Record& record);
  void apply_finishing(Run& run, const event::Record& record);
  void end_step(Run& run, std::uint32_t step, StepStatus status);
  // functions.cpp: the same for operations of functions
  void apply_called(Run& run, const event::Record& record);
  void apply_dismissed(Run& run, const event::Record& record);
  void apply_continued(Run& run, const event::Record& record);
  void apply_diverged(Run& run, const event::Record& record);
  void apply_function_cancel(Run& run, const event::Record& record);
  void operation_ended(Run& run, std::uint32_t step, Operation& operation);
  void cancel_function(Run& run, std::string_view why, StopReason reason, Time now, const event::RequestView& asked);
  void settle_function(Run& run, Time now);
  bool adds_step(const Run& run, const event::Record& record) const;
  void activate(Run& run, std::uint32_t step, Time time);
  void deactivate(Run& run, std::uint32_t step);
  void release_dependants(Run& run, std::uint32_t step, Time time);
  void item_stopped_running(Run& run, std::uint32_t step, std::uint32_t index, Item& item);
  void item_left_reserved(Run& run, std::uint32_t step);
  void take_place(Run& run, std::uint32_t step);  // in the executor, as its queue counts
  void leave_place(Run& run, std::uint32_t step);
  void check_step_end(Run& run, std::uint32_t step, Time time);
  void fail_step(Run& run, std::uint32_t step, Time time);

  // item_breaker.cpp: the circuit of a map's items
  static void count_item(Run& run, std::uint32_t step, bool succeeded);
  void apply_circuit(Run& run, const event::Record& record);
  bool may_begin_item(Run& run, std::uint32_t step, Time now);
  void turn_circuit(Run& run, std::uint32_t step, Time now);

  // rerun.cpp: steps that run again because of what somebody had tried again
  void complete(Run& run, event::Record& completed, Time now);
  void run_again(Run& run, std::uint32_t step, std::uint32_t because_of, bool only, Time now);

  // queues.cpp: places in queues and wheel, which follow from the state
  std::uint32_t queue_named(std::string_view handler);
  void index_run(Run& run, Time now);
  void index_step(Run& run, std::uint32_t step, Time now);
  void ask_for_items(Run& run, std::uint32_t step, Time now);
  void index_item(Run& run, std::uint32_t step, std::uint32_t index, Item& item, Time now);
  void index_outside(Run& run);
  void index_outside(Run& run, std::uint32_t step, std::uint32_t index, Item& item);
  void enqueue(Run& run, std::uint32_t step, std::uint32_t item);
  void enqueue_untouched(Run& run, std::uint32_t step);
  void refill(Run& run, std::uint32_t step);
  void refill_step(Run& run, std::uint32_t step);
  void release_held(Run& run, std::uint32_t step);
  void take_timers(Run& run);
  void disarm(TimerWheel::Handle& handle);

  // dispatch.cpp: what begins
  bool has_place(const Queue& queue, const Entry& entry, const Ahead& ahead) const;
  bool may_reserve(const Run& run, std::uint32_t step, const Queue& queue, const Ahead& ahead) const;
  enum class Begun : std::uint8_t { nothing, started, reserved };
  Begun start_next(Queue& queue, std::size_t level, const Ahead& ahead, Time now);
  Begun start_untouched(Run& run, std::uint32_t step, const Queue& queue, const Ahead& ahead, Time now);
  bool start(Run& run, std::uint32_t step, std::uint32_t item, Time now);
  void reserve(Run& run, std::uint32_t step, std::uint32_t item, Time now);
  void give_up_late(Run& run, std::uint32_t step, std::uint32_t index, Time now);
  void take_back(Run& run, std::uint32_t step, Time now);
  void take_back_if_doomed(Run& run, std::uint32_t step, Time now);
  void withdraw(Run& run, const AttemptId& id, Time now);

  // handle.cpp
  void emit(Run& run, event::Record& record, Time now);
  void fail_attempt(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, AttemptEnd end,
                    Time now);
  void interrupt_attempt(Run& run, std::uint32_t step, std::uint32_t index, const Failure* how, bool began, Time now);
  Decision judge(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, AttemptEnd end, Time now);
  void fail_precondition(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, Time now);
  void retry_or_give_up(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure,
                        const Decision& decision, AttemptEnd end, Time now);
  void fail_last_resort(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, AttemptEnd end,
                        Time now);
  void repeat_last_resort(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, Time now);
  void forget_handle(const TimerWheel::Timer& timer);
  void fire(const TimerWheel::Timer& timer, Time now);
  void fire_step(Run& run, std::uint32_t step, Time now);
  void fire_outside(Run& run, std::uint32_t step, std::uint32_t index, Time now);
  void call_off(Run& run, std::uint32_t step);
  void request_cancel(Run& run, std::string_view why, StopReason reason, Time now,
                      const event::RequestView& asked = {});
  void cancel_by_step(Run& run, std::uint32_t step, Time now);
  void cancel_preparation(Run& run, std::uint32_t step);
  void deliver_signals(Run& run, Time now);
  void settle(Run& run, Time now);
  void settle_failed_step(Run& run, std::uint32_t step, Time now);
  void skip_waiting_items(Run& run, std::uint32_t step, Time now);
  void mark_blocked(Run& run, Time now);
  void mark_dependants(Run& run, std::uint32_t step, EventType type, Time now);
  bool may_revisit(const Run& run, std::uint32_t step) const;
  void lose_running_attempts(Run& run, Time now);
  bool is_asked_for(Run& run, std::uint32_t step);
  Item* find_open(const AttemptId& id, Run*& run);             // running, outside or reserved
  Item* open_item(const AttemptId& id, Run*& run);             // the same; what is said of any other comes late
  Item* begun_item(const AttemptId& id, Run*& run, Time now);  // the same: one that was reserved has begun

  std::vector<std::unique_ptr<NumberedPlan>> plans_;  // by number; numbers are small
  std::vector<Queue> queues_;
  std::map<std::string, std::uint32_t, std::less<>> queue_numbers_;
  FactsDecoder facts_;
  RunTable runs_;
  TimerWheel wheel_;
  Random random_;
  Effects effects_;
  Counters counters_;
  std::size_t rotation_ = 0;  // which queue is asked first
  std::vector<TimerWheel::Timer> fired_;
  std::uint64_t first_allowed_ = 0;
  std::set<std::uint64_t> allowed_;
};

// How a run would end if nothing else happened to its steps; without those that run finally, if so asked.
RunStatus status_of_steps(const Run& run, bool with_finally);
// Has this step failed already, because more of its items failed than it tolerates? No further items are begun then ...
bool is_doomed(const Run& run, std::uint32_t step);
// ... and is it also not worth going on with those that have begun? What somebody had tried again in a doomed step goes on.
bool is_given_up(const Run& run, std::uint32_t step);
bool lets_go_on(const Run& run, std::uint32_t step);
// Has it begun since it was last put back to its beginning, with something that may be undone?
bool has_begun(const StepState& state) noexcept;
// All circuits of its items are closed, as if nothing had been.
void close_circuit(Run& run, std::uint32_t step);
Extra& extra_of(Run& run);
// When the run is cancelled if it has not ended; INT64_MAX = never.
Time deadline_of(const Run& run);
// How much of the policy's max_elapsed is over for this item.
Duration elapsed_of(const Run& run, std::uint32_t step, const Item& item, const Policy& policy, Time now);
// When no attempt of this item may start or run any more, by its policy; INT64_MAX = never.
Time own_deadline_of(const Run& run, std::uint32_t step, std::uint32_t index);
// By the rules that the run began with.
std::uint64_t fingerprint_of(const Run& run, std::uint32_t step, FailureClass failure_class, const Failure& failure);
// The count the run's breaker would have after this failure; 0 = it does not count such failures.
std::uint32_t breaker_count(const Run& run, std::uint32_t step, FailureClass failure_class, const Failure& failure);
// All steps that cannot be done before `step` is, itself included, in order.
std::vector<std::uint32_t> steps_from(const Plan& plan, std::uint32_t step);
// Has the function itself returned, failed or been cancelled? Its undos may follow.
bool is_over(const Run& run);

}  // namespace reprise::core
