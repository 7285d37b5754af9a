#include "observe/why/why_remedies.hpp"

#include <algorithm>

#include <reprise/classify.hpp>

#include "text/duration.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {
namespace {

// As only_on and classify name it: exit:7, http:503, signal:KILL, TimeoutError.
std::string nameable(const Failure& failure) {
  const bool says_nothing = failure.type.empty() || failure.type == "ExitError" || failure.type == "HTTPError" ||
                            failure.type == "SignalError";
  if (!says_nothing) return text::safe_to_show(failure.type);
  if (failure.http_status) return "http:" + std::to_string(*failure.http_status);
  if (failure.signal) {
    std::string_view name = signal_name(*failure.signal);
    if (name.starts_with("SIG")) name.remove_prefix(3);
    return "signal:" + (name.empty() ? std::to_string(*failure.signal) : std::string{name});
  }
  if (failure.exit_code) return "exit:" + std::to_string(*failure.exit_code);
  if (!failure.type.empty()) return failure.type;
  return failure.failure_class ? std::string{name_of(*failure.failure_class)} : "it";
}

std::string yaml_word(const std::string& text) {
  if (text.find_first_of(":/#,[]{}\"'\\ ") == std::string::npos) return text;
  if (text.find_first_of("\"\\") == std::string::npos) return "\"" + text + "\"";
  std::string quoted;  // a pattern: as it is, between single quotes
  for (const char c : text) quoted += c == '\'' ? std::string{"''"} : std::string{c};
  return "'" + quoted + "'";
}

std::string step_words(const core::StepPlan& step) { return "step " + text::safe_to_show(*step.name); }

std::string where_policy_stands(const DecisionContext& context) {
  switch (context.step.level) {
    case PolicyLevel::run:
      return "under defaults.retry";
    case PolicyLevel::actor_type:
      return "under defaults.by_type";
    case PolicyLevel::work_item:
      return "in the policy given with the task";
    case PolicyLevel::step:
      return "under retry of " + step_words(context.step);
    case PolicyLevel::built_in:
      break;
  }
  return "under retry of " + step_words(context.step) + ", which has none of its own";
}

// max_attempts: 3 or more, under retry of step fetch · --max-attempts 3 or more
std::string written(const DecisionContext& context, const std::string& key, const std::string& value) {
  if (context.source == WorkSource::document) return key + ": " + value + ", " + where_policy_stands(context);
  if (context.source == WorkSource::foreign_document)
    return policy_key(context.step, key) + " " + value + ", in the policy of " + step_words(context.step) +
           (context.step.policy_line > 0 ? ", line " + std::to_string(context.step.policy_line) : "");
  if (context.source == WorkSource::exec && context.step.dialect != Dialect::native)
    return policy_key(context.step, key) + " " + value + ", in its policy file";
  if (context.source == WorkSource::program) return key + " " + value + " in the policy of " + step_words(context.step);
  std::string flag = "--" + key;
  std::ranges::replace(flag, '_', '-');
  return flag + " " + value;
}

std::string written_list(const DecisionContext& context, const std::string& key,
                         const std::vector<std::string>& words) {
  const bool is_flag = context.source == WorkSource::exec && context.step.dialect == Dialect::native;
  std::string list;
  for (const std::string& one : words)
    list += (list.empty() ? "" : is_flag ? "," : ", ") + (is_flag ? one : yaml_word(one));
  return written(context, key, is_flag ? list : "[" + list + "]");
}

std::vector<std::string> texts_of(const std::optional<FailureRules>& rules) {
  std::vector<std::string> texts;
  for (const FailureRule& rule : rules.value_or(FailureRules{})) texts.push_back(rule.text);
  return texts;
}

std::string for_permanent(const DecisionContext& context, const RetryDecision& decision) {
  const Policy& policy = context.step.policy;
  const Failure failure = failure_of(decision);
  constexpr std::int32_t rh_agents_always_excluded = 5;  // they stand first in its list, whatever the document says
  if (context.step.dialect == Dialect::rh_agents && decision.failed.rule >= 0 &&
      decision.failed.rule < rh_agents_always_excluded)
    return "rh_agents never retries " + rule_text(policy.never_on, decision.failed.rule) +
           ": fail with another type, or give " + step_words(context.step) + " a native retry:";
  if (decision.failed.rule >= 0) {
    std::vector<std::string> rest = texts_of(policy.never_on);
    std::erase(rest, rule_text(policy.never_on, decision.failed.rule));
    return "take " + rule_text(policy.never_on, decision.failed.rule) + " out of " +
           policy_key(context.step, "never_on") + ": " + written_list(context, "never_on", rest);
  }
  if (decision.failed.precondition || failure.permanent.value_or(false)) return "";
  const std::string if_it_may = "if it may go away by itself, ";
  const std::string rule = noted_rule(failure);
  if (context.source == WorkSource::document && rule.starts_with("rule "))
    return if_it_may + "give it the class transient in classify, " + rule;
  if (context.source == WorkSource::document)
    return if_it_may + "write classify: [{when: " + yaml_word(nameable(failure)) +
           ", class: transient}] at the top of the document";
  if (context.source == WorkSource::exec)
    return if_it_may + "write " + written_list(context, "only_on", {"transient", nameable(failure)});
  return if_it_may + "add " + nameable(failure) + " to only_on in the policy of " + step_words(context.step);
}

std::string for_deadline(const DecisionContext& context, const Event& failed) {
  const Policy& policy = context.step.policy;
  if (context.step.kind == core::StepKind::signal)
    return "allow more time: timeout: more than " + text::format_duration(Duration{context.step.wait}) + ", in " +
           step_words(context.step);
  if (!policy.max_elapsed) return "";
  const Duration needed = failed.total_elapsed + delay_range(policy, failed.attempt).max;
  return "allow more time: " +
         written(context, "max_elapsed", "more than " + text::rough_duration(std::max(needed, *policy.max_elapsed)));
}

std::string for_budget(const DecisionContext& context, const RetryDecision& decision) {
  const Policy& policy = context.step.policy;
  if (!policy.retry_budget) return "";
  const Duration needed = decision.waited_before + delay_range(policy, decision.failed.attempt).max;
  return "allow longer waits: " +
         written(context, "retry_budget", text::rough_duration(std::max(needed, *policy.retry_budget)) + " or more");
}

std::string more_attempts(const DecisionContext& context, const Event& failed) {
  const std::uint64_t next = context.step.policy.max_attempts.value_or(failed.attempt) + 1;
  if (context.step.policy.needs_verdict)  // work_config counts retries
    return "allow more retries: max_retries: " + std::to_string(next - 1) + " or more, under work_config of " +
           step_words(context.step);
  return "allow more attempts: " + written(context, "max_attempts", std::to_string(next) + " or more");
}

std::string for_reason(const DecisionContext& context, const RetryDecision& decision) {
  const Policy& policy = context.step.policy;
  const Event& failed = decision.failed;
  switch (failed.reason) {
    case StopReason::attempts:
      if (context.step.switched_off && context.step.policy_line > 0)
        return "switch retries on: enabled: true, line " + std::to_string(context.step.policy_line);
      if (context.step.switched_off) return "give " + step_words(context.step) + " a retry_config of its own";
      return more_attempts(context, failed);
    case StopReason::deadline:
      return for_deadline(context, failed);
    case StopReason::budget:
      return for_budget(context, decision);
    case StopReason::not_listed: {
      std::vector<std::string> rules = texts_of(policy.only_on);
      rules.push_back(nameable(failure_of(decision)));
      return "add " + rules.back() + " to " + policy_key(context.step, "only_on") + ": " +
             written_list(context, "only_on", rules);
    }
    case StopReason::permanent:
      return for_permanent(context, decision);
    case StopReason::circuit_open: {
      const std::string limit = std::to_string(context.step.breaker_limit + 1);
      return context.source == WorkSource::document
                 ? "let the circuit breaker count further: circuit_breaker: {limit: " + limit + "} or more, in " +
                       step_words(context.step) + " or under runtime"
                 : "raise the limit of the circuit breaker to " + limit + " or more";
    }
    case StopReason::no_verdict:
      return "have the handler report what may be retried: {\"success\": false, \"error\": \"…\"}";
    case StopReason::canceled:
      return context.cancel_reason == StopReason::deadline && context.plan.deadline > 0
                 ? "allow more time: deadline: more than " + text::format_duration(Duration{context.plan.deadline}) +
                       ", under runtime"
                 : "";
    default:
      return "";
  }
}

}  // namespace

std::vector<std::string> remedies_of(const DecisionContext& context, const RetryDecision& decision) {
  std::vector<std::string> remedies;
  if (!decision.way.empty()) {
    remedies.push_back("mend " + way_words(decision.way) + ", which failed too");
    return remedies;
  }
  const Event& failed = decision.failed;
  if (std::string remedy = for_reason(context, decision); !remedy.empty()) {
    remedies.push_back(std::move(remedy));
    const auto& limit = context.step.policy.max_attempts;
    const bool is_enough = failed.reason == StopReason::attempts || failed.reason == StopReason::canceled ||
                           context.step.kind == core::StepKind::signal || !limit || failed.attempt < *limit;
    if (!is_enough) remedies.push_back("and " + more_attempts(context, failed));
  }
  if (context.was_visited_enough && context.step.on_failure == OnFailure::revisit)
    remedies.push_back("let it come here more often: max_visits: " + std::to_string(context.step.max_visits + 1) +
                       " or more, in " + step_words(context.step) + " or under runtime");
  const bool has_idle_fallback = context.step.fallback == core::FallbackRule::budget_exhausted &&
                                 failed.reason != StopReason::canceled && !failed.precondition;
  if (has_idle_fallback)
    remedies.push_back(
        "have its fallback take over, which is for exhausted budgets only: when: gave_up, under fallback of " +
        step_words(context.step));
  return remedies;
}

}  // namespace reprise::observe
