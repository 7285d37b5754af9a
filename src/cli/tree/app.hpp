// The tree of commands: what the command line is read by.
#pragma once

#include <span>

#include "cli/tree/command_shape.hpp"

namespace reprise::cli {

// Runs the command line and returns the exit code.
int run(std::span<const char* const> arguments);

// All commands, with their options and examples.
CommandShape command_tree();

}  // namespace reprise::cli
