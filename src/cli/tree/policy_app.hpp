// The commands for policies and failures, as part of the command line.
#pragma once

#include "cli/commands.hpp"
#include "cli/tree/command_shape.hpp"

namespace reprise::cli {

// Everything these commands need, alive as long as the tree refers to it.
struct PolicyAppOptions {
  PolicyCheckOptions check;
  PolicyShowOptions show;
  PolicyScheduleOptions schedule;
  PolicyDecideOptions decide;
  ClassifyOptions classify;
};

// Adds policy check|show|schedule|decide and classify.
void add_policy_commands(CommandShape& root, PolicyAppOptions& options);

}  // namespace reprise::cli
