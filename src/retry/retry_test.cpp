// retry(): each way to end, each kind of result, and what stays exact. Time is simulated; nothing here waits, save one test.
#include <reprise/retry.hpp>
#include <reprise/testing.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

namespace reprise {
namespace {

using namespace std::chrono_literals;
using What = RetryEvent::What;

const Failure timeout{.type = "TimeoutError", .message = "no answer"};

Policy steady(std::uint64_t attempts, Duration delay) {
  return {.max_attempts = attempts, .backoff = Backoff::constant, .initial = delay, .jitter = Jitter::none};
}

// ---- Results ----------------------------------------

TEST(RetryResult, plain_value) {
  const std::expected<int, RetryError> result = retry(policy::standard, [] { return 7; });
  EXPECT_EQ(result.value(), 7);
}

TEST(RetryResult, nothing_at_all) {
  int calls = 0;
  const std::expected<void, RetryError> result = retry(policy::standard, [&] { ++calls; });
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(calls, 1);
}

TEST(RetryResult, expected_of_value_and_of_void) {
  SimEnv env;
  Flaky<std::string> text{std::string{"body"}};
  text.fails(2, timeout);
  const std::expected<std::string, RetryError> body = retry(policy::standard, text, {.env = &env});
  EXPECT_EQ(body.value(), "body");
  EXPECT_EQ(text.calls(), 3U);

  FlakyHandler work;
  work.fails(1, timeout);
  const std::expected<void, RetryError> done = retry(policy::standard, work, {.env = &env});
  EXPECT_TRUE(done.has_value());
  EXPECT_EQ(work.calls(), 2U);
}

TEST(RetryResult, move_only) {
  SimEnv env;
  int calls = 0;
  auto result = retry(policy::standard,
                      [&]() -> std::expected<std::unique_ptr<int>, Failure> {
                        if (++calls < 3) return std::unexpected{timeout};
                        return std::make_unique<int>(5);
                      },
                      {.env = &env});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(**result, 5);
  EXPECT_EQ(*value_or_throw(retry(policy::none, [] { return std::make_unique<int>(6); })), 6);
}

TEST(RetryResult, a_reference_is_copied) {
  const std::string text = "kept";
  const auto result = retry(policy::none, [&]() -> const std::string& { return text; });
  static_assert(std::same_as<decltype(result), const std::expected<std::string, RetryError>>);
  EXPECT_EQ(result.value(), "kept");
}

struct ThrowsWhenMoved {
  ThrowsWhenMoved() = default;
  ThrowsWhenMoved(ThrowsWhenMoved&&) { throw std::runtime_error{"moved"}; }
};

TEST(RetryResult, a_throw_while_the_result_is_handed_over_is_not_a_failed_attempt) {
  int calls = 0;
  EXPECT_THROW((void)retry(policy::standard,
                           [&]() -> ThrowsWhenMoved {
                             ++calls;
                             return {};
                           }),
               std::runtime_error);
  EXPECT_EQ(calls, 1);
}

// ---- Checks ----------------------------------------

TEST(RetryCheck, a_result_that_is_not_accepted_is_a_failure) {
  SimEnv env;
  int next = 0;
  const auto result = retry(
      policy::standard, [&] { return ++next; }, {.env = &env}, [](const int& n) { return n < 3; });
  EXPECT_EQ(result.value(), 3);

  const auto never = retry(
      policy::standard, [] { return 1; }, {.env = &env}, [](int) { return true; });
  EXPECT_EQ(never.error().reason, StopReason::attempts);
  EXPECT_EQ(never.error().last.type, "UnacceptableResult");
}

TEST(RetryCheck, may_say_which_failure_and_may_throw) {
  SimEnv env;
  const auto busy = [](int status) -> std::optional<Failure> {
    if (status == 200) return std::nullopt;
    return Failure{.http_status = status};
  };
  const auto gone = retry(
      policy::standard, [] { return std::expected<int, Failure>{404}; }, {.env = &env}, busy);
  EXPECT_EQ(gone.error().reason, StopReason::permanent);
  EXPECT_EQ(gone.error().last.http_status, 404);
  EXPECT_EQ(retry(
                policy::standard, [] { return 200; }, {.env = &env}, busy)
                .value(),
            200);

  const auto thrown = retry(
      policy::none, [] { return 1; }, {.env = &env}, [](int) -> bool { throw std::runtime_error{"odd"}; });
  EXPECT_EQ(thrown.error().last.message, "odd");
  EXPECT_NE(thrown.error().exception, nullptr);
}

// ---- Stop reasons ----------------------------------------

TEST(RetryStop, attempts) {
  SimEnv env;
  Flaky<int> call{1};
  call.fails_always(timeout);
  const auto result = retry(steady(3, 2s), call, {.env = &env});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, StopReason::attempts);
  EXPECT_EQ(result.error().attempts, 3U);
  EXPECT_EQ(result.error().elapsed, 4s);
  EXPECT_EQ(result.error().last, timeout);
  EXPECT_EQ(result.error().exception, nullptr);
  EXPECT_FALSE(result.error().decision.retry);
  EXPECT_EQ(env.waits(), (std::vector<Duration>{2s, 2s}));
  EXPECT_EQ(result.error().describe(), "gave up after 3 attempts in 4s (attempts): TimeoutError: no answer");
}

TEST(RetryStop, permanent) {
  SimEnv env;
  Flaky<int> call{1};
  call.fails_always({.type = "ValueError"});
  const auto result = retry(policy::standard, call, {.env = &env});
  EXPECT_EQ(result.error().reason, StopReason::permanent);
  EXPECT_EQ(result.error().attempts, 1U);
  EXPECT_TRUE(env.waits().empty());
}

TEST(RetryStop, not_listed) {
  Policy policy;
  policy.only_on = FailureRules{FailureRule::of_type("ConnectionError")};
  SimEnv env;
  Flaky<int> call{1};
  call.fails(1, {.type = "ConnectionResetError"}).fails_always(timeout);
  const auto result = retry(policy, call, {.env = &env});
  EXPECT_EQ(result.error().reason, StopReason::not_listed);
  EXPECT_EQ(result.error().attempts, 2U);
}

TEST(RetryStop, no_verdict) {
  Policy policy{.stops_on_class = false, .needs_verdict = true};
  SimEnv env;
  Flaky<int> call{1};
  call.fails(1, {.message = "not completed", .permanent = false}).fails_always(timeout);
  const auto result = retry(policy, call, {.env = &env});
  EXPECT_EQ(result.error().reason, StopReason::no_verdict);
  EXPECT_EQ(result.error().attempts, 2U);
}

TEST(RetryStop, canceled_by_the_failure) {
  SimEnv env;
  Flaky<int> call{1};
  call.fails_always({.failure_class = FailureClass::canceled});
  EXPECT_EQ(retry(policy::standard, call, {.env = &env}).error().reason, StopReason::canceled);
}

TEST(RetryStop, canceled_before_the_first_attempt) {
  std::stop_source source;
  source.request_stop();
  SimEnv env;
  Flaky<int> call{1};
  const auto result = retry(policy::standard, call, {.stop = source.get_token(), .env = &env});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().reason, StopReason::canceled);
  EXPECT_EQ(result.error().attempts, 0U);
  EXPECT_EQ(result.error().last.failure_class, FailureClass::canceled);
  EXPECT_EQ(call.calls(), 0U);
  EXPECT_EQ(result.error().describe(),
            "gave up before the first attempt (canceled): CanceledError: canceled before the first attempt");
}

TEST(RetryStop, canceled_while_the_attempt_fails) {
  std::stop_source source;
  SimEnv env;
  const auto result = retry(policy::standard,
                            [&]() -> std::expected<int, Failure> {
                              source.request_stop();
                              return std::unexpected{timeout};
                            },
                            {.stop = source.get_token(), .env = &env});
  EXPECT_EQ(result.error().reason, StopReason::canceled);
  EXPECT_EQ(result.error().attempts, 1U);
  EXPECT_TRUE(env.waits().empty());
}

TEST(RetryStop, a_success_stands_although_stop_was_requested) {
  std::stop_source source;
  const auto result = retry(policy::standard,
                            [&] {
                              source.request_stop();
                              return 3;
                            },
                            {.stop = source.get_token()});
  EXPECT_EQ(result.value(), 3);
}

TEST(RetryStop, canceled_during_a_wait) {
  std::stop_source source;
  SimEnv env;
  env.at(env.start() + 15s, [&] { source.request_stop(); });
  Flaky<int> call{1};
  call.fails_always(timeout);
  const auto result = retry(steady(9, 10s), call, {.stop = source.get_token(), .env = &env});
  EXPECT_EQ(result.error().reason, StopReason::canceled);
  EXPECT_EQ(result.error().attempts, 2U);
  EXPECT_EQ(call.calls(), 2U);
  EXPECT_EQ(result.error().elapsed, 15s);
  EXPECT_EQ(result.error().last, timeout);
  EXPECT_FALSE(result.error().decision.retry);
}

TEST(RetryStop, canceled_between_attempts_without_delay) {
  std::stop_source source;
  SimEnv env;
  const auto stop_on_retry = [&](const RetryEvent& event) {
    if (event.what == What::retrying) source.request_stop();
  };
  Flaky<int> call{1};
  call.fails_always(timeout);
  const auto result = retry(steady(9, 0s), call, {.stop = source.get_token(), .observer = stop_on_retry, .env = &env});
  EXPECT_EQ(result.error().reason, StopReason::canceled);
  EXPECT_EQ(call.calls(), 1U);
}

TEST(RetryStop, canceled_during_a_real_wait_by_another_thread) {
  std::stop_source source;
  std::promise<void> waiting;
  const auto tell = [&](const RetryEvent& event) {
    if (event.what == What::retrying) waiting.set_value();
  };
  std::jthread canceler{[&] {
    waiting.get_future().wait();
    source.request_stop();
  }};
  const auto result = retry(steady(2, std::chrono::hours{1000}),
                            []() -> std::expected<int, Failure> { return std::unexpected{timeout}; },
                            {.stop = source.get_token(), .observer = tell});
  EXPECT_EQ(result.error().reason, StopReason::canceled);
  EXPECT_EQ(result.error().attempts, 1U);
}

TEST(RetryStop, budget) {
  SimEnv env;
  RetryBudget budget{{.tokens_max = 20}};
  Flaky<int> call{1};
  call.fails_always(timeout);
  const auto result = retry(steady(9, 1s), call, {.budget = &budget, .env = &env});
  EXPECT_EQ(result.error().reason, StopReason::budget);
  EXPECT_EQ(result.error().attempts, 2U);
  EXPECT_EQ(budget.tokens(), 6U);
  EXPECT_EQ(env.waits().size(), 1U);
}

TEST(RetryStop, budget_of_the_policy) {
  Policy policy = steady(9, 1s);
  policy.retry_budget = 2500ms;
  SimEnv env;
  Flaky<int> call{1};
  call.fails_always(timeout);
  const auto result = retry(policy, call, {.env = &env});
  EXPECT_EQ(result.error().reason, StopReason::budget);
  EXPECT_EQ(env.waits(), (std::vector<Duration>{1s, 1s}));
}

TEST(RetryStop, circuit_open_by_its_own_failure) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 2}, &env};
  Flaky<int> call{1};
  call.fails_always(timeout);
  const auto result = retry(steady(9, 1s), call, {.breaker = &breaker, .env = &env});
  EXPECT_EQ(result.error().reason, StopReason::circuit_open);
  EXPECT_EQ(result.error().attempts, 2U);
  EXPECT_EQ(result.error().last, timeout);
  EXPECT_EQ(env.waits().size(), 1U) << "there is no use in waiting for a circuit that has just opened";

  const auto refused = retry(steady(9, 1s), call, {.breaker = &breaker, .env = &env});
  EXPECT_EQ(refused.error().reason, StopReason::circuit_open);
  EXPECT_EQ(refused.error().attempts, 0U);
  EXPECT_EQ(refused.error().last.type, "CircuitOpenError");
  EXPECT_EQ(call.calls(), 2U);
}

TEST(RetryStop, circuit_opened_by_others_during_the_wait) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 2}, &env};
  env.at(env.start() + 500ms, [&] { std::move(*breaker.try_acquire()).report(false); });
  Flaky<int> call{1};
  call.fails_always(timeout);
  const auto result = retry(steady(9, 1s), call, {.breaker = &breaker, .env = &env});
  EXPECT_EQ(result.error().reason, StopReason::circuit_open);
  EXPECT_EQ(result.error().attempts, 1U);
  EXPECT_EQ(result.error().elapsed, 1s);
}

TEST(RetryStop, deadline_to_the_nanosecond) {
  Policy policy = steady(9, 1s);
  policy.max_elapsed = 3s;
  SimEnv env;
  Flaky<int> late{1};
  late.fails_always(timeout);
  const auto stopped = retry(policy, late, {.env = &env});
  EXPECT_EQ(stopped.error().reason, StopReason::deadline);
  EXPECT_EQ(stopped.error().attempts, 3U) << "an attempt at exactly 3s must not start";
  EXPECT_EQ(stopped.error().elapsed, 2s);

  policy.max_elapsed = 3s + 1ns;
  Flaky<int> just_in_time{1};
  just_in_time.fails(3, timeout);
  EXPECT_EQ(retry(policy, just_in_time, {.env = &env}).value(), 1);
}

TEST(RetryStop, deadline_counts_from_created) {
  Policy policy = steady(9, 1s);
  policy.max_elapsed = 10s;
  SimEnv env;
  env.advance(100s);
  Flaky<int> call{1};
  call.fails_always(timeout);
  const auto tight = retry(policy, call, {.env = &env, .created = env.now() - 8500ms});
  EXPECT_EQ(tight.error().reason, StopReason::deadline);
  EXPECT_EQ(tight.error().attempts, 2U);
  EXPECT_EQ(tight.error().elapsed, 9500ms);

  const auto over = retry(policy, call, {.env = &env, .created = env.now() - 10s});
  EXPECT_EQ(over.error().reason, StopReason::deadline);
  EXPECT_EQ(over.error().attempts, 0U);

  Flaky<int> last_moment{4};
  EXPECT_EQ(retry(policy, last_moment, {.env = &env, .created = env.now() - 10s + 1ns}).value(), 4);
}

// A clock that oversleeps, as real ones do.
struct LateEnv final : SimEnv {
  bool wait_until(TimePoint due, const std::stop_token& stop) override { return SimEnv::wait_until(due + 5s, stop); }
};

TEST(RetryStop, no_attempt_starts_after_the_deadline_when_the_wait_was_too_long) {
  Policy policy = steady(9, 1s);
  policy.max_elapsed = 4s;
  LateEnv env;
  Flaky<int> call{1};
  call.fails_always(timeout);
  const auto result = retry(policy, call, {.env = &env});
  EXPECT_EQ(result.error().reason, StopReason::deadline);
  EXPECT_EQ(call.calls(), 1U);
  EXPECT_EQ(result.error().elapsed, 6s);
}

TEST(RetryStop, max_elapsed_zero_means_no_retries) {
  Policy policy = steady(9, 0s);
  policy.max_elapsed = 0s;
  SimEnv env;
  std::optional<Env::TimePoint> deadline = env.now();
  const auto result = retry(policy,
                            [&](Attempt& attempt) -> std::expected<int, Failure> {
                              deadline = attempt.deadline();
                              return std::unexpected{timeout};
                            },
                            {.env = &env});
  EXPECT_EQ(result.error().reason, StopReason::deadline);
  EXPECT_EQ(result.error().attempts, 1U);
  EXPECT_EQ(deadline, std::nullopt);
}

RC_GTEST_PROP(RetryStop, never_starts_at_or_after_the_deadline, ()) {
  Policy policy;
  policy.max_attempts = std::nullopt;
  policy.backoff = *rc::gen::element(Backoff::constant, Backoff::linear, Backoff::exponential, Backoff::decorrelated);
  policy.jitter = *rc::gen::element(Jitter::none, Jitter::full, Jitter::equal, Jitter::ratio);
  policy.initial = Duration{*rc::gen::inRange<std::int64_t>(1, 1'000)};
  policy.max_elapsed = Duration{*rc::gen::inRange<std::int64_t>(1, 20'000)};
  const Duration takes{*rc::gen::inRange<std::int64_t>(1, 500)};
  SimEnv env;
  const auto result = retry(policy,
                            [&](Attempt& attempt) -> std::expected<int, Failure> {
                              RC_ASSERT(env.elapsed() < *policy.max_elapsed);
                              RC_ASSERT(attempt.remaining() == *policy.max_elapsed - env.elapsed());
                              env.advance(takes);
                              return std::unexpected{timeout};
                            },
                            {.env = &env, .seed = *rc::gen::arbitrary<std::uint64_t>()});
  RC_ASSERT(result.error().reason == StopReason::deadline);
}

// ---- Delays ----------------------------------------

TEST(RetryDelay, retry_after_is_a_floor) {
  SimEnv env;
  Flaky<int> call{1};
  call.fails(1, {.http_status = 429, .retry_after = 7s}).fails(1, {.http_status = 429, .retry_after = 1s});
  EXPECT_EQ(retry(steady(3, 2s), call, {.env = &env}).value(), 1);
  EXPECT_EQ(env.waits(), (std::vector<Duration>{7s, 2s}));
}

TEST(RetryDelay, decorrelated_looks_at_the_delay_before) {
  const Policy policy{.max_attempts = 6, .backoff = Backoff::decorrelated, .initial = 1s, .max = std::nullopt};
  SimEnv env;
  Flaky<int> call{1};
  call.fails_always(timeout);
  ASSERT_FALSE(retry(policy, call, {.env = &env, .seed = 5}));

  Random random{5};
  std::vector<Duration> expected;
  Duration previous{0};
  for (std::uint64_t attempt = 1; attempt < 6; ++attempt) {
    previous = decide(policy, {.attempt = attempt, .previous_delay = previous}, timeout, random).delay;
    expected.push_back(previous);
  }
  EXPECT_EQ(env.waits(), expected);
  EXPECT_GT(*std::ranges::max_element(expected), 3s) << "the seed should show growth";
}

TEST(RetryDelay, a_seed_fixes_the_draws) {
  const auto waits = [](std::optional<std::uint64_t> seed, std::uint64_t env_seed) {
    SimEnv env{env_seed};
    Flaky<int> call{1};
    call.fails_always(timeout);
    EXPECT_FALSE(retry(policy::aggressive, call, {.env = &env, .seed = seed}));
    return env.waits();
  };
  EXPECT_EQ(waits(42, 1), waits(42, 2));
  EXPECT_NE(waits(42, 1), waits(43, 1));
  EXPECT_NE(waits({}, 1), waits({}, 2));
  EXPECT_EQ(waits({}, 1), waits({}, 1));
}

TEST(RetryDelay, an_endless_delay_does_not_wrap) {
  SimEnv env;
  env.advance(5s);
  Flaky<int> call{1};
  call.fails(1, timeout);
  Policy policy = steady(2, Duration::max());
  policy.max = std::nullopt;
  EXPECT_EQ(retry(policy, call, {.env = &env}).value(), 1);
  EXPECT_EQ(env.now(), Env::TimePoint::max());
}

TEST(RetryDelay, without_a_deadline_elapsed_counts_from_the_first_failure) {
  SimEnv env;
  Flaky<int> call{1};
  call.takes(env, 10s).fails_always(timeout);
  EXPECT_EQ(retry(steady(2, 1s), call, {.env = &env}).error().elapsed, 11s);
  EXPECT_EQ(retry(steady(2, 1s), call, {.env = &env, .created = env.now()}).error().elapsed, 21s);
}

// ---- Thrown things ----------------------------------------

TEST(RetryThrow, anything_is_a_failure) {
  SimEnv env;
  int calls = 0;
  const auto result = retry(policy::standard,
                            [&] {
                              ++calls;
                              throw 42;
                            },
                            {.env = &env});
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(result.error().last.type, "Exception");
  EXPECT_EQ(result.error().last.message, "threw int");
  try {
    std::rethrow_exception(result.error().exception);
  } catch (int thrown) {
    EXPECT_EQ(thrown, 42);
  }
}

TEST(RetryThrow, the_exception_is_the_one_of_the_last_attempt) {
  SimEnv env;
  const auto result = retry(steady(2, 1s),
                            [&](Attempt& attempt) -> std::expected<int, Failure> {
                              if (!attempt.is_retry()) throw std::runtime_error{"first"};
                              return std::unexpected{timeout};
                            },
                            {.env = &env});
  EXPECT_EQ(result.error().exception, nullptr);
  EXPECT_EQ(result.error().last, timeout);
}

TEST(RetryThrow, value_or_throw) {
  EXPECT_EQ(value_or_throw(retry(policy::none, [] { return 1; })), 1);
  value_or_throw(retry(policy::none, [] {}));
  try {
    value_or_throw(retry(policy::none, []() -> std::expected<int, Failure> { return std::unexpected{timeout}; }));
    FAIL();
  } catch (const RetryFailed& failed) {
    EXPECT_EQ(failed.error().reason, StopReason::attempts);
    EXPECT_EQ(failed.error().last, timeout);
    EXPECT_STREQ(failed.what(), failed.error().describe().c_str());
  }
}

TEST(RetryThrow, a_retry_inside_a_retry_hands_its_failure_out) {
  SimEnv env;
  const auto inner = [&] {
    return value_or_throw(retry(
        policy::none, []() -> std::expected<int, Failure> { return std::unexpected{Failure{.http_status = 404}}; },
        {.env = &env}));
  };
  const auto outer = retry(policy::standard, inner, {.env = &env});
  EXPECT_EQ(outer.error().reason, StopReason::permanent);
  EXPECT_EQ(outer.error().last.http_status, 404);
}

// ---- The attempt ----------------------------------------

TEST(RetryAttempt, knows_where_it_stands) {
  Policy policy = steady(3, 1s);
  policy.attempt_timeout = 5s;
  policy.max_elapsed = 8s;
  std::stop_source source;
  SimEnv env;
  std::vector<std::optional<Duration>> left;
  const auto result = retry(policy,
                            [&](Attempt& attempt) -> std::expected<std::uint64_t, Failure> {
                              EXPECT_EQ(attempt.is_retry(), attempt.number() > 1);
                              EXPECT_EQ(attempt.stop_token(), source.get_token());
                              EXPECT_EQ(attempt.last_failure() == nullptr, attempt.number() == 1);
                              if (attempt.last_failure() != nullptr) {
                                EXPECT_EQ(attempt.last_failure()->message, "n" + std::to_string(attempt.number() - 1));
                              }
                              left.push_back(attempt.remaining());
                              EXPECT_EQ(*attempt.deadline() - env.now(), *left.back());
                              env.advance(2500ms);
                              EXPECT_EQ(*attempt.remaining(), std::max<Duration>(*left.back() - 2500ms, 0s));
                              if (attempt.number() < 3)
                                return std::unexpected{Failure{.message = "n" + std::to_string(attempt.number())}};
                              return attempt.number();
                            },
                            {.stop = source.get_token(), .env = &env});
  EXPECT_EQ(result.value(), 3U);
  EXPECT_EQ(left, (std::vector<std::optional<Duration>>{5s, 4500ms, 1s}));
}

TEST(RetryAttempt, without_limits_has_no_deadline) {
  (void)retry(policy::none, [](Attempt& attempt) {
    EXPECT_EQ(attempt.deadline(), std::nullopt);
    EXPECT_EQ(attempt.remaining(), std::nullopt);
    EXPECT_FALSE(attempt.stop_token().stop_possible());
  });
}

TEST(RetryAttempt, idempotency_key_is_the_same_for_each_attempt_of_one_call) {
  SimEnv env;
  const auto keys_of_a_call = [&](const std::string& given) {
    std::vector<std::string> keys;
    EXPECT_FALSE(retry(policy::standard,
                       [&](Attempt& attempt) -> std::expected<int, Failure> {
                         keys.emplace_back(attempt.idempotency_key());
                         keys.emplace_back(attempt.idempotency_key());
                         return std::unexpected{timeout};
                       },
                       {.env = &env, .seed = 9, .idempotency_key = given}));
    EXPECT_EQ(keys.size(), 6U);
    EXPECT_EQ(std::ranges::count(keys, keys.front()), 6);
    return keys.front();
  };
  const std::string first = keys_of_a_call("");
  const std::string second = keys_of_a_call("");
  EXPECT_NE(first, second);
  EXPECT_EQ(keys_of_a_call("order-17"), "order-17");
  ASSERT_EQ(first.size(), 36U);
  EXPECT_EQ(first[14], '4');
  EXPECT_NE(std::string_view{"89ab"}.find(first[19]), std::string_view::npos);
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) EXPECT_EQ(first[dash], '-');
}

// ---- The observer ----------------------------------------

TEST(RetryObserver, sees_each_step) {
  SimEnv env;
  Flaky<int> call{1};
  call.takes(env, 100ms).fails(1, timeout);
  std::vector<RetryEvent> seen;
  const auto watch = [&](const RetryEvent& event) {
    if (event.failure != nullptr) {
      EXPECT_EQ(*event.failure, timeout);
    }
    seen.push_back(event);
  };
  ASSERT_TRUE(retry(steady(3, 2s), call, {.observer = watch, .env = &env}));
  ASSERT_EQ(seen.size(), 5U);
  EXPECT_EQ(seen[0].what, What::started);
  EXPECT_EQ(seen[0].attempt, 1U);
  EXPECT_FALSE(seen[0].is_retry);
  EXPECT_EQ(seen[0].failure, nullptr);
  EXPECT_EQ(seen[1].what, What::failed);
  EXPECT_TRUE(seen[1].will_retry);
  EXPECT_EQ(seen[1].reason, StopReason::none);
  EXPECT_EQ(seen[1].at, env.start() + 100ms);
  EXPECT_EQ(seen[2].what, What::retrying);
  EXPECT_EQ(seen[2].attempt, 1U);
  EXPECT_EQ(seen[2].next_attempt, 2U);
  EXPECT_EQ(seen[2].delay, 2s);
  EXPECT_EQ(seen[2].due, env.start() + 2100ms);
  EXPECT_EQ(seen[3].what, What::started);
  EXPECT_EQ(seen[3].attempt, 2U);
  EXPECT_TRUE(seen[3].is_retry);
  EXPECT_NE(seen[3].failure, nullptr);
  EXPECT_EQ(seen[3].delay, 2s);
  EXPECT_EQ(seen[3].at, env.start() + 2100ms);
  EXPECT_EQ(seen[4].what, What::completed);
  EXPECT_EQ(seen[4].attempt, 2U);
  EXPECT_EQ(seen[4].elapsed, 2200ms);
}

TEST(RetryObserver, the_last_event_says_why_it_ended) {
  SimEnv env;
  RetryEvent last;
  const auto watch = [&](const RetryEvent& event) { last = event; };
  Flaky<int> call{1};
  call.fails_always(timeout);
  ASSERT_FALSE(retry(steady(2, 2s), call, {.observer = watch, .env = &env}));
  EXPECT_EQ(last.what, What::failed);
  EXPECT_FALSE(last.will_retry);
  EXPECT_EQ(last.reason, StopReason::attempts);
  EXPECT_EQ(last.attempt, 2U);
  EXPECT_EQ(last.elapsed, 2s);

  std::stop_source source;
  env.at(env.now() + 1s, [&] { source.request_stop(); });
  ASSERT_FALSE(retry(steady(2, 2s), call, {.stop = source.get_token(), .observer = watch, .env = &env}));
  EXPECT_EQ(last.what, What::interrupted);
  EXPECT_EQ(last.reason, StopReason::canceled);
  EXPECT_EQ(last.attempt, 1U);
  EXPECT_EQ(last.elapsed, 1s);
}

TEST(RetryObserver, cannot_disturb) {
  SimEnv env;
  Flaky<int> call{5};
  call.fails(1, timeout);
  int thrown = 0;
  const auto rude = [&](const RetryEvent&) {
    if (++thrown % 2 == 0) throw std::runtime_error{"rude"};
    throw 1;
  };
  EXPECT_EQ(retry(policy::standard, call, {.observer = rude, .env = &env}).value(), 5);
  EXPECT_EQ(thrown, 5);
  ASSERT_EQ(env.warnings().size(), 5U);
  EXPECT_EQ(env.warnings()[1], "a retry observer threw and was ignored: rude");
}

TEST(RetryObserver, event_names) {
  EXPECT_EQ(name_of(What::started), "started");
  EXPECT_EQ(name_of(What::failed), "failed");
  EXPECT_EQ(name_of(What::retrying), "retrying");
  EXPECT_EQ(name_of(What::completed), "completed");
  EXPECT_EQ(name_of(What::interrupted), "interrupted");
}

// ---- Budget and breaker ----------------------------------------

TEST(RetryBudgetUse, calls_share_it) {
  SimEnv env;
  RetryBudget budget{{.tokens_max = 28}};
  Flaky<int> down{1};
  down.fails_always(timeout);
  EXPECT_EQ(retry(steady(2, 1s), down, {.budget = &budget, .env = &env}).error().reason, StopReason::attempts);
  EXPECT_EQ(retry(steady(2, 1s), down, {.budget = &budget, .env = &env}).error().reason, StopReason::attempts);
  EXPECT_EQ(retry(steady(2, 1s), down, {.budget = &budget, .env = &env}).error().reason, StopReason::budget);
  EXPECT_EQ(budget.tokens(), 0U);

  Flaky<int> up{1};
  for (int call = 0; call < 14; ++call) EXPECT_TRUE(retry(steady(2, 1s), up, {.budget = &budget, .env = &env}));
  EXPECT_EQ(budget.tokens(), 14U);
  Flaky<int> recovering{1};
  recovering.fails(1, timeout);
  EXPECT_TRUE(retry(steady(2, 1s), recovering, {.budget = &budget, .env = &env}));
  EXPECT_EQ(budget.tokens(), 0U) << "a success after a retry is not a clean one";
}

TEST(RetryBudgetUse, a_retry_the_server_asked_for_is_cheaper) {
  const auto cost = [](const Failure& failure) {
    SimEnv env;
    RetryBudget budget;
    Flaky<int> call{1};
    call.fails(1, failure);
    EXPECT_TRUE(retry(steady(2, 1s), call, {.budget = &budget, .env = &env}));
    return 500 - budget.tokens();
  };
  EXPECT_EQ(cost(timeout), 14U);
  EXPECT_EQ(cost({.http_status = 500}), 14U);
  EXPECT_EQ(cost({.http_status = 429}), 5U);
  EXPECT_EQ(cost({.kind = FailureKind::throttled}), 5U);
  EXPECT_EQ(cost({.message = "busy", .retry_after = 1s}), 5U);
}

TEST(RetryBudgetUse, an_attempt_that_is_not_retried_anyway_costs_nothing) {
  SimEnv env;
  RetryBudget budget;
  Flaky<int> call{1};
  call.fails_always({.type = "ValueError"});
  EXPECT_EQ(retry(policy::standard, call, {.budget = &budget, .env = &env}).error().reason, StopReason::permanent);
  EXPECT_EQ(budget.tokens(), 500U);
}

TEST(RetryBreakerUse, probes_and_closes) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 10s}, &env};
  Flaky<int> call{1};
  call.fails(1, timeout);
  const RetryOptions options{.breaker = &breaker, .env = &env};
  EXPECT_EQ(retry(policy::standard, call, options).error().reason, StopReason::circuit_open);
  env.advance(10s - 1ns);
  EXPECT_EQ(retry(policy::standard, call, options).error().attempts, 0U);
  env.advance(1ns);
  EXPECT_EQ(retry(policy::standard, call, options).value(), 1);
  EXPECT_EQ(breaker.state(), CircuitBreaker::State::closed);
}

TEST(RetryBreakerUse, a_canceled_attempt_counts_neither_way) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 10s}, &env};
  Flaky<int> call{1};
  call.fails(1, {.failure_class = FailureClass::canceled})
      .fails(1, timeout)
      .fails(1, {.failure_class = FailureClass::canceled});
  const RetryOptions options{.breaker = &breaker, .env = &env};
  EXPECT_EQ(retry(policy::standard, call, options).error().reason, StopReason::canceled);
  EXPECT_EQ(breaker.state(), CircuitBreaker::State::closed);
  EXPECT_EQ(retry(policy::standard, call, options).error().reason, StopReason::circuit_open);
  env.advance(10s);
  EXPECT_EQ(retry(policy::standard, call, options).error().reason, StopReason::canceled);
  EXPECT_EQ(breaker.state(), CircuitBreaker::State::half_open) << "an abandoned probe leaves its place";
  EXPECT_EQ(retry(policy::standard, call, options).value(), 1);
}

// ---- Describing ----------------------------------------

TEST(RetryErrorDescribe, rounds_for_people) {
  const auto after = [](Duration elapsed) {
    return RetryError{.reason = StopReason::deadline, .attempts = 1, .elapsed = elapsed, .last = {.message = "m"}}
        .describe();
  };
  EXPECT_EQ(after(0ns), "gave up after 1 attempt (deadline): m");
  EXPECT_EQ(after(999ns), "gave up after 1 attempt in 999ns (deadline): m");
  EXPECT_EQ(after(1500ns), "gave up after 1 attempt in 1.5us (deadline): m");
  EXPECT_EQ(after(20ms), "gave up after 1 attempt in 20ms (deadline): m");
  EXPECT_EQ(after(3299ms), "gave up after 1 attempt in 3.2s (deadline): m");
  EXPECT_EQ(after(125s), "gave up after 1 attempt in 2m5s (deadline): m");
  EXPECT_EQ(after(5400s), "gave up after 1 attempt in 1h30m (deadline): m");
}

}  // namespace
// An error that reads as text and still has its own meaning.
struct NamedError {
  operator std::string_view() const { return "just text"; }
};
Failure to_failure(const NamedError&) { return {.type = "NamedError", .permanent = true}; }

TEST(Retry, a_to_failure_of_ones_own_beats_being_text) {
  SimEnv env;
  const auto result =
      retry(policy::standard, []() -> std::expected<int, NamedError> { return std::unexpected{NamedError{}}; },
            {.env = &env});
  EXPECT_EQ(result.error().last.type, "NamedError");
  EXPECT_EQ(result.error().attempts, 1U);
}

TEST(Retry, a_policy_that_counts_from_the_first_start_ignores_created) {
  SimEnv env;
  env.advance(std::chrono::seconds{100});
  Policy policy = policy::standard;
  policy.max_elapsed = std::chrono::seconds{60};
  policy.elapsed_from = ElapsedFrom::first_start;
  const auto result = retry(policy, [] { return 1; }, {.env = &env, .created = env.start()});
  EXPECT_TRUE(result.has_value());
}

}  // namespace reprise
