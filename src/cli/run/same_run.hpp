// `--id KEY`: the same key finds the same run, and only for the same work. Thread safety: one thread.
#pragma once

#include <expected>
#include <string>

#include "cli/run/watching.hpp"
#include "exec/document/program.hpp"

namespace reprise::cli {

// What the run under this key was given: its own input, when it was there before this call. If that is other work than `asked`, says on
// standard error what differs, and gives `exit_if_other`. Without a key nothing is compared.
std::expected<exec::RunInput, int> input_of_same_run(const RunSession& session, const RunId& run,
                                                     const std::string& key, exec::RunInput asked, int exit_if_other);

}  // namespace reprise::cli
