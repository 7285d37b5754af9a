// reprise exec: one command, retried and durable, that behaves like `env` and `timeout` towards everybody else.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/private_file.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/run/attributes.hpp"
#include "cli/run/kept_stdin.hpp"
#include "cli/run/policy_flags.hpp"
#include "cli/run/run_commands.hpp"
#include "cli/run/same_run.hpp"
#include "cli/run/watching.hpp"
#include "cli/store_option.hpp"
#include "exec/document/attempt_run.hpp"
#include "exec/log_path.hpp"
#include "host/flow_plan.hpp"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr int exit_timeout = 124;

void pass_file_on(const std::string& path) {
  std::ifstream stream{path, std::ios::binary};
  char buffer[65536];
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0)
    print_bytes({buffer, static_cast<std::size_t>(stream.gcount())});
}

// Length and hash of the output's file, from the record. std::nullopt: the record holds the output itself.
std::expected<std::optional<exec::KeptFile>, Error> kept_output(RunSession& session, const RunId& run) {
  std::optional<exec::KeptFile> kept;
  const auto read = session.each_event(run, [&](const Event& event) {
    if (event.type == EventType::completed) kept = exec::kept_file_from(event.text);
    return true;
  });
  if (!read) return std::unexpected{read.error()};
  return kept;
}

// What the successful attempt wrote, or nothing of it: half an output must not look like one. Gives the exit code.
int pass_output_on(RunSession& session, const RunId& run, const RunOutcome& outcome) {
  const auto kept = kept_output(session, run);
  if (!kept) return show_error(kept.error());
  const std::string file =
      exec::exec_stdout_file(exec::log_path(session.folder(), run, exec::exec_step, 0, outcome.attempts));
  if (*kept) {
    if (auto same = exec::check(file, **kept); !same) {
      usage_error(fmt::format("the command has succeeded, but its output is lost: {}", same.error()));
      return exit_exec_usage;
    }
  }
  std::signal(SIGPIPE, SIG_DFL);  // the run is over: whoever has read enough ends us, as in every pipe
  std::error_code problem;
  const bool is_in_file = *kept || fs::exists(file, problem);  // runs of older versions have the file only
  is_in_file ? pass_file_on(file) : print_bytes(outcome.output);
  return exit_done;
}

// An earlier run has its own standard input. If this is the same, byte by byte, it takes the place of one that a power cut has damaged.
void settle_second_copy(const KeptStdin& given, const std::string& folder, const exec::RunInput& run) {
  if (given.path.empty() || given.path == run.stdin_file) return;
  std::error_code problem;
  const bool is_same = run.kept_stdin && run.kept_stdin == given.content;
  if (is_same) fs::rename(given.path, exec::kept_stdin_path(folder, run), problem);
  if (!is_same || problem) fs::remove(given.path, problem);
}

// Mistakes that other commands call bad usage have a code of their own here, which no command gives.
int as_exec(int code) { return code == exit_usage ? exit_exec_usage : code; }

int exit_code_of_command(const RunSession::End& end) {
  const RunOutcome& outcome = end.outcome;
  if (outcome.status != RunStatus::failed) return exit_code_of(end);
  const Failure& failure = outcome.failure;
  if (failure.kind == FailureKind::timeout || failure.kind == FailureKind::stalled) return exit_timeout;
  if (failure.signal) return 128 + *failure.signal;
  if (failure.kind == FailureKind::worker_lost) return exit_failed;
  if (!failure.exit_code && failure.type == "BrokenPipeError") return 128 + SIGPIPE;  // whoever read it has enough
  if (!failure.exit_code) return exit_exec_usage;  // not the command: its input or output could not be kept
  return *failure.exit_code != 0 ? *failure.exit_code : exit_failed;
}

}  // namespace

int exec_command(const ExecOptions& options) {
  const auto chosen = chosen_policy(options, "exec");
  if (!chosen) return chosen.error();
  const auto attributes = attributes_here(options.labels);
  if (!attributes) {
    print_error(fmt::format("reprise exec: {}\n", attributes.error()));
    return exit_exec_usage;
  }
  if (const int refused = refuse_other_bytes(options.command, "exec"); refused != exit_done) return refused;
  auto session = RunSession::open(options.watch, true);
  if (!session) return session.error();
  RunSession& open = **session;
  const auto given = keep_stdin(open, options.standard_input);
  if (!given) return given.error();
  std::error_code problem;
  exec::RunInput input;
  input.file = "exec";
  input.directory = fs::current_path(problem).string();
  input.argv = options.command;
  input.retry = chosen->text;
  input.retry_dialect = chosen->dialect;
  input.timeout = chosen->timeout;
  input.stdin_file = given->path;
  input.kept_stdin = given->content;
  const auto program = exec::load_program(input);
  const auto run =
      program ? open.submit(*program, options.id, *attributes)
              : std::unexpected{show_error({ErrorCode::invalid, program.error()})};
  if (!run) {
    if (run.error() != exit_code_of(ErrorCode::store_unavailable))
      fs::remove(given->path, problem);  // else the run may be recorded all the same
    return as_exec(run.error());
  }
  const auto same = input_of_same_run(open, *run, options.id, input, exit_exec_usage);
  if (!same) {
    if (same.error() == exit_exec_usage) fs::remove(given->path, problem);  // of no run
    return same.error();
  }
  settle_second_copy(*given, open.folder(), *same);
  const auto before = open.go_on(*run);
  if (!before) return as_exec(show_error(before.error()));

  auto plan = std::make_shared<const core::Plan>(host::plan_of((*program)->flow));
  const auto end = open.follow(*run, std::move(plan), options.id.empty() ? 0 : *before);
  if (!end) return end.error();
  int code = exit_code_of_command(*end);
  if (end->outcome.status == RunStatus::succeeded) {
    const bool was_shown = options.watch.stdout_through && open.has_worked(*run, *before);
    if (!was_shown) code = pass_output_on(open, *run, end->outcome);
    const std::string kept = exec::kept_stdin_path(open.folder(), *same);
    if (!kept.empty()) static_cast<void>(base::remove_below(open.folder(), base::name_below(open.folder(), kept)));
  }
  const bool had_trouble = end->outcome.attempts > 1 || end->outcome.status != RunStatus::succeeded;
  if (had_trouble || options.watch.json) open.report(*run, *end);
  return code;
}

}  // namespace reprise::cli
