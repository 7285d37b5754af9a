#include "cli/tree/command_line.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/tree/help_text.hpp"
#include "text/nearest.hpp"

namespace reprise::cli {
namespace {

void give(const std::string& name, const CommandShape::Take& take, const std::string& word) {
  if (const std::string mistake = take(word); !mistake.empty()) throw CLI::ValidationError(name, mistake);
}

std::string names_of(const CommandShape::Option& option) { return fmt::format("{}", fmt::join(option.names, ",")); }

void add_option(CLI::App& app, const CommandShape::Option& option) {
  const auto take = [&option](const std::string& word) { give(option.names.back(), option.take, word); };
  const auto take_all = [take](const std::vector<std::string>& words) { std::ranges::for_each(words, take); };
  const std::string names = names_of(option);
  if (!option.takes_value) {
    app.add_flag_function(
        names, [take](std::int64_t) { take(""); }, option.description);
  } else if (option.may_repeat) {
    CLI::Option* const added = app.add_option_function<std::vector<std::string>>(names, take_all, option.description);
    added->option_text(option.value)->allow_extra_args(option.is_list);
    if (option.is_list) added->delimiter(',');
  } else {
    app.add_option_function<std::string>(names, take, option.description)->option_text(option.value);
  }
}

void add_argument(CLI::App& app, const CommandShape::Argument& argument) {
  const auto take = [&argument](const std::string& word) { give(argument.name, argument.take, word); };
  const auto take_all = [take](const std::vector<std::string>& words) { std::ranges::for_each(words, take); };
  CLI::Option* const added =
      argument.may_repeat
          ? app.add_option_function<std::vector<std::string>>(argument.name, take_all, argument.description)
          : app.add_option_function<std::string>(argument.name, take, argument.description);
  const std::string choices = fmt::format("{}", fmt::join(argument.choices, "|"));
  added->required(argument.is_required)
      ->option_text(argument.may_repeat        ? argument.more
                    : argument.choices.empty() ? " "
                                               : choices);
}

// `words`: what the line begins with. Options of commands that it does not name are left out: most of a start would go into them.
void declare(CLI::App& app, const CommandShape& command, std::span<const char* const> words, CommandLine& line) {
  app.set_help_flag();  // the shape says where it stands
  for (const CommandShape::Option& option : command.options) {
    if (option.take) {
      add_option(app, option);
    } else if (option.names.back() == "--help") {
      app.set_help_flag(names_of(option), option.description);
    }
  }
  for (const CommandShape::Argument& argument : command.arguments) add_argument(app, argument);
  if (command.ends_with_arguments) app.positionals_at_end();
  app.footer(command.footer);
  const auto named = std::ranges::find_if(words, [](std::string_view word) { return !word.starts_with('-'); });
  for (const CommandShape& child : command.commands) {
    CLI::App* const added = app.add_subcommand(child.name, child.description);
    added->group(child.group);
    if (named != words.end() && child.name == *named) declare(*added, child, {named + 1, words.end()}, line);
  }
  if (!command.commands.empty()) app.require_subcommand(1);
  if (command.run) app.callback([&line, &command] { line.run = command.run; });
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

std::string unknown_word(const CLI::App& command, const std::string& word) {
  std::vector<std::string> known;
  const bool has_commands = !command.get_subcommands([](const CLI::App*) { return true; }).empty();
  const std::string_view kind = word.starts_with('-') ? "unknown option"
                                : has_commands        ? "unknown command"
                                                      : "unexpected argument";
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(child->get_name());
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  const std::string_view other = command.get_parent() == nullptr ? known_elsewhere(word) : "";
  return fmt::format("{} {}{}", kind, word,
                     other.empty() ? text::did_you_mean(word, candidates) : fmt::format("; did you mean {}?", other));
}

// What the library that parses says, as people expect it.
std::string in_our_words(std::string message) {
  const auto cut = [&](std::string_view part, std::string_view instead) {
    const std::size_t at = message.find(part);
    if (at == std::string::npos) return false;
    message = message.substr(0, at) + std::string{instead};
    return true;
  };
  if (cut(": At Most 1 required", " is given more than once")) return message;
  if (cut(": 1 required ", " needs a value")) return message;
  if (cut(": At least 1 required", " needs a value")) return message;
  if (message.starts_with("A subcommand is required")) return "name a command";
  return message;
}

std::string word_after(std::string_view word, std::span<const char* const> arguments) {
  const auto found = std::ranges::find(arguments, word, [](const char* each) { return std::string_view{each}; });
  return found == arguments.end() || found + 1 == arguments.end() ? "" : *(found + 1);
}

// `--retries 5` counts retries, and attempts are counted here.
std::string retries_hint(const std::string& first, std::span<const char* const> arguments) {
  constexpr std::array<std::string_view, 5> words{"--retries", "--max-retries", "--retry-count", "--tries",
                                                  "--attempts"};
  const std::string_view name = std::string_view{first}.substr(0, first.find('='));
  const auto* const found = std::ranges::find(words, name);
  if (found == words.end()) return {};
  const std::string value = name.size() < first.size() ? first.substr(name.size() + 1) : word_after(first, arguments);
  const bool is_number =
      !value.empty() && value.size() < 9 && std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
  const bool counts_attempts = found >= words.end() - 2;
  if (!is_number) return "; write --max-attempts N, which counts the first attempt too";
  return fmt::format("; write --max-attempts {}{}", std::stoul(value) + (counts_attempts ? 0 : 1),
                     counts_attempts ? "" : " (the first attempt counts)");
}

void explain(const CLI::App& app, const CLI::ParseError& error, std::span<const char* const> arguments,
             CommandLine& line) {
  const CLI::App* command = named_command(app);
  const auto extras = app.remaining(true);
  const bool names_nothing =
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && command->get_parent() == nullptr && extras.empty();
  line.is_exec = command->get_name() == "exec";
  if (names_nothing) {
    line.error = app.help();
    return;
  }
  std::string message = in_our_words(error.what());
  const bool is_wrong_value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr;
  if (!extras.empty() && !is_wrong_value) {
    const std::string hint =
        command->get_option_no_throw("--max-attempts") != nullptr ? retries_hint(extras.front(), arguments) : "";
    message = hint.empty() ? unknown_word(*command, extras.front()) : "unknown option " + extras.front() + hint;
  }
  line.error = fmt::format("{}: {}\nTry {} --help.\n", path_of(command), message, path_of(command));
}

// The first word that should name a command and names none; empty: there is none.
std::string_view unknown_command(const CommandShape& command, std::span<const char* const> words) {
  if (command.commands.empty()) return {};
  const auto named = std::ranges::find_if(words, [](std::string_view word) { return !word.starts_with('-'); });
  if (named == words.end()) return {};
  const auto child = std::ranges::find(command.commands, *named, &CommandShape::name);
  return child == command.commands.end() ? std::string_view{*named} : unknown_command(*child, {named + 1, words.end()});
}

}  // namespace

CommandLine read_command_line(const CommandShape& root, const std::string& version,
                              std::span<const char* const> arguments) {
  CommandLine line;
  CLI::App app{root.description, root.name};
  app.formatter(std::make_shared<HelpText>());
  app.set_version_flag("--version", version, "which version this is");
  declare(app, root, arguments.subspan(std::min<std::size_t>(arguments.size(), 1)), line);
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
    line.is_exec = named_command(app)->get_name() == "exec";
  } catch (const CLI::CallForHelp&) {
    line.out = app.help();
    const auto words = arguments.subspan(std::min<std::size_t>(arguments.size(), 1));
    if (const std::string_view unknown = unknown_command(root, words); !unknown.empty()) {
      const CLI::App* const command = named_command(app);
      line.out.clear();
      line.error = fmt::format("{}: {}\nTry {} --help.\n", path_of(command),
                               unknown_word(*command, std::string{unknown}), path_of(command));
    }
  } catch (const CLI::CallForVersion&) {
    line.out = version + "\n";
  } catch (const CLI::ParseError& error) {
    explain(app, error, arguments, line);
  }
  return line;
}

}  // namespace reprise::cli
