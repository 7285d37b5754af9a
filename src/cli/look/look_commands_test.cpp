// The commands that look, on a store that an engine has just written: what they print, and how they end.
#include "cli/look/look_commands.hpp"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <reprise/engine.hpp>

#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "cli/tree/app.hpp"
#include "exec/log_path.hpp"
#include "text/document.hpp"

namespace reprise::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

struct Answer {
  int code = -1;
  std::string out;
  std::string err;
};

template <class Command>
Answer answer_of(const Command& command) {
  CaptureStdout();
  CaptureStderr();
  Answer answer;
  answer.code = command();
  std::fflush(stdout);
  answer.out = GetCapturedStdout();
  answer.err = GetCapturedStderr();
  return answer;
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define EXPECT_LACKS(text, part) EXPECT_EQ((text).find(part), std::string::npos) << (text)

Policy quick(std::uint64_t attempts) {
  Policy policy;
  policy.max_attempts = attempts;
  policy.initial = 1ms;
  policy.max = 3ms;
  return policy;
}

using Result = std::expected<std::string, Failure>;

Result throttled_twice(Work& work) {
  if (work.attempt() >= 3) return std::string{"page"};
  return std::unexpected{Failure{.message = "slow down", .http_status = 429, .retry_after = 2ms}};
}
Result refuse_b(Work& work) {
  if (work.input() != "b") return std::string{work.input()};
  return std::unexpected{Failure{.type = "TimeoutError", .message = "no answer"}};
}

// One store for all tests, because making it takes commits: tasks that went well and badly, and a flow with a dead letter.
class CliLook : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    char folder[] = "/tmp/reprise_look_XXXXXX";
    folder_ = mkdtemp(folder);
    url_ = "sqlite:" + folder_ + "/runs.db";
    Engine engine{{.store = url_, .threads = 2}};
    ASSERT_TRUE(engine.handle("flaky", throttled_twice, {.retry = quick(5)}));
    ASSERT_TRUE(engine.handle("list", [] { return encode_list(std::vector<std::string>{"a", "b", "c"}); }));
    ASSERT_TRUE(engine.handle("one", refuse_b, {.retry = quick(2)}));
    ASSERT_TRUE(engine.handle("bad", [](Work&) -> Result {
      return std::unexpected{Failure{.type = "ValueError", .message = "no \x1b[31mred"}};
    }));
    ASSERT_TRUE(engine.flow({.name = "letters",
                             .steps = {{.name = "list", .handler = "list"},
                                       {.name = "each",
                                        .handler = "one",
                                        .needs = {"list"},
                                        .for_each = "list",
                                        .on_failure = OnFailure::dead_letter}}}));
    flaky_ = engine
                 .submit({.handler = "flaky",
                          .input = "in",
                          .key = "key-1",
                          .labels = {{"team", "a"}, {"tier", "gold"}},
                          .tenant = "acme"})
                 .value();
    ASSERT_TRUE(engine.wait(flaky_, 60s));
    letters_ = engine.submit({.flow = "letters", .labels = {{"team", "b"}}}).value();
    ASSERT_TRUE(engine.wait(letters_, 60s));
    bad_ = engine.submit({.handler = "bad"}).value();
    ASSERT_TRUE(engine.wait(bad_, 60s));
    later_ = engine.submit({.handler = "flaky", .delay = 24h}).value();
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  // The flows of the runs that a filter finds, oldest first.
  static std::vector<std::string> found(const std::vector<std::string>& filter) {
    const Answer answer = answer_of([&] { return runs({.store = url_, .filter = filter, .json = true}); });
    EXPECT_EQ(answer.code, 0) << answer.err;
    std::vector<std::string> flows;
    std::istringstream in{answer.out};
    for (std::string line; std::getline(in, line);) {
      const std::size_t from = line.find(R"("flow":")") + 8;
      flows.insert(flows.begin(), line.substr(from, line.find('"', from) - from));
    }
    return flows;
  }

  static RunOptions of(const RunId& run, bool json = false) {
    return {.store = url_, .run = to_string(run), .json = json};
  }
  static RunOptions of(const std::string& run, bool json = false) { return {.store = url_, .run = run, .json = json}; }

  static void expect_json_lines(const std::string& text, std::size_t lines) {
    std::istringstream in{text};
    std::size_t seen = 0;
    for (std::string line; std::getline(in, line); ++seen) EXPECT_TRUE(text::read_document(line, "line")) << line;
    EXPECT_EQ(seen, lines) << text;
  }

  inline static std::string folder_;
  inline static std::string url_;
  inline static RunId flaky_, letters_, bad_, later_;
};

TEST_F(CliLook, RunsListsTheNewestFirst) {
  const Answer all = answer_of([] { return runs({.store = url_}); });
  EXPECT_EQ(all.code, 0);
  EXPECT_LT(all.out.find(to_string(later_)), all.out.find(to_string(bad_)));
  EXPECT_LT(all.out.find(to_string(bad_)), all.out.find(to_string(flaky_)));
  EXPECT_HAS(all.out, "key-1");
  EXPECT_LACKS(all.out, " \n");
  const Answer failed = answer_of([] { return runs({.store = url_, .status = RunStatus::failed, .json = true}); });
  expect_json_lines(failed.out, 1);
  EXPECT_HAS(failed.out, R"("flow":"bad","status":"failed","created":")");
  const Answer named = answer_of([] { return runs({.store = url_, .flow = "letters", .since = 1h, .json = true}); });
  expect_json_lines(named.out, 1);
  const Answer none = answer_of([] { return runs({.store = url_, .flow = "nothing"}); });
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.out, "");
  const Answer few = answer_of([] { return runs({.store = url_, .limit = 2, .json = true}); });
  expect_json_lines(few.out, 2);
  EXPECT_HAS(few.err, "--limit");
}

using Flows = std::vector<std::string>;

TEST_F(CliLook, RunsFindsWhatRowsSay) {
  EXPECT_EQ(found({}), (Flows{"flaky", "letters", "bad", "flaky"}));
  EXPECT_EQ(found({"status:failed"}), (Flows{"bad"}));
  EXPECT_EQ(found({"status:failed,interrupted"}), (Flows{"bad", "flaky"})) << "nobody works on the last one";
  EXPECT_EQ(found({"status:running"}), (Flows{}));
  EXPECT_EQ(found({"flow:letters"}), (Flows{"letters"}));
  EXPECT_EQ(found({"flow:letters,bad"}), (Flows{"letters", "bad"}));
  EXPECT_EQ(found({"key:key-1"}), (Flows{"flaky"}));
  EXPECT_EQ(found({"since:1h"}).size(), 4U);
  EXPECT_EQ(found({"since:2100-01-01T00:00:00Z"}), (Flows{}));
  EXPECT_EQ(found({"until:1h"}), (Flows{}));
  EXPECT_EQ(found({"until:2100-01-01T00:00:00Z"}).size(), 4U);
}

TEST_F(CliLook, RunsFindsWhatOnlyTheStateOfARunSays) {
  EXPECT_EQ(found({"label:team=a"}), (Flows{"flaky"}));
  EXPECT_EQ(found({"label:team=b"}), (Flows{"letters"}));
  EXPECT_EQ(found({"label:team=a", "label:tier=gold"}), (Flows{"flaky"}));
  EXPECT_EQ(found({"label:team=a", "label:team=b"}), (Flows{}));
  EXPECT_EQ(found({"older:1h"}), (Flows{}));
  EXPECT_EQ(found({"older:0s"}).size(), 4U);
  EXPECT_EQ(found({"parent:" + to_string(flaky_)}), (Flows{}));
}

// A run is meant when one of its work items is.
TEST_F(CliLook, RunsFindsRunsByTheirItems) {
  EXPECT_EQ(found({"attempts:3+"}), (Flows{"flaky"}));
  EXPECT_EQ(found({"attempts:2"}), (Flows{"letters"}));
  EXPECT_EQ(found({"error:ValueError"}), (Flows{"bad"}));
  EXPECT_EQ(found({"http:429"}), (Flows{})) << "that work has recovered";
  EXPECT_EQ(found({"step:each", "item:1", "error:\"no answer\""}), (Flows{"letters"}));
  EXPECT_EQ(found({"step:each", "item:0", "error:\"no answer\""}), (Flows{}));
}

TEST_F(CliLook, RunsSaysWhatItCannotFind) {
  const auto refused = [](const std::string& word) {
    return answer_of([&] { return runs({.store = url_, .filter = {word}}); });
  };
  for (const char* const wrong : {"label:team", "fingerprint:ab12", "stauts:failed", "nocolon", "older:soon"}) {
    const Answer answer = refused(wrong);
    EXPECT_EQ(answer.code, 2) << wrong;
    EXPECT_EQ(answer.out, "") << wrong;
  }
  EXPECT_HAS(refused("stauts:failed").err, "did you mean status");
  EXPECT_HAS(refused("label:team").err, "label:team=VALUE");
}

TEST_F(CliLook, RunsAndShowTellWhatARunHasForItself) {
  const Answer list = answer_of([] { return runs({.store = url_, .filter = {"key:key-1"}, .json = true}); });
  EXPECT_HAS(list.out, R"("labels":{"team":"a","tier":"gold"},"tenant":"acme")");
  const Answer text = answer_of([] { return show({.run = of(flaky_)}); });
  EXPECT_HAS(text.out, "label     team=a\nlabel     tier=gold\n");
  EXPECT_HAS(text.out, "tenant    acme\n");
  EXPECT_HAS(answer_of([] { return show({.run = of(flaky_, true)}); }).out, R"("labels":{"team":"a","tier":"gold"})");
  EXPECT_HAS(answer_of([] { return events({.run = of(flaky_, true)}); }).out, R"("labels":{"team":"a","tier":"gold"})");
}

TEST_F(CliLook, ShowTellsHowARunStandsAndWhatToDo) {
  const Answer bad = answer_of([] { return show({.run = of("@last-failed")}); });
  EXPECT_EQ(bad.code, 0);
  EXPECT_HAS(bad.out, "status    failed: this failure is permanent");
  EXPECT_HAS(bad.out, "bad failed after 1 attempt: ValueError: no");
  EXPECT_LACKS(bad.out, "\x1b");
  EXPECT_HAS(bad.err, "reprise why " + to_string(bad_) + " bad --store " + url_);
  EXPECT_HAS(bad.err, "reprise retry " + to_string(bad_));
  const Answer letters = answer_of([] { return show({.run = of(letters_)}); });
  EXPECT_HAS(letters.out, "status    succeeded\n");
  EXPECT_HAS(letters.out, "2 of 3 done, 1 failed");
  EXPECT_HAS(letters.out,
             "each[1] failed after 2 attempts: TimeoutError: no answer (transient, timeout); its attempts were used "
             "up; kept as a dead letter");
  const Answer json = answer_of([] { return show({.run = of(flaky_, true)}); });
  expect_json_lines(json.out, 1);
  EXPECT_HAS(json.out, R"("status":"succeeded")");
  EXPECT_HAS(json.out, R"("key":"key-1","input":"in","output":"page","attempts":3,"retries":2)");
  EXPECT_HAS(json.out, R"("rescued":1)");
  EXPECT_HAS(json.out, R"("failures":[])");
  EXPECT_HAS(answer_of([] { return show({.run = of(later_)}); }).out, "status    running");
}

TEST_F(CliLook, ShowWritesAPage) {
  const std::string file = folder_ + "/page.html";
  const auto written = [&] {
    std::ostringstream text;
    text << std::ifstream{file}.rdbuf();
    return text.str();
  };
  std::ofstream{file} << "something older";
  const auto files = [] { return std::distance(std::filesystem::directory_iterator{folder_}, {}); };
  const auto before = files();
  const Answer answer = answer_of([&] { return show({.run = of(letters_), .html = file}); });
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(answer.out + answer.err, "");
  EXPECT_TRUE(written().starts_with("<!doctype html>"));
  EXPECT_HAS(written(), to_string(letters_));
  EXPECT_EQ(files(), before) << "nothing is left beside it";
  const Answer piped = answer_of([] { return show({.run = of(later_), .html = "-"}); });
  EXPECT_EQ(piped.code, 0) << "a run that is not over";
  EXPECT_TRUE(piped.out.starts_with("<!doctype html>"));
  EXPECT_TRUE(piped.out.ends_with("</html>\n"));
}

TEST_F(CliLook, ShowWritesThroughALinkAndToDevices) {
  const std::string file = folder_ + "/target.html";
  const std::string link = folder_ + "/link.html";
  std::ofstream{file} << "";
  std::filesystem::create_symlink("target.html", link);
  EXPECT_EQ(answer_of([&] { return show({.run = of(letters_), .html = link}); }).code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_GT(std::filesystem::file_size(file), 0U);
  EXPECT_EQ(answer_of([] { return show({.run = of(letters_), .html = "/dev/null"}); }).code, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(CliLook, APageThatCannotBeWrittenIsBadUsage) {
  const Answer nowhere = answer_of([] { return show({.run = of(letters_), .html = folder_ + "/no/page.html"}); });
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_HAS(nowhere.err, "/no/page.html: No such file or directory");
  std::filesystem::create_directory(folder_ + "/folder.html");
  const Answer folder = answer_of([] { return show({.run = of(letters_), .html = folder_ + "/folder.html"}); });
  EXPECT_EQ(folder.code, 2);
  EXPECT_HAS(folder.err, "Is a directory");
  EXPECT_EQ(answer_of([] { return show({.run = of(letters_), .html = ""}); }).code, 2);
  const Answer both = answer_of([] { return show({.run = of(letters_, true), .html = "-"}); });
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(both.out, "");
  EXPECT_HAS(both.err, "--format json");
  EXPECT_EQ(answer_of([] { return show({.run = of("ffffffff"), .html = "-"}); }).code, 4);
}

TEST_F(CliLook, EventsAreLinesOrJson) {
  const Answer text = answer_of([] { return events({.run = of(flaky_)}); });
  EXPECT_EQ(text.code, 0);
  EXPECT_HAS(text.out, "flaky attempt 1/5 failed: HTTP 429: slow down (transient, throttled); retry in ");
  EXPECT_HAS(text.out, "flaky done after 3 attempts in ");
  const Answer json = answer_of([] { return events({.run = of(flaky_, true)}); });
  expect_json_lines(json.out, 10);
  EXPECT_HAS(json.out, R"("type":"ended","sequence":10)");
  const Answer followed = answer_of([] { return events({.run = of(flaky_, true), .follow = true}); });
  EXPECT_EQ(followed.out, json.out);
}

TEST_F(CliLook, EventsFollowARunToItsEnd) {
  const std::string url = "sqlite:" + folder_ + "/followed.db";
  Engine engine{{.store = url, .threads = 1}};
  ASSERT_TRUE(engine.handle("two",
                            [](Work& work) -> Result {
                              if (work.attempt() > 1) return std::string{"done"};
                              return std::unexpected{Failure{.type = "TimeoutError"}};
                            },
                            {.retry = [] {
                              Policy policy;
                              policy.initial = 300ms;
                              policy.jitter = Jitter::none;
                              return policy;
                            }()}));
  const RunId run = engine.submit({.handler = "two"}).value();
  const Answer answer =
      answer_of([&] { return events({.run = {.store = url, .run = "@last", .json = true}, .follow = true}); });
  EXPECT_EQ(answer.code, 0);
  expect_json_lines(answer.out, 7);
  EXPECT_HAS(answer.out, to_string(run));
}

TEST_F(CliLook, LogsPrintsWhatAttemptsWrote) {
  const auto write = [](std::uint32_t item, std::uint64_t attempt, const std::string& content) {
    const std::string path = exec::log_path(folder_, letters_, "each", item, attempt);
    std::filesystem::create_directories(std::filesystem::path{path}.parent_path());
    std::ofstream{path} << content;
  };
  write(1, 1, "first\n");
  write(1, 2, "second\n");
  write(2, 1, "other\n");
  EXPECT_EQ(answer_of([] { return logs({.of = {.run = of(letters_), .place = "each[2]"}, .attempt = {}}); }).out,
            "other\n");
  EXPECT_EQ(answer_of([] { return logs({.of = {.run = of(letters_), .place = "each[1]"}, .attempt = 2}); }).out,
            "second\n");
  EXPECT_EQ(answer_of([] { return logs({.of = {.run = of(letters_), .place = ""}, .attempt = {}}); }).out,
            "==> each[1] attempt 1 <==\nfirst\n==> each[1] attempt 2 <==\nsecond\n==> each[2] attempt 1 <==\nother\n");
  const Answer none = answer_of([] { return logs({.of = {.run = of(letters_), .place = "list"}, .attempt = {}}); });
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(none.err, "the attempts of list wrote nothing\n");
  const Answer silent = answer_of([] { return logs({.of = {.run = of(letters_), .place = "each[0]"}, .attempt = 1}); });
  EXPECT_EQ(silent.code, 0);
  EXPECT_EQ(silent.err, "attempt 1 of each[0] wrote nothing\n");
  const Answer never = answer_of([] { return logs({.of = {.run = of(letters_), .place = "each[0]"}, .attempt = 2}); });
  EXPECT_EQ(never.code, 4);
  EXPECT_HAS(never.err, "each[0] has had no attempt 2: it has had 1 attempt");
  const Answer not_yet = answer_of([] { return logs({.of = {.run = of(later_), .place = ""}, .attempt = {}}); });
  EXPECT_EQ(not_yet.code, 4);
  EXPECT_HAS(not_yet.err, "this run has had no attempt yet");
}

TEST_F(CliLook, WhyTellsEveryDecision) {
  const Answer flaky = answer_of([] { return why({.run = of(flaky_), .place = {}}); });
  EXPECT_EQ(flaky.code, 0);
  EXPECT_HAS(flaky.out, "flaky: succeeded");
  EXPECT_HAS(flaky.out, "HTTP 429: slow down");
  EXPECT_HAS(flaky.out, "It is transient, throttled, by the rule: http 429.");
  EXPECT_HAS(flaky.out, "Tried again: transient failures are retried; max_attempts 5 leaves 4.");
  EXPECT_HAS(flaky.out, "It waited 2ms before attempt 2: the other side asked for at least that long (Retry-After)");
  EXPECT_HAS(flaky.out, "Attempt 3 succeeded");
  EXPECT_HAS(flaky.out, "Its policy (the step's own):");
  const Answer item = answer_of([] { return why({.run = of(letters_), .place = "each[1]"}); });
  EXPECT_HAS(item.out, "Given up (attempts): that was attempt 2 of max_attempts 2.");
  EXPECT_HAS(item.out, "allow more attempts: max_attempts 3 or more in the policy of step each");
  EXPECT_HAS(item.out, "reprise dead-letters retry " + to_string(letters_) + " --step each --item 1 --store " + url_);
  EXPECT_HAS(item.out, "kept as a dead letter");
  const Answer bad = answer_of([] { return why({.run = of(bad_, true), .place = {}}); });
  expect_json_lines(bad.out, 1);
  EXPECT_HAS(bad.out, R"("decision":"stop","reason":"permanent")");
  EXPECT_HAS(bad.out, R"("policy_level":"built-in","max_attempts":3)");
  EXPECT_HAS(bad.out, "add ValueError to only_on");
  EXPECT_HAS(answer_of([] { return why({.run = of(letters_), .place = "each[0]"}); }).out, "each[0] never failed");
  EXPECT_EQ(answer_of([] { return why({.run = of(letters_), .place = "each[3]"}); }).code, 4);
  const Answer typo = answer_of([] { return why({.run = of(letters_), .place = "eech"}); });
  EXPECT_EQ(typo.code, 4);
  EXPECT_HAS(typo.err, "did you mean each?");
  EXPECT_EQ(answer_of([] { return why({.run = of(letters_), .place = "each[x]"}); }).code, 2);
}

TEST_F(CliLook, ReplayLeadsToWhatIsRecorded) {
  for (const RunId& run : {flaky_, letters_, bad_, later_}) {
    const Answer text = answer_of([&] { return replay(of(run)); });
    EXPECT_EQ(text.code, 0) << text.out;
    EXPECT_HAS(text.out, "That is what is recorded.");
    const Answer json = answer_of([&] { return replay(of(run, true)); });
    expect_json_lines(json.out, 1);
    EXPECT_HAS(json.out, R"("same":true)");
  }
}

TEST_F(CliLook, DeadLettersAreListedAndShown) {
  const Answer list = answer_of([] { return dead_letters_list({.of = {.run = {.store = url_}, .place = {}}}); });
  EXPECT_EQ(list.code, 0);
  EXPECT_HAS(list.out, to_string(letters_) + "  letters  each[1]  2");
  const Answer of_run = answer_of([] { return dead_letters_list({.of = {.run = of(letters_, true), .place = {}}}); });
  expect_json_lines(of_run.out, 1);
  EXPECT_EQ(answer_of([] { return dead_letters_list({.of = {.run = of(bad_, true), .place = {}}}); }).out, "");
  const Answer one = answer_of([] { return dead_letters_show({.run = of(letters_), .place = "each[1]"}); });
  EXPECT_EQ(one.code, 0);
  EXPECT_HAS(one.out, "input     b\n");
  EXPECT_HAS(one.out, "attempt 2 TimeoutError: no answer (transient, timeout)");
  const Answer json = answer_of([] { return dead_letters_show({.run = of(letters_, true), .place = "each[1]"}); });
  expect_json_lines(json.out, 1);
  EXPECT_HAS(json.out, R"("input":"b")");
  EXPECT_EQ(answer_of([] { return dead_letters_show({.run = of(letters_), .place = "each[0]"}); }).code, 4);
}

TEST_F(CliLook, DoctorFindsTrouble) {
  const Answer fine = answer_of([] { return doctor({.store = url_}); });
  EXPECT_EQ(fine.code, 0) << fine.out;
  EXPECT_HAS(fine.out, "1 running, 0 paused, 1 failed");
  EXPECT_HAS(fine.out, "no process owns the store");
  const Answer json = answer_of([] { return doctor({.store = url_, .json = true}); });
  expect_json_lines(json.out, 1);
  EXPECT_HAS(json.out, R"({"ok":true,"store":)");
  const std::string broken = folder_ + "/broken.db";
  std::ofstream{broken} << std::string(5000, 'x');
  const Answer trouble = answer_of([&] { return doctor({.store = broken}); });
  EXPECT_EQ(trouble.code, 1);
  EXPECT_HAS(trouble.out, "TROUBLE");
  EXPECT_EQ(answer_of([] { return doctor({.store = folder_ + "/new/store.db"}); }).code, 0);
  const std::string owned = "sqlite:" + folder_ + "/owned.db";
  Engine engine{{.store = owned}};
  EXPECT_HAS(answer_of([&] { return doctor({.store = owned}); }).out,
             "process " + std::to_string(getpid()) + " owns the store");
}

TEST_F(CliLook, WhatIsNotThereHasItsExitCode) {
  EXPECT_EQ(answer_of([] { return show({.run = of("ffffffff")}); }).code, 4);
  EXPECT_EQ(answer_of([] { return show({.run = of("no id")}); }).code, 4);
  EXPECT_EQ(answer_of([] { return show({.run = {.store = folder_ + "/nothing.db", .run = "@last"}}); }).code, 4);
  EXPECT_EQ(answer_of([] { return runs({.store = "memory:"}); }).code, 2);
  const std::string broken = folder_ + "/broken2.db";
  std::ofstream{broken} << std::string(5000, 'x');
  const Answer damaged = answer_of([&] { return runs({.store = broken}); });
  EXPECT_EQ(damaged.code, 5);
  EXPECT_EQ(damaged.out, "");
  EXPECT_HAS(damaged.err, "reprise: ");
}

TEST_F(CliLook, TheCommandLineReachesTheCommands) {
  const auto run_line = [](const std::vector<std::string>& words) {
    std::vector<const char*> arguments{"reprise"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    return answer_of([&] { return run(arguments); });
  };
  expect_json_lines(run_line({"runs", "--store", url_, "--status", "failed", "--since", "1h", "--format", "json"}).out,
                    1);
  EXPECT_EQ(run_line({"why", "@last-failed", "bad", "--store", url_}).code, 0);
  EXPECT_EQ(run_line({"dead-letters", "show", to_string(letters_), "each[1]", "--store", url_}).code, 0);
  EXPECT_EQ(run_line({"events", "@last", "--store", url_}).code, 0);
  EXPECT_EQ(run_line({"replay", "@last-failed", "--store", url_}).code, 0);
  EXPECT_EQ(run_line({"doctor", "--store", url_}).code, 0);
  EXPECT_HAS(run_line({"runs", "--status", "faild"}).err, "did you mean failed?");
  EXPECT_HAS(run_line({"runs", "--since", "24"}).err, "24 has no unit");
  EXPECT_EQ(run_line({"show"}).code, 2);
  EXPECT_EQ(run_line({"logs", "@last", "--attempt", "0"}).code, 2);
}

TEST(CliStoreOption, ComesFromTheFlagTheEnvironmentOrTheDefault) {
  unsetenv("REPRISE_STORE");
  EXPECT_EQ(store_url(""), "sqlite:.reprise/reprise.db");
  setenv("REPRISE_STORE", "sqlite:/tmp/other.db", 1);
  EXPECT_EQ(store_url(""), "sqlite:/tmp/other.db");
  EXPECT_EQ(store_url("sqlite:x.db"), "sqlite:x.db");
  unsetenv("REPRISE_STORE");
  EXPECT_EQ(store_folder("sqlite:.reprise/reprise.db"), ".reprise");
  EXPECT_EQ(store_folder("x.db"), ".");
  EXPECT_EQ(store_path("memory:"), "");
  EXPECT_EQ(store_path("./a:b.db"), "./a:b.db");
  EXPECT_EQ(store_path("my.db:1"), "my.db:1");
  EXPECT_EQ(exit_code_of(ErrorCode::not_found), 4);
  EXPECT_EQ(exit_code_of(ErrorCode::store_locked), 5);
  EXPECT_EQ(exit_code_of(ErrorCode::timed_out), 124);
  EXPECT_EQ(exit_code_of(ErrorCode::invalid), 2);
}

TEST(CliWorkPlace, IsAStepOrOneItemOfIt) {
  EXPECT_EQ(parse_work_place("fetch").value(), (WorkPlace{"fetch", {}}));
  EXPECT_EQ(parse_work_place("fetch[57]").value(), (WorkPlace{"fetch", 57}));
  for (const std::string_view wrong :
       {"", "[1]", "fetch[", "fetch[]", "fetch[1", "fetch[-1]", "fetch[1]x", "fetch[99999999999]"})
    EXPECT_FALSE(parse_work_place(wrong)) << wrong;
}

TEST(CliColumns, AreAsWideAsTheyNeed) {
  EXPECT_EQ(columns({{"A", "B"}, {"längste", "x"}, {"y", ""}}), "A        B\nlängste  x\ny\n");
  EXPECT_EQ(columns({{"A", "B"}, {"日本", "x"}}), "A     B\n日本  x\n");
  EXPECT_EQ(preview("a\nb", 10), "a b");
  EXPECT_EQ(preview("abcdef", 3), "abc… (6 bytes)");
}

}  // namespace
}  // namespace reprise::cli
