// What a run of `exec` depends on: its standard input and its output survive what the run survives, or are known to be lost. And which
// work a key belongs to.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

namespace reprise::testing_support {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

std::vector<std::string> files_in(const FlowFolder& folder, const std::string& name, const std::string& ending = {}) {
  std::vector<std::string> found;
  std::error_code problem;
  for (const auto& entry : fs::recursive_directory_iterator{folder.path_of(name), problem}) {
    if (entry.is_regular_file() && entry.path().string().ends_with(ending)) found.push_back(entry.path().string());
  }
  return found;
}

// As a power cut leaves a file that was never synced.
void empty(const std::vector<std::string>& files) {
  for (const std::string& file : files) fs::resize_file(file, 0);
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

// ---- what the command wrote ----------------------------------------

// The limit of a file's size stands for a disk that is full: the same write fails, after some of it has succeeded.
const std::string small_disk = "trap '' XFSZ; ulimit -f 4096; exec \"$0\" ";

TEST(TroubleKept, ADiskThatIsFullForAMomentIsAFailedAttempt) {
  FlowFolder folder;
  const Outcome outcome = folder.shell(small_disk + R"(exec --backoff constant:1ms -- sh -c '
    [ $REPRISE_ATTEMPT = 2 ] || exec head -c 6000000 /dev/zero; head -c 200019 /dev/zero')");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.size(), 200'019U);
  const auto failed = folder.first("failed");
  const auto& error = object_of(failed, "error");
  EXPECT_EQ(text_of(error, "class"), "transient");
  EXPECT_TRUE(says(text_of(error, "message"), "its standard output could not be kept")) << text_of(error, "message");
}

TEST(TroubleKept, ADiskThatStaysFullIsNoSuccess) {
  FlowFolder folder;
  const Outcome outcome =
      folder.shell(small_disk + "exec --max-attempts 2 --backoff constant:1ms -- head -c 6000000 /dev/zero");
  EXPECT_EQ(outcome.exit_code, 125) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(says(outcome.err, "its standard output could not be kept")) << outcome.err;
  EXPECT_EQ(folder.count("started"), 2U);
}

TEST(TroubleKept, OutputThatAPowerCutTookIsNoSuccess) {
  FlowFolder folder;
  const std::vector<std::string> words{
      "exec", "--id", "k", "--", "sh", "-c", "echo x >> ran; head -c 200000 /dev/zero"};
  EXPECT_EQ(folder.reprise(words).out.size(), 200'000U);
  EXPECT_EQ(folder.reprise(words).out.size(), 200'000U);
  const std::vector<std::string> files = files_in(folder, ".reprise/logs", ".stdout");
  ASSERT_EQ(files.size(), 1U);
  empty(files);
  const Outcome lost = folder.reprise(words);
  EXPECT_EQ(lost.exit_code, 125);
  EXPECT_EQ(lost.out, "");
  EXPECT_TRUE(says(lost.err, "its output is lost") && says(lost.err, "0 bytes of 200000")) << lost.err;
  fs::resize_file(files.front(), 200'000);
  EXPECT_EQ(folder.reprise(words).exit_code, 0) << "zeros they were";
  folder.write(fs::relative(files.front(), folder.path()).string(), std::string(200'000, 'x'));
  EXPECT_TRUE(says(folder.reprise(words).err, "another SHA-256"));
  fs::remove(files.front());
  EXPECT_EQ(folder.reprise(words).exit_code, 125);
  EXPECT_EQ(folder.read("ran"), "x\n");
}

TEST(TroubleKept, ShortOutputStandsInTheRecordAlone) {
  FlowFolder folder;
  const std::string bytes = "a\0b\xff\n\n"s;
  const std::vector<std::string> words{"exec", "--id", "k", "--", "cat"};
  EXPECT_EQ(folder.reprise(words, bytes).out, bytes);
  EXPECT_EQ(files_in(folder, ".reprise/logs", ".stdout").size(), 0U);
  fs::remove_all(folder.path_of(".reprise/logs"));
  EXPECT_EQ(folder.reprise(words, bytes).out, bytes);
}

// An attempt of the same number was there before, and wrote much.
TEST(TroubleKept, TheOutputOfAnEarlierAttemptIsNotTakenForThisOne) {
  FlowFolder folder;
  const std::vector<std::string> words{
      "exec", "--retry", "none",
      "--id", "k",       "--",
      "sh",   "-c",      "test -e open && exec echo short; head -c 200000 /dev/zero; exit 1"};
  EXPECT_EQ(folder.reprise(words).exit_code, 1);
  folder.write("open", "");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.reprise(words).out, "short\n");
}

// ---- what the command reads ----------------------------------------

class TroubleKeptInput : public ::testing::Test {
 protected:
  // Killed while its first attempt runs, like the machine it ran on.
  void SetUp() override {
    folder.write("data", std::string(200'000, 'd'));
    const Outcome killed = folder.shell(command + R"( & pid=$!
until [ -s ran ]; do sleep 0.02; done; kill -9 $pid; wait $pid)");
    ASSERT_EQ(killed.exit_code, 137) << killed.err;
    EXPECT_EQ(leftovers_in(folder.path()), "");
    folder.write("open", "");
    ASSERT_EQ(kept().size(), 1U);
    empty(kept());
  }
  std::vector<std::string> kept() const { return files_in(folder, ".reprise/stdin"); }

  FlowFolder folder;
  const std::string command =
      "\"$0\" exec --backoff constant:1ms --id k -- sh -c 'echo x >> ran; [ -e open ] || sleep 1000; wc -c' < data";
};

TEST_F(TroubleKeptInput, ThatAPowerCutTookIsNotReplacedByNothing) {
  const Outcome resumed = folder.reprise({"resume", "@last"});
  EXPECT_EQ(resumed.exit_code, 1) << resumed.err;
  EXPECT_TRUE(says(resumed.err, "the standard input that was kept for this run is damaged")) << resumed.err;
  EXPECT_TRUE(says(resumed.err, "0 bytes of 200000")) << resumed.err;
  EXPECT_EQ(folder.read("ran"), "x\n") << "nothing was started";
}

TEST_F(TroubleKeptInput, ThatAPowerCutTookIsGivenAgainByTheSameCall) {
  const Outcome again = folder.shell(command);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, "200000\n");
  EXPECT_EQ(kept().size(), 0U);
}

// ---- which work a key belongs to ----------------------------------------

TEST(TroubleKey, AnotherCommandInputPolicyOrFolderIsOtherWork) {
  FlowFolder folder;
  folder.write("elsewhere/file", "");
  const auto exec = [&](const std::vector<std::string>& more, std::string_view input) {
    std::vector<std::string> words{"exec", "--id", "k"};
    words.insert(words.end(), more.begin(), more.end());
    return folder.reprise(words, input);
  };
  EXPECT_EQ(exec({"--", "cat"}, "first").out, "first");
  EXPECT_EQ(exec({"--", "cat"}, "first").out, "first");
  const auto expect_other = [&](const Outcome& outcome, const std::string& what) {
    EXPECT_EQ(outcome.exit_code, 125) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(says(outcome.err, what)) << outcome.err;
    EXPECT_TRUE(says(outcome.err, folder.last_run())) << outcome.err;
  };
  expect_other(exec({"--", "cat"}, "other"), "standard input (5 bytes then, 5 bytes now)");
  expect_other(exec({"--", "cat"}, ""), "standard input (5 bytes then, none now)");
  expect_other(exec({"--", "cat", "-"}, "first"), "the command");
  expect_other(exec({"--max-attempts", "9", "--", "cat"}, "first"), "the retry policy");
  expect_other(
      folder.shell("printf first | (cd elsewhere && \"$0\" exec --store ../.reprise/reprise.db --id k -- cat)"),
      "the folder (" + folder.path() + " then)");
  EXPECT_EQ(exec({"--", "cat"}, "first").out, "first") << "it is still the same run";
  EXPECT_EQ(files_in(folder, ".reprise/stdin").size(), 0U);
}

TEST(TroubleKey, AnotherDocumentOrParameterIsOtherWork) {
  FlowFolder folder;
  const std::string document =
      "params: {date: {default: today}}\nsteps: [{id: a, run: 'echo ${params.date} >> ran'}]\n";
  const auto run = [&](const std::string& text, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--id", "k"});
    return folder.run(text, more);
  };
  EXPECT_EQ(run(document).exit_code, 0);
  EXPECT_EQ(run(document).exit_code, 0);
  EXPECT_EQ(run(document, {"--set", "date=today"}).exit_code, 0) << "what is the default anyway";
  const Outcome other = run(document, {"--set", "date=tomorrow"});
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_TRUE(says(other.err, "the parameter date")) << other.err;
  EXPECT_FALSE(says(other.err, "tomorrow")) << "values may be secret";
  const Outcome changed = run(document + "# changed\n");
  EXPECT_EQ(changed.exit_code, 3);
  EXPECT_TRUE(says(changed.err, "the document")) << changed.err;
  folder.write("elsewhere/flow.yaml", document);
  const Outcome moved = folder.reprise({"run", "elsewhere/flow.yaml", "--id", "k"});
  EXPECT_EQ(moved.exit_code, 3);
  EXPECT_TRUE(says(moved.err, "the folder")) << moved.err;
  const Outcome command = folder.reprise({"exec", "--id", "k", "--", "true"});
  EXPECT_EQ(command.exit_code, 125);
  EXPECT_TRUE(says(command.err, "that run is one of a document")) << command.err;
  EXPECT_EQ(folder.read("ran"), "today\n");
}

// ---- whose standard input it is ----------------------------------------

TEST(TroubleStdin, ALoopKeepsItsLines) {
  FlowFolder folder;
  const std::string loop = "while read line; do \"$0\" exec ";
  const Outcome left_alone = folder.shell("seq 3 | " + loop + "-n -- sh -c 'echo $0; cat' $line; done");
  EXPECT_EQ(left_alone.out, "1\n2\n3\n") << left_alone.err;
  EXPECT_EQ(folder.shell("seq 3 | " + loop + "--stdin none -- echo $line; done").out, "1\n2\n3\n");
  folder.write("lines", "1\n2\n3\n");
  const Outcome file = folder.shell(loop + "-- sh -c 'echo $0: $(cat)' $line; done < lines");
  EXPECT_EQ(file.out, "1: 2 3\n2: 3\n3:\n") << "a file's position stays: " << file.err;
  EXPECT_EQ(file.err, "");
}

TEST(TroubleStdin, APipeThatTheCallingShellReadsIsWarnedOf) {
  FlowFolder folder;
  const Outcome eaten = folder.shell("seq 3 | while read line; do \"$0\" exec -- cat; done");
  EXPECT_EQ(eaten.out, "2\n3\n");
  EXPECT_TRUE(says(eaten.err, "warning") && says(eaten.err, "-n (--no-stdin)")) << eaten.err;
  for (const char* const line :
       {"seq 3 | \"$0\" exec -- cat", "seq 3 | while read line; do \"$0\" exec --stdin replay -- cat; done",
        "true | { \"$0\" exec -- true; }", "seq 3 | { \"$0\" exec --progress quiet -- cat; }"}) {
    const Outcome silent = folder.shell(line);
    EXPECT_EQ(silent.exit_code, 0);
    EXPECT_EQ(silent.err, "") << line;
  }
}

TEST(TroubleStdin, WhatIsReadAndWhatIsNot) {
  FlowFolder folder;
  EXPECT_EQ(folder.shell("\"$0\" exec -- cat < /dev/zero").out, "");
  EXPECT_EQ(folder.shell("\"$0\" exec --stdin replay -- cat < /dev/null").exit_code, 0);
  EXPECT_EQ(folder.shell("head -c 3 /dev/zero | \"$0\" exec --stdin replay -- wc -c").out, "3\n");
  const Outcome folder_as_input = folder.shell("\"$0\" exec -- touch ran < .");
  EXPECT_EQ(folder_as_input.exit_code, 125);
  EXPECT_TRUE(says(folder_as_input.err, "cannot read standard input")) << folder_as_input.err;
  EXPECT_FALSE(folder.exists("ran"));
  EXPECT_EQ(files_in(folder, ".reprise/stdin").size(), 0U);
}

}  // namespace
}  // namespace reprise::testing_support
