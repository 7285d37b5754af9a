// Two processes and one run: who is asked, and what the commands say about runs that are not there.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

namespace reprise::testing_support {
namespace {

constexpr std::string_view waits_for_go = R"(
steps:
  - {id: a, run: echo a | tee -a ran}
  - {id: approval, needs: a, signal: go}
  - {id: b, needs: approval, run: "echo b ${steps.approval.output} >> ran"}
)";

TEST(TroubleOperate, OwnersOfAMomentAreWaitedFor) {
  FlowFolder folder;
  ASSERT_EQ(folder.run("steps: [{id: a, run: exit 1, retry: {policy: none}}]").exit_code, 1);
  const std::string first = folder.last_run();
  folder.program("busy.sh", "until test -e enough; do " REPRISE_COMMAND " signal " + first + " go; done 2>/dev/null");
  const auto busy = folder.start({"exec", "--store", "memory:", "--progress", "quiet", "--", "./busy.sh"});
  for (int count = 0; count < 5; ++count) {
    const Outcome outcome = folder.run("steps: [{id: a, run: 'true'}]");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  folder.write("enough", "");
  EXPECT_EQ(busy->join(), 0);
}

TEST(TroubleOperate, WhoHasMendedTheDocumentIsToldThatTheRunKeepsItsOwn) {
  FlowFolder folder;
  ASSERT_EQ(folder.run("steps: [{id: a, run: ech0 hello, retry: {policy: none}}]").exit_code, 1);
  const Outcome same = folder.reprise({"retry", "@last"});
  EXPECT_EQ(same.err.find("has changed"), std::string::npos) << same.err;
  folder.flow("steps: [{id: a, run: echo hello, retry: {policy: none}}]");
  const Outcome mended = folder.reprise({"retry", "@last"});
  EXPECT_EQ(mended.exit_code, 1);
  EXPECT_NE(
      mended.err.find("flow.yaml has changed; this run continues with the document it was started with. To run the "
                      "new one: reprise run flow.yaml"),
      std::string::npos)
      << mended.err;
  EXPECT_EQ(mended.err.find("\n          1  "), mended.err.rfind("\n          1  "))
      << "attempts of before are over: " << mended.err;
}

// It would fail for good at its next attempt; as it is, whoever has the secret can go on with it.
TEST(TroubleOperate, WithoutItsSecretARunStaysAsItIs) {
  FlowFolder folder;
  folder.set("TOKEN", "hunter2hunter2");
  const auto running = folder.start({"run", folder.flow(R"(
secrets: {token: {env: TOKEN}}
steps:
  - {id: a, signal: go}
  - {id: b, needs: a, run: "echo ${secrets.token} | wc -c > length"}
)")});
  ASSERT_TRUE(folder.wait_for_event("started", "a") || folder.wait_for_event("submitted"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);
  for (const char* command : {"resume", "retry"}) {
    const Outcome outcome = run_program({"env", "-u", "TOKEN", REPRISE_COMMAND, command, "@last", "--store",
                                         "sqlite:" + folder.path_of(".reprise/reprise.db")});
    EXPECT_EQ(outcome.exit_code, 2) << command << outcome.err;
    EXPECT_NE(outcome.err.find("the environment has no TOKEN"), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(text_of(folder.last("ended"), "status"), "canceled");
}

TEST(TroubleOperate, WhatNobodyWorksOnIsInterrupted) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(waits_for_go)});
  ASSERT_TRUE(folder.wait_for_event("completed", "a"));
  EXPECT_NE(folder.reprise({"runs"}).out.find(" running "), std::string::npos);
  running->signal(SIGKILL);
  EXPECT_EQ(running->join(), 128 + SIGKILL);
  EXPECT_NE(folder.reprise({"runs"}).out.find(" interrupted "), std::string::npos);
}

TEST(TroubleOperate, WhatIsTriedAgainHasALogOfItsOwn) {
  FlowFolder folder;
  const std::string document = "steps: [{id: a, run: 'echo first; test -e ok', retry: {policy: none}}]";
  ASSERT_EQ(folder.run(document).exit_code, 1);
  folder.write("ok", "");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.log("a", 0, 1), "first\n");
  EXPECT_EQ(folder.log("a", 0, 2), "first\n") << "a number names one attempt for ever";
}

TEST(TroubleOperate, LookingWhileItRuns) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(waits_for_go)});
  ASSERT_TRUE(folder.wait_for_event("completed", "a"));
  const auto following = folder.start({"events", "@last", "--follow", "--format", "json"});
  ASSERT_TRUE(following->wait_for("\"submitted\"", std::chrono::minutes{1}));
  const auto waiting = folder.start({"wait", "@last"});
  EXPECT_NE(folder.reprise({"runs"}).out.find("running"), std::string::npos);
  EXPECT_EQ(text_of(folder.show(), "status"), "running");
  for (const char* const command : {"show", "events", "logs", "why", "runs"}) {
    std::vector<std::string> words{command};
    if (std::string_view{command} != "runs") words.emplace_back("@last");
    EXPECT_EQ(folder.reprise(words).exit_code, 0) << command;
  }
  EXPECT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  EXPECT_TRUE(following->wait_for("\"ended\"", std::chrono::minutes{1})) << "what is followed is seen to its end";
  EXPECT_EQ(following->join(), 0);
  EXPECT_EQ(waiting->join(), 0);
  EXPECT_EQ(running->join(), 0);
}

TEST(TroubleOperate, ASignalThatCameEarlyOrHasAnotherName) {
  FlowFolder folder;
  folder.program("slow.sh", "touch up; until [ -e open ]; do sleep 0.02; done");
  const auto running =
      folder.start({"run", folder.flow("steps: [{id: a, argv: [slow.sh]}, {id: b, needs: a, signal: go}, {id: c, "
                                       "needs: b, run: 'echo ${steps.b.output} > got'}]")});
  ASSERT_TRUE(folder.wait_for_file("up"));
  EXPECT_EQ(folder.reprise({"signal", "@last", "other"}).exit_code, 4);
  EXPECT_EQ(folder.reprise({"signal", "@last", "go", "early"}).exit_code, 0);
  folder.write("open", "");
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(folder.read("got"), "early\n");
}

TEST(TroubleOperate, CancelFromOutside) {
  FlowFolder folder;
  folder.program("stubborn.sh", "trap '' TERM; touch up; while :; do sleep 1000; done");
  const auto running =
      folder.start({"run", folder.flow("steps: [{id: a, argv: [stubborn.sh]}, {id: b, needs: a, run: touch b}]")});
  ASSERT_TRUE(folder.wait_for_file("up"));
  const auto waiting = folder.start({"wait", "@last"});
  EXPECT_EQ(folder.reprise({"cancel", "@last", "--why", "wrong day"}).exit_code, 0);
  EXPECT_EQ(running->join(), 143);
  EXPECT_EQ(waiting->join(), 143);
  EXPECT_EQ(text_of(folder.show(), "status"), "canceled");
  EXPECT_EQ(text_of(folder.last("cancel_requested"), "why"), "wrong day");
  EXPECT_EQ(leftovers_in(folder.path()), "");
  EXPECT_FALSE(folder.exists("b"));
  EXPECT_EQ(folder.reprise({"cancel", "@last"}).exit_code, 2) << "it has ended";
}

// What runs ends and is recorded; nothing starts, also no retry; then all of it goes on.
TEST(TroubleOperate, PauseLetsRunningWorkEnd) {
  FlowFolder folder;
  folder.program("item.sh", "echo $1 >> begun; until [ -e open ]; do sleep 0.02; done; echo $1 >> ended");
  const auto running = folder.start({"run", folder.flow(R"(
steps:
  - {id: map, for_each: [1, 2, 3, 4, 5, 6], max_parallel: 2, argv: [item.sh, "${item}"]}
  - {id: after, needs: map, run: touch after})")});
  ASSERT_TRUE(eventually([&] { return folder.lines("begun").size() == 2; }));
  EXPECT_EQ(folder.reprise({"pause", "@last"}).exit_code, 0);
  EXPECT_EQ(text_of(folder.show(), "status"), "paused");
  folder.write("open", "");
  ASSERT_TRUE(folder.wait_for_event("completed", "map", 2));
  EXPECT_EQ(folder.lines("begun").size(), 2U);
  EXPECT_EQ(folder.count("started"), 2U);
  EXPECT_EQ(text_of(folder.show(), "status"), "paused");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(folder.lines("ended").size(), 6U);
  EXPECT_EQ(folder.count("started", "map"), 6U);
  EXPECT_TRUE(folder.exists("after"));
}

TEST(TroubleOperate, APausedRunStaysPausedAfterAKill) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(waits_for_go)});
  ASSERT_TRUE(folder.wait_for_event("completed", "a"));
  EXPECT_EQ(folder.reprise({"pause", "@last"}).exit_code, 0);
  running->signal(SIGKILL);
  running->join();
  EXPECT_EQ(text_of(folder.show(), "status"), "paused");
  EXPECT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0) << "nobody owns the store: it is done here";
  EXPECT_EQ(folder.read("ran"), "a\n");
  EXPECT_EQ(folder.reprise({"wait", "@last"}).exit_code, 1) << "nobody works on it";
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.lines("ran").size(), 2U);
}

TEST(TroubleOperate, RetryOfOneItemOrOneStep) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - {id: map, for_each: [0, 1, 2, 3], run: "echo ${item} >> ran; test -e open", retry: none, tolerate: 4, on_failure: continue}
  - {id: other, run: "echo other >> ran; test -e open", retry: none})");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(folder.lines("ran").size(), 5U);
  folder.write("open", "");
  folder.write("ran", "");
  EXPECT_EQ(folder.reprise({"retry", "@last", "--step", "map", "--item", "2"}).exit_code, 1)
      << "the other step has still failed";
  EXPECT_EQ(folder.read("ran"), "2\n");
  EXPECT_EQ(folder.count("completed", "map[2]"), 1U);
  EXPECT_EQ(folder.reprise({"retry", "@last", "--step", "map", "--item", "2"}).exit_code, 2)
      << "it has not failed any more";
  EXPECT_EQ(folder.reprise({"retry", "@last", "--step", "other"}).exit_code, 0);
  EXPECT_EQ(folder.read("ran"), "2\nother\n");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.lines("ran").size(), 5U);
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 2) << "nothing has failed";
}

TEST(TroubleOperate, RetryOfWhatIsNotThere) {
  FlowFolder folder;
  EXPECT_EQ(folder.run("steps: [{id: a, for_each: [1], run: exit 1, retry: none}]").exit_code, 1);
  EXPECT_EQ(folder.reprise({"retry", "@last", "--step", "b"}).exit_code, 4);
  EXPECT_EQ(folder.reprise({"retry", "@last", "--step", "a", "--item", "7"}).exit_code, 4);
  EXPECT_EQ(folder.reprise({"retry", "@last", "--item", "0"}).exit_code, 2);
  EXPECT_EQ(folder.reprise({"logs", "@last", "b"}).exit_code, 4);
  EXPECT_EQ(folder.reprise({"why", "@last", "a[7]"}).exit_code, 4);
  EXPECT_EQ(folder.reprise({"dead-letters", "show", "@last", "a[0]"}).exit_code, 4);
}

TEST(TroubleOperate, RmForgetsTheRunAndItsLogs) {
  FlowFolder folder;
  EXPECT_EQ(folder.run("steps: [{id: a, run: echo a very special word}]").exit_code, 0);
  const std::string run = folder.last_run();
  EXPECT_TRUE(folder.exists(".reprise/logs/" + run));
  EXPECT_EQ(folder.reprise({"rm", run}).exit_code, 0);
  EXPECT_FALSE(folder.exists(".reprise/logs/" + run));
  EXPECT_EQ(folder.reprise({"show", run}).exit_code, 4);
  EXPECT_EQ(folder.reprise({"rm", run}).exit_code, 4);
  EXPECT_EQ(folder.reprise({"show", "@last"}).exit_code, 4);
}

TEST(TroubleOperate, RmRefusesWhatIsNotOver) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(waits_for_go)});
  ASSERT_TRUE(folder.wait_for_event("completed", "a"));
  running->signal(SIGKILL);
  running->join();
  const Outcome outcome = folder.reprise({"rm", "@last"});
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_EQ(text_of(folder.show(), "status"), "running");
}

TEST(TroubleOperate, UnknownRunsAre4) {
  FlowFolder folder;
  const std::vector<std::string> commands{"show",  "events", "logs",  "why",  "replay", "resume",
                                          "retry", "cancel", "pause", "wait", "rm"};
  for (const std::string& command : commands)
    EXPECT_EQ(folder.reprise({command, "@last"}).exit_code, 4) << command << " without a store";
  EXPECT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 4);
  EXPECT_FALSE(folder.exists(".reprise")) << "looking makes no store";
  EXPECT_EQ(folder.run("steps: [{id: a, run: 'true'}]").exit_code, 0);
  const std::string unknown = "01a1e288-950e-7c72-897f-24000000ffff";
  for (const std::string& command : commands) {
    const Outcome outcome = folder.reprise({command, unknown});
    EXPECT_EQ(outcome.exit_code, 4) << command << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(unknown), std::string::npos) << command << ": " << outcome.err;
  }
  EXPECT_EQ(folder.reprise({"show", "@last-failed"}).exit_code, 4);
}

// ---- which store ----------------------------------------

TEST(TroubleStore, InMemoryLeavesNothing) {
  FlowFolder folder;
  const Outcome outcome = folder.run(
      "steps: [{id: a, run: echo hi}, {id: b, needs: a, run: 'echo ${steps.a.output} > got'}]", {"--store", "memory:"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.read("got"), "hi\n");
  EXPECT_FALSE(folder.exists(".reprise"));
  EXPECT_EQ(outcome.err.find("resume"), std::string::npos) << "there is nothing to go on with";
  std::filesystem::remove(folder.path_of("flow.yaml"));
  std::filesystem::remove(folder.path_of("got"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "also no temporary folder";
}

TEST(TroubleStore, TheEnvironmentNamesIt) {
  FlowFolder folder;
  folder.set("REPRISE_STORE", "sqlite:" + folder.path_of("deep/down/runs.db"));
  EXPECT_EQ(folder.run("steps: [{id: a, run: echo hi}]").exit_code, 0);
  EXPECT_TRUE(folder.exists("deep/down/runs.db"));
  EXPECT_FALSE(folder.exists(".reprise"));
  EXPECT_EQ(text_of(folder.show(), "status"), "succeeded");
  EXPECT_EQ(folder.reprise({"show", "@last", "--store", "sqlite:other.db"}).exit_code, 4) << "the option wins";
}

TEST(TroubleStore, ThatCannotBeUsed) {
  FlowFolder folder;
  folder.write(
      "text.db",
      "this is not a database, whatever its name says; it is long enough to have a header of its own, but no pages");
  const std::string before = folder.read("text.db");
  const Outcome damaged = folder.run("steps: [{id: a, run: touch ran}]", {"--store", "sqlite:text.db"});
  EXPECT_EQ(damaged.exit_code, 5) << damaged.err;
  EXPECT_EQ(folder.read("text.db"), before) << "nothing was touched";
  EXPECT_EQ(folder.run("steps: [{id: a, run: touch ran}]", {"--store", "sqlite:text.db/inside.db"}).exit_code, 5);
  EXPECT_NE(folder.run("steps: [{id: a, run: touch ran}]", {"--store", "floppy:a"}).exit_code, 0);
  EXPECT_FALSE(folder.exists("ran"));
}

}  // namespace
}  // namespace reprise::testing_support
