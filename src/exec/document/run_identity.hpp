// Do two calls ask for the same run? What `--id KEY` compares, so that one piece of work is never answered with the result of another.
//
// Compared are the document, its parameters (filled in), the folder, the command, its policy and its standard input; not what the file
// is called. Thread safety: a function of its arguments.
#pragma once

#include <string>
#include <vector>

#include "exec/document/program.hpp"

namespace reprise::exec {

// In words, without any value: they may be secret. Empty = it is the same. What an older record does not say is not compared.
std::vector<std::string> differences(const RunInput& recorded, const RunInput& asked);

}  // namespace reprise::exec
