#include "cli/look_app.hpp"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "text/duration.hpp"
#include "text/nearest.hpp"

namespace reprise::cli {
namespace {

constexpr std::array statuses{RunStatus::running, RunStatus::paused, RunStatus::succeeded, RunStatus::failed,
                              RunStatus::canceled};

// One of a few words; help and errors list them.
void add_words(CLI::App& command, const std::string& name, std::vector<std::string_view> words, const std::string& help,
               const std::function<void(std::size_t)>& take) {
  std::string text;
  for (const std::string_view one : words) text += (text.empty() ? "" : "|") + std::string{one};
  const auto choose = [words, name, take](const std::string& given) {
    const auto found = std::ranges::find(words, given);
    if (found != words.end()) return take(static_cast<std::size_t>(found - words.begin()));
    const std::string_view close = text::nearest(given, words);
    throw CLI::ValidationError(name, fmt::format("expected {}, found {}{}", text::join_words(words), given,
                                                 close.empty() ? "" : fmt::format("; did you mean {}?", close)));
  };
  command.add_option_function<std::string>(name, choose, help)->option_text(text);
}

void add_format(CLI::App& command, bool& json, const char* help = "default: text") {
  add_words(command, "--format", {"text", "json"}, help, [&json](std::size_t chosen) { json = chosen == 1; });
}

void add_store(CLI::App& command, std::string& store) {
  command.add_option("--store", store, "sqlite:PATH (default: REPRISE_STORE, else sqlite:.reprise/reprise.db)")
      ->option_text("URL");
}

template <class Target>
void add_count(CLI::App& command, const std::string& name, Target& target, std::uint64_t max, const std::string& help) {
  const auto read = [&target, max, name](const std::string& given) {
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(given.data(), given.data() + given.size(), number);
    if (error != std::errc{} || stop != given.data() + given.size() || number < 1 || number > max)
      throw CLI::ValidationError(name, fmt::format("expected a whole number from 1 to {}, found {}", max, given));
    target = number;
  };
  command.add_option_function<std::string>(name, read, help)->option_text("N");
}

void add_run(CLI::App& command, RunOptions& options, bool required = true) {
  add_store(command, options.store);
  command.add_option("RUN", options.run, "an id, the beginning of one, @last or @last-failed")
      ->required(required)
      ->option_text(" ");
}

void add_place(CLI::App& command, std::string& place, bool required = false) {
  command.add_option("STEP[ITEM]", place, "a step, or one item of it: fetch, 'fetch[57]'")
      ->required(required)
      ->option_text(" ");
}

void add_runs(CLI::App& app, RunsOptions& options, std::function<int()>& chosen) {
  CLI::App* const command = app.add_subcommand("runs", "Which runs there are, newest first");
  add_store(*command, options.store);
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
  add_count(*command, "--limit", options.limit, 10'000, "how many at most (default: 50)");
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
  add_count(*command, "--attempt", options.attempt, UINT32_MAX, "only this attempt");
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
  CLI::App* const list = letters->add_subcommand("list", "Those of a run, or of all runs");
  add_run(*list, options.dead_letters_list.of.run, false);
  add_count(*list, "--limit", options.dead_letters_list.limit, 1'000'000, "how many at most (default: 100)");
  add_format(*list, options.dead_letters_list.of.run.json, "json: one object a line (default: text)");
  list->footer(
      "  reprise dead-letters list\n"
      "  reprise dead-letters list @last --format json");
  list->callback([&] { chosen = [&options] { return dead_letters_list(options.dead_letters_list); }; });
  CLI::App* const one = letters->add_subcommand("show", "What it was given, and how each attempt failed");
  add_run(*one, options.dead_letters_show.run);
  add_place(*one, options.dead_letters_show.place, true);
  add_format(*one, options.dead_letters_show.run.json);
  one->footer("  reprise dead-letters show @last 'fetch[57]'");
  one->callback([&] { chosen = [&options] { return dead_letters_show(options.dead_letters_show); }; });
}

void add_doctor(CLI::App& app, DoctorOptions& options, std::function<int()>& chosen) {
  CLI::App* const command = app.add_subcommand("doctor", "Is everything there that runs need?");
  add_store(*command, options.store);
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
