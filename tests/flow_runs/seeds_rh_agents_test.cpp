// rh_agents' and Azolla's documents, run by the real command: levels, error types, events, scope, timeouts, interrupts and replay.
#include <gtest/gtest.h>

#include <csignal>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

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

// ---- rh_agents: which policy applies ----

TEST(FlowRunsRhAgents, the_most_specific_level_wins_whole) {
  FlowFolder folder;
  folder.program("fail.sh", "echo 'ConnectionError: the line is dead' >&2; exit 1");
  const Outcome outcome = folder.run(R"(
default_retry_config: {max_attempts: 4, initial_delay: 0.001, jitter: false}
retry_config_by_actor_type: {llm_call: {max_attempts: 2, initial_delay: 0.002, jitter: false}}
steps:
  - id: own
    run: ./fail.sh
    type: llm
    retry_config: {max_attempts: 3, backoff_strategy: linear, initial_delay: 0.003, jitter: false}
    on_failure: continue
  - {id: by_type, run: ./fail.sh, type: llm, on_failure: continue}
  - {id: by_default, run: ./fail.sh, on_failure: continue}
  - {id: off, run: ./fail.sh, type: llm, retry_config: {enabled: false, max_attempts: 9}, on_failure: continue}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto attempts_and_level = [&](std::string_view step) {
    const auto shown = folder.step(step);
    return text_of(shown, "attempts") + " " + text_of(shown, "policy_level");
  };
  EXPECT_EQ(attempts_and_level("own"), "3 step");
  EXPECT_EQ(attempts_and_level("by_type"), "2 actor type");
  EXPECT_EQ(attempts_and_level("by_default"), "4 run");
  EXPECT_EQ(attempts_and_level("off"), "1 step");
  EXPECT_EQ(number_of(folder.step("own"), "waited_ms"), 3 + 6);
  EXPECT_EQ(number_of(folder.step("by_default"), "waited_ms"), 1 + 2 + 4);
}

TEST(FlowRunsRhAgents, switched_off_for_everything_is_final_too) {
  FlowFolder folder;
  folder.run(R"(
default_retry_config: {enabled: false}
steps: [{id: a, run: "echo 'TimeoutError: slow' >&2; exit 1"}]
)");
  EXPECT_EQ(folder.count("started"), 1U);
}

TEST(FlowRunsRhAgents, built_in_a_tool_has_three_attempts_and_an_agent_one) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
dialect: rh_agents
steps:
  - {id: tool, type: tool, run: "true"}
  - {id: agent, type: agent, run: "echo 'ConnectionError: gone' >&2; exit 1", on_failure: continue}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.step("tool"), "max_attempts") + " " + text_of(folder.step("tool"), "policy_level"),
            "3 built-in");
  EXPECT_EQ(number_of(folder.step("agent"), "attempts"), 1);
}

TEST(FlowRunsRhAgents, errors_are_judged_by_their_type) {
  FlowFolder folder;
  folder.program("fail.sh", "echo \"$1: trouble\" >&2; exit 1");
  folder.run(R"(
default_retry_config: {max_attempts: 2, initial_delay: 0.001}
steps:
  - {id: timeout, run: ./fail.sh TimeoutError, on_failure: continue}
  - {id: reset, run: ./fail.sh ConnectionResetError, on_failure: continue}
  - {id: value, run: ./fail.sh ValueError, on_failure: continue}
  - {id: validation, run: ./fail.sh ValidationError, on_failure: continue}
  - {id: other, run: ./fail.sh RuntimeError, on_failure: continue}
  - {id: listed, run: ./fail.sh RuntimeError, retry_config: {max_attempts: 2, initial_delay: 0.001, retry_on_exceptions: [RuntimeError]}, on_failure: continue}
  - {id: denied, run: ./fail.sh TimeoutError, retry_config: {max_attempts: 2, initial_delay: 0.001, exclude_exceptions: [TimeoutError]}, on_failure: continue}
)");
  const Events events = folder.events();
  const auto tries = [&](std::string_view step) { return of_type(events, "started", step).size(); };
  EXPECT_EQ(tries("timeout"), 2U);
  EXPECT_EQ(tries("reset"), 2U);
  EXPECT_EQ(tries("value"), 1U);
  EXPECT_EQ(tries("validation"), 1U);
  EXPECT_EQ(tries("other"), 1U);
  EXPECT_EQ(tries("listed"), 2U);
  EXPECT_EQ(tries("denied"), 1U);
  EXPECT_EQ(text_of(object_of(folder.first("failed", "reset"), "error"), "type"), "ConnectionResetError");
}

// ---- its events ----

TEST(FlowRunsRhAgents, events_come_in_order_and_carry_their_fields) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: call
    run: "test $REPRISE_ATTEMPT = 2 || { echo 'ConnectionError: line dead' >&2; exit 1; }; echo ok"
    retry_config: {max_attempts: 3, initial_delay: 0.004, jitter: false}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Events events = folder.events();
  ASSERT_EQ(story_of(events),
            (std::vector<std::string>{"submitted", "started call#1", "failed call#1", "retrying call#1",
                                      "started call#2", "completed call#2", "ended"}));
  for (std::size_t at = 0; at < events.size(); ++at) {
    EXPECT_EQ(number_of(events[at], "sequence"), static_cast<double>(at + 1));
    EXPECT_EQ(text_of(events[at], "run"), folder.last_run());
  }
  EXPECT_FALSE(flag_of(events[1], "is_retry"));
  EXPECT_FALSE(has(events[1], "original_error"));
  EXPECT_TRUE(flag_of(events[2], "will_retry"));
  EXPECT_FALSE(has(events[2], "total_attempts"));
  EXPECT_EQ(number_of(events[3], "next_attempt"), 2);
  EXPECT_EQ(number_of(events[3], "delay_ms"), 4);
  EXPECT_TRUE(has(events[3], "due_at"));
  EXPECT_TRUE(flag_of(events[4], "is_retry"));
  EXPECT_EQ(text_of(object_of(events[4], "original_error"), "message"), "exit 1: ConnectionError: line dead");
  EXPECT_EQ(number_of(events[4], "retry_delay_ms"), 4);
  EXPECT_EQ(number_of(events[5], "total_attempts"), 2);
  EXPECT_GE(number_of(events[5], "total_elapsed_ms"), 4);
  EXPECT_EQ(text_of(events[5], "output"), "ok");
}

TEST(FlowRunsRhAgents, the_last_failure_says_that_it_is_the_last) {
  FlowFolder folder;
  EXPECT_EQ(folder
                .run(R"(
steps: [{id: call, run: "echo 'ConnectionError: x' >&2; exit 1", retry_config: {max_attempts: 2, initial_delay: 0.001}}]
)")
                .exit_code,
            1);
  const auto failed = folder.last("failed");
  EXPECT_FALSE(flag_of(failed, "will_retry"));
  EXPECT_EQ(number_of(failed, "total_attempts"), 2);
  EXPECT_EQ(text_of(failed, "stop_reason"), "attempts");
  EXPECT_NE(folder.why("call").find("Attempt 2 failed"), std::string::npos) << folder.why("call");
  EXPECT_NE(folder.why("call").find("max_attempts"), std::string::npos) << folder.why("call");
}

// ---- what an attempt is ----

TEST(FlowRunsRhAgents, a_precondition_runs_once_and_its_failure_is_final) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: call
    require: {run: "echo asked >> asked.txt; echo 'ConnectionError: not ready' >&2; exit 1"}
    run: echo ran >> ran.txt
    retry_config: {max_attempts: 5, initial_delay: 0.001}
)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(folder.lines("asked.txt").size(), 1U);
  EXPECT_FALSE(folder.exists("ran.txt"));
  const auto failed = folder.last("failed", "call");
  EXPECT_EQ(text_of(failed, "phase"), "precondition");
  EXPECT_FALSE(flag_of(failed, "will_retry"));
  EXPECT_EQ(folder.count("started", "call"), 0U);
  EXPECT_NE(folder.why("call").find("precondition"), std::string::npos) << folder.why("call");
}

TEST(FlowRunsRhAgents, a_precondition_is_not_asked_again_for_a_retry) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: call
    require: {run: "echo asked >> asked.txt"}
    run: "echo ran >> ran.txt; test $REPRISE_ATTEMPT = 3 || { echo 'ConnectionError: x' >&2; exit 1; }"
    retry_config: {max_attempts: 5, initial_delay: 0.001}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("asked.txt").size(), 1U);
  EXPECT_EQ(folder.lines("ran.txt").size(), 3U);
}

TEST(FlowRunsRhAgents, a_postcondition_is_part_of_the_attempt) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: call
    run: echo ran >> ran.txt
    check: {run: "test $(wc -l < ran.txt) -ge 3 || { echo 'TimeoutError: not there yet' >&2; exit 1; }"}
    retry_config: {max_attempts: 5, initial_delay: 0.001}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("ran.txt").size(), 3U);
  EXPECT_EQ(folder.count("started", "call"), 3U);
  EXPECT_EQ(text_of(object_of(folder.first("failed"), "error"), "class"), "contract_failure");
}

TEST(FlowRunsRhAgents, an_attempt_that_takes_too_long_is_stopped_and_tried_again) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: call
    run: "test $REPRISE_ATTEMPT = 2 || { sleep 600 & wait; }; echo ok"
    timeout: 300ms
    retry_config: {max_attempts: 3, initial_delay: 0.001}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto failed = folder.last("failed", "call");
  EXPECT_EQ(text_of(object_of(failed, "error"), "type"), "TimeoutError");
  EXPECT_EQ(text_of(object_of(failed, "error"), "kind"), "timeout");
  EXPECT_TRUE(flag_of(failed, "will_retry"));
  EXPECT_EQ(folder.count("started"), 2U);
}

TEST(FlowRunsRhAgents, retry_timeout_lets_no_attempt_begin_too_late) {
  FlowFolder folder;
  EXPECT_EQ(folder
                .run(R"(
steps:
  - id: call
    run: "echo 'ConnectionError: x' >&2; exit 1"
    retry_config: {max_attempts: 9, backoff_strategy: constant, initial_delay: 60.0, retry_timeout: 30.0, jitter: false}
)")
                .exit_code,
            1);
  EXPECT_EQ(folder.count("started"), 1U);
  EXPECT_EQ(text_of(folder.last("failed"), "stop_reason"), "deadline");
  EXPECT_NE(folder.why("call").find("30s"), std::string::npos) << folder.why("call");
}

// ---- interrupts, replay ----

TEST(FlowRunsRhAgents, an_interrupt_ends_a_long_wait_and_the_run_can_go_on) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
steps:
  - {id: first, run: echo first >> ran.txt}
  - id: call
    needs: first
    run: "echo call >> ran.txt; test -e mended || { echo 'ConnectionError: x' >&2; exit 1; }"
    retry_config: {max_attempts: 3, backoff_strategy: constant, initial_delay: 3000.0, max_delay: 3600.0, jitter: false}
)")});
  ASSERT_TRUE(folder.wait_for_event("retrying", "call"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130) << folder.read("stderr.txt");
  const std::string run = folder.last_run();
  EXPECT_NE(folder.read("stderr.txt").find("reprise resume " + run), std::string::npos) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.show(), "status"), "canceled");
  EXPECT_EQ(folder.count("cancel_requested"), 1U);
  EXPECT_EQ(folder.count("interrupted", "call"), 1U);
  EXPECT_EQ(folder.lines("ran.txt"), (std::vector<std::string>{"first", "call"}));

  // The wait goes on where it was: nearly fifty minutes of it are left.
  const auto resumed = folder.start({"resume", run});
  ASSERT_TRUE(folder.wait_for_event("reopened"));
  EXPECT_EQ(folder.count("started", "call"), 1U);
  resumed->signal(SIGTERM);
  EXPECT_EQ(resumed->join(), 143) << folder.read("stderr.txt");
  EXPECT_EQ(folder.lines("ran.txt").size(), 2U);
}

TEST(FlowRunsRhAgents, an_interrupt_stops_running_work_and_its_children) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
dialect: rh_agents
steps: [{id: call, run: "sleep 600 & echo $! > child.txt; test -e mended && kill $! && exit 0; wait", retry_config: {max_attempts: 3}}]
)")});
  ASSERT_TRUE(folder.wait_for_file("child.txt", "\n"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130) << folder.read("stderr.txt");
  EXPECT_EQ(testing_support::leftovers_in(folder.path()), "");
  folder.write("mended", "");
  const Outcome resumed = folder.reprise({"resume", "@last"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(text_of(folder.show(), "status"), "succeeded");
}

TEST(FlowRunsRhAgents, replay_runs_nothing_and_waits_for_nothing) {
  FlowFolder folder;
  folder.run(R"(
steps:
  - id: call
    run: "echo ran >> ran.txt; echo 'ConnectionError: x' >&2; exit 1"
    retry_config: {max_attempts: 3, initial_delay: 0.001}
  - {id: after, needs: call, run: echo after >> ran.txt}
)");
  const Events before = folder.events();
  const Outcome replayed = folder.reprise({"replay", "@last"});
  EXPECT_EQ(replayed.exit_code, 0) << replayed.out << replayed.err;
  EXPECT_NE(replayed.out.find("attempt 3/3 failed"), std::string::npos) << replayed.out;
  EXPECT_EQ(folder.lines("ran.txt").size(), 3U);
  EXPECT_EQ(folder.events(), before);
  EXPECT_EQ(text_of(folder.show(), "status"), "failed");  // what failed after all stays failed
  const auto as_json = boost::json::parse(folder.reprise({"replay", "@last", "--format", "json"}).out).as_object();
  EXPECT_TRUE(flag_of(as_json, "same"));
}

TEST(FlowRunsRhAgents, validating_a_replay_runs_again_and_reports_differences) {
  FlowFolder folder;
  folder.write("counter.txt", "");
  const std::string document = R"(
steps:
  - {id: same, run: "echo always"}
  - {id: counts, run: "echo x >> counter.txt; wc -l < counter.txt"}
)";
  folder.run(document);
  const Outcome differs = folder.reprise({"replay", "@last", "--validate"});
  EXPECT_EQ(differs.exit_code, 1) << differs.err;
  EXPECT_NE(differs.out.find("counts"), std::string::npos) << differs.out;
  EXPECT_NE(differs.out.find("1 difference\n"), std::string::npos) << differs.out;
  EXPECT_EQ(differs.out.find("same"), std::string::npos) << differs.out;
  EXPECT_EQ(folder.lines("counter.txt").size(), 2U);
  const auto as_json =
      boost::json::parse(folder.reprise({"replay", "@last", "--validate", "--format", "json"}).out).as_object();
  EXPECT_FALSE(flag_of(as_json, "same"));
  ASSERT_EQ(as_json.at("differences").as_array().size(), 1U);
  const auto& difference = as_json.at("differences").as_array().front().as_object();
  EXPECT_EQ(text_of(object_of(difference, "was"), "output") + " " + text_of(object_of(difference, "is"), "output"),
            "1 3");
  EXPECT_EQ(text_of(folder.last("completed", "counts"), "output"), "1");  // the record is what it was
}

TEST(FlowRunsRhAgents, validating_a_replay_without_differences_says_so) {
  FlowFolder folder;
  folder.run("steps: [{id: a, run: echo always}, {id: b, run: exit 64, on_failure: continue}]");
  const Outcome same = folder.reprise({"replay", "@last", "--validate"});
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_NE(same.out.find("no difference"), std::string::npos) << same.out;
}

// ---- Azolla ----

TEST(FlowRunsAzolla, the_type_on_the_last_line_of_stderr_decides) {
  FlowFolder folder;
  folder.program(
      "fail.sh",
      "printf 'Traceback (most recent call last):\\n  File \"x.py\", line 1\\n%s: bad\\n' \"$1\" >&2; exit 1");
  const Outcome outcome = folder.run(R"(
steps:
  - {id: by_default, run: ./fail.sh ValueError, retry_policy: {wait: &no {strategy: fixed, delay: 0}}, on_failure: continue}
  - {id: other, run: ./fail.sh KeyError, retry_policy: {wait: *no}, on_failure: continue}
  - id: included
    run: ./fail.sh KeyError
    retry_policy: {stop: {max_attempts: 3}, wait: *no, retry: {include_errors: [KeyError, ValueError]}}
    on_failure: continue
  - id: excluded
    run: ./fail.sh KeyError
    retry_policy: {wait: *no, retry: {include_errors: [KeyError], exclude_errors: [KeyError]}}
    on_failure: continue
  - id: exactly
    run: ./fail.sh ConnectionResetError
    retry_policy: {wait: *no, retry: {include_errors: [ConnectionError]}}
    on_failure: continue
  - {id: nothing, run: ./fail.sh ValueError, retry_policy: {wait: *no, retry: {include_errors: []}}, on_failure: continue}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Events events = folder.events();
  const auto end_of = [&](std::string_view step) {
    const Events failed = of_type(events, "failed", step);
    return failed.empty() ? "" : std::to_string(failed.size()) + " " + text_of(failed.back(), "stop_reason");
  };
  EXPECT_EQ(end_of("by_default"), "5 attempts");
  EXPECT_EQ(end_of("other"), "1 not_listed");
  EXPECT_EQ(end_of("included"), "3 attempts");
  EXPECT_EQ(end_of("excluded"), "1 permanent");
  EXPECT_EQ(end_of("exactly"), "1 not_listed");
  EXPECT_EQ(end_of("nothing"), "1 not_listed");
  EXPECT_EQ(text_of(object_of(folder.first("failed", "other"), "error"), "type"), "KeyError");
}

TEST(FlowRunsAzolla, exponential_waits_grow_to_their_cap_and_keys_from_the_future_are_ignored) {
  FlowFolder folder;
  folder.run(R"(
steps:
  - id: task
    run: "echo 'ValueError: bad' >&2; exit 1"
    retry_policy:
      version: 1
      color: blue
      stop: {max_attempts: 5}
      wait: {strategy: exponential, initial_delay: 0.002, multiplier: 3, max_delay: 0.01}
)");
  std::vector<double> delays;
  for (const auto& event : of_type(folder.events(), "retrying")) delays.push_back(number_of(event, "delay_ms"));
  EXPECT_EQ(delays, (std::vector<double>{2, 6, 10, 10}));
}

TEST(FlowRunsAzolla, a_misspelling_inside_a_section_is_an_error) {
  FlowFolder folder;
  const Outcome outcome = folder.run("steps:\n  - {id: a, run: 'true', retry_policy: {stop: {max_attempt: 3}}}\n");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("max_attempts"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("flow.yaml:2:"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace reprise
