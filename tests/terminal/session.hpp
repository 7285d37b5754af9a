// A command in a terminal of its own, with a person in front of it who looks, presses keys and pulls at the window.
//
//   SessionSettings settings{.command = {"reprise", "run", "flow.yaml"}, .size = {100, 30}};
//   settings.actions.push_back({.when = R"((\d+)/1000)", .at_least = 300, .what = Resize{{60, 15}}});
//   const Session session = run_session(settings);
//
// What is done depends on what the screen shows, never on time. Between us and the command stands a small shell of our own: the command is the foreground
// job of a session, so that Ctrl-C and Ctrl-Z reach it as they do in a real one, and `[1]+  Stopped` is printed when it stops.
// Thread safety: one session at a time in a process that has no other threads (it forks).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "support/run_program.hpp"
#include "terminal/recording.hpp"

namespace reprise::terminal {

struct Resize {
  Size size;
};
struct Press {
  std::string keys;  // bytes: "\x03" is Ctrl-C
};
struct Signal {
  int number = 0;  // to the command's process alone
};
struct Foreground {};  // what `fg` does: the stopped command goes on

struct Action {
  std::string when;                            // RE2: what a line of the screen must show
  std::optional<std::uint64_t> at_least = {};  // and the number in its first group must have come that far
  std::variant<Resize, Press, Signal, Foreground> what = {};
};

struct SessionSettings {
  std::vector<std::string> command;
  Size size = {};
  std::string folder = ".";
  // Nothing else is there but PATH, TERM=xterm-256color and LC_ALL=C.UTF-8; what stands here comes last and wins. An empty value: not set at all.
  std::vector<testing_support::Setting> environment = {};
  std::string prompt = {};           // printed first, as a shell would show what was typed
  std::vector<Action> actions = {};  // one after the other
  bool through = false;  // passes everything on to our own terminal, and takes its size and its changes of size
  std::uint64_t patience_seconds = 120;  // then it is killed
};

struct Session {
  Recording recording = {};
  int exit_code = -1;                      // 128 + n when signal n ended it
  bool modes_restored = false;             // the terminal's settings are what they were before
  std::vector<std::string> not_done = {};  // actions whose moment never came
  double cpu_seconds = 0;                  // of the command's own process, user and system
};

Session run_session(const SessionSettings& settings);

}  // namespace reprise::terminal
