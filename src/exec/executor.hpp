// The door to work: attempts go in as jobs, and come back as outcomes.
//
// An executor answers every job exactly once, whatever the work does: it throws, hangs past its time, ignores a cancel. An attempt that it
// hands over (documents: a sub-flow, work accepted elsewhere) is answered by that, and comes back as another job if there is something to do at
// its end.
// It enforces the attempt's time itself, because only it knows when the attempt really began. Outcomes are told to a Sink.
// An engine has a list of executors; each has handlers of its own, which it numbers, and room of its own.
// Thread safety: start(), cancel() and capacity() from the loop's thread; the Sink is called from any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <reprise/event.hpp>
#include <reprise/failure.hpp>

#include "event/record.hpp"

namespace reprise::exec {

using event::Time;

using event::AttemptId;
using event::Payload;  // hashed: the bytes themselves are still in the store

struct FailedItem {
  std::uint32_t item = 0;
  Failure failure;
};

struct StepOutput {
  std::string step;
  std::vector<Payload> parts = {};  // one for each item
  bool is_list = false;             // the output is the list (list.hpp) of the parts; otherwise it is the only part
  std::string_view status = {};     // succeeded, failed, skipped, unreachable …
  std::uint32_t succeeded = 0;      // items
  std::uint32_t failed = 0;
  std::vector<FailedItem> failures = {};
  Payload items = {};  // of a list: its elements (list.hpp); empty = they are not known here
};

using StepOutputs = std::vector<StepOutput>;

// What few jobs have; kept apart so that the others stay small.
struct JobContext {
  Failure last_failure = {};                        // of an attempt before; empty when none has failed
  std::shared_ptr<const StepOutputs> outputs = {};  // of the steps this one reads; nullptr = they have none
  std::shared_ptr<const Payload> run_input = {};    // of a document's run; nullptr = `input` says it all
  std::string_view run_status = {};                 // for steps that run finally: what the run would end with
  bool by_first_rules = false;  // of a run that 0.1.0 began: its failures are judged as that version did
  std::uint8_t stage = 0;       // core::stage: the main way, its fallback, or its handler of failures
  std::shared_ptr<const Payload> brought = {};  // the attempt was outside, and goes on with this; nullptr = it begins
  std::uint32_t visit = 1;                      // of the step
  std::string operation = {};                   // of a durable function: its path; empty = it belongs to none
};

// How many attempts may run at a time of those that have the same handler, step (of the same run), run; 0 = no limit. Few jobs have any.
struct PlaceLimits {
  std::uint32_t handler = 0;
  std::uint32_t step = 0;
  std::uint32_t run = 0;
  bool waits =
      false;  // it was reserved: it begins when there is a place, and Sink::began() tells so. Others begin in any case

  bool operator==(const PlaceLimits&) const = default;
  bool any() const noexcept { return handler > 0 || step > 0 || run > 0; }
};

struct Job {
  AttemptId id;
  std::uint32_t attempt = 1;
  std::uint32_t used_attempts = 1;  // this one included; those lost and interrupted are not among them
  bool is_first = true;             // since the item was created, or retried on request
  std::uint32_t visit = 1;          // of its step; 1 also where the rules of the run do not tell visits apart
  std::uint32_t handler = 0;        // as the executor numbered it
  RunId run_id;
  std::shared_ptr<const std::string> step;  // its name
  Payload input;
  bool input_is_list = false;  // the input is the element number `id.item` of that list (list.hpp)
  Duration timeout{0};         // of the attempt itself, from when it really begins; 0 = none
  Time deadline = 0;           // wall clock; the attempt is cut there; 0 = none
  PlaceLimits limits = {};
  std::shared_ptr<const JobContext> context = {};
};

// RUN/STEP/ITEM, and in a later visit of its step, which is other work, RUN/STEP/ITEM/VISIT: the same for every attempt of one work item.
inline std::string idempotency_key(const Job& job) {
  const std::string step = job.step != nullptr ? *job.step : "";
  std::string key = to_string(job.run_id) + '/' + step + '/' + std::to_string(job.id.item);
  return job.visit > 1 ? key + '/' + std::to_string(job.visit) : key;
}

// What has to be found out before a step of a document begins: does it run at all, on which items, and may it?
struct Preparation {
  AttemptId id;  // token 0
  RunId run_id;
  std::shared_ptr<const std::string> step;
  std::shared_ptr<const JobContext> context;
};

struct Prepared {
  AttemptId id;
  bool skip = false;                      // its condition is false
  std::uint32_t items = 1;                // for_each: elements of the list
  Payload list = {};                      // for_each
  std::string policies = {};              // those that items bring along (core/item_policies.hpp)
  std::unique_ptr<Failure> failure = {};  // it cannot begin
};

// How an attempt ended. The first two are judged by the step's policy, `Lost` by its limit of losses, and the others cost no attempt.
struct Succeeded {
  Payload output = {};            // over 4 KiB: the bytes themselves, and the loop makes the hash
  std::string whole_output = {};  // when `output` is not all of it: which file is, in words (kept_file.hpp)
};
struct Failed {
  std::unique_ptr<Failure> failure;
  bool precondition = false;           // before the work itself began
  AttemptEnd by = AttemptEnd::failed;  // or timed_out, or deadline: the job's
};
struct Interrupted {};  // the executor was stopped, and how the attempt would have ended is not known
struct Lost {};         // what worked on the attempt is gone
struct Returned {};     // the executor gives it back: it was never begun
struct Suspended {};    // it takes no place any more: its end, or its way back, comes from outside

using End = std::variant<Succeeded, Failed, Interrupted, Lost, Returned, Suspended>;

struct Outcome {
  AttemptId id;
  End end;
};

inline Outcome failed(const AttemptId& id, Failure failure, bool precondition = false,
                      AttemptEnd by = AttemptEnd::failed) {
  return {id, Failed{std::make_unique<Failure>(std::move(failure)), precondition, by}};
}

// How an attempt goes on that a sub-flow works for.
struct HandedOver {
  AttemptId id;
  std::string key;                        // the same key finds the same run again, also after a crash
  Duration time_left{0};                  // of the attempt; 0 = it has no limit
  std::unique_ptr<Failure> overdue = {};  // what it fails with when its time is over
  bool returns = false;                   // it comes back with what the flow has brought; otherwise that is its result
};

// How an attempt goes on whose work was accepted elsewhere: its end comes as a Report.
struct Accepted {
  AttemptId id;
  Duration time_left{0};                  // of the attempt; 0 = it has no limit
  std::unique_ptr<Failure> overdue = {};  // what it fails with when its time is over
  std::string callback;  // where it is reported: Executor::listen_again() has to know it after a restart
};

enum class ReportTaken : std::uint8_t {
  yes,      // it is recorded
  known,    // it changes nothing
  over,     // nobody waits for it any more
  not_now,  // it is to be sent again
};

// The end of an attempt that was accepted elsewhere, or of an earlier one of the same item.
struct Report {
  RunId run;
  std::uint32_t step = 0;
  std::uint32_t item = 0;
  std::uint32_t visit = 1;
  std::uint32_t attempt = 0;  // its token
  bool success = false;
  bool only_own = false;  // it is of no use to a later attempt
  std::string body = {};
  std::function<void(ReportTaken)> answer = {};  // once, from any thread
};

// ---- durable functions ----------------------------------------

// An operation of a function, as it is recorded.
struct RecordedOperation {
  enum class End : std::uint8_t { open, succeeded, failed, dismissed };

  std::uint32_t step = 0;
  event::OperationKind kind = event::OperationKind::call;
  std::string path = {};
  std::string name = {};
  std::string place = {};
  Time called = 0;
  End end = End::open;
  Time ended = 0;
  Payload output = {};
  Failure failure = {};
  StopReason reason = StopReason::none;
  std::uint64_t attempts = 0;
};

struct RecordedTurn {  // of a loop
  std::string path;
  std::uint32_t turn = 0;
  Payload state = {};
};

// What a function is told. Nothing of it need be durable yet: a function only decides, and what it decides has effects when it is.
struct News {
  AttemptId id;  // the attempt of the function itself
  RunId run_id;
  std::uint32_t handler = 0;  // as the executor numbered it
  bool begins = false;        // it is made anew: everything follows that is recorded; otherwise only what has ended since
  bool canceling = false;
  Time began = 0;      // begins: its attempt
  Payload input = {};  // begins
  std::vector<RecordedOperation> operations = {};  // those that have ended in the order of their ends
  std::vector<RecordedTurn> turns = {};            // begins
  Payload published = {};                          // begins
};

// What a function wants.
struct Command {
  enum class What : std::uint8_t { begin, dismiss, continued, publish };

  What what = What::begin;
  event::OperationKind kind = event::OperationKind::call;
  std::string path = {};
  std::string name = {};
  std::string place = {};
  Payload payload = {};   // begin: its input; continued, publish: the state
  std::string body = {};  // of a payload over 4 KiB
  std::optional<Policy> retry = {};
  std::optional<Duration> timeout = {};
  Time due = 0;
  std::uint32_t turn = 0;  // continued
  bool shielded = false;
};

struct Decided {
  AttemptId id;
  std::vector<Command> commands = {};  // in their order
  std::optional<End> end = {};         // of the function
  std::string body = {};               // of an output over 4 KiB
  std::string divergence = {};         // what of it is not what is recorded; empty = nothing
  bool is_unknown = false;             // the executor does not have it (any more), and is to be told everything
};

struct Progress {
  AttemptId id;
  std::string text;
};

class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;
  virtual void ended(Outcome&& outcome) = 0;
  virtual void began(const AttemptId&) {}  // a job that was waiting for a place, now
  virtual void progressed(Progress&& progress) = 0;
  // Only executors of documents have these.
  virtual void prepared(Prepared&&) {}
  virtual void accepted(Accepted&&) {}
  virtual void reported(Report&& report) { report.answer(ReportTaken::over); }
  virtual void decided(Decided&&) {}  // later than decide()
  virtual void room_changed() {}  // capacity() has grown, and no end of an attempt has told so
};

class Executor {
 public:
  Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  virtual ~Executor() = default;

  virtual void start(std::vector<Job>& jobs) = 0;           // takes them; leaves the vector empty
  virtual void cancel(const AttemptId& id) = 0;             // asks the attempt to stop; it still answers, once
  virtual std::size_t capacity(std::uint32_t handler) = 0;  // how many more jobs of this handler it would begin soon
  // How many jobs may wait here for one of so many places of this handler (PlaceLimits::waits); 0 = none.
  virtual std::size_t ahead(std::uint32_t /*handler*/, std::uint32_t /*places*/) { return 0; }
  virtual void take_back(const AttemptId&) {
  }                                // if it waits for a place: it does not begin, and is answered as returned
  virtual void take_back_all() {}  // the same for all, and for those that come later
  // What follows from the end of this attempt is recorded: its places are free, if it did not succeed. For an attempt that was handed over,
  // which keeps them, it is the end of what works for it.
  virtual void settled(const AttemptId&) {}
  virtual void shut_down() {}             // ends everything; each job is still answered, as interrupted
  virtual void prepare(Preparation&&) {}  // answered once through Sink::prepared(), unless it is cancelled
  // Durable functions, which get no jobs. What they decide at once is added to `decided`, so that it is recorded together with what they
  // were told; the others answer through Sink::decided(). Each piece of news is answered once.
  virtual bool decides(std::uint32_t /*handler*/) { return false; }
  virtual void decide(std::vector<News>& /*news*/, std::vector<Decided>& /*decided*/) {}
  virtual void forget(const AttemptId&) {}  // the run of this function leaves memory
  virtual void listen_again(std::string_view /*callback*/) {}  // there are attempts that were told to report there
};

}  // namespace reprise::exec
