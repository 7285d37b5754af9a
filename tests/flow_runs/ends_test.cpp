// What was not the work's own failure, with real processes: losses, interruptions and deadlines in every dialect, work that must not be
// done twice, what `resume` leaves alone, and the breaker that terminates its step.
#include <gtest/gtest.h>

#include "flow_runs/flow_run.hpp"

namespace reprise {
namespace {

using namespace testing_support;
namespace json = boost::json;

// The first attempt kills the engine, the others succeed.
constexpr std::string_view dies_once =
    R"(echo x >> ran; test $REPRISE_ATTEMPT -gt 1 || { kill -9 $PPID; sleep 60; }; )";
// The first attempts interrupt the run, as Ctrl-C does.
constexpr std::string_view stops_twice =
    R"(echo x >> ran; test $REPRISE_ATTEMPT -gt 2 || { kill -INT $PPID; sleep 60; }; )";

std::string step_with(std::string_view policy, std::string_view script) {
  return "{id: a, " + std::string{policy} + ", run: '" + std::string{script} + "'}";
}

std::size_t count_of(const FlowFolder& folder, std::string_view type) { return of_type(folder.events(), type).size(); }

struct DialectOfOneAttempt {
  const char* name;
  const char* head;
  const char* policy;
  const char* final_output;  // what its handler says at its end
};

class FlowRunsEnds : public ::testing::TestWithParam<DialectOfOneAttempt> {
 protected:
  std::string document(std::string_view script) const {
    return std::string{GetParam().head} + "steps: [" +
           step_with(GetParam().policy, std::string{script} + GetParam().final_output) + "]";
  }
  FlowFolder folder;
};

TEST_P(FlowRunsEnds, an_attempt_that_is_killed_with_the_engine_is_made_again) {
  folder.run(document(dies_once));
  const Outcome outcome = folder.reprise({"resume", "@last"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("ran").size(), 2U);
  EXPECT_EQ(text_of(folder.last("retrying", "a"), "reason"), "lost");
  EXPECT_EQ(text_of(folder.last("completed", "a"), "attempts_used"), "1");
  EXPECT_EQ(text_of(folder.last("completed", "a"), "attempts_lost"), "1");
}

TEST_P(FlowRunsEnds, an_interrupt_costs_nothing) {
  EXPECT_EQ(folder.run(document(stops_twice)).exit_code, 130);
  EXPECT_EQ(text_of(folder.last("interrupted", "a"), "class"), "canceled");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 130);
  const Outcome outcome = folder.reprise({"resume", "@last"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(count_of(folder, "failed"), 0U);
  EXPECT_EQ(text_of(folder.last("completed", "a"), "attempt"), "3");
  EXPECT_EQ(text_of(folder.last("completed", "a"), "attempts_used"), "1");
}

INSTANTIATE_TEST_SUITE_P(
    Dialects, FlowRunsEnds,
    ::testing::Values(
        DialectOfOneAttempt{"native", "", "retry: none", "true"},
        DialectOfOneAttempt{"azolla", "", "retry_policy: {version: 1, stop: {max_attempts: 1}}", "true"},
        DialectOfOneAttempt{"rh_agents", "", "retry_config: {max_attempts: 1, backoff_strategy: constant}", "true"},
        DialectOfOneAttempt{"wave", "dialect: wave\n", "retry: {policy: none}", "true"},
        DialectOfOneAttempt{"argyll", "", "work_config: {max_retries: 0}", "echo \"{\\\"success\\\": true}\""},
        DialectOfOneAttempt{"prodigy", "", "retry_config: {attempts: 1, backoff: fixed}", "true"}),
    [](const auto& test) { return std::string{test.param.name}; });

// ---- limits, numbers, what is told ----------------------------------------

TEST(FlowRunsEndsOf, losses_in_a_row_stop_at_the_limit_of_the_document) {
  FlowFolder folder;
  folder.run(R"(
runtime: {limits: {worker_lost: 1}}
steps: [{id: a, retry: {initial: 1ms}, run: 'echo x >> ran; kill -9 $PPID; sleep 60'}]
)");
  folder.reprise({"resume", "@last"});
  const Outcome outcome = folder.reprise({"resume", "@last"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(text_of(folder.last("failed", "a"), "reason"), "lost");
  EXPECT_EQ(folder.lines("ran").size(), 2U);
}

TEST(FlowRunsEndsOf, error_wait_and_totals_survive_an_interrupt) {
  FlowFolder folder;
  EXPECT_EQ(folder
                .run(R"(
steps:
  - id: a
    retry: {max_attempts: 2, backoff: constant, initial: 30ms, jitter: none}
    run: |
      echo "$REPRISE_ATTEMPT $REPRISE_ATTEMPTS_USED $REPRISE_MAX_ATTEMPTS $REPRISE_LAST_ERROR" >> seen
      case $REPRISE_ATTEMPT in
        1) echo "not yet" >&2; exit 75;;
        2) kill -INT $PPID; sleep 60;;
      esac
)")
                .exit_code,
            130);
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  const std::vector<std::string> seen = folder.lines("seen");
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[1].substr(0, 5), "2 2 2");
  EXPECT_EQ(seen[2].substr(0, 5), "3 2 2");
  EXPECT_NE(seen[2].find("not yet"), std::string::npos) << seen[2];
  const json::object third = folder.last("started", "a");
  EXPECT_NE(text_of(third, "original_error").find("not yet"), std::string::npos);
  EXPECT_EQ(number_of(third, "retry_delay_ms"), 30);
  EXPECT_GE(number_of(folder.last("completed", "a"), "total_elapsed_ms"), 30);
}

TEST(FlowRunsEndsOf, people_are_told_what_counts) {
  FlowFolder folder;
  folder.run("steps: [" + step_with("retry: none", std::string{stops_twice} + "true") + "]");
  folder.reprise({"resume", "@last"});
  const Outcome outcome = folder.reprise({"resume", "@last", "--progress", "plain"});
  EXPECT_NE(outcome.err.find("attempt 3 (1 of 1 used; 2 interrupted)"), std::string::npos) << outcome.err;
}

TEST(FlowRunsEndsOf, numbers_go_on_after_a_retry_on_request) {
  FlowFolder folder;
  folder.run("steps: [{id: a, retry: {max_attempts: 2, initial: 1ms}, run: 'echo $REPRISE_ATTEMPT >> ran; exit 75'}]");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 1);
  EXPECT_EQ(folder.lines("ran"), (std::vector<std::string>{"1", "2", "3", "4"}));
  EXPECT_EQ(text_of(folder.last("failed", "a"), "reason"), "attempts");
}

TEST(FlowRunsEndsOf, the_limit_of_an_item_that_cuts_its_attempt_is_the_reason) {
  FlowFolder folder;
  folder.run(R"(
steps: [{id: a, retry_config: {retry_timeout: 0.2, retry_on_exceptions: [ConnectionError]}, run: sleep 60}]
)");
  EXPECT_EQ(text_of(folder.last("failed", "a"), "reason"), "deadline");
  EXPECT_EQ(text_of(folder.last("failed", "a"), "cut"), "deadline");
  EXPECT_NE(folder.why().find("200ms"), std::string::npos) << folder.why();
}

TEST(FlowRunsEndsOf, the_deadline_of_the_run_interrupts) {
  FlowFolder folder;
  EXPECT_EQ(folder.run("runtime: {deadline: 200ms}\nsteps: [{id: a, run: sleep 60}]").exit_code, 124);
  EXPECT_EQ(text_of(folder.last("interrupted", "a"), "class"), "canceled");
  EXPECT_EQ(count_of(folder, "failed"), 0U);
}

// ---- at most once ----------------------------------------

TEST(FlowRunsEndsOf, work_that_may_be_done_once_is_kept_for_a_person_after_a_crash) {
  FlowFolder folder;
  folder.run("steps: [" + step_with("effect: at_most_once", dies_once) + "]");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 1);
  EXPECT_EQ(text_of(folder.last("failed", "a"), "reason"), "unclear");
  EXPECT_EQ(folder.lines("ran").size(), 1U);
  const Outcome letters = folder.reprise({"dead-letters", "list", "@last"});
  EXPECT_NE(letters.out.find("a"), std::string::npos) << letters.out;
  EXPECT_EQ(count_of(folder, "dead_lettered"), 1U);
}

TEST(FlowRunsEndsOf, work_that_may_be_done_once_is_not_made_again_after_its_time_or_ctrl_c) {
  FlowFolder folder;
  folder.run("steps: [{id: a, effect: at_most_once, timeout: 100ms, run: 'echo x >> ran; sleep 60'}]");
  EXPECT_EQ(text_of(folder.last("failed", "a"), "reason"), "unclear");
  folder.run("steps: [" + step_with("effect: at_most_once", "kill -INT $PPID; sleep 60") + "]");
  EXPECT_EQ(text_of(folder.last("failed", "a"), "reason"), "unclear");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 1);
  EXPECT_EQ(count_of(folder, "started"), 1U);
}

// ---- resume ----------------------------------------

TEST(FlowRunsEndsOf, resume_leaves_dead_letters_alone) {
  FlowFolder folder;
  EXPECT_EQ(folder
                .run(R"(
steps:
  - {id: a, for_each: [1, 2], retry: none, on_failure: dead_letter, run: 'echo ${item} >> ran; test ${item} = 1'}
  - {id: b, needs: a, run: 'test -e again || { touch again; kill -INT $PPID; sleep 60; }'}
)")
                .exit_code,
            130);
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.lines("ran").size(), 2U);
  EXPECT_EQ(count_of(folder, "dead_lettered"), 1U);
}

// ---- the breaker ----------------------------------------

TEST(FlowRunsEndsOf, an_open_breaker_ends_a_loop_of_goto_also_for_deterministic_failures) {
  for (const char* failure : {"exit 64", "echo tests failed >&2; exit 1"}) {
    FlowFolder folder;
    const Outcome outcome = folder.run(R"(
runtime: {circuit_breaker: {limit: 3}}
steps:
  - {id: a, run: 'echo x >> ran'}
  - {id: b, needs: a, retry: none, on_failure: {goto: a}, run: ')" +
                                       std::string{failure} + "'}");
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(folder.lines("ran").size(), 3U);
    EXPECT_EQ(text_of(folder.last("failed", "b"), "reason"), "circuit_open");
    EXPECT_EQ(count_of(folder, "circuit_opened"), 1U);
  }
}

TEST(FlowRunsEndsOf, an_open_breaker_terminates_a_map_and_retry_begins_it_anew) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: a
    for_each: [0, 1, 2, 3, 4, 5]
    max_parallel: 1
    tolerate: 100%
    retry: {max_attempts: 2, initial: 1h, jitter: none}
    circuit_breaker: {limit: 3, tracked_classes: [transient]}
    run: 'echo ${item} >> ran; test -e good || { echo same >&2; exit 75; }'
)");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(folder.lines("ran"), (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(count_of(folder, "circuit_opened"), 1U);
  EXPECT_EQ(count_of(folder, "skipped"), 2U) << "the two that waited for their second attempts";
  folder.write("good", "");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.lines("ran").size(), 9U);
}

TEST(FlowRunsEndsOf, wave_documents_have_a_breaker) {
  FlowFolder folder;
  folder.run(R"(
dialect: wave
steps: [{id: a, kind: test, retry: {max_attempts: 8, base_delay: 1ms}, run: 'echo x >> ran; exit 1'}]
)");
  EXPECT_EQ(folder.lines("ran").size(), 3U);
  EXPECT_EQ(text_of(folder.last("failed", "a"), "reason"), "circuit_open");
}

}  // namespace
}  // namespace reprise
