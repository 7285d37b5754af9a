// Standard input of `reprise exec`, kept beside the store for every attempt of its run. Thread safety: one thread.
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "cli/run/run_commands.hpp"
#include "cli/run/watching.hpp"
#include "exec/kept_file.hpp"

namespace reprise::cli {

struct KeptStdin {
  std::string path = {};  // empty = the run has none
  std::optional<exec::KeptFile> content = {};
};

// On the disk when it returns. The error is an exit code; the message has been written already, and no file is left.
std::expected<KeptStdin, int> keep_stdin(const RunSession& session, StdinMode mode);

}  // namespace reprise::cli
