// The tree of commands. The one place that knows CLI11.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace reprise::cli {

// Runs the command line and returns the exit code.
int run(std::span<const char* const> arguments);

// A command as completions and manual pages see it.
struct CommandShape {
  struct Option {
    std::vector<std::string> names;  // --from
    std::string description;
    std::vector<std::string> choices;  // empty: a free value, or none
    bool takes_value = false;
  };
  std::string name;
  std::string description;
  std::vector<Option> options;
  std::vector<std::string> positional_choices;  // words for its first argument
  bool takes_file = false;
  std::vector<CommandShape> commands;
};

// bash, zsh or fish.
std::string completion_script(const CommandShape& root, const std::string& shell);

}  // namespace reprise::cli
