// The arithmetic of delays over its whole range: examples from the law, and properties for everything from 0 to the end
// of time.
#include <reprise/policy.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>

#include "support/document_generators.hpp"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing_support::any_duration;
using testing_support::any_retry;
using testing_support::any_waiting_policy;

__extension__ using Wide = unsigned __int128;

constexpr std::int64_t longest = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t most_retries = UINT64_MAX;

std::vector<std::int64_t> nominal_ms(const Policy& policy, std::uint64_t retries) {
  std::vector<std::int64_t> delays;
  for (std::uint64_t retry = 1; retry <= retries; ++retry) delays.push_back(delay_range(policy, retry).nominal / 1ms);
  return delays;
}

using Delays = std::vector<std::int64_t>;

TEST(PolicyDelay, follows_the_table_of_the_law) {
  EXPECT_EQ(nominal_ms({.backoff = Backoff::constant, .initial = 2s}, 3), (Delays{2000, 2000, 2000}));
  EXPECT_EQ(nominal_ms({.backoff = Backoff::linear, .initial = 2s}, 3), (Delays{2000, 4000, 6000}));
  EXPECT_EQ(nominal_ms({.backoff = Backoff::linear, .initial = 2s, .increment = 500ms}, 3), (Delays{2000, 2500, 3000}));
  EXPECT_EQ(nominal_ms({.backoff = Backoff::exponential, .initial = 1s, .factor = 3}, 5),
            (Delays{1000, 3000, 9000, 27000, 30000}));
  EXPECT_EQ(nominal_ms({.backoff = Backoff::fibonacci, .initial = 1s}, 7),
            (Delays{1000, 1000, 2000, 3000, 5000, 8000, 13000}));
  EXPECT_EQ(nominal_ms({.backoff = Backoff::list, .delays = {10s, 5s, 45s}}, 5),
            (Delays{10000, 5000, 30000, 30000, 30000}));
  EXPECT_EQ(nominal_ms({.backoff = Backoff::list, .delays = {}}, 2), (Delays{30000, 30000}));
  EXPECT_EQ(nominal_ms(policy::standard, 2), (Delays{1000, 2000}));
  EXPECT_EQ(nominal_ms(policy::aggressive, 4), (Delays{200, 400, 800, 1600}));
  EXPECT_EQ(nominal_ms(policy::patient, 2), (Delays{5000, 15000}));
}

TEST(PolicyDelay, jitter_is_applied_after_the_cap) {
  Policy policy{.initial = 100s, .max = 8s};
  policy.jitter = Jitter::none;
  EXPECT_EQ(delay_range(policy, 1), (DelayRange{8s, 8s, 8s}));
  policy.jitter = Jitter::full;
  EXPECT_EQ(delay_range(policy, 1), (DelayRange{8s, 0s, 8s}));
  policy.jitter = Jitter::equal;
  EXPECT_EQ(delay_range(policy, 1), (DelayRange{8s, 4s, 8s}));
  policy.jitter = Jitter::ratio;
  policy.jitter_ratio = 0.25;
  EXPECT_EQ(delay_range(policy, 1), (DelayRange{8s, 6s, 10s})) << "a ratio may pass the cap by itself";
  policy.jitter_ratio = 1;
  EXPECT_EQ(delay_range(policy, 1), (DelayRange{8s, 0s, 16s}));
}

TEST(PolicyDelay, decorrelated_draws_between_the_first_delay_and_three_times_the_last) {
  Policy policy{.backoff = Backoff::decorrelated, .initial = 1s, .max = 10s, .jitter = Jitter::none};
  EXPECT_EQ(delay_range(policy, 1), (DelayRange{2s, 1s, 3s}));
  EXPECT_EQ(delay_range(policy, 2, 2s), (DelayRange{3500ms, 1s, 6s}));
  EXPECT_EQ(delay_range(policy, 3, 9s), (DelayRange{5500ms, 1s, 10s})) << "capped";
  EXPECT_EQ(delay_range(policy, 4, 100ms), (DelayRange{1s, 1s, 1s})) << "never below the first delay";
  policy.initial = 20s;
  EXPECT_EQ(delay_range(policy, 1), (DelayRange{10s, 10s, 10s})) << "the cap is a cap for the low end too";
}

TEST(PolicyDelay, a_list_without_a_cap_goes_on_with_its_last_entry) {
  const Policy policy{.backoff = Backoff::list, .delays = {1s, 7s}, .max = std::nullopt, .jitter = Jitter::none};
  EXPECT_EQ(delay_range(policy, 99).nominal, Duration{7s});
  EXPECT_EQ(delay_range({.backoff = Backoff::list, .initial = 3s, .max = std::nullopt}, 1).nominal, Duration{3s});
}

TEST(PolicyDelay, retry_0_counts_as_retry_1) {
  EXPECT_EQ(delay_range(policy::standard, 0), delay_range(policy::standard, 1));
}

TEST(PolicyDelay, the_first_exponential_delay_is_exactly_the_initial_one) {
  for (const double factor : {1.0, 1.5, 2.0, 3.0, 1e300}) {
    for (const std::int64_t initial :
         {std::int64_t{1}, (std::int64_t{1} << 53) + 1, (std::int64_t{1} << 62) + 1, longest - 1, longest}) {
      const Policy policy{.initial = Duration{initial}, .factor = factor, .max = std::nullopt, .jitter = Jitter::none};
      EXPECT_EQ(delay_range(policy, 1).nominal.count(), initial) << "factor " << factor;
    }
  }
}

TEST(PolicyDelay, the_ends_of_the_range_saturate) {
  for (const Backoff backoff : {Backoff::linear, Backoff::exponential, Backoff::fibonacci}) {
    const Policy policy{
        .backoff = backoff, .initial = 1ns, .increment = Duration::max(), .max = std::nullopt, .jitter = Jitter::ratio};
    for (const std::uint64_t retry : {std::uint64_t{1} << 32, std::uint64_t{1} << 63, most_retries}) {
      const DelayRange range = delay_range(policy, retry);
      EXPECT_EQ(range.nominal, Duration::max());
      EXPECT_EQ(range.max, Duration::max());
      EXPECT_GT(range.min, Duration{0});
    }
  }
  const Policy zero{.initial = 0s, .factor = 1e300, .max = std::nullopt, .jitter = Jitter::none};
  EXPECT_EQ(delay_range(zero, most_retries).nominal, Duration{0}) << "nothing times anything stays nothing";
}

// ---- properties ----

bool is_plain(const Policy& policy) { return policy.backoff != Backoff::decorrelated; }

RC_GTEST_PROP(PolicyDelayProperty, ranges_are_ordered_and_stay_below_the_cap, ()) {
  const Policy policy = *any_waiting_policy();
  const Duration previous = *any_duration();
  const DelayRange range = delay_range(policy, *any_retry(), previous);
  RC_ASSERT(range.min.count() >= 0);
  RC_ASSERT(range.min <= range.nominal);
  RC_ASSERT(range.nominal <= range.max);
  const std::int64_t cap = policy.max.value_or(Duration::max()).count();
  RC_ASSERT(range.nominal.count() <= cap);
  if (policy.jitter != Jitter::ratio || !is_plain(policy)) {
    RC_ASSERT(range.max.count() <= cap);
  } else {
    const double most = static_cast<double>(cap) * (1 + policy.jitter_ratio) + 1;
    RC_ASSERT(static_cast<double>(range.max.count()) <= most * (1 + 1e-15));
    RC_ASSERT(range.max.count() - range.nominal.count() <= range.nominal.count());
  }
}

RC_GTEST_PROP(PolicyDelayProperty, growing_backoffs_never_shrink, ()) {
  Policy policy = *any_waiting_policy();
  policy.backoff = *rc::gen::element(Backoff::constant, Backoff::linear, Backoff::exponential, Backoff::fibonacci);
  const std::uint64_t first = *any_retry();
  const std::uint64_t second = *rc::gen::oneOf(rc::gen::just(first == most_retries ? first : first + 1), any_retry());
  const auto [low, high] = std::minmax(first, second);
  RC_ASSERT(delay_range(policy, low).nominal <= delay_range(policy, high).nominal);
}

// What 128 bits say, cut off at 63.
std::int64_t saturated(Wide value) {
  return value > static_cast<Wide>(longest) ? longest : static_cast<std::int64_t>(value);
}

RC_GTEST_PROP(PolicyDelayProperty, linear_agrees_with_wider_arithmetic, ()) {
  Policy policy = *any_waiting_policy();
  policy.backoff = Backoff::linear;
  policy.jitter = Jitter::none;
  const std::uint64_t retry = *any_retry();
  const std::int64_t increment = policy.increment.value_or(policy.initial).count();
  const Wide exact = static_cast<Wide>(policy.initial.count()) + static_cast<Wide>(increment) * (retry - 1);
  RC_ASSERT(delay_range(policy, retry).nominal.count() ==
            std::min(saturated(exact), policy.max.value_or(Duration::max()).count()));
}

RC_GTEST_PROP(PolicyDelayProperty, whole_factors_agree_with_wider_arithmetic, ()) {
  Policy policy = *any_waiting_policy();
  policy.backoff = Backoff::exponential;
  policy.jitter = Jitter::none;
  policy.max.reset();
  const std::uint64_t factor = *rc::gen::element<std::uint64_t>(1, 2, 3, 4, 10, 1000);
  policy.factor = static_cast<double>(factor);
  const std::uint64_t retry = *any_retry();
  Wide exact = static_cast<Wide>(policy.initial.count());
  for (std::uint64_t step = 1; factor > 1 && step < retry && exact > 0 && exact <= static_cast<Wide>(longest); ++step)
    exact *= factor;
  const std::int64_t expected = saturated(exact);
  const std::int64_t actual = delay_range(policy, retry).nominal.count();
  if (factor == 2) RC_ASSERT(actual == expected);
  RC_ASSERT(std::abs(static_cast<double>(actual) - static_cast<double>(expected)) <=
            1e-14 * static_cast<double>(expected));
}

RC_GTEST_PROP(PolicyDelayProperty, fibonacci_agrees_with_wider_arithmetic, ()) {
  Policy policy = *any_waiting_policy();
  policy.backoff = Backoff::fibonacci;
  policy.jitter = Jitter::none;
  policy.max.reset();
  const std::uint64_t retry = *any_retry();
  Wide current = 1;
  Wide next = 1;
  for (std::uint64_t step = 1; step < retry && current <= static_cast<Wide>(longest); ++step) {
    const Wide sum = current + next;
    current = next;
    next = sum;
  }
  RC_ASSERT(delay_range(policy, retry).nominal.count() ==
            saturated(current * static_cast<Wide>(policy.initial.count())));
}

RC_GTEST_PROP(PolicyDelayProperty, a_draw_lies_in_its_range_and_equal_seeds_draw_equally, ()) {
  const Policy policy = *any_waiting_policy();
  const History history{.attempt = *any_retry(), .previous_delay = *any_duration()};
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  Random first{seed};
  Random second{seed};
  const Decision decision = decide(policy, history, {}, first);
  RC_ASSERT(decision.retry);
  RC_ASSERT(decision.range == delay_range(policy, history.attempt, history.previous_delay));
  RC_ASSERT(decision.delay >= decision.range.min);
  RC_ASSERT(decision.delay <= decision.range.max);
  RC_ASSERT(decide(policy, history, {}, second) == decision);
}

RC_GTEST_PROP(PolicyDelayProperty, nothing_sleeps_past_a_limit, ()) {
  Policy policy = *any_waiting_policy();
  if (*rc::gen::arbitrary<bool>()) policy.max_elapsed = *any_duration();
  if (*rc::gen::arbitrary<bool>()) policy.retry_budget = *any_duration();
  Failure failure;
  if (*rc::gen::arbitrary<bool>()) failure.retry_after = *any_duration();
  const History history{.attempt = *any_retry(),
                        .elapsed = *any_duration(),
                        .waited = *any_duration(),
                        .previous_delay = *any_duration()};
  Random random{*rc::gen::arbitrary<std::uint64_t>()};
  const Decision decision = decide(policy, history, failure, random);
  const Wide end = static_cast<Wide>(history.elapsed.count()) + static_cast<Wide>(decision.delay.count());
  const Wide waited = static_cast<Wide>(history.waited.count()) + static_cast<Wide>(decision.delay.count());
  const bool late = policy.max_elapsed && end >= static_cast<Wide>(policy.max_elapsed->count());
  const bool over = policy.retry_budget && waited > static_cast<Wide>(policy.retry_budget->count());
  const StopReason expected = late ? StopReason::deadline : over ? StopReason::budget : StopReason::none;
  // The sum saturates at 2^63-1 ns: a budget of exactly that is never passed.
  if (policy.retry_budget != Duration::max()) RC_ASSERT(decision.reason == expected);
  RC_ASSERT(decision.retry == (decision.reason == StopReason::none));
  if (failure.retry_after) RC_ASSERT(decision.delay >= *failure.retry_after);
  if (decision.floored) RC_ASSERT(decision.delay == *failure.retry_after);
}

RC_GTEST_PROP(PolicyDelayProperty, without_jitter_deciding_step_by_step_is_the_schedule, ()) {
  Policy policy = *any_waiting_policy();
  RC_PRE(is_plain(policy));
  policy.jitter = Jitter::none;
  if (*rc::gen::arbitrary<bool>()) policy.max_attempts = *rc::gen::inRange<std::uint64_t>(1, 30);
  if (*rc::gen::arbitrary<bool>()) policy.max_elapsed = *any_duration();
  if (*rc::gen::arbitrary<bool>()) policy.retry_budget = *any_duration();
  const auto failures = *rc::gen::inRange<std::uint64_t>(1, 40);
  const Schedule plan = schedule(policy, failures);

  Random random{1};
  History history;
  std::vector<DelayRange> retries;
  StopReason stop = StopReason::none;
  for (; history.attempt <= failures; ++history.attempt) {
    const Decision decision = decide(policy, history, {}, random);
    if (!decision.retry) {
      stop = decision.reason;
      break;
    }
    retries.push_back(decision.range);
    const auto add = [](Duration& sum, Duration delay) {
      sum = sum > Duration::max() - delay ? Duration::max() : sum + delay;
    };
    add(history.elapsed, decision.delay);
    add(history.waited, decision.delay);
    history.previous_delay = decision.delay;
  }
  RC_ASSERT(plan.retries == retries);
  RC_ASSERT(plan.stop == stop);
  if (stop != StopReason::none) RC_ASSERT(plan.after_attempt == history.attempt);
}

TEST(PolicyDraw, full_jitter_reaches_both_ends_and_all_between) {
  const Policy policy{.max_attempts = std::nullopt, .backoff = Backoff::constant, .initial = 3ns};
  std::array<int, 4> seen{};
  Random random{7};
  for (int draw = 0; draw < 4000; ++draw)
    ++seen.at(static_cast<std::size_t>(decide(policy, {}, {}, random).delay.count()));
  for (const int count : seen) {
    EXPECT_GT(count, 850);  // 1000 expected; the seed is fixed, so this cannot flicker
    EXPECT_LT(count, 1150);
  }
}

TEST(PolicyDraw, between_reaches_both_ends_of_any_range) {
  Random random{42};
  bool low = false;
  bool high = false;
  for (int draw = 0; draw < 200; ++draw) {
    const std::int64_t value = random.between(-1, 1);
    EXPECT_GE(value, -1);
    EXPECT_LE(value, 1);
    low = low || value == -1;
    high = high || value == 1;
  }
  EXPECT_TRUE(low && high);
  EXPECT_EQ(random.between(5, 5), 5);
  EXPECT_EQ(random.between(INT64_MAX, INT64_MAX), INT64_MAX);
  bool negative = false;
  bool positive = false;
  for (int draw = 0; draw < 64; ++draw) {
    const std::int64_t value = random.between(INT64_MIN, INT64_MAX);
    negative = negative || value < 0;
    positive = positive || value > 0;
  }
  EXPECT_TRUE(negative && positive);
}

TEST(PolicyDraw, the_generator_is_splitmix64) {
  Random random{1234567};  // the reference values of the algorithm's author
  EXPECT_EQ(random.next(), 6457827717110365317ULL);
  EXPECT_EQ(random.next(), 3203168211198807973ULL);
  EXPECT_EQ(random.next(), 9817491932198370423ULL);
}

RC_GTEST_PROP(PolicyDrawProperty, between_stays_between, (std::int64_t a, std::int64_t b, std::uint64_t seed)) {
  const auto [low, high] = std::minmax(a, b);
  Random random{seed};
  const std::int64_t value = random.between(low, high);
  RC_ASSERT(value >= low);
  RC_ASSERT(value <= high);
}

}  // namespace
TEST(PolicyDelay, numbers_that_make_no_sense_count_as_the_nearest_that_do) {
  const auto range_of = [](const auto& change) {
    Policy policy;
    change(policy);
    return delay_range(policy, 3);
  };
  const auto expect_sane = [](const DelayRange& range) {
    EXPECT_GE(range.min.count(), 0);
    EXPECT_LE(range.min, range.max);
  };
  expect_sane(range_of([](Policy& policy) { policy.initial = -std::chrono::seconds{1}; }));
  expect_sane(range_of([](Policy& policy) { policy.max = -std::chrono::seconds{1}; }));
  expect_sane(range_of([](Policy& policy) { policy.factor = std::numeric_limits<double>::quiet_NaN(); }));
  expect_sane(range_of([](Policy& policy) { policy.factor = -2; }));
  for (const double ratio : {-0.1, 7.0, std::numeric_limits<double>::quiet_NaN()}) {
    expect_sane(range_of([&](Policy& policy) {
      policy.jitter = Jitter::ratio;
      policy.jitter_ratio = ratio;
    }));
  }
  expect_sane(range_of([](Policy& policy) {
    policy.backoff = Backoff::list;
    policy.delays = {std::chrono::seconds{1}, std::chrono::seconds{1}, -std::chrono::seconds{1}};
  }));
}

TEST(PolicyDelay, a_decorrelated_draw_above_the_cap_becomes_the_cap) {
  Policy policy;
  policy.backoff = Backoff::decorrelated;
  policy.max = std::chrono::milliseconds{1500};  // half of what may be drawn lies above it
  policy.max_attempts.reset();
  int capped = 0;
  Random random{7};
  for (int draw = 0; draw < 1000; ++draw) {
    const Decision decision = decide(policy, {.attempt = 1}, {.failure_class = FailureClass::transient}, random);
    EXPECT_LE(decision.delay, *policy.max);
    capped += decision.delay == *policy.max ? 1 : 0;
  }
  EXPECT_GT(capped, 500) << "three quarters are above it";
}

}  // namespace reprise
