#include "cli/tree/command_shape.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace reprise::cli {
namespace {

struct CommandGroup {
  std::string_view title;
  std::vector<std::string_view> commands;
};

// As a newcomer needs them: first run something, then look at it, then write more.
const std::array<CommandGroup, 4> groups{{
    {"Run", {"run", "exec", "map", "resume", "retry", "cancel", "pause", "signal", "wait", "rm"}},
    {"Look", {"runs", "show", "events", "logs", "why", "failures", "dead-letters", "replay"}},
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

std::size_t rank_of(const CommandShape::Option& option) {
  constexpr std::array<std::string_view, 5> common{"--progress", "--store", "--format", "--version", "--help"};
  const auto* const found = std::ranges::find(common, option.names.back());
  return found == common.end() ? 0 : static_cast<std::size_t>(found - common.begin()) + 1;
}

void complete(CommandShape& command, const std::string& above) {
  command.path = above.empty() ? command.name : above + " " + command.name;
  CommandShape::Option help;
  help.names = {"-h", "--help"};
  help.description = "this text";
  command.options.push_back(std::move(help));
  sort_stably(command.options, rank_of);
  for (CommandShape& child : command.commands) {
    child.group = above.empty() ? std::string{groups.at(position_of(child.name).group).title} : "Commands";
    complete(child, command.path);
  }
}

}  // namespace

bool CommandShape::has_option(const std::string& long_name) const {
  return std::ranges::any_of(
      options, [&](const Option& option) { return std::ranges::find(option.names, long_name) != option.names.end(); });
}

CommandShape& CommandShape::command(const std::string& child) {
  return *std::ranges::find(commands, child, &CommandShape::name);
}

CommandShape command_named(std::string name, std::string description) {
  CommandShape command;
  command.name = std::move(name);
  command.description = std::move(description);
  return command;
}

void set_footer(CommandShape& command, std::string footer) {
  command.notes.clear();
  command.examples.clear();
  for (std::size_t begin = 0; begin < footer.size();) {
    const std::size_t end = std::min(footer.find('\n', begin), footer.size());
    const std::string line = footer.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with("  ")) {
      command.examples.push_back(line.substr(2));
    } else if (!line.ends_with(':')) {
      command.notes += line + "\n";
    }
  }
  command.notes.erase(command.notes.find_last_not_of('\n') + 1);
  command.footer = std::move(footer);
}

void complete_tree(CommandShape& root) {
  complete(root, "");
  sort_stably(root.commands, [](const CommandShape& command) { return position_of(command.name); });
}

}  // namespace reprise::cli
