// The commands that only look, as part of the command line.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "cli/look_commands.hpp"

namespace reprise::cli {

// Everything these commands need, alive as long as the parser refers to it.
struct LookOptions {
  RunsOptions runs;
  ShowOptions show;
  EventsOptions events;
  LogsOptions logs;
  PlaceOptions why;
  RunOptions replay;
  DeadLettersOptions dead_letters_list;
  PlaceOptions dead_letters_show;
  DoctorOptions doctor;
};

// Adds runs, show, events, logs, why, replay, dead-letters list|show and doctor. When one is given, `chosen` is what it does.
void add_look_commands(CLI::App& app, LookOptions& options, std::function<int()>& chosen);

}  // namespace reprise::cli
