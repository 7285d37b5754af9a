// The decision, rule by rule in the order of the law: each beats all that come after it.
#include <reprise/policy.hpp>

#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

// A policy, a history and a failure to which every rule applies at once; taking them away one by one shows the order.
struct Situation {
  Policy policy{.max_attempts = 3,
                .max_elapsed = 10s,
                .retry_budget = 5s,
                .backoff = Backoff::constant,
                .initial = 1s,
                .jitter = Jitter::none,
                .only_on = FailureRules{FailureRule::of_type("OtherError")},
                .never_on = FailureRules{FailureRule::of_exit(70)}};
  History history{.attempt = 3, .elapsed = 10s, .waited = 5s, .canceled = true, .circuit_open = true};
  Failure failure{.type = "TimeoutError", .failure_class = FailureClass::canceled, .exit_code = 70, .permanent = true};

  Decision decide() const {
    Random random{1};
    return reprise::decide(policy, history, failure, random);
  }
};

TEST(PolicyDecide, rules_apply_in_order) {
  Situation now;
  EXPECT_EQ(now.decide().reason, StopReason::canceled);
  now.history.canceled = false;
  EXPECT_EQ(now.decide().reason, StopReason::canceled) << "by the failure's class";
  now.failure.failure_class = FailureClass::deterministic;
  EXPECT_EQ(now.decide().reason, StopReason::circuit_open) << "counted for every class, retryable or not";
  now.history.circuit_open = false;
  EXPECT_EQ(now.decide().reason, StopReason::permanent) << "the handler said so";
  EXPECT_EQ(now.decide().rule, -1);
  now.failure.permanent.reset();
  EXPECT_EQ(now.decide().reason, StopReason::permanent) << "never_on";
  EXPECT_EQ(now.decide().rule, 0);
  now.policy.never_on.reset();
  EXPECT_EQ(now.decide().reason, StopReason::permanent) << "the class";
  now.failure.failure_class = FailureClass::transient;
  EXPECT_EQ(now.decide().reason, StopReason::not_listed);
  now.policy.only_on->push_back(FailureRule::of_type("TimeoutError"));
  EXPECT_EQ(now.decide().reason, StopReason::attempts);
  now.history.attempt = 2;
  EXPECT_EQ(now.decide().reason, StopReason::deadline);
  now.history.elapsed = 8s;
  EXPECT_EQ(now.decide().reason, StopReason::budget);
  now.history.waited = 4s;
  const Decision retry = now.decide();
  EXPECT_TRUE(retry.retry);
  EXPECT_EQ(retry.reason, StopReason::none);
  EXPECT_EQ(retry.delay, Duration{1s});
  EXPECT_EQ(retry.rule, 1) << "the entry of only_on that named it";
}

TEST(PolicyDecide, no_verdict_stands_between_the_filter_and_the_attempts) {
  Situation now;
  now.history.canceled = now.history.circuit_open = false;
  now.failure = {.message = "no answer"};
  now.policy.never_on.reset();
  now.policy.needs_verdict = true;
  EXPECT_EQ(now.decide().reason, StopReason::not_listed);
  now.policy.only_on.reset();
  EXPECT_EQ(now.decide().reason, StopReason::no_verdict);
  now.failure.permanent = false;
  EXPECT_EQ(now.decide().reason, StopReason::attempts) << "permanent: false with a message is a verdict";
  now.failure.message.clear();
  EXPECT_EQ(now.decide().reason, StopReason::no_verdict) << "not completed, but no error";
}

TEST(PolicyDecide, only_on_beats_the_class_but_not_never_on_or_permanent) {
  Situation now;
  now.history = {};
  now.failure = {.failure_class = FailureClass::deterministic};
  now.policy.only_on = FailureRules{FailureRule::of(FailureClass::deterministic)};
  now.policy.never_on.reset();
  EXPECT_TRUE(now.decide().retry);
  now.policy.never_on = FailureRules{FailureRule::of(FailureClass::deterministic)};
  EXPECT_EQ(now.decide().reason, StopReason::permanent);
  now.policy.never_on.reset();
  now.failure.permanent = true;
  EXPECT_EQ(now.decide().reason, StopReason::permanent);
}

TEST(PolicyDecide, an_empty_only_on_retries_on_nothing) {
  Situation now;
  now.history = {};
  now.failure = {.type = "TimeoutError"};
  now.policy.only_on.emplace();
  EXPECT_EQ(now.decide().reason, StopReason::not_listed);
  EXPECT_EQ(schedule(now.policy, 10).stop, StopReason::not_listed);
  EXPECT_EQ(schedule(now.policy, 10).after_attempt, 1U);
}

TEST(PolicyDecide, classes_stop_only_policies_that_know_them) {
  Random random{1};
  Policy policy = policy::standard;
  for (const FailureClass each : {FailureClass::deterministic, FailureClass::budget_exhausted}) {
    EXPECT_EQ(decide(policy, {}, {.failure_class = each}, random).reason, StopReason::permanent);
  }
  for (const FailureClass each :
       {FailureClass::transient, FailureClass::contract_failure, FailureClass::test_failure}) {
    EXPECT_TRUE(decide(policy, {}, {.failure_class = each}, random).retry);
  }
  EXPECT_EQ(decide(policy, {}, {.http_status = 404}, random).reason, StopReason::permanent)
      << "the classifier is asked";
  policy.stops_on_class = false;
  EXPECT_TRUE(decide(policy, {}, {.failure_class = FailureClass::deterministic}, random).retry);
  EXPECT_TRUE(decide(policy, {}, {.http_status = 404}, random).retry);
  EXPECT_EQ(decide(policy, {}, {.failure_class = FailureClass::canceled}, random).reason, StopReason::canceled);
}

TEST(PolicyDecide, a_kind_rule_sees_the_kind_of_a_failure_whose_class_was_named) {
  Random random{1};
  Policy policy = policy::standard;
  policy.only_on = FailureRules{FailureRule::of(FailureKind::throttled)};
  EXPECT_TRUE(decide(policy, {}, {.failure_class = FailureClass::transient, .http_status = 429}, random).retry);
  EXPECT_EQ(decide(policy, {}, {.failure_class = FailureClass::transient, .http_status = 500}, random).reason,
            StopReason::not_listed);
  EXPECT_EQ(decide(policy, {}, {.failure_class = FailureClass::test_failure, .http_status = 429}, random).reason,
            StopReason::not_listed)
      << "a kind of another class than the one that was named does not count";
}

TEST(PolicyDecide, attempts_are_total_runs) {
  Random random{1};
  const Policy policy{.max_attempts = 2, .jitter = Jitter::none};
  EXPECT_TRUE(decide(policy, {.attempt = 1}, {}, random).retry);
  EXPECT_EQ(decide(policy, {.attempt = 2}, {}, random).reason, StopReason::attempts);
  EXPECT_EQ(decide(policy, {.attempt = 3}, {}, random).reason, StopReason::attempts);
  EXPECT_TRUE(decide({.max_attempts = std::nullopt}, {.attempt = UINT64_MAX}, {}, random).retry);
}

TEST(PolicyDecide, the_deadline_is_exact) {
  Random random{1};
  const Policy policy{.max_attempts = std::nullopt,
                      .max_elapsed = 10s,
                      .backoff = Backoff::constant,
                      .initial = 1s,
                      .jitter = Jitter::none};
  EXPECT_TRUE(decide(policy, {.elapsed = 9s - 1ns}, {}, random).retry);
  EXPECT_EQ(decide(policy, {.elapsed = 9s}, {}, random).reason, StopReason::deadline) << "at the limit is too late";
  EXPECT_EQ(decide(policy, {.elapsed = Duration::max()}, {}, random).reason, StopReason::deadline);
  EXPECT_EQ(decide({.max_elapsed = 0s, .initial = 0s, .jitter = Jitter::none}, {}, {}, random).reason,
            StopReason::deadline)
      << "0: no retries";
}

TEST(PolicyDecide, the_budget_may_be_spent_to_the_end) {
  Random random{1};
  const Policy policy{.max_attempts = std::nullopt,
                      .retry_budget = 10s,
                      .backoff = Backoff::constant,
                      .initial = 1s,
                      .jitter = Jitter::none};
  EXPECT_TRUE(decide(policy, {.waited = 9s}, {}, random).retry);
  EXPECT_EQ(decide(policy, {.waited = 9s + 1ns}, {}, random).reason, StopReason::budget);
}

TEST(PolicyDecide, retry_after_is_a_floor) {
  Random random{1};
  Policy policy{.backoff = Backoff::constant, .initial = 10s, .jitter = Jitter::none};
  Decision decision = decide(policy, {}, {.retry_after = 4s}, random);
  EXPECT_EQ(decision.delay, Duration{10s});
  EXPECT_FALSE(decision.floored);
  decision = decide(policy, {}, {.retry_after = 40s}, random);
  EXPECT_EQ(decision.delay, Duration{40s}) << "it may pass the cap";
  EXPECT_TRUE(decision.floored);
  EXPECT_EQ(decision.range.min, Duration{40s});
  EXPECT_EQ(decision.range.max, Duration{40s});
  policy.jitter = Jitter::full;
  decision = decide(policy, {}, {.retry_after = 4s}, random);
  EXPECT_EQ(decision.range, (DelayRange{10s, 4s, 10s}));
  EXPECT_GE(decision.delay, Duration{4s});
  policy.honor_retry_after = false;
  EXPECT_EQ(decide(policy, {}, {.retry_after = 40s}, random).range, (DelayRange{10s, 0s, 10s}));
  policy.honor_retry_after = true;
  policy.max_elapsed = 40s;
  EXPECT_EQ(decide(policy, {}, {.retry_after = 40s}, random).reason, StopReason::deadline)
      << "the floor counts toward the deadline";
}

TEST(PolicySchedule, ends_with_the_reason) {
  const Schedule attempts = schedule({.max_attempts = 3, .jitter = Jitter::none}, 10);
  EXPECT_EQ(attempts.retries.size(), 2U);
  EXPECT_EQ(attempts.stop, StopReason::attempts);
  EXPECT_EQ(attempts.after_attempt, 3U);
  const Schedule open = schedule({.max_attempts = std::nullopt}, 5);
  EXPECT_EQ(open.retries.size(), 5U);
  EXPECT_EQ(open.stop, StopReason::none);
  const Schedule late = schedule({.max_attempts = 10, .max_elapsed = 7s, .jitter = Jitter::full}, 10);
  EXPECT_EQ(late.retries.size(), 2U) << "1 + 2 < 7 <= 1 + 2 + 4, by nominal delays";
  EXPECT_EQ(late.stop, StopReason::deadline);
  EXPECT_EQ(schedule(policy::standard, 0).retries.size(), 0U);
}

TEST(PolicySchedule, decorrelated_ranges_are_as_wide_as_any_draw_can_make_them) {
  const Schedule plan = schedule({.max_attempts = 5, .backoff = Backoff::decorrelated, .initial = 1s, .max = 20s}, 10);
  ASSERT_EQ(plan.retries.size(), 4U);
  EXPECT_EQ(plan.retries[0].max, Duration{3s});
  EXPECT_EQ(plan.retries[1].max, Duration{9s});
  EXPECT_EQ(plan.retries[2].max, Duration{20s});
  for (const DelayRange& range : plan.retries) EXPECT_EQ(range.min, Duration{1s});
}

TEST(PolicyDecide, a_policy_without_classes_still_tells_the_class) {
  Random random{1};
  const Policy no_classes{.only_on = FailureRules{FailureRule::of_type("ValueError")}, .stops_on_class = false};
  const Decision decision = decide(no_classes, {}, {.type = "ValueError", .message = "x"}, random);
  EXPECT_TRUE(decision.retry);
  EXPECT_EQ(decision.failure_class, FailureClass::deterministic);
}

TEST(PolicyDecide, lists_that_name_exceptions_are_not_asked_about_a_failed_check) {
  Random random{1};
  const Policy lists{.only_on = FailureRules{FailureRule::of_type("TimeoutError")},
                     .never_on = FailureRules{FailureRule::of_type("ValidationError")},
                     .stops_on_class = false};
  const Failure mismatch{.type = "ValidationError", .failure_class = FailureClass::contract_failure};
  EXPECT_EQ(decide(lists, {}, mismatch, random).reason, StopReason::permanent);
  EXPECT_TRUE(decide(lists, {.skips_lists = true}, mismatch, random).retry);
  EXPECT_EQ(decide(lists, {.attempt = 3, .skips_lists = true}, mismatch, random).reason, StopReason::attempts);
}

}  // namespace
}  // namespace reprise
