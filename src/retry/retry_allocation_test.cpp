// A call that succeeds allocates nothing and reads no clock. In a program of its own, because it replaces operator new.
#include <reprise/retry.hpp>
#include <reprise/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::uint64_t> allocations{0};
}

// Not inlined: g++ 12 takes an inlined pair of these for a mismatched malloc and delete.
[[gnu::noinline]] void* operator new(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t step = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(step, (size + step - 1) / step * step)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace reprise {
namespace {

using namespace std::chrono_literals;

template <class Work>
std::uint64_t allocations_of(Work work) {
  const std::uint64_t before = allocations.load();
  work();
  return allocations.load() - before;
}

// Any question to this Env is one too many.
struct SilentEnv final : Env {
  TimePoint now() override {
    ++questions;
    return {};
  }
  bool wait_until(TimePoint, const std::stop_token&) override {
    ++questions;
    return true;
  }
  std::uint64_t random_seed() override {
    ++questions;
    return 0;
  }
  void warn(std::string_view) noexcept override { ++questions; }
  int questions = 0;
};

TEST(RetryAllocation, the_counter_counts) {
  EXPECT_EQ(allocations_of([] { ::operator delete(::operator new(100)); }), 1U);
}

TEST(RetryAllocation, success_allocates_nothing) {
  EXPECT_EQ(allocations_of([] { (void)retry(policy::standard, [] { return 1; }); }), 0U);
  EXPECT_EQ(
      allocations_of([] { (void)retry(policy::standard, [](Attempt& attempt) { (void)attempt.idempotency_key(); }); }),
      0U);
  EXPECT_EQ(allocations_of([] { (void)retry(policy::standard, [] { return std::expected<int, Failure>{1}; }); }), 0U);

  RetryBudget budget;
  CircuitBreaker breaker;
  std::uint64_t events = 0;
  Policy policy;
  policy.max_elapsed = 1h;
  const RetryOptions options{
      .budget = &budget, .breaker = &breaker, .observer = [&](const RetryEvent&) { ++events; }, .seed = 1};
  EXPECT_EQ(allocations_of([&] {
              (void)retry(
                  policy, [] { return 1; }, options);
            }),
            0U);
  EXPECT_EQ(events, 2U);
}

TEST(RetryAllocation, failures_with_short_texts_allocate_nothing_either) {
  const Policy policy{.max_attempts = 5, .initial = 0s};
  EXPECT_EQ(allocations_of([&] {
              (void)retry(policy, []() -> std::expected<int, Failure> {
                return std::unexpected{Failure{.type = "TimeoutError"}};
              });
            }),
            0U);
}

TEST(RetryAllocation, success_asks_the_world_nothing) {
  SilentEnv env;
  RetryBudget budget;
  CircuitBreaker breaker{{}, &env};
  std::stop_source source;
  for (int call = 0; call < 100; ++call) {
    const RetryOptions options{.stop = source.get_token(), .budget = &budget, .breaker = &breaker, .env = &env};
    EXPECT_TRUE(retry(
        policy::standard, [] {}, options));
  }
  EXPECT_EQ(env.questions, 0);

  Policy limited;
  limited.max_elapsed = 1h;
  EXPECT_TRUE(retry(limited, [] {}, {.env = &env}));
  EXPECT_EQ(env.questions, 1) << "a deadline needs to know when it began";
}

}  // namespace
}  // namespace reprise
