// Ctrl-C, twice, SIGTERM, SIGHUP and deadlines: the exit code, the command that resumes it, and nobody is left behind.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

namespace reprise::testing_support {
namespace {

namespace fs = std::filesystem;

// Runs the line that reprise has printed, as a person would: in a shell, in the same folder.
Outcome run_printed_command(const FlowFolder& folder) {
  const std::string said = folder.read("stderr.txt");
  constexpr std::string_view before = "resume with: ";
  const std::size_t at = said.rfind(before);
  if (at == std::string::npos) return {.exit_code = -1, .out = {}, .err = "it says no command: " + said};
  const std::size_t begin = at + before.size();
  const std::string line = said.substr(begin, said.find('\n', begin) - begin);
  std::error_code exists_already;
  fs::create_symlink(REPRISE_COMMAND, folder.path_of("reprise"), exists_already);
  const char* const path = std::getenv("PATH");
  return run_program(
      {"/usr/bin/env", "-C", folder.path(), "sh", "-c", line}, {},
      {{"PATH", folder.path() + ":" + (path != nullptr ? path : "/usr/bin:/bin")}, {"HOME", folder.path()}});
}

// Two finished steps, one that is in the middle of its work the first time, and one that must wait for it.
constexpr std::string_view interrupted_in_b = R"(
steps:
  - {id: a, run: echo a >> ran}
  - {id: b, needs: a, run: "echo b >> ran; test -e again || { touch again up; ./work.sh; }", retry: none}
  - {id: c, needs: b, run: echo c >> ran}
)";

struct Interruption {
  const char* name;
  int signal;
  int exit_code;
  int impatient = signal;  // the second one, that kills
  int exit_code_of_impatient = exit_code;
};

class TroubleSignal : public ::testing::TestWithParam<Interruption> {};

TEST_P(TroubleSignal, StopsAndGoesOnWithThePrintedCommand) {
  FlowFolder folder;
  folder.program("work.sh", "sleep 1000");
  const auto running = folder.start({"run", folder.flow(interrupted_in_b)});
  ASSERT_TRUE(folder.wait_for_file("up"));
  running->signal(GetParam().signal);
  EXPECT_EQ(running->join(), GetParam().exit_code);
  EXPECT_EQ(leftovers_in(folder.path()), "");
  EXPECT_EQ(text_of(folder.show(), "status"), "canceled");
  EXPECT_EQ(folder.read("ran"), "a\nb\n");

  const Outcome again = run_printed_command(folder);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(folder.read("ran"), "a\nb\nb\nc\n");
  EXPECT_EQ(text_of(folder.show(), "status"), "succeeded");
}

// Patience of reprise is a few seconds; then it kills the whole group.
TEST_P(TroubleSignal, FamiliesThatIgnoreTermAreKilled) {
  FlowFolder folder;
  folder.program("work.sh", R"(trap '' TERM INT
(trap '' TERM INT; echo x >> children; while :; do sleep 1000; done) &
echo x >> children
while :; do sleep 1000; done)");
  const auto running = folder.start({"run", folder.flow(interrupted_in_b)});
  ASSERT_TRUE(eventually([&] { return folder.lines("children").size() == 2; }));
  running->signal(GetParam().signal);
  EXPECT_EQ(running->join(), GetParam().exit_code);
  EXPECT_EQ(leftovers_in(folder.path()), "");
  EXPECT_EQ(run_printed_command(folder).exit_code, 0);
}

TEST_P(TroubleSignal, TwiceKillsAtOnce) {
  FlowFolder folder;
  folder.program("work.sh", "test -e deaf && exit; trap '' TERM INT; touch deaf; while :; do sleep 1000; done");
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, argv: [work.sh], retry: none}]")});
  ASSERT_TRUE(folder.wait_for_file("deaf"));
  running->signal(GetParam().signal);
  ASSERT_TRUE(folder.wait_for_event("cancel_requested"));
  running->signal(GetParam().impatient);
  EXPECT_EQ(running->join(), GetParam().exit_code_of_impatient);
  EXPECT_EQ(leftovers_in(folder.path()), "");
  EXPECT_EQ(run_printed_command(folder).exit_code, 0);
}

TEST_P(TroubleSignal, WakesAWait) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
steps:
  - {id: a, run: "echo x >> ran; test -e open", retry: {backoff: constant, initial: 1h, max: 1h}}
  - {id: b, wait: 2h}
  - {id: c, signal: never}
  - {id: d, http: {url: "http://127.0.0.1:9/"}, retry: {backoff: constant, initial: 1h, max: 1h}})")});
  ASSERT_TRUE(folder.wait_for_event("retrying", "a"));
  ASSERT_TRUE(folder.wait_for_event("retrying", "d"));
  running->signal(GetParam().signal);
  EXPECT_EQ(running->join(), GetParam().exit_code);
  EXPECT_EQ(folder.read("ran"), "x\n");
}

TEST_P(TroubleSignal, ExecStopsToo) {
  FlowFolder folder;
  const auto running = folder.start({"exec", "--", "sh", "-c", "echo half; test -e open || { touch up; sleep 1000; }"});
  ASSERT_TRUE(folder.wait_for_file("up"));
  running->signal(GetParam().signal);
  EXPECT_EQ(running->join(), GetParam().exit_code);
  EXPECT_EQ(running->said(), "") << "output of an attempt that did not succeed";
  EXPECT_EQ(leftovers_in(folder.path()), "");
  folder.write("open", "");
  EXPECT_EQ(run_printed_command(folder).exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(TroubleSignals, TroubleSignal,
                         ::testing::Values(Interruption{"SIGINT", SIGINT, 130}, Interruption{"SIGTERM", SIGTERM, 143},
                                           Interruption{"SIGHUP", SIGHUP, 129, SIGTERM, 143}),
                         [](const auto& tested) { return tested.param.name; });

// The store of the printed command is the one that was used.
TEST(TroubleSignals, ThePrintedCommandNamesTheStore) {
  FlowFolder folder;
  folder.program("work.sh", "sleep 1000");
  const auto running = folder.start({"run", folder.flow(interrupted_in_b), "--store", "sqlite:elsewhere/its runs.db"});
  ASSERT_TRUE(folder.wait_for_file("up"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);
  const Outcome again = run_printed_command(folder);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_FALSE(folder.exists(".reprise"));
}

// A Ctrl-C in a terminal goes to reprise alone: the commands are in groups of their own and get a TERM.
TEST(TroubleSignals, AFinishedResultIsRecorded) {
  FlowFolder folder;
  folder.program("work.sh", "trap 'echo x >> asked; exit 0' TERM; touch ready; while :; do sleep 0.05; done");
  const auto running =
      folder.start({"run", folder.flow("steps: [{id: a, argv: [work.sh]}, {id: b, needs: a, run: touch b}]")});
  ASSERT_TRUE(folder.wait_for_file("ready"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);
  EXPECT_EQ(folder.read("asked"), "x\n");
  EXPECT_FALSE(folder.exists("b"));
}

// A closed terminal is told by its shell and by the kernel: the second time nobody is impatient, and the command may clean up.
TEST(TroubleSignals, ASecondHangupDoesNotKill) {
  FlowFolder folder;
  folder.program("work.sh",
                 R"(trap 'touch asked; until test -e open; do sleep 0.05; done; echo x >> cleaned; exit 1' TERM
touch up; while :; do sleep 0.05; done)");
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, argv: [work.sh], retry: none}]")});
  ASSERT_TRUE(folder.wait_for_file("up"));
  running->signal(SIGHUP);
  ASSERT_TRUE(folder.wait_for_file("asked"));
  running->signal(SIGHUP);
  folder.write("open", "");
  EXPECT_EQ(running->join(), 129);
  EXPECT_EQ(folder.read("cleaned"), "x\n");
}

// nohup: neither the engine nor its commands mind.
TEST(TroubleSignals, AnIgnoredHangupStaysIgnored) {
  FlowFolder folder;
  folder.flow(
      R"(steps: [{id: a, run: "kill -HUP $$; touch up; until test -e open; do sleep 0.05; done", retry: none}])");
  Child running{{"/usr/bin/env", "-C", folder.path(), "HOME=" + folder.path(), "nohup", REPRISE_COMMAND, "run",
                 "flow.yaml", "--progress", "quiet"}};
  ASSERT_TRUE(folder.wait_for_file("up"));
  running.signal(SIGHUP);
  folder.write("open", "");
  EXPECT_EQ(running.join(), 0);
  EXPECT_EQ(text_of(folder.show(), "status"), "succeeded");
}

// The end of a session or a service is told to all of its processes; some commands hear of it before we do.
TEST_P(TroubleSignal, WhatItEndsBesidesUsHasNotFailed) {
  FlowFolder folder;
  folder.program("work.sh", "echo $$ > pid; touch up; exec sleep 1000");
  const auto running = folder.start({"run", folder.flow(interrupted_in_b)});
  ASSERT_TRUE(folder.wait_for_file("up"));
  ASSERT_TRUE(eventually([&] { return !folder.lines("pid").empty(); }));
  for (const LivingProcess& process : processes_in(folder.path())) {
    if (process.name == "sh" || process.name == "sleep") ::kill(process.pid, GetParam().signal);
  }
  running->signal(GetParam().signal);
  EXPECT_EQ(running->join(), GetParam().exit_code);
  EXPECT_EQ(text_of(folder.show(), "status"), "canceled");
  EXPECT_EQ(run_printed_command(folder).exit_code, 0);
}

// Nobody reads the progress any more: the run goes on.
TEST(TroubleSignals, AClosedStandardErrorChangesNothing) {
  FlowFolder folder;
  folder.flow(R"(
steps:
  - {id: a, for_each: [1, 2, 3, 4], max_parallel: 1, run: "sleep 0.05; echo ${item} >> ran; exit 1", retry: none, tolerate: 4}
  - {id: b, needs: a, run: echo b >> ran})");
  const Outcome outcome = run_program({"/usr/bin/env", "-C", folder.path(), "sh", "-c",
                                       "{ \"$0\" run flow.yaml; echo $? > code; } 2>&1 | head -1", REPRISE_COMMAND});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(folder.read("ran"), "1\n2\n3\n4\nb\n");
  EXPECT_EQ(folder.read("code"), "0\n");
}

// ---- deadlines ----------------------------------------

TEST(TroubleDeadline, OfTheRunIs124) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
runtime: {deadline: 500ms}
steps:
  - {id: a, run: "trap '' TERM; echo x >> ran; sleep 1000", retry: {max_attempts: 9, backoff: constant, initial: 1h, max: 1h}}
  - {id: b, wait: 1h}
  - {id: c, needs: [a, b], run: touch c})");
  EXPECT_EQ(outcome.exit_code, 124) << outcome.err;
  EXPECT_EQ(leftovers_in(folder.path()), "");
  EXPECT_EQ(folder.read("ran"), "x\n");
  EXPECT_EQ(text_of(folder.show(), "reason"), "deadline");
  EXPECT_FALSE(folder.exists("c"));
  EXPECT_EQ(folder.reprise({"wait", "@last"}).exit_code, 124);
}

TEST(TroubleDeadline, PassesWhileNobodyRuns) {
  FlowFolder folder;
  const auto running =
      folder.start({"run", folder.flow("{runtime: {deadline: 1s}, steps: [{id: a, wait: 1h}, {id: b, signal: x}]}")});
  ASSERT_TRUE(folder.wait_for_event("submitted"));
  running->signal(SIGKILL);
  running->join();
  const Outcome outcome = folder.reprise({"resume", "@last"});
  EXPECT_EQ(outcome.exit_code, 124) << outcome.err;
}

}  // namespace
}  // namespace reprise::testing_support
