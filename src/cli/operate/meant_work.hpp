// What `retry` and `dead-letters retry|drop` are about: the options as work of a run, with a question before much of it is touched.
//
// Thread safety: one thread.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "cli/run/run_commands.hpp"
#include "runtime/run_service.hpp"
#include "runtime/snapshot.hpp"

namespace reprise::cli {

// `retry`: what --step, --item and --where say. The error is an exit code; the message has been written already.
std::expected<runtime::WorkChoice, int> work_to_retry(const std::string& store, const RunId& run,
                                                      const WorkSelection& selection);

// Dead letters, by STEP[ITEM] and FILTER words; a whole step, or a run, needs --all. How many there are is said first.
struct MeantLetters {
  runtime::WorkChoice choice;
  std::size_t count = 0;
};
std::expected<MeantLetters, int> dead_letters_meant(const std::string& store, const RunId& run,
                                                    const WorkSelection& selection, std::string_view verb);

// Asks on a terminal, and wants --yes elsewhere, unless it is only one.
std::expected<void, int> confirm(std::size_t count, std::string_view question, bool yes);

}  // namespace reprise::cli
