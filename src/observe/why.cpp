#include "observe/why.hpp"

#include <array>

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

std::string listed(const FailureRules& rules) {
  std::vector<std::string_view> words;
  for (const FailureRule& rule : rules) words.push_back(rule.text);
  return words.empty() ? "nothing" : text::join_words(words, "and");
}

std::string entry(const std::optional<FailureRules>& rules, std::int32_t index) {
  const bool is_there = rules && index >= 0 && static_cast<std::size_t>(index) < rules->size();
  return is_there ? (*rules)[static_cast<std::size_t>(index)].text : "entry " + std::to_string(index + 1);
}

std::string retry_reason(const Policy& policy, const Event& failed) {
  if (failed.rule >= 0) return entry(policy.only_on, failed.rule) + " stands in only_on";
  if (!policy.stops_on_class) return "its policy retries every error";
  const Failure failure = failed.failure.value_or(Failure{});
  return word(failure.failure_class ? name_of(*failure.failure_class) : "such") + " failures are retried";
}

std::string attempts_left(const Policy& policy, std::uint64_t attempt) {
  if (!policy.max_attempts) return "max_attempts is unlimited";
  const std::uint64_t left = *policy.max_attempts > attempt ? *policy.max_attempts - attempt : 0;
  return "max_attempts " + std::to_string(*policy.max_attempts) + " leaves " + std::to_string(left);
}

std::string wait_words(const Policy& policy, const Event& retrying) {
  return "It waits " + time_words(retrying.delay) + " before attempt " + std::to_string(retrying.next_attempt) +
         (retrying.floored ? ": " : ", ") + wait_reason(policy, retrying) + ".";
}

std::string permanent_words(const Policy& policy, const Event& failed, const Failure& failure) {
  if (failed.precondition) return "its precondition failed, and that is never retried";
  if (failed.rule >= 0) return entry(policy.never_on, failed.rule) + " stands in never_on";
  if (failure.permanent.value_or(false)) return "the work itself said that it is permanent";
  return word(failure.failure_class ? name_of(*failure.failure_class) : "such") +
         " failures are not retried unless only_on names them";
}

std::string stop_words(const core::StepPlan& plan, const Event& failed) {
  const Policy& policy = plan.policy;
  const Failure failure = failed.failure.value_or(Failure{});
  switch (failed.reason) {
    case StopReason::permanent:
      return permanent_words(policy, failed, failure);
    case StopReason::not_listed:
      return "only_on lists " + (policy.only_on ? listed(*policy.only_on) : "nothing") + ", and none of it matches";
    case StopReason::attempts:
      return "that was attempt " + std::to_string(failed.attempt) + " of max_attempts " +
             (policy.max_attempts ? std::to_string(*policy.max_attempts) : "unlimited");
    case StopReason::deadline:
      return "max_elapsed " + (policy.max_elapsed ? text::format_duration(*policy.max_elapsed) : "of the run") +
             " would have been over before the next attempt; " + time_words(failed.total_elapsed) + " had passed";
    case StopReason::budget:
      return "the next wait would have made all waits together longer than retry_budget " +
             (policy.retry_budget ? text::format_duration(*policy.retry_budget) : "allows");
    case StopReason::circuit_open:
      return "the same failure came " + std::to_string(plan.breaker_limit) +
             " times in a row, which opened the circuit breaker of the step";
    case StopReason::no_verdict:
      return "its policy wants the handler's own word, and there was none";
    default:
      return word(reason_words(failed.reason));
  }
}

std::vector<std::string> sentences_of(const core::StepPlan& plan, const Event& failed) {
  const Failure failure = failed.failure.value_or(Failure{});
  std::vector<std::string> sentences;
  const std::string which =
      failed.precondition ? "Before its first attempt" : "Attempt " + std::to_string(failed.attempt);
  sentences.push_back(which + " failed at " + date_and_time(failed.time) + ": " + what_failed(failure) + ".");
  if (failed.lost) sentences.push_back("The engine died during this attempt, which counts as a failure.");
  sentences.push_back(classification_sentence(failure));
  sentences.push_back(decision_sentence(plan, failed));
  return sentences;
}

std::string nameable(const Failure& failure) {  // as only_on would name it
  if (!failure.type.empty()) return text::safe_to_show(failure.type);
  if (failure.http_status) return "http:" + std::to_string(*failure.http_status);
  if (failure.exit_code) return "exit:" + std::to_string(*failure.exit_code);
  if (failure.signal) return "signal:" + std::to_string(*failure.signal);
  return failure.failure_class ? word(name_of(*failure.failure_class)) : "it";
}

// What would have made the last decision another one. All but the first need a changed document and a new run.
std::vector<std::string> remedies_for(const core::StepPlan& plan, const Event& failed) {
  const Policy& policy = plan.policy;
  const Failure failure = failed.failure.value_or(Failure{});
  std::vector<std::string> remedies;
  switch (failed.reason) {
    case StopReason::attempts:
      remedies.push_back("raise max_attempts above " + std::to_string(policy.max_attempts.value_or(failed.attempt)));
      break;
    case StopReason::deadline:
      remedies.push_back(policy.max_elapsed ? "raise max_elapsed above " + text::format_duration(*policy.max_elapsed)
                                            : "raise the deadline of the run");
      break;
    case StopReason::budget:
      if (policy.retry_budget)
        remedies.push_back("raise retry_budget above " + text::format_duration(*policy.retry_budget));
      break;
    case StopReason::not_listed:
      remedies.push_back("add " + nameable(failure) + " to only_on");
      break;
    case StopReason::permanent:
      if (failed.rule >= 0) {
        remedies.push_back("take " + entry(policy.never_on, failed.rule) + " out of never_on");
      } else if (!failed.precondition && !failure.permanent.value_or(false)) {
        remedies.push_back("add " + nameable(failure) + " to only_on, if it may well go away by itself");
      }
      break;
    case StopReason::circuit_open:
      remedies.push_back("raise the limit of the circuit breaker above " + std::to_string(plan.breaker_limit));
      break;
    case StopReason::no_verdict:
      remedies.push_back("have the handler say \"permanent\": false with a message");
      break;
    default:
      break;
  }
  return remedies;
}

std::string other_way_of(const Event& event) {
  return "its " + (event.text.empty() ? word("fallback") : text::safe_to_show(event.text));
}

std::string ending_of(const Event& event, const Explanation& item) {
  switch (event.type) {
    case EventType::completed:
      return "Attempt " + std::to_string(event.total_attempts) + " succeeded, " + time_words(event.total_elapsed) +
             " after the first one began.";
    case EventType::started:
      return "Attempt " + std::to_string(event.attempt) + " is running since " + date_and_time(event.time) + ".";
    case EventType::retrying:
      return "It waits until " + date_and_time(event.due) + ".";
    case EventType::interrupted:
      return "It was interrupted, and goes on when the run does.";
    case EventType::dead_lettered:
      return "It failed for good after " + counted(item.attempts, "attempt") + " and is kept as a dead letter.";
    case EventType::dropped:
      return "It failed for good, and its dead letter was dropped.";
    case EventType::fallback:
      return "Next is " + other_way_of(event) + ".";
    default:
      return "";
  }
}

}  // namespace

// The executor notes which rule it was; else it is asked again what the evidence says.
std::string classification_sentence(const Failure& failure) {
  const std::string judged = class_words(failure);
  if (const std::size_t at = failure.details.find(classified_by); at != std::string::npos) {
    const std::string_view rest = std::string_view{failure.details}.substr(at + classified_by.size());
    return "It is " + judged +
           ", by the rule: " + text::safe_to_show(rest.substr(0, std::min(rest.find('\n'), rest.size()))) + ".";
  }
  Failure evidence = failure;
  evidence.failure_class.reset();
  const Classification found = classify(evidence_of(evidence));
  if (found.failed && !found.rule.empty() && found.failure_class == failure.failure_class)
    return "It is " + judged + ", by the rule: " + describe_rule(found, evidence_of(evidence)) + ".";
  return "It is " + judged + ", as the work itself or its flow says.";
}

std::string decision_sentence(const core::StepPlan& plan, const Event& failed) {
  if (failed.reason == StopReason::none) {
    return "Tried again: " + retry_reason(plan.policy, failed) + "; " + attempts_left(plan.policy, failed.attempt) +
           ".";
  }
  return (failed.will_retry ? "No further attempt of this kind: "
                            : "Given up (" + word(name_of(failed.reason)) + "): ") +
         stop_words(plan, failed) + ".";
}

std::string wait_reason(const Policy& policy, const Event& retrying) {
  const std::string backoff = word(name_of(policy.backoff)) + " backoff";
  if (retrying.floored) {
    return "the other side asked for at least that long (retry_after), and " + backoff + " (nominal " +
           time_words(retrying.range.nominal) + ") had drawn less";
  }
  if (retrying.range.min == retrying.range.max) return "as " + backoff + " says";
  return "drawn from " + time_words(retrying.range.min) + " to " + time_words(retrying.range.max) + " (" + backoff +
         ", nominal " + time_words(retrying.range.nominal) + ", jitter " + word(name_of(policy.jitter)) + ")";
}

std::string_view name_of(WorkState state) noexcept {
  constexpr std::array<std::string_view, 5> names{"waiting", "running", "succeeded", "failed", "canceled"};
  return names[static_cast<std::size_t>(state)];
}

std::string_view level_words(PolicyLevel level) noexcept {
  switch (level) {
    case PolicyLevel::work_item:
      return "given with the task";
    case PolicyLevel::step:
      return "the step's own";
    case PolicyLevel::actor_type:
      return "for its actor type";
    case PolicyLevel::run:
      return "the default of the run";
    case PolicyLevel::built_in:
      break;
  }
  return "built in";
}

Explainer::Explainer(std::shared_ptr<const core::Plan> plan, std::optional<WantedWork> wanted)
    : plan_{std::move(plan)}, wanted_{wanted} {
  for (std::uint32_t step = 0; step < plan_->steps.size(); ++step)
    step_numbers_.emplace(*plan_->steps[step].name, step);
}

void Explainer::add_of_run(const Event& event) {
  const std::string at = " at " + date_and_time(event.time);
  switch (event.type) {
    case EventType::recovered:
      about_the_run_.push_back("The engine had died and was started again" + at +
                               "; attempts that were running count as lost.");
      return;
    case EventType::cancel_requested:
      about_the_run_.push_back(
          (event.reason == StopReason::deadline ? "The deadline of the run passed" : "The run was cancelled") + at +
          (event.text.empty() ? "." : ": " + text::safe_to_show(event.text) + "."));
      return;
    case EventType::reopened:
      about_the_run_.push_back("What had failed" + (event.text.empty() ? "" : " in " + text::safe_to_show(event.text)) +
                               " was tried again, because somebody asked" + at + ".");
      return;
    case EventType::ended:
      if (event.reason == StopReason::max_visits)
        about_the_run_.push_back("The run ended" + at + " because a step was visited as often as max_visits allows.");
      return;
    default:
      return;
  }
}

void Explainer::add_failed(const Event& event, std::uint32_t step) {
  Explanation& item =
      items_.try_emplace({step, event.item}, Explanation{.step = step, .item = event.item}).first->second;
  const core::StepPlan& plan = plan_->steps[step];
  item.attempts = event.attempt;
  item.judgements.push_back({.failed = event, .retrying = {}, .sentences = sentences_of(plan, event)});
  item.ending.clear();
  item.remedies.clear();
  if (event.will_retry) {
    item.state = WorkState::waiting;
    return;
  }
  item.state = event.reason == StopReason::canceled ? WorkState::canceled : WorkState::failed;
  item.ending = item.state == WorkState::canceled
                    ? "It was cancelled, and goes on when the run is resumed."
                    : "It failed for good after " + counted(event.attempt, "attempt") + ".";
  if (item.state == WorkState::failed) item.remedies = remedies_for(plan, event);
}

void Explainer::add(const Event& event) {
  const auto step = step_numbers_.find(event.step);
  if (step == step_numbers_.end()) return add_of_run(event);
  if (wanted_ && (wanted_->step != step->second || wanted_->item.value_or(event.item) != event.item)) return;
  if (event.type == EventType::failed) return add_failed(event, step->second);
  const auto found = items_.find({step->second, event.item});
  if (found == items_.end()) return;
  Explanation& item = found->second;
  if (event.type == EventType::retrying) {
    item.judgements.back().retrying = event;
    item.judgements.back().sentences.push_back(wait_words(plan_->steps[step->second].policy, event));
  } else if (event.type == EventType::started) {
    item.state = WorkState::running;
    item.attempts = event.attempt;
    item.remedies.clear();
  } else if (event.type == EventType::completed) {
    item.state = WorkState::succeeded;
    item.attempts = event.total_attempts;
  } else if (event.type == EventType::interrupted) {
    item.state = WorkState::waiting;
  } else if (event.type == EventType::fallback) {
    item.state = WorkState::waiting;
    item.judgements.back().sentences.push_back("Attempt " + std::to_string(event.attempt) + " is " +
                                               other_way_of(event) + ".");
  }
  if (std::string ending = ending_of(event, item); !ending.empty()) item.ending = std::move(ending);
}

std::vector<Explanation> Explainer::explanations() const {
  std::vector<Explanation> all;
  for (const auto& [place, item] : items_) all.push_back(item);
  return all;
}

}  // namespace reprise::observe
