// The tree of commands as plain values: what help, completions, manual pages and tests know about a command.
//
//   const CommandShape tree = command_tree();      // of src/cli/app.cpp
//   for (const CommandShape& command : tree.commands) …
//
// Thread safety: plain values.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace reprise::cli {

struct CommandShape {
  struct Option {
    std::vector<std::string> names;  // -h, --help
    std::string value;               // what stands for its value in help: URL, text|json; empty for a flag
    std::string description;
    std::vector<std::string> choices;  // empty: a free value, or none
    bool takes_value = false;
  };
  struct Argument {
    std::string name;  // FILE
    std::string description;
    std::vector<std::string> choices;  // empty: a free value
    bool is_required = false;
    bool may_repeat = false;
  };
  std::string name;
  std::string path;  // with the commands above it: reprise policy check
  std::string group;
  std::string description;
  std::vector<Argument> arguments;
  std::vector<Option> options;        // its own first, then those that many commands have, --help last
  std::string notes;                  // the part of its help that is text, in paragraphs
  std::vector<std::string> examples;  // command lines
  std::vector<CommandShape> commands;

  bool has_option(const std::string& long_name) const;
};

CommandShape shape_of(const CLI::App& app);

// ---- order: the same in help, completions and manual pages ----

// Gives each command of `app` its group.
void group_commands(CLI::App& app);
// By group, and within it by use.
std::vector<const CLI::App*> commands_in_order(const CLI::App& app);
// A command's own options first, then --progress, --store, --format and --help.
void put_in_order(std::vector<const CLI::Option*>& options);

}  // namespace reprise::cli
