// The commands that only look: nothing is run, nothing is written, nobody is locked out. Options in, exit code out.
//
// Data goes to standard output, everything for people to standard error. look_app.cpp turns the command line into these calls.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <reprise/event.hpp>

namespace reprise::cli {

struct RunsOptions {
  std::string store = {};
  std::optional<RunStatus> status = {};
  std::string flow = {};               // its name, or that of a handler; empty = any
  std::optional<Duration> since = {};  // created within this long before now
  std::vector<std::string> filter = {};  // words of index/filter.hpp: label:team=a
  std::uint64_t limit = 50;
  bool json = false;
};

struct RunOptions {  // of a command about one run
  std::string store = {};
  std::string run = {};  // an id, the beginning of one, @last or @last-failed
  bool json = false;
};

struct ShowOptions {
  RunOptions run = {};
  std::optional<std::string> html = {};  // a page about it goes to this file; "-" = standard output
};

struct EventsOptions {
  RunOptions run = {};
  bool follow = false;
};

struct PlaceOptions {  // of a command about a part of a run
  RunOptions run = {};
  std::string place = {};  // STEP or STEP[ITEM]; empty = all of it
};

struct LogsOptions {
  PlaceOptions of = {};
  std::optional<std::uint64_t> attempt = {};
  bool follow = false;  // until the run has ended
};

struct DeadLettersOptions {
  PlaceOptions of = {};  // list: an empty run means all of them
  std::uint64_t limit = 100;
};

struct FailuresOptions {
  RunOptions run = {};  // empty = @last
  std::vector<std::string> filter = {};
};

struct DoctorOptions {
  std::vector<std::string> files = {};  // documents that are to run here
  std::string store = {};
  bool json = false;
};

int runs(const RunsOptions& options);
int show(const ShowOptions& options);
int events(const EventsOptions& options);
int logs(const LogsOptions& options);
int why(const PlaceOptions& options);
int replay(const RunOptions& options);
int dead_letters_list(const DeadLettersOptions& options);
int dead_letters_show(const PlaceOptions& options);
int failures(const FailuresOptions& options);
int doctor(const DoctorOptions& options);

}  // namespace reprise::cli
