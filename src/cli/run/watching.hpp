// From an open store to the end of a run: progress while it goes on, Ctrl-C, a word at the end, and the exit code.
//
// A session works with one shard of the store. A new run gets a shard that is free. A run that is there already stands in a shard of its
// own: if another process owns that, this one asks it to run it and watches, and goes on itself when the owner has ended.
// Thread safety: one thread.
#pragma once

#include <atomic>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/look/item_labels.hpp"
#include "cli/run/interrupts.hpp"
#include "cli/run/progress_display.hpp"
#include "cli/run/run_commands.hpp"
#include "core/plan.hpp"
#include "host/flow_host.hpp"
#include "observe/report/annotations.hpp"
#include "observe/report/ending.hpp"
#include "observe/report/run_report.hpp"
#include "runtime/control.hpp"
#include "runtime/engine_access.hpp"
#include "runtime/run_reader.hpp"
#include "store/ledger.hpp"
#include "text/value.hpp"

namespace reprise::cli {

class RunSession {
 public:
  // Takes signals, and nothing of the store yet. The error is an exit code; the message has been written already.
  static std::expected<std::unique_ptr<RunSession>, int> open(const WatchOptions& options, bool stderr_through = false);
  ~RunSession();

  // A new run, in a shard that nobody owned; waits for one if need be. With a key: the run that has it, whichever shard that is in.
  // The error is an exit code; the message has been written already.
  std::expected<RunId, int> submit(const std::shared_ptr<const exec::Program>& program, const std::string& key = {},
                                   const RunAttributes& attributes = {});
  // For a run that is there: its shard is ours from now on, or its owner will be asked.
  std::expected<void, Error> attach(const store::Shard& shard);
  // An interrupted run goes on, a paused or cancelled one is resumed, here or by the owner. Gives the sequence of the last event before.
  std::expected<std::uint64_t, Error> go_on(const RunId& run, runtime::Requester by = {});
  std::expected<void, Error> retry(const runtime::RunRequest& request);

  // What is known of runs in this shard: from the engine here, or from the stored state while another process owns it.
  std::expected<std::unique_ptr<runtime::RunReader>, Error> reader() const;

  const WatchOptions& options() const noexcept { return options_; }
  const store::Shard& shard() const noexcept { return shard_; }
  // Something happened in it after that event, and here.
  bool has_worked(const RunId& run, std::uint64_t after) { return host_ != nullptr && has_news(run, after); }
  bool owns_shard() const noexcept { return owns_shard_; }        // else another process works with it
  const std::string& folder() const noexcept { return folder_; }  // of logs and spooled input

  // Before follow(): until there is something to read there. Gives the signal that came instead, or 0.
  int wait_to_read(int descriptor) const { return interrupts_.wait_to_read(descriptor); }

  struct End {
    RunOutcome outcome;
    int signal = 0;  // that ended it
  };
  // Shows what happens after that event until the run has ended.
  std::expected<End, int> follow(const RunId& run, std::shared_ptr<const core::Plan> plan, std::uint64_t after = 0);
  // Before follow(): what shows the progress is put into something that does more.
  using Wrap = std::function<std::unique_ptr<ProgressDisplay>(std::unique_ptr<ProgressDisplay> inner)>;
  void wrap_progress(Wrap wrap) { wrap_ = std::move(wrap); }
  // Of a `completed` event, when the event has only its hash.
  std::string whole_output(const Event& event) const;
  std::uint64_t failed_items(const RunId& run);  // of all steps
  // What follow() found, in words or as JSON; gives the exit code.
  int report(const RunId& run, const End& end);
  int follow_and_report(const RunId& run, std::shared_ptr<const core::Plan> plan, std::uint64_t after = 0);
  // What is recorded, until the visitor returns false.
  std::expected<void, Error> each_event(const RunId& run, const std::function<bool(const Event&)>& visit);

 private:
  explicit RunSession(const WatchOptions& options);
  // `full`: no shard is free. `timed_out`: another process looks a key up.
  struct NewRun {
    const std::shared_ptr<const exec::Program>& program;
    const std::string& key;
    const RunAttributes& attributes;
  };
  std::expected<RunId, Error> try_submit(const NewRun& run);
  std::expected<RunId, Error> submit_new(const NewRun& run);
  std::expected<RunId, Error> find_or_submit(const NewRun& run);
  std::expected<void, Error> work_with(store::OwnedShard owned);
  // Here if the shard is ours, else by its owner; which of both it is may change at any moment.
  std::expected<void, Error> ask_or_do(const runtime::RunRequest& request,
                                       const std::function<std::expected<void, Error>(host::FlowHost&)>& here);
  runtime::Requester asked() const;  // by this command
  // Shows what the shard's owner records. std::nullopt: the owner has ended before the run, and the shard is ours.
  std::expected<std::optional<End>, int> watch_owner(const RunId& run, std::uint64_t& after);
  std::expected<runtime::RunView, Error> recorded_view(const RunId& run) const;
  std::expected<runtime::RunView, Error> show_recorded(const RunId& run, std::uint64_t after, std::uint64_t& last);
  // Takes the shard if its owner has ended, and sees that somebody works on the run.
  std::expected<bool, Error> is_ours_now(const RunId& run);
  int leave_to_owner(const RunId& run);
  void interrupted(const RunId& run, int signal);
  void cancel(const RunId& run);
  void say(const std::string& line);  // for people, in every mode: what is said here is no progress
  // The end of the run, however long the store is in trouble; the error is an exit code, and its message has been written.
  std::expected<RunOutcome, int> wait_for_end(const RunId& run);
  // Tells what the store waits for, once, and when it is over; "" = nothing. False: whoever interrupted us does not want to wait.
  bool waits_for_store(const RunId& run, const std::string& trouble);
  int leave(const RunId& run);
  observe::LabelOf labels_of(const RunId& run);
  bool has_news(const RunId& run, std::uint64_t after);
  bool show_progress(const RunId& run, std::uint64_t after);  // false: as waits_for_store()
  std::optional<observe::RunReport> read_report(const RunId& run);
  observe::LogTail log_tail_of(const RunId& run, const observe::StepReport& step,
                               const observe::TroubledItem& item) const;
  void report_in_words(const RunId& run, const observe::RunReport& report);
  observe::AnnotatedFile document_of(const RunId& run) const;
  text::Value result_value(const RunId& run, const End& end, const std::optional<observe::RunReport>& found) const;

  WatchOptions options_;
  std::string folder_;
  std::string scratch_;  // a folder of our own, removed at the end
  bool stderr_through_ = false;
  exec::CallbackSettings callbacks_;
  std::unique_ptr<store::Ledger> ledger_;
  store::Shard shard_;
  Interrupts interrupts_;
  std::atomic<int> signal_ = 0;
  std::atomic<bool> owns_shard_ = false;    // host_ is there
  std::atomic<bool> cancel_again_ = false;  // a signal came while nothing could be recorded
  std::atomic<bool> must_end_ = false;      // also when nothing can be recorded
  std::string told_;                        // what the store waits for
  std::shared_ptr<const core::Plan> plan_;
  std::optional<ItemLabels> labels_;
  std::unique_ptr<ProgressDisplay> progress_;
  Wrap wrap_;
  std::unique_ptr<host::FlowHost> host_;  // nullptr: the shard is another process's
  std::unique_ptr<runtime::ControlServer> control_;
};

// 0 succeeded, 124 a deadline passed, 129, 130 and 143 interrupted (128 and the signal), 1 otherwise.
int exit_code_of(const RunSession::End& end);

}  // namespace reprise::cli
