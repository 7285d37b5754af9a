// What `exec` and `map` have in common: the policy as flags or as a file, and words that can be recorded. Thread safety: one thread.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/dialect.hpp>

#include "cli/run/run_commands.hpp"

namespace reprise::cli {

// The text of a policy, and what it is read as.
struct ChosenPolicy {
  std::string text;
  Dialect dialect = Dialect::native;
  std::optional<Duration> timeout = {};  // said beside a file
};

// `command` is what messages call it: exec. The error is an exit code; the message has been written already.
std::expected<ChosenPolicy, int> chosen_policy(const ExecOptions& options, std::string_view command);

// An exit code: what is recorded is text, and these words must be.
int refuse_other_bytes(const std::vector<std::string>& command, std::string_view name);

}  // namespace reprise::cli
