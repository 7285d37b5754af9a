// The store under attack: taken away while a run works with it, opened a second time by another name, out of space, and looked at for long.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"
#include "store/sqlite/connection.hpp"

namespace reprise::testing_support {
namespace {

namespace fs = std::filesystem;

bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

// ---- taken away ----------------------------------------

struct Loss {
  const char* name;
  const char* command;  // what the step does to the store
};

class TroubleStoreGone : public ::testing::TestWithParam<Loss> {};

TEST_P(TroubleStoreGone, IsNoticedBeforeSuccessIsSaid) {
  for (const char* mode : {"plain", "quiet"}) {
    FlowFolder folder;
    folder.program("lose.sh", GetParam().command);
    const Outcome outcome = folder.run("steps: [{id: a, run: ./lose.sh}]", {"--progress", mode});
    EXPECT_EQ(outcome.exit_code, 5) << mode << outcome.err;
    EXPECT_TRUE(says(outcome.err, "removed, moved or replaced")) << mode << outcome.err;
    EXPECT_FALSE(says(outcome.err, "succeeded")) << mode << outcome.err;
    EXPECT_EQ(leftovers_in(folder.path()), "");
  }
}

INSTANTIATE_TEST_SUITE_P(TroubleStores, TroubleStoreGone,
                         ::testing::Values(Loss{"Removed", "rm -rf .reprise"}, Loss{"Moved", "mv .reprise elsewhere"},
                                           Loss{"FileRemoved", "rm .reprise/reprise.db"},
                                           Loss{"LogRemoved", "rm .reprise/reprise.db-wal"},
                                           Loss{"Replaced", "cp -r .reprise other; rm -r .reprise; mv other .reprise"}),
                         [](const auto& tested) { return tested.param.name; });

// What was moved is whole, and the run goes on from there. What stands in its place is left alone.
TEST(TroubleStore, WhatWasMovedGoesOnElsewhere) {
  FlowFolder folder;
  folder.program("move.sh", R"(echo x >> ran
test -e moved && exit 0
touch moved
mv .reprise elsewhere && mkdir .reprise && echo "of another" > .reprise/reprise.db && echo log > .reprise/reprise.db-wal)");
  const Outcome lost = folder.run("steps: [{id: a, run: ./move.sh}, {id: b, needs: a, run: echo b >> ran}]");
  EXPECT_EQ(lost.exit_code, 5) << lost.err;
  EXPECT_EQ(folder.read(".reprise/reprise.db"), "of another\n");
  EXPECT_EQ(folder.read(".reprise/reprise.db-wal"), "log\n");
  const Outcome again = folder.reprise({"resume", "@last", "--store", "sqlite:elsewhere/reprise.db"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(folder.read("ran").ends_with("b\n")) << folder.read("ran");
}

// ---- two names ----------------------------------------

struct OtherName {
  const char* name;
  const char* command;  // makes it
  const char* store;
};

class TroubleStoreTwice : public ::testing::TestWithParam<OtherName> {};

TEST_P(TroubleStoreTwice, HasOneOwner) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, run: touch up; sleep 1000}]")});
  ASSERT_TRUE(folder.wait_for_file("up"));
  ASSERT_EQ(run_program({"/usr/bin/env", "-C", folder.path(), "sh", "-c", GetParam().command}).exit_code, 0);
  const Outcome second = folder.reprise({"exec", "--store", GetParam().store, "--", "touch", "second"});
  EXPECT_NE(second.exit_code, 0);
  EXPECT_TRUE(says(second.err, "process " + std::to_string(reprise_in(folder.path())) + " owns it")) << second.err;
  EXPECT_FALSE(folder.exists("second"));
  running->signal(SIGTERM);
  EXPECT_EQ(running->join(), 143);
}

INSTANTIATE_TEST_SUITE_P(
    TroubleStores, TroubleStoreTwice,
    ::testing::Values(OtherName{"SymbolicLink", "ln -s .reprise/reprise.db link.db", "sqlite:link.db"},
                      OtherName{"LinkToTheFolder", "ln -s .reprise linked", "sqlite:linked/reprise.db"},
                      OtherName{"HardLink", "ln .reprise/reprise.db hard.db", "sqlite:hard.db"},
                      OtherName{"LockRemoved", "rm .reprise/reprise.db-owner", "sqlite:.reprise/reprise.db"}),
    [](const auto& tested) { return tested.param.name; });

TEST(TroubleStore, ALinkToAFileThatIsNotThereYetIsFollowed) {
  FlowFolder folder;
  std::filesystem::create_directory(folder.path_of("real"));
  std::filesystem::create_symlink("real/s.db", folder.path_of("s.db"));
  const std::vector<std::string> command{
      "exec", "--id", "k", "--store", "sqlite:s.db", "--", "sh", "-c", "head -c 200000 /dev/zero"};
  EXPECT_EQ(folder.reprise(command).out.size(), 200'000U);
  EXPECT_EQ(folder.reprise(command).out.size(), 200'000U) << "found again, in the folder of the file itself";
  EXPECT_TRUE(folder.exists("real/logs"));
  EXPECT_FALSE(folder.exists("logs"));
}

TEST(TroubleStore, APipeIsNotLookedAt) {
  FlowFolder folder;
  ASSERT_EQ(mkfifo(folder.path_of("pipe").c_str(), 0600), 0);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"runs"}, {"show", "@last"}, {"doctor"}, {"cancel", "@last"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--store", "sqlite:pipe"});
    EXPECT_NE(folder.reprise(words).exit_code, 0) << command.front();
  }
}

TEST(TroubleStore, APathWithAColonIsDurable) {
  FlowFolder folder;
  folder.set("REPRISE_STORE", "my.db:1");
  const std::string flow = folder.flow("steps: [{id: a, signal: go}, {id: b, needs: a, run: echo heard; exit 3}]");
  const auto running = folder.start({"run", flow});
  ASSERT_TRUE(folder.wait_for_event("submitted"));
  const Outcome signal = folder.reprise({"signal", "@last", "go"});
  ASSERT_EQ(signal.exit_code, 0) << signal.err;
  EXPECT_EQ(running->join(), 1);
  EXPECT_TRUE(says(folder.read("stderr.txt"), "reprise why")) << folder.read("stderr.txt");
  EXPECT_TRUE(says(folder.reprise({"logs", "@last", "b"}).out, "heard"));
}

TEST(TroubleStore, TheOwnerIsAskedThroughALink) {
  FlowFolder folder;
  const auto running =
      folder.start({"run", folder.flow("steps: [{id: a, signal: go}, {id: b, needs: a, run: echo b}]")});
  ASSERT_TRUE(folder.wait_for_event("submitted"));
  fs::create_directory(folder.path_of("far"));
  fs::create_symlink(folder.path_of(".reprise/reprise.db"), folder.path_of("far/link.db"));
  const Outcome asked = folder.reprise({"signal", "@last", "go", "--store", "sqlite:far/link.db"});
  EXPECT_EQ(asked.exit_code, 0) << asked.err;
  EXPECT_EQ(running->join(), 0);
  const Outcome logs = folder.reprise({"logs", "@last", "b", "--store", "sqlite:far/link.db"});
  EXPECT_EQ(logs.out, "b\n") << logs.err;
  EXPECT_TRUE(folder.exists("far/link.db"));
  EXPECT_FALSE(folder.exists("far/link.db-wal")) << "one file, one log";
}

// ---- no space ----------------------------------------

bool has_pending_signals(pid_t process) {
  std::ifstream status{"/proc/" + std::to_string(process) + "/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("ShdPnd:")) return line.find_first_not_of("ShdPn:0\t ") != std::string::npos;
  }
  return true;
}

// A run whose store cannot be written from the moment its first step ends: no file of this process may grow. Lifted by lift().
class TroubleStoreFull : public ::testing::TestWithParam<const char*> {
 protected:
  void start() {
    std::signal(SIGXFSZ, SIG_IGN);
    running_ = folder_.start({"run", "--progress", GetParam(), folder_.flow(R"(
steps:
  - {id: a, run: "touch up; while ! test -e go; do sleep 0.02; done"}
  - {id: b, needs: a, run: "echo b >> ran; test ! -e slow || sleep 1000"})")});
    ASSERT_TRUE(folder_.wait_for_file("up"));
    ASSERT_TRUE(folder_.wait_for_event("started", "a"));
    limit(4096);
    folder_.write("go", "");
  }
  void lift() { limit(RLIM_INFINITY); }
  void limit(rlim_t bytes) {
    rlimit now{};
    const pid_t pid = reprise_in(folder_.path());
    ASSERT_EQ(prlimit(pid, RLIMIT_FSIZE, nullptr, &now), 0);
    now.rlim_cur = bytes;
    ASSERT_EQ(prlimit(pid, RLIMIT_FSIZE, &now, nullptr), 0);
  }

  FlowFolder folder_;
  std::unique_ptr<Child> running_;
};

TEST_P(TroubleStoreFull, SaysWhatItWaitsForAndContinues) {
  start();
  ASSERT_TRUE(folder_.wait_for_file("stderr.txt", "waiting for the store")) << folder_.read("stderr.txt");
  EXPECT_TRUE(says(folder_.read("stderr.txt"), "no space left")) << folder_.read("stderr.txt");
  lift();
  EXPECT_EQ(running_->join(), 0) << folder_.read("stderr.txt");
  EXPECT_TRUE(says(folder_.read("stderr.txt"), "can be written again")) << folder_.read("stderr.txt");
  EXPECT_EQ(folder_.read("ran"), "b\n");
  EXPECT_EQ(text_of(folder_.show(), "status"), "succeeded");
}

TEST_P(TroubleStoreFull, OneTermEndsIt) {
  start();
  ASSERT_TRUE(folder_.wait_for_file("stderr.txt", "waiting for the store"));
  running_->signal(SIGTERM);
  EXPECT_EQ(running_->join(), 143);
  EXPECT_TRUE(says(folder_.read("stderr.txt"), "resume with: reprise resume")) << folder_.read("stderr.txt");
  EXPECT_EQ(leftovers_in(folder_.path()), "");
  const Outcome again = folder_.reprise({"resume", "@last"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(folder_.read("ran"), "b\n");
}

TEST_P(TroubleStoreFull, TwoInterruptsEndIt) {
  start();
  ASSERT_TRUE(folder_.wait_for_file("stderr.txt", "waiting for the store"));
  running_->signal(SIGINT);
  running_->signal(SIGINT);
  // Two that come as one are one: then the next one is the second.
  ASSERT_TRUE(eventually([&] {
    if (reprise_in(folder_.path()) == 0) return true;
    running_->signal(SIGINT);
    return false;
  }));
  EXPECT_EQ(running_->join(), 130);
  EXPECT_EQ(folder_.reprise({"resume", "@last"}).exit_code, 0);
}

// An interrupt that could not be recorded is not forgotten when the store can be written again.
TEST_P(TroubleStoreFull, OneInterruptHoldsWhenSpaceIsBack) {
  folder_.write("slow", "");
  start();
  ASSERT_TRUE(folder_.wait_for_file("stderr.txt", "waiting for the store"));
  running_->signal(SIGINT);
  // It has been taken when no signal waits any more.
  ASSERT_TRUE(eventually([&] { return !has_pending_signals(reprise_in(folder_.path())); }));
  lift();
  EXPECT_EQ(running_->join(), 130) << folder_.read("stderr.txt");
  EXPECT_EQ(text_of(folder_.show(), "status"), "canceled");
  fs::remove(folder_.path_of("slow"));
  EXPECT_EQ(folder_.reprise({"resume", "@last"}).exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(TroubleStores, TroubleStoreFull, ::testing::Values("quiet", "plain"),
                         [](const auto& tested) { return std::string{tested.param}; });

// The log of the store must not use up the space that the file needs to take in what stands in it.
TEST(TroubleStore, TheLogLeavesRoomOnASmallDisk) {
  FlowFolder folder;
  fs::create_directory(folder.path_of("disk"));
  folder.flow(R"(steps: [{id: a, for_each: {command: "seq 500"}, run: "sleep 0.02"}])");
  const Outcome outcome = run_program({"/usr/bin/env", "-i", "-C", folder.path(), "PATH=/usr/bin:/bin",
                                       "HOME=" + folder.path(), "unshare", "-rm", "sh", "-c",
                                       R"(mount -t tmpfs -o size=512k none disk || exit 77
exec "$1" run flow.yaml --progress quiet --store sqlite:disk/store.db)",
                                       "sh", REPRISE_COMMAND});
  if (outcome.exit_code == 77 || says(outcome.err, "unshare")) GTEST_SKIP() << "no namespaces here: " << outcome.err;
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
}

// ---- looked at for long ----------------------------------------

// A pipe that nobody reads holds up the command that writes to it, and nobody else: the owner can empty its log.
TEST(TroubleStore, EventsThatNobodyReadsHoldNothing) {
  FlowFolder folder;
  ASSERT_EQ(folder.run(R"(steps: [{id: a, for_each: {command: "seq 400"}, run: "true"}])").exit_code, 0);
  const auto reader = folder.start({"events", "@last", "--format", "json"});
  ASSERT_TRUE(eventually([&] { return reader->is_held_up(); })) << "its pipe is full";
  ASSERT_EQ(folder.reprise({"exec", "--", "true"}).exit_code, 0);
  auto owner = store::sqlite::Connection::open(folder.path_of(".reprise/reprise.db"), store::sqlite::Access::write, "");
  ASSERT_TRUE(owner) << owner.error().message;
  sqlite3_busy_timeout(owner->get(), 0);
  const auto is_busy = owner->integer("PRAGMA wal_checkpoint(TRUNCATE)", "empty the log of");
  ASSERT_TRUE(is_busy) << is_busy.error().message;
  EXPECT_EQ(*is_busy, 0) << "a reader stands in the way";
}

}  // namespace
}  // namespace reprise::testing_support
