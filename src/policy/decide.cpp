// The decision after a failed attempt, rule by rule in the order of docs/reference/policy.md, and the schedule that follows from it.
#include <reprise/classify.hpp>
#include <reprise/policy.hpp>

#include <algorithm>

#include "base/saturating_time.hpp"
#include "policy/delay.hpp"

namespace reprise {
namespace {

constexpr std::int32_t no_rule = -1;

std::int32_t first_match(const FailureRules& rules, const Policy& policy, const Failure& failure,
                         const Decision& judged, FailureKind kind) {
  for (std::size_t index = 0; index < rules.size(); ++index) {
    if (matches(rules[index], policy, failure, judged.failure_class, kind)) return static_cast<std::int32_t>(index);
  }
  return no_rule;
}

Evidence evidence_in(const Policy& policy, const Failure& failure) noexcept {
  Evidence evidence = evidence_of(failure);
  evidence.types = policy.types;
  return evidence;
}

// A handler that names the class may leave the kind to its evidence, as far as the two agree.
FailureKind kind_within(FailureClass failure_class, const Policy& policy, const Failure& failure) {
  Evidence evidence = evidence_in(policy, failure);
  evidence.failure_class.reset();
  evidence.permanent.reset();
  const Classification found = classify(evidence);
  return found.failure_class == failure_class ? found.kind : FailureKind::none;
}

bool names_a_kind(const std::optional<FailureRules>& rules) noexcept {
  return rules &&
         std::ranges::any_of(*rules, [](const FailureRule& rule) { return rule.what == FailureRule::What::kind; });
}

// Rules 1 to 4: may this failure be retried at all? Fills in class, rule and, when the answer is no, the reason.
void judge_failure(const Policy& policy, const History& history, const Failure& failure, Decision& decision) {
  FailureKind kind = failure.kind;
  if (failure.failure_class) {
    decision.failure_class = *failure.failure_class;
    if (kind == FailureKind::none && (names_a_kind(policy.never_on) || names_a_kind(policy.only_on))) {
      kind = kind_within(*failure.failure_class, policy, failure);
    }
  } else {  // also for policies that know no classes: what is recorded and shown has one
    const Classification found = classify(evidence_in(policy, failure));
    decision.failure_class = found.failure_class;
    if (kind == FailureKind::none) kind = found.kind;
  }

  if (history.canceled || decision.failure_class == FailureClass::canceled) {
    decision.reason = StopReason::canceled;
    return;
  }
  if (history.circuit_open) {
    decision.reason = StopReason::circuit_open;
    return;
  }
  if (failure.permanent.value_or(false)) {
    decision.reason = StopReason::permanent;
    return;
  }
  if (history.skips_lists) return;
  if (policy.never_on && !policy.never_on->empty()) {
    decision.rule = first_match(*policy.never_on, policy, failure, decision, kind);
    if (decision.rule != no_rule) {
      decision.reason = StopReason::permanent;
      return;
    }
  }
  if (policy.only_on) decision.rule = first_match(*policy.only_on, policy, failure, decision, kind);
  const bool named = decision.rule != no_rule;
  if (!named && policy.stops_on_class && !is_retryable(decision.failure_class)) {
    decision.reason = StopReason::permanent;  // the class's default; being named in only_on beats it
  } else if (!named && policy.only_on) {
    decision.reason = StopReason::not_listed;
  } else if (policy.needs_verdict && (!failure.permanent || (failure.message.empty() && failure.type.empty()))) {
    decision.reason = StopReason::no_verdict;
  }
}

// Nothing starts at or after the deadline.
bool would_start_too_late(const Policy& policy, const History& history, Duration delay) noexcept {
  return policy.max_elapsed && base::saturating_sum(history.elapsed, delay) >= *policy.max_elapsed;
}

enum class DelayBasis : bool { by_draw, by_nominal };

// Rules 5 to 8: attempts, deadline, budget, and otherwise the delay.
void weigh_limits(const Policy& policy, const History& history, std::optional<Duration> floor, DelayBasis basis,
                  Random& random, Decision& decision) {
  if (policy.max_attempts && history.attempt >= *policy.max_attempts) {
    decision.reason = StopReason::attempts;
    return;
  }
  decision.range = delay_range(policy, history.attempt, history.previous_delay);
  decision.delay = basis == DelayBasis::by_nominal
                       ? decision.range.nominal
                       : draw_delay(policy, history.attempt, history.previous_delay, decision.range, random);
  if (floor && policy.honor_retry_after && *floor > decision.range.min) {
    decision.floored = *floor > decision.delay;
    decision.delay = std::max(decision.delay, *floor);
    decision.range.min = std::max(decision.range.min, *floor);
    decision.range.max = std::max(decision.range.max, *floor);
  }
  if (would_start_too_late(policy, history, decision.delay)) {
    decision.reason = StopReason::deadline;
  } else if (policy.retry_budget && base::saturating_sum(history.waited, decision.delay) > *policy.retry_budget) {
    decision.reason = StopReason::budget;
  } else {
    decision.retry = true;
  }
}

// Rule 0 for a loss: again at once, then with the policy's delays, so often and no more. The waits count towards no budget.
void weigh_loss(const Policy& policy, const History& history, Random& random, Decision& decision) {
  if (history.canceled) {
    decision.reason = StopReason::canceled;
    return;
  }
  if (history.lost_in_a_row > policy.worker_lost_max.value_or(worker_lost_default)) {
    decision.reason = StopReason::lost;
    return;
  }
  if (history.lost_in_a_row > 1) {
    const std::uint64_t retry = history.lost_in_a_row - 1;
    decision.range = delay_range(policy, retry);
    decision.delay = draw_delay(policy, retry, Duration{0}, decision.range, random);
  }
  if (would_start_too_late(policy, history, decision.delay)) {
    decision.reason = StopReason::deadline;
  } else {
    decision.retry = true;
  }
}

// Rule 0: ends that are not the work's own failure. False: this one is, and the work's own rules basis it.
bool judge_foreign_end(const Policy& policy, const History& history, const Failure& failure, Random& random,
                       Decision& decision) {
  if (history.end == AttemptEnd::failed) return false;
  const bool is_interrupt = history.end == AttemptEnd::interrupted;
  decision.failure_class =
      is_interrupt ? FailureClass::canceled : failure.failure_class.value_or(FailureClass::transient);
  if (history.effect == Effect::at_most_once) {
    decision.reason = StopReason::unclear;
    return true;
  }
  switch (history.end) {
    case AttemptEnd::failed:
    case AttemptEnd::timed_out:
      return false;
    case AttemptEnd::lost:
      weigh_loss(policy, history, random, decision);
      return true;
    case AttemptEnd::interrupted:
      if (history.canceled) {
        decision.reason = StopReason::canceled;
      } else if (would_start_too_late(policy, history, Duration{0})) {
        decision.reason = StopReason::deadline;
      } else {
        decision.retry = true;
      }
      return true;
    case AttemptEnd::deadline:
      decision.reason = StopReason::deadline;
      return true;
  }
  return false;
}

}  // namespace

Decision decide(const Policy& policy, const History& history, const Failure& failure, Random& random) {
  Decision decision;
  if (judge_foreign_end(policy, history, failure, random, decision)) return decision;
  decision = Decision{};
  judge_failure(policy, history, failure, decision);
  if (decision.reason != StopReason::none) return decision;
  weigh_limits(policy, history, failure.retry_after, DelayBasis::by_draw, random, decision);
  return decision;
}

Schedule schedule(const Policy& policy, std::uint64_t failures) {
  Schedule result;
  if (failures == 0) return result;
  if (policy.only_on && policy.only_on->empty()) {
    result.stop = StopReason::not_listed;
    result.after_attempt = 1;
    return result;
  }
  Random unused{0};
  History history;
  Duration widest{0};  // decorrelated: the longest delay that may have come before
  for (; history.attempt <= failures; ++history.attempt) {
    Decision decision;
    weigh_limits(policy, history, std::nullopt, DelayBasis::by_nominal, unused, decision);
    if (!decision.retry) {
      result.stop = decision.reason;
      result.after_attempt = history.attempt;
      return result;
    }
    DelayRange range = decision.range;
    if (policy.backoff == Backoff::decorrelated) range.max = delay_range(policy, history.attempt, widest).max;
    widest = range.max;
    result.retries.push_back(range);
    history.previous_delay = decision.delay;
    history.elapsed = base::saturating_sum(history.elapsed, decision.delay);
    history.waited = base::saturating_sum(history.waited, decision.delay);
  }
  return result;
}

}  // namespace reprise
