#include "cli/app.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/completion.hpp"
#include "cli/help_text.hpp"
#include "cli/io.hpp"
#include "cli/look_app.hpp"
#include "cli/man.hpp"
#include "cli/policy_app.hpp"
#include "cli/run_app.hpp"
#include "event/event_schema.hpp"
#include "flow/reader.hpp"
#include "text/nearest.hpp"

namespace reprise::cli {
namespace {

constexpr const char* version_line = "reprise " REPRISE_VERSION;

// Everything the commands need, alive as long as the parser refers to it.
struct Options {
  PolicyAppOptions policy;
  LookOptions look;
  RunAppOptions run;
  ManOptions man;
  std::string schema = "policy";
  std::string shell;
  std::function<int()> chosen;  // what the command line asked for
};

void add_schema(CLI::App& app, Options& options) {
  CLI::App* command = app.add_subcommand("schema", "JSON Schema for editors and readers of events");
  command->add_option("WHAT", options.schema, "of what (default: policy)")
      ->check(CLI::IsMember({"flow", "policy", "event"}).description(""))
      ->option_text("flow|policy|event");
  command->footer(
      "  reprise schema flow > flow.schema.json\n"
      "  reprise schema event > event.schema.json");
  command->callback([&options] {
    options.chosen = [&options] {
      print(options.schema == "flow"    ? flow::flow_schema()
            : options.schema == "event" ? event::event_schema()
                                        : policy_schema());
      return exit_done;
    };
  });
}

void add_completion(CLI::App& app, Options& options) {
  CLI::App* command = app.add_subcommand("completion", "A completion script for your shell");
  command->add_option("SHELL", options.shell, "which one you use")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""))
      ->option_text("bash|zsh|fish");
  command->footer(
      "  reprise completion bash > ~/.local/share/bash-completion/completions/reprise\n"
      "  reprise completion zsh > ~/.zfunc/_reprise\n"
      "  reprise completion fish > ~/.config/fish/completions/reprise.fish");
  command->callback([&options, &app] {
    options.chosen = [&options, &app] {
      print(completion_script(shape_of(app), options.shell));
      return exit_done;
    };
  });
}

void add_man(CLI::App& app, Options& options) {
  CLI::App* command = app.add_subcommand("man", "A manual page, or all of them");
  command->add_option("COMMAND", options.man.command, "which command's page: run, dead-letters list (default: reprise)")
      ->option_text(" ");
  command->add_option("--all", options.man.folder, "writes the pages of all commands there")->option_text("DIR");
  command->footer(
      "To read one: reprise man run | man -l -\n\n"
      "  reprise man run > reprise-run.1\n"
      "  reprise man --all ~/.local/share/man/man1");
  command->callback(
      [&options, &app] { options.chosen = [&options, &app] { return man(options.man, shape_of(app)); }; });
}

void add_version(CLI::App& app, Options& options) {
  CLI::App* command = app.add_subcommand("version", "Which version this is");
  command->footer("  reprise version");
  command->callback([&options] {
    options.chosen = [] {
      print(fmt::format("{}\n", version_line));
      return exit_done;
    };
  });
}

void add_all(CLI::App& app, Options& options) {
  app.formatter(std::make_shared<HelpText>());
  app.set_version_flag("--version", version_line, "which version this is");
  app.set_help_flag("-h,--help", "this text");
  app.require_subcommand(1);
  add_look_commands(app, options.look, options.chosen);
  add_run_commands(app, options.run, options.look, options.chosen);
  add_policy_commands(app, options.policy, options.chosen);
  add_schema(app, options);
  add_completion(app, options);
  add_man(app, options);
  add_version(app, options);
  group_commands(app);
  app.footer(
      "Exit codes: 0 done, 1 failed for good, 2 bad usage, 3 invalid document, 4 no such run, 5 trouble with the "
      "store,\n"
      "124 a deadline passed, 129, 130 and 143 interrupted.\n\n"
      "Documents: reprise COMMAND --help, man reprise-COMMAND; docs/tutorial.md of the source is a tutorial.\n\n"
      "Try these first:\n"
      "  reprise exec -- sh -c 'test $REPRISE_ATTEMPT = 2'\n"
      "  reprise why @last\n"
      "  reprise run flow.yaml --dry-run");
}

// The deepest command that was named, for messages and help.
const CLI::App* named_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? &app : named_command(*chosen.front());
}

std::string path_of(const CLI::App* command) {
  return command->get_parent() == nullptr ? command->get_name()
                                          : path_of(command->get_parent()) + " " + command->get_name();
}

// Words that other tools have for what a command here does.
std::string_view known_elsewhere(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> others{{{"help", "--help"},
                                                                                  {"list", "runs"},
                                                                                  {"ls", "runs"},
                                                                                  {"ps", "runs"},
                                                                                  {"status", "show"},
                                                                                  {"describe", "show"},
                                                                                  {"start", "run"},
                                                                                  {"stop", "cancel"},
                                                                                  {"explain", "why"},
                                                                                  {"check", "validate"}}};
  const auto* const found = std::ranges::find(others, word, &std::pair<std::string_view, std::string_view>::first);
  return found == others.end() ? "" : found->second;
}

int explain_usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = named_command(app);
  std::string message = error.what();
  if (const std::size_t missing = message.find(": 1 required "); missing != std::string::npos)
    message = message.substr(0, missing) + " needs a value";
  if (const auto extras = app.remaining(true); !extras.empty()) {
    std::vector<std::string> words;
    for (const CLI::App* known : command->get_subcommands([](const CLI::App*) { return true; }))
      words.push_back(known->get_name());
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
    const std::vector<std::string_view> candidates(words.begin(), words.end());
    const std::string_view other = command->get_parent() == nullptr ? known_elsewhere(extras.front()) : "";
    message = fmt::format(
        "unknown word {}{}", extras.front(),
        other.empty() ? text::did_you_mean(extras.front(), candidates) : fmt::format("; did you mean {}?", other));
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && command->get_parent() == nullptr &&
      app.remaining(true).empty()) {
    print_error(app.help());
    return exit_usage;
  }
  print_error(fmt::format("{}: {}\nTry {} --help.\n", path_of(command), message, path_of(command)));
  return command->get_name() == "exec" ? exit_exec_usage : exit_usage;
}

// An answer that could not be written is no answer.
int finished(int code) {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return written ? code : usage_error("cannot write to standard output");
}

constexpr const char* what_it_is = "Runs work that fails until it is done, and can say why.";

}  // namespace

CommandShape command_tree() {
  Options options;
  CLI::App app{what_it_is, "reprise"};
  add_all(app, options);
  return shape_of(app);
}

int run(std::span<const char* const> arguments) {
  Options options;
  CLI::App app{what_it_is, "reprise"};
  add_all(app, options);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    return finished(options.chosen());
  } catch (const CLI::Success& wanted) {  // --help and --version
    return finished(app.exit(wanted));
  } catch (const CLI::ParseError& error) {
    return explain_usage_error(app, error);
  } catch (const std::exception& error) {
    return usage_error(fmt::format("failed unexpectedly: {}", error.what()));
  }
}

}  // namespace reprise::cli
