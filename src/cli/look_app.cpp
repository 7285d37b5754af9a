#include "cli/look_app.hpp"

#include <array>

#include <fmt/format.h>

#include "cli/options.hpp"
#include "text/duration.hpp"

namespace reprise::cli {
namespace {

constexpr std::array statuses{RunStatus::running, RunStatus::paused, RunStatus::succeeded, RunStatus::failed,
                              RunStatus::canceled};

void add_run(CLI::App& command, RunOptions& options, Presence presence = Presence::required) {
  add_run_name(command, options.run, presence);
  add_store(command, options.store, StoreKind::file);
}

void add_runs(CLI::App& app, RunsOptions& options, std::function<int()>& chosen) {
  CLI::App* const command = app.add_subcommand("runs", "Which runs there are, newest first");
  add_store(*command, options.store, StoreKind::file);
  std::vector<std::string_view> names;
  for (const RunStatus status : statuses) names.push_back(name_of(status));
  add_words(*command, "--status", names, "only those",
            [&options](std::size_t at) { options.status = statuses.at(at); });
  command->add_option("--flow", options.flow, "only of this flow or handler")->option_text("NAME");
  const auto read_since = [&options](const std::string& given) {
    const auto since = text::parse_duration(given, text::DurationGrammar::native);
    if (!since) throw CLI::ValidationError("--since", fmt::format("{} {}", given, since.error().message));
    options.since = *since;
  };
  command->add_option_function<std::string>("--since", read_since, "created this long ago or later: 24h, 7d")
      ->option_text("TIME");
  add_number(*command, "--limit", options.limit, {1, 10'000}, "how many at most (default: 50)");
  add_format(*command, options.json, "json: one object a line (default: text)");
  command->footer(
      "  reprise runs --status failed --since 24h\n"
      "  reprise runs --flow nightly --format json");
  command->callback([&] { chosen = [&options] { return runs(options); }; });
}

void add_show(CLI::App& app, ShowOptions& options, std::function<int()>& chosen) {
  CLI::App* const command = app.add_subcommand("show", "How a run stands, step by step");
  add_run(*command, options.run);
  add_format(*command, options.run.json);
  command->add_option("--html", options.html, "a page for a browser instead, in one file; - is standard output")
      ->option_text("FILE");
  command->footer(
      "  reprise show @last\n"
      "  reprise show @last-failed --format json\n"
      "  reprise show @last --html report.html");
  command->callback([&] { chosen = [&options] { return show(options); }; });
}

void add_events(CLI::App& app, EventsOptions& options, std::function<int()>& chosen) {
  CLI::App* const command = app.add_subcommand("events", "What happened in a run, one line each");
  add_run(*command, options.run);
  command->add_flag("--follow", options.follow, "go on until the run has ended");
  add_format(*command, options.run.json, "json: one object a line (default: text)");
  command->footer(
      "  reprise events @last --follow\n"
      "  reprise events @last --format json | grep '\"type\":\"failed\"'");
  command->callback([&] { chosen = [&options] { return events(options); }; });
}

void add_logs(CLI::App& app, LogsOptions& options, std::function<int()>& chosen) {
  CLI::App* const command = app.add_subcommand("logs", "What the attempts of a run wrote");
  add_run(*command, options.of.run);
  add_place(*command, options.of.place);
  add_number(*command, "--attempt", options.attempt, {1, UINT32_MAX}, "only this attempt");
  command->footer(
      "Exit code 4: no such run, step, item or log.\n\n"
      "  reprise logs @last\n"
      "  reprise logs @last-failed 'fetch[57]' --attempt 2");
  command->callback([&] { chosen = [&options] { return logs(options); }; });
}

void add_why(CLI::App& app, PlaceOptions& options, std::function<int()>& chosen) {
  CLI::App* const command =
      app.add_subcommand("why", "Why work was tried again, or given up: every decision in sentences");
  add_run(*command, options.run);
  add_place(*command, options.place);
  add_format(*command, options.run.json);
  command->footer(
      "  reprise why @last-failed\n"
      "  reprise why @last 'fetch[57]'");
  command->callback([&] { chosen = [&options] { return why(options); }; });
}

void add_replay(CLI::App& app, RunOptions& options, std::function<int()>& chosen) {
  CLI::App* const command =
      app.add_subcommand("replay", "The recorded story once more; with --validate the work itself, compared with it");
  add_run(*command, options);
  add_format(*command, options.json);
  command->footer(
      "Exit code 1: the events do not lead to what is recorded.\n\n"
      "  reprise replay @last");
  command->callback([&] { chosen = [&options] { return replay(options); }; });
}

void add_dead_letters(CLI::App& app, LookOptions& options, std::function<int()>& chosen) {
  CLI::App* const letters = app.add_subcommand("dead-letters", "Work that was given up and kept for later");
  letters->require_subcommand(1);
  letters->footer("  reprise dead-letters list\n  reprise dead-letters retry @last");
  CLI::App* const list = letters->add_subcommand("list", "Those of a run, or of all runs");
  add_run(*list, options.dead_letters_list.of.run, Presence::optional);
  add_number(*list, "--limit", options.dead_letters_list.limit, {1, 1'000'000}, "how many at most (default: 100)");
  add_format(*list, options.dead_letters_list.of.run.json, "json: one object a line (default: text)");
  list->footer(
      "  reprise dead-letters list\n"
      "  reprise dead-letters list @last --format json");
  list->callback([&] { chosen = [&options] { return dead_letters_list(options.dead_letters_list); }; });
  CLI::App* const one = letters->add_subcommand("show", "What it was given, and how each attempt failed");
  add_run(*one, options.dead_letters_show.run);
  add_place(*one, options.dead_letters_show.place, Presence::required);
  add_format(*one, options.dead_letters_show.run.json);
  one->footer("  reprise dead-letters show @last 'fetch[57]'");
  one->callback([&] { chosen = [&options] { return dead_letters_show(options.dead_letters_show); }; });
}

void add_doctor(CLI::App& app, DoctorOptions& options, std::function<int()>& chosen) {
  CLI::App* const command = app.add_subcommand("doctor", "Is everything there that runs need?");
  add_store(*command, options.store, StoreKind::file);
  add_format(*command, options.json);
  command->footer(
      "Exit code 0: yes. 1: no, and what to do about it.\n\n"
      "  reprise doctor");
  command->callback([&] { chosen = [&options] { return doctor(options); }; });
}

}  // namespace

void add_look_commands(CLI::App& app, LookOptions& options, std::function<int()>& chosen) {
  add_runs(app, options.runs, chosen);
  add_show(app, options.show, chosen);
  add_events(app, options.events, chosen);
  add_logs(app, options.logs, chosen);
  add_why(app, options.why, chosen);
  add_replay(app, options.replay, chosen);
  add_dead_letters(app, options, chosen);
  add_doctor(app, options.doctor, chosen);
}

}  // namespace reprise::cli
