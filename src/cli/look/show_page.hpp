// reprise show --html: the page about a run, written to a file.
#pragma once

#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"

namespace reprise::cli {

// An exit code; messages have been written already.
int show_page(const ShowOptions& options, Looked& looked);

}  // namespace reprise::cli
