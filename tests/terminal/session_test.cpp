// The terminal in which commands are recorded behaves like a real one: keys, signals, sizes, job control, modes.
#include "terminal/session.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "terminal/replay.hpp"

namespace reprise::terminal {
namespace {

Session in_terminal(const std::string& script, const std::vector<Action>& actions = {}) {
  return run_session({.command = {"sh", "-c", script}, .size = {40, 10}, .actions = actions, .patience_seconds = 60});
}

std::vector<std::string> lines_of(const Session& session) {
  return replay(session.recording, {.first_line = "^=="}).screen.lines();
}

using Lines = std::vector<std::string>;

TEST(Session, TheCommandHasATerminalOfTheWantedSize) {
  const Session session = in_terminal("test -t 0 && test -t 1 && test -t 2 && stty size; echo $TERM; exit 7");
  EXPECT_EQ(lines_of(session), (Lines{"10 40", "xterm-256color"}));
  EXPECT_EQ(session.exit_code, 7);
  EXPECT_TRUE(session.modes_restored);
}

TEST(Session, NothingThatWasWrittenIsLost) {
  const Session session = in_terminal("i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done");
  const Lines lines = lines_of(session);
  ASSERT_EQ(lines.size(), 2000U);
  EXPECT_EQ(lines.back(), "line 2000");
}

TEST(Session, AnotherSizeIsTold) {
  const Session session = in_terminal("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.02; done",
                                      {{.when = "^ready", .what = Resize{{30, 5}}}});
  EXPECT_EQ(lines_of(session), (Lines{"ready", "5 30"}));
  EXPECT_EQ(session.not_done, Lines{});
}

TEST(Session, NumbersAreWaitedFor) {
  const Session session = in_terminal("i=0; while :; do i=$((i+1)); printf '\\r%d of many' $i; sleep 0.01; done",
                                      {{.when = R"((\d+) of many)", .at_least = 20, .what = Press{"\x03"}}});
  EXPECT_EQ(session.exit_code, 130);
  ASSERT_EQ(lines_of(session).size(), 1U);
  EXPECT_GE(std::stoi(lines_of(session).front()), 20);
}

TEST(Session, StopsAndGoesOn) {
  // It waits inside of the shell: a stop between the two halves of starting a program would leave the shell itself running.
  const Session session =
      in_terminal("trap 'echo two; exit 3' CONT; echo one; read line",
                  {{.when = "^one", .what = Press{"\x1a"}}, {.when = "Stopped", .what = Foreground{}}});
  EXPECT_EQ(session.exit_code, 3);
  EXPECT_EQ(lines_of(session), (Lines{"one", "^Z", "[1]+  Stopped", "$ fg", "two"}));
}

TEST(Session, ModesThatWereChangedAreNoticed) {
  EXPECT_FALSE(in_terminal("stty -echo").modes_restored);
  const Session killed = in_terminal("echo up; sleep 100", {{.when = "^up", .what = Signal{SIGKILL}}});
  EXPECT_TRUE(killed.modes_restored);
  EXPECT_EQ(killed.exit_code, 137);
}

TEST(Session, WhatNeverHappenedIsTold) {
  EXPECT_EQ(in_terminal("echo one", {{.when = "two", .what = Press{"x"}}}).not_done, (Lines{"two"}));
}

}  // namespace
}  // namespace reprise::terminal
