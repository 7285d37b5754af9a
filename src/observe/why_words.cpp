#include "observe/why_words.hpp"

#include <algorithm>
#include <cmath>

#include <reprise/classify.hpp>

#include "observe/words.hpp"
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
                       classification_sentence(failure) == classification_sentence(failure_of(*before));
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
    sentences.push_back(classification_sentence(failure));
  }
}

// ---- what was decided ----------------------------------------

std::string retry_reason(const Policy& policy, const Event& failed) {
  if (failed.rule >= 0) return rule_text(policy.only_on, failed.rule) + " stands in only_on";
  if (!policy.stops_on_class) return "its policy retries every error";
  return failures_of(failed.failure.value_or(Failure{})) + " are retried";
}

std::string attempts_left(const Policy& policy, std::uint64_t attempt) {
  if (!policy.max_attempts) return "max_attempts is unlimited";
  const std::uint64_t left = *policy.max_attempts > attempt ? *policy.max_attempts - attempt : 0;
  return "max_attempts " + std::to_string(*policy.max_attempts) + " leaves " + std::to_string(left);
}

std::string wait_words(const Policy& policy, const Event& retrying, bool is_over) {
  return (is_over ? "It waited " : "It waits ") + text::rough_duration(retrying.delay) + " before attempt " +
         std::to_string(retrying.next_attempt) + (retrying.floored ? ": " : ", ") + wait_reason(policy, retrying) + ".";
}

// 10s, or 0s to 10s: the wait that was not begun any more.
std::string next_wait(const Policy& policy, const Event& failed) {
  const DelayRange range = delay_range(policy, failed.attempt);
  if (range.min == range.max) return text::rough_duration(range.max);
  return "anything from " + text::rough_duration(range.min) + " to " + text::rough_duration(range.max);
}

std::string permanent_words(const Policy& policy, const Event& failed, const Failure& failure) {
  if (failed.precondition) return "a precondition that fails is never retried";
  if (failed.rule >= 0) return rule_text(policy.never_on, failed.rule) + " stands in never_on";
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
  return "after " + text::rough_duration(failed.total_elapsed) + " a further wait of " + next_wait(policy, failed) +
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
      return "its waits had taken " + text::rough_duration(judgement.waited_before) + ", and a further one of " +
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

std::string stop_sentence(const JudgementContext& context, const Judgement& judgement, bool late) {
  return decided(judgement) + " (" + word(name_of(judgement.failed.reason)) +
         "): " + stop_words(context, judgement, late) + ".";
}

std::string retry_sentence(const Policy& policy, const Event& failed) {
  return "Tried again: " + retry_reason(policy, failed) + "; " + attempts_left(policy, failed.attempt) + ".";
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
    sentences.push_back(stop_sentence(context, judgement, late));
  } else if (judgement.retrying) {
    sentences.push_back(retry_sentence(policy, failed));
    sentences.push_back(wait_words(policy, *judgement.retrying, judgement.is_wait_over));
  }
  if (!judgement.next_way.empty() && !is_same_way_again) {
    sentences.push_back("Next is " + way_words(judgement.next_way) + ", as attempt " +
                        std::to_string(failed.attempt + 1) + ".");
  }
  if (!judgement.went_back.empty())
    sentences.push_back("The run went back to " + text::safe_to_show(judgement.went_back) + ", to come here again.");
  if (judgement.asked_again)
    sentences.push_back("Somebody asked at " + moment(*judgement.asked_again) +
                        " to try it again, with all its attempts.");
}

}  // namespace

std::string classification_sentence(const Failure& failure) {
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

std::string decision_sentence(const JudgementContext& context, const Judgement& judgement) {
  return judgement.failed.reason == StopReason::none ? retry_sentence(context.step.policy, judgement.failed)
                                                     : stop_sentence(context, judgement, false);
}

std::string wait_reason(const Policy& policy, const Event& retrying) {
  const std::string backoff = word(name_of(policy.backoff)) + " backoff";
  if (retrying.floored) {
    return "the other side asked for at least that long (Retry-After), and " + backoff + " (nominal " +
           text::rough_duration(retrying.range.nominal) + ") had drawn less";
  }
  if (retrying.range.min == retrying.range.max) return "as " + backoff + " says";
  return "drawn from " + text::rough_duration(retrying.range.min) + " to " + text::rough_duration(retrying.range.max) +
         " (" + backoff + ", nominal " + text::rough_duration(retrying.range.nominal) + ", jitter " +
         jitter_words(policy) + ")";
}

Failure failure_of(const Judgement& judgement) { return judgement.failed.failure.value_or(Failure{}); }

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

}  // namespace reprise::observe
