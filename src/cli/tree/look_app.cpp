#include "cli/tree/look_app.hpp"

#include <array>

#include <fmt/format.h>

#include "cli/tree/options.hpp"
#include "text/duration.hpp"

namespace reprise::cli {
namespace {

constexpr std::array statuses{RunStatus::running, RunStatus::paused, RunStatus::succeeded, RunStatus::failed,
                              RunStatus::canceled};

void add_run(CommandShape& command, RunOptions& options, Presence presence = Presence::required) {
  add_run_name(command, options.run, presence);
  add_store(command, options.store, StoreKind::file);
}

void add_since(CommandShape& command, std::optional<Duration>& target) {
  CommandShape::Option option;
  option.names = {"--since"};
  option.value = "TIME";
  option.description = "created this long ago or later: 24h, 7d";
  option.takes_value = true;
  option.take = [&target](const std::string& given) {
    const auto since = text::parse_duration(given, text::DurationGrammar::native);
    if (!since) return fmt::format("{} {}", given, since.error().message);
    target = *since;
    return std::string{};
  };
  command.options.push_back(std::move(option));
}

CommandShape runs_command(RunsOptions& options) {
  CommandShape command = command_named("runs", "Which runs there are, newest first");
  add_store(command, options.store, StoreKind::file);
  std::vector<std::string_view> names;
  for (const RunStatus status : statuses) names.push_back(name_of(status));
  add_words(command, "--status", names, "only those", [&options](std::size_t at) { options.status = statuses.at(at); });
  add_option(command, "--flow", options.flow, "NAME", "only of this flow or handler");
  add_since(command, options.since);
  add_number(command, "--limit", options.limit, {1, 10'000}, "how many at most (default: 50)");
  add_format(command, options.json, "json: one object a line (default: text)");
  add_arguments(command, "FILTER", options.filter, "...",
                "key:value, joined by and: status:failed label:team=a older:2h", Presence::optional);
  set_footer(
      command,
      "Keys of FILTER: status flow label since until older key parent attempts, and of work items, one of which\n"
      "has to match: step item class kind http exit error. A comma means or: status:failed,canceled.\n\n"
      "  reprise runs --status failed --since 24h\n"
      "  reprise runs label:team=a status:failed,interrupted attempts:3+\n"
      "  reprise runs --flow nightly --format json");
  command.run = [&options] { return runs(options); };
  return command;
}

CommandShape show_command(ShowOptions& options) {
  CommandShape command = command_named("show", "How a run stands, step by step");
  add_run(command, options.run);
  add_format(command, options.run.json);
  add_option(command, "--html", options.html, "FILE",
             "a page for a browser instead, in one file; - is standard output");
  set_footer(command,
             "  reprise show @last\n"
             "  reprise show @last-failed --format json\n"
             "  reprise show @last --html report.html");
  command.run = [&options] { return show(options); };
  return command;
}

CommandShape events_command(EventsOptions& options) {
  CommandShape command = command_named("events", "What happened in a run, one line each");
  add_run(command, options.run);
  add_flag(command, "--follow", options.follow, "go on until the run has ended");
  add_format(command, options.run.json, "json: one object a line (default: text)");
  set_footer(command,
             "  reprise events @last --follow\n"
             "  reprise events @last --format json | grep '\"type\":\"failed\"'");
  command.run = [&options] { return events(options); };
  return command;
}

CommandShape logs_command(LogsOptions& options) {
  CommandShape command = command_named("logs", "What the attempts of a run wrote");
  add_run(command, options.of.run);
  add_place(command, options.of.place);
  add_flag(command, "-f,--follow", options.follow,
           "each line as it comes, with its step and item, until the run has ended");
  add_number(command, "--attempt", options.attempt, {1, UINT32_MAX}, "only this attempt");
  set_footer(command,
             "Exit code 4: no such run, step, item or log.\n\n"
             "  reprise logs @last\n"
             "  reprise logs @last-failed 'fetch[57]' --attempt 2");
  command.run = [&options] { return logs(options); };
  return command;
}

CommandShape why_command(PlaceOptions& options) {
  CommandShape command = command_named("why", "Why work was retried or given up: every decision in sentences");
  add_run(command, options.run);
  add_place(command, options.place);
  add_format(command, options.run.json);
  set_footer(command,
             "  reprise why @last-failed\n"
             "  reprise why @last 'fetch[57]'");
  command.run = [&options] { return why(options); };
  return command;
}

CommandShape replay_command(RunOptions& options) {
  CommandShape command =
      command_named("replay", "Replays recorded events; --validate runs the work again and compares");
  add_run(command, options);
  add_format(command, options.json);
  set_footer(command,
             "Exit code 1: the events do not lead to what is recorded.\n\n"
             "  reprise replay @last");
  command.run = [&options] { return replay(options); };
  return command;
}

CommandShape dead_letters_command(LookOptions& options) {
  CommandShape letters = command_named("dead-letters", "Work that was given up and kept for later");
  set_footer(letters, "  reprise dead-letters list\n  reprise dead-letters retry @last");
  CommandShape list = command_named("list", "Those of a run, or of all runs");
  add_run(list, options.dead_letters_list.of.run, Presence::optional);
  add_number(list, "--limit", options.dead_letters_list.limit, {1, 1'000'000}, "how many at most (default: 100)");
  add_format(list, options.dead_letters_list.of.run.json, "json: one object a line (default: text)");
  set_footer(list,
             "  reprise dead-letters list\n"
             "  reprise dead-letters list @last --format json");
  list.run = [&options] { return dead_letters_list(options.dead_letters_list); };
  letters.commands.push_back(std::move(list));
  CommandShape one = command_named("show", "What it was given, and how each attempt failed");
  add_run(one, options.dead_letters_show.run);
  add_place(one, options.dead_letters_show.place, Presence::required);
  add_format(one, options.dead_letters_show.run.json);
  set_footer(one, "  reprise dead-letters show @last 'fetch[57]'");
  one.run = [&options] { return dead_letters_show(options.dead_letters_show); };
  letters.commands.push_back(std::move(one));
  return letters;
}

CommandShape failures_command(FailuresOptions& options) {
  CommandShape command = command_named("failures", "What has failed, grouped by cause");
  add_run(command, options.run, Presence::optional);
  add_arguments(command, "FILTER", options.filter, "...",
                "only what matches: step:fetch class:transient http:5xx label:ulm", Presence::optional);
  add_format(command, options.run.json, "json: one object a line (default: text)");
  set_footer(command,
             "Without RUN: of the last one.\n\n"
             "  reprise failures\n"
             "  reprise failures @last-failed class:transient --format json");
  command.run = [&options] { return failures(options); };
  return command;
}

CommandShape doctor_command(DoctorOptions& options) {
  CommandShape command = command_named("doctor", "Checks that this machine is ready");
  add_arguments(command, "FILE", options.files, "...", "flow documents: is what they need there, too?",
                Presence::optional);
  add_store(command, options.store, StoreKind::file);
  add_format(command, options.json);
  set_footer(command,
             "Exit code 0: yes. 1: no, and what to do about it.\n\n"
             "  reprise doctor\n  reprise doctor nightly.yaml");
  command.run = [&options] { return doctor(options); };
  return command;
}

}  // namespace

void add_look_commands(CommandShape& root, LookOptions& options) {
  root.commands.push_back(runs_command(options.runs));
  root.commands.push_back(show_command(options.show));
  root.commands.push_back(events_command(options.events));
  root.commands.push_back(logs_command(options.logs));
  root.commands.push_back(why_command(options.why));
  root.commands.push_back(replay_command(options.replay));
  root.commands.push_back(dead_letters_command(options));
  root.commands.push_back(failures_command(options.failures));
  root.commands.push_back(doctor_command(options.doctor));
}

}  // namespace reprise::cli
