// reprise exec: one command, retried and durable, that behaves like `env` and `timeout` towards everybody else.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <reprise/dialect.hpp>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/run_commands.hpp"
#include "cli/store_option.hpp"
#include "cli/watching.hpp"
#include "exec/document/attempt_run.hpp"
#include "exec/log_path.hpp"
#include "runtime/flow_plan.hpp"
#include "runtime/snapshot.hpp"
#include "text/value.hpp"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;
using text::Value;

constexpr int exit_timeout = 124;

Value list_of(const std::vector<std::string>& words) {
  Value list = Value::list();
  for (const std::string& word : words) list.add(word);
  return list;
}

// exponential, exponential:1s, exponential:1s..30s
void set_backoff(Value& policy, const std::string& option) {
  const std::size_t colon = option.find(':');
  policy.set("backoff", option.substr(0, colon));
  if (colon == std::string::npos) return;
  const std::string range = option.substr(colon + 1);
  const std::size_t dots = range.find("..");
  policy.set("initial", range.substr(0, dots));
  const bool is_constant = option.substr(0, colon) == "constant";  // its only wait is its longest
  if (dots != std::string::npos) policy.set("max", range.substr(dots + 2));
  if (dots == std::string::npos && is_constant) policy.set("max", range);
}

// The flags as a native policy, so that they are checked by the reader every policy is read by.
std::expected<std::string, int> policy_text(const ExecOptions& options) {
  Value policy = Value::map();
  if (!options.retry.empty()) policy.set("policy", options.retry);
  const auto set_number = [&](const char* key, const std::string& value) {
    const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    if (!value.empty()) policy.set(key, is_number ? Value{Value::Number{value}} : Value{value});
  };
  set_number("max_attempts", options.max_attempts);
  if (!options.backoff.empty()) set_backoff(policy, options.backoff);
  if (!options.jitter.empty()) policy.set("jitter", options.jitter);
  if (!options.timeout.empty()) policy.set("attempt_timeout", options.timeout);
  if (!options.max_elapsed.empty()) policy.set("max_elapsed", options.max_elapsed);
  if (!options.only_on.empty()) policy.set("only_on", list_of(options.only_on));
  if (!options.never_on.empty()) policy.set("never_on", list_of(options.never_on));
  std::string text = text::to_json(policy);
  const auto read = read_policy(text, Dialect::native, "the options");
  const auto show = [](const Diagnostic& found, std::string_view what) {
    print_error(
        fmt::format("reprise exec: {}{}{}\n", what, found.message, found.help.empty() ? "" : " (" + found.help + ")"));
  };
  if (read) {
    if (options.watch.progress != ProgressMode::quiet)
      for (const Diagnostic& warning : read->warnings) show(warning, "warning: ");
    return text;
  }
  for (const Diagnostic& mistake : read.error()) show(mistake, "");
  return std::unexpected{exit_exec_usage};
}

// Everything up to the end of standard input. The error is an exit code.
std::expected<std::size_t, int> copy_stdin(const RunSession& session, int out) {
  char buffer[65536];
  std::size_t total = 0;
  while (true) {
    if (const int signal = session.wait_to_read(STDIN_FILENO); signal != 0) return std::unexpected{128 + signal};
    const ssize_t count = read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return total;
    if (write(out, buffer, static_cast<std::size_t>(count)) != count) {
      usage_error("cannot keep standard input: the disk is full");
      return std::unexpected{exit_exec_usage};
    }
    total += static_cast<std::size_t>(count);
  }
}

// What comes from a file or a pipe is kept for every attempt; from a terminal nothing is read. Empty: there is nothing.
std::expected<std::string, int> spooled_stdin(const RunSession& session) {
  struct stat info {};
  if (fstat(STDIN_FILENO, &info) != 0 || S_ISCHR(info.st_mode)) return std::string{};
  const std::string folder = session.folder() + "/stdin";
  std::error_code problem;
  fs::create_directories(folder, problem);
  std::string path = folder + "/XXXXXX";
  const int out = mkstemp(path.data());
  if (out < 0) {
    usage_error("cannot keep standard input in " + folder);
    return std::unexpected{exit_exec_usage};
  }
  const auto copied = copy_stdin(session, out);
  close(out);
  if (copied && *copied > 0) return path;
  fs::remove(path, problem);
  if (!copied) return std::unexpected{copied.error()};
  return std::string{};
}

void pass_output_on(const std::string& file, const std::string& recorded) {
  std::signal(SIGPIPE, SIG_DFL);  // the run is over: whoever has read enough ends us, as in every pipe
  std::ifstream stream{file, std::ios::binary};
  if (!stream) {  // it wrote nothing, or its file is gone: what was recorded is all there is
    print_bytes(recorded);
    if (!recorded.empty()) print_bytes("\n");
    return;
  }
  char buffer[65536];
  while (stream.read(buffer, sizeof buffer) || stream.gcount() > 0)
    print_bytes({buffer, static_cast<std::size_t>(stream.gcount())});
}

// What the run was given. The key may be that of an earlier run, which has its own.
std::optional<exec::RunInput> recorded_input(RunSession& session, const RunId& run) {
  auto snapshot = runtime::Snapshot::open(session.store());
  const auto view = snapshot ? snapshot->run(run) : std::expected<std::optional<runtime::RunView>, Error>{};
  if (!view || !*view) return std::nullopt;
  const auto input = exec::decode_run_input((*view)->input);
  return input ? std::optional{*input} : std::nullopt;
}

int exit_code_of_command(const RunSession::End& end) {
  const RunOutcome& outcome = end.outcome;
  if (outcome.status != RunStatus::failed) return exit_code_of(end);
  const Failure& failure = outcome.failure;
  if (failure.kind == FailureKind::timeout || failure.kind == FailureKind::stalled) return exit_timeout;
  if (failure.signal) return 128 + *failure.signal;
  return failure.exit_code && *failure.exit_code != 0 ? *failure.exit_code : exit_failed;
}

}  // namespace

int exec_command(const ExecOptions& options) {
  const auto retry = policy_text(options);
  if (!retry) return retry.error();
  auto session = RunSession::open(options.watch, true);
  if (!session) return session.error();
  RunSession& open = **session;
  auto spooled = spooled_stdin(open);
  if (!spooled) return spooled.error();
  std::error_code problem;
  exec::RunInput input;
  input.file = "exec";
  input.directory = fs::current_path(problem).string();
  input.argv = options.command;
  input.retry = *retry;
  input.stdin_file = *spooled;
  const auto run = open.host().submit(input, options.id);
  if (!run) {
    fs::remove(*spooled, problem);
    return show_error(run.error());
  }
  if (const auto recorded = options.id.empty() ? std::nullopt : recorded_input(open, *run)) {
    if (recorded->stdin_file != *spooled)
      fs::remove(*spooled, problem);  // an earlier run goes on with what it was given
    *spooled = recorded->stdin_file;
    if (recorded->argv != options.command) {
      print_error(fmt::format("reprise exec: the id {} belongs to another command\n", options.id));
      return exit_exec_usage;
    }
  }
  const auto before = open.host().go_on(*run);
  if (!before) return show_error(before.error());

  const auto program = exec::load_program(input);
  auto plan = std::make_shared<const core::Plan>(runtime::plan_of((*program)->flow));
  const auto end = open.follow(*run, std::move(plan), options.id.empty() ? 0 : *before);
  if (!end) return end.error();
  if (end->outcome.status == RunStatus::succeeded) {
    const std::string log = exec::log_path(open.folder(), *run, exec::exec_step, 0, end->outcome.attempts);
    pass_output_on(exec::exec_stdout_file(log), end->outcome.output);
  }
  if (end->outcome.status == RunStatus::succeeded && !spooled->empty()) fs::remove(*spooled, problem);
  const bool had_trouble = end->outcome.attempts > 1 || end->outcome.status != RunStatus::succeeded;
  if (had_trouble || options.watch.json) open.report(*run, *end);
  return exit_code_of_command(*end);
}

}  // namespace reprise::cli
