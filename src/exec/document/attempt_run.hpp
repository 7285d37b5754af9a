// One attempt of a step's item: what must be repaired first, the commands in order, then the postconditions.
//
// Thread safety: the serial queue's thread only.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "exec/document/command_run.hpp"

namespace reprise::exec {

struct AttemptResult {
  Judged result;             // meaningless when it was handed over
  bool handed_over = false;  // a sub-flow or somebody else works for it now: it comes back as another job, or never
  bool precondition = false;
  AttemptEnd end = AttemptEnd::failed;
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
    const flow::Command* command;  // nullptr: the step's sub-flow
  };

  void plan();
  void plan_main();
  void next();
  void run(const Todo& todo);
  void ended(const Todo& todo, Judged result);
  void main_succeeded(std::string output);
  std::string result();
  std::uint32_t first_command();
  Failure of_command(Failure failure);
  void begin_repair(const Todo& todo, Failure failure);
  void refuse(Failure failure);
  void check_schema();
  void go_on_with(const Payload& brought);
  void start_sub_flow();
  void hand_over(const RunInput& input);
  void leave_to_report();
  template <class Over>
  bool give_time(Over& over, std::string_view overdue);
  // Not on this thread, and only until the attempt ends; `then` does not come when it is over before.
  void read_file(const std::string& path, std::size_t bytes_max, std::string_view what,
                 std::function<void(std::string)> then);
  void finish(Judged result, bool precondition = false);
  void finish(AttemptResult result);
  CommandSetting setting(Part part);
  Judge judge() const;

  Services& services_;
  std::shared_ptr<StepScope> scope_;
  const flow::Step& step_;
  const AttemptId id_;
  Done done_;
  Duration timeout_{0};
  std::optional<Env::TimePoint> ends_;
  bool ends_with_deadline_ = false;  // of the run or the work item, and not with the attempt's own limit
  std::string idempotency_key_;
  std::string log_file_;
  std::deque<Todo> todo_;
  std::shared_ptr<CommandRun> current_;
  std::optional<Failure> to_repair_;  // the failure that a command's own on_failure is working on
  std::uint32_t commands_begun_ = 0;  // of the step's own
  std::string output_;
  std::string stderr_;  // the end of it, of the last command
  std::optional<KeptFile> kept_output_;
  bool is_reading_ = false;
  bool is_canceled_ = false;
  bool is_done_ = false;
};

}  // namespace reprise::exec
