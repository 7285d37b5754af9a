// What is done again, with real processes: visits of a step, items after a breaker, runs that another process cancels, and what is told of it.
#include <gtest/gtest.h>

#include <csignal>

#include "flow_runs/flow_run.hpp"

namespace reprise {
namespace {

using namespace testing_support;
namespace json = boost::json;

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// ---- visits ----------------------------------------

constexpr std::string_view loop = R"(
steps:
  - {id: a, run: 'echo a $REPRISE_ATTEMPT $REPRISE_IDEMPOTENCY_KEY | tee -a story'}
  - id: b
    needs: a
    run: 'echo b $REPRISE_ATTEMPT $REPRISE_ATTEMPTS_USED $REPRISE_IDEMPOTENCY_KEY | tee -a story; test $REPRISE_ATTEMPT -ge 4'
    retry: {max_attempts: 2, backoff: constant, initial: 1ms}
    on_failure: {goto: a}
)";

TEST(FlowRunsAgain, each_visit_goes_on_with_the_numbers_and_is_work_of_its_own) {
  FlowFolder folder;
  ASSERT_EQ(folder.run(loop).exit_code, 0);
  const std::string run = folder.last_run();
  EXPECT_EQ(folder.lines("story"),
            (std::vector<std::string>{"a 1 " + run + "/a/0", "b 1 1 " + run + "/b/0", "b 2 2 " + run + "/b/0",
                                      "a 2 " + run + "/a/0/2", "b 3 1 " + run + "/b/0/2", "b 4 2 " + run + "/b/0/2"}));
  for (int attempt = 1; attempt <= 4; ++attempt)
    EXPECT_TRUE(folder.log("b", 0, attempt).starts_with("b " + std::to_string(attempt) + " ")) << attempt;
  EXPECT_EQ(folder.log("b", 0, 1).find("tried again"), std::string::npos);
  EXPECT_EQ(text_of(folder.first("started", "b"), "attempt"), "1");
  const std::string why = folder.why("b");
  for (const char* row : {"Attempt 1 failed", "Attempt 2 failed", "Attempt 3 failed", "Attempt 4 succeeded"})
    EXPECT_NE(why.find(row), std::string::npos) << row << " is missing in\n" << why;
}

TEST(FlowRunsAgain, a_visit_that_a_kill_cuts_short_keeps_its_key) {
  FlowFolder folder;
  folder.run(R"(
steps:
  - {id: a, run: 'true'}
  - id: b
    needs: a
    run: 'echo $REPRISE_ATTEMPT $REPRISE_IDEMPOTENCY_KEY >> story; test $REPRISE_ATTEMPT -ne 2 || { kill -9 $PPID; sleep 60; }; test $REPRISE_ATTEMPT -ge 3'
    retry: none
    on_failure: {goto: a}
)");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  const std::string key = folder.last_run() + "/b/0";
  EXPECT_EQ(folder.lines("story"), (std::vector<std::string>{"1 " + key, "2 " + key + "/2", "3 " + key + "/2"}));
}

TEST(FlowRunsAgain, a_sub_flow_of_a_later_visit_is_another_run) {
  FlowFolder folder;
  folder.write("inner.yaml", "steps: [{id: x, run: echo x >> inner}]");
  ASSERT_EQ(folder
                .run("steps: [{id: a, flow: inner.yaml}, "
                     "{id: b, needs: a, retry: none, run: 'test $REPRISE_ATTEMPT -eq 2', on_failure: {goto: a}}]")
                .exit_code,
            0);
  EXPECT_EQ(folder.lines("inner").size(), 2U);
}

// ---- the breaker of a map ----------------------------------------

constexpr std::string_view guarded = R"(
steps:
  - id: m
    for_each: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    max_parallel: 1
    run: 'echo $REPRISE_ITEM >> order; test -e mended || { echo bad thing >&2; exit 64; }'
    circuit_breaker: {limit: 4, tracked_classes: [deterministic]}
    on_failure: dead_letter
)";

TEST(FlowRunsAgain, a_retry_after_an_open_circuit_tries_what_had_failed_and_then_the_rest) {
  FlowFolder folder;
  EXPECT_EQ(folder.run(guarded).exit_code, 1);
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 1);
  const std::vector<std::string> twice{"0", "1", "2", "3", "0", "1", "2", "3"};
  EXPECT_EQ(folder.lines("order"), twice);
  EXPECT_EQ(text_of(folder.step("m"), "skipped"), "6");
  EXPECT_NE(folder.why("m[7]").find("skipped: circuit open. It was never tried"), std::string::npos);
  EXPECT_NE(folder.reprise({"show", "@last"}).out.find("6 skipped: circuit open"), std::string::npos);
  folder.write("mended", "");
  const Outcome mended = folder.reprise({"retry", "@last"});
  EXPECT_EQ(mended.exit_code, 0) << mended.err;
  EXPECT_EQ(folder.lines("order").size(), 18U);
  EXPECT_EQ(text_of(folder.step("m"), "skipped"), "0");
}

TEST(FlowRunsAgain, work_that_waited_when_the_circuit_opened_is_skipped_and_has_not_waited) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: m
    for_each: [0, 1, 2, 3]
    max_parallel: 1
    run: echo no >&2; exit 3
    retry: {max_attempts: 3, backoff: constant, initial: 10m, max: 1h, jitter: none}
    circuit_breaker: {limit: 3, tracked_classes: [transient]}
    on_failure: dead_letter
)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(last_line(outcome.err).find("m[2] gave up after 1 attempt"), std::string::npos) << outcome.err;
  const json::object step = folder.step("m");
  EXPECT_LT(number_of(step, "waited_ms"), 600'000) << "of two waits of ten minutes";
  EXPECT_EQ(number_of(step, "retries"), 0);
  const json::object shown = folder.show();
  const json::array& failures = shown.at("failures").as_array();
  ASSERT_EQ(failures.size(), 3U);
  for (std::size_t index = 0; index < 3; ++index) {
    EXPECT_EQ(flag_of(failures[index].as_object(), "skipped"), index < 2);
    EXPECT_EQ(text_of(failures[index].as_object(), "reason"), "circuit_open");
  }
  EXPECT_NE(folder.why("m[0]").find("It was skipped at "), std::string::npos);
  EXPECT_NE(folder.why("m[0]").find("It was to wait 10m before attempt 2"), std::string::npos);
  EXPECT_NE(folder.reprise({"show", "@last"}).out.find("m[0] skipped: circuit open, after 1 attempt"),
            std::string::npos);
}

TEST(FlowRunsAgain, dead_letters_that_were_not_tried_again_say_so_and_why_they_had_failed) {
  FlowFolder folder;
  ASSERT_EQ(folder
                .run("{classify: [{when: 'exit:64', class: transient}], "
                     "steps: [{id: m, for_each: [0, 1, 2, 3], max_parallel: 1, on_failure: dead_letter, retry: none, "
                     "run: 'test -e second && exit 65; echo bad >&2; exit 64', "
                     "circuit_breaker: {limit: 2, tracked_classes: [deterministic]}}]}")
                .exit_code,
            1);
  folder.write("second", "");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 1);
  const Outcome list = folder.reprise({"dead-letters", "list", "@last"});
  EXPECT_NE(list.out.find("skipped: circuit open; before that: exit 64: bad"), std::string::npos) << list.out;
  EXPECT_EQ(list.out.find("without a message"), std::string::npos);
}

// ---- cancelled by somebody else ----------------------------------------

TEST(FlowRunsAgain, a_run_that_another_process_cancels_has_not_failed) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, signal: go}]")});
  ASSERT_TRUE(folder.wait_for_event("submitted"));
  EXPECT_EQ(folder.reprise({"cancel", "@last", "--why", "the warehouse is closed"}).exit_code, 0);
  EXPECT_EQ(running->join(), 143);
  const std::string verdict = last_line(folder.read("stderr.txt"));
  EXPECT_TRUE(verdict.starts_with("cancelled") && verdict.ends_with(": the warehouse is closed")) << verdict;
  EXPECT_EQ(folder.reprise({"wait", "@last"}).exit_code, 143);
}

TEST(FlowRunsAgain, a_signal_that_no_step_waits_for_is_a_mistake) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, signal: go}]")});
  ASSERT_TRUE(folder.wait_for_event("submitted"));
  const Outcome wrong = folder.reprise({"signal", "@last", "goo"});
  EXPECT_EQ(wrong.exit_code, 4);
  EXPECT_NE(wrong.err.find("waits for \"goo\"; there is go"), std::string::npos) << wrong.err;
  EXPECT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  EXPECT_EQ(running->join(), 0);
}

TEST(FlowRunsAgain, arguments_that_are_too_long_are_the_documents_mistake) {
  FlowFolder folder;
  const Outcome outcome = folder.run("steps: [{id: a, env: {BIG: '" + std::string(200'000, 'x') + "'}, run: 'true'}]");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(text_of(folder.last("failed", "a"), "reason"), "permanent");
  EXPECT_EQ(folder.count("started"), 1U);
}

// ---- what is told ----------------------------------------

TEST(FlowRunsAgain, why_has_a_row_for_an_interruption_and_the_reason_of_a_loss) {
  FlowFolder folder;
  EXPECT_EQ(folder
                .run("steps: [{id: a, retry: {max_attempts: 2, backoff: constant, initial: 1ms}, run: '"
                     "case $REPRISE_ATTEMPT in 1) kill -INT $PPID; sleep 60;; 2) kill -9 $PPID; sleep 60;; esac'}]")
                .exit_code,
            130);
  EXPECT_NE(folder.why("a").find("Attempt 1 was stopped at "), std::string::npos) << folder.why("a");
  folder.reprise({"resume", "@last"});
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  const std::string why = folder.why("a");
  EXPECT_NE(why.find("Attempt 1 was stopped at "), std::string::npos) << why;
  EXPECT_NE(why.find("Attempt 3 follows at once: a first loss waits for nothing."), std::string::npos) << why;
  EXPECT_EQ(why.find("as constant backoff says"), std::string::npos) << why;
}

TEST(FlowRunsAgain, a_kill_in_a_wait_is_told) {
  FlowFolder folder;
  const auto running =
      folder.start({"run", folder.flow("steps: [{id: a, retry: {backoff: constant, initial: 1h}, run: exit 3}]")});
  ASSERT_TRUE(folder.wait_for_event("retrying"));
  running->signal(SIGKILL);
  running->join();
  EXPECT_EQ(folder.reprise({"cancel", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.count("recovered"), 1U);
  EXPECT_EQ(number_of(folder.show(), "recoveries"), 1);
  EXPECT_EQ(folder.count("failed"), 1U) << "no attempt was lost";
}

TEST(FlowRunsAgain, a_stop_in_a_wait_is_no_death) {
  FlowFolder folder;
  const auto running =
      folder.start({"run", folder.flow("steps: [{id: a, retry: {backoff: constant, initial: 1h}, run: exit 3}]")});
  ASSERT_TRUE(folder.wait_for_event("retrying"));
  running->signal(SIGTERM);
  EXPECT_EQ(running->join(), 143);
  const auto again = folder.start({"resume", "@last"});
  ASSERT_TRUE(folder.wait_for_event("reopened"));
  again->signal(SIGTERM);
  EXPECT_EQ(again->join(), 143);
  EXPECT_EQ(folder.count("recovered"), 0U);
}

}  // namespace
}  // namespace reprise
