// What retry() costs: on top of a call that succeeds, and for each attempt that fails.
//
// Targets: retry_overhead 5 ns, retry_allocations 0, decide 60 ns, failed_attempt 150 ns, budget_overhead 20 ns,
// breaker_overhead 20 ns.
#include "report.hpp"
#include "timing.hpp"

#include <benchmark/benchmark.h>

#include <reprise/dialect.hpp>
#include <reprise/retry.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
thread_local std::uint64_t allocations = 0;  // of this thread: a shared counter would slow the other suites
}

// Not inlined: g++ 12 takes an inlined pair of these for a mismatched malloc and delete.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace reprise::bench {
namespace {

constexpr std::size_t calls_per_round = 2000;

using Answer = std::expected<int, Failure>;

// The work: as little as there can be, out of sight of the optimizer.
[[gnu::noinline]] Answer succeed(int& input) {
  benchmark::DoNotOptimize(input);
  return input;
}

[[gnu::noinline]] Answer fail(int& input) {
  benchmark::DoNotOptimize(input);
  return std::unexpected{Failure{.type = "TimeoutError", .message = "no answer"}};
}

// What people write by hand, without any of the rest.
Answer hand_loop(int& input) {
  for (int attempt = 1;; ++attempt) {
    Answer answer = succeed(input);
    if (answer || attempt == 3) return answer;
  }
}

void measure_success(Report& report) {
  int input = 7;
  RetryBudget budget;
  CircuitBreaker breaker;
  const RetryOptions plain{};
  const RetryOptions with_budget{.budget = &budget};
  const RetryOptions with_breaker{.breaker = &breaker};
  const auto call = [&] { return succeed(input); };
  // The options live outside the loop, as those of a client do.
  const auto through_retry = [&](const RetryOptions& options) {
    auto answer = retry(policy::standard, call, options);
    benchmark::DoNotOptimize(answer);
  };

  const auto bare = compare(
      calls_per_round,
      [&] {
        auto answer = succeed(input);
        benchmark::DoNotOptimize(answer);
      },
      [&] {
        auto answer = retry(policy::standard, call);
        benchmark::DoNotOptimize(answer);
      },
      [&] {
        auto answer = hand_loop(input);
        benchmark::DoNotOptimize(answer);
      });
  report.add("retry_overhead_ns", bare.above_first[1], "ns");
  report.add("hand_loop_overhead_ns", bare.above_first[2], "ns");

  const std::uint64_t before = allocations;
  for (std::size_t index = 0; index < calls_per_round; ++index) through_retry(plain);
  report.add("retry_allocations", static_cast<double>(allocations - before), "count");

  const auto shared = compare(
      calls_per_round, [&] { through_retry(plain); }, [&] { through_retry(with_budget); },
      [&] { through_retry(with_breaker); });
  report.add("budget_overhead_ns", shared.above_first[1], "ns");
  report.add("breaker_overhead_ns", shared.above_first[2], "ns");
}

void measure_decision(Report& report) {
  const Failure failure{.type = "TimeoutError", .message = "no answer", .failure_class = FailureClass::transient};
  const History history{.attempt = 1};
  Random random{1};
  const auto result = compare(calls_per_round, [&] {
    Decision decision = decide(policy::standard, history, failure, random);
    benchmark::DoNotOptimize(decision);
  });
  report.add("decide_ns", result.ns[0], "ns");
}

// Three attempts, three failures, no waits: everything from the error value to the final RetryError, divided by three.
void measure_failure(Report& report) {
  const Policy policy{.max_attempts = 3, .initial = Duration{0}};
  int input = 7;
  const auto result = compare(calls_per_round, [&] {
    auto answer = retry(policy, [&] { return fail(input); });
    benchmark::DoNotOptimize(answer);
  });
  report.add("failed_attempt_ns", result.ns[0] / 3, "ns");
}

// The defaults of Azolla's document, written out.
constexpr std::string_view azolla_policy = R"({
  "version": 1,
  "stop":  {"max_attempts": 5},
  "wait":  {"strategy": "exponential_jitter", "initial_delay": 1, "multiplier": 2, "max_delay": 300},
  "retry": {"include_errors": ["ValueError"]}
})";

void measure_parsing(Report& report) {
  const auto parse = [] { benchmark::DoNotOptimize(read_policy(std::string{azolla_policy}, Dialect::azolla)); };
  report.add("policy_parse_us", compare(20, parse).ns[0] / 1000, "us");
}

}  // namespace

void run_library_suite(Report& report) {
  measure_success(report);
  measure_decision(report);
  measure_failure(report);
  measure_parsing(report);
}

}  // namespace reprise::bench
