// Flow documents that are right: what is read, which policies steps get, the order of steps, parameters.
#include "flow/reader/reader.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>

namespace reprise::flow {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

ReadFlow read(const std::string& text, const std::string& name = "flows/demo.yaml") {
  auto result = read_flow(text, name);
  EXPECT_TRUE(result.has_value()) << (result ? "" : render(result.error()));
  return result ? *std::move(result) : ReadFlow{};
}

const Step& step(const FlowDocument& flow, std::string_view id) {
  static const Step missing;
  const auto found = std::ranges::find(flow.steps, id, &Step::id);
  if (found != flow.steps.end()) return *found;
  const auto last = std::ranges::find(flow.finally, id, &Step::id);
  if (last != flow.finally.end()) return *last;
  ADD_FAILURE() << "there is no step " << id;
  return missing;
}

std::vector<std::string> planned_ids(const FlowDocument& flow) {
  std::vector<std::string> ids;
  for (const Step* each : planned_steps(flow)) ids.push_back(each->id);
  return ids;
}

const char* const nightly = R"yaml(
version: 1
name: nightly
params: { date: { default: today }, limit: { type: integer, default: 100 } }
env: { LANG: C.UTF-8 }
policies:
  gentle: { policy: patient, max_attempts: 6, jitter: full }
defaults:
  retry: standard
  by_type: { tool: aggressive, llm: gentle, agent: none }
classify:
  - { when: "exit:3", class: deterministic }
  - { when: "/quota exceeded/", class: budget_exhausted }
runtime:
  max_parallel: 8
  deadline: 2h
  stall_timeout: 30m
  max_visits: 10
  circuit_breaker: { limit: 3, tracked_classes: [deterministic, contract_failure, test_failure] }
agents:
  claude: { argv: [claude, -p, "${prompt}"], type: agent }
steps:
  - id: list
    run: ./list.sh ${params.date}
    output: json
  - id: fetch
    needs: [list]
    for_each: ${steps.list.output.items}
    max_parallel: 16
    tolerate: 5%
    http: { method: POST, url: "https://api.example.org/${item.id}", body: "${item}", expect: { status: 2xx, schema: answer.json } }
    retry: { policy: aggressive, only_on: [transient], honor_retry_after: true }
    timeout: 30s
    on_failure: dead_letter
  - id: check
    needs: [fetch]
    require: { run: test -s data.json }
    argv: [pytest, -q]
    kind: test
    fix: { run: ./fix.sh }
    check: { schema: report.schema.json }
    fallback: { run: ./cheap.sh }
    on_failure: { goto: fetch }
    max_visits: 3
  - id: report
    needs: [check]
    if: ${steps.fetch.succeeded > 0}
    run: ./report.sh
goals: [report]
finally:
  - { id: notify, run: "./notify.sh ${run.status}" }
)yaml";

TEST(FlowReader, ReadsTheWholeExample) {
  const ReadFlow result = read(nightly);
  const FlowDocument& flow = result.flow;
  EXPECT_TRUE(result.warnings.empty()) << render(result.warnings);
  EXPECT_EQ(flow.name, "nightly");
  EXPECT_EQ(flow.dialect, Dialect::native);
  EXPECT_EQ(flow.max_parallel, 8U);
  EXPECT_EQ(flow.deadline, std::chrono::hours{2});
  EXPECT_EQ(flow.classify.size(), 2U);
  EXPECT_EQ(flow.goals, std::vector<std::string>{"report"});
  EXPECT_EQ(planned_ids(flow), (std::vector<std::string>{"list", "fetch", "check", "report"}));
  ASSERT_EQ(flow.params.size(), 2U);
  EXPECT_EQ(flow.params[0].value, Json("today"));
  EXPECT_EQ(flow.params[1].type, Parameter::Type::integer);
  EXPECT_EQ(flow.params[1].value, Json(100));
  ASSERT_EQ(flow.env.size(), 1U);
  EXPECT_EQ(flow.env[0].second.text(), "C.UTF-8");
}

TEST(FlowReader, ReadsAStepWithItems) {
  const FlowDocument flow = read(nightly).flow;
  const Step& fetch = step(flow, "fetch");
  ASSERT_TRUE(fetch.for_each.has_value());
  EXPECT_EQ(fetch.for_each->kind, ItemSource::Kind::value);
  EXPECT_EQ(fetch.max_parallel, 16U);
  EXPECT_DOUBLE_EQ(fetch.tolerate.ratio, 0.05);
  EXPECT_FALSE(fetch.tolerate_any);
  EXPECT_EQ(fetch.on_failure, OnFailure::dead_letter);
  EXPECT_EQ(fetch.timeout, seconds{30});
  EXPECT_EQ(fetch.policy.attempt_timeout, seconds{30});
  EXPECT_EQ(fetch.policy.max_attempts, 5U);
  EXPECT_EQ(fetch.level, PolicyLevel::step);
  EXPECT_EQ(fetch.policy_source, "step \"fetch\", line 32");
  EXPECT_EQ(fetch.reads, std::vector<std::string>{"list"});
  EXPECT_EQ(fetch.stall_timeout, minutes{30});
  ASSERT_EQ(fetch.commands.size(), 1U);
  const HttpCall& http = fetch.commands[0].http;
  EXPECT_EQ(http.method, "POST");
  EXPECT_EQ(http.url.text(), "https://api.example.org/${item.id}");
  EXPECT_EQ(http.expect_status, (std::vector<std::pair<int, int>>{{200, 299}}));
  EXPECT_EQ(http.expect_schema, "answer.json");
}

TEST(FlowReader, ReadsChecksAndWhatHappensAfterwards) {
  const FlowDocument flow = read(nightly).flow;
  const Step& check = step(flow, "check");
  EXPECT_TRUE(check.is_test);
  ASSERT_TRUE(check.require && check.fix && check.fallback);
  EXPECT_EQ(check.require->shell.text(), "test -s data.json");
  EXPECT_EQ(check.check_schema, "report.schema.json");
  EXPECT_FALSE(check.check.has_value());
  EXPECT_EQ(check.fallback->when, FallbackWhen::budget_exhausted);
  EXPECT_EQ(check.on_failure, OnFailure::revisit);
  EXPECT_EQ(check.goto_step, "fetch");
  EXPECT_EQ(check.max_visits, 3U);
  EXPECT_EQ(check.level, PolicyLevel::actor_type);
  EXPECT_EQ(check.policy_source, "defaults.by_type.tool, line 10");
  EXPECT_EQ(step(flow, "report").condition->text(), "steps.fetch.succeeded > 0");
  EXPECT_EQ(step(flow, "report").max_visits, 10U);
  ASSERT_TRUE(step(flow, "report").circuit_breaker.has_value());
  EXPECT_EQ(flow.finally.size(), 1U);
}

TEST(FlowReader, NamesAFlowAfterItsFile) {
  EXPECT_EQ(read("steps: [{id: a, run: x}]", "dir.d/my.flow.yaml").flow.name, "my.flow");
  EXPECT_EQ(read("steps: [{id: a, run: x}]", "-").flow.name, "flow");
  EXPECT_EQ(read("steps: [{id: a, run: x}]", "/x/.hidden").flow.name, ".hidden");
}

TEST(FlowReader, WaitsForADurationOrATime) {
  const FlowDocument flow =
      read(
          "steps: [{id: a, wait: 1h30m}, {id: b, wait: 2026-11-16T03:00:00.25+01:00}, {id: c, signal: "
          "go, timeout: 5m}]")
          .flow;
  EXPECT_EQ(step(flow, "a").wait, minutes{90});
  const auto day = std::chrono::sys_days{std::chrono::year{2026} / 11 / 16};
  EXPECT_EQ(step(flow, "b").wait_until, WallTime{day} + std::chrono::hours{2} + milliseconds{250});
  EXPECT_EQ(step(flow, "c").signal, "go");
  EXPECT_EQ(step(flow, "c").timeout, minutes{5});
  EXPECT_FALSE(step(flow, "c").policy.attempt_timeout.has_value());
}

TEST(FlowReader, AnAgentBecomesACommandWithItsPrompt) {
  const FlowDocument flow = read(R"yaml(
agents: {claude: {argv: [claude, -p, "${prompt}"], type: agent, timeout: 10m, env: {MODE: fast}}}
steps:
  - {id: a, claude: "Look at ${env.FILE}"}
  - {id: b, run: x, fix: {claude: "fix ${last_error.message}"}}
)yaml")
                                .flow;
  const Step& a = step(flow, "a");
  ASSERT_EQ(a.commands.size(), 1U);
  EXPECT_EQ(a.commands[0].kind, Command::Kind::argv);
  EXPECT_EQ(a.commands[0].verb, "claude");
  ASSERT_TRUE(a.commands[0].prompt.has_value());
  EXPECT_EQ(a.commands[0].prompt->text(), "Look at ${env.FILE}");
  EXPECT_EQ(a.commands[0].env.size(), 1U);
  EXPECT_EQ(a.type, "agent");
  EXPECT_EQ(a.timeout, minutes{10});
  EXPECT_EQ(a.policy.max_attempts, 1U);
  EXPECT_EQ(a.policy_source, "built-in for agent");
  EXPECT_EQ(step(flow, "b").fix->timeout, minutes{10});
}

TEST(FlowReader, TheShorterOfTimeoutAndAttemptTimeoutCounts) {
  const FlowDocument flow =
      read(
          "steps: [{id: a, run: x, timeout: 10s, retry: {attempt_timeout: 3s}}, {id: b, run: x, timeout: "
          "2s, retry: {attempt_timeout: 3s}}]")
          .flow;
  EXPECT_EQ(step(flow, "a").policy.attempt_timeout, seconds{3});
  EXPECT_EQ(step(flow, "b").policy.attempt_timeout, seconds{2});
}

// ---- policies

TEST(FlowPolicies, TheMostSpecificLevelWins) {
  const FlowDocument flow = read(R"yaml(
defaults: {retry: patient, by_type: {llm: aggressive}}
steps:
  - {id: own, run: x, type: llm, retry: none}
  - {id: typed, run: x, type: llm}
  - {id: plain, run: x}
)yaml")
                                .flow;
  EXPECT_EQ(step(flow, "own").policy, policy::none);
  EXPECT_EQ(step(flow, "own").level, PolicyLevel::step);
  EXPECT_EQ(step(flow, "typed").policy, policy::aggressive);
  EXPECT_EQ(step(flow, "typed").level, PolicyLevel::actor_type);
  EXPECT_EQ(step(flow, "plain").policy, policy::patient);
  EXPECT_EQ(step(flow, "plain").level, PolicyLevel::run);
  EXPECT_EQ(step(flow, "plain").policy_source, "defaults.retry, line 2");
}

TEST(FlowPolicies, NothingSaidIsStandardAndAWrittenTypeHasItsOwn) {
  const FlowDocument flow =
      read("steps: [{id: a, run: x}, {id: b, run: x, type: tool}, {id: c, run: x, type: agent}]").flow;
  EXPECT_EQ(step(flow, "a").policy, policy::standard);
  EXPECT_EQ(step(flow, "b").policy, policy::tool);
  EXPECT_EQ(step(flow, "c").policy, policy::agent);
  for (const Step& each : flow.steps) EXPECT_EQ(each.level, PolicyLevel::built_in);
}

TEST(FlowPolicies, NamedOnesBuildOnEachOtherInAnyOrder) {
  const FlowDocument flow = read(R"yaml(
policies: {c: {policy: b, max: 7s}, b: {policy: a, initial: 3s}, a: {policy: aggressive, max_attempts: 9}}
steps: [{id: x, run: x, retry: {policy: c, factor: 3}}]
)yaml")
                                .flow;
  const Policy& policy = step(flow, "x").policy;
  EXPECT_EQ(policy.max_attempts, 9U);
  EXPECT_EQ(policy.initial, seconds{3});
  EXPECT_EQ(policy.max, seconds{7});
  EXPECT_EQ(policy.factor, 3);
}

TEST(FlowPolicies, ErrorTypesOfTheDocumentReachThePolicy) {
  const FlowDocument flow =
      read("types: {QuotaError: ValueError}\nsteps: [{id: x, run: x, retry: {only_on: [ValueError]}}]").flow;
  ASSERT_NE(flow.types, nullptr);
  const Policy& policy = step(flow, "x").policy;
  EXPECT_EQ(policy.types, flow.types.get());
  EXPECT_TRUE(
      matches(policy.only_on->front(), policy, {.type = "QuotaError"}, FailureClass::transient, FailureKind::none));
}

// ---- order

RC_GTEST_PROP(FlowGraph, EveryStepComesAfterThoseItNeeds, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 30);
  const auto shuffled = *rc::gen::arbitrary<std::uint32_t>();
  std::vector<std::string> lines(count);
  std::vector<std::size_t> order(count);  // the document's order need not be the order of needs
  for (std::size_t at = 0; at < count; ++at) order[at] = (at * 7 + shuffled) % count;
  for (std::size_t at = 0; at < count; ++at) {
    std::string needs;
    for (std::size_t below = 0; below < at; ++below) {
      if (*rc::gen::inRange(0, 4) == 0) needs += (needs.empty() ? "s" : ", s") + std::to_string(below);
    }
    lines[at] = "  - {id: s" + std::to_string(at) + ", run: x, needs: [" + needs + "]}\n";
  }
  std::string text = "steps:\n";
  std::vector<bool> written(count, false);
  for (const std::size_t at : order) {
    if (!written[at]) text += lines[at];
    written[at] = true;
  }
  for (std::size_t at = 0; at < count; ++at) {
    if (!written[at]) text += lines[at];
  }
  const auto result = read_flow(text, "p.yaml");
  RC_ASSERT(result.has_value());
  const auto ids = planned_ids(result->flow);
  RC_ASSERT(ids.size() == count);
  for (const Step& each : result->flow.steps) {
    const auto own = std::ranges::find(ids, each.id);
    for (const std::string& need : each.needs) RC_ASSERT(std::ranges::find(ids, need) < own);
  }
}

TEST(FlowGraph, GoalsChooseWhatRuns) {
  const ReadFlow result = read("steps: [{id: a, run: x}, {id: b, needs: a, run: x}, {id: c, run: x}]\ngoals: b");
  EXPECT_EQ(planned_ids(result.flow), (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_EQ(result.warnings[0].message, "no goal needs the step \"c\": it will not run");
}

TEST(FlowGraph, TenThousandStepsInARow) {
  std::string text = "steps:\n  - {id: s0, run: x}\n";
  for (int at = 1; at < 10'000; ++at)
    text += "  - {id: s" + std::to_string(at) + ", needs: s" + std::to_string(at - 1) +
            ", run: \"echo ${steps.s0.output}\"}\n";
  const ReadFlow result = read(text);
  EXPECT_EQ(planned_steps(result.flow).size(), 10'000U);
}

// ---- parameters

FlowDocument with_params() {
  return read(R"yaml(
params: {date: today, limit: {type: integer, default: 100}, must: {type: text}, flags: {type: list, default: []}, n: 3}
steps: [{id: a, run: x}]
)yaml")
      .flow;
}

TEST(FlowParams, DefaultsAndGivenValues) {
  const auto bound = bind_params(with_params(), boost::json::parse(R"({"must": "x", "limit": 5})"));
  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(*bound, boost::json::parse(R"({"date": "today", "limit": 5, "must": "x", "flags": [], "n": 3})"));
}

TEST(FlowParams, EveryMistakeIsOneSentence) {
  const auto bound = bind_params(with_params(), boost::json::parse(R"({"limit": "many", "dat": 1})"));
  ASSERT_FALSE(bound.has_value());
  EXPECT_EQ(bound.error(), (std::vector<std::string>{
                               "there is no parameter \"dat\"; did you mean date?",
                               "parameter \"limit\" must be a whole number, found \"many\"",
                               "parameter \"must\" has no default and was not given; add --set must=…",
                           }));
  EXPECT_FALSE(bind_params(with_params(), Json(3)).has_value());
}

TEST(FlowParams, FromTheCommandLine) {
  const FlowDocument flow = with_params();
  EXPECT_EQ(param_from_text(flow, "date", "5").value(), Json("5"));
  EXPECT_EQ(param_from_text(flow, "limit", "5").value(), Json(5));
  EXPECT_EQ(param_from_text(flow, "n", "7").value(), Json(7));
  EXPECT_EQ(param_from_text(flow, "n", "seven").value(), Json("seven"));
  EXPECT_EQ(param_from_text(flow, "must", "true").value(), Json("true"));
  EXPECT_EQ(param_from_text(flow, "flags", "[1]").value(), boost::json::parse("[1]"));
  EXPECT_EQ(param_from_text(flow, "limit", "1.5").error(), "parameter \"limit\" must be a whole number, found \"1.5\"");
  EXPECT_EQ(param_from_text(flow, "lmit", "1").error(), "there is no parameter \"lmit\"; did you mean limit?");
}

}  // namespace
}  // namespace reprise::flow
