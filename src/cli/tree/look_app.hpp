// The commands that only look, as part of the command line.
#pragma once

#include "cli/look/look_commands.hpp"
#include "cli/tree/command_shape.hpp"

namespace reprise::cli {

// Everything these commands need, alive as long as the tree refers to it.
struct LookOptions {
  RunsOptions runs;
  ShowOptions show;
  EventsOptions events;
  LogsOptions logs;
  PlaceOptions why;
  RunOptions replay;
  DeadLettersOptions dead_letters_list;
  PlaceOptions dead_letters_show;
  FailuresOptions failures;
  DoctorOptions doctor;
};

// Adds runs, show, events, logs, why, replay, dead-letters list|show and doctor.
void add_look_commands(CommandShape& root, LookOptions& options);

}  // namespace reprise::cli
