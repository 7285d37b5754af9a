// The commands that run work or change what becomes of it, as part of the command line.
#pragma once

#include "cli/run/run_commands.hpp"
#include "cli/tree/command_shape.hpp"
#include "cli/tree/look_app.hpp"

namespace reprise::cli {

// Everything these commands need, alive as long as the tree refers to it.
struct RunAppOptions {
  RunFlowOptions run;
  ExecOptions exec;
  MapOptions map;
  ResumeOptions resume;
  ResumeOptions retry;
  ResumeOptions retry_letter;
  OperateOptions cancel;
  OperateOptions pause;
  OperateOptions signal;
  OperateOptions wait;
  OperateOptions remove;
  OperateOptions drop_letter;
  ValidateOptions validate;
  bool validate_replay = false;
};

// Adds run, exec, resume, retry, cancel, pause, signal, wait, rm and validate; and to the commands that look, which are there already, what
// they can do besides: replay --validate, dead-letters retry and drop.
void add_run_commands(CommandShape& root, RunAppOptions& options, const LookOptions& look);

}  // namespace reprise::cli
