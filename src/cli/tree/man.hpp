// reprise man: manual pages on standard output, or all of them into a folder.
#pragma once

#include <string>
#include <vector>

#include "cli/tree/command_shape.hpp"

namespace reprise::cli {

struct ManOptions {
  std::vector<std::string> command;  // dead-letters list; empty = reprise itself
  std::string folder;                // --all
};

int man(const ManOptions& options, const CommandShape& root);

}  // namespace reprise::cli
