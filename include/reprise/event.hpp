// What happened in a run: immutable events, each recorded before it took effect.
//
//   const auto events = engine.events(run);
//   for (const reprise::Event& event : *events) std::cout << reprise::to_json(event) << '\n';
//
// docs/formats/events.md lists the types, their fields, and both written forms. Thread safety: plain values.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reprise/failure.hpp>
#include <reprise/policy.hpp>

namespace reprise {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;

// The name of a run for the outside world: a UUID of version 7, so that ids sort by time of creation.
struct RunId {
  std::array<std::uint8_t, 16> bytes{};

  auto operator<=>(const RunId&) const = default;
};
std::string to_string(const RunId& id);                            // 36 characters, lower case
std::optional<RunId> run_id_from(std::string_view text) noexcept;  // upper or lower case, with its dashes

enum class RunStatus : std::uint8_t { running, paused, succeeded, failed, canceled };
std::string_view name_of(RunStatus status) noexcept;
constexpr bool is_open(RunStatus status) noexcept { return status <= RunStatus::paused; }

// How a run stands, or ended.
struct RunOutcome {
  RunStatus status = RunStatus::running;
  std::string output = {};               // of the task, or of the flow's last step
  Failure failure = {};                  // when it failed
  StopReason reason = StopReason::none;  // why it was not tried again
  std::uint64_t attempts = 0;            // of the work item that decided the outcome

  bool operator==(const RunOutcome&) const = default;
};

// What work costs: tokens of a model, and money in millionths of the currency that the program counts in.
struct Cost {
  std::uint64_t tokens = 0;
  std::uint64_t micros = 0;

  bool operator==(const Cost&) const = default;
};

// Words of your own to find runs by. Names are unique and in order.
using Labels = std::vector<std::pair<std::string, std::string>>;

// What a run was submitted with for itself, beside its work. Empty: nothing was said.
struct RunAttributes {
  std::string origin = {};  // how it came: cli from the command line
  Labels labels = {};
  std::string queue = {};
  std::string tenant = {};
  std::optional<Cost> max_cost = {};  // 0 in it: no limit of that kind
  std::string traceparent = {};       // of the caller, as W3C Trace Context writes it

  bool operator==(const RunAttributes&) const = default;
};

// Who asked for a change of a run, and why.
struct ChangeRequest {
  std::string id = {};   // a UUID; one that comes again changes nothing
  std::string by = {};   // ada@host: reprise cancel; or the name of a program
  std::string why = {};  // in their words

  bool operator==(const ChangeRequest&) const = default;
};

// The numbers are stored: never change one, never use one again.
enum class EventType : std::uint8_t {
  submitted = 1,
  prepared = 2,  // the items of a step are known
  started = 3,
  completed = 4,
  failed = 5,
  retrying = 6,
  recovered = 7,    // the engine had died while an attempt was running
  interrupted = 8,  // a wait or an attempt ended because the run was cancelled
  skipped = 9,
  unreachable = 10,
  fallback = 11,
  rework = 12,
  dead_lettered = 13,
  circuit_opened = 14,
  progress = 15,
  cancel_requested = 16,
  paused = 17,
  resumed = 18,
  signaled = 19,
  revisited = 20,    // on_failure sent the run back to an earlier step
  reopened = 21,     // what had failed is tried again, because somebody asked
  ended = 22,        // the run
  dropped = 23,      // somebody let a dead letter go
  finishing = 24,    // all steps are done, and those that run in any case begin
  handed_over = 25,  // the attempt's end comes from elsewhere: a sub-flow, which is a run of its own
  handed_back = 26,  // that run has ended, and the attempt checks what it brought
  extended = 27,     // the engine did not run when the attempt's time was over: it gets more
  reserved = 28,     // the first attempt is recorded ahead of a free place: `started` follows when it begins
  called = 29,       // a durable function has begun an operation, or the turn of an undo has come
  continued = 30,    // its loop begins another turn, and forgets those before
  diverged = 31,     // its code and its log do not agree
  published = 32,    // it says how it stands
  dismissed = 33,    // nobody waits for an operation any more
  circuit_half_opened = 35,  // the circuit of a map has been open long enough: some of its items try whether it may close
  circuit_closed = 36,       // they have succeeded, and all others may begin
};
std::string_view name_of(EventType type) noexcept;
std::optional<EventType> event_type_named(std::string_view name) noexcept;

// One event with everything a person or a program may want to know about it. Fields that do not concern its type are empty.
struct Event {
  EventType type = EventType::submitted;
  std::uint64_t sequence = 0;  // 1, 2, 3 … within its run, without gaps
  WallTime time{};
  RunId run = {};
  std::string step = {};      // its name; empty when the event concerns the whole run
  std::uint32_t item = 0;     // 0-based
  std::uint64_t attempt = 0;  // 1-based; 0 when the event concerns none

  std::string actor_type = {};  // of the step: tool, llm, agent, or your own; empty = not recorded
  bool replayed = false;        // told once more by `replay`: nothing ran
  bool is_retry = false;        // the attempt is not the first
  bool will_retry = false;      // failed
  bool lost = false;            // failed: the engine died during the attempt
  bool precondition = false;    // failed: before there was an attempt
  bool cut = false;             // failed: a limit of the work item itself ended the attempt
  bool withdrawn = false;       // reserved: it will not begin, and the work item is as if nothing had been
  // failed; retrying and a retry's started: the failure before it; interrupted: what stopped it, if that is known
  std::optional<Failure> failure = {};
  bool resumes = false;                  // reopened: what was stopped goes on, and nothing that had failed
  bool on_request = false;  // revisited: what it needs was tried again with success, or somebody asked for it
  bool only_this = false;   // reopened, revisited: the steps that need it keep what they have
  StopReason reason = StopReason::none;  // failed: why there is no further attempt; skipped, of an item: the same
  std::int32_t rule = -1;                // failed, retrying: the entry of never_on or only_on that decided
  std::uint64_t next_attempt = 0;        // retrying
  Duration delay{0};                     // retrying, and started when it is a retry: the wait before it
  DelayRange range{};                    // retrying: where the delay was drawn from
  bool floored = false;                  // retrying: retry_after lifted the delay
  // retrying, submitted with a delay; handed_over, extended: its time is over then; circuit_opened: nothing of it begins before
  WallTime due{};
  // Of an attempt: how many so far count towards max_attempts, and which do not. All 0: every one does, or it is not known.
  std::uint64_t used_attempts = 0;
  std::uint64_t lost_attempts = 0;
  std::uint64_t interrupted_attempts = 0;
  std::uint64_t total_attempts = 0;             // completed, failed for good
  Duration total_elapsed{0};                    // completed, failed for good, ended
  std::uint32_t items = 0;                      // prepared, and submitted with a list
  std::optional<std::uint32_t> only_item = {};  // reopened: the item of that step it was limited to
  std::string only = {};                        // reopened: several items or steps, steps by number: 0[17,20-30] 3
  RunStatus status = RunStatus::running;        // ended; finishing: what it would end with
  // progress: its words; signaled: the name; submitted: the key; cancel_requested: why; fallback: which (fallback, on_failure);
  // reopened: the step it was limited to; completed: length and hash of the whole output, when `output` is not all of it;
  // handed_over: the id of the other run; called, continued: the path of the operation; diverged: what does not agree
  std::string text = {};
  std::string operation = {};  // called: what it is (call, sleep, signal …)
  std::string place = {};      // called: the file and line that began it
  std::string output = {};  // completed: the result; submitted, signaled: the input. Large ones: see `output_size`
  std::uint64_t output_size =
      0;  // in bytes; larger than output.size() when only its hash (hexadecimal) stands in `output`
  std::optional<RunAttributes> attributes = {};  // submitted, if there are any
  // cancel_requested, paused, resumed, reopened, signaled, dropped: absent when nobody asked, or an older version wrote it
  std::optional<ChangeRequest> request = {};

  bool operator==(const Event&) const = default;
};

// One JSON object, no line break, fields in a stable order; those that do not concern the type are left out.
std::string to_json(const Event& event);

}  // namespace reprise
