// Wave's document, run by the real command: named policies, classes, the circuit breaker, max_visits and the stall watchdog.
#include <gtest/gtest.h>

#include "flow_runs/flow_run.hpp"

namespace reprise {
namespace {

using testing_support::Events;
using testing_support::flag_of;
using testing_support::FlowFolder;
using testing_support::has;
using testing_support::number_of;
using testing_support::object_of;
using testing_support::of_type;
using testing_support::Outcome;
using testing_support::story_of;
using testing_support::text_of;

std::vector<double> delays_of(const Events& events, std::string_view step) {
  std::vector<double> delays;
  for (const auto& event : of_type(events, "retrying", step)) delays.push_back(number_of(event, "delay_ms"));
  return delays;
}

std::vector<std::string> messages_of(const Events& events, std::string_view step) {
  std::vector<std::string> messages;
  for (const auto& event : of_type(events, "failed", step))
    messages.push_back(text_of(object_of(event, "error"), "message"));
  return messages;
}

TEST(FlowRunsWave, the_three_policies_of_its_document_wait_as_its_table_says) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
dialect: wave
steps:
  - id: fetch
    run: "echo try >> fetch.txt; exit 75"
    retry: {policy: aggressive, base_delay: 4ms}
    on_failure: continue
  - id: implement
    run: "echo try >> implement.txt; exit 75"
    retry: {policy: standard, max_attempts: 5, base_delay: 2ms}
    on_failure: continue
  - id: analyze
    run: "echo try >> analyze.txt; exit 75"
    retry: {policy: patient, base_delay: 3ms}
    on_failure: continue
  - id: once
    run: "echo try >> once.txt; exit 75"
    retry: {policy: none}
    on_failure: continue
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("fetch.txt").size(), 5U);
  EXPECT_EQ(folder.lines("implement.txt").size(), 5U);
  EXPECT_EQ(folder.lines("analyze.txt").size(), 3U);
  EXPECT_EQ(folder.lines("once.txt").size(), 1U);
  const Events events = folder.events();
  EXPECT_EQ(delays_of(events, "fetch"), (std::vector<double>{4, 8, 16, 32}));
  EXPECT_EQ(delays_of(events, "implement"), (std::vector<double>{2, 4, 8, 16}));
  EXPECT_EQ(delays_of(events, "analyze"), (std::vector<double>{3, 9}));
  EXPECT_EQ(delays_of(events, "once"), (std::vector<double>{}));
  EXPECT_EQ(text_of(folder.last("failed", "analyze"), "stop_reason"), "attempts");
  EXPECT_EQ(text_of(folder.last("ended"), "status"), "succeeded");
}

TEST(FlowRunsWave, without_a_word_about_retries_a_step_is_tried_once) {
  FlowFolder folder;
  EXPECT_EQ(folder.run("dialect: wave\nsteps: [{id: a, run: exit 75}]").exit_code, 1);
  EXPECT_EQ(folder.count("started", "a"), 1U);
}

TEST(FlowRunsWave, unreasonable_classes_are_not_retried) {
  FlowFolder folder;
  folder.run(R"(
dialect: wave
steps:
  - {id: binary, argv: [no-such-program-anywhere], retry: &quick {policy: standard, base_delay: 1ms}, on_failure: continue}
  - {id: key, run: "echo invalid api key >&2; exit 1", retry: *quick, on_failure: continue}
  - {id: window, run: "echo prompt is too long >&2; exit 1", retry: *quick, on_failure: continue}
  - {id: limit, run: "echo 429 too many requests >&2; exit 1", retry: *quick, on_failure: continue}
  - {id: suite, run: "echo '--- FAIL: TestOne' >&2; exit 1", retry: *quick, on_failure: continue}
)");
  const Events events = folder.events();
  const auto class_of = [&](std::string_view step) {
    const Events failed = of_type(events, "failed", step);
    return failed.empty() ? ""
                          : std::to_string(failed.size()) + " " + text_of(object_of(failed.back(), "error"), "class");
  };
  EXPECT_EQ(class_of("binary"), "1 deterministic");
  EXPECT_EQ(class_of("key"), "1 deterministic");
  EXPECT_EQ(class_of("window"), "1 budget_exhausted");
  EXPECT_EQ(class_of("limit"), "3 transient");
  EXPECT_EQ(class_of("suite"), "3 test_failure");
  EXPECT_EQ(text_of(folder.last("failed", "key"), "stop_reason"), "permanent");
  EXPECT_NE(folder.why("key").find("deterministic"), std::string::npos) << folder.why("key");
}

TEST(FlowRunsWave, the_breaker_ends_a_step_that_fails_the_same_way_three_times) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
dialect: wave
runtime:
  circuit_breaker:
    limit: 3
    tracked_classes: [deterministic, contract_failure, test_failure]
steps:
  - {id: suite, kind: test, run: "echo assertion one is wrong >&2; exit 1", retry: {max_attempts: 8, base_delay: 1ms}}
)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(story_of(folder.events()),
            (std::vector<std::string>{"submitted", "started suite#1", "failed suite#1", "retrying suite#1",
                                      "started suite#2", "failed suite#2", "retrying suite#2", "started suite#3",
                                      "circuit_opened suite#3", "failed suite#3", "ended"}));
  const auto failed = folder.last("failed", "suite");
  EXPECT_EQ(text_of(failed, "stop_reason"), "circuit_open");
  EXPECT_EQ(text_of(object_of(failed, "error"), "class"), "test_failure");
  EXPECT_EQ(text_of(object_of(failed, "error"), "message"), "exit 1: assertion one is wrong");
  EXPECT_NE(folder.why("suite").find("circuit"), std::string::npos) << folder.why("suite");
}

TEST(FlowRunsWave, different_messages_do_not_open_the_breaker) {
  for (const std::string stream : {">&2", ""}) {  // test runners often tell on standard output what failed
    FlowFolder folder;
    folder.program("suite.sh", R"(case $REPRISE_ATTEMPT in
1) echo wrong colour )" + stream + R"(;; 2) echo wrong shape )" +
                                   stream + R"(;; 3) echo wrong size )" + stream + R"(;; 4) echo wrong colour )" +
                                   stream + R"(;; *) exit 0;;
esac
exit 1)");
    const Outcome outcome = folder.run(R"(
dialect: wave
runtime: {circuit_breaker: {limit: 3}}
steps: [{id: suite, kind: test, run: ./suite.sh, retry: {max_attempts: 8, base_delay: 1ms}}]
)");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(folder.count("started", "suite"), 5U);
    EXPECT_EQ(folder.count("circuit_opened"), 0U);
  }
}

TEST(FlowRunsWave, classes_that_are_not_tracked_do_not_open_the_breaker) {
  FlowFolder folder;
  folder.run(R"(
dialect: wave
runtime: {circuit_breaker: {limit: 2, tracked_classes: [test_failure]}}
steps: [{id: a, run: exit 75, retry: {max_attempts: 4, base_delay: 1ms}}]
)");
  EXPECT_EQ(folder.count("started", "a"), 4U);
  EXPECT_EQ(text_of(folder.last("failed", "a"), "stop_reason"), "attempts");
}

TEST(FlowRunsWave, max_visits_counts_every_visit_whatever_the_error) {
  FlowFolder folder;
  folder.program("check.sh", R"sh(echo visit >> visits.txt
echo "message $(wc -l < visits.txt | tr 123456789 abcdefghi)" >&2
exit 1)sh");
  const Outcome outcome = folder.run(R"(
dialect: wave
runtime: {max_visits: 3, circuit_breaker: {limit: 50}}
steps:
  - {id: work, run: echo again >> work.txt}
  - {id: check, needs: work, kind: test, run: ./check.sh, on_failure: {goto: work}}
)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(folder.lines("visits.txt").size(), 3U);
  EXPECT_EQ(folder.lines("work.txt").size(), 3U);
  const Events events = folder.events();
  EXPECT_EQ(of_type(events, "revisited").size(), 2U);
  EXPECT_EQ(messages_of(events, "check").size(), 3U);
  EXPECT_EQ(text_of(folder.last("ended"), "status"), "failed");
  EXPECT_NE((folder.why() + folder.reprise({"show", "@last"}).out).find("max_visits"), std::string::npos)
      << folder.why();
}

TEST(FlowRunsWave, a_visit_that_succeeds_ends_the_loop) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
dialect: wave
steps:
  - {id: work, run: echo again >> work.txt}
  - {id: check, needs: work, run: "test $(wc -l < work.txt) -ge 3", on_failure: {goto: work}, max_visits: 5}
  - {id: after, needs: check, run: echo after >> after.txt}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("work.txt").size(), 3U);
  EXPECT_EQ(folder.lines("after.txt").size(), 1U);
}

TEST(FlowRunsWave, silence_is_a_stall_and_signs_of_life_are_not) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
dialect: wave
runtime: {stall_timeout: 400ms}
steps:
  - id: silent
    run: "test $REPRISE_ATTEMPT = 2 || exec sleep 600"
    retry: {max_attempts: 2, base_delay: 1ms}
  - id: talking
    run: "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done"
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto failed = folder.last("failed", "silent");
  EXPECT_EQ(text_of(object_of(failed, "error"), "kind"), "stalled");
  EXPECT_EQ(text_of(object_of(failed, "error"), "class"), "transient");
  EXPECT_TRUE(flag_of(failed, "will_retry"));
  EXPECT_EQ(folder.count("started", "silent"), 2U);
  EXPECT_EQ(folder.count("started", "talking"), 1U);
  EXPECT_NE(folder.why("silent").find("stall"), std::string::npos) << folder.why("silent");
}

TEST(FlowRunsWave, a_word_that_is_no_policy_is_shown_with_its_place) {
  FlowFolder folder;
  const Outcome outcome = folder.run("dialect: wave\nsteps:\n  - {id: a, run: 'true', retry: {policy: agressive}}\n");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("flow.yaml:3:"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("aggressive"), std::string::npos) << outcome.err;
  EXPECT_FALSE(folder.exists(".reprise/logs"));
}

}  // namespace
}  // namespace reprise
