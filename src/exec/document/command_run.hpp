// One command or request of a document, from its templates to what it brought.
//
// Thread safety: the serial queue's thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "exec/document/judgement.hpp"
#include "exec/document/services.hpp"
#include "exec/document/step_scope.hpp"

namespace reprise::exec {

// Where and how long a command runs, besides what it is.
struct CommandSetting {
  const flow::Step& step;
  std::string idempotency_key;
  std::string log_file = {};
  std::string stdout_file = {};
  std::string stdin_file = {};
  std::optional<KeptFile> kept_stdin = {};  // what stdin_file must be
  std::optional<Env::TimePoint> ends = {};  // the attempt's own limit
  Duration timeout{0};                      // the same as it was given, for messages
  bool whole_output = false;                // it is to be read as JSON or lines: head and tail would not do
  // Of an asynchronous request: what its report is about, and who is told, in place of Done, that it was accepted.
  CallbackPlace callback = {};
  std::function<void()> accepted = {};
};

// Relative paths of a document are those of its folder.
std::string path_in(const std::string& directory, const std::string& path);

// The value of a template that need not be text.
std::expected<json::Json, std::string> evaluate(const flow::JsonTemplate& value, const StepScope& scope);

class CommandRun : public std::enable_shared_from_this<CommandRun> {
 public:
  using Done = std::function<void(Judged)>;

  CommandRun(Services& services, std::shared_ptr<StepScope> scope, const flow::Command& command, CommandSetting setting,
             Done done);

  void start();
  void cancel();  // Done still comes, with class `canceled`
  void broke(std::string_view why) { finish(std::unexpected{broken_off(why)}); }
  const std::optional<KeptFile>& kept_stdout() const noexcept { return kept_stdout_; }  // once Done has come
  bool was_out_of_time() const noexcept { return was_out_of_time_; }  // once Done has come: we ended it, not itself
  const std::string& stderr_tail() const noexcept { return stderr_tail_; }  // once it has succeeded

 private:
  void start_process();
  void process_ended(ProcessEnd&& end);
  void judge_end(ProcessEnd&& end);
  void start_request();
  void request_ended(const HttpRequest& request, HttpEnd end);
  void leave_to_report();
  void check_schema(std::string body);
  void schema_read(const std::string& path, FileContent content, const std::string& body);
  void finish(Judged result);
  void end_out_of_time(std::string_view what);
  void fail(std::string message) { finish(std::unexpected{judge().invalid(std::move(message))}); }
  Judge judge() const;
  Duration time_left() const;
  std::expected<std::vector<std::string>, std::string> environment();
  bool write_last_error();  // for REPRISE_LAST_ERROR_FILE
  std::expected<std::vector<std::string>, std::string> arguments();
  std::expected<std::vector<std::string>, std::string> shell_arguments();
  // A file for this command alone, as long as it runs.
  std::expected<std::string, std::string> write_own_file(std::string_view ending, std::string_view content);
  std::expected<HttpRequest, std::string> request();
  void write_log(const HttpRequest& request, const HttpEnd& end) const;
  std::string without_secrets(std::string text) const;

  Services& services_;
  std::shared_ptr<StepScope> scope_;
  const flow::Command& command_;
  CommandSetting setting_;
  Done done_;
  Duration limit_{0};  // of this command: what is left of the attempt, or its own
  ProcessRunner::Ticket process_ = 0;
  HttpClient::Ticket request_ = 0;
  std::optional<KeptFile> kept_stdout_;
  std::string stderr_tail_;
  std::string last_error_file_;
  std::vector<std::string> own_files_;
  bool is_reading_ = false;  // the schema
  bool is_canceled_ = false;
  bool is_done_ = false;
  bool was_out_of_time_ = false;
};

}  // namespace reprise::exec
