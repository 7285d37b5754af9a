// The commands: options in, exit code out. src/cli/app.cpp turns the command line into these calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <reprise/dialect.hpp>

namespace reprise::cli {

// The contract's exit codes; docs/reference/cli.md has the whole table.
enum ExitCode : int {
  exit_done = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_invalid = 3,
  exit_exec_usage = 125,
};

struct PolicySource {
  Dialect from = Dialect::native;
  std::string file;  // "-" = standard input
};

struct PolicyCheckOptions {
  PolicySource policy;
  bool json = false;
};

struct PolicyShowOptions {
  PolicySource policy;
  std::optional<Dialect> to;
  enum class Format : std::uint8_t { words, yaml, json } format = Format::words;
  bool lossy = false;
};

struct PolicyScheduleOptions {
  PolicySource policy;
  std::uint64_t failures = 10;
  enum class Format : std::uint8_t { text, json, svg } format = Format::text;
};

struct PolicyDecideOptions {
  PolicySource policy;
  bool json = false;
  std::optional<std::uint64_t> seed;
};

struct ClassifyOptions {
  std::string rules_file;  // "" = none
  bool json = false;
};

int policy_check(const PolicyCheckOptions& options);
int policy_show(const PolicyShowOptions& options);
int policy_schedule(const PolicyScheduleOptions& options);
int policy_decide(const PolicyDecideOptions& options);
int classify_failure(const ClassifyOptions& options);

}  // namespace reprise::cli
