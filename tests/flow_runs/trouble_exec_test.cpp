// `reprise exec` towards everybody else: exit codes, bytes in, bytes out, keys, and readers that go away.
#include <gtest/gtest.h>

#include <csignal>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

namespace reprise::testing_support {
namespace {

// A record of text would bring back another name: the command would work on another file.
TEST(TroubleExec, BytesThatAreNoTextAreRefused) {
  FlowFolder folder;
  folder.write("caf\xE9", "keep");
  folder.write("caf\xEF\xBF\xBD", "other");
  const Outcome outcome = folder.reprise({"exec", "--", "rm", "caf\xE9"});
  EXPECT_EQ(outcome.exit_code, 125);
  EXPECT_NE(outcome.err.find("word 2 of the command is not UTF-8"), std::string::npos) << outcome.err;
  EXPECT_TRUE(folder.exists("caf\xEF\xBF\xBD"));
  EXPECT_EQ(folder
                .reprise({"run", folder.flow("params: {v: {default: x}}\nsteps: [{id: a, run: \"true\"}]"), "--set",
                          "v=caf\xE9"})
                .exit_code,
            2);
  EXPECT_EQ(
      folder.run("steps:\n  - {id: a, for_each: {command: \"printf 'caf\\\\351\\\\n'\"}, run: \"touch ${item}\"}\n")
          .exit_code,
      1);
}

TEST(TroubleExec, ItsOwnTroubleIs125) {
  FlowFolder folder;
  EXPECT_EQ(run_program({"sh", "-c", "cd " + folder.path() + " && exec " REPRISE_COMMAND " exec -- echo hi >/dev/full"})
                .exit_code,
            125);
  EXPECT_EQ(folder.reprise({"exec", "--id", std::string(600, 'k'), "--", "true"}).exit_code, 125);
  const Outcome outcome = folder.reprise({"exec", "--stdin", "x", "--", "true"});
  EXPECT_EQ(outcome.exit_code, 125);
  EXPECT_NE(outcome.err.find("--stdin: expected auto, replay or none, found x"), std::string::npos) << outcome.err;
}

using namespace std::string_literals;

const std::vector<std::string> quick{"exec", "--max-attempts", "3", "--backoff", "constant:1ms", "--"};

std::vector<std::string> operator+(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Every byte there is, in no order that anything could depend on.
std::string noise(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint64_t state = 88172645463325252ULL;
  for (char& byte : bytes) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<char>(state >> 56U);
  }
  return bytes;
}

TEST(TroubleExec, ExitCodesPassThrough) {
  FlowFolder folder;
  for (const int code : {0, 1, 2, 7, 124, 125, 126, 127, 255}) {
    const Outcome outcome =
        folder.reprise({"exec", "--retry", "none", "--", "sh", "-c", "exit " + std::to_string(code)});
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
  }
  for (const int signal : {SIGTERM, SIGKILL, SIGINT, SIGHUP, SIGSEGV, SIGPIPE}) {
    const Outcome outcome =
        folder.reprise({"exec", "--retry", "none", "--", "sh", "-c", "kill -" + std::to_string(signal) + " $$"});
    EXPECT_EQ(outcome.exit_code, 128 + signal) << outcome.err;
  }
  EXPECT_EQ(folder.reprise({"exec", "--retry", "none", "--timeout", "100ms", "--", "sleep", "1000"}).exit_code, 124);
  EXPECT_EQ(folder.reprise(quick + std::vector<std::string>{"sh", "-c", "exit 9"}).exit_code, 9);
}

TEST(TroubleExec, WhatCannotBeStarted) {
  FlowFolder folder;
  folder.write("plain.txt", "text");
  const Outcome missing = folder.reprise({"exec", "--", "no-such-program"});
  EXPECT_EQ(missing.exit_code, 127);
  EXPECT_NE(missing.err.find("no-such-program"), std::string::npos) << missing.err;
  const Outcome forbidden = folder.reprise({"exec", "--", "./plain.txt"});
  EXPECT_EQ(forbidden.exit_code, 126);
  EXPECT_NE(forbidden.err.find("not executable"), std::string::npos) << forbidden.err;
  EXPECT_EQ(folder.reprise({"exec", "--", "/"}).exit_code, 126);
  EXPECT_EQ(folder.count("started"), 1U) << "trying again would not help";
}

TEST(TroubleExec, BadUsageStartsNothing) {
  FlowFolder folder;
  const std::vector<std::vector<std::string>> mistakes{
      {"exec"},
      {"exec", "--"},
      {"exec", "--nonsense", "--", "touch", "ran"},
      {"exec", "--retry", "bogus", "--", "touch", "ran"},
      {"exec", "--max-attempts", "-3", "--", "touch", "ran"},
      {"exec", "--max-attempts", "many", "--", "touch", "ran"},
      {"exec", "--backoff", "exponential:soon", "--", "touch", "ran"},
      {"exec", "--timeout", "5 parsecs", "--", "touch", "ran"},
      {"exec", "--jitter", "lots", "--", "touch", "ran"},
      {"exec", "--only-on", "/[/", "--", "touch", "ran"},
  };
  for (const auto& mistake : mistakes) {
    const Outcome outcome = folder.reprise(mistake);
    EXPECT_EQ(outcome.exit_code, 125) << mistake.back() << ": " << outcome.err;
    EXPECT_NE(outcome.err, "");
  }
  EXPECT_FALSE(folder.exists("ran"));
  EXPECT_FALSE(folder.exists(".reprise"));
}

TEST(TroubleExec, StdinIsGivenToEveryAttempt) {
  FlowFolder folder;
  const std::string input = noise(1 << 20);
  const Outcome outcome = folder.reprise(
      quick + std::vector<std::string>{"sh", "-c", "cat > got.$REPRISE_ATTEMPT; [ $REPRISE_ATTEMPT = 3 ]"}, input);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* const file : {"got.1", "got.2", "got.3"}) EXPECT_TRUE(folder.read(file) == input) << file;
}

TEST(TroubleExec, StdinThatNobodyReadsOrThatIsClosed) {
  FlowFolder folder;
  const std::string input = noise(1 << 20);
  EXPECT_EQ(folder.reprise({"exec", "--", "true"}, input).exit_code, 0);
  EXPECT_EQ(folder.reprise({"exec", "--", "sh", "-c", "exec 0<&-; echo fine"}, input).out, "fine\n");
  EXPECT_EQ(folder.reprise({"exec", "--", "head", "-c", "5"}, "hello world").out, "hello");
  const Outcome closed = folder.shell("\"$0\" exec -- sh -c 'cat; echo end' <&-");
  EXPECT_EQ(closed.exit_code, 0) << closed.err;
  EXPECT_EQ(closed.out, "end\n");
  const Outcome mute = folder.shell("\"$0\" exec -- echo lost >&-");
  EXPECT_EQ(mute.exit_code, 125);
  EXPECT_NE(mute.err.find("cannot write"), std::string::npos) << mute.err;
}

// Somebody has not finished writing: a signal ends it all the same, and nothing has been started.
TEST(TroubleExec, ASignalWhileStdinIsRead) {
  FlowFolder folder;
  const Outcome outcome = folder.shell(R"(mkfifo pipe; { echo x; exec sleep 1000; } > pipe & writer=$!
"$0" exec -- touch ran < pipe & reprise=$!
until ls .reprise/stdin/* > nul 2>&1; do sleep 0.05; done
kill -TERM $reprise; wait $reprise; code=$?; kill $writer; exit $code)");
  EXPECT_EQ(outcome.exit_code, 143) << outcome.err;
  EXPECT_FALSE(folder.exists("ran"));
  EXPECT_EQ(folder.reprise({"runs", "--format", "json"}).out, "");
}

TEST(TroubleExec, OnlyTheSuccessfulAttemptsOutputByteByByte) {
  FlowFolder folder;
  const std::string five_megabytes = noise(5'000'000);
  folder.write("data", five_megabytes);
  const Outcome outcome =
      folder.reprise(quick + std::vector<std::string>{
                                 "sh", "-c", "echo attempt $REPRISE_ATTEMPT >&2; cat data; [ $REPRISE_ATTEMPT = 2 ]"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out == five_megabytes) << outcome.out.size() << " bytes";
  EXPECT_NE(outcome.err.find("attempt 1\n"), std::string::npos);
  EXPECT_NE(outcome.err.find("attempt 2\n"), std::string::npos);
  const Outcome failed = folder.reprise(quick + std::vector<std::string>{"sh", "-c", "cat data; exit 1"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.out, "");
}

TEST(TroubleExec, LineEndsAndZerosStayAsTheyAre) {
  FlowFolder folder;
  for (const std::string& bytes :
       {""s, "x"s, "x\n"s, "\n"s, "\n\n"s, "x\r\n\r\n"s, "a\0b\0"s, "\0"s, "\xff\xfe\n\0\n"s}) {
    const Outcome outcome = folder.reprise({"exec", "--", "cat"}, bytes);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, bytes);
  }
  EXPECT_EQ(folder.reprise({"exec", "--store", "memory:", "--", "printf", "no end"}).out, "no end");
  EXPECT_EQ(folder.reprise({"exec", "--store", "memory:", "--", "true"}).out, "");
}

TEST(TroubleExec, StderrIsLive) {
  FlowFolder folder;
  const auto running =
      folder.start({"exec", "--", "sh", "-c", "echo working >&2; until [ -e open ]; do sleep 0.02; done; echo out"});
  EXPECT_TRUE(folder.wait_for_file("stderr.txt", "working\n"));
  folder.write("open", "");
  EXPECT_EQ(running->join(), 0);
}

TEST(TroubleExec, TheSameKeyFindsTheSameRun) {
  FlowFolder folder;
  const std::string output = "first\0 bytes, no line end"s;
  folder.write("data", output);
  const std::vector<std::string> once{"exec", "--id", "once", "--", "sh", "-c", "echo x >> ran; cat data"};
  for (int call = 0; call < 3; ++call) {
    const Outcome outcome = folder.reprise(once);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, output);
  }
  EXPECT_EQ(folder.read("ran"), "x\n");

  const std::vector<std::string> failing{
      "exec", "--retry", "none", "--id", "bad", "--", "sh", "-c", "echo x >> failed; exit 7"};
  EXPECT_EQ(folder.reprise(failing).exit_code, 7);
  EXPECT_EQ(folder.reprise(failing).exit_code, 7);
  EXPECT_EQ(folder.read("failed"), "x\n");
}

TEST(TroubleExec, TheSameKeyAfterAKillGoesOn) {
  FlowFolder folder;
  const std::vector<std::string> words{
      "exec", "--backoff", "constant:1ms",
      "--id", "k",         "--",
      "sh",   "-c",        "echo $REPRISE_ATTEMPT >> ran; test -e open || sleep 1000; echo result"};
  const auto running = folder.start(words);
  ASSERT_TRUE(folder.wait_for_file("ran", "1\n"));
  running->signal(SIGKILL);
  running->join();
  EXPECT_EQ(leftovers_in(folder.path()), "");
  folder.write("open", "");
  const Outcome outcome = folder.reprise(words);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "result\n");
  EXPECT_EQ(folder.read("ran"), "1\n2\n");
}

TEST(TroubleExec, AReaderThatHasEnough) {
  FlowFolder folder;
  const Outcome outcome = folder.shell("{ \"$0\" exec -- seq 1000000; echo $? > code; } | head -1");
  EXPECT_EQ(outcome.out, "1\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(folder.read("code"), "141\n") << "as every program in a pipe";
  EXPECT_EQ(text_of(folder.show(), "status"), "succeeded");
}

TEST(TroubleExec, OutputThatCannotBeWritten) {
  FlowFolder folder;
  const Outcome outcome = folder.shell("\"$0\" exec -- seq 100000 > /dev/full");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("cannot write"), std::string::npos) << outcome.err;
}

// What a run was given is kept for its next attempt, for as long as there may be one, and not longer.
TEST(TroubleExec, StandardInputIsKeptNoLongerThanItsRun) {
  FlowFolder folder;
  const auto kept = [&] { return folder.files_with("given ", ".reprise/stdin").size(); };
  const std::vector<std::string> failing{"exec", "--retry", "none", "--", "false"};
  folder.reprise(failing, "given first");
  folder.reprise(failing, "given second");
  EXPECT_EQ(kept(), 2U);
  EXPECT_EQ(folder.reprise({"rm", "@last"}).exit_code, 0);
  ASSERT_EQ(kept(), 1U);
  EXPECT_EQ(folder.files_with("given first", ".reprise/stdin").size(), 1U);
  EXPECT_EQ(folder.reprise({"rm", "@last"}).exit_code, 0);
  EXPECT_EQ(kept(), 0U);
  const std::vector<std::string> named{"exec", "--retry", "none", "--id", "k", "--", "sh", "-c", "cat; test -e well"};
  EXPECT_EQ(folder.reprise(named, "given third").exit_code, 1);
  EXPECT_EQ(folder.reprise(named, "given third").exit_code, 1);  // the same run: it has its own input already
  EXPECT_EQ(folder.reprise(named, "given fourth").exit_code, 125);
  EXPECT_EQ(kept(), 1U);
  folder.write("well", "");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.reprise(named, "given third").out, "given third");
  EXPECT_EQ(kept(), 0U);
}

TEST(TroubleExec, AConstantWaitIsAsLongAsItSaysAndOthersAreWarnedOf) {
  FlowFolder folder;
  const Outcome constant =
      folder.reprise({"exec", "--backoff", "constant:1h", "--jitter", "none", "--max-elapsed", "10m", "--", "false"});
  EXPECT_EQ(constant.exit_code, 1);
  EXPECT_NE(constant.err.find("warning: more waiting than 10m allows"), std::string::npos) << constant.err;
  EXPECT_NE(constant.err.find("its time was over"), std::string::npos) << "an hour is longer: " << constant.err;
  const Outcome growing = folder.reprise({"exec", "--backoff", "exponential:1h", "--max-attempts", "3", "--", "true"});
  EXPECT_EQ(growing.exit_code, 0);
  EXPECT_NE(growing.err.find("reprise exec: warning: "), std::string::npos) << growing.err;
}

}  // namespace
}  // namespace reprise::testing_support
