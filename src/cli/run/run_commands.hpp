// The commands that run work, or change what becomes of it. Options in, exit code out; run_app.cpp turns the command line into these calls.
//
// Data goes to standard output, everything for people to standard error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/look/look_commands.hpp"
#include "exec/document/relocation.hpp"

namespace reprise::cli {

enum class ProgressMode : std::uint8_t { automatic, live, plain, json, quiet };

struct WatchOptions {  // of every command that runs something to its end
  std::string command = "run";  // as it was called: what is asked of runs says so
  std::string store;
  ProgressMode progress = ProgressMode::automatic;
  bool json = false;            // the result as one JSON document
  bool only_trouble = false;    // nothing is said about work that just works; in lines, as the work writes there too
  bool stdout_through = false;  // `exec`: what the command writes there is shown as it comes
  bool output_logs = false;     // what the work writes, line by line
  bool annotations = false;     // at the end, what went wrong for a GitHub workflow
  std::optional<exec::Relocation> moved = {};  // resume, retry: where the folder of the run is now
  std::string callback_listen = {};  // where webhooks are received; empty = a free port of the loopback address
  std::string callback_url = {};     // what workers are told instead
};

struct RunFlowOptions {
  WatchOptions watch;
  std::string file;   // "-" = standard input
  std::string input;  // JSON, or @file
  std::vector<std::string> set;
  std::string id;
  std::vector<std::string> labels;  // NAME=VALUE
  bool dry_run = false;
};

// What `exec` does with its standard input. automatic: reads files and pipes, and leaves terminals and devices alone.
enum class StdinMode : std::uint8_t { automatic, replay, none };

struct ExecOptions {
  WatchOptions watch;
  std::vector<std::string> command;
  std::string retry;
  std::string max_attempts;
  std::string backoff;
  std::string jitter;
  std::string timeout;
  std::string max_elapsed;
  std::vector<std::string> only_on;
  std::vector<std::string> never_on;
  PolicySource policy;  // instead of all these but the timeout
  StdinMode standard_input = StdinMode::automatic;
  std::string id;
  std::vector<std::string> labels;  // NAME=VALUE
};

struct MapOptions {
  ExecOptions exec;                        // the command and its policy
  std::optional<std::uint64_t> jobs = {};  // at a time; none = one for each processor
  std::string file;                        // of the items; empty or "-" = standard input
  bool json = false;
  bool nul_separated = false;
};

struct WorkSelection {  // which work of a run
  std::vector<std::string> steps = {};
  std::vector<std::string> items = {};   // of that step: 17, 20-30
  std::vector<std::string> filter = {};  // FILTER words (index/filter.hpp)
  std::vector<std::string> places = {};  // of dead letters: STEP[ITEM]
  bool all = false;                      // also a whole step
  bool yes = false;                      // no question before
};

struct ResumeOptions {  // resume, retry, dead-letters retry
  WatchOptions watch;
  std::string run;
  WorkSelection work;
  bool only = false;      // retry: the steps that need it keep what they have
  std::string directory;  // where the folder of the run is now; empty = where it was
  std::string why;        // a reason, for the history
};

struct OperateOptions {  // cancel, pause, signal, wait, rm, dead-letters drop
  std::string store;
  std::string run;
  std::string text;     // signal: its name
  std::string payload;  // signal
  WorkSelection work;   // drop
  std::string why;      // a reason, for the history
};

struct ValidateOptions {
  std::vector<std::string> files;
  bool json = false;
};

int run_flow(const RunFlowOptions& options);
int exec_command(const ExecOptions& options);
int map_command(const MapOptions& options);
int resume(const ResumeOptions& options);
int retry(const ResumeOptions& options);
int dead_letters_retry(const ResumeOptions& options);
int cancel(const OperateOptions& options);
int pause(const OperateOptions& options);
int signal_run(const OperateOptions& options);
int wait_for(const OperateOptions& options);
int remove_run(const OperateOptions& options);
int dead_letters_drop(const OperateOptions& options);
int validate(const ValidateOptions& options);
int validate_replay(const RunOptions& options);

}  // namespace reprise::cli
