#include "cli/run/flow_words.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <reprise/dialect.hpp>

#include "host/flow_plan.hpp"
#include "text/duration.hpp"
#include "text/nearest.hpp"
#include "text/place.hpp"
#include "text/utf8.hpp"
#include "text/value.hpp"

namespace reprise::cli {
namespace {

using text::Value;

std::string command_words(const flow::Command& command) {
  switch (command.kind) {
    case flow::Command::Kind::shell:
      return command.verb + ": " + command.shell.text();
    case flow::Command::Kind::http:
      return "http: " + command.http.method + " " + command.http.url.text() + (command.http.is_async ? " (async)" : "");
    case flow::Command::Kind::argv:
      break;
  }
  if (command.prompt) return command.verb + ": " + command.prompt->text();
  std::string words = command.verb + ":";
  for (const flow::Template& argument : command.argv) words += " " + argument.text();
  return words;
}

std::string verb_words(const flow::Step& step) {
  switch (step.verb) {
    case flow::Verb::commands: {
      std::string words;
      for (const flow::Command& command : step.commands) words += (words.empty() ? "" : "; ") + command_words(command);
      return words;
    }
    case flow::Verb::wait:
      return step.wait ? "wait: " + text::rough_duration(*step.wait) : "wait: until a time";
    case flow::Verb::signal:
      return "signal: " + step.signal;
    case flow::Verb::flow:
      return "flow: " + step.flow.file.text();
    case flow::Verb::call:
      return "call: " + step.call;
  }
  return {};
}

std::string items_words(const flow::ItemSource& source) {
  switch (source.kind) {
    case flow::ItemSource::Kind::file:
      return source.file.text() + (source.path ? " " + source.path->text() : "");
    case flow::ItemSource::Kind::command:
      return "the output of " + command_words(*source.command) + (source.path ? " " + source.path->text() : "");
    case flow::ItemSource::Kind::value:
      break;
  }
  if (const auto* text = std::get_if<flow::Template>(&source.value.value)) return text->text();
  if (const auto* list = std::get_if<flow::JsonTemplate::List>(&source.value.value))
    return fmt::format("{} written out", list->size());
  const auto* json = std::get_if<json::Json>(&source.value.value);
  return json != nullptr ? text::shorten(json::to_text(*json), 60) : "";
}

std::string failure_words(const flow::Step& step) {
  switch (step.on_failure) {
    case OnFailure::fail:
      return step.on_failure_command ? command_words(*step.on_failure_command) : "fail";
    case OnFailure::proceed:
      return "continue";
    case OnFailure::skip:
      return "skip";
    case OnFailure::dead_letter:
      return step.on_failure_command ? command_words(*step.on_failure_command) + ", else dead_letter" : "dead_letter";
    case OnFailure::revisit:
      return "goto " + step.goto_step;
  }
  return {};
}

std::string tolerance_words(const flow::Step& step) {
  if (step.tolerate_any) return "any number of failed items";
  if (step.tolerate.ratio > 0) return fmt::format("{}% of its items", step.tolerate.ratio * 100);
  return step.tolerate.count > 0 ? fmt::format("{} failed items", step.tolerate.count) : "";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string item_policy_words(const flow::ItemPolicy& policy) {
  const auto* const text = std::get_if<flow::Template>(&policy.value.value);
  return fmt::format("{}: {} ({})", policy.key, text != nullptr ? text->text() : "", name_of(policy.dialect));
}

std::string first_line(std::string_view text) { return std::string{text.substr(0, text.find('\n'))}; }

// deterministic, contract_failure and test_failure
std::string class_names(const std::vector<FailureClass>& classes) {
  std::vector<std::string_view> names;
  for (const FailureClass each : classes) names.push_back(name_of(each));
  return text::join_words(names, "and");
}

std::string breaker_words(const CircuitBreakerRule& rule) {
  return fmt::format("stops the step when the same failure comes {} times ({})", rule.limit, class_names(rule.tracked));
}

std::string item_breaker_words(const flow::ItemBreaker& rule) {
  return fmt::format("after {} failed items in a row none begins for {}; then {} at a time try, and {} successes end it",
                     rule.failures, text::rough_duration(rule.open_for), rule.probes, rule.successes);
}

std::string command_policy_words(const flow::Step& step, const flow::CommandPolicy& own) {
  return fmt::format("{} of command {} ({}) [line {}]", first_line(explain(own.policy)), own.command,
                     own.command <= step.commands.size() ? step.commands[own.command - 1].verb : "", own.line);
}

bool can_stall(const flow::Step& step) { return step.verb == flow::Verb::commands && step.stall_timeout > Duration{0}; }

// Only a step that the run may come back to is visited more than once.
bool is_returned_to(const flow::FlowDocument& flow, const flow::Step& step) {
  return std::ranges::any_of(flow.steps, [&](const flow::Step& other) {
    return other.on_failure == OnFailure::revisit && other.goto_step == step.id;
  });
}

void add_words(std::string& out, const flow::FlowDocument& flow, const flow::Step& step, std::string_view number) {
  out += fmt::format("{} {}\n     {}\n", number, step.id, text::shorten(verb_words(step), 100));
  const auto line = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out += fmt::format("     {:<11}{}\n", key, text::shorten(value, 120));
  };
  line("needs", joined(step.needs));
  if (step.condition) line("if", step.condition->text());
  if (step.for_each) line("for each", items_words(*step.for_each));
  if (step.max_parallel > 0) line("parallel", std::to_string(step.max_parallel));
  line("policy", fmt::format("{} [{}{}]", first_line(explain(step.policy)), step.policy_source,
                             step.dialect == Dialect::native ? "" : fmt::format(", {}", name_of(step.dialect))));
  if (step.item_policy) line("", "unless the item brings one: " + item_policy_words(*step.item_policy));
  for (const flow::CommandPolicy& own : step.command_policies) line("", command_policy_words(step, own));
  if (step.timeout) line("timeout", text::rough_duration(*step.timeout));
  for (const flow::Command& command : step.commands) {
    if (command.timeout && step.keeps_outputs) line("timeout", command.verb + " " + text::rough_duration(*command.timeout));
  }
  if (can_stall(step))
    line("watchdog", "stopped after " + text::rough_duration(step.stall_timeout) + " without progress");
  if (step.circuit_breaker) line("breaker", breaker_words(*step.circuit_breaker));
  if (step.item_breaker) line("breaker", item_breaker_words(*step.item_breaker));
  if (step.on_failure == OnFailure::revisit || is_returned_to(flow, step))
    line("visits", fmt::format("at most {}", step.max_visits));
  if (step.require) line("require", command_words(*step.require));
  if (step.check) line("check", command_words(*step.check));
  if (!step.check_schema.empty()) line("check", "schema " + step.check_schema);
  if (step.fix) line("fix", command_words(*step.fix));
  if (step.fallback) line("fallback", command_words(step.fallback->command));
  line("tolerate", tolerance_words(step));
  if (step.on_failure != OnFailure::fail || step.on_failure_command) line("on failure", failure_words(step));
}

Value step_value(const flow::Step& step, bool runs_finally) {
  Value value = Value::map();
  value.set("step", step.id);
  value.set("line", std::int64_t{step.place.line});
  value.set("does", verb_words(step));
  Value needs = Value::list();
  for (const std::string& need : step.needs) needs.add(need);
  value.set("needs", std::move(needs));
  if (step.condition) value.set("if", step.condition->text());
  if (step.for_each) value.set("for_each", items_words(*step.for_each));
  if (step.max_parallel > 0) value.set("max_parallel", std::int64_t{step.max_parallel});
  value.set("policy", explain(step.policy));
  value.set("policy_source", step.policy_source);
  value.set("policy_level", std::string{name_of(step.level)});
  value.set("dialect", std::string{name_of(step.dialect)});
  if (step.item_policy) value.set("item_policy", item_policy_words(*step.item_policy));
  if (step.timeout) value.set("timeout_ms", text::milliseconds(*step.timeout));
  if (can_stall(step)) value.set("stall_timeout_ms", text::milliseconds(step.stall_timeout));
  if (step.circuit_breaker) {
    Value breaker = Value::map();
    breaker.set("limit", std::int64_t{step.circuit_breaker->limit});
    Value tracked = Value::list();
    for (const FailureClass each : step.circuit_breaker->tracked) tracked.add(std::string{name_of(each)});
    breaker.set("tracked_classes", std::move(tracked));
    value.set("circuit_breaker", std::move(breaker));
  }
  if (step.item_breaker) {
    Value breaker = Value::map();
    breaker.set("failure_threshold", std::int64_t{step.item_breaker->failures});
    breaker.set("success_threshold", std::int64_t{step.item_breaker->successes});
    breaker.set("half_open_requests", std::int64_t{step.item_breaker->probes});
    breaker.set("timeout_ms", text::milliseconds(step.item_breaker->open_for));
    value.set("item_breaker", std::move(breaker));
  }
  if (!step.command_policies.empty()) {
    Value policies = Value::list();
    for (const flow::CommandPolicy& own : step.command_policies) {
      Value one = Value::map();
      one.set("command", std::int64_t{own.command});
      one.set("line", std::int64_t{own.line});
      one.set("policy", explain(own.policy));
      policies.add(std::move(one));
    }
    value.set("command_policies", std::move(policies));
  }
  value.set("max_visits", std::int64_t{step.max_visits});
  if (step.require) value.set("require", command_words(*step.require));
  if (step.check) value.set("check", command_words(*step.check));
  if (!step.check_schema.empty()) value.set("check_schema", step.check_schema);
  if (step.fix) value.set("fix", command_words(*step.fix));
  if (step.fallback) value.set("fallback", command_words(step.fallback->command));
  value.set("on_failure", failure_words(step));
  if (runs_finally) value.set("finally", true);
  return value;
}

}  // namespace

std::string plan_in_words(const flow::FlowDocument& flow) {
  const auto steps = flow::planned_steps(flow);
  std::string out =
      fmt::format("{}: {} of {} steps, at most {} attempts at a time{}\n", text::safe_to_show(flow.name), steps.size(),
                  flow.steps.size(), flow.max_parallel > 0 ? flow.max_parallel : host::default_max_parallel,
                  flow.deadline ? ", deadline " + text::rough_duration(*flow.deadline) : "");
  for (std::size_t index = 0; index < steps.size(); ++index)
    add_words(out, flow, *steps[index], fmt::format("{:>3}.", index + 1));
  for (const flow::Step& step : flow.finally) add_words(out, flow, step, "finally");
  return out;
}

std::string plan_json(const flow::FlowDocument& flow) {
  Value value = Value::map();
  value.set("flow", flow.name);
  value.set("dialect", std::string{name_of(flow.dialect)});
  Value steps = Value::list();
  for (const flow::Step* const step : flow::planned_steps(flow)) steps.add(step_value(*step, false));
  for (const flow::Step& step : flow.finally) steps.add(step_value(step, true));
  value.set("steps", std::move(steps));
  return text::to_json(value) + "\n";
}

}  // namespace reprise::cli
