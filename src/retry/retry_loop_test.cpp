// RetryLoop: the same decisions as retry(), with the time handed in.
#include <reprise/retry.hpp>
#include <reprise/testing.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr Env::TimePoint zero{};
const Failure timeout{.type = "TimeoutError"};

static_assert(!std::constructible_from<RetryLoop, Policy, Env::TimePoint, std::uint64_t>,
              "a temporary policy would dangle");
static_assert(std::constructible_from<RetryLoop, const Policy&, Env::TimePoint, std::uint64_t>);

TEST(RetryLoop, counts_attempts_and_stops) {
  const Policy policy{.max_attempts = 2, .backoff = Backoff::constant, .initial = 3s, .jitter = Jitter::none};
  RetryLoop loop{policy, zero, 1};
  EXPECT_EQ(loop.attempt(), 1U);
  EXPECT_TRUE(loop.may_start(zero));

  const Decision first = loop.failed(timeout, zero + 1s);
  EXPECT_TRUE(first.retry);
  EXPECT_EQ(first.delay, 3s);
  EXPECT_EQ(loop.attempt(), 2U);
  EXPECT_EQ(loop.failures(), 1U);

  const Decision second = loop.failed(timeout, zero + 5s);
  EXPECT_EQ(second.reason, StopReason::attempts);
  EXPECT_TRUE(loop.stopped());
  EXPECT_FALSE(loop.may_start(zero));
  EXPECT_EQ(loop.failures(), 2U);
  EXPECT_EQ(loop.elapsed(zero + 5s), 5s);

  EXPECT_EQ(loop.failed({.type = "ValueError"}, zero + 6s), second) << "once stopped, the answer stays";
  EXPECT_EQ(loop.canceled(), second);
  EXPECT_EQ(loop.failures(), 2U);
}

TEST(RetryLoop, can_be_stopped_between_attempts) {
  RetryLoop loop{policy::standard, zero, 1};
  EXPECT_TRUE(loop.failed(timeout, zero).retry);
  const Decision canceled = loop.canceled();
  EXPECT_FALSE(canceled.retry);
  EXPECT_EQ(canceled.reason, StopReason::canceled);
  EXPECT_EQ(loop.failures(), 1U);
}

TEST(RetryLoop, hears_signals) {
  RetryLoop canceled{policy::standard, zero, 1};
  EXPECT_EQ(canceled.failed(timeout, zero, {.canceled = true}).reason, StopReason::canceled);
  RetryLoop open{policy::standard, zero, 1};
  EXPECT_EQ(open.failed(timeout, zero, {.circuit_open = true}).reason, StopReason::circuit_open);
}

TEST(RetryLoop, deadlines) {
  Policy policy;
  RetryLoop endless{policy, zero, 1};
  EXPECT_EQ(endless.deadline(zero), std::nullopt);
  EXPECT_TRUE(endless.may_start(Env::TimePoint::max()));

  policy.attempt_timeout = 4s;
  policy.max_elapsed = 10s;
  RetryLoop loop{policy, zero + 1s, 1};
  EXPECT_EQ(loop.deadline(zero + 2s), zero + 6s);
  EXPECT_EQ(loop.deadline(zero + 9s), zero + 11s);
  EXPECT_TRUE(loop.may_start(zero + 11s - 1ns));
  EXPECT_FALSE(loop.may_start(zero + 11s));
  EXPECT_EQ(loop.elapsed(zero), 0s) << "created in the future is not negative time";

  policy.attempt_timeout = Duration::max();
  policy.max_elapsed = std::nullopt;
  EXPECT_EQ(loop.deadline(zero + 9s), Env::TimePoint::max());
}

RC_GTEST_PROP(RetryLoop, gives_the_delays_of_retry, ()) {
  Policy policy;
  policy.max_attempts = *rc::gen::inRange<std::uint64_t>(1, 12);
  policy.backoff = *rc::gen::element(Backoff::linear, Backoff::exponential, Backoff::fibonacci, Backoff::decorrelated);
  policy.jitter = *rc::gen::element(Jitter::none, Jitter::full, Jitter::equal, Jitter::ratio);
  policy.initial = Duration{*rc::gen::inRange<std::int64_t>(1, 1'000'000'000)};
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();

  SimEnv env;
  FlakyHandler work;
  work.fails_always(timeout);
  RC_ASSERT(!retry(policy, work, {.env = &env, .seed = seed}));

  std::vector<Duration> waits;
  RetryLoop loop{policy, zero, seed};
  while (loop.failed(timeout, zero).retry) waits.push_back(loop.decision().delay);
  std::erase(waits, Duration{0});
  RC_ASSERT(waits == env.waits());
  RC_ASSERT(loop.failures() == work.calls());
}

}  // namespace
}  // namespace reprise
