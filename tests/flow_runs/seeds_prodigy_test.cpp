// Prodigy's document, run by the real command: the complete MapReduce example with a stand-in for claude, and dead letters.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "flow_runs/flow_run.hpp"

namespace reprise {
namespace {

using testing_support::Events;
using testing_support::flag_of;
using testing_support::FlowFolder;
using testing_support::number_of;
using testing_support::object_of;
using testing_support::of_type;
using testing_support::Outcome;
using testing_support::story_of;
using testing_support::text_of;

// The seed's "Complete MapReduce Example", with milliseconds for seconds.
constexpr std::string_view complete_example = R"(
name: resilient-mapreduce-job
mode: mapreduce

map:
  input: "items.json"
  json_path: "$.items[*]"

  # Workflow-level error policy
  error_policy:
    retry_config:
      max_attempts: 5
      backoff:
        fibonacci:
          initial: 10ms
      jitter: true
      jitter_factor: 0.3
    continue_on_failure: true

  agent_template:
    - claude: "/process-item '${item.id}'"
    - shell: "validate ${item.output}"
      on_failure:
        claude: "/fix-validation-error"

  max_parallel: 10
)";

// Twelve items: "flaky-…" fail until their attempt 4, "bad-…" always, and the output of "odd-…" does not please validate.
FlowFolder& prepared(FlowFolder& folder) {
  folder.write("items.json", R"json({"items": [
{"id": "one", "output": "first result"}, {"id": "flaky-a", "output": "$(touch injected)"}, {"id": "odd-a", "output": "odd"},
{"id": "two", "output": "2"}, {"id": "bad-a", "output": "x"}, {"id": "flaky-b", "output": "it's"},
{"id": "three", "output": "3"}, {"id": "four", "output": "4"}, {"id": "five", "output": "5"},
{"id": "six", "output": "6"}, {"id": "seven", "output": "7"}, {"id": "eight", "output": "8"}]})json");
  folder.program("claude", R"sh(echo "$1 $2 | $REPRISE_ATTEMPT | $REPRISE_LAST_ERROR" >> "claude-$REPRISE_ITEM.txt"
case "$2" in
*flaky-*) [ "$REPRISE_ATTEMPT" -ge 4 ] || { echo "overloaded, try later" >&2; exit 1; };;
*bad-*) [ -e mended ] || { echo "cannot be processed" >&2; exit 1; };;
esac
echo "processed $2")sh");
  folder.program("validate", R"sh(printf '<%s>\n' "$@" >> "validate-$REPRISE_ITEM.txt"
echo "valid $1"
[ "$1" != odd ] || { echo "this is odd" >&2; exit 1; })sh");
  return folder;
}

TEST(FlowRunsProdigy, the_complete_example_retries_each_item_by_fibonacci_with_jitter) {
  FlowFolder folder;
  const Outcome outcome = prepared(folder).run(complete_example);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.show(), "flow"), "resilient-mapreduce-job");
  const Events events = folder.events();
  EXPECT_EQ(number_of(folder.first("prepared", "map"), "items"), 12);
  EXPECT_EQ(of_type(events, "completed", "map").size(), 11U);
  EXPECT_EQ(of_type(events, "started", "map").size(), 10U + 4U + 4U + 5U - 1U);

  const std::array<double, 4> nominal{10, 10, 20, 30};
  const Events waits = of_type(events, "retrying", "map[4]");
  ASSERT_EQ(waits.size(), nominal.size());
  for (std::size_t at = 0; at < waits.size(); ++at) {
    EXPECT_DOUBLE_EQ(number_of(waits[at], "nominal_ms"), nominal[at]);
    EXPECT_DOUBLE_EQ(number_of(waits[at], "min_ms"), nominal[at] * 0.7);
    EXPECT_DOUBLE_EQ(number_of(waits[at], "max_ms"), nominal[at] * 1.3);
    EXPECT_GE(number_of(waits[at], "delay_ms"), nominal[at] * 0.7 - 0.001);
    EXPECT_LE(number_of(waits[at], "delay_ms"), nominal[at] * 1.3 + 0.001);
  }
}

TEST(FlowRunsProdigy, one_attempt_is_the_whole_template_and_its_values_are_quoted) {
  FlowFolder folder;
  prepared(folder).run(complete_example);
  EXPECT_EQ(folder.lines("claude-1.txt"),
            (std::vector<std::string>{"-p /process-item 'flaky-a' | 1 | ",
                                      "-p /process-item 'flaky-a' | 2 | exit 1: overloaded, try later",
                                      "-p /process-item 'flaky-a' | 3 | exit 1: overloaded, try later",
                                      "-p /process-item 'flaky-a' | 4 | exit 1: overloaded, try later"}));
  EXPECT_EQ(folder.read("validate-0.txt"), "<first result>\n");
  EXPECT_EQ(folder.read("validate-1.txt"), "<$(touch injected)>\n");
  EXPECT_EQ(folder.read("validate-5.txt"), "<it's>\n");
  EXPECT_FALSE(folder.exists("injected"));
  EXPECT_NE(folder.log("map", 1, 3).find("overloaded, try later"), std::string::npos);
  EXPECT_NE(folder.log("map", 1, 4).find("processed /process-item 'flaky-a'"), std::string::npos);
}

TEST(FlowRunsProdigy, the_on_failure_of_a_command_repairs_it_within_the_attempt) {
  FlowFolder folder;
  prepared(folder).run(complete_example);
  EXPECT_EQ(folder.lines("claude-2.txt"),
            (std::vector<std::string>{"-p /process-item 'odd-a' | 1 | ",
                                      "-p /fix-validation-error | 1 | exit 1: this is odd"}));
  EXPECT_EQ(story_of(folder.events(), "map[2]"),
            (std::vector<std::string>{"started map[2]#1", "progress map[2]#1", "completed map[2]#1"}));
  EXPECT_EQ(text_of(folder.first("progress", "map[2]"), "text"), "on_failure of shell: exit 1: this is odd");
  EXPECT_NE(folder.log("map", 2, 1).find("---- on_failure of shell ----"), std::string::npos);
}

TEST(FlowRunsProdigy, a_repair_that_fails_leaves_the_first_failure_standing) {
  FlowFolder folder;
  folder.write("items.txt", "one\n");
  folder.run(R"(
mode: mapreduce
map:
  input: items.txt
  agent_template:
    - shell: "echo the cause >&2; exit 5"
      on_failure: {shell: "echo the repair broke >&2; exit 6"}
)");
  const auto error = object_of(folder.last("failed", "map"), "error");
  EXPECT_EQ(number_of(error, "exit_code"), 5);
  EXPECT_EQ(text_of(error, "message"), "exit 5: the cause");
  EXPECT_NE(text_of(error, "details").find("the repair broke"), std::string::npos) << text_of(error, "details");
}

TEST(FlowRunsProdigy, what_gave_up_is_a_dead_letter_that_can_be_seen_and_tried_again) {
  FlowFolder folder;
  prepared(folder).run(complete_example);
  EXPECT_EQ(folder.count("dead_lettered"), 1U);
  const auto listed = boost::json::parse(folder.reprise({"dead-letters", "list", "--format", "json"}).out).as_object();
  EXPECT_EQ(text_of(listed, "step") + "[" + text_of(listed, "item") + "]", "map[4]");
  EXPECT_EQ(number_of(listed, "attempts"), 5);
  EXPECT_EQ(text_of(listed, "reason"), "attempts");
  const auto shown =
      boost::json::parse(folder.reprise({"dead-letters", "show", "@last", "map[4]", "--format", "json"}).out)
          .as_object();
  EXPECT_EQ(shown.at("errors").as_array().size(), 5U);
  EXPECT_NE(text_of(shown, "input").find("bad-a"), std::string::npos) << boost::json::serialize(shown);

  const Outcome in_vain = folder.reprise({"dead-letters", "retry", "@last"});
  EXPECT_EQ(in_vain.exit_code, 0) << in_vain.err;  // the run goes on without the item, as before
  EXPECT_EQ(folder.count("dead_lettered"), 2U);
  folder.write("mended", "");
  const Outcome again = folder.reprise({"dead-letters", "retry", "@last"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(folder.reprise({"dead-letters", "list", "--format", "json"}).out, "");
  EXPECT_EQ(number_of(folder.step("map"), "done"), 12);
  EXPECT_EQ(folder.count("started", "map[0]"), 1U);  // what was done is not done again
}

TEST(FlowRunsProdigy, a_dead_letter_can_be_dropped_once) {
  FlowFolder folder;
  prepared(folder).run(complete_example);
  EXPECT_EQ(folder.reprise({"dead-letters", "drop", "@last", "map[4]"}).exit_code, 0);
  EXPECT_EQ(folder.reprise({"dead-letters", "list", "--format", "json"}).out, "");
  const Outcome twice = folder.reprise({"dead-letters", "drop", "@last", "map[4]"});
  EXPECT_NE(twice.exit_code, 0);
  EXPECT_NE(twice.err.find("no dead letter"), std::string::npos) << twice.err;
  EXPECT_NE(folder.reprise({"dead-letters", "show", "@last", "map[4]"}).exit_code, 0);
}

constexpr std::string_view with_all_phases = R"(
name: phases
mode: mapreduce
setup:
  - shell: "echo setup >> order.txt"
  - shell: "./make-items > items.json"
map:
  input: items.json
  json_path: "$.items[?@.wanted == true]"
  agent_template:
    - shell: "test ${item.n} != 3 || exit 1; echo result-${item.n}"
  error_policy:
    retry_config: {attempts: 2, backoff: {fixed: {delay: 1ms}}}
reduce:
  - shell: "printf '%s|' ${map.results} > results.txt"
  - shell: "echo ${map.successful} of ${map.total}, ${map.failed} failed"
)";

void make_items(FlowFolder& folder) {
  folder.program("make-items", R"sh(echo '{"items": ['
for n in 1 2 3 4; do echo "{\"n\": $n, \"wanted\": true},"; done
echo '{"n": 5, "wanted": false}]}')sh");
}

TEST(FlowRunsProdigy, setup_makes_the_items_and_reduce_reads_their_results_in_order) {
  FlowFolder folder;
  make_items(folder);
  const Outcome outcome = folder.run(with_all_phases);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.read("results.txt"), R"(["result-1","result-2","result-4"]|)");  // those of items that succeeded
  EXPECT_EQ(text_of(folder.last("completed", "reduce-2"), "output"), "3 of 4, 1 failed");
  EXPECT_EQ(folder.lines("order.txt").size(), 1U);
  EXPECT_EQ(folder.count("dead_lettered", "map[2]"), 1U);
}

TEST(FlowRunsProdigy, setup_that_fails_makes_the_rest_unreachable) {
  FlowFolder folder;
  folder.program("make-items", "exit 9");
  EXPECT_EQ(folder.run(with_all_phases).exit_code, 1);
  EXPECT_EQ(text_of(folder.step("map"), "state"), "unreachable");
  EXPECT_EQ(text_of(folder.step("reduce-2"), "state"), "unreachable");
  EXPECT_FALSE(folder.exists("results.txt"));
}

// Disabled: a step with dead letters that fails as a whole lets the run go on (core: dead_letter is like proceed).
TEST(FlowRunsProdigy, input_that_is_not_there_fails_the_map_with_its_name) {
  FlowFolder folder;
  const Outcome outcome =
      folder.run("mode: mapreduce\nmap: {input: absent.json, json_path: '$[*]', agent_template: [{shell: 'true'}]}\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("absent.json"), std::string::npos) << outcome.err;
}

TEST(FlowRunsProdigy, the_agents_time_counts_waits_too) {
  FlowFolder folder;
  folder.write("items.txt", "one\ntwo\n");
  const Outcome outcome = folder.run(R"(
mode: mapreduce
map:
  input: items.txt
  agent_timeout_secs: 2
  error_policy: {retry_config: {attempts: 1000, backoff: {fixed: {delay: 5s}}, max_delay: 5s}}
  agent_template: [{shell: "test ${item} = one && exit 1; exec sleep 600"}]
)");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(folder.count("started", "map"), 2U);  // a wait of 5 s cannot begin; an attempt of 600 s is cut off
  EXPECT_EQ(text_of(folder.last("failed", "map[0]"), "stop_reason"), "deadline");
  EXPECT_EQ(text_of(object_of(folder.last("failed", "map[0]"), "error"), "exit_code"), "1");
  EXPECT_EQ(text_of(object_of(folder.last("failed", "map[1]"), "error"), "kind"), "timeout");
  EXPECT_EQ(text_of(folder.last("failed", "map[1]"), "stop_reason"), "deadline");
  EXPECT_EQ(folder.count("dead_lettered", "map"), 2U);
  EXPECT_NE(folder.why("map[0]").find("max_elapsed 2s"), std::string::npos) << folder.why("map[0]");
}

constexpr std::string_view with_failures = R"(
mode: mapreduce
map:
  input: items.txt
  agent_template: [{shell: "echo ${item} >> seen.txt; test ${item} -gt 3"}]
  max_parallel: 1
  error_policy: {ERROR_POLICY}
reduce:
  - shell: "echo reduced >> reduced.txt"
)";

std::string with_policy(std::string_view policy) {
  std::string document{with_failures};
  return document.replace(document.find("ERROR_POLICY"), std::string_view{"ERROR_POLICY"}.size(), policy);
}

TEST(FlowRunsProdigy, as_many_failures_as_the_policy_says_are_tolerated) {
  for (const char* const policy :
       {"max_failures: 3", "failure_threshold: 0.3", "continue_on_failure: true", "on_item_failure: skip"}) {
    FlowFolder folder;
    folder.write("items.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
    const Outcome outcome = folder.run(with_policy(policy));
    EXPECT_EQ(outcome.exit_code, 0) << policy << outcome.err;
    EXPECT_EQ(text_of(folder.step("map"), "state"), "succeeded") << policy;
    EXPECT_EQ(number_of(folder.step("map"), "failed"), 3) << policy;
    EXPECT_EQ(folder.lines("reduced.txt").size(), 1U) << policy;
    EXPECT_EQ(folder.count("dead_lettered"), std::string_view{policy} == "on_item_failure: skip" ? 0U : 3U) << policy;
  }
}

// Disabled: a step with dead letters that fails as a whole lets the run go on (core: dead_letter is like proceed).
TEST(FlowRunsProdigy, more_failures_than_the_policy_says_fail_the_map) {
  for (const char* const policy : {"max_failures: 2", "failure_threshold: 0.2"}) {
    FlowFolder folder;
    folder.write("items.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
    const Outcome outcome = folder.run(with_policy(policy));
    EXPECT_EQ(outcome.exit_code, 1) << policy;
    EXPECT_EQ(text_of(folder.step("map"), "state"), "failed") << policy;
    EXPECT_FALSE(folder.exists("reduced.txt")) << policy;
  }
}

TEST(FlowRunsProdigy, stop_ends_the_map_at_the_first_item_that_fails) {
  FlowFolder folder;
  folder.write("items.txt", "1\n2\n3\n4\n5\n");
  EXPECT_EQ(folder.run(with_policy("on_item_failure: stop")).exit_code, 1);
  EXPECT_EQ(folder.lines("seen.txt"), std::vector<std::string>{"1"});
  EXPECT_FALSE(folder.exists("reduced.txt"));
}

TEST(FlowRunsProdigy, an_agent_of_the_documents_own_takes_the_place_of_claude) {
  FlowFolder folder;
  folder.write("items.txt", "one\n");
  const Outcome outcome = folder.run(R"(
mode: mapreduce
agents: {claude: {argv: [echo, "asked: ${prompt}"]}}
map:
  input: items.txt
  agent_template: [{claude: "/do ${item}"}]
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "map"), "output"), "asked: /do one");
}

}  // namespace
}  // namespace reprise
