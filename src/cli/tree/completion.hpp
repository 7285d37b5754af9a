// Completion scripts, made from the tree of commands so that they cannot disagree with it.
#pragma once

#include <string>

#include "cli/tree/command_shape.hpp"

namespace reprise::cli {

// bash, zsh or fish.
std::string completion_script(const CommandShape& root, const std::string& shell);

}  // namespace reprise::cli
