// What a failed attempt leaves behind, and who gets it: the next attempt, its fix, its handlers, and people, also after a crash.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "flow_runs/flow_run.hpp"
#include "support/scripted_server.hpp"

namespace reprise::testing_support {
namespace {

const boost::json::object& error_of(const boost::json::object& event) { return object_of(event, "error"); }

std::size_t lines_in(std::string_view text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); }

std::vector<std::string> list_of(const boost::json::object& object, std::string_view field) {
  std::vector<std::string> texts;
  if (!has(object, field)) return texts;
  for (const auto& each : object.at(field).as_array()) texts.emplace_back(each.as_string());
  return texts;
}

// Like go test: which test fails depends on the attempt, and the last line is the same for all.
constexpr const char* go_test = R"(m=$1
printf -- '--- FAIL: Test%s (0.00s)\n    calc_test.go:9: %s is broken\nFAIL\nexit status 1\nFAIL\texample.org/calc\t0.003s\n' $m $m
exit 1)";

TEST(FlowRunsEvidence, another_failing_test_each_time_is_retried_to_success_and_the_fix_sees_which) {
  FlowFolder folder;
  folder.program("go-test", go_test);
  const Outcome outcome = folder.run(R"(
dialect: wave
runtime: {circuit_breaker: {limit: 3}}
steps:
  - id: suite
    kind: test
    run: |
      case $REPRISE_ATTEMPT in 1) go-test Add;; 2) go-test Sub;; 3) go-test Mul;; 4) go-test Div;; *) echo ok;; esac
    fix: {run: 'echo "$REPRISE_LAST_ERROR" >> short.txt; cat "$REPRISE_LAST_ERROR_FILE" >> full.txt; echo ${last_error.failing} >> failing.txt'}
    retry: {policy: standard, max_attempts: 6, base_delay: 1ms}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.count("circuit_opened"), 0U);
  EXPECT_EQ(folder.lines("short.txt"),
            (std::vector<std::string>{"exit 1: --- FAIL: TestAdd (0.00s)", "exit 1: --- FAIL: TestSub (0.00s)",
                                      "exit 1: --- FAIL: TestMul (0.00s)", "exit 1: --- FAIL: TestDiv (0.00s)"}));
  EXPECT_NE(folder.read("full.txt").find("calc_test.go:9: Mul is broken"), std::string::npos)
      << folder.read("full.txt");
  EXPECT_NE(folder.read("full.txt").find("FAIL\texample.org/calc\t0.003s"), std::string::npos);
  EXPECT_NE(folder.read("failing.txt").find("TestDiv"), std::string::npos) << folder.read("failing.txt");
  EXPECT_TRUE(folder.files_with("TestAdd", ".reprise/logs").size() == 1)
      << "only the log: the file is gone with its use";
}

TEST(FlowRunsEvidence, the_same_failing_test_opens_the_breaker_whatever_else_is_printed) {
  FlowFolder folder;
  folder.program("go-test", go_test);
  EXPECT_EQ(folder
                .run(R"(
dialect: wave
runtime: {circuit_breaker: {limit: 3}}
steps:
  - id: suite
    kind: test
    run: 'echo "ran $REPRISE_ATTEMPT of many on host number $REPRISE_ATTEMPT" >&2; go-test Add'
    retry: {policy: standard, max_attempts: 6, base_delay: 1ms}
)")
                .exit_code,
            1);
  EXPECT_EQ(folder.count("started", "suite"), 3U);
  EXPECT_EQ(text_of(folder.last("failed", "suite"), "stop_reason"), "circuit_open");
}

TEST(FlowRunsEvidence, ends_of_both_streams_are_kept_in_whole_lines_and_shown_everywhere) {
  FlowFolder folder;
  folder.set("TOKEN", "topsecretvalue");
  folder.program("noisy", R"(i=0; while [ $i -lt 400 ]; do echo "out line $i"; echo "err line $i" >&2; i=$((i+1)); done
echo "the token is $TOKEN" >&2; exit 3)");
  folder.run(R"(
secrets: {token: {env: TOKEN}}
steps:
  - id: a
    run: noisy
    retry: {max_attempts: 2, initial: 1ms}
    on_failure:
      run: 'cat "$REPRISE_LAST_ERROR_FILE" > handed.txt; printf "%s" ${last_error.stderr} > stderr.txt; printf "%s" ${last_error.output} > output.txt'
)");
  const auto error = error_of(folder.first("failed", "a"));
  for (const char* stream : {"stdout", "stderr"}) {
    const std::string text = text_of(error, stream);
    EXPECT_GT(text.size(), 3500U) << stream;
    EXPECT_LE(text.size(), 4096U) << stream;
    EXPECT_TRUE(text.starts_with(std::string{stream}.substr(3) + " line ")) << text.substr(0, 60);
  }
  EXPECT_TRUE(text_of(error, "stderr").ends_with("the token is ***\n")) << text_of(error, "stderr");
  EXPECT_EQ(folder.read("stderr.txt"), text_of(error, "stderr"));
  EXPECT_EQ(folder.read("output.txt"), text_of(error, "stdout") + text_of(error, "stderr"));
  EXPECT_NE(folder.read("handed.txt").find("err line 399"), std::string::npos);
  const std::string why = folder.why("a");
  EXPECT_NE(why.find("| err line 399"), std::string::npos) << why;
  EXPECT_LT(lines_in(why), 60U) << "people get the last lines";
  EXPECT_NE(folder.reprise({"why", "@last", "--format", "json"}).out.find("err line 300"), std::string::npos);
  EXPECT_EQ(folder.files_with("topsecretvalue").size(), 0U);
  const std::string page = folder.reprise({"show", "@last", "--html", "-"}).out;
  EXPECT_NE(page.find("err line 399"), std::string::npos);
  EXPECT_FALSE(has(object_of(folder.last("started", "a"), "original_error"), "stderr")) << "told once, where it failed";
}

TEST(FlowRunsEvidence, all_mistakes_of_a_schema_reach_the_next_attempt) {
  FlowFolder folder;
  folder.write(
      "answer.json",
      R"({"type": "object", "required": ["a"], "properties": {"b": {"type": "integer"}, "c": {"type": "string"}}})");
  folder.run(R"(
steps:
  - id: ask
    run: |
      if [ -n "$REPRISE_LAST_ERROR" ]; then printf '%s' ${last_error.mistakes} > mistakes.json; printf '%s' ${last_error.output} > before.txt; fi
      echo 'thinking' >&2
      case $REPRISE_ATTEMPT in 1) echo '{"b": "x", "c": 1}';; *) echo '{"a": 1, "b": 2, "c": "x"}';; esac
    output: json
    check: {schema: answer.json}
    retry: {max_attempts: 3, initial: 1ms}
)");
  EXPECT_EQ(folder.count("rework", "ask"), 1U);
  const auto error = error_of(folder.first("failed", "ask"));
  EXPECT_EQ(list_of(error, "mistakes").size(), 3U);
  EXPECT_NE(text_of(error, "message").find("(and 2 more)"), std::string::npos) << text_of(error, "message");
  EXPECT_NE(folder.read("mistakes.json").find("/c: expected"), std::string::npos) << folder.read("mistakes.json");
  EXPECT_NE(folder.read("before.txt").find(R"({"b": "x", "c": 1})"), std::string::npos);
  EXPECT_NE(folder.read("before.txt").find("thinking"), std::string::npos);
  EXPECT_NE(folder.why("ask").find("Mistakes in its result:"), std::string::npos) << folder.why("ask");
}

TEST(FlowRunsEvidence, a_schema_failure_is_told_apart_by_places_and_rules_not_by_values) {
  const auto starts = [](const std::string& second_answer) {
    FlowFolder folder;
    folder.write("answer.json", R"({"properties": {"b": {"type": "integer"}, "c": {"type": "integer"}}})");
    folder.program("ask",
                   "case $REPRISE_ATTEMPT in 2) echo '" + second_answer + R"(';; *) echo '{"b": "one"}';; esac)");
    folder.run(R"(
runtime: {circuit_breaker: {limit: 2}}
steps: [{id: ask, run: ask, output: json, check: {schema: answer.json}, retry: {max_attempts: 4, initial: 1ms}}]
)");
    return folder.count("started", "ask");
  };
  EXPECT_EQ(starts(R"({"b": "two"})"), 2U) << "the same place and rule";
  EXPECT_EQ(starts(R"({"c": "two"})"), 3U) << "another place: the first one comes twice with attempt 3";
}

TEST(FlowRunsEvidence, it_survives_kill_9_in_the_wait_and_every_item_has_its_own) {
  FlowFolder folder;
  folder.program("item", R"(if [ -e ready ]; then cp "$REPRISE_LAST_ERROR_FILE" "given.$1"; exit 0; fi
i=0; while [ $i -lt 600 ]; do echo "item $1 line $i"; i=$((i+1)); done; exit 1)");
  auto running = folder.start({"run", folder.flow(R"(
steps:
  - id: each
    for_each: [one, two, three]
    run: "item ${item}"
    retry: {max_attempts: 2, backoff: constant, initial: 2s, jitter: none}
)")});
  ASSERT_TRUE(folder.wait_for_event("retrying", "each", 3));
  running->signal(SIGKILL);
  running->join();
  folder.write("ready", "");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  for (const std::string item : {"one", "two", "three"}) {
    EXPECT_NE(folder.read("given." + item).find("item " + item + " line 599"), std::string::npos) << item;
    EXPECT_EQ(folder.read("given." + item).find("item " + item + " line 1\n"), std::string::npos) << "bounded";
  }
}

TEST(FlowRunsEvidence, a_sub_flow_hands_up_what_its_step_left_behind) {
  FlowFolder folder;
  folder.program("noisy", R"(i=0; while [ $i -lt 300 ]; do echo "inner line $i"; i=$((i+1)); done; exit 1)");
  folder.write("inner.yaml", "steps: [{id: deep, run: noisy, retry: none}]\n");
  EXPECT_EQ(folder
                .run(R"(
steps:
  - {id: outer, flow: inner.yaml, retry: none, on_failure: {run: 'cat "$REPRISE_LAST_ERROR_FILE" > handed.txt'}}
)")
                .exit_code,
            0);
  EXPECT_NE(folder.read("handed.txt").find("inner line 299"), std::string::npos) << folder.read("handed.txt");
}

TEST(FlowRunsEvidence, dead_letters_and_a_retry_by_a_person_have_it) {
  FlowFolder folder;
  folder.program("item", R"(echo "no $1" >&2; echo "because of something" >&2; exit 1)");
  folder.run("steps: [{id: each, for_each: [one], run: 'item ${item}', retry: none, on_failure: dead_letter}]");
  const std::string shown = folder.reprise({"dead-letters", "show", "@last", "each[0]"}).out;
  EXPECT_NE(shown.find("| because of something"), std::string::npos) << shown;
  folder.reprise({"retry", "@last"});
  EXPECT_EQ(text_of(error_of(folder.last("failed", "each")), "stderr"), "no one\nbecause of something\n");
}

TEST(FlowRunsEvidence, the_body_of_an_answer_is_evidence_and_its_schema_too) {
  ScriptedServer server;
  server.on("/a").answer(500, "first line\nsecond line\n").then(200, "fine");
  FlowFolder folder;
  folder.run(R"(
steps:
  - id: call
    http: {url: ")" +
             server.url("/a") + R"(", method: POST, body: "${last_error.output}"}
    retry: {max_attempts: 2, initial: 1ms}
)");
  EXPECT_EQ(text_of(error_of(folder.first("failed", "call")), "stdout"), "first line\nsecond line\n");
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_EQ(server.requests()[1].body, "first line\nsecond line\n");
}

TEST(FlowRunsEvidence, error_lines_of_languages_give_types_and_messages) {
  FlowFolder folder;
  folder.program("python", R"(cat >&2 <<END
Traceback (most recent call last):
  File "a.py", line 1, in <module>
ModuleNotFoundError: No module named 'x'
END
exit 1)");
  folder.program("node", R"(cat >&2 <<END
Error: connect ECONNREFUSED 127.0.0.1:1
    at x (y:1:2) {
  errno: -111
}

Node.js v20.1.0
END
exit 1)");
  folder.program("fetch", R"(echo 'curl: (22) The requested URL returned error: 404' >&2; exit 22)");
  folder.run(R"(
steps:
  - {id: python, run: python, retry: &quick {max_attempts: 2, initial: 1ms}, on_failure: continue}
  - {id: node, run: node, retry: *quick, on_failure: continue}
  - {id: curl, run: fetch, retry: *quick, on_failure: continue}
)");
  const auto python = error_of(folder.last("failed", "python"));
  EXPECT_EQ(text_of(python, "type"), "ModuleNotFoundError");
  EXPECT_EQ(text_of(python, "message"), "exit 1: ModuleNotFoundError: No module named 'x'");
  EXPECT_EQ(text_of(python, "class"), "deterministic");
  EXPECT_EQ(folder.count("started", "python"), 1U);
  EXPECT_EQ(text_of(error_of(folder.last("failed", "node")), "type"), "ConnectionRefusedError");
  EXPECT_EQ(folder.count("started", "node"), 2U);
  EXPECT_EQ(text_of(error_of(folder.last("failed", "curl")), "http_status"), "404");
  EXPECT_EQ(folder.count("started", "curl"), 1U);
}

// Begun by 0.1.0 and killed in the wait after its second failure: two failing tests with the same last line, which that version took for the
// same failure. The third opens the circuit, as it would have there.
TEST(OldStoresRules, AreKeptForTellingFailuresApart) {
  FlowFolder folder;
  std::filesystem::create_directory(folder.path_of(".reprise"));
  std::filesystem::copy_file(std::string{REPRISE_OLD_STORES} + "/version_2_breaker.db",
                             folder.path_of(".reprise/reprise.db"));
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 1);
  EXPECT_EQ(folder.count("started", "suite"), 3U);
  EXPECT_EQ(text_of(folder.last("failed", "suite"), "stop_reason"), "circuit_open");
  EXPECT_EQ(text_of(error_of(folder.last("failed", "suite")), "message"), "exit 1: FAILexample.org/calc0.003s");
}

}  // namespace
}  // namespace reprise::testing_support
