// A document in rh-agents' own words with every key of its RetryConfig, run by the real command: with failures, kill -9 inside an attempt,
// a kill in a wait, Ctrl-C and resume; outcome, delays, events and `why` are held against what that system's specification says.
#include <gtest/gtest.h>

#include <csignal>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"
#include "support/scripted_server.hpp"

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

constexpr const char* whole_document = R"(
dialect: rh_agents
name: whole
types: {APIError: ConnectionError}
default_retry_config:
  max_attempts: 4
  backoff_strategy: fibonacci
  initial_delay: 0.001
  max_delay: 60.0
  backoff_multiplier: 2.0
  jitter: true
  retry_on_exceptions: null
  exclude_exceptions: null
  retry_timeout: null
  enabled: true
retry_config_by_actor_type:
  TOOL_CALL: {max_attempts: 4, backoff_strategy: exponential, initial_delay: 0.001, backoff_multiplier: 3.0, max_delay: 0.005,
              jitter: false, retry_on_exceptions: [APIError, TimeoutError, "exit:75"], retry_timeout: 3600.0}
  llm_call: {max_attempts: 3, backoff_strategy: linear, initial_delay: 0.002, jitter: false, exclude_exceptions: [ConnectionResetError]}
  Agent_Call: {enabled: false, max_attempts: 9}
steps:
  - id: fetch
    type: tool_call
    require: {run: "echo asked >> asked.txt"}
    run: ./fail_until.sh 4 APIError
    check: {run: "test $REPRISE_ATTEMPT = 4"}
  - {id: by_code, type: tool, needs: fetch, run: "test $REPRISE_ATTEMPT = 2 || exit 75"}
  - {id: ask, type: LLM_CALL, needs: fetch, run: ./fail_until.sh 3 TimeoutError}
  - {id: reset, type: llm, needs: fetch, run: ./fail_until.sh 3 ConnectionResetError, on_failure: continue}
  - {id: plan, type: agent_call, needs: fetch, run: ./fail_until.sh 2 ConnectionError, on_failure: continue}
  - {id: approve, type: human, needs: fetch, run: ./fail_until.sh 4 ConnectionAbortedError}
  - {id: once, type: tool, needs: fetch, run: ./fail_until.sh 2 APIError, retry_config: {enabled: false}, on_failure: continue}
  - {id: constant, needs: fetch, run: ./fail_until.sh 3 TimeoutError,
     retry_config: {backoff_strategy: constant, initial_delay: 0.003, jitter: false}}
)";

void add_programs(const FlowFolder& folder) {
  folder.program("fail_until.sh", "test $REPRISE_ATTEMPT -ge $1 || { echo \"$2: not yet\" >&2; exit 1; }");
}

std::vector<double> delays_of(const Events& events, std::string_view step) {
  std::vector<double> delays;
  for (const auto& event : of_type(events, "retrying", step)) delays.push_back(number_of(event, "delay_ms"));
  return delays;
}

TEST(WholeRhAgents, every_key_does_what_the_specification_says) {
  FlowFolder folder;
  add_programs(folder);
  const Outcome outcome = folder.run(whole_document);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Events events = folder.events();
  EXPECT_EQ(delays_of(events, "fetch"), (std::vector<double>{1, 3, 5}));  // 9 is over max_delay
  EXPECT_EQ(delays_of(events, "by_code"), (std::vector<double>{1}));
  EXPECT_EQ(delays_of(events, "ask"), (std::vector<double>{2, 4}));
  EXPECT_EQ(delays_of(events, "constant"), (std::vector<double>{3, 3}));
  const std::vector<double> jittered = delays_of(events, "approve");  // fibonacci 1 1 2, each ± 25 %
  ASSERT_EQ(jittered.size(), 3U);
  for (const auto& [delay, nominal] : {std::pair{jittered[0], 1.0}, {jittered[1], 1.0}, {jittered[2], 2.0}}) {
    EXPECT_GE(delay, 0.75 * nominal);
    EXPECT_LE(delay, 1.25 * nominal);
  }
  for (const char* step : {"reset", "plan", "once"}) EXPECT_EQ(of_type(events, "started", step).size(), 1U) << step;
  EXPECT_EQ(folder.lines("asked.txt").size(), 1U);
  const auto end_of = [&](const char* step) { return text_of(of_type(events, "failed", step).back(), "stop_reason"); };
  EXPECT_EQ(end_of("reset"), "permanent");
  EXPECT_EQ(end_of("plan"), "attempts");
  EXPECT_EQ(text_of(folder.step("plan"), "policy_level"), "actor type");
  EXPECT_EQ(text_of(folder.step("approve"), "policy_level"), "run");
  EXPECT_EQ(text_of(folder.step("once"), "policy_level"), "step");
}

TEST(WholeRhAgents, every_event_of_an_attempt_knows_its_actor_and_whether_it_is_a_retry) {
  FlowFolder folder;
  add_programs(folder);
  folder.run(whole_document);
  std::size_t seen = 0;
  for (const auto& event : folder.events()) {
    if (!has(event, "attempt")) continue;
    ++seen;
    EXPECT_EQ(flag_of(event, "is_retry"), number_of(event, "attempt") > 1) << event;
    EXPECT_TRUE(has(event, "is_retry")) << event;
    const std::string step = text_of(event, "step");
    const std::string type = step == "ask" || step == "reset" ? "llm"
                             : step == "plan"                 ? "agent"
                             : step == "approve"              ? "human"
                                                              : "tool";
    EXPECT_EQ(text_of(event, "actor_type"), type) << event;
  }
  EXPECT_GT(seen, 40U);
}

TEST(WholeRhAgents, why_speaks_its_words_and_names_the_line_where_retries_are_switched_off) {
  FlowFolder folder;
  add_programs(folder);
  folder.run(whole_document);
  EXPECT_NE(folder.why("plan").find("retries are switched off here (line 20)"), std::string::npos)
      << folder.why("plan");
  EXPECT_NE(folder.why("once").find("retries are switched off here (line 32)"), std::string::npos)
      << folder.why("once");
  EXPECT_NE(folder.why("reset").find("ConnectionResetError stands in exclude_exceptions (never_on)"), std::string::npos)
      << folder.why("reset");
  EXPECT_NE(folder.why("fetch").find("APIError stands in retry_on_exceptions (only_on)"), std::string::npos)
      << folder.why("fetch");
}

// ---- built in ----

TEST(WholeRhAgents, what_is_built_in_has_its_lists_and_other_types_are_not_retried) {
  FlowFolder folder;
  folder.program("fail.sh", "echo \"$1: trouble\" >&2; exit 1");
  folder.run(R"(
dialect: rh_agents
steps:
  - {id: runtime, type: TOOL_CALL, run: ./fail.sh RuntimeError, on_failure: continue}
  - {id: value, type: llm_call, run: ./fail.sh ValueError, on_failure: continue}
  - {id: agent, type: agent_call, run: ./fail.sh ConnectionError, on_failure: continue}
  - {id: human, type: human, run: ./fail.sh ConnectionError, on_failure: continue}
)");
  const Events events = folder.events();
  const auto end_of = [&](const char* step) {
    const Events failed = of_type(events, "failed", step);
    return std::to_string(failed.size()) + " " + text_of(failed.back(), "stop_reason");
  };
  EXPECT_EQ(end_of("runtime"), "1 not_listed");
  EXPECT_EQ(end_of("value"), "1 permanent");
  EXPECT_EQ(end_of("agent"), "1 attempts");
  EXPECT_EQ(end_of("human"), "1 attempts");
  EXPECT_NE(folder.why("agent").find("retries are switched off for the type agent"), std::string::npos)
      << folder.why("agent");
  const Outcome planned = folder.reprise({"run", folder.path_of("flow.yaml"), "--dry-run"});
  EXPECT_NE((planned.out + planned.err).find("[built-in for tool, rh_agents]"), std::string::npos)
      << planned.out << planned.err;
}

TEST(WholeRhAgents, mistakes_of_levels_and_filters_are_found_in_one_pass) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
dialect: rh_agents
retry_config_by_actor_type:
  tol_call: {max_attempts: 2}
  llm: {max_attempts: 2}
  human: {max_attempts: 2}
steps:
  - {id: a, run: "true", type: human, retry_config: {retry_on_exceptions: ["/reset/", "http:42", "signal:KILL", TimeoutError, "http:429"]}}
)");
  EXPECT_EQ(outcome.exit_code, 3);
  for (const char* words :
       {"no step has the type \"tol_call\"", "did you mean tool_call?", "/reset/", "http:42", "signal:KILL"})
    EXPECT_NE(outcome.err.find(words), std::string::npos) << words << "\n" << outcome.err;
  EXPECT_EQ(outcome.err.find("\"human\""), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("http:429 (text)"), std::string::npos) << outcome.err;
}

TEST(WholeRhAgents, a_status_may_stand_in_a_filter) {
  FlowFolder folder;
  testing_support::ScriptedServer server;
  server.on("/").answer(503).then(429, "").then(404, "");
  folder.run("dialect: rh_agents\nsteps:\n  - {id: call, http: {url: \"" + server.url("/") +
             "\"}, retry_config: {max_attempts: 5, initial_delay: 0.001, retry_on_exceptions: [\"http:5xx\", "
             "\"http:429\"]}}\n");
  EXPECT_EQ(folder.count("started"), 3U);
  EXPECT_EQ(text_of(folder.last("failed"), "stop_reason"), "not_listed");
}

// ---- checks, items ----

TEST(WholeRhAgents, a_failed_check_is_retried_whatever_the_lists_say) {
  FlowFolder folder;
  folder.write("number.json", R"({"type": "number"})");
  const Outcome outcome = folder.run(R"(
dialect: rh_agents
default_retry_config: {max_attempts: 3, initial_delay: 0.001}
steps:
  - {id: schema, run: "test $REPRISE_ATTEMPT = 3 && echo 7 || echo seven", output: json, check: {schema: number.json}}
  - {id: raised, run: "echo 'ValidationError: schema mismatch' >&2; exit 1", on_failure: continue}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.count("started", "schema"), 3U);
  EXPECT_EQ(text_of(object_of(folder.first("failed", "schema"), "error"), "class"), "contract_failure");
  EXPECT_NE(folder.why("schema").find("a failed check is no exception"), std::string::npos) << folder.why("schema");
  EXPECT_EQ(folder.count("started", "raised"), 1U);  // an exception of that name is one
}

constexpr const char* items_document = R"(
dialect: rh_agents
retry_config_by_actor_type: {tool_call: {max_attempts: 2, initial_delay: 0.001, jitter: false}}
steps:
  - id: each
    for_each:
      - {name: a, retry: {max_attempts: 4, backoff_strategy: constant, initial_delay: 0.002, jitter: false}}
      - {name: b, retry: {enabled: false}}
      - {name: c}
      - {name: d, retry: null}
    run: "echo ${item.name} >> ran.txt; echo 'ConnectionError: x' >&2; exit 1"
    retry_config: ${item.retry}
    on_failure: dead_letter
)";

TEST(WholeRhAgents, an_item_brings_its_policy_along) {
  FlowFolder folder;
  folder.run(items_document);
  const Events events = folder.events();
  EXPECT_EQ(of_type(events, "started", "each[0]").size(), 4U);
  EXPECT_EQ(of_type(events, "started", "each[1]").size(), 1U);
  EXPECT_EQ(of_type(events, "started", "each[2]").size(), 2U);  // nothing is said: the type's
  EXPECT_EQ(of_type(events, "started", "each[3]").size(), 2U);
  EXPECT_EQ(delays_of(events, "each[0]"), (std::vector<double>{2, 2, 2}));
  const std::string why = folder.why("each[0]");
  EXPECT_NE(why.find("that was attempt 4 of max_attempts 4"), std::string::npos) << why;
  EXPECT_NE(why.find("given with the task"), std::string::npos) << why;
  // Tried again by a person, it has its own attempts again.
  folder.reprise({"dead-letters", "retry", "@last", "--step", "each", "--item", "0"});
  EXPECT_EQ(of_type(folder.events(), "started", "each[0]").size(), 8U);
}

TEST(WholeRhAgents, the_policy_of_an_item_survives_a_kill) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
dialect: rh_agents
retry_config_by_actor_type: {tool_call: {enabled: false}}
steps:
  - id: each
    for_each: [{retry: {max_attempts: 3, backoff_strategy: constant, initial_delay: 0.3, jitter: false}}]
    run: "echo 'ConnectionError: x' >&2; exit 1"
    retry_config: ${item.retry}
)")});
  ASSERT_TRUE(folder.wait_for_event("retrying", "each[0]"));
  running->signal(SIGKILL);
  running->join();
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 1);
  EXPECT_EQ(folder.count("started", "each[0]"), 3U);
}

TEST(WholeRhAgents, a_mistake_in_the_policy_of_an_item_is_found_before_anything_starts) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
dialect: rh_agents
steps:
  - {id: each, for_each: [{retry: {}}, {retry: {max_attempts: 0}}], run: "true", retry_config: "${item.retry}"}
)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(folder.count("started"), 0U);
  EXPECT_NE(folder.why().find("retry_config of item 1: max_attempts"), std::string::npos) << folder.why();
}

// ---- kill -9, Ctrl-C, moving house ----

TEST(WholeRhAgents, a_kill_inside_an_attempt_costs_nothing_also_where_retries_are_switched_off) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
dialect: rh_agents
steps:
  - {id: plan, type: agent_call, run: "echo x >> ran.txt; test -e mended || sleep 600"}
  - {id: call, type: tool_call, needs: plan, run: "test $REPRISE_ATTEMPTS_USED = 3 || { echo 'ConnectionError: x' >&2; exit 1; }",
     retry_config: {max_attempts: 3, initial_delay: 0.001}}
)")});
  ASSERT_TRUE(folder.wait_for_file("ran.txt", "x"));
  running->signal(SIGKILL);
  running->join();
  folder.write("mended", "");
  const Outcome resumed = folder.reprise({"resume", "@last"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err << folder.why();
  EXPECT_EQ(folder.lines("ran.txt").size(), 2U);
  EXPECT_TRUE(flag_of(folder.first("failed", "plan"), "lost"));
  EXPECT_EQ(folder.count("started", "call"), 3U);
}

TEST(WholeRhAgents, a_kill_in_a_wait_continues_the_wait_and_remembers_why) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
dialect: rh_agents
steps:
  - id: call
    type: tool_call
    run: "test $REPRISE_ATTEMPT = 2 || { echo 'TimeoutError: slow' >&2; exit 1; }"
    retry_config: {max_attempts: 2, backoff_strategy: constant, initial_delay: 0.5, jitter: false}
)")});
  ASSERT_TRUE(folder.wait_for_event("retrying", "call"));
  running->signal(SIGKILL);
  running->join();
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0) << folder.why();
  const auto second = folder.last("started", "call");
  EXPECT_EQ(number_of(second, "attempt"), 2);
  EXPECT_EQ(number_of(second, "retry_delay_ms"), 500);
  EXPECT_EQ(text_of(object_of(second, "original_error"), "type"), "TimeoutError");
  EXPECT_EQ(number_of(folder.last("completed", "call"), "total_attempts"), 2);
  EXPECT_GE(number_of(folder.last("completed", "call"), "total_elapsed_ms"), 500);
}

TEST(WholeRhAgents, an_interrupt_uses_up_no_attempt) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
dialect: rh_agents
steps:
  - id: call
    type: tool_call
    run: "echo x >> ran.txt; test -e mended || sleep 600; test $REPRISE_ATTEMPTS_USED = 2 || { echo 'ConnectionError: x' >&2; exit 1; }"
    retry_config: {max_attempts: 2, initial_delay: 0.001}
)")});
  ASSERT_TRUE(folder.wait_for_file("ran.txt", "x"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130) << folder.read("stderr.txt");
  folder.write("mended", "");
  const Outcome resumed = folder.reprise({"resume", "@last"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err << folder.why();
  EXPECT_EQ(folder.lines("ran.txt").size(), 3U);  // the one that was interrupted, and both of its two
}

TEST(WholeRhAgents, a_run_is_resumed_where_its_folder_is_now) {
  FlowFolder folder;
  folder.program("there/work.sh", "test -e mended && echo \"here: $(basename $PWD)\" || { touch started; sleep 600; }");
  folder.write("there/inner.yaml", "dialect: rh_agents\nsteps: [{id: work, type: tool_call, run: ./work.sh}]\n");
  const auto running = folder.start(
      {"run", folder.write("there/flow.yaml",
                           "steps: [{id: sub, flow: inner.yaml}, {id: end, needs: sub, run: ./work.sh}]\n")});
  ASSERT_TRUE(folder.wait_for_file("there/started"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130) << folder.read("stderr.txt");
  const std::string run =
      text_of(folder.show("@last"), "parent").empty() ? folder.last_run() : text_of(folder.show("@last"), "parent");
  EXPECT_EQ(folder.shell("mv there elsewhere && touch elsewhere/mended").exit_code, 0);
  const Outcome refused = folder.reprise({"resume", run});
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("--directory"), std::string::npos) << refused.err;
  const Outcome resumed = folder.reprise({"resume", run, "--directory", "elsewhere"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(text_of(folder.show(run), "output"), "here: elsewhere");
  EXPECT_EQ(folder.reprise({"resume", run, "--directory", "nowhere"}).exit_code,
            0);  // it has succeeded: nothing to resume
}

TEST(WholeRhAgents, what_replay_tells_is_marked) {
  FlowFolder folder;
  folder.run(
      "steps: [{id: call, run: \"echo 'ConnectionError: x' >&2; exit 1\", retry_config: {max_attempts: 2, "
      "initial_delay: 0.001}}]\n");
  const auto told = boost::json::parse(folder.reprise({"replay", "@last", "--format", "json"}).out).as_object();
  EXPECT_EQ(told.at("story").as_array().size(), folder.events().size());
  for (const auto& event : told.at("story").as_array()) EXPECT_TRUE(flag_of(event.as_object(), "replayed")) << event;
  for (const auto& event : folder.events()) EXPECT_FALSE(has(event, "replayed")) << event;
}

}  // namespace
}  // namespace reprise
