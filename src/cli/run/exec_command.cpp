// reprise exec: one command, retried and durable, that behaves like `env` and `timeout` towards everybody else.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <reprise/dialect.hpp>

#include "base/private_file.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/run/attributes.hpp"
#include "cli/run/kept_stdin.hpp"
#include "cli/run/run_commands.hpp"
#include "cli/run/same_run.hpp"
#include "cli/run/watching.hpp"
#include "cli/store_option.hpp"
#include "exec/document/attempt_run.hpp"
#include "exec/log_path.hpp"
#include "host/flow_plan.hpp"
#include "text/utf8.hpp"
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

// The text of a policy, and what it is read as.
struct ChosenPolicy {
  std::string text;
  Dialect dialect = Dialect::native;
  std::optional<Duration> timeout = {};  // said beside a file
};

// A file says all but the timeout of an attempt, which few dialects have.
std::expected<ChosenPolicy, int> policy_of_file(const ExecOptions& options) {
  const bool has_flags =
      !(options.retry.empty() && options.max_attempts.empty() && options.backoff.empty() && options.jitter.empty() &&
        options.max_elapsed.empty() && options.only_on.empty() && options.never_on.empty());
  const auto refuse = [](std::string_view why) {
    print_error(fmt::format("reprise exec: {}\n", why));
    return std::unexpected{exit_exec_usage};
  };
  if (has_flags)
    return refuse("--policy says it all: remove the other options of the policy, or write them into the file");
  if (options.policy.file == "-") return refuse("--policy -: standard input belongs to the command; name a file");
  auto input = read_input(options.policy.file);
  if (!input) return std::unexpected{exit_exec_usage};
  ChosenPolicy chosen{input->text, options.policy.from};
  const auto read = read_policy(std::move(input->text), options.policy.from, options.policy.file);
  const std::vector<Diagnostic>& found = read ? read->warnings : read.error();
  if (!read || options.watch.progress != ProgressMode::quiet) print_error(render(found));
  if (!read) return std::unexpected{exit_exec_usage};
  if (options.timeout.empty()) return chosen;
  Value timeout = Value::map();
  timeout.set("attempt_timeout", options.timeout);
  const auto limit = read_policy(text::to_json(timeout), Dialect::native, "--timeout");
  if (!limit) return refuse(limit.error().front().message);
  chosen.timeout = limit->policy.attempt_timeout;
  return chosen;
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

std::expected<ChosenPolicy, int> chosen_policy(const ExecOptions& options) {
  if (!options.policy.file.empty()) return policy_of_file(options);
  if (options.policy.from != Dialect::native) {
    print_error("reprise exec: --from is the dialect of a policy file: give it with --policy FILE\n");
    return std::unexpected{exit_exec_usage};
  }
  auto text = policy_text(options);
  if (!text) return std::unexpected{text.error()};
  return ChosenPolicy{*std::move(text)};
}

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

// What is recorded is text. Bytes that are none would name another file when they come back from the record.
int refuse_other_bytes(const std::vector<std::string>& command) {
  std::error_code problem;
  const bool is_text = text::is_utf8(fs::current_path(problem).string());
  const auto other = std::ranges::find_if_not(command, [](const std::string& word) { return text::is_utf8(word); });
  if (is_text && other == command.end()) return exit_done;
  print_error(
      fmt::format("reprise exec: {} is not UTF-8 text, and would not be kept as it is; give it in a script or "
                  "on standard input\n",
                  is_text ? fmt::format("word {} of the command", other - command.begin() + 1)
                          : std::string{"the name of the current folder"}));
  return exit_exec_usage;
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
  if (!failure.exit_code) return exit_exec_usage;  // not the command: its input or output could not be kept
  return *failure.exit_code != 0 ? *failure.exit_code : exit_failed;
}

}  // namespace

int exec_command(const ExecOptions& options) {
  const auto chosen = chosen_policy(options);
  if (!chosen) return chosen.error();
  const auto attributes = attributes_here(options.labels);
  if (!attributes) {
    print_error(fmt::format("reprise exec: {}\n", attributes.error()));
    return exit_exec_usage;
  }
  if (const int refused = refuse_other_bytes(options.command); refused != exit_done) return refused;
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
    code = pass_output_on(open, *run, end->outcome);
    const std::string kept = exec::kept_stdin_path(open.folder(), *same);
    if (!kept.empty()) static_cast<void>(base::remove_below(open.folder(), base::name_below(open.folder(), kept)));
  }
  const bool had_trouble = end->outcome.attempts > 1 || end->outcome.status != RunStatus::succeeded;
  if (had_trouble || options.watch.json) open.report(*run, *end);
  return code;
}

}  // namespace reprise::cli
