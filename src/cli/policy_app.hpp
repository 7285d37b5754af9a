// The commands for policies and failures, as part of the command line.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"

namespace reprise::cli {

// Everything these commands need, alive as long as the parser refers to it.
struct PolicyAppOptions {
  PolicyCheckOptions check;
  PolicyShowOptions show;
  PolicyScheduleOptions schedule;
  PolicyDecideOptions decide;
  ClassifyOptions classify;
};

// Adds policy check|show|schedule|decide and classify. When one is given, `chosen` is what it does.
void add_policy_commands(CLI::App& app, PolicyAppOptions& options, std::function<int()>& chosen);

}  // namespace reprise::cli
