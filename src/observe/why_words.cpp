#include "observe/why_words.hpp"

#include <algorithm>

#include <reprise/classify.hpp>

#include "observe/words.hpp"
#include "text/duration.hpp"
#include "text/nearest.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {
namespace {

constexpr std::string_view classified_by = "classified by ";

std::string word(std::string_view text) { return std::string{text}; }
std::string time_words(Duration duration) { return text::rough_duration(std::max(duration, Duration{0})); }

Failure failure_of(const Judgement& judgement) { return judgement.failed.failure.value_or(Failure{}); }

std::string listed(const FailureRules& rules) {
  std::vector<std::string_view> words;
  for (const FailureRule& rule : rules) words.push_back(rule.text);
  return words.empty() ? "nothing" : text::join_words(words, "and");
}

std::string entry(const std::optional<FailureRules>& rules, std::int32_t index) {
  const bool is_there = rules && index >= 0 && static_cast<std::size_t>(index) < rules->size();
  return is_there ? (*rules)[static_cast<std::size_t>(index)].text : "entry " + std::to_string(index + 1);
}

// transient failures; failures of the class test_failure
std::string failures_of(const Failure& failure) {
  if (!failure.failure_class) return "such failures";
  const std::string name = word(name_of(*failure.failure_class));
  return name.find("_") == std::string::npos ? name + " failures" : "failures of the class " + name;
}

// ---- what failed ----------------------------------------

std::string noted_rule(const Failure& failure) {  // the executor notes which one it was; empty = it did not
  const std::size_t at = failure.details.find(classified_by);
  if (at == std::string::npos) return "";
  const std::string_view rest = std::string_view{failure.details}.substr(at + classified_by.size());
  return text::safe_to_show(rest.substr(0, std::min(rest.find('\n'), rest.size())));
}

// Which rule gave the failure its class. Where it is not noted, the evidence is asked again.
std::string classification_of(const Failure& failure) {
  const std::string judged = class_words(failure);
  if (const std::string rule = noted_rule(failure); !rule.empty())
    return "It is " + judged + ", by the rule: " + rule + ".";
  Failure evidence = failure;
  evidence.failure_class.reset();
  const Classification found = classify(evidence_of(evidence));
  if (found.failed && !found.rule.empty() && found.failure_class == failure.failure_class)
    return "It is " + judged + ", by the rule: " + describe_rule(found, evidence_of(evidence)) + ".";
  return "It is " + judged + ", as the work itself or its flow says.";
}

// The same attempt failed twice: the wait before the next one ended too late.
bool is_late(const Judgement& judgement, const Judgement* before) {
  return before != nullptr && before->retrying && before->failed.attempt == judgement.failed.attempt &&
         !before->asked_again && judgement.failed.reason == StopReason::deadline;
}

std::string who_failed(const Judgement& judgement) {
  const Event& failed = judgement.failed;
  if (failed.precondition) return "Its precondition";
  if (failed.attempt == 0) return "It";
  return "Attempt " + std::to_string(failed.attempt) +
         (judgement.way.empty() ? "" : ", " + way_words(judgement.way) + ",");
}

void add_what_failed(const JudgementContext& context, const Judgement& judgement, const Judgement* before,
                     std::vector<std::string>& sentences) {
  const Failure failure = failure_of(judgement);
  const std::string at = " failed at " + moment(judgement.failed.time);
  const bool is_same = before != nullptr && !judgement.failed.lost && !before->failed.lost && !before->asked_again &&
                       judgement.way == before->way && what_failed(failure) == what_failed(failure_of(*before)) &&
                       classification_of(failure) == classification_of(failure_of(*before));
  if (is_same) {
    sentences.push_back(who_failed(judgement) + at + " in the same way.");
    return;
  }
  sentences.push_back(who_failed(judgement) + at + ": " + what_failed(failure) + ".");
  if (judgement.failed.lost) {
    sentences.push_back("The engine died during this attempt, which counts as a failure: " + class_words(failure) +
                        ".");
  } else if (failure.failure_class != FailureClass::canceled && !judgement.failed.precondition &&
             context.step.verb != core::Verb::signal) {
    sentences.push_back(classification_of(failure));
  }
}

// ---- what was decided ----------------------------------------

std::string retry_reason(const Policy& policy, const Event& failed) {
  if (failed.rule >= 0) return entry(policy.only_on, failed.rule) + " stands in only_on";
  if (!policy.stops_on_class) return "its policy retries every error";
  return failures_of(failed.failure.value_or(Failure{})) + " are retried";
}

std::string attempts_left(const Policy& policy, std::uint64_t attempt) {
  if (!policy.max_attempts) return "max_attempts is unlimited";
  const std::uint64_t left = *policy.max_attempts > attempt ? *policy.max_attempts - attempt : 0;
  return "max_attempts " + std::to_string(*policy.max_attempts) + " leaves " + std::to_string(left);
}

std::string wait_words(const Policy& policy, const Event& retrying, bool is_over) {
  std::string words = is_over ? "It waited " : "It waits ";
  words += time_words(retrying.delay) + " before attempt " + std::to_string(retrying.next_attempt);
  const std::string backoff = word(name_of(policy.backoff)) + " backoff";
  if (retrying.floored) {
    return words + ": the other side asked for at least that long (Retry-After), and " + backoff + " (nominal " +
           time_words(retrying.range.nominal) + ") had drawn less.";
  }
  if (retrying.range.min == retrying.range.max) return words + ", as " + backoff + " says.";
  return words + ", drawn from " + time_words(retrying.range.min) + " to " + time_words(retrying.range.max) + " (" +
         backoff + ", nominal " + time_words(retrying.range.nominal) + ", jitter " + word(name_of(policy.jitter)) +
         ").";
}

// 10s, or 0s to 10s: the wait that was not begun any more.
std::string next_wait(const Policy& policy, const Event& failed) {
  const DelayRange range = delay_range(policy, failed.attempt);
  if (range.min == range.max) return time_words(range.max);
  return "anything from " + time_words(range.min) + " to " + time_words(range.max);
}

std::string permanent_words(const Policy& policy, const Event& failed, const Failure& failure) {
  if (failed.precondition) return "a precondition that fails is never retried";
  if (failed.rule >= 0) return entry(policy.never_on, failed.rule) + " stands in never_on";
  if (failure.permanent.value_or(false)) return "the work itself said that it is permanent";
  return failures_of(failure) + " are not retried unless only_on names them";
}

std::string deadline_words(const JudgementContext& context, const Event& failed, bool late) {
  const Policy& policy = context.step.policy;
  if (context.step.verb == core::Verb::signal)
    return "its timeout is " + text::format_duration(Duration{context.step.wait});
  if (!policy.max_elapsed) return "the deadline of the run was over";
  const std::string limit = "max_elapsed " + text::format_duration(*policy.max_elapsed);
  if (late) return limit + " was over before the next attempt could begin";
  return "after " + time_words(failed.total_elapsed) + " a further wait of " + next_wait(policy, failed) +
         " would have gone beyond " + limit;
}

std::string canceled_words(const JudgementContext& context) {
  if (context.cancel_reason != StopReason::deadline) return "the run was cancelled";
  return context.plan.deadline > 0
             ? "the deadline of the run, " + text::format_duration(Duration{context.plan.deadline}) + ", had passed"
             : "the deadline of the run had passed";
}

std::string stop_words(const JudgementContext& context, const Judgement& judgement, bool late) {
  const Policy& policy = context.step.policy;
  const Event& failed = judgement.failed;
  if (failed.reason == StopReason::canceled) return canceled_words(context);
  if (!judgement.way.empty()) return way_words(judgement.way) + " is tried once";
  switch (failed.reason) {
    case StopReason::permanent:
      return permanent_words(policy, failed, failure_of(judgement));
    case StopReason::not_listed:
      return "only_on lists " + (policy.only_on ? listed(*policy.only_on) : "nothing") + ", and none of it matches";
    case StopReason::attempts:
      return "that was attempt " + std::to_string(failed.attempt) + " of max_attempts " +
             (policy.max_attempts ? std::to_string(*policy.max_attempts) : "unlimited");
    case StopReason::deadline:
      return deadline_words(context, failed, late);
    case StopReason::budget:
      return "its waits had taken " + time_words(judgement.waited_before) + ", and a further one of " +
             next_wait(policy, failed) + " would have gone beyond retry_budget " +
             (policy.retry_budget ? text::format_duration(*policy.retry_budget) : "of its policy");
    case StopReason::circuit_open:
      return "the same failure came " + std::to_string(context.step.breaker_limit) +
             " times, which opened the circuit breaker of the step";
    case StopReason::no_verdict:
      return "its policy wants the handler's own word, and there was none";
    default:
      return word(reason_words(failed.reason));
  }
}

std::string decided(const Judgement& judgement) {
  if (judgement.failed.reason == StopReason::canceled) return "Stopped";
  return judgement.failed.will_retry ? "No further attempt of this kind" : "Given up";
}

void add_decision(const JudgementContext& context, const Judgement& judgement, bool late,
                  std::vector<std::string>& sentences) {
  const Event& failed = judgement.failed;
  const Policy& policy = context.step.policy;
  const bool is_same_way_again = failed.lost && !judgement.way.empty() && judgement.next_way == judgement.way;
  if (is_same_way_again) {
    sentences.push_back("Tried again, as attempt " + std::to_string(failed.attempt + 1) + ": " +
                        way_words(judgement.way) + " was not to blame.");
  } else if (failed.reason != StopReason::none) {
    sentences.push_back(decided(judgement) + " (" + word(name_of(failed.reason)) +
                        "): " + stop_words(context, judgement, late) + ".");
  } else if (judgement.retrying) {
    sentences.push_back("Tried again: " + retry_reason(policy, failed) + "; " + attempts_left(policy, failed.attempt) +
                        ".");
    sentences.push_back(wait_words(policy, *judgement.retrying, judgement.is_wait_over));
  }
  if (!judgement.next_way.empty() && !is_same_way_again) {
    sentences.push_back("Next is " + way_words(judgement.next_way) + ", as attempt " +
                        std::to_string(failed.attempt + 1) + ".");
  }
  if (judgement.asked_again)
    sentences.push_back("Somebody asked at " + moment(*judgement.asked_again) +
                        " to try it again, with all its attempts.");
}

// ---- what would have to be written ----------------------------------------

// As only_on and classify name it: exit:7, http:503, signal:KILL, TimeoutError.
std::string nameable(const Failure& failure) {
  const bool says_nothing = failure.type.empty() || failure.type == "ExitError" || failure.type == "HTTPError" ||
                            failure.type == "SignalError";
  if (!says_nothing) return text::safe_to_show(failure.type);
  if (failure.http_status) return "http:" + std::to_string(*failure.http_status);
  if (failure.signal) {
    std::string_view name = signal_name(*failure.signal);
    if (name.starts_with("SIG")) name.remove_prefix(3);
    return "signal:" + (name.empty() ? std::to_string(*failure.signal) : word(name));
  }
  if (failure.exit_code) return "exit:" + std::to_string(*failure.exit_code);
  if (!failure.type.empty()) return failure.type;
  return failure.failure_class ? word(name_of(*failure.failure_class)) : "it";
}

std::string yaml_word(const std::string& text) {
  return text.find_first_of(":/#,[]{}\"' ") == std::string::npos ? text : "\"" + text + "\"";
}

std::string step_words(const core::StepPlan& step) { return "step " + text::safe_to_show(*step.name); }

std::string where_policy_stands(const JudgementContext& context) {
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
std::string written(const JudgementContext& context, const std::string& key, const std::string& value) {
  if (context.source == WorkSource::document) return key + ": " + value + ", " + where_policy_stands(context);
  if (context.source == WorkSource::foreign_document)
    return key + " " + value + ", as its dialect has it, in the policy of " + step_words(context.step);
  if (context.source == WorkSource::program) return key + " " + value + " in the policy of " + step_words(context.step);
  std::string flag = "--" + key;
  std::ranges::replace(flag, '_', '-');
  return flag + " " + value;
}

std::string written_list(const JudgementContext& context, const std::string& key,
                         const std::vector<std::string>& words) {
  const bool is_flag = context.source == WorkSource::exec;
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

std::string for_permanent(const JudgementContext& context, const Judgement& judgement) {
  const Policy& policy = context.step.policy;
  const Failure failure = failure_of(judgement);
  if (judgement.failed.rule >= 0) {
    std::vector<std::string> rest = texts_of(policy.never_on);
    std::erase(rest, entry(policy.never_on, judgement.failed.rule));
    return "take " + entry(policy.never_on, judgement.failed.rule) +
           " out of never_on: " + written_list(context, "never_on", rest);
  }
  if (judgement.failed.precondition || failure.permanent.value_or(false)) return "";
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

std::string for_deadline(const JudgementContext& context, const Event& failed) {
  const Policy& policy = context.step.policy;
  if (context.step.verb == core::Verb::signal)
    return "allow more time: timeout: more than " + text::format_duration(Duration{context.step.wait}) + ", in " +
           step_words(context.step);
  if (!policy.max_elapsed) return "";
  const Duration needed = failed.total_elapsed + delay_range(policy, failed.attempt).max;
  return "allow more time: " +
         written(context, "max_elapsed", "more than " + time_words(std::max(needed, *policy.max_elapsed)));
}

std::string for_budget(const JudgementContext& context, const Judgement& judgement) {
  const Policy& policy = context.step.policy;
  if (!policy.retry_budget) return "";
  const Duration needed = judgement.waited_before + delay_range(policy, judgement.failed.attempt).max;
  return "allow longer waits: " +
         written(context, "retry_budget", time_words(std::max(needed, *policy.retry_budget)) + " or more");
}

std::string more_attempts(const JudgementContext& context, const Event& failed) {
  const std::uint64_t next = context.step.policy.max_attempts.value_or(failed.attempt) + 1;
  return "allow more attempts: " + written(context, "max_attempts", std::to_string(next) + " or more");
}

std::string for_reason(const JudgementContext& context, const Judgement& judgement) {
  const Policy& policy = context.step.policy;
  const Event& failed = judgement.failed;
  switch (failed.reason) {
    case StopReason::attempts:
      return more_attempts(context, failed);
    case StopReason::deadline:
      return for_deadline(context, failed);
    case StopReason::budget:
      return for_budget(context, judgement);
    case StopReason::not_listed: {
      std::vector<std::string> rules = texts_of(policy.only_on);
      rules.push_back(nameable(failure_of(judgement)));
      return "add " + rules.back() + " to only_on: " + written_list(context, "only_on", rules);
    }
    case StopReason::permanent:
      return for_permanent(context, judgement);
    case StopReason::circuit_open: {
      const std::string limit = std::to_string(context.step.breaker_limit + 1);
      return context.source == WorkSource::document
                 ? "let the circuit breaker count further: circuit_breaker: {limit: " + limit + "} or more, in " +
                       step_words(context.step) + " or under runtime"
                 : "raise the limit of the circuit breaker to " + limit + " or more";
    }
    case StopReason::no_verdict:
      return "have the handler say \"permanent\": false with a message";
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

std::string moment(WallTime time) { return date_and_time(std::chrono::floor<std::chrono::milliseconds>(time)); }

std::string way_words(std::string_view way) {
  return way == "on_failure" ? "its on_failure command" : "its " + text::safe_to_show(way);
}

std::vector<std::string> sentences_of(const JudgementContext& context, const Judgement& judgement,
                                      const Judgement* before) {
  std::vector<std::string> sentences;
  const bool late = is_late(judgement, before);
  if (late) {
    sentences.push_back("Attempt " + std::to_string(judgement.failed.attempt + 1) + " was not begun at " +
                        moment(judgement.failed.time) + ".");
  } else {
    add_what_failed(context, judgement, before, sentences);
  }
  add_decision(context, judgement, late, sentences);
  return sentences;
}

std::vector<std::string> remedies_of(const JudgementContext& context, const Judgement& judgement) {
  std::vector<std::string> remedies;
  if (!judgement.way.empty()) {
    remedies.push_back("mend " + way_words(judgement.way) + ", which failed too");
    return remedies;
  }
  const Event& failed = judgement.failed;
  if (std::string remedy = for_reason(context, judgement); !remedy.empty()) {
    remedies.push_back(std::move(remedy));
    const auto& limit = context.step.policy.max_attempts;
    const bool is_enough = failed.reason == StopReason::attempts || failed.reason == StopReason::canceled ||
                           context.step.verb == core::Verb::signal || !limit || failed.attempt < *limit;
    if (!is_enough) remedies.push_back("and " + more_attempts(context, failed));
  }
  const bool has_idle_fallback = context.step.fallback == core::FallbackRule::budget_exhausted &&
                                 failed.reason != StopReason::canceled && !failed.precondition;
  if (has_idle_fallback)
    remedies.push_back(
        "have its fallback take over, which is for exhausted budgets only: when: gave_up, under fallback of " +
        step_words(context.step));
  return remedies;
}

}  // namespace reprise::observe
