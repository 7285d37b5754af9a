// From an open store to the end of a run: progress while it goes on, Ctrl-C, a word at the end, and the exit code.
//
// Thread safety: one thread.
#pragma once

#include <atomic>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/interrupts.hpp"
#include "cli/progress.hpp"
#include "cli/run_commands.hpp"
#include "core/plan.hpp"
#include "observe/annotations.hpp"
#include "observe/ending.hpp"
#include "observe/run_report.hpp"
#include "runtime/control.hpp"
#include "runtime/flow_host.hpp"
#include "text/value.hpp"

namespace reprise::cli {

class RunSession {
 public:
  // Opens the store as its owner, and listens for other processes. The error is an exit code; the message has been written already.
  static std::expected<std::unique_ptr<RunSession>, int> open(const WatchOptions& options, bool stderr_through = false);
  ~RunSession();

  runtime::FlowHost& host() noexcept { return *host_; }
  const WatchOptions& options() const noexcept { return options_; }
  const std::string& store() const noexcept { return store_; }
  const std::string& folder() const noexcept { return folder_; }  // of logs and spooled input

  // Before follow(): until there is something to read there. Gives the signal that came instead, or 0.
  int wait_to_read(int descriptor) const { return interrupts_.wait_to_read(descriptor); }

  struct End {
    RunOutcome outcome;
    int signal = 0;  // that ended it
  };
  // Shows what happens after that event until the run has ended.
  std::expected<End, int> follow(const RunId& run, std::shared_ptr<const core::Plan> plan, std::uint64_t after = 0);
  // What follow() found, in words or as JSON; gives the exit code.
  int report(const RunId& run, const End& end);
  int follow_and_report(const RunId& run, std::shared_ptr<const core::Plan> plan, std::uint64_t after = 0);

 private:
  explicit RunSession(const WatchOptions& options);
  void interrupted(const RunId& run, int signal);
  void cancel(const RunId& run);
  void say(const std::string& line);  // for people, in every mode: what is said here is no progress
  // The end of the run, however long the store is in trouble; the error is an exit code, and its message has been written.
  std::expected<RunOutcome, int> wait_for_end(const RunId& run);
  // Tells what the store waits for, once, and when it is over; "" = nothing. False: whoever interrupted us does not want to wait.
  bool waits_for_store(const RunId& run, const std::string& trouble);
  int leave(const RunId& run);
  bool has_news(const RunId& run, std::uint64_t after);
  bool show_progress(const RunId& run, std::uint64_t after);  // false: as waits_for_store()
  // From the store, until the visitor returns false.
  std::expected<void, Error> each_event(const RunId& run, const std::function<bool(const Event&)>& visit);
  std::optional<observe::RunReport> read_report(const RunId& run);
  observe::LastWords last_words_of(const RunId& run, const observe::StepReport& step,
                                   const observe::TroubledItem& item) const;
  void report_in_words(const RunId& run, const observe::RunReport& report);
  observe::AnnotatedFile document_of(const RunId& run) const;
  text::Value result_value(const RunId& run, const End& end, const std::optional<observe::RunReport>& found) const;

  WatchOptions options_;
  std::string store_;
  std::string folder_;
  std::string scratch_;  // a folder of our own, removed at the end
  Interrupts interrupts_;
  std::atomic<int> signal_ = 0;
  std::atomic<bool> cancel_again_ = false;  // a signal came while nothing could be recorded
  std::atomic<bool> must_end_ = false;      // also when nothing can be recorded
  std::string told_;                        // what the store waits for
  std::shared_ptr<const core::Plan> plan_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<runtime::FlowHost> host_;
  std::unique_ptr<runtime::ControlServer> control_;
};

// 0 succeeded, 124 a deadline passed, 129, 130 and 143 interrupted (128 and the signal), 1 otherwise.
int exit_code_of(const RunSession::End& end);

// @last and beginnings of ids, looked up without owning the store. The error is an exit code; the message has been written already.
std::expected<RunId, int> resolve_run(const std::string& store, const std::string& name);

}  // namespace reprise::cli
