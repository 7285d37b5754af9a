#include "cli/run/policy_flags.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "observe/words.hpp"
#include "text/utf8.hpp"
#include "text/value.hpp"

namespace reprise::cli {
namespace {

using text::Value;

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

// A wait that was named is that wait.
bool names_one_wait(const ExecOptions& options) { return options.backoff.starts_with("constant:"); }

// A file says all but the timeout of an attempt, which few dialects have.
std::expected<ChosenPolicy, int> policy_of_file(const ExecOptions& options, std::string_view command) {
  const bool has_flags =
      !(options.retry.empty() && options.max_attempts.empty() && options.backoff.empty() && options.jitter.empty() &&
        options.max_elapsed.empty() && options.only_on.empty() && options.never_on.empty());
  const auto refuse = [command](std::string_view why) {
    print_error(fmt::format("reprise {}: {}\n", command, why));
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
std::expected<std::string, int> policy_text(const ExecOptions& options, std::string_view command) {
  Value policy = Value::map();
  if (!options.retry.empty() && options.retry.find_first_not_of("0123456789") == std::string::npos) {
    const std::uint64_t retries = std::strtoull(options.retry.c_str(), nullptr, 10);
    print_error(
        fmt::format("reprise {}: --retry names a policy: none, standard, aggressive or patient; for {} write "
                    "--max-attempts {} (the first attempt counts)\n",
                    command, observe::counted_retries(retries), retries + (retries < UINT64_MAX ? 1 : 0)));
    return std::unexpected{exit_exec_usage};
  }
  if (!options.retry.empty()) policy.set("policy", options.retry);
  const auto set_number = [&](const char* key, const std::string& value) {
    const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    if (!value.empty()) policy.set(key, is_number ? Value{Value::Number{value}} : Value{value});
  };
  set_number("max_attempts", options.max_attempts);
  if (!options.backoff.empty()) set_backoff(policy, options.backoff);
  if (!options.jitter.empty()) policy.set("jitter", options.jitter);
  if (options.jitter.empty() && names_one_wait(options)) policy.set("jitter", "none");
  if (!options.timeout.empty()) policy.set("attempt_timeout", options.timeout);
  if (!options.max_elapsed.empty()) policy.set("max_elapsed", options.max_elapsed);
  if (!options.only_on.empty()) policy.set("only_on", list_of(options.only_on));
  if (!options.never_on.empty()) policy.set("never_on", list_of(options.never_on));
  std::string text = text::to_json(policy);
  const auto read = read_policy(text, Dialect::native, "the options");
  const auto show = [command](const Diagnostic& found, std::string_view what) {
    print_error(fmt::format("reprise {}: {}{}{}\n", command, what, found.message,
                            found.help.empty() ? "" : " (" + found.help + ")"));
  };
  if (read) {
    if (options.watch.progress != ProgressMode::quiet)
      for (const Diagnostic& warning : read->warnings) show(warning, "warning: ");
    return text;
  }
  for (const Diagnostic& mistake : read.error()) show(mistake, "");
  return std::unexpected{exit_exec_usage};
}

}  // namespace

std::expected<ChosenPolicy, int> chosen_policy(const ExecOptions& options, std::string_view command) {
  if (!options.policy.file.empty()) return policy_of_file(options, command);
  if (options.policy.from != Dialect::native) {
    print_error(
        fmt::format("reprise {}: --from is the dialect of a policy file: give it with --policy FILE\n", command));
    return std::unexpected{exit_exec_usage};
  }
  auto text = policy_text(options, command);
  if (!text) return std::unexpected{text.error()};
  return ChosenPolicy{*std::move(text)};
}

// What is recorded is text. Bytes that are none would name another file when they come back from the record.
int refuse_other_bytes(const std::vector<std::string>& command, std::string_view name) {
  std::error_code problem;
  const bool is_text = text::is_utf8(std::filesystem::current_path(problem).string());
  const auto other = std::ranges::find_if_not(command, [](const std::string& word) { return text::is_utf8(word); });
  if (is_text && other == command.end()) return exit_done;
  print_error(
      fmt::format("reprise {}: {} is not UTF-8 text, and would not be kept as it is; give it in a script or "
                  "on standard input\n",
                  name,
                  is_text ? fmt::format("word {} of the command", other - command.begin() + 1)
                          : std::string{"the name of the current folder"}));
  return exit_exec_usage;
}

}  // namespace reprise::cli
