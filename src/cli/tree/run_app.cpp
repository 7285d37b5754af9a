#include "cli/tree/run_app.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "cli/tree/options.hpp"
#include "index/filter.hpp"

namespace reprise::cli {
namespace {

void add_watching(CommandShape& command, WatchOptions& options) {
  add_store(command, options.store);
  add_choice(command, "--progress", options.progress,
             Choices<ProgressMode>{{"auto", ProgressMode::automatic},
                                   {"tty", ProgressMode::live},
                                   {"plain", ProgressMode::plain},
                                   {"json", ProgressMode::json},
                                   {"quiet", ProgressMode::quiet}},
             "what is told while it runs, on standard error (default: auto)");
  add_format(command, options.json, "json: the result as one document on standard output");
  add_choice(command, "--annotations", options.annotations, Choices<bool>{{"github", true}},
             "at the end, what went wrong as annotations of a workflow");
}

void add_callbacks(CommandShape& command, WatchOptions& options) {
  add_option(command, "--callback-listen", options.callback_listen, "ADDRESS",
             "where async steps are reported to: 127.0.0.1:9000 (default: a free port, the same again on resume)");
  add_option(command, "--callback-url", options.callback_url, "URL",
             "what workers are told instead of the address, for a proxy or another machine");
}

void add_label(CommandShape& command, std::vector<std::string>& labels) {
  add_option(command, "--label", labels, "NAME=VALUE",
             "finds the run later: reprise runs label:team=a; may be given again");
}

CommandShape run_command(RunFlowOptions& options) {
  CommandShape command = command_named("run", "Runs a flow to its end");
  add_watching(command, options.watch);
  add_callbacks(command, options.watch);
  add_argument(command, "FILE", options.file, "a flow document; - reads standard input");
  add_option(command, "--input", options.input, "JSON|@FILE", "parameters as one JSON object, or @file");
  add_option(command, "--set", options.set, "KEY=VALUE", "one parameter; may be given again");
  add_flag(command, "--output-logs", options.watch.output_logs, "what steps write, as it comes, with step and item");
  add_option(command, "--id", options.id, "KEY", "the same key later finds the same run");
  add_label(command, options.labels);
  add_flag(command, "--dry-run", options.dry_run, "shows the plan and starts nothing");
  set_footer(command,
             "Ctrl-C stops it and loses nothing; it prints the command that resumes it. Twice: kills what runs.\n\n"
             "  reprise run nightly.yaml --set date=2026-11-15\n"
             "  reprise run nightly.yaml --dry-run");
  command.run = [&options] { return run_flow(options); };
  return command;
}

void add_policy_flags(CommandShape& command, ExecOptions& options) {
  add_option(command, "--retry", options.retry, "NAME", "none, standard (default), aggressive or patient");
  add_option(command, "--max-attempts", options.max_attempts, "N", "attempts in all, or unlimited");
  add_option(command, "--backoff", options.backoff, "SPEC", "kind, first wait and longest: exponential:1s..30s");
  add_option(command, "--jitter", options.jitter, "KIND", "none, full, equal or a ratio such as 25%");
  add_option(command, "--timeout", options.timeout, "TIME", "of each attempt");
  add_option(command, "--max-elapsed", options.max_elapsed, "TIME",
             "of all attempts and waits; what runs then is stopped");
  add_option(command, "--only-on", options.only_on, "LIST", "retry only these failures: transient,exit:75").is_list =
      true;
  add_option(command, "--never-on", options.never_on, "LIST", "never retry these").is_list = true;
  add_option(command, "--policy", options.policy.file, "FILE",
             "a whole policy from a file, instead of the options above but --timeout");
  add_choice(command, "--from", options.policy.from, dialects(), "the dialect of that file (default: native)");
}

CommandShape map_shape(MapOptions& options) {
  CommandShape command = command_named("map", "Runs one command for each line of the input, in parallel and retried");
  ExecOptions& exec = options.exec;
  exec.watch.only_trouble = true;
  exec.watch.command = "map";
  add_watching(command, exec.watch);
  add_number(command, "-j,--jobs", options.jobs, {1, 10'000}, "how many at a time (default: one for each processor)");
  add_option(command, "--file", options.file, "FILE", "where the items stand; - is standard input, the default");
  add_flag(command, "--json", options.json, "the items are JSON: a list, or one value a line (also FILE.json, .jsonl)");
  add_flag(command, "-0,--null", options.nul_separated, "items end with NUL instead of a line end");
  add_policy_flags(command, exec);
  add_option(command, "--id", exec.id, "KEY", "the same key later finds the same run");
  add_label(command, exec.labels);
  add_arguments(command, "CMD", exec.command, "ARG...",
                "the command; {} is the item, {.id} a field of it, {#} its number");
  command.ends_with_arguments = true;
  set_footer(
      command,
      "Without {} the item is the last argument. Empty lines are left out. What an item writes to standard output\n"
      "reaches standard output when it has succeeded. Items that fail are kept: `reprise retry` retries them.\n\n"
      "Exit code: 0 all succeeded, 1 some failed for good.\n\n"
      "  seq 60 | reprise map -j4 -- ./job.sh {}\n"
      "  reprise map --file orders.jsonl --retry aggressive -- ./ship.sh {.id} {.city}\n"
      "  find . -name '*.png' -print0 | reprise map -0 -- gzip -k");
  command.run = [&options] { return map_command(options); };
  return command;
}

CommandShape exec_shape(ExecOptions& options) {
  CommandShape command = command_named("exec", "Runs one command, retried and durable");
  options.watch.only_trouble = true;
  options.watch.command = "exec";
  add_watching(command, options.watch);
  add_policy_flags(command, options);
  add_option(command, "--id", options.id, "KEY", "the same key later finds the same run");
  add_label(command, options.labels);
  add_choice(
      command, "--stdin", options.standard_input,
      Choices<StdinMode>{{"auto", StdinMode::automatic}, {"replay", StdinMode::replay}, {"none", StdinMode::none}},
      "auto (default): what a file or a pipe holds is given to each attempt; replay: whatever it is; none: nothing");
  add_flag(
      command, "-n,--no-stdin", [&options] { options.standard_input = StdinMode::none; },
      "leaves standard input alone, as in a `while read` loop (--stdin none)");
  add_choice(command, "--stdout", options.watch.stdout_through, Choices<bool>{{"final", false}, {"stream", true}},
             "final (default): that of the successful attempt; stream: that of each attempt, as it comes");
  add_arguments(command, "CMD", options.command, "ARG...", "the command and its arguments");
  command.ends_with_arguments = true;
  set_footer(
      command,
      "Only the successful attempt's output reaches standard output. Standard input that is a file or a pipe is\n"
      "given to each attempt anew: a file is copied from its position, which stays; a pipe is read to its end\n"
      "first (-n leaves it to the script around).\n\n"
      "Exit code: the command's own; 124 timed out, 125 bad usage or trouble of exec itself, 126 not executable,\n"
      "127 not found.\n\n"
      "  reprise exec --retry aggressive --timeout 30s -- curl -fsS -o data.json https://example.org/\n"
      "  reprise exec --max-attempts 5 --backoff exponential:1s..30s -- ./upload.sh\n"
      "  reprise exec --policy retry.json --from azolla -- ./upload.sh");
  command.run = [&options] { return exec_command(options); };
  return command;
}

void add_why(CommandShape& command, std::string& why) {
  add_option(command, "--why", why, "TEXT", "a reason, for the history");
}

enum class Extent : bool { run, may_be_part };  // --step and --item

// `parent`: the words above the command, for its example: "dead-letters ".
CommandShape resume_command(const std::string& parent, const std::string& name, const char* help,
                            ResumeOptions& options, Extent extent, int (*action)(const ResumeOptions&)) {
  CommandShape command = command_named(name, help);
  options.watch.command = parent + name;
  add_watching(command, options.watch);
  add_callbacks(command, options.watch);
  add_run_name(command, options.run);
  add_flag(command, "--output-logs", options.watch.output_logs, "what steps write, as it comes, with step and item");
  add_option(command, "--directory", options.directory, "DIR", "where the folder of the run is now, if it was moved");
  add_why(command, options.why);
  if (extent == Extent::may_be_part) {
    add_option(command, "--step", options.work.steps, "STEP", "only this step; may be given again");
    add_option(command, "--item", options.work.items, "N|N-M",
               "only this item of it, or these (0 is the first); may be given again");
    add_flag(command, "--only", options.only, "steps that need it keep what they have, also when it now succeeds");
  }
  set_footer(command, fmt::format("  reprise {}{} @last", parent, name));
  command.run = [&options, action] { return action(options); };
  return command;
}

CommandShape operation(const std::string& name, const char* help, OperateOptions& options,
                       int (*action)(const OperateOptions&)) {
  CommandShape command = command_named(name, help);
  add_run_name(command, options.run);
  add_store(command, options.store, StoreKind::file);
  set_footer(command, fmt::format("  reprise {} @last", name));
  command.run = [&options, action] { return action(options); };
  return command;
}

CommandShape cancel_command(OperateOptions& options) {
  CommandShape command = operation("cancel", "Stops a run; it can be resumed", options, cancel);
  add_why(command, options.why);
  return command;
}

CommandShape pause_command(OperateOptions& options) {
  CommandShape command =
      operation("pause", "Lets what runs end, and starts nothing new until it is resumed", options, pause);
  add_why(command, options.why);
  return command;
}

CommandShape signal_command(OperateOptions& options) {
  CommandShape command =
      operation("signal", "Sends a signal or approval to a run", options, signal_run);
  add_argument(command, "NAME", options.text, "as the step's `signal:` has it");
  add_argument(command, "DATA", options.payload, "what the step's output will be: JSON or text", Presence::optional);
  set_footer(command, "  reprise signal @last approval '{\"by\": \"ada\"}'");
  return command;
}

// STEP[ITEM] and FILTER words, in any order: a filter always has a colon.
void add_letters(CommandShape& command, WorkSelection& work) {
  command.arguments.push_back({.name = "STEP[ITEM]",
                               .description = "which: 'fetch[57]', 'fetch[17,20-30]', or a filter such as http:5xx",
                               .choices = {},
                               .is_required = false,
                               .may_repeat = true,
                               .more = "... FILTER...",
                               .take = [&work](const std::string& given) {
                                 (index::is_filter_word(given) ? work.filter : work.places).push_back(given);
                                 return std::string{};
                               }});
  add_flag(command, "--all", work.all, "also all dead letters of a step, or of the run");
}

CommandShape retry_letters_command(ResumeOptions& options) {
  CommandShape command = resume_command("dead-letters ", "retry", "Retries dead letters", options, Extent::may_be_part,
                                        dead_letters_retry);
  add_letters(command, options.work);
  set_footer(command,
             "Without anything named: all of the run.\n\n"
             "  reprise dead-letters retry @last 'fetch[57]' 'fetch[20-30]'\n"
             "  reprise dead-letters retry @last class:transient exit:61-62");
  return command;
}

CommandShape drop_command(OperateOptions& options) {
  CommandShape command = operation("drop", "Discards dead letters", options, dead_letters_drop);
  add_letters(command, options.work);
  add_flag(command, "-y,--yes", options.work.yes, "no question before several are dropped");
  add_why(command, options.why);
  set_footer(command,
             "  reprise dead-letters drop @last 'fetch[57]'\n"
             "  reprise dead-letters drop @last exit:61 --yes\n"
             "  reprise dead-letters drop @last fetch --all --yes");
  return command;
}

CommandShape validate_command(ValidateOptions& options) {
  CommandShape command = command_named("validate", "Are these flow documents valid, and what do they mean?");
  add_arguments(command, "FILE", options.files, "...", "flow documents; - reads standard input");
  add_format(command, options.json, "json: one line for each file (default: text)");
  set_footer(command, "Exit code 0: all valid. 3: at least one is not.\n\n  reprise validate flows/*.yaml");
  command.run = [&options] { return validate(options); };
  return command;
}

}  // namespace

void add_run_commands(CommandShape& root, RunAppOptions& options, const LookOptions& look) {
  std::vector<CommandShape>& commands = root.commands;
  commands.push_back(run_command(options.run));
  commands.push_back(exec_shape(options.exec));
  commands.push_back(map_shape(options.map));
  commands.push_back(resume_command("", "resume", "Resumes a run that was interrupted, paused or cancelled",
                                    options.resume, Extent::run, resume));
  CommandShape again =
      resume_command("", "retry", "Retries what has failed in a run", options.retry, Extent::may_be_part, retry);
  add_option(again, "--where", options.retry.work.filter, "FILTER",
             "only what matches: class:transient http:5xx error:reset fingerprint:ab12 item:20-30; may be given again");
  set_footer(again,
             "  reprise retry @last --step fetch --item 57 --item 20-30\n"
             "  reprise retry @last --where 'exit:61 step:fetch'\n"
             "  reprise retry @last-failed");
  commands.push_back(std::move(again));
  commands.push_back(cancel_command(options.cancel));
  commands.push_back(pause_command(options.pause));
  commands.push_back(signal_command(options.signal));
  commands.push_back(operation("wait", "Waits until a run has ended; gives its exit code", options.wait, wait_for));
  commands.push_back(operation("rm", "Deletes a run that has ended, and its logs", options.remove, remove_run));
  commands.push_back(validate_command(options.validate));

  CommandShape& letters = root.command("dead-letters");
  letters.commands.push_back(retry_letters_command(options.retry_letter));
  letters.commands.push_back(drop_command(options.drop_letter));
  CommandShape& story = root.command("replay");
  add_flag(story, "--validate", options.validate_replay, "runs it again, in memory, and reports every difference");
  story.run = [&options, &look] {
    return options.validate_replay ? validate_replay(look.replay) : replay(look.replay);
  };
}

}  // namespace reprise::cli
