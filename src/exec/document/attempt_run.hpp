// One attempt of a step's item: what must be repaired first, the commands in order, then the postconditions.
//
// Thread safety: the conductor's thread only.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "exec/document/command_run.hpp"

namespace reprise::exec {

struct AttemptResult {
  Judged result;
  bool precondition = false;
  std::optional<KeptFile> kept_output = {};  // `exec`, when the result is not all that was written
};

// Where `exec` finds what the successful attempt wrote to its standard output, when the record does not hold the whole.
std::string exec_stdout_file(std::string_view log_file);

class AttemptRun : public std::enable_shared_from_this<AttemptRun> {
 public:
  using Done = std::function<void(AttemptResult)>;

  // `scope` belongs to this attempt alone; `step` to its program.
  AttemptRun(Services& services, std::shared_ptr<StepScope> scope, const flow::Step& step, const Job& job, Done done);

  void start();
  void cancel();
  void broke(std::string_view why) { finish(std::unexpected{broken_off(why)}); }

 private:
  enum class Part : std::uint8_t { require, fix, main, repair, check };
  struct Todo {
    Part part;
    const flow::Command* command;
  };

  void plan();
  void next();
  void run(const Todo& todo);
  void ended(const Todo& todo, Judged result);
  void main_succeeded(std::string output);
  void check_schema();
  void start_sub_flow();
  void start_sub_flow(RunInput input);
  // Not on this thread, and only until the attempt ends; `then` does not come when it is over before.
  void read_file(const std::string& path, std::size_t bytes_max, std::string_view what,
                 std::function<void(std::string)> then);
  void finish(Judged result, bool precondition = false);
  CommandSetting setting(Part part);
  void sub_flow_ended(std::expected<RunOutcome, Error> outcome);
  void limit_sub_flow();
  void end_late_sub_flow();
  Judge judge() const;

  Services& services_;
  std::shared_ptr<StepScope> scope_;
  const flow::Step& step_;
  Done done_;
  Duration timeout_{0};
  std::optional<Env::TimePoint> ends_;
  std::string idempotency_key_;
  std::string log_file_;
  std::deque<Todo> todo_;
  std::shared_ptr<CommandRun> current_;
  std::optional<Failure> to_repair_;  // the failure that a command's own on_failure is working on
  std::string output_;
  std::optional<KeptFile> kept_output_;
  std::string sub_flow_;  // its key, while one runs
  bool is_reading_ = false;
  bool is_canceled_ = false;
  bool is_done_ = false;
};

}  // namespace reprise::exec
