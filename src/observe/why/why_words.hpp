// The sentences of why: one failed attempt, what was decided about it, and what came next.
//
// Thread safety: functions of their arguments.
#pragma once

#include <string>
#include <vector>

#include "observe/why/why.hpp"

namespace reprise::observe {

struct DecisionContext {
  const core::Plan& plan;
  const core::StepPlan& step;
  WorkSource source;
  StopReason cancel_reason;  // why the run was stopped; none = it was not
  bool was_visited_enough;   // max_visits ended the run
};

// What failed, its class and by which rule, what was decided with its numbers, what came next. `before` is the attempt before it, if that
// failed too: what has not changed is not said again.
std::vector<std::string> sentences_of(const DecisionContext& context, const RetryDecision& decision,
                                      const RetryDecision* before);

// The same one by one, for those who tell it in another form: which class, by which rule; tried again or given up, and why; and
// "drawn from 375ms to 625ms (…)" of a wait. Where the rule is not noted, the evidence is asked again.
std::string classification_sentence(const Failure& failure);
std::string decision_sentence(const DecisionContext& context, const RetryDecision& decision);
std::string wait_reason(const Policy& policy, const Event& retrying);

// 2026-11-15T10:00:03.123Z: nobody needs more digits in a sentence.
// A key of its policy as the document writes it, with the native one beside it: stop.max_delay (max_elapsed).
std::string policy_key(const core::StepPlan& step, std::string_view native);
std::string moment(WallTime time);

// its fallback, its on_failure command
std::string way_words(std::string_view way);

// ---- pieces of sentences ----

Failure failure_of(const RetryDecision& decision);
// An entry of only_on or never_on as it was written.
std::string rule_text(const std::optional<FailureRules>& rules, std::int32_t index);
// Which rule gave the failure its class, where the executor noted it; else empty.
std::string noted_rule(const Failure& failure);

}  // namespace reprise::observe
