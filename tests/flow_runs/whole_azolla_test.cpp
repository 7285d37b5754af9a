// Azolla's policies with every key of their specification, in a document and around a command, run by the real command: with failures,
// kill -9 inside an attempt, a kill in a wait, Ctrl-C and resume; outcome, delays, events and `why` are held against what it says.
#include <gtest/gtest.h>

#include <csignal>

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
using testing_support::text_of;

void add_programs(const FlowFolder& folder) {
  folder.program("fail_until.sh", "test $REPRISE_ATTEMPT -ge $1 || { echo \"$2: not yet\" >&2; exit 1; }");
}

std::vector<double> delays_of(const Events& events, std::string_view step) {
  std::vector<double> delays;
  for (const auto& event : of_type(events, "retrying", step)) delays.push_back(number_of(event, "delay_ms"));
  return delays;
}

std::string end_of(const Events& events, std::string_view step) {
  const Events failed = of_type(events, "failed", step);
  return failed.empty() ? "" : std::to_string(failed.size()) + " " + text_of(failed.back(), "stop_reason");
}

constexpr const char* whole_document = R"(
dialect: azolla
name: whole
retry_policy:
  {"version": 1, "stop": {"max_attempts": 3, "max_delay": 3600},
   "wait": {"strategy": "exponential_jitter", "initial_delay": 0.004, "multiplier": 2, "max_delay": 0.006},
   "retry": {"include_errors": ["ValueError", "TimeoutError"], "exclude_errors": ["KeyError"]},
   "from_the_future": true}
steps:
  - {id: by_default, run: ./fail_until.sh 3 ValueError}
  - {id: used_up, run: ./fail_until.sh 9 TimeoutError, on_failure: continue}
  - {id: excluded, run: ./fail_until.sh 9 KeyError, on_failure: continue}
  - {id: unlisted, run: ./fail_until.sh 9 ConnectionError, on_failure: continue}
  - {id: fixed, run: ./fail_until.sh 3 NetworkError,
     retry_policy: {stop: {max_attempts: 5, max_delay: null}, wait: {strategy: fixed, delay: 0.003, max_delay: 0.001}, retry: {include_errors: [NetworkError]}}}
  - {id: for_ever, run: ./fail_until.sh 7 ValueError,
     retry_policy: {stop: {max_attempts: null, max_delay: null}, wait: {strategy: exponential, initial_delay: 0.001, multiplier: 3, max_delay: 0.02}}}
  - {id: nothing, run: ./fail_until.sh 2 ValueError, retry_policy: {retry: {include_errors: []}}, on_failure: continue}
  - {id: late, run: "echo 'ValueError: x' >&2; exit 1",
     retry_policy: {stop: {max_attempts: null, max_delay: 1.5}, wait: {strategy: fixed, delay: 60}}, on_failure: continue}
)";

TEST(WholeAzolla, every_key_does_what_the_specification_says) {
  FlowFolder folder;
  add_programs(folder);
  const Outcome outcome = folder.run(whole_document);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Events events = folder.events();
  const std::vector<double> jittered = delays_of(events, "by_default");
  ASSERT_EQ(jittered.size(), 2U);
  EXPECT_LE(jittered[0], 4);
  EXPECT_LE(jittered[1], 6);
  EXPECT_EQ(delays_of(events, "fixed"), (std::vector<double>{3, 3}));
  EXPECT_EQ(delays_of(events, "for_ever"), (std::vector<double>{1, 3, 9, 20, 20, 20}));
  EXPECT_EQ(end_of(events, "used_up"), "3 attempts");
  EXPECT_EQ(end_of(events, "excluded"), "1 permanent");
  EXPECT_EQ(end_of(events, "unlisted"), "1 not_listed");
  EXPECT_EQ(end_of(events, "nothing"), "1 not_listed");
  EXPECT_EQ(end_of(events, "late"), "1 deadline");
  EXPECT_EQ(text_of(folder.step("by_default"), "policy_level"), "run");
  EXPECT_EQ(text_of(folder.step("fixed"), "policy_level"), "step");
}

TEST(WholeAzolla, why_speaks_its_words_with_the_native_ones_beside) {
  FlowFolder folder;
  add_programs(folder);
  folder.run(whole_document);
  const auto expect_said = [&](const char* step, std::string_view words) {
    const std::string why = folder.why(step);
    EXPECT_NE(why.find(words), std::string::npos) << words << "\n" << why;
  };
  expect_said("excluded", "KeyError stands in exclude_errors (never_on)");
  expect_said("unlisted", "include_errors (only_on) lists ValueError and TimeoutError, and none of it matches");
  expect_said("unlisted", "add ConnectionError to include_errors (only_on)");
  expect_said("used_up", "of stop.max_attempts 3");
  expect_said("late", "stop.max_delay (max_elapsed) 1.5s");
  const Outcome told = folder.reprise({"run", folder.path_of("flow.yaml"), "--progress", "plain"});
  EXPECT_EQ(told.err.find("only_on"), std::string::npos) << told.err;
}

TEST(WholeAzolla, the_limit_that_cuts_an_attempt_is_named) {
  FlowFolder folder;
  folder.run(R"(
dialect: azolla
steps: [{id: slow, run: sleep 600, retry_policy: {stop: {max_delay: 0.3}}}]
)");
  EXPECT_EQ(text_of(folder.last("failed"), "stop_reason"), "deadline");
  EXPECT_NE(folder.why("slow").find("stop.max_delay (max_elapsed) 300ms"), std::string::npos) << folder.why("slow");
}

TEST(WholeAzolla, two_policies_for_the_whole_document_are_a_mistake) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
retry_policy: {stop: {max_attempts: 2}}
defaults: {retry_policy: {stop: {max_attempts: 3}}}
steps: [{id: a, run: "true"}]
)");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("says already what every step does"), std::string::npos) << outcome.err;
}

// ---- kill -9, Ctrl-C ----

TEST(WholeAzolla, a_task_that_may_retry_for_ever_survives_a_kill_inside_an_attempt) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
dialect: azolla
steps:
  - id: task
    run: "echo x >> ran.txt; test -e mended || sleep 600"
    retry_policy: {stop: {max_attempts: null}, wait: {strategy: fixed, delay: 0}}
)")});
  ASSERT_TRUE(folder.wait_for_file("ran.txt", "x"));
  running->signal(SIGKILL);
  running->join();
  folder.write("mended", "");
  const Outcome resumed = folder.reprise({"resume", "@last"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err << folder.why();
  EXPECT_TRUE(flag_of(folder.first("failed", "task"), "lost"));
}

TEST(WholeAzolla, a_kill_in_a_wait_and_an_interrupt_lose_nothing) {
  FlowFolder folder;
  add_programs(folder);
  const auto running = folder.start({"run", folder.flow(R"(
dialect: azolla
steps:
  - id: task
    run: ./fail_until.sh 3 ValueError
    retry_policy: {stop: {max_attempts: 3}, wait: {strategy: fixed, delay: 0.5}}
)")});
  ASSERT_TRUE(folder.wait_for_event("retrying", "task"));
  running->signal(SIGKILL);
  running->join();
  const auto resumed = folder.start({"resume", "@last"});
  ASSERT_TRUE(folder.wait_for_event("retrying", "task", 2));
  resumed->signal(SIGINT);
  EXPECT_EQ(resumed->join(), 130) << folder.read("stderr.txt");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0) << folder.why();
  EXPECT_EQ(folder.count("started", "task"), 3U);
  EXPECT_EQ(delays_of(folder.events(), "task"), (std::vector<double>{500, 500}));
  EXPECT_EQ(text_of(object_of(folder.last("started", "task"), "original_error"), "type"), "ValueError");
}

// ---- around one command ----

constexpr const char* policy_file = R"({
  "version": 1,                                      // reserved
  "stop":  { "max_attempts": 3 },                    /* first run
                                                        and two retries */
  "wait":  { "strategy": "fixed", "delay": 0.001 },  // seconds
  "retry": { "include_errors": ["TimeoutError"] }
}
)";

TEST(WholeAzolla, a_policy_file_with_comments_serves_one_command) {
  FlowFolder folder;
  add_programs(folder);
  folder.write("retry.jsonc", policy_file);
  EXPECT_EQ(folder.reprise({"policy", "check", "--from", "azolla", "retry.jsonc"}).exit_code, 0);
  const Outcome done = folder.reprise({"exec", "--policy", "retry.jsonc", "--from", "azolla", "--id", "k", "--",
                                       "./fail_until.sh", "3", "TimeoutError"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(folder.count("started"), 3U);
  const Outcome unlisted = folder.reprise(
      {"exec", "--policy", "retry.jsonc", "--from", "azolla", "--", "./fail_until.sh", "3", "ConnectionError"});
  EXPECT_EQ(unlisted.exit_code, 1) << unlisted.err;
  EXPECT_EQ(folder.count("started"), 1U);
  EXPECT_NE(folder.why().find("include_errors (only_on) lists TimeoutError"), std::string::npos) << folder.why();
  EXPECT_NE(folder.why().find("in its policy file"), std::string::npos) << folder.why();
  const Outcome other = folder.reprise({"exec", "--id", "k", "--", "./fail_until.sh", "3", "TimeoutError"});
  EXPECT_EQ(other.exit_code, 125) << other.err;
  EXPECT_NE(other.err.find("the retry policy"), std::string::npos) << other.err;
}

TEST(WholeAzolla, the_policy_of_a_command_survives_an_interrupt) {
  FlowFolder folder;
  folder.write(
      "retry.json",
      R"({"stop": {"max_attempts": 3}, "wait": {"strategy": "fixed", "delay": 0.4}, "retry": {"include_errors": ["TimeoutError"]}})");
  const auto running = folder.start({"exec", "--policy", "retry.json", "--from", "azolla", "--timeout", "10m", "--",
                                     "sh", "-c", "echo 'TimeoutError: x' >&2; exit 1"});
  ASSERT_TRUE(folder.wait_for_event("retrying"));
  running->signal(SIGINT);
  running->join();
  folder.write("retry.json", "{}");  // a run keeps what it began with
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 1);
  EXPECT_EQ(folder.count("started"), 3U);
}

TEST(WholeAzolla, a_broken_policy_file_starts_nothing) {
  FlowFolder folder;
  folder.write("retry.json", R"({"stop": {"max_attempt": 3}})");
  const auto exec = [&](std::vector<std::string> options) {
    std::vector<std::string> arguments{"exec"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "touch", "ran"});
    return folder.reprise(arguments);
  };
  const Outcome broken = exec({"--policy", "retry.json", "--from", "azolla"});
  EXPECT_EQ(broken.exit_code, 125);
  EXPECT_NE(broken.err.find("retry.json:1:11"), std::string::npos) << broken.err;
  EXPECT_NE(broken.err.find("max_attempts"), std::string::npos) << broken.err;
  EXPECT_EQ(exec({"--policy", "nowhere.json"}).exit_code, 125);
  EXPECT_EQ(exec({"--from", "azolla"}).exit_code, 125);
  EXPECT_EQ(exec({"--policy", "retry.json", "--from", "azolla", "--max-attempts", "2"}).exit_code, 125);
  EXPECT_FALSE(folder.exists("ran"));
}

TEST(WholeAzolla, a_mistyped_strategy_is_the_only_thing_said) {
  FlowFolder folder;
  const Outcome outcome =
      folder.reprise({"policy", "check", "--from", "azolla", "-"}, R"({"wait": {"strategy": "Fixed", "delay": 5}})");
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("fixed"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("warning"), std::string::npos) << outcome.err;
}

TEST(WholeAzolla, each_item_may_bring_its_policy) {
  FlowFolder folder;
  folder.run(R"(
dialect: azolla
steps:
  - id: each
    for_each: [{policy: {stop: {max_attempts: 2}, wait: {strategy: fixed, delay: 0}}}, {policy: {stop: {max_attempts: 1}}}]
    run: "echo 'ValueError: x' >&2; exit 1"
    retry_policy: ${item.policy}
    tolerate: 100%
)");
  EXPECT_EQ(folder.count("started", "each[0]"), 2U);
  EXPECT_EQ(folder.count("started", "each[1]"), 1U);
}

}  // namespace
}  // namespace reprise
