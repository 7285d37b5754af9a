// What the real command tells on standard error while it runs, in each of its ways, and what it says at the end.
#include <regex>

#include <gtest/gtest.h>

#include "event/event_schema.hpp"
#include "flow_runs/flow_run.hpp"
#include "json/json.hpp"
#include "json/json_schema.hpp"

namespace reprise {
namespace {

using namespace testing_support;

const std::string nightly = R"(name: nightly
steps:
  - id: fetch
    run: "test $REPRISE_ATTEMPT = 2 || { echo connection reset >&2; exit 75; }"
    retry: {policy: standard, initial: 1ms, jitter: none}
  - id: load
    needs: fetch
    for_each: [a, b, c]
    max_parallel: 1
    run: "test $REPRISE_ITEM != 1 || { echo out; echo no such table >&2; exit 3; }"
    retry: {policy: standard, max_attempts: 2, initial: 1ms, jitter: 10%}
  - {id: report, needs: load, run: "true"}
)";

// Times, ids and how long things took differ each time.
std::string without_numbers(std::string text) {
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"[0-9]{2}:[0-9]{2}:[0-9]{2}Z", "TIME"},
           {"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "RUN"},
           {"[0-9.]+(us|ms|s)\\b", "SPAN"},
           {"took( +)what", "took what"},
           {"( +)SPAN( +)exit", " SPAN exit"}})
    text = std::regex_replace(text, std::regex{what}, with);
  return text;
}

TEST(ProgressOfRuns, PlainIsOneLineForEachEventAndTheLastWords) {
  FlowFolder folder;
  const Outcome outcome = folder.run(nightly, {"--progress", "plain"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(
      without_numbers(outcome.err),
      "TIME run RUN submitted\n"
      "TIME fetch attempt 1/3 started\n"
      "TIME fetch attempt 1/3 failed: exit 75: connection reset (transient); retry in SPAN\n"
      "TIME fetch attempt 2/3 started\n"
      "TIME fetch done after 2 attempts in SPAN\n"
      "TIME load 3 items\n"
      "TIME load[1] b attempt 1/2 failed: exit 3: no such table (transient); retry in SPAN\n"
      "TIME load[1] b attempt 2/2 failed: exit 3: no such table (transient); given up: its attempts were used up\n"
      "TIME load finished: 2 of 3 succeeded, 1 failed, in SPAN\n"
      "TIME report cannot be reached: a step it needs has failed\n"
      "TIME run failed after SPAN\n"
      "load[1] b exhausted all 2 attempts (SPAN)\n"
      "    attempt  took what                               then\n"
      "          1 SPAN exit 3: no such table (transient)  waited SPAN\n"
      "          2 SPAN exit 3: no such table (transient)  gave up\n"
      "    its final output, from .reprise/logs/RUN/load/1.2.log:\n"
      "    | out\n"
      "    | no such table\n"
      "\n"
      "retry statistics\n"
      "  work with retries         2\n"
      "  succeeded after retry     1 (50.0 %)\n"
      "  failed after all retries  1 (50.0 %)\n"
      "  total retries             2\n"
      "  average per retried item  1.0\n"
      "  time spent waiting        SPAN\n"
      "\n"
      "run RUN failed in SPAN: 3 steps, 6 attempts, 2 retries\n"
      "  why:       reprise why RUN\n"
      "  try again: reprise retry RUN\n"
      "failed: load[1] b exhausted all 2 attempts: exit 3: no such table\n");
}

TEST(ProgressOfRuns, TheLastLineIsTheVerdict) {
  FlowFolder folder;
  const auto last_line = [](const std::string& text) {
    const std::string whole = text.substr(0, text.size() - 1);
    return whole.substr(whole.rfind('\n') + 1);
  };
  EXPECT_EQ(last_line(folder.run("steps: [{id: a, run: 'true'}]").err), "succeeded");
  const std::string map = "steps: [{id: load, for_each: [0, 1, 2], run: 'test ${item} = 1', retry: none, ";
  EXPECT_EQ(last_line(folder.run(map + "on_failure: dead_letter}]").err), "succeeded with 2 dead letters (of 3 items)");
  EXPECT_EQ(last_line(folder.run(map + "tolerate: 2}]").err), "succeeded with 2 failures");
  const Outcome failed = folder.run(map + "tolerate: 1}]", {"--annotations", "github"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(last_line(failed.err), "failed: load[0] gave up after 1 attempt: exit 1");
}

TEST(ProgressOfRuns, PlainIsWhatAutoMeansWithoutATerminalAndHasNoEscapeCodes) {
  FlowFolder folder;
  folder.set("TERM", "xterm-256color");
  const Outcome outcome = folder.run(nightly);
  EXPECT_NE(outcome.err.find("fetch attempt 1/3 started"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find_first_of("\x1b\r"), std::string::npos);
}

TEST(ProgressOfRuns, JsonIsTheRecordedEventsLineByLine) {
  FlowFolder folder;
  const Outcome outcome = folder.run(nightly, {"--progress", "json"});
  const Outcome recorded = folder.reprise({"events", "@last", "--format", "json"});
  EXPECT_EQ(outcome.err, recorded.out);
  const auto schema = json::JsonSchema::compile(*json::parse_json(event::event_schema()));
  ASSERT_TRUE(schema.has_value());
  std::istringstream lines{outcome.err};
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const auto event = json::parse_json(line);
    ASSERT_TRUE(event.has_value()) << line;
    EXPECT_TRUE(schema->mistakes_in(*event).empty()) << line << "\n" << schema->mistakes_in(*event).front();
  }
  EXPECT_GT(count, 15U);
}

// More than is kept for a slow reader, which looks only when the run is over.
TEST(ProgressOfRuns, JsonIsCompleteHoweverSlowlyItIsRead) {
  FlowFolder folder;
  folder.flow(R"(
steps:
  - {id: list, run: "echo [$(seq -s , 2200)]", output: json}
  - id: fetch
    needs: list
    for_each: ${steps.list.output}
    http: {url: "http://127.0.0.1:9/"}
    retry: {max_attempts: 12, backoff: constant, initial: 0s, max: 0s}
    on_failure: dead_letter
)");
  const std::string read_late = R"(
mkfifo pipe
"$0" run flow.yaml --progress json 2>pipe &
exec 3<pipe
while "$0" wait @last 2>/dev/null; test $? = 4; do sleep 0.1; done
grep '^{' <&3 >told.json
wait $!)";
  const Outcome outcome = run_program({"/usr/bin/env", "-C", folder.path(), "sh", "-c", read_late, REPRISE_COMMAND}, {},
                                      {{"HOME", folder.path()}});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const Outcome recorded = folder.reprise({"events", "@last", "--format", "json"});
  EXPECT_GT(std::ranges::count(recorded.out, '\n'), 66'000);
  EXPECT_TRUE(folder.read("told.json") == recorded.out);
}

TEST(ProgressOfRuns, QuietSaysWhatFailedInOneLine) {
  FlowFolder folder;
  const Outcome outcome = folder.run(nightly, {"--progress", "quiet"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "reprise: failed: load[1] b exhausted all 2 attempts: exit 3: no such table\n");
}

TEST(ProgressOfRuns, AnnotationsNameTheFileAndTheLineOfTheStep) {
  FlowFolder folder;
  const Outcome outcome = folder.run(nightly, {"--progress", "quiet", "--annotations", "github"});
  EXPECT_EQ(outcome.err,
            "::error file=flow.yaml,line=6,title=load[1] failed after 2 attempts::exit 3: no such table (transient)\n"
            "::warning file=flow.yaml,line=3,title=fetch recovered::it succeeded only after 1 retry\n");
  const Outcome wrong = folder.run(nightly, {"--annotations", "gitlab"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("--annotations: expected github, found gitlab"), std::string::npos) << wrong.err;
}

TEST(ProgressOfRuns, WhatIsRetriedLaterCountsWhatWasBefore) {
  FlowFolder folder;
  folder.program("work.sh", "test $REPRISE_ITEM != 2 || test -e ok || exit 1");
  const std::string document =
      "steps:\n  - {id: each, for_each: [a, b, c, d], run: ./work.sh, retry: {policy: none}, on_failure: "
      "dead_letter}\n";
  EXPECT_EQ(folder.run(document, {"--progress", "plain"}).exit_code, 0);
  folder.write("ok", "");
  const Outcome again = folder.reprise({"dead-letters", "retry", "@last", "--progress", "plain"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.err.find("each 4 items"), std::string::npos) << "that was told before: " << again.err;
  EXPECT_NE(again.err.find("1 step, 5 attempts"), std::string::npos) << again.err;
}

TEST(ProgressOfRuns, AHundredItemsThatFailAreFewLines) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - {id: list, run: "seq -s, 1 400 | sed 's/.*/[&]/'", output: json}
  - id: each
    needs: list
    for_each: ${steps.list.output}
    run: exit 75
    retry: {policy: standard, max_attempts: 2, initial: 1ms}
    max_parallel: 4
    on_failure: dead_letter
)",
                                     {"--progress", "plain"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_LT(std::ranges::count(outcome.err, '\n'), 80) << outcome.err;
  EXPECT_NE(outcome.err.find("further trouble with its items is counted, not told"), std::string::npos);
  EXPECT_NE(outcome.err.find("  and 390 more that failed\n"), std::string::npos);
}

}  // namespace
}  // namespace reprise
