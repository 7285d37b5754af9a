// One run of a durable function: its branches, what the log knows of its operations, and what it wants beyond that.
//
// It is told ends in the log's order, one after the other, and runs between them until every branch waits: so a replay, which is told all
// of them at once, takes the same way. Operations are numbered in their branch (path + ordinal), so the order in which branches run
// cannot matter. Where an operation is not what the log has at its path, the function is unwound and the run held.
// Thread safety: none; it belongs to one thread of functions.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/function.hpp>

#include "exec/executor.hpp"
#include "exec/fiber/closures.hpp"
#include "exec/fiber/fiber.hpp"
#include "exec/payloads.hpp"

namespace reprise::exec {

struct FunctionCode {
  std::string name;
  detail::FunctionBody body;
  FunctionOptions options;
};

class FunctionRun {
 public:
  struct Surroundings {
    StackPool& stacks;
    Payloads& payloads;
    Closures& closures;
    std::function<void()> closure_returned;  // from any thread: go_on() is to be called from the function's own
  };

  FunctionRun(std::shared_ptr<const FunctionCode> code, const News& begins, Surroundings surroundings);
  FunctionRun(const FunctionRun&) = delete;
  FunctionRun& operator=(const FunctionRun&) = delete;
  ~FunctionRun();  // unwinds what has not ended

  Decided take(News&& news);
  Decided go_on();                                // a closure that was waited for has returned
  bool is_over() const noexcept { return is_over_; }
  bool is_pinned() const noexcept { return open_closures_ > 0; }
  std::size_t stack_bytes() const noexcept { return stack_bytes_; }

 private:
  class Branch;
  struct Known;  // an operation that the log or the function has begun

  using KnownPtr = std::shared_ptr<Known>;

  void learn(RecordedOperation&& told, bool begins);
  void deliver_next();
  void end(Known& known, RecordedOperation&& told);
  void run_branches();
  Decided answer();
  bool is_of_earlier_turn(std::string_view path) const;
  void check_for_what_is_missing();
  void drop_branches(const std::string& prefix);
  void unwind();
  void run_root();
  void diverge(std::string what);
  KnownPtr match(Branch& branch, event::OperationKind kind, const detail::Beginning& beginning, const std::string& path);
  void forget(const std::string& prefix);
  std::string bytes_of(const Payload& payload);
  Command command_of(event::OperationKind kind, const std::string& path, const detail::Beginning& beginning) const;

  std::shared_ptr<const FunctionCode> code_;
  Surroundings around_;
  AttemptId id_;
  RunId run_id_;
  std::string input_;
  Time now_ = 0;  // of what it was told last
  bool canceling_ = false;
  bool unwinding_ = false;
  bool is_over_ = false;
  bool is_replay_ = false;
  std::string divergence_;
  std::exception_ptr thrown_;
  std::string output_;
  std::optional<std::string> published_;

  std::map<std::string, KnownPtr, std::less<>> known_;  // by path
  std::map<std::string, RecordedTurn, std::less<>> turns_;
  std::deque<RecordedOperation> ends_;                   // to be delivered, in their order
  std::uint64_t order_ = 0;
  std::vector<Command> commands_;

  std::vector<std::unique_ptr<Branch>> branches_;  // in the order in which they were made; the first is the function itself
  std::deque<Branch*> ready_;
  Branch* current_ = nullptr;
  std::size_t open_closures_ = 0;
  std::size_t stack_bytes_ = 0;
};

}  // namespace reprise::exec
