#include "cli/command_shape.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>

namespace reprise::cli {
namespace {

struct CommandGroup {
  std::string_view title;
  std::vector<std::string_view> commands;
};

// As a newcomer needs them: first run something, then look at it, then write more.
const std::array<CommandGroup, 4> groups{{
    {"Run", {"run", "exec", "resume", "retry", "cancel", "pause", "signal", "wait", "rm"}},
    {"Look", {"runs", "show", "events", "logs", "why", "replay", "dead-letters"}},
    {"Write", {"validate", "policy", "classify", "schema"}},
    {"Other", {}},  // and everything that has no place above, in the order in which it was added
}};

struct Position {
  std::size_t group;
  std::size_t within;

  auto operator<=>(const Position&) const = default;
};

Position position_of(std::string_view command) {
  for (std::size_t group = 0; group < groups.size(); ++group) {
    const auto& names = groups[group].commands;
    const auto found = std::ranges::find(names, command);
    if (found != names.end()) return {group, static_cast<std::size_t>(found - names.begin())};
  }
  return {groups.size() - 1, 0};
}

// The few there are; std::stable_sort asks for memory in a way that is deprecated.
template <class Item, class Rank>
void sort_stably(std::vector<Item>& items, Rank rank) {
  for (std::size_t last = 1; last < items.size(); ++last) {
    for (std::size_t at = last; at > 0 && rank(items[at]) < rank(items[at - 1]); --at)
      std::swap(items[at], items[at - 1]);
  }
}

std::size_t rank_of(const CLI::Option* option) {
  constexpr std::array<std::string_view, 5> common{"--progress", "--store", "--format", "--version", "--help"};
  for (std::size_t at = 0; at < common.size(); ++at) {
    if (option->check_name(std::string{common[at]})) return at + 1;
  }
  return 0;
}

// "text|json" lists them; "URL" does not.
std::vector<std::string> choices_in(const std::string& words) {
  std::vector<std::string> choices;
  if (words.find('|') == std::string::npos || words.find('@') != std::string::npos) return choices;
  for (std::size_t begin = 0; begin <= words.size();) {
    const std::size_t end = std::min(words.find('|', begin), words.size());
    choices.push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return choices;
}

CommandShape::Option option_shape(const CLI::Option& option) {
  CommandShape::Option shape;
  for (const std::string& name : option.get_snames()) shape.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) shape.names.push_back("--" + name);
  shape.takes_value = option.get_items_expected_max() > 0;
  if (shape.takes_value) shape.value = option.get_option_text();
  shape.description = option.get_description();
  shape.choices = choices_in(option.get_option_text());
  return shape;
}

CommandShape::Argument argument_shape(const CLI::Option& option) {
  return {.name = option.get_name(true),
          .description = option.get_description(),
          .choices = choices_in(option.get_option_text()),
          .is_required = option.get_required(),
          .may_repeat = option.get_expected_max() >= CLI::detail::expected_max_vector_size};
}

// The end of a help text: notes, and command lines, which are indented. A note that ends with a colon introduces them.
void read_footer(const std::string& footer, CommandShape& shape) {
  for (std::size_t begin = 0; begin < footer.size();) {
    const std::size_t end = std::min(footer.find('\n', begin), footer.size());
    const std::string line = footer.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("  ")) {
      shape.examples.push_back(line.substr(2));
    } else if (!line.ends_with(':')) {
      shape.notes += line + "\n";
    }
  }
  shape.notes.erase(shape.notes.find_last_not_of('\n') + 1);
}

std::string path_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

}  // namespace

bool CommandShape::has_option(const std::string& long_name) const {
  return std::ranges::any_of(
      options, [&](const Option& option) { return std::ranges::find(option.names, long_name) != option.names.end(); });
}

void group_commands(CLI::App& app) {
  for (CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const std::string_view title = groups.at(position_of(command->get_name()).group).title;
    command->group(app.get_parent() == nullptr ? std::string{title} : "Commands");
    group_commands(*command);
  }
}

std::vector<const CLI::App*> commands_in_order(const CLI::App& app) {
  std::vector<const CLI::App*> commands = app.get_subcommands([](const CLI::App*) { return true; });
  if (app.get_parent() != nullptr) return commands;
  sort_stably(commands, [](const CLI::App* command) { return position_of(command->get_name()); });
  return commands;
}

void put_in_order(std::vector<const CLI::Option*>& options) { sort_stably(options, rank_of); }

CommandShape shape_of(const CLI::App& app) {
  CommandShape shape{.name = app.get_name(),
                     .path = path_of(app),
                     .group = app.get_group(),
                     .description = app.get_description(),
                     .arguments = {},
                     .options = {},
                     .notes = {},
                     .examples = {},
                     .commands = {}};
  std::vector<const CLI::Option*> options = app.get_options();
  put_in_order(options);
  for (const CLI::Option* const option : options) {
    if (option->nonpositional()) {
      shape.options.push_back(option_shape(*option));
    } else {
      shape.arguments.push_back(argument_shape(*option));
    }
  }
  read_footer(app.get_footer(), shape);
  for (const CLI::App* const command : commands_in_order(app)) shape.commands.push_back(shape_of(*command));
  return shape;
}

}  // namespace reprise::cli
