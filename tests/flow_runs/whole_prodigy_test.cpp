// Prodigy's page "Backoff Strategies" as documents with every key it has, run by the real command: what happens, when, and how it is told.
// docs/rows/prodigy.md has its sentences one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

namespace reprise::testing_support {
namespace {

std::vector<double> delays_of(const Events& events, std::string_view step) {
  std::vector<double> delays;
  for (const auto& event : of_type(events, "retrying", step)) delays.push_back(number_of(event, "delay_ms"));
  return delays;
}

bool has_words(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

boost::json::object error_of(const boost::json::object& event) { return object_of(event, "error"); }

// ---- every key ----------------------------------------

// Three items: "b" is overloaded twice, "c" does not please the validator until it has looked three times, "d" is beyond help.
constexpr std::string_view document = R"(
name: resilient-mapreduce-job
mode: mapreduce
setup:
  - shell: "echo x >> setup.calls; test $(wc -l < setup.calls) -ge 3"
    retry_config: {attempts: 3, backoff: fixed, initial_delay: 5ms, max_delay: 1s}
error_policy:
  retry_config: {attempts: 9}
map:
  input: "items.json"
  json_path: "$.items[*]"
  max_parallel: 1
  agent_timeout_secs: 900
  timeout_config:
    agent_timeout_secs: 600
    command_timeouts: {claude: 300, shell: 1m}
    timeout_policy: hybrid
    timeout_action: dlq
    retry_config:
      max_attempts: 4
      backoff: {exponential: {initial: 10ms, multiplier: 2.0}}
      max_delay: 15ms
      jitter: true
      jitter_factor: 0.1
  error_policy:
    retry_config: {attempts: 2, backoff: {linear: {initial: 1s, increment: 2s}}}
    on_item_failure: dlq
    continue_on_failure: true
    max_failures: 2
    circuit_breaker: {failure_threshold: 5, success_threshold: 3, timeout: 1m, half_open_requests: 3}
  agent_template:
    - claude: "/process-item '${item.id}'"
    - shell: "validate ${item.id} ${item.output}"
      retry_config: {attempts: 6, backoff: {fibonacci: {initial: 3ms}}, retry_budget: 1m, retry_on: [network, {pattern: "not yet"}]}
      on_failure:
        claude: "/fix-validation-error ${item.id} ${last_error.message}"
reduce:
  - shell: "echo ${map.successful} of ${map.total}, ${map.failed} failed"
  - claude: "/summarize ${map.results} of ${map.outputs}"
    retry_config: {attempts: 4, backoff: {custom: {delays: [2ms, 4ms]}}, max_delay: 6ms}
)";

constexpr std::string_view claude = R"sh(echo "$2" >> claude.calls
case "$2" in
  /summarize*) [ "$REPRISE_ATTEMPT" -ge 4 ] || exit 1;;
  *process-item*b*) [ "$REPRISE_ATTEMPT" -ge 3 ] || { echo "overloaded" >&2; exit 1; };;
  *process-item*d*) echo "hopeless" >&2; exit 1;;
  /fix*) echo "cannot be fixed" >&2; exit 1;;
esac
echo "answer to $2")sh";

constexpr std::string_view validate = R"sh(echo "$2" >> "validate-$1.calls"
[ "$1" != c ] || [ "$(wc -l < validate-c.calls)" -ge 3 ] || { echo "not yet" >&2; exit 1; }
echo "valid $1")sh";

FlowFolder& prepared(FlowFolder& folder) {
  folder.write("items.json", R"({"items": [{"id": "a"}, {"id": "b"}, {"id": "c"}, {"id": "d"}]})");
  folder.program("claude", claude);
  folder.program("validate", validate);
  return folder;
}

TEST(WholeProdigy, EveryKeyOfItsDocument) {
  FlowFolder folder;
  const Outcome outcome = prepared(folder).run(document);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has_words(outcome.err, "error_policy stands under map too, and that one counts")) << outcome.err;
  EXPECT_TRUE(has_words(outcome.err, "agent_timeout_secs stands under map too")) << outcome.err;
  EXPECT_TRUE(has_words(outcome.err, "succeeded with 1 dead letter (of 4 items)")) << outcome.err;

  const Events events = folder.events();
  EXPECT_EQ(delays_of(events, "setup-1"), (std::vector<double>{5, 5}));
  EXPECT_EQ(delays_of(events, "map[0]"), (std::vector<double>{}));
  const Events waits = of_type(events, "retrying", "map[1]");  // timeout_config is the more specific
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(number_of(waits[0], "nominal_ms"), 10);
  EXPECT_EQ(number_of(waits[0], "min_ms"), 9);
  EXPECT_EQ(number_of(waits[0], "max_ms"), 11);
  EXPECT_EQ(number_of(waits[1], "nominal_ms"), 15) << "max_delay";
  EXPECT_EQ(delays_of(events, "map[2]"), (std::vector<double>{3, 3})) << "the command's own";
  EXPECT_EQ(number_of(error_of(of_type(events, "failed", "map[2]")[0]), "command"), 2);
  EXPECT_EQ(of_type(events, "started", "map[3]").size(), 4U);
  EXPECT_EQ(delays_of(events, "reduce-2"), (std::vector<double>{2, 4, 6}));
  EXPECT_EQ(text_of(folder.last("completed", "reduce-1"), "output"), "3 of 4, 1 failed");
  EXPECT_EQ(text_of(folder.last("ended"), "status"), "succeeded");
}

TEST(WholeProdigy, ACommandWithAPolicyIsTriedAgainAlone) {
  FlowFolder folder;
  prepared(folder).run(document);
  EXPECT_EQ(folder.lines("validate-c.calls"), (std::vector<std::string>(3, "answer to /process-item 'c'")))
      << "what the command before it gave is still known";
  std::size_t processed = 0;
  for (const std::string& call : folder.lines("claude.calls")) processed += call == "/process-item 'c'" ? 1 : 0;
  EXPECT_EQ(processed, 1U);
  const std::string why = folder.why("map[2]");
  EXPECT_TRUE(has_words(why, "\"not yet\"") || has_words(why, "/not yet/")) << why;
  EXPECT_TRUE(has_words(why, "attempts (max_attempts) 6 leaves 5")) << why;
}

TEST(WholeProdigy, EachCommandsOutputIsKept) {
  FlowFolder folder;
  prepared(folder).run(document);
  const auto calls = folder.lines("claude.calls");
  const auto summary = std::ranges::find_if(calls, [](const std::string& call) { return call.starts_with("/summarize"); });
  ASSERT_NE(summary, calls.end());
  EXPECT_TRUE(has_words(*summary, R"(["answer to /process-item 'a'","valid a"])")) << *summary;
  EXPECT_TRUE(has_words(*summary, R"(["valid a","valid b","valid c")")) << *summary;
}

TEST(WholeProdigy, ADryRunShowsAllOfIt) {
  FlowFolder folder;
  const std::string plan = prepared(folder).run(document, {"--dry-run"}).out;
  EXPECT_TRUE(has_words(plan, "runs at most 4 times, that is 3 retries [map.timeout_config.retry_config, line 20")) << plan;
  EXPECT_TRUE(has_words(plan, "runs at most 6 times, that is 5 retries of command 2 (shell) [line 34]")) << plan;
  EXPECT_TRUE(has_words(plan, "timeout    claude 5m")) << plan;
  EXPECT_TRUE(has_words(plan, "after 5 failed items in a row none begins for 1m; then 3 at a time try, and 3 successes "
                              "end it"))
      << plan;
  EXPECT_FALSE(folder.exists(".reprise"));
}

// ---- kill, interrupt, resume ----------------------------------------

TEST(WholeProdigy, KilledAndInterruptedItGoesOnWhereItWas) {
  FlowFolder folder;
  folder.write("items.json", R"([{"id": "a"}, {"id": "b"}, {"id": "c"}])");
  folder.program("claude", R"sh(echo "$2" >> "claude-$REPRISE_ITEM.calls"; echo "answer")sh");
  folder.program("work", R"sh(echo x >> "work-$1.calls"
if [ "$1" = a ] && [ ! -e go-on ]; then touch begun; exec sleep 600; fi
[ "$(wc -l < "work-$1.calls")" -ge "$2" ] || { echo "connection reset" >&2; exit 1; })sh");
  const std::string flow = folder.flow(R"(
mode: mapreduce
map:
  input: items.json
  json_path: "$[*]"
  max_parallel: 1
  error_policy:
    retry_config: {attempts: 3, backoff: {fixed: {delay: 300ms}}}
  agent_template:
    - claude: "ask ${item.id}"
    - shell: "work ${item.id} ${index + 2}"
      retry_config: {attempts: 5, backoff: {linear: {initial: 200ms, increment: 100ms}}}
reduce:
  - shell: "echo x >> reduce.calls"
)");
  auto running = folder.start({"run", flow});
  ASSERT_TRUE(folder.wait_for_file("begun"));
  running->signal(SIGKILL);  // inside an attempt
  EXPECT_EQ(running->join(), 128 + SIGKILL);
  folder.write("go-on", "");

  running = folder.start({"resume", "@last"});
  ASSERT_TRUE(folder.wait_for_event("retrying", "map[1]", 2));  // the first may be that of a loss
  running->signal(SIGKILL);                                     // in a wait
  EXPECT_EQ(running->join(), 128 + SIGKILL);

  running = folder.start({"resume", "@last"});
  ASSERT_TRUE(folder.wait_for_event("retrying", "map[2]"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);

  const Outcome outcome = folder.reprise({"resume", "@last"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Events events = folder.events();
  EXPECT_EQ(text_of(folder.last("ended"), "status"), "succeeded");
  EXPECT_EQ(of_type(events, "dead_lettered").size(), 0U);
  std::vector<double> waited = delays_of(events, "map[1]");
  std::erase(waited, 0);  // after losses
  EXPECT_EQ(waited, (std::vector<double>{200, 300}));
  for (const auto& retrying : of_type(events, "retrying", "map[1]")) {
    for (const auto& started : of_type(events, "started", "map[1]")) {
      if (number_of(started, "attempt") != number_of(retrying, "next_attempt")) continue;
      EXPECT_GE(text_of(started, "time"), text_of(retrying, "due_at"));
    }
  }
  EXPECT_EQ(folder.lines("claude-1.calls").size(), 1U) << "it had answered, and its command alone was tried again";
  EXPECT_EQ(folder.lines("reduce.calls").size(), 1U);
  const std::string why = folder.why("map[0]");
  EXPECT_TRUE(has_words(why, "The engine died during this attempt: it is lost, and not one of those that count")) << why;
}

// ---- the circuit ----------------------------------------

constexpr std::string_view circuit = R"(
mode: mapreduce
map:
  input: items.json
  json_path: "$[*]"
  max_parallel: 1
  error_policy:
    retry_config: {attempts: 1}
    circuit_breaker: {failure_threshold: 2, success_threshold: 2, timeout: OPEN, half_open_requests: 1}
  agent_template:
    - shell: "echo ${item} >> seen; test -e healed"
)";

std::string circuit_for(std::string_view open) {
  std::string text{circuit};
  return text.replace(text.find("OPEN"), 4, open);
}

TEST(WholeProdigy, AnOpenCircuitSurvivesAKillAndClosesAgain) {
  FlowFolder folder;
  folder.write("items.json", "[1, 2, 3, 4, 5, 6]");
  auto running = folder.start({"run", folder.flow(circuit_for("1500ms"))});
  ASSERT_TRUE(folder.wait_for_event("circuit_opened", "map"));
  running->signal(SIGKILL);
  running->join();
  folder.write("healed", "");
  EXPECT_TRUE(has_words(folder.why(), "After 2 failed items in a row, or one that tried, the circuit of map opened"));
  EXPECT_EQ(folder.lines("seen").size(), 2U);

  const Outcome outcome = folder.reprise({"resume", "@last"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(has_words(outcome.err, "succeeded with 2 dead letters (of 6 items)")) << outcome.err;
  const Events events = folder.events();
  const auto third = folder.first("started", "map[2]");
  EXPECT_GE(text_of(third, "time"), text_of(folder.first("circuit_opened"), "due_at"));
  EXPECT_LT(number_of(folder.first("circuit_half_opened"), "sequence"), number_of(third, "sequence"));
  EXPECT_GT(number_of(folder.first("circuit_closed"), "sequence"), number_of(third, "sequence"));
  EXPECT_EQ(folder.lines("seen"), (std::vector<std::string>{"1", "2", "3", "4", "5", "6"}));
  EXPECT_TRUE(has_words(folder.why(), "the circuit of map closed")) << folder.why();
}

TEST(WholeProdigy, AnItemThatTriesInVainOpensItAgain) {
  FlowFolder folder;
  folder.write("items.json", "[1, 2, 3]");
  EXPECT_EQ(folder.run(circuit_for("50ms")).exit_code, 1) << "none of its items succeeded";
  EXPECT_EQ(folder.count("circuit_half_opened"), 1U);
  EXPECT_EQ(folder.lines("seen").size(), 3U);
}

// ---- what was healed ----------------------------------------

constexpr std::string_view counting = R"(
mode: mapreduce
map:
  input: items.json
  json_path: "$[*]"
  error_policy: {retry_config: {attempts: 1}}
  agent_template: [{shell: "echo x >> map-${item}.calls; test ${item} -lt 3 || test -e healed"}]
reduce:
  - shell: "echo ${map.successful} of ${map.total} >> reduced.txt"
  - shell: "echo x >> report.calls"
)";

TEST(WholeProdigy, HealedDeadLettersAreReducedAgain) {
  FlowFolder folder;
  folder.write("items.json", "[1, 2, 3, 4]");
  EXPECT_EQ(folder.run(counting).exit_code, 0);
  folder.write("healed", "");
  const Outcome outcome = folder.reprise({"dead-letters", "retry", "@last"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("reduced.txt"), (std::vector<std::string>{"2 of 4", "4 of 4"}));
  EXPECT_EQ(folder.lines("report.calls").size(), 2U);
  EXPECT_EQ(folder.lines("map-1.calls").size(), 1U) << "what was done is not done again";
  EXPECT_TRUE(has_words(folder.why(), "reduce-1 ran again")) << folder.why();

  EXPECT_EQ(folder.reprise({"retry", "@last", "--step", "reduce-1"}).exit_code, 0);
  EXPECT_EQ(folder.lines("reduced.txt").size(), 3U);
  EXPECT_EQ(folder.lines("report.calls").size(), 3U);
  EXPECT_EQ(folder.reprise({"retry", "@last", "--step", "reduce-1", "--only"}).exit_code, 0);
  EXPECT_EQ(folder.lines("reduced.txt").size(), 4U);
  EXPECT_EQ(folder.lines("report.calls").size(), 3U);
}

TEST(WholeProdigy, OnlyLeavesWhatNeedsIt) {
  FlowFolder folder;
  folder.write("items.json", "[1, 2, 3, 4]");
  folder.run(counting);
  folder.write("healed", "");
  EXPECT_EQ(folder.reprise({"retry", "@last", "--step", "map", "--item", "2", "--only"}).exit_code, 0);
  EXPECT_EQ(folder.lines("reduced.txt").size(), 1U);
  EXPECT_EQ(number_of(folder.step("map"), "failed"), 1);
}

// CLI.md says it of every run, not only of these.
TEST(WholeProdigy, NativeStepsRunAgainToo) {
  FlowFolder folder;
  const std::string native = R"(
steps:
  - {id: load, for_each: [1, 2], tolerate: 1, retry: none, run: "test ${item} = 1 || test -e healed"}
  - {id: count, needs: load, run: "echo ${steps.load.succeeded} >> counts.txt"}
  - {id: aside, run: "echo x >> aside.calls"}
)";
  EXPECT_EQ(folder.run(native).exit_code, 0);
  folder.write("healed", "");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.lines("counts.txt"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(folder.lines("aside.calls").size(), 1U);
}

// ---- failed items ----------------------------------------

TEST(WholeProdigy, ACommandOfItsOwnIsHandedWhatGaveUp) {
  FlowFolder folder;
  folder.write("items.json", "[1, 2, 3]");
  const Outcome outcome = folder.run(R"(
mode: mapreduce
map:
  input: items.json
  json_path: "$[*]"
  max_parallel: 1
  error_policy:
    retry_config: {attempts: 2, backoff: {fixed: {delay: 1ms}}}
    on_item_failure: {custom: "echo ${item} ${last_error.message} >> handled.txt; test ${item} != 3"}
  agent_template: [{shell: "test ${item} = 1 || { echo no >&2; exit 1; }"}]
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("handled.txt"), (std::vector<std::string>{"2 exit 1: no", "3 exit 1: no"}));
  EXPECT_EQ(number_of(folder.step("map"), "failed"), 1);
  EXPECT_EQ(folder.count("dead_lettered", "map[2]"), 1U);
}

TEST(WholeProdigy, AMapNoneOfWhoseItemsSucceededFailsUnlessItMay) {
  for (const char* const policy : {"continue_on_failure: true", "failure_threshold: 1.0", "on_item_failure: skip"}) {
    FlowFolder folder;
    folder.write("items.json", "[1, 2]");
    const Outcome outcome = folder.run("mode: mapreduce\nmap: {input: items.json, json_path: '$[*]', error_policy: {retry_config: "
                                       "{attempts: 1}, " +
                                       std::string{policy} + "}, agent_template: [{shell: 'exit 1'}]}\n");
    const bool tolerates_all = std::string_view{policy} != "continue_on_failure: true";
    EXPECT_EQ(outcome.exit_code, tolerates_all ? 0 : 1) << policy << "\n" << outcome.err;
  }
}

TEST(WholeProdigy, AMissingInputFailsTheMapAndIsNoDeadLetter) {
  FlowFolder folder;
  const Outcome outcome =
      folder.run("mode: mapreduce\nmap: {input: absent.json, json_path: '$[*]', agent_template: [{shell: 'true'}]}\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(has_words(outcome.err, "absent.json")) << outcome.err;
  EXPECT_EQ(folder.count("dead_lettered"), 0U);
  folder.write("absent.json", "[1]");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 0) << "its items are counted again";
}

TEST(WholeProdigy, AnEmptySelectionIsWarnedAbout) {
  FlowFolder folder;
  folder.write("items.json", R"({"items": []})");
  const Outcome outcome = folder.run(
      "mode: mapreduce\nmap: {input: items.json, json_path: '$.items[*]', agent_template: [{shell: 'true'}]}\n");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(has_words(outcome.err, "warning: map had nothing to do")) << outcome.err;
}

// ---- what is not there ----------------------------------------

TEST(WholeProdigy, AMissingAgentIsFoundBeforeAnythingStarts) {
  FlowFolder folder;
  folder.write("items.json", "[1]");
  const std::string flow = folder.flow(
      "mode: mapreduce\nsetup: [{shell: 'touch setup.done'}]\nmap: {input: items.json, json_path: '$[*]', agent_template: "
      "[{claude: '/do ${item}'}]}\n");
  folder.set("PATH", folder.path() + ":/bin:/usr/bin");
  const std::string missing = "claude: the program \"claude\" is not in PATH";
  const Outcome run = folder.reprise({"run", flow});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(has_words(run.err, missing)) << run.err;
  EXPECT_FALSE(folder.exists("setup.done"));
  EXPECT_FALSE(folder.exists(".reprise/reprise.db"));
  const Outcome valid = folder.reprise({"validate", flow});
  EXPECT_EQ(valid.exit_code, 0) << "the document is";
  EXPECT_TRUE(has_words(valid.err, missing)) << valid.err;
  EXPECT_TRUE(has_words(folder.reprise({"run", flow, "--dry-run"}).err, missing));
  const Outcome doctor = folder.reprise({"doctor", flow});
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_TRUE(has_words(doctor.out, missing)) << doctor.out;

  folder.program("claude", "echo done");
  EXPECT_EQ(folder.reprise({"doctor", flow}).exit_code, 0) << folder.reprise({"doctor", flow}).out;
  EXPECT_EQ(folder.reprise({"run", flow}).exit_code, 0);
}

TEST(WholeProdigy, NothingIsSilentlyIgnored) {
  FlowFolder folder;
  const Outcome outcome = folder.reprise({"validate", folder.flow(R"(
mode: mapreduce
error_policy: {max_failurs: 3}
map:
  input: items.json
  timeout_config:
    command_timeouts: {cladue: 3}
    timeout_action: skip
    cleanup_grace_period_secs: 30
    enable_monitoring: true
    timeout: 5
  error_policy:
    on_item_failure: custom
    circuit_breaker: {failure_threshold: 0, half_open_request: 3}
    error_collection: aggregate
  agent_template:
    - shell: "true"
      retry_config: {attempts: 0}
      when: "true"
)")});
  EXPECT_EQ(outcome.exit_code, 3);
  for (const char* const mistake :
       {"max_failurs", "cladue", "timeout_action", "cleanup_grace_period_secs", "enable_monitoring", "timeout_config",
        "custom needs its command", "failure_threshold", "half_open_request", "error_collection", "attempts", "when"})
    EXPECT_TRUE(has_words(outcome.err, mistake)) << mistake << "\n" << outcome.err;
}

}  // namespace
}  // namespace reprise::testing_support
