// Runs commands: one thread, an epoll loop, a pidfd for each child, and nothing left behind.
//
//   ProcessRunner runner{{}};
//   auto ticket = runner.start({.argv = {"/bin/sh", "-c", "make"}, .timeout = 30s}, [](ProcessEnd&& end) { … });
//   runner.cancel(ticket);
//
// Each child leads a process group of its own. When its time is over, when it gives no sign of life for too long, or when it is cancelled,
// the group gets SIGTERM, after `grace` SIGKILL; Done is called once, after the child has been reaped and its output read. Whatever is
// left of the group when the child itself has exited is killed too. A small guardian process kills the groups that are still there should
// this process die by SIGKILL, so that no child outlives its owner; a guardian that is killed is replaced.
// Time in which this process did not run is not held against a command (exec/time_limit.hpp).
// Not supported: commands that leave their group for a session of their own (daemons) are not followed.
//
// A script without #! is given to /bin/sh, as execvp() does. File names in a spec count from our directory, not from the command's.
// The constructor makes SIGCHLD heeded if this process ignored it, and throws std::system_error when the system has no descriptors left.
//
// Thread safety: start(), cancel() and kill_all() from any thread; callbacks come from the runner's thread, must return quickly, and may
// call start() and cancel(). Bounds: what is kept of the output; a child that writes without end costs memory for head and tail only.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/env.hpp>
#include <reprise/failure.hpp>

#include "exec/kept_file.hpp"

namespace reprise::exec {

class SecretTable;

struct ProcessSpec {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH of `env` unless it has a slash
  std::vector<std::string> env;   // NAME=value, complete
  std::string directory = {};     // empty = ours
  std::string stdin_file = {};    // empty = /dev/null
  std::string log_file = {};      // both streams as they come, secrets masked; made with the first byte; empty = none
  // stdout, whole and unmasked, when head and tail are not all of it; on the disk when Done comes. Empty = none
  std::string stdout_file = {};
  std::string private_folder = {};  // below it log_file and stdout_file are made without following a link; empty = none
  bool stderr_through =
      false;  // stderr also goes to ours, as it comes, secrets masked; who does not read ours holds the command up
  bool stdout_through = false;  // the same of stdout
  Duration timeout{0};          // 0 = none
  Duration stall_timeout{0};    // 0 = off. Output, and a change of progress_file, are signs of life
  Duration grace = std::chrono::seconds{5};
  std::string progress_file = {};
  std::size_t keep_head = std::size_t{64} << 10U;  // of each stream
  std::size_t keep_tail = std::size_t{64} << 10U;
  std::size_t stdout_max = 0;  // > 0: stdout is kept whole up to this instead (out.is_whole() says whether)
  std::shared_ptr<const SecretTable> secrets = {};  // replaced by *** in log, out and err; may be nullptr
};

// A stream of which the middle may be missing.
struct CapturedText {
  std::string head;
  std::string tail;        // empty when nothing is missing
  std::uint64_t size = 0;  // bytes that were written, each secret counted as ***

  bool is_whole() const noexcept { return size == head.size(); }
  std::string text() const;  // with a line in the middle that says how much is missing
};

struct ProcessEnd {
  int spawn_errno = 0;  // it never ran: ENOENT, EACCES … (ECHILD: it ran, but somebody else took its exit status)
  std::string spawn_problem = {};  // in words: `there is no command "fooo" in PATH`
  int exit_code = -1;              // it exited
  int signal = 0;                  // it was killed by this
  bool timed_out = false;          // we stopped it, because …
  bool stalled = false;
  bool canceled = false;
  bool had_to_kill = false;  // it did not heed SIGTERM
  CapturedText out;
  CapturedText err;
  Duration ran{0};
  std::string log_problem = {};              // the log could not be written: why. The command is not disturbed by it
  std::optional<KeptFile> kept_stdout = {};  // stdout_file, where there had to be one
  std::string stdout_problem = {};           // why it could not be kept: what `out` holds is not all
  int relay_errno = 0;  // why our own standard output has not got all of it; 0: it has, or was not to
};

struct ProcessRunnerSettings {
  Env* env = nullptr;  // nullptr = system_env()
  bool guardian = true;
};

class ProcessRunner {
 public:
  using Ticket = std::uint64_t;
  using Done = std::function<void(ProcessEnd&&)>;
  using SignOfLife = std::function<void()>;  // a sign of life; at most ten times a second

  explicit ProcessRunner(ProcessRunnerSettings settings);
  ProcessRunner(const ProcessRunner&) = delete;
  ProcessRunner& operator=(const ProcessRunner&) = delete;
  ~ProcessRunner();  // kills what still runs; Done is not called any more

  Ticket start(ProcessSpec spec, Done done, SignOfLife progress = {});
  void cancel(Ticket ticket);  // TERM, grace, KILL; Done still comes, with `canceled`. Unknown tickets are ignored
  void kill_all();             // every group gets SIGKILL at once (the second Ctrl-C)
  std::size_t running() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::exec
