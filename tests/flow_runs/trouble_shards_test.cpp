// Many processes, one folder: each works with a shard of its own, and every command sees and reaches the runs of all.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

namespace reprise::testing_support {
namespace {

namespace json = boost::json;

constexpr std::chrono::minutes patience{1};

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream stream{text};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

// What `reprise runs` lists, in its order.
std::vector<json::object> runs_in(const FlowFolder& folder, std::vector<std::string> options = {}) {
  std::vector<std::string> words{"runs", "--format", "json"};
  words.insert(words.end(), options.begin(), options.end());
  std::istringstream stream{folder.reprise(words).out};
  std::vector<json::object> runs;
  for (std::string line; std::getline(stream, line);) runs.push_back(json::parse(line).as_object());
  return runs;
}

std::size_t count_with_status(const FlowFolder& folder, const std::string& status) {
  return runs_in(folder, {"--status", status}).size();
}

// The word that `reprise runs` shows for a run, in its table.
std::string shown_status(const FlowFolder& folder, const std::string& run) {
  std::istringstream table{folder.reprise({"runs"}).out};
  for (std::string line; std::getline(table, line);) {
    std::istringstream words{line};
    std::string id;
    std::string status;
    if (words >> id >> status && id == run) return status;
  }
  return "";
}

std::string newest_run(const FlowFolder& folder) { return text_of(runs_in(folder).at(0), "run"); }

// `run` of a document that waits for the signal `go`, in a process of its own. It owns a shard until then.
struct Waiting {
  std::unique_ptr<Child> process;
  std::string run;
};
Waiting start_waiting(const FlowFolder& folder, const std::string& name) {
  const std::size_t before = runs_in(folder).size();
  folder.write(name + ".yaml", "name: " + name + "\nsteps:\n  - {id: a, run: echo a >> " + name +
                                   "}\n  - {id: wait, needs: a, signal: go}\n  - {id: b, needs: wait, run: echo b >> " +
                                   name + "}\n");
  Waiting waiting{folder.start({"run", name + ".yaml"}), {}};
  EXPECT_TRUE(eventually([&] { return runs_in(folder).size() > before && folder.read(name) == "a\n"; }));
  waiting.run = newest_run(folder);
  return waiting;
}

// ---- at once ----------------------------------------

TEST(TroubleShards, TwelveExecsAtOnce) {
  FlowFolder folder;
  folder.program("item.sh", R"(echo $1; touch up$1; until [ $(ls up* | wc -l) -eq 12 ]; do sleep 0.02; done)");
  const Outcome outcome = folder.shell(R"(seq 12 | xargs -P12 -I{} "$0" exec -- ./item.sh {})");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(sorted_lines(outcome.out).size(), 12U) << outcome.out;
  const auto runs = runs_in(folder);
  ASSERT_EQ(runs.size(), 12U);
  std::set<std::string> ids;
  for (const json::object& run : runs) {
    EXPECT_EQ(text_of(run, "status"), "succeeded");
    ids.insert(text_of(run, "run"));
  }
  EXPECT_EQ(ids.size(), 12U);
  EXPECT_TRUE(std::ranges::is_sorted(runs, std::greater<>{}, [](const auto& run) { return text_of(run, "created"); }));
  EXPECT_EQ(runs_in(folder, {"--limit", "5"}).size(), 5U);
  EXPECT_EQ(text_of(runs_in(folder, {"--limit", "5"}).at(4), "run"), text_of(runs.at(4), "run"));
  for (const char* command : {"show", "why", "events", "logs", "replay", "wait"}) {
    for (const std::string& id : {*ids.begin(), *ids.rbegin()})
      EXPECT_EQ(folder.reprise({command, id}).exit_code, 0) << command << " " << id;
  }
  EXPECT_EQ(folder.last_run(), text_of(runs.at(0), "run")) << "@last is the newest of all shards";
  EXPECT_EQ(folder.reprise({"show", ids.begin()->substr(0, 30)}).exit_code, 0) << "a beginning of an id is enough";
}

TEST(TroubleShards, MakeWithFourJobs) {
  FlowFolder folder;
  if (folder.shell("make --version").exit_code != 0) GTEST_SKIP() << "there is no make";
  folder.write("Makefile", "all: a b c d\na b c d:\n\t@$(R) exec -- ./meet.sh $@\n");
  folder.program("meet.sh", R"(touch up.$1; until [ $(ls up.* | wc -l) -eq 4 ]; do sleep 0.02; done; touch $1)");
  const Outcome outcome = folder.shell(R"(make -j4 R="$0")");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* made : {"a", "b", "c", "d"}) EXPECT_TRUE(folder.exists(made));
  EXPECT_EQ(count_with_status(folder, "succeeded"), 4U);
}

TEST(TroubleShards, APipelineOfExecs) {
  FlowFolder folder;
  const Outcome outcome = folder.shell(R"("$0" exec -- echo abc | "$0" exec -- tr a-z A-Z | "$0" exec -- rev)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "CBA\n");
  EXPECT_EQ(count_with_status(folder, "succeeded"), 3U);
}

// Who reads its standard input has no shard yet, or the end of the pipe could wait for its beginning for ever.
TEST(TroubleShards, APipelineNeedsNoMoreShardsThanRunAtOnce) {
  FlowFolder folder;
  const Outcome outcome = folder.shell(
      R"(export REPRISE_TEST_SHARDS=1; "$0" exec -- echo abc | "$0" exec -- tr a-z A-Z | "$0" exec -- rev)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "CBA\n");
  EXPECT_FALSE(folder.exists(".reprise/reprise-1.db"));
}

TEST(TroubleShards, TwoStartsAtTheSameMomentInAnEmptyFolder) {
  for (int round = 0; round < 20; ++round) {
    FlowFolder folder;
    const Outcome outcome = folder.shell(R"("$0" exec -- echo one & "$0" exec -- echo two & wait %1 && wait %2)");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto runs = runs_in(folder);
    ASSERT_EQ(runs.size(), 2U);
    for (const json::object& run : runs)
      ASSERT_EQ(folder.reprise({"show", text_of(run, "run")}).exit_code, 0) << "both have the same secret";
  }
}

// ---- one key ----------------------------------------

TEST(TroubleShards, EightProcessesWithOneKeyAreOneRun) {
  for (int round = 0; round < 10; ++round) {
    FlowFolder folder;
    const Outcome outcome =
        folder.shell(R"(seq 8 | xargs -P8 -I{} "$0" exec --id K -- sh -c 'echo x >> ran; sleep 0.05; echo result')");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    ASSERT_EQ(sorted_lines(outcome.out), std::vector<std::string>(8, "result"));
    ASSERT_EQ(folder.read("ran"), "x\n");
    ASSERT_EQ(runs_in(folder).size(), 1U);
  }
}

TEST(TroubleShards, AKeyIsFoundInWhateverShardHasIt) {
  FlowFolder folder;
  const Waiting first = start_waiting(folder, "first");
  const std::vector<std::string> command{"exec", "--id", "k", "--", "sh", "-c", "echo x >> ran; echo result"};
  EXPECT_EQ(folder.reprise(command).out, "result\n");
  EXPECT_TRUE(folder.exists(".reprise/reprise-1.db"));
  const Waiting second = start_waiting(folder, "second");  // it has the shard of the key now
  EXPECT_EQ(folder.reprise(command).out, "result\n");
  EXPECT_EQ(folder.read("ran"), "x\n");
  const Outcome other = folder.reprise({"exec", "--id", "k", "--", "echo", "something else"});
  EXPECT_EQ(other.exit_code, 125) << other.err;
  for (const Waiting* waiting : {&first, &second}) {
    EXPECT_EQ(folder.reprise({"signal", waiting->run, "go"}).exit_code, 0);
    EXPECT_EQ(waiting->process->join(), 0);
  }
  EXPECT_EQ(folder.reprise(command).out, "result\n");
  EXPECT_EQ(runs_in(folder).size(), 3U);
}

// Who asked for the same run and only watched it goes on with it when the process that ran it was killed.
TEST(TroubleShards, WhoAskedForTheSameKeyTakesOver) {
  FlowFolder folder;
  folder.program("work.sh", "until [ -e open ]; do rm fail && exit 75; sleep 0.02; done 2>/dev/null; echo result");
  const auto command = [](const char* progress) {
    return std::vector<std::string>{"exec",           "--id",      "k",         "--progress",    progress,
                                    "--max-attempts", "unlimited", "--backoff", "constant:10ms", "--",
                                    "./work.sh"};
  };
  const auto first = folder.start(command("quiet"));
  ASSERT_TRUE(folder.wait_for_event("started"));
  const auto second = folder.start(command("json"));
  const auto is_told = [&] {
    folder.write("fail", "");
    return folder.read("stderr.txt").find("\"failed\"") != std::string::npos;
  };
  ASSERT_TRUE(eventually(is_told)) << "what the other process records is told by the one that watches";
  first->signal(SIGKILL);
  EXPECT_EQ(first->join(), 128 + SIGKILL);
  folder.write("open", "");
  EXPECT_TRUE(second->wait_for("result", patience));
  EXPECT_EQ(second->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(runs_in(folder).size(), 1U);
}

// ---- every command reaches every shard ----------------------------------------

TEST(TroubleShards, WhatRunsElsewhereIsOperatedAsWhatRunsHere) {
  FlowFolder folder;
  const Waiting first = start_waiting(folder, "first");
  const Waiting second = start_waiting(folder, "second");
  const Waiting third = start_waiting(folder, "third");
  EXPECT_TRUE(folder.exists(".reprise/reprise-2.db"));
  for (const Waiting* each : {&first, &second, &third}) {
    EXPECT_EQ(shown_status(folder, each->run), "running");
    for (const char* command : {"show", "why", "events", "logs"})
      EXPECT_EQ(folder.reprise({command, each->run}).exit_code, 0) << command;
  }
  EXPECT_EQ(folder.reprise({"pause", second.run}).exit_code, 0);
  EXPECT_EQ(text_of(folder.show(second.run), "status"), "paused");
  EXPECT_EQ(folder.reprise({"resume", second.run}).exit_code, 0);
  const auto watched = folder.start({"wait", second.run});
  const auto followed = folder.start({"events", second.run, "--follow", "--format", "json"});
  EXPECT_EQ(folder.reprise({"signal", second.run, "go"}).exit_code, 0);
  EXPECT_EQ(second.process->join(), 0);
  EXPECT_EQ(watched->join(), 0);
  EXPECT_TRUE(followed->wait_for("\"ended\"", patience));
  EXPECT_EQ(folder.reprise({"cancel", third.run, "--why", "enough"}).exit_code, 0);
  EXPECT_EQ(third.process->join(), 143);
  EXPECT_EQ(folder.read("second"), "a\nb\n");
  EXPECT_EQ(text_of(folder.show(first.run), "status"), "running");
  EXPECT_EQ(folder.reprise({"signal", first.run, "go"}).exit_code, 0);
  EXPECT_EQ(first.process->join(), 0);
  for (const Waiting* each : {&first, &second, &third}) {
    EXPECT_EQ(folder.reprise({"replay", each->run}).exit_code, 0);
    EXPECT_EQ(folder.reprise({"rm", each->run}).exit_code, 0);
    EXPECT_FALSE(folder.exists(".reprise/logs/" + each->run));
  }
  EXPECT_TRUE(runs_in(folder).empty());
}

TEST(TroubleShards, RetryRmAndDropWhileAnotherProcessOwnsTheShard) {
  FlowFolder folder;
  ASSERT_EQ(folder.run("steps: [{id: a, run: exit 1, retry: none, on_failure: dead_letter}]").exit_code, 0);
  const std::string dropped = folder.last_run();
  const std::string document = "steps: [{id: a, run: test -e ok, retry: none}]";
  ASSERT_EQ(folder.run(document).exit_code, 1);
  const std::string retried = folder.last_run();
  ASSERT_EQ(folder.run(document).exit_code, 1);
  const std::string removed = folder.last_run();
  const Waiting owner = start_waiting(folder, "owner");  // of the shard that has them all
  folder.write("ok", "");
  const Outcome again = folder.reprise({"retry", retried});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(text_of(folder.show(retried), "status"), "succeeded");
  EXPECT_EQ(folder.reprise({"dead-letters", "drop", dropped, "a"}).exit_code, 0);
  EXPECT_EQ(folder.reprise({"rm", removed}).exit_code, 0);
  EXPECT_EQ(folder.reprise({"show", removed}).exit_code, 4);
  EXPECT_EQ(folder.reprise({"rm", owner.run}).exit_code, 2) << "it has not ended";
  EXPECT_NE(folder.reprise({"dead-letters", "list"}).err.find("no dead letters"), std::string::npos);
  EXPECT_EQ(folder.reprise({"signal", owner.run, "go"}).exit_code, 0);
  EXPECT_EQ(owner.process->join(), 0);
}

TEST(TroubleShards, DeadLettersOfAllShards) {
  FlowFolder folder;
  const std::string document = "steps: [{id: a, run: exit 1, retry: none, on_failure: dead_letter}]";
  ASSERT_EQ(folder.run(document).exit_code, 0);
  const std::string first = folder.last_run();
  const Waiting owner = start_waiting(folder, "owner");
  ASSERT_EQ(folder.run(document).exit_code, 0);
  const std::string second = folder.last_run();
  ASSERT_TRUE(folder.exists(".reprise/reprise-1.db"));
  const std::string all = folder.reprise({"dead-letters", "list"}).out;
  EXPECT_LT(all.find(second), all.find(first)) << "newest first: " << all;
  EXPECT_NE(all.find(first), std::string::npos);
  const Outcome one = folder.reprise({"dead-letters", "list", "--limit", "1"});
  EXPECT_EQ(one.out.find(first), std::string::npos) << one.out;
  EXPECT_NE(one.err.find("--limit shows more"), std::string::npos) << one.err;
}

// ---- killed owners ----------------------------------------

TEST(TroubleShards, OneOfTwoOwnersIsKilledAndAThirdResumes) {
  FlowFolder folder;
  const Waiting first = start_waiting(folder, "first");
  const Waiting second = start_waiting(folder, "second");
  second.process->signal(SIGKILL);
  EXPECT_EQ(second.process->join(), 128 + SIGKILL);
  EXPECT_EQ(shown_status(folder, first.run), "running");
  EXPECT_EQ(shown_status(folder, second.run), "interrupted");
  EXPECT_NE(folder.reprise({"show", second.run}).out.find("No process is working on it"), std::string::npos);
  EXPECT_EQ(folder.reprise({"wait", second.run}).exit_code, 1) << "nobody works on it";
  const auto third = folder.start({"resume", second.run});
  ASSERT_TRUE(eventually([&] { return shown_status(folder, second.run) == "running"; }));
  EXPECT_EQ(folder.reprise({"signal", second.run, "go"}).exit_code, 0);
  EXPECT_EQ(third->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(folder.read("second"), "a\nb\n");
  EXPECT_EQ(folder.reprise({"signal", first.run, "go"}).exit_code, 0);
  EXPECT_EQ(first.process->join(), 0);
}

// The shard of the killed one is taken by the next process, which does not work on what it finds there.
TEST(TroubleShards, AKilledRunIsInterruptedAlsoWhenItsShardHasANewOwner) {
  FlowFolder folder;
  const Waiting killed = start_waiting(folder, "killed");
  killed.process->signal(SIGKILL);
  EXPECT_EQ(killed.process->join(), 128 + SIGKILL);
  const Waiting owner = start_waiting(folder, "owner");
  EXPECT_FALSE(folder.exists(".reprise/reprise-1.db")) << "a free shard is taken before one is made";
  EXPECT_EQ(shown_status(folder, owner.run), "running");
  EXPECT_EQ(shown_status(folder, killed.run), "interrupted");
  EXPECT_EQ(folder.reprise({"wait", killed.run}).exit_code, 1) << "nobody works on it";
  // The owner runs it, and who asked watches it.
  const auto resumed = folder.start({"resume", killed.run});
  ASSERT_TRUE(eventually([&] { return shown_status(folder, killed.run) == "running"; }));
  EXPECT_EQ(folder.reprise({"signal", killed.run, "go"}).exit_code, 0);
  EXPECT_EQ(resumed->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(folder.read("killed"), "a\nb\n");
  EXPECT_EQ(shown_status(folder, owner.run), "running");
  EXPECT_EQ(folder.reprise({"signal", owner.run, "go"}).exit_code, 0);
  EXPECT_EQ(owner.process->join(), 0);
}

TEST(TroubleShards, WhoAskedTheOwnerTakesOverWhenThatHasDoneItsOwnWork) {
  FlowFolder folder;
  const Waiting killed = start_waiting(folder, "killed");
  killed.process->signal(SIGKILL);
  EXPECT_EQ(killed.process->join(), 128 + SIGKILL);
  const Waiting owner = start_waiting(folder, "owner");
  const auto resumed = folder.start({"resume", killed.run});
  ASSERT_TRUE(eventually([&] { return shown_status(folder, killed.run) == "running"; }));
  EXPECT_EQ(folder.reprise({"signal", owner.run, "go"}).exit_code, 0);
  EXPECT_EQ(owner.process->join(), 0);
  ASSERT_TRUE(eventually([&] { return shown_status(folder, killed.run) == "running"; }));
  EXPECT_EQ(folder.reprise({"signal", killed.run, "go"}).exit_code, 0);
  EXPECT_EQ(resumed->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(folder.read("killed"), "a\nb\n");
}

TEST(TroubleShards, WhoOnlyWatchesStopsWatchingOnCtrlC) {
  FlowFolder folder;
  const Waiting killed = start_waiting(folder, "killed");
  killed.process->signal(SIGKILL);
  killed.process->join();
  const Waiting owner = start_waiting(folder, "owner");
  const auto resumed = folder.start({"resume", killed.run});
  ASSERT_TRUE(eventually([&] { return shown_status(folder, killed.run) == "running"; }));
  resumed->signal(SIGINT);
  EXPECT_EQ(resumed->join(), 130) << folder.read("stderr.txt");
  EXPECT_NE(folder.read("stderr.txt").find("another process goes on with this run"), std::string::npos);
  EXPECT_EQ(shown_status(folder, killed.run), "running");
}

// ---- limits and trouble ----------------------------------------

TEST(TroubleShards, MoreProcessesThanShardsWaitAndSaySo) {
  FlowFolder folder;
  folder.set("REPRISE_TEST_SHARDS", "2");
  const Waiting first = start_waiting(folder, "first");
  const Waiting second = start_waiting(folder, "second");
  const auto third = folder.start({"exec", "--", "touch", "third"});
  const auto interrupted = folder.start({"exec", "--", "touch", "never"});
  ASSERT_TRUE(folder.wait_for_file("stderr.txt", "waiting: 2 processes work with"));
  EXPECT_FALSE(folder.exists("third"));
  interrupted->signal(SIGTERM);
  EXPECT_EQ(interrupted->join(), 143);
  EXPECT_EQ(folder.reprise({"signal", second.run, "go"}).exit_code, 0);
  EXPECT_EQ(second.process->join(), 0);
  EXPECT_EQ(third->join(), 0) << folder.read("stderr.txt");
  EXPECT_TRUE(folder.exists("third"));
  EXPECT_FALSE(folder.exists("never"));
  EXPECT_FALSE(folder.exists(".reprise/reprise-2.db"));
}

TEST(TroubleShards, ADamagedShardIsToldAndTheOthersAreShown) {
  FlowFolder folder;
  const Waiting first = start_waiting(folder, "first");
  ASSERT_EQ(folder.reprise({"exec", "--", "true"}).exit_code, 0);
  const std::string lost = newest_run(folder);
  folder.write(".reprise/reprise-1.db", std::string(8192, 'x'));
  const Outcome listed = folder.reprise({"runs"});
  EXPECT_EQ(listed.exit_code, 5) << "the list is not complete";
  EXPECT_NE(listed.err.find("reprise-1.db"), std::string::npos) << listed.err;
  EXPECT_NE(listed.out.find(first.run), std::string::npos) << listed.out;
  EXPECT_EQ(folder.reprise({"show", first.run}).exit_code, 0);
  EXPECT_EQ(folder.reprise({"show", lost}).exit_code, 5) << "it may be there";
  EXPECT_EQ(folder.reprise({"doctor"}).exit_code, 1);
  EXPECT_EQ(folder.reprise({"exec", "--", "true"}).exit_code, 0) << "the next shard does";
  EXPECT_TRUE(folder.exists(".reprise/reprise-2.db"));
  EXPECT_EQ(folder.reprise({"exec", "--id", "k", "--", "true"}).exit_code, 5) << "the damaged one may have the key";
}

TEST(TroubleShards, AStoreOfItsOwnWithSuchANameIsLeftAlone) {
  FlowFolder folder;
  ASSERT_EQ(folder.reprise({"exec", "--store", "my-1.db", "--", "true"}).exit_code, 0);
  const auto running =
      folder.start({"exec", "--store", "my.db", "--", "sh", "-c", "touch up; until test -e open; do sleep 0.02; done"});
  ASSERT_TRUE(folder.wait_for_file("up"));
  ASSERT_EQ(folder.reprise({"exec", "--store", "my.db", "--", "touch", "open"}).exit_code, 0);
  EXPECT_EQ(running->join(), 0);
  EXPECT_TRUE(folder.exists("my-2.db"));
  EXPECT_EQ(runs_in(folder, {"--store", "my.db"}).size(), 2U);
  EXPECT_EQ(runs_in(folder, {"--store", "my-1.db"}).size(), 1U);
}

TEST(TroubleShards, DoctorNamesTheOwners) {
  FlowFolder folder;
  const Waiting first = start_waiting(folder, "first");
  const Waiting second = start_waiting(folder, "second");
  const Outcome seen = folder.reprise({"doctor"});
  EXPECT_NE(seen.out.find("in 2 shards"), std::string::npos) << seen.out;
  EXPECT_NE(seen.out.find(" owns the store"), std::string::npos) << seen.out;
  EXPECT_NE(seen.out.find(" owns reprise-1.db"), std::string::npos) << seen.out;
}

}  // namespace
}  // namespace reprise::testing_support
