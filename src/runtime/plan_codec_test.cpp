// Plans as bytes: what was stored is what is read, whatever the policy and wherever it came from.
#include "core/plan.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <reprise/dialect.hpp>

#include "support/document_generators.hpp"
#include "text/pattern.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using testing_support::any_document;
using testing_support::any_duration;

std::shared_ptr<const MessagePattern> compile(std::string_view expression) {
  auto pattern = text::compile_pattern(expression);
  return pattern ? *std::move(pattern) : nullptr;
}

StepPlan named(std::string name) {
  StepPlan step;
  step.name = std::make_shared<const std::string>(std::move(name));
  return step;
}

Plan plan_of(Policy policy) {
  Plan plan;
  plan.name = "plan";
  plan.steps.push_back(named("only"));
  plan.steps[0].handler = "work";
  plan.steps[0].policy = std::move(policy);
  return plan;
}

void expect_equal(const StepPlan& left, const StepPlan& right) {
  EXPECT_EQ(*left.name, *right.name);
  EXPECT_EQ(left.kind, right.kind);
  EXPECT_EQ(left.handler, right.handler);
  EXPECT_EQ(left.signal, right.signal);
  EXPECT_EQ(left.wait, right.wait);
  EXPECT_EQ(left.needs, right.needs);
  EXPECT_EQ(left.for_each, right.for_each);
  EXPECT_EQ(left.list_step, right.list_step);
  EXPECT_EQ(left.max_parallel, right.max_parallel);
  EXPECT_EQ(left.tolerate, right.tolerate);
  EXPECT_EQ(left.on_failure, right.on_failure);
  EXPECT_EQ(left.revisit, right.revisit);
  EXPECT_EQ(left.max_visits, right.max_visits);
  EXPECT_EQ(left.breaker_limit, right.breaker_limit);
  EXPECT_EQ(left.breaker_classes, right.breaker_classes);
  EXPECT_EQ(left.level, right.level);
  EXPECT_EQ(left.policy, right.policy);
  EXPECT_EQ(left.actor_type, right.actor_type);
  EXPECT_EQ(left.dialect, right.dialect);
  EXPECT_EQ(left.policy_line, right.policy_line);
}

void expect_round_trip(const Plan& plan) {
  const std::string bytes = encode_plan(plan);
  const auto read = decode_plan(bytes, compile, nullptr);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->name, plan.name);
  EXPECT_EQ(read->deadline, plan.deadline);
  EXPECT_EQ(read->max_parallel, plan.max_parallel);
  ASSERT_EQ(read->steps.size(), plan.steps.size());
  for (std::size_t step = 0; step < plan.steps.size(); ++step) expect_equal(read->steps[step], plan.steps[step]);
  EXPECT_EQ(encode_plan(*read), bytes);
}

Plan any_plan() {
  Plan plan;
  plan.name = *rc::gen::arbitrary<std::string>();
  plan.deadline = *rc::gen::arbitrary<std::int64_t>();
  plan.max_parallel = *rc::gen::arbitrary<std::uint32_t>();
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 6);
  for (std::uint32_t index = 0; index < count; ++index) {
    StepPlan step = named(*rc::gen::arbitrary<std::string>());
    step.kind = static_cast<StepKind>(*rc::gen::inRange(0, 3));
    step.handler = *rc::gen::arbitrary<std::string>();
    step.signal = *rc::gen::arbitrary<std::string>();
    step.wait = *rc::gen::arbitrary<std::int64_t>();
    step.needs = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(0, count));
    step.for_each = *rc::gen::arbitrary<bool>();
    step.list_step = *rc::gen::inRange<std::uint32_t>(0, count);
    step.max_parallel = *rc::gen::arbitrary<std::uint32_t>();
    step.tolerate = *rc::gen::arbitrary<std::uint32_t>();
    step.on_failure = static_cast<OnFailure>(*rc::gen::inRange(0, 5));
    step.revisit = *rc::gen::inRange<std::uint32_t>(0, count);
    step.max_visits = *rc::gen::arbitrary<std::uint32_t>();
    step.breaker_limit = *rc::gen::arbitrary<std::uint32_t>();
    step.breaker_classes = *rc::gen::arbitrary<std::uint8_t>();
    step.level = static_cast<PolicyLevel>(*rc::gen::inRange(0, 5));
    const Dialect dialect = all_dialects[*rc::gen::inRange<std::size_t>(0, std::size(all_dialects))];
    const std::string document = *any_document(dialect);
    auto policy = read_policy(document, dialect);
    RC_ASSERT(policy.has_value());
    step.policy = std::move(policy->policy);
    if (*rc::gen::arbitrary<bool>()) step.policy.attempt_timeout = *any_duration();
    step.actor_type = *rc::gen::arbitrary<std::string>();
    step.dialect = dialect;
    step.policy_line = *rc::gen::arbitrary<std::uint32_t>();
    plan.steps.push_back(std::move(step));
  }
  return plan;
}

RC_GTEST_PROP(CorePlan, is_read_as_it_was_written, ()) {
  expect_round_trip(any_plan());
  RC_ASSERT(!::testing::Test::HasFailure());
}

RC_GTEST_PROP(CorePlan, damaged_bytes_do_no_harm, ()) {
  const std::string whole = encode_plan(any_plan());
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 50) {
    RC_ASSERT(!decode_plan(std::string_view{whole}.substr(0, size), compile, nullptr));
  }
  for (int damage = 0; damage < 20; ++damage) {
    std::string bytes = whole;
    bytes[*rc::gen::inRange<std::size_t>(0, bytes.size())] = *rc::gen::arbitrary<char>();
    const auto read = decode_plan(bytes, compile, nullptr);
    if (!read) continue;
    for (const StepPlan& step : read->steps) {
      for (const std::uint32_t need : step.needs) RC_ASSERT(need < read->steps.size());
      for (const std::uint32_t dependant : step.dependants) RC_ASSERT(dependant < read->steps.size());
      RC_ASSERT(step.list_step < read->steps.size());
      RC_ASSERT(step.revisit < read->steps.size());
    }
  }
}

RC_GTEST_PROP(CorePlan, arbitrary_bytes_do_no_harm, (const std::string& bytes)) {
  (void)decode_plan(bytes, compile, nullptr);
  (void)decode_plan("\x01" + bytes, compile, nullptr);
}

TEST(CorePlan, every_named_base_and_the_extremes) {
  for (const Policy* policy :
       {&policy::standard, &policy::none, &policy::aggressive, &policy::patient, &policy::tool, &policy::agent}) {
    expect_round_trip(plan_of(*policy));
  }
  Policy extreme;
  extreme.max_attempts = UINT64_MAX;
  extreme.max_elapsed = Duration::max();
  extreme.elapsed_from = ElapsedFrom::first_start;
  extreme.attempt_timeout = Duration::max();
  extreme.retry_budget = 0s;
  extreme.backoff = Backoff::list;
  extreme.delays = {0s, Duration::max(), 1ns};
  extreme.increment = Duration::max();
  extreme.factor = 1e308;
  extreme.max.reset();
  extreme.jitter = Jitter::ratio;
  extreme.jitter_ratio = 1.0;
  extreme.honor_retry_after = false;
  extreme.only_on = FailureRules{};
  extreme.match = Matching::exact;
  extreme.stops_on_class = false;
  extreme.needs_verdict = true;
  extreme.parallelism = UINT32_MAX;
  expect_round_trip(plan_of(extreme));
  extreme.max_attempts.reset();
  extreme.never_on = FailureRules{FailureRule::of(FailureClass::transient),
                                  FailureRule::of(FailureKind::timeout),
                                  FailureRule::of(ErrorCategory::network),
                                  FailureRule::of_type("KeyError"),
                                  FailureRule::of_exit(64, 74),
                                  FailureRule::of_http_family(5),
                                  FailureRule::of_http(404),
                                  FailureRule::of_signal(9)};
  expect_round_trip(plan_of(extreme));
}

TEST(CorePlan, rules_still_match_after_reading) {
  Policy policy;
  policy.only_on = FailureRules{FailureRule::of_message("/reset by (peer|us)/", compile("reset by (peer|us)")),
                                FailureRule::of_exit(3, 5), FailureRule::of(FailureKind::throttled)};
  const auto read = decode_plan(encode_plan(plan_of(policy)), compile, nullptr);
  ASSERT_TRUE(read);
  const Policy& again = read->steps[0].policy;
  Random random{1};
  EXPECT_EQ(decide(again, {}, {.message = "connection reset by peer"}, random).rule, 0);
  EXPECT_EQ(decide(again, {}, {.message = "x", .exit_code = 4}, random).rule, 1);
  EXPECT_EQ(decide(again, {}, {.message = "x", .http_status = 429}, random).rule, 2);
  EXPECT_EQ(decide(again, {}, {.message = "reset by them"}, random).reason, StopReason::not_listed);
}

TEST(CorePlan, a_pattern_that_cannot_be_compiled_is_damage) {
  Policy policy;
  policy.only_on = FailureRules{FailureRule::of_message("/(/", compile("x"))};
  const auto read = decode_plan(encode_plan(plan_of(policy)), compile, nullptr);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::store_damaged);
}

TEST(CorePlan, types_are_those_of_the_reader) {
  TypeTree types;
  types.add("QuotaError", "TimeoutError");
  const auto read = decode_plan(encode_plan(plan_of(policy::standard)), compile, &types);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->steps[0].policy.types, &types);
}

TEST(CorePlan, equal_plans_give_equal_bytes_and_different_ones_do_not) {
  const Plan plan = plan_of(policy::standard);
  EXPECT_EQ(encode_plan(plan), encode_plan(plan_of(policy::standard)));
  EXPECT_NE(encode_plan(plan), encode_plan(plan_of(policy::patient)));
  Plan other = plan;
  other.deadline = 1;
  EXPECT_NE(encode_plan(plan), encode_plan(other));
  other = plan;
  other.connect();  // what is worked out is not stored
  EXPECT_EQ(encode_plan(plan), encode_plan(other));
}

TEST(CorePlan, another_version_is_refused) {
  std::string bytes = encode_plan(plan_of(policy::standard));
  bytes[0] = 5;
  EXPECT_EQ(decode_plan(bytes, compile, nullptr).error().code, ErrorCode::store_newer);
  bytes[0] = 0;
  EXPECT_EQ(decode_plan(bytes, compile, nullptr).error().code, ErrorCode::store_damaged);
  EXPECT_EQ(decode_plan("", compile, nullptr).error().code, ErrorCode::store_damaged);
}

TEST(CorePlan, steps_that_do_not_exist_are_damage) {
  Plan plan = plan_of(policy::standard);
  EXPECT_TRUE(decode_plan(encode_plan(plan), compile, nullptr));
  for (std::uint32_t StepPlan::*field : {&StepPlan::list_step, &StepPlan::revisit}) {
    Plan wrong = plan;
    wrong.steps[0].*field = 1;
    EXPECT_EQ(decode_plan(encode_plan(wrong), compile, nullptr).error().code, ErrorCode::store_damaged);
  }
  plan.steps[0].needs = {7};
  EXPECT_EQ(decode_plan(encode_plan(plan), compile, nullptr).error().code, ErrorCode::store_damaged);
  plan.steps.clear();
  EXPECT_EQ(decode_plan(encode_plan(plan), compile, nullptr).error().code, ErrorCode::store_damaged);
}

TEST(CorePlan, connect_finds_who_needs_whom) {
  Plan plan;
  for (const char* const name : {"a", "b", "c"}) plan.steps.push_back(named(name));
  plan.steps[1].needs = {0};
  plan.steps[2].needs = {0, 1};
  plan.connect();
  plan.connect();
  EXPECT_EQ(plan.steps[0].dependants, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(plan.steps[1].dependants, (std::vector<std::uint32_t>{2}));
  EXPECT_TRUE(plan.steps[2].dependants.empty());
}

}  // namespace
}  // namespace reprise::core
