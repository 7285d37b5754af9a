#include "host/flow_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "runtime/engine_access.hpp"

namespace reprise::host {
namespace {

using Numbers = std::map<std::string, std::uint32_t, std::less<>>;

void set_verb(core::StepPlan& plan, const flow::Step& step) {
  switch (step.verb) {
    case flow::Verb::commands:
    case flow::Verb::flow:
      plan.handler = runtime::document_queue;
      return;
    case flow::Verb::call:
      plan.handler = step.call;
      return;
    case flow::Verb::wait:
      plan.kind = core::StepKind::wait;
      if (step.wait) plan.wait = step.wait->count();
      if (step.wait_until) plan.wait_until = step.wait_until->time_since_epoch().count();
      return;
    case flow::Verb::signal:
      plan.kind = core::StepKind::signal;
      plan.signal = step.signal;
      plan.wait = step.timeout.value_or(Duration{0}).count();
      return;
  }
}

void set_failure_rules(core::StepPlan& plan, const flow::Step& step, const Numbers& numbers) {
  plan.on_failure = step.on_failure;
  if (step.on_failure == OnFailure::revisit) plan.revisit = numbers.at(step.goto_step);
  plan.max_visits = step.max_visits;
  plan.tolerate = step.tolerate_any ? std::numeric_limits<std::uint32_t>::max() : step.tolerate.count;
  plan.tolerate_millionths = static_cast<std::uint32_t>(std::lround(step.tolerate.ratio * 1e6));
  plan.handles_failure = step.on_failure_command.has_value();
  if (step.fallback) {
    plan.fallback = step.fallback->when == flow::FallbackWhen::gave_up ? core::FallbackRule::gave_up
                                                                       : core::FallbackRule::budget_exhausted;
  }
  plan.needs_success = step.for_each.has_value() && step.tolerate_any && step.tolerate.ratio < 1;
  if (step.item_breaker) {
    plan.item_breaker = {.failures = step.item_breaker->failures,
                         .successes = step.item_breaker->successes,
                         .probes = step.item_breaker->probes,
                         .open_for = step.item_breaker->open_for.count()};
  }
  if (!step.circuit_breaker) return;
  plan.breaker_limit = step.circuit_breaker->limit;
  for (const FailureClass tracked : step.circuit_breaker->tracked)
    plan.breaker_classes = static_cast<std::uint8_t>(plan.breaker_classes | 1U << static_cast<unsigned>(tracked));
}

core::StepPlan step_plan(const flow::Step& step, const Numbers& numbers) {
  core::StepPlan plan;
  plan.name = std::make_shared<const std::string>(step.id);
  set_verb(plan, step);
  for (const std::string& need : step.needs) plan.needs.push_back(numbers.at(need));
  for (const std::string& read : step.reads) plan.reads.push_back(numbers.at(read));
  plan.for_each = step.for_each.has_value();
  plan.prepares = plan.for_each || step.condition || step.require || step.item_policy;
  plan.max_parallel = step.max_parallel;
  set_failure_rules(plan, step, numbers);
  plan.level = step.level;
  plan.policy = step.policy;
  if (plan.kind == core::StepKind::call) plan.actor_type = step.type;
  plan.dialect = step.dialect;
  plan.policy_line = step.policy_line;
  plan.switched_off = step.retries_are_off;
  plan.effect = step.effect;
  plan.runs_again = true;
  for (const flow::CommandPolicy& own : step.command_policies)
    plan.command_policies.push_back({.command = own.command, .line = own.line, .policy = own.policy});
  if (step.timeout && (!plan.policy.attempt_timeout || *step.timeout < *plan.policy.attempt_timeout))
    plan.policy.attempt_timeout = step.timeout;
  return plan;
}

}  // namespace

core::Plan plan_of(const flow::FlowDocument& flow) {
  const std::vector<const flow::Step*> steps = flow::planned_steps(flow);
  Numbers numbers;
  for (const flow::Step* const step : steps) numbers.emplace(step->id, static_cast<std::uint32_t>(numbers.size()));
  for (const flow::Step& step : flow.finally) numbers.emplace(step.id, static_cast<std::uint32_t>(numbers.size()));
  core::Plan plan;
  plan.name = flow.name;
  plan.is_document = true;
  if (flow.deadline) plan.deadline = std::max<std::int64_t>(1, flow.deadline->count());
  plan.max_parallel = flow.max_parallel > 0 ? flow.max_parallel : default_max_parallel;
  for (const flow::Step* const step : steps) {
    plan.steps.push_back(step_plan(*step, numbers));
    plan.steps.back().is_goal = std::ranges::find(flow.goals, step->id) != flow.goals.end();
  }
  for (const flow::Step& step : flow.finally) {
    plan.steps.push_back(step_plan(step, numbers));
    plan.steps.back().runs_finally = true;
  }
  if (flow.types != nullptr) plan.types = flow.types->added();
  plan.adopt_types();
  plan.connect();
  return plan;
}

}  // namespace reprise::host
