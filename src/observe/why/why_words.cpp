#include "observe/why/why_words.hpp"

#include <algorithm>
#include <cmath>

#include <reprise/classify.hpp>

#include "observe/words.hpp"
#include "policy/dialect/dialects.hpp"
#include "policy/verdict.hpp"
#include "text/duration.hpp"
#include "text/nearest.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {
namespace {

std::string word(std::string_view text) { return std::string{text}; }
std::string listed(const FailureRules& rules) {
  std::vector<std::string_view> words;
  for (const FailureRule& rule : rules) words.push_back(rule.text);
  return words.empty() ? "nothing" : text::join_words(words, "and");
}

// transient failures; failures of the class test_failure
std::string failures_of(const Failure& failure) {
  if (!failure.failure_class) return "such failures";
  const std::string name = word(name_of(*failure.failure_class));
  return name.find("_") == std::string::npos ? name + " failures" : "failures of the class " + name;
}

// full, equal; 25 %
std::string jitter_words(const Policy& policy) {
  if (policy.jitter != Jitter::ratio) return word(name_of(policy.jitter));
  const auto tenths = std::llround(policy.jitter_ratio * 1000);
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + " %";
}

// ---- what failed ----------------------------------------

// The same attempt failed twice: the wait before the next one ended too late.
bool is_late(const RetryDecision& decision, const RetryDecision* before) {
  const bool has_no_attempt =
      decision.failed.attempt == 0 || (before != nullptr && before->failed.attempt == decision.failed.attempt);
  return before != nullptr && before->retrying && has_no_attempt && !before->asked_again &&
         decision.failed.reason == StopReason::deadline;
}

std::string who_failed(const RetryDecision& decision) {
  const Event& failed = decision.failed;
  if (failed.precondition) return "Its precondition";
  if (failed.attempt == 0) return "It";
  return "Attempt " + std::to_string(failed.attempt) +
         (decision.way.empty() ? "" : ", " + way_words(decision.way) + ",");
}

// Where only the handler's word counts, its class is not asked for.
bool has_no_verdict(const DecisionContext& context, const Failure& failure) {
  return context.step.policy.needs_verdict && !failure.permanent;
}

const std::string no_verdict_sentence =
    "The handler gave no verdict: neither {\"success\": true} nor {\"success\": false, \"error\": …}.";

void add_what_failed(const DecisionContext& context, const RetryDecision& decision, const RetryDecision* before,
                     std::vector<std::string>& sentences) {
  const Failure failure = failure_of(decision);
  const std::string at = " failed at " + moment(decision.failed.time);
  const bool is_same = before != nullptr && !decision.failed.lost && !before->failed.lost && !before->asked_again &&
                       decision.way == before->way && what_failed(failure) == what_failed(failure_of(*before)) &&
                       classification_sentence(failure) == classification_sentence(failure_of(*before));
  if (is_same) {
    sentences.push_back(who_failed(decision) + at + " in the same way.");
    return;
  }
  sentences.push_back(who_failed(decision) + at + ": " + what_failed(failure) + ".");
  if (decision.failed.lost) {
    sentences.push_back("The engine died during this attempt: it is lost, and not one of those that count.");
  } else if (failure.failure_class != FailureClass::canceled && !decision.failed.precondition &&
             context.step.kind != core::StepKind::signal) {
    sentences.push_back(has_no_verdict(context, failure) ? no_verdict_sentence : classification_sentence(failure));
  }
}

// ---- what was decided ----------------------------------------

// How many attempts count towards max_attempts.
std::uint64_t used_attempts(const Event& failed) {
  const bool all_count = failed.used_attempts + failed.lost_attempts + failed.interrupted_attempts == 0;
  return all_count ? failed.attempt : failed.used_attempts;
}

std::string retry_reason(const core::StepPlan& step, const Event& failed) {
  const Policy& policy = step.policy;
  if (failed.lost) {
    return "up to " + std::to_string(policy.worker_lost_max.value_or(worker_lost_default)) +
           " losses in a row are made again";
  }
  if (failed.rule >= 0) return rule_text(policy.only_on, failed.rule) + " stands in " + policy_key(step, "only_on");
  if (step.dialect == Dialect::rh_agents && policy.only_on)
    return "a failed check is no exception, so its lists are not asked";
  if (policy.needs_verdict) return "the handler reported \"not completed\"";
  if (!policy.stops_on_class) return "its policy retries every error";
  return failures_of(failed.failure.value_or(Failure{})) + " are retried";
}

std::string attempts_left(const core::StepPlan& step, std::uint64_t attempt) {
  const Policy& policy = step.policy;
  const std::string key = policy_key(step, "max_attempts");
  if (!policy.max_attempts) return key + " is unlimited";
  const std::uint64_t left = *policy.max_attempts > attempt ? *policy.max_attempts - attempt : 0;
  return key + " " + std::to_string(*policy.max_attempts) + " leaves " + std::to_string(left);
}

std::string wait_words(const Policy& policy, const RetryDecision& decision) {
  const Event& retrying = *decision.retrying;
  if (retrying.lost && retrying.delay == Duration{0})
    return "Attempt " + std::to_string(retrying.next_attempt) + " follows at once: a first loss waits for nothing.";
  const std::string_view verb = decision.is_wait_in_vain ? "It was to wait "
                                : decision.is_wait_over  ? "It waited "
                                                         : "It waits ";
  return std::string{verb} + text::rough_duration(retrying.delay) + " before attempt " +
         std::to_string(retrying.next_attempt) + (retrying.floored ? ": " : ", ") + wait_reason(policy, retrying) + ".";
}

// 10s, or 0s to 10s: the wait that was not begun any more.
std::string next_wait(const Policy& policy, const Event& failed) {
  const DelayRange range = delay_range(policy, std::max<std::uint64_t>(used_attempts(failed), 1));
  if (range.min == range.max) return text::rough_duration(range.max);
  return "anything from " + text::rough_duration(range.min) + " to " + text::rough_duration(range.max);
}

std::string permanent_words(const core::StepPlan& step, const Event& failed, const Failure& failure) {
  if (failed.precondition) return "a precondition that fails is never retried";
  if (failed.rule >= 0)
    return rule_text(step.policy.never_on, failed.rule) + " stands in " + policy_key(step, "never_on");
  if (policy::is_verdict(failure)) return "the handler reported \"permanent\": true";
  if (failure.permanent.value_or(false)) return "the work itself said that it is permanent";
  return failures_of(failure) + " are not retried unless only_on names them";
}

std::string deadline_words(const DecisionContext& context, const Event& failed, bool late) {
  const Policy& policy = context.step.policy;
  if (context.step.kind == core::StepKind::signal)
    return "its timeout is " + text::format_duration(Duration{context.step.wait});
  if (!policy.max_elapsed) return "the deadline of the run was over";
  const std::string limit = policy_key(context.step, "max_elapsed") + " " + text::format_duration(*policy.max_elapsed);
  if (late) return limit + " was over before the next attempt could begin";
  if (failed.cut) return limit + " was over while the attempt was running";
  return "after " + text::rough_duration(failed.total_elapsed) + " a further wait of " + next_wait(policy, failed) +
         " would have gone beyond " + limit;
}

// rh_agents' `enabled: false`; an agent that nobody has configured is switched off by that system itself.
std::string switched_off_words(const core::StepPlan& step) {
  if (step.policy_line == 0) return "retries are switched off for the type " + step.actor_type;
  return "retries are switched off here (line " + std::to_string(step.policy_line) + ")";
}

std::string canceled_words(const DecisionContext& context) {
  if (context.cancel_reason != StopReason::deadline) return "the run was cancelled";
  return context.plan.deadline > 0
             ? "the deadline of the run, " + text::format_duration(Duration{context.plan.deadline}) + ", had passed"
             : "the deadline of the run had passed";
}

std::string stop_words(const DecisionContext& context, const RetryDecision& decision, bool late) {
  const Policy& policy = context.step.policy;
  const Event& failed = decision.failed;
  if (failed.reason == StopReason::canceled) return canceled_words(context);
  if (!decision.way.empty()) return way_words(decision.way) + " is tried once";
  switch (failed.reason) {
    case StopReason::permanent:
      return permanent_words(context.step, failed, failure_of(decision));
    case StopReason::not_listed:
      return policy_key(context.step, "only_on") + " lists " + (policy.only_on ? listed(*policy.only_on) : "nothing") +
             ", and none of it matches";
    case StopReason::attempts:
      if (context.step.switched_off) return switched_off_words(context.step);
      return (used_attempts(failed) == failed.attempt
                  ? "that was attempt " + std::to_string(failed.attempt)
                  : "attempt " + std::to_string(failed.attempt) + " is number " +
                        std::to_string(used_attempts(failed)) + " of those that count,") +
             " of " + policy_key(context.step, "max_attempts") + " " +
             (policy.max_attempts ? std::to_string(*policy.max_attempts) : "unlimited");
    case StopReason::lost:
      return "only " + std::to_string(policy.worker_lost_max.value_or(worker_lost_default)) +
             " losses in a row are made again (limits.worker_lost)";
    case StopReason::unclear:
      return "nobody knows whether the work was done, and its effect is at_most_once: a person has to find out";
    case StopReason::deadline:
      return deadline_words(context, failed, late);
    case StopReason::budget:
      return "its waits had taken " + text::rough_duration(decision.waited_before) + ", and a further one of " +
             next_wait(policy, failed) + " would have gone beyond " + policy_key(context.step, "retry_budget") + " " +
             (policy.retry_budget ? text::format_duration(*policy.retry_budget) : "of its policy");
    case StopReason::circuit_open:
      return "the same failure came " + std::to_string(context.step.breaker_limit) +
             " times, which opened the circuit breaker of the step";
    case StopReason::no_verdict:
      return "only what the handler itself reports as not completed is retried here, and it reported nothing";
    default:
      return word(reason_words(failed.reason));
  }
}

std::string decided(const RetryDecision& decision) {
  if (decision.failed.reason == StopReason::canceled) return "Stopped";
  return decision.failed.will_retry ? "No further attempt of this kind" : "Given up";
}

std::string stop_sentence(const DecisionContext& context, const RetryDecision& decision, bool late) {
  return decided(decision) + " (" + word(name_of(decision.failed.reason)) +
         "): " + stop_words(context, decision, late) + ".";
}

std::string retry_sentence(const core::StepPlan& step, const Event& failed) {
  return "Tried again: " + retry_reason(step, failed) + "; " + attempts_left(step, used_attempts(failed)) + ".";
}

void add_decision(const DecisionContext& context, const RetryDecision& decision, bool late,
                  std::vector<std::string>& sentences) {
  const Event& failed = decision.failed;
  const Policy& policy = context.step.policy;
  const bool is_same_way_again = failed.lost && !decision.way.empty() && decision.next_way == decision.way;
  if (is_same_way_again) {
    sentences.push_back("Tried again, as attempt " + std::to_string(failed.attempt + 1) + ": " +
                        way_words(decision.way) + " was not to blame.");
  } else if (failed.reason != StopReason::none) {
    sentences.push_back(stop_sentence(context, decision, late));
  } else if (decision.retrying) {
    sentences.push_back(retry_sentence(context.step, failed));
    sentences.push_back(wait_words(policy, decision));
  }
  if (!decision.next_way.empty() && !is_same_way_again) {
    sentences.push_back("Next is " + way_words(decision.next_way) + ", as attempt " +
                        std::to_string(failed.attempt + 1) + ".");
  }
  if (!decision.went_back.empty())
    sentences.push_back("The run went back to " + text::safe_to_show(decision.went_back) + ", to come here again.");
  if (decision.asked_again)
    sentences.push_back("Somebody asked at " + moment(*decision.asked_again) +
                        " to try it again, with all its attempts.");
}

}  // namespace

std::string classification_sentence(const Failure& failure) {
  if (policy::is_verdict(failure))
    return *failure.permanent ? "The handler's verdict: not completed, and permanent."
                              : "The handler's verdict: not completed.";
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

std::string decision_sentence(const DecisionContext& context, const RetryDecision& decision) {
  return decision.failed.reason == StopReason::none ? retry_sentence(context.step, decision.failed)
                                                    : stop_sentence(context, decision, false);
}

std::string wait_reason(const Policy& policy, const Event& retrying) {
  const std::string backoff = word(name_of(policy.backoff)) + " backoff";
  if (retrying.floored) {
    return "the other side asked for at least that long (Retry-After), and " + backoff + " (nominal " +
           text::rough_duration(retrying.range.nominal) + ") had drawn less";
  }
  if (retrying.lost && retrying.delay == Duration{0}) return "because a first loss waits for nothing";
  if (retrying.range.min == retrying.range.max)
    return "as " + backoff + " says" + (retrying.lost ? " for a further loss in a row" : "");
  return "drawn from " + text::rough_duration(retrying.range.min) + " to " + text::rough_duration(retrying.range.max) +
         " (" + backoff + ", nominal " + text::rough_duration(retrying.range.nominal) + ", jitter " +
         jitter_words(policy) + ")";
}

Failure failure_of(const RetryDecision& decision) { return decision.failed.failure.value_or(Failure{}); }

std::string rule_text(const std::optional<FailureRules>& rules, std::int32_t index) {
  const bool is_there = rules && index >= 0 && static_cast<std::size_t>(index) < rules->size();
  return is_there ? (*rules)[static_cast<std::size_t>(index)].text : "entry " + std::to_string(index + 1);
}

std::string noted_rule(const Failure& failure) {
  constexpr std::string_view classified_by = "classified by ";
  const std::size_t at = failure.details.find(classified_by);
  if (at == std::string::npos) return "";
  const std::string_view rest = std::string_view{failure.details}.substr(at + classified_by.size());
  return text::safe_to_show(rest.substr(0, std::min(rest.find('\n'), rest.size())));
}

std::string policy_key(const core::StepPlan& step, std::string_view native) {
  // Argyll counts retries: a number beside its word would be another one.
  if (step.dialect == Dialect::native || step.dialect == Dialect::argyll) return word(native);
  const dialect::Vocabulary& words = dialect::vocabulary_of(step.dialect);
  const std::string_view own = native == "max_attempts"   ? words.max_attempts
                               : native == "max_elapsed"  ? words.max_elapsed
                               : native == "only_on"      ? words.only_on
                               : native == "never_on"     ? words.never_on
                               : native == "retry_budget" ? words.retry_budget
                                                          : "";
  const std::string_view last = own.substr(own.rfind('.') + 1);  // npos + 1 = 0
  if (own.empty()) return word(native);
  if (last == native) return word(own);
  const bool is_list = native.ends_with("_on");  // needs no section to be found
  return word(is_list ? last : own) + " (" + word(native) + ")";
}

std::string moment(WallTime time) { return date_and_time(std::chrono::floor<std::chrono::milliseconds>(time)); }

std::string way_words(std::string_view way) {
  return way == "on_failure" ? "its on_failure command" : "its " + text::safe_to_show(way);
}

std::vector<std::string> sentences_of(const DecisionContext& context, const RetryDecision& decision,
                                      const RetryDecision* before) {
  std::vector<std::string> sentences;
  if (decision.is_interruption) {
    sentences.push_back(who_failed(decision) + " was stopped at " + moment(decision.failed.time) +
                        ": no failure, and not one of those that count.");
    return sentences;
  }
  const bool late = is_late(decision, before);
  if (late) {
    sentences.push_back("Attempt " + std::to_string(before->retrying->next_attempt) + " was not begun at " +
                        moment(decision.failed.time) + ".");
  } else {
    add_what_failed(context, decision, before, sentences);
  }
  add_decision(context, decision, late, sentences);
  return sentences;
}

}  // namespace reprise::observe
