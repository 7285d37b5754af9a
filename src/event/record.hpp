// An event as the core writes it and the store keeps it: numbers instead of names, views instead of strings, nothing derivable.
//
// read_history() (history.hpp) turns records into the public Event, with names and everything that can be worked out.
// Thread safety: plain values; a view must not outlive what it looks at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <reprise/event.hpp>

namespace reprise::event {

using Time = std::
    int64_t;  // nanoseconds since 1970, UTC. Plain numbers: this is what is stored and compared a million times a second.

// Bytes of a user: themselves, or (over 4 KiB) the SHA-256 under which the store keeps them once.
inline constexpr std::size_t payload_inline_max = 4096;
struct PayloadView {
  std::string_view bytes = {};  // the payload, or its 32-byte hash
  std::uint64_t size = 0;       // of the payload itself
  bool hashed = false;

  bool operator==(const PayloadView&) const = default;
};

// The same with its own memory.
struct Payload {
  std::string bytes = {};
  std::uint64_t size = 0;
  bool hashed = false;

  PayloadView view() const noexcept { return {bytes, size, hashed}; }
  static Payload of(std::string bytes) {
    const std::uint64_t size = bytes.size();
    return {std::move(bytes), size, false};
  }
  static Payload of(const PayloadView& view) { return {std::string{view.bytes}, view.size, view.hashed}; }

  bool operator==(const Payload&) const = default;
};

// Which attempt of what. `token` is the sequence number of its `started` event, or of the `reserved` before it: no two attempts of a run
// share one.
struct AttemptId {
  std::uint64_t run = 0;
  std::uint32_t step = 0;
  std::uint32_t item = 0;
  std::uint32_t token = 0;

  bool operator==(const AttemptId&) const = default;
};

// Who asked for what an event records: nothing when nobody did.
struct RequestView {
  std::string_view id = {};  // 16 bytes of a UUID
  std::string_view by = {};
  std::string_view why = {};  // cancel_requested has it as its text

  bool operator==(const RequestView&) const = default;
};
// What an operation of a durable function is. The numbers are stored.
enum class OperationKind : std::uint8_t {
  call,     // a handler, with its attempts
  sleep,    // until a time
  signal,   // until one comes, or its time is over
  run,      // a piece of the function's own program that may touch the world, with its attempts
  child,    // a run of its own
  promise,  // until its token is used
  undo,     // a handler whose turn comes when the function has failed
  mark      // nothing to wait for: a decision, a line of the log
};
inline constexpr auto last_operation_kind = static_cast<std::uint8_t>(OperationKind::mark);
std::string_view name_of(OperationKind kind) noexcept;

struct Record {
  EventType type = EventType::submitted;
  std::uint64_t sequence = 0;
  Time time = 0;
  std::uint32_t step = 0;
  std::uint32_t item = 0;
  std::uint32_t attempt = 0;  // retrying: the next one

  bool will_retry = false;                               // failed
  bool lost = false;                                     // failed
  bool precondition = false;                             // failed: before attempt 1
  bool cut = false;                                      // failed: the limit of the item itself ended the attempt
  bool resumes = false;                                  // reopened: what was stopped, and nothing that had failed
  bool on_request = false;                               // revisited: not by on_failure
  bool only_this = false;                                // reopened, revisited: the steps that need it keep what they have
  bool floored = false;                                  // retrying
  bool returns = false;                                  // handed_over: the attempt checks what it brings
  bool reopens = false;                                  // handed_over: it is being cancelled, and is to begin again
  bool withdrawn = false;                                // reserved: it will not begin, and is as if it had never been
  StopReason reason = StopReason::none;                  // failed, ended, cancel_requested, skipped
  RunStatus status = RunStatus::running;                 // ended, finishing
  std::int32_t rule = -1;                                // failed, retrying
  FailureClass failure_class = FailureClass::transient;  // failed: as judged
  const Failure* failure = nullptr;  // failed; interrupted: how; handed_over: of an attempt whose time is over
  std::int64_t delay = 0;            // retrying
  std::int64_t nominal = 0, delay_min = 0, delay_max = 0;  // retrying: the range of the draw
  // retrying; submitted with a delay; handed_over, extended, called: the end of its time; circuit_opened: of the time in which nothing begins. 0 = none
  Time due = 0;
  std::uint32_t plan = 0;     // submitted, called: number of the plan in the store
  std::uint8_t priority = 0;  // submitted
  std::uint32_t items = 0;    // submitted, prepared; reopened: 1 + the only item, 0 = all
  std::uint8_t stage = 0;     // fallback: which one begins
  std::uint32_t from_step = 0;    // revisited: the step that failed; reopened: 1 + the only step, 0 = all
  std::uint64_t fingerprint = 0;  // circuit_opened
  std::string_view text = {};     // progress, signaled, submitted (key), cancel_requested, completed, called (name), diverged; reopened: several (core/chosen.hpp)
  RunId other = {};          // handed_over: the run that does the work; none: `text` may say where its end is reported
  PayloadView payload = {};  // submitted, prepared, completed, signaled, called, continued, published
  std::string_view facts = {};     // submitted: what the run has for itself (facts.hpp)
  OperationKind operation = OperationKind::call;  // called
  bool shielded = false;                          // called: a cancel leaves it alone
  std::string_view path = {};                     // called, continued: which operation of the function
  std::string_view place = {};                    // called: file:line
  std::string_view policies = {};  // prepared: those that items bring along (core/item_policies.hpp)
  RequestView request = {};        // cancel_requested, paused, resumed, reopened, signaled, dropped
};

}  // namespace reprise::event
