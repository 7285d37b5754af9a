// What can reach the loop, and who gets an answer.
//
// A Reply is shared by the caller, who may give up waiting, and the loop, which answers it once: after everything the answer speaks of
// is durable. Thread safety: filled in by the loop before done(); read by the caller after it.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <reprise/engine.hpp>

#include "core/core.hpp"
#include "exec/executor.hpp"
#include "runtime/stored_runs.hpp"

namespace reprise::runtime {

using event::Payload;
using event::Time;

class Reply {
 public:
  Reply() = default;
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;
  virtual ~Reply() = default;
  virtual void done(std::expected<void, Error> answer) = 0;
};

// A plan with its place in the store; the plan book keeps it at one address for ever.
struct BookedPlan {
  std::uint32_t number = 0;
  std::shared_ptr<const core::Plan> plan;
  std::string body;
};

struct NewRun {
  const BookedPlan* plan = nullptr;
  std::unique_ptr<const core::RunFacts> facts = {};
  Payload input = {};     // over 4 KiB: the hash ...
  std::string body = {};  // ... of this
  std::uint32_t items = 0;
  std::string key = {};
  Duration delay{0};
  std::uint8_t priority = 5;

  RunId id = {};  // the answer; of the run that has the key already, if there is one
};

struct SubmitReply : Reply {
  std::vector<NewRun> runs;
};
struct Submit {
  std::shared_ptr<SubmitReply> reply;
};

// Who asks for a change, as the events have it.
struct Requester {
  RunId id = {};  // of the request: a UUID as runs have; all 0 = nobody is named
  std::string by = {};
  std::string why = {};

  event::RequestView view() const noexcept {
    if (id == RunId{}) return {};
    return {{reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()}, by, why};
  }
};

enum class Operation : std::uint8_t { cancel, pause, resume, signal, retry_failed, drop, remove };
// Which work of a run.
struct StepItems {
  std::string step = {};
  std::vector<core::ItemRange> items = {};  // empty = all

  bool operator==(const StepItems&) const = default;
};
struct WorkChoice {
  std::vector<StepItems> steps = {};  // empty = all
  bool only = false;                  // retry: the steps that need it keep what they have

  bool operator==(const WorkChoice&) const = default;
};

struct Operate {
  Operation operation;
  RunId run;
  std::string text;  // cancel: why. signal: its name
  Payload payload;
  std::string body;  // of a payload over 4 KiB
  std::shared_ptr<Reply> reply;
  WorkChoice choice = {};  // retry_failed, drop
  Requester asked = {};    // a cancel's `why` is its text
};

// What is known about one run.
struct AskReply : Reply {
  std::uint64_t number = 0;
  std::uint32_t plan = 0;
  std::uint64_t sequence = 0;  // of its last event
  RunInfo info = {};
  RunOutcome outcome = {};
  bool may_go_on =
      false;  // this engine works on it as long as it is open; false: one of a document that waits for Allow
  std::optional<Payload> large_output = {};  // the outcome's output is in the store
  std::optional<Payload> published = {};     // how a function says that it stands
  std::string events = {};                   // Question::past: a chunk of those that its history in the store lacks ...
  std::uint64_t events_first = 0;            // ... and the sequence of the first of them, or of the next that will come
  std::string state = {};                    // Question::state: core::encode_state()
};
enum class Question : std::uint8_t {
  now,    // as it is
  ended,  // answer when the run has ended
  past,   // as it is, with its events; nothing is written for it
  state   // the same, with its state
};
struct Ask {
  Question question;
  RunId run;
  std::shared_ptr<AskReply> reply;
};

struct FindReply : Reply {
  RunQuery query;
  std::uint64_t below = 0;  // 0 = from the newest
  FoundRuns found;
};
struct Find {
  std::shared_ptr<FindReply> reply;
};

struct OpenQueue {
  std::string handler;
  core::HandlerAddress address;
  std::uint32_t limit;
};

// An executor has more room than it had when it was asked: the next turn asks again.
struct RoomChanged {};

// An attempt that was reserved.
struct Began {
  event::AttemptId id;
  Time when = 0;
};

struct Ended {
  exec::Outcome outcome;
  std::string body;  // of an output over 4 KiB; the outcome has its hash then
};

struct Begins {  // a step of a document, or not
  exec::Prepared prepared;
  std::string body;  // of a list over 4 KiB
};

// A run of a document that was there before may go on, and with it what works for its attempts.
struct Allow {
  RunId run;
  bool resumes = false;  // those of the latter that are paused, too
};

// An attempt goes on as a run of its own: the one with that key, or a new one.
struct HandOver {
  event::AttemptId id;
  NewRun child;
  Duration time_left{0};                  // of the attempt; 0 = it has no limit
  std::unique_ptr<Failure> overdue = {};  // what it fails with when its time is over
  bool returns = false;                   // it checks what the child brings
};

// The end of an attempt that is outside, as somebody else tells it.
struct Reported {
  exec::Report report;
};

// One more executor for the loop's list. It takes the next number, which its queues are opened with.
struct AddExecutor {
  exec::Executor* executor = nullptr;
};

using Input = std::variant<Ended, Began, AddExecutor, exec::Decided, Submit, Operate, Ask, Find, OpenQueue, RoomChanged, exec::Progress, Begins, Allow,
                           HandOver, exec::Accepted, Reported>;

// nullptr: it names none by its id.
const RunId* run_named_in(const Input& input);

}  // namespace reprise::runtime
