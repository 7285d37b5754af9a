// A line of words, read by a tree of commands. The only door to the library that parses (CLI11).
#pragma once

#include <functional>
#include <span>
#include <string>

#include "cli/tree/command_shape.hpp"

namespace reprise::cli {

struct CommandLine {
  std::function<int()> run;  // what the words ask for; empty: nothing is to be done any more
  std::string out = {};      // help, or the version
  std::string error = {};    // what is wrong with the words, and where to read more
  bool is_exec = false;      // `exec` has an exit code of its own for mistakes
};

// `version` is the answer to --version. Takes of `root` are called in the order in which the options were declared.
CommandLine read_command_line(const CommandShape& root, const std::string& version,
                              std::span<const char* const> arguments);

}  // namespace reprise::cli
