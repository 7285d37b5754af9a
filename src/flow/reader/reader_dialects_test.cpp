// Documents of the five other systems: their shapes as their own documents show them, and what each becomes here.
#include <gtest/gtest.h>

#include <algorithm>

#include "flow/reader/reader.hpp"

namespace reprise::flow {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

FlowDocument read(const std::string& text) {
  auto result = read_flow(text, "flows/demo.yaml");
  EXPECT_TRUE(result.has_value()) << (result ? "" : render(result.error()));
  return result ? std::move(result->flow) : FlowDocument{};
}

const Step& step(const FlowDocument& flow, std::string_view id) {
  static const Step missing;
  const auto found = std::ranges::find(flow.steps, id, &Step::id);
  if (found == flow.steps.end()) ADD_FAILURE() << "there is no step " << id;
  return found != flow.steps.end() ? *found : missing;
}

std::vector<std::string> planned_ids(const FlowDocument& flow) {
  std::vector<std::string> ids;
  for (const Step* each : planned_steps(flow)) ids.push_back(each->id);
  return ids;
}

TEST(FlowDialects, WaveAsItsDocumentShowsIt) {
  const FlowDocument flow = read(R"yaml(
dialect: wave
runtime:
  circuit_breaker:
    limit: 3
    tracked_classes: [deterministic, contract_failure, test_failure]
steps:
  - id: fetch
    run: ./fetch
    retry:
      policy: aggressive        # 5 attempts, fast backoff

  - id: implement
    run: ./implement
    retry:
      policy: standard          # 3 attempts, balanced
      max_attempts: 5           # override: more attempts than default

  - id: analyze
    run: ./analyze
    retry:
      policy: patient           # 3 attempts, slow backoff

  - id: plain
    run: ./plain
)yaml");
  EXPECT_EQ(flow.dialect, Dialect::wave);
  EXPECT_EQ(step(flow, "fetch").policy.jitter, Jitter::none);
  EXPECT_EQ(step(flow, "fetch").policy.max_attempts, 5U);
  EXPECT_EQ(step(flow, "implement").policy.max_attempts, 5U);
  EXPECT_EQ(step(flow, "analyze").policy.initial, seconds{5});
  EXPECT_EQ(step(flow, "plain").policy.max_attempts, 1U);
  EXPECT_EQ(step(flow, "plain").policy_source, "default of wave");
  EXPECT_EQ(step(flow, "plain").stall_timeout, minutes{30});
  EXPECT_EQ(step(flow, "plain").circuit_breaker->limit, 3U);
}

TEST(FlowDialects, WithoutTheWordRetryIsNative) {
  EXPECT_EQ(step(read("steps: [{id: a, run: x, retry: {policy: aggressive}}]"), "a").policy.jitter, Jitter::full);
}

TEST(FlowDialects, AzollaOnAStep) {
  const FlowDocument flow = read(R"yaml(
steps:
  - id: a
    run: x
    retry_policy: {"version": 1, "stop": { "max_attempts": null, "max_delay": null },
                   "wait": {"strategy": "exponential", "initial_delay": 2, "multiplier": 3, "max_delay": 600}}
)yaml");
  EXPECT_EQ(flow.dialect, Dialect::azolla);
  EXPECT_EQ(step(flow, "a").dialect, Dialect::azolla);
  EXPECT_FALSE(step(flow, "a").policy.max_attempts.has_value());
  EXPECT_EQ(step(flow, "a").policy.match, Matching::exact);
}

TEST(FlowDialects, RhAgentsWithAllItsLevels) {
  const FlowDocument flow = read(R"yaml(
default_retry_config: {max_attempts: 3, backoff_strategy: exponential, initial_delay: 1.0, max_delay: 30.0}
retry_config_by_actor_type:
  tool_call: {max_attempts: 5, backoff_strategy: exponential, retry_on_exceptions: [TimeoutError, ConnectionError]}
  llm_call: {max_attempts: 4, exclude_exceptions: [ValidationError]}
steps:
  - {id: tool, run: x}
  - {id: llm, run: x, type: llm}
  - {id: agent, run: x, type: agent}
  - {id: own, run: x, retry_config: {max_attempts: 5, initial_delay: 2.0, backoff_multiplier: 3.0}}
  - {id: never, run: x, type: agent, retry_config: {enabled: false}}
)yaml");
  EXPECT_EQ(flow.dialect, Dialect::rh_agents);
  EXPECT_EQ(step(flow, "tool").policy.max_attempts, 5U);
  EXPECT_EQ(step(flow, "tool").policy_source, "retry_config_by_actor_type.tool_call, line 4");
  EXPECT_EQ(step(flow, "llm").policy.max_attempts, 4U);
  EXPECT_EQ(step(flow, "agent").level, PolicyLevel::run);
  EXPECT_EQ(step(flow, "own").policy.factor, 3);
  EXPECT_EQ(step(flow, "never").policy.max_attempts, 1U);
  const FlowDocument typed = read("dialect: rh_agents\nsteps: [{id: a, run: x}]");
  EXPECT_EQ(step(typed, "a").policy, built_in_policy(Dialect::rh_agents, "tool"));
}

TEST(FlowDialects, ArgyllCountsOnTheHandlersWord) {
  const FlowDocument flow = read(R"yaml(
steps:
  - id: a
    for_each: [1, 2]
    http: {url: "https://example.org/${item}"}
    work_config: {max_retries: 3, backoff: 100, max_backoff: 1000, backoff_type: linear, parallelism: 4}
goals: [a]
)yaml");
  const Step& a = step(flow, "a");
  EXPECT_EQ(flow.dialect, Dialect::argyll);
  EXPECT_TRUE(a.needs_verdict);
  EXPECT_EQ(a.max_parallel, 4U);
  EXPECT_EQ(a.policy.max_attempts, 4U);
}

const char* const prodigy_seed = R"yaml(name: resilient-mapreduce-job
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
          initial: 1s
      jitter: true
      jitter_factor: 0.3
    continue_on_failure: true

  agent_template:
    - claude: "/process-item '${item.id}'"
    - shell: "validate ${item.output}"
      on_failure:
        claude: "/fix-validation-error"

  max_parallel: 10
)yaml";

TEST(FlowDialects, ProdigyAsItsDocumentShowsIt) {
  const FlowDocument flow = read(prodigy_seed);
  EXPECT_EQ(flow.dialect, Dialect::prodigy);
  EXPECT_EQ(flow.name, "resilient-mapreduce-job");
  ASSERT_EQ(flow.steps.size(), 1U);
  const Step& map = flow.steps[0];
  EXPECT_EQ(map.id, "map");
  ASSERT_TRUE(map.for_each.has_value());
  EXPECT_EQ(map.for_each->kind, ItemSource::Kind::file);
  EXPECT_EQ(map.for_each->file.text(), "items.json");
  EXPECT_EQ(map.for_each->path->text(), "$.items[*]");
  EXPECT_EQ(map.max_parallel, 10U);
  EXPECT_EQ(map.policy.max_attempts, 5U);
  EXPECT_EQ(map.policy.backoff, Backoff::fibonacci);
  EXPECT_DOUBLE_EQ(map.policy.jitter_ratio, 0.3);
  EXPECT_EQ(map.on_failure, OnFailure::dead_letter);
  EXPECT_TRUE(map.tolerate_any);
  ASSERT_EQ(map.commands.size(), 2U);
  ASSERT_EQ(map.commands[0].argv.size(), 3U);
  EXPECT_EQ(map.commands[0].argv[0].text(), "claude");
  EXPECT_EQ(map.commands[0].prompt->text(), "/process-item '${item.id}'");
  EXPECT_EQ(map.commands[1].kind, Command::Kind::shell);
  ASSERT_NE(map.commands[1].on_failure, nullptr);
  EXPECT_EQ(map.commands[1].on_failure->prompt->text(), "/fix-validation-error");
}

TEST(FlowDialects, ProdigyPhasesFollowEachOther) {
  const FlowDocument flow = read(R"yaml(
mode: mapreduce
setup:
  - shell: ./make-items
  - shell: ./sort-items
map:
  input: items.json
  agent_timeout_secs: 300
  agent_template: [{shell: "echo ${item}"}]
reduce:
  - shell: "./sum ${map.results} ${map.successful} of ${map.total}"
    retry_config: {attempts: 2}
  - claude: "/report ${map.failed}"
error_policy: {on_item_failure: skip, retry_config: {attempts: 4}}
)yaml");
  EXPECT_EQ(planned_ids(flow), (std::vector<std::string>{"setup-1", "setup-2", "map", "reduce-1", "reduce-2"}));
  EXPECT_EQ(step(flow, "map").needs, std::vector<std::string>{"setup-2"});
  EXPECT_EQ(step(flow, "map").policy.max_elapsed, seconds{300});
  EXPECT_EQ(step(flow, "map").policy.elapsed_from, ElapsedFrom::first_start);
  EXPECT_EQ(step(flow, "map").level, PolicyLevel::run);
  EXPECT_EQ(step(flow, "map").on_failure, OnFailure::proceed);
  EXPECT_DOUBLE_EQ(step(flow, "map").tolerate.ratio, 1);
  EXPECT_EQ(step(flow, "reduce-1").reads, std::vector<std::string>{"map"});
  EXPECT_EQ(step(flow, "reduce-1").commands[0].shell.text(),
            "./sum ${steps.map.results} ${steps.map.succeeded} of ${steps.map.total}");
  EXPECT_EQ(step(flow, "reduce-1").policy.max_attempts, 2U);
  EXPECT_EQ(step(flow, "reduce-2").policy.max_attempts, 1U);
  EXPECT_EQ(step(flow, "setup-1").policy.max_attempts, 1U);
}

TEST(FlowDialects, ProdigyErrorPolicies) {
  const auto map_with = [](const std::string& policy) {
    return read("mode: mapreduce\nmap: {input: i.json, agent_template: [{shell: x}], error_policy: {" + policy + "}}")
        .steps.at(0);
  };
  EXPECT_EQ(map_with("on_item_failure: stop").on_failure, OnFailure::fail);
  EXPECT_EQ(map_with("on_item_failure: retry").policy.max_attempts, 3U);
  EXPECT_EQ(map_with("max_failures: 3").tolerate.count, 3U);
  EXPECT_FALSE(map_with("max_failures: 3").tolerate_any);
  EXPECT_DOUBLE_EQ(map_with("failure_threshold: 0.2").tolerate.ratio, 0.2);
  EXPECT_FALSE(map_with("continue_on_failure: false").tolerate_any);
  EXPECT_EQ(map_with("circuit_breaker: {failure_threshold: 7}").item_breaker->failures, 7U);
}

TEST(FlowDialects, RetryConfigIsToldByItsKeys) {
  const FlowDocument flow = read(R"yaml(
steps:
  - {id: rh, run: x, retry_config: {max_attempts: 4, initial_delay: 2.5}}
  - {id: prodigy, run: x, retry_config: {max_attempts: 4, initial_delay: 2s}}
)yaml");
  EXPECT_EQ(step(flow, "rh").dialect, Dialect::rh_agents);
  EXPECT_EQ(step(flow, "prodigy").dialect, Dialect::prodigy);
  EXPECT_EQ(flow.dialect, Dialect::native);
}

}  // namespace
}  // namespace reprise::flow
