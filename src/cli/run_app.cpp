#include "cli/run_app.hpp"

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/looking.hpp"
#include "cli/options.hpp"
#include "cli/store_option.hpp"

namespace reprise::cli {
namespace {

void add_watching(CLI::App& command, WatchOptions& options) {
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

void add_run_flow(CLI::App& app, RunFlowOptions& options, std::function<int()>& chosen) {
  CLI::App* command = app.add_subcommand("run", "Runs a flow to its end");
  add_watching(*command, options.watch);
  command->add_option("FILE", options.file, "a flow document; - reads standard input")->required()->option_text(" ");
  command->add_option("--input", options.input, "parameters as one JSON object, or @file")->option_text("JSON|@FILE");
  command->add_option("--set", options.set, "one parameter; may be given again")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--id", options.id, "the same key later finds the same run")->option_text("KEY");
  command->add_flag("--dry-run", options.dry_run, "shows the plan and starts nothing");
  command->footer(
      "Ctrl-C stops it and loses nothing; it prints the command to go on with. Twice: kills what runs.\n\n"
      "  reprise run nightly.yaml --set date=2026-11-15\n"
      "  reprise run nightly.yaml --dry-run");
  command->callback([&] { chosen = [&options] { return run_flow(options); }; });
}

void add_exec(CLI::App& app, ExecOptions& options, std::function<int()>& chosen) {
  CLI::App* command = app.add_subcommand("exec", "Runs one command, retried and durable");
  options.watch.only_trouble = true;
  add_watching(*command, options.watch);
  command->add_option("--retry", options.retry, "none, standard (default), aggressive or patient")->option_text("NAME");
  command->add_option("--max-attempts", options.max_attempts, "attempts in all, or unlimited")->option_text("N");
  command->add_option("--backoff", options.backoff, "kind, first wait and longest: exponential:1s..30s")
      ->option_text("SPEC");
  command->add_option("--jitter", options.jitter, "none, full, equal or a ratio such as 25%")->option_text("KIND");
  command->add_option("--timeout", options.timeout, "of each attempt")->option_text("TIME");
  command->add_option("--max-elapsed", options.max_elapsed, "of all attempts and waits; what runs then is stopped")
      ->option_text("TIME");
  command->add_option("--only-on", options.only_on, "retry only these failures: transient,exit:75")
      ->delimiter(',')
      ->option_text("LIST");
  command->add_option("--never-on", options.never_on, "never retry these")->delimiter(',')->option_text("LIST");
  command->add_option("--id", options.id, "the same key later finds the same run")->option_text("KEY");
  add_choice(
      *command, "--stdin", options.standard_input,
      Choices<StdinMode>{{"auto", StdinMode::automatic}, {"replay", StdinMode::replay}, {"none", StdinMode::none}},
      "auto (default): what a file or a pipe holds is given to each attempt; replay: whatever it is; none: nothing");
  command->add_flag_callback(
      "-n,--no-stdin", [&options] { options.standard_input = StdinMode::none; },
      "leaves standard input alone, as in a `while read` loop (--stdin none)");
  command->add_option("CMD", options.command, "the command and its arguments")->required()->option_text("ARG...");
  command->positionals_at_end();
  command->prefix_command(false);
  command->footer(
      "Only the successful attempt's output reaches standard output. Standard input that is a file or a pipe is given "
      "to "
      "each attempt anew:\n"
      "a file is copied from its position, which stays; a pipe is read to its end first (-n leaves it to the script "
      "around).\n\n"
      "Exit code: the command's own; 124 timed out, 125 bad usage or trouble of exec itself, 126 not executable, "
      "127 not found.\n\n"
      "  reprise exec --retry aggressive --timeout 30s -- curl -fsS -o data.json https://example.org/\n"
      "  reprise exec --max-attempts 5 --backoff exponential:1s..30s -- ./upload.sh");
  command->callback([&] { chosen = [&options] { return exec_command(options); }; });
}

void add_resume(CLI::App& parent, const char* name, const char* help, ResumeOptions& options, bool has_choice,
                int (*action)(const ResumeOptions&), std::function<int()>& chosen) {
  CLI::App* command = parent.add_subcommand(name, help);
  add_watching(*command, options.watch);
  add_run_name(*command, options.run);
  if (has_choice) {
    command->add_option("--step", options.step, "only this step")->option_text("STEP");
    command->add_option("--item", options.item, "only this item of it (0 is the first)")->option_text("N");
  }
  command->footer(
      fmt::format("  reprise {}{} @last", parent.get_parent() == nullptr ? "" : parent.get_name() + " ", name));
  command->callback([&options, action, &chosen] { chosen = [&options, action] { return action(options); }; });
}

CLI::App& add_operation(CLI::App& parent, const char* name, const char* help, OperateOptions& options,
                        int (*action)(const OperateOptions&), std::function<int()>& chosen) {
  CLI::App* command = parent.add_subcommand(name, help);
  add_run_name(*command, options.run);
  add_store(*command, options.store, StoreKind::file);
  command->footer(
      fmt::format("  reprise {}{} @last", parent.get_parent() == nullptr ? "" : parent.get_name() + " ", name));
  command->callback([&options, action, &chosen] { chosen = [&options, action] { return action(options); }; });
  return *command;
}

void add_validate(CLI::App& app, ValidateOptions& options, std::function<int()>& chosen) {
  CLI::App* command = app.add_subcommand("validate", "Are these flow documents valid, and what do they mean?");
  command->add_option("FILE", options.files, "flow documents; - reads standard input")->required()->option_text("...");
  add_format(*command, options.json, "json: one line for each file (default: text)");
  command->footer("Exit code 0: all valid. 3: at least one is not.\n\n  reprise validate flows/*.yaml");
  command->callback([&] { chosen = [&options] { return validate(options); }; });
}

}  // namespace

void add_run_commands(CLI::App& app, RunAppOptions& options, const LookOptions& look, std::function<int()>& chosen) {
  add_run_flow(app, options.run, chosen);
  add_exec(app, options.exec, chosen);
  add_resume(app, "resume", "Goes on with a run that was interrupted, paused or cancelled", options.resume, false,
             resume, chosen);
  add_resume(app, "retry", "Tries again what has failed in a run", options.retry, true, retry, chosen);
  app.get_subcommand("retry")->footer(
      "  reprise retry @last --step fetch --item 57\n"
      "  reprise retry @last-failed");
  CLI::App& canceled = add_operation(app, "cancel", "Stops a run; it can be resumed", options.cancel, cancel, chosen);
  canceled.add_option("--why", options.cancel.text, "a reason, for whoever reads the history")->option_text("TEXT");
  add_operation(app, "pause", "Lets what runs end, and starts nothing new until it is resumed", options.pause, pause,
                chosen);
  CLI::App& signaled = add_operation(app, "signal", "Brings a run the signal or approval that a step waits for",
                                     options.signal, signal_run, chosen);
  signaled.add_option("NAME", options.signal.text, "as the step's `signal:` has it")->required()->option_text(" ");
  signaled.add_option("DATA", options.signal.payload, "what the step's output will be: JSON or text")->option_text(" ");
  signaled.footer("  reprise signal @last approval '{\"by\": \"ada\"}'");
  add_operation(app, "wait", "Waits until a run has ended; gives its exit code", options.wait, wait_for, chosen);
  add_operation(app, "rm", "Forgets a run that has ended, and its logs", options.remove, remove_run, chosen);
  CLI::App& dead_letters = *app.get_subcommand("dead-letters");
  add_resume(dead_letters, "retry", "Tries them again", options.retry_letter, true, retry, chosen);
  CLI::App& dropped =
      add_operation(dead_letters, "drop", "Lets one go", options.drop_letter, dead_letters_drop, chosen);
  add_place(dropped, options.drop_letter.text, Presence::required);
  dropped.footer("  reprise dead-letters drop @last 'fetch[57]'");
  add_validate(app, options.validate, chosen);
  CLI::App* const story = app.get_subcommand("replay");
  story->add_flag("--validate", options.validate_replay, "runs it again, in memory, and reports every difference");
  story->callback([&options, &look, &chosen] {
    chosen = [&options, &look] { return options.validate_replay ? validate_replay(look.replay) : replay(look.replay); };
  });
}

}  // namespace reprise::cli
