// RetryBudget: the count stays between empty and full, whatever the settings and however many threads.
#include <reprise/retry_budget.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace reprise {
namespace {

TEST(RetryBudget, spends_until_it_cannot_pay) {
  RetryBudget budget{{.tokens_max = 30}};
  EXPECT_TRUE(budget.try_spend(false));
  EXPECT_TRUE(budget.try_spend(false));
  EXPECT_EQ(budget.tokens(), 2U);
  EXPECT_FALSE(budget.try_spend(false));
  EXPECT_FALSE(budget.try_spend(true));
  EXPECT_EQ(budget.tokens(), 2U) << "a refusal takes nothing";
}

TEST(RetryBudget, a_throttled_retry_has_its_own_price) {
  RetryBudget budget{{.tokens_max = 6}};
  EXPECT_FALSE(budget.try_spend(false));
  EXPECT_TRUE(budget.try_spend(true));
  EXPECT_EQ(budget.tokens(), 1U);
}

TEST(RetryBudget, refunds_up_to_full) {
  RetryBudget budget{{.tokens_max = 14, .refund_per_success = 10}};
  EXPECT_TRUE(budget.try_spend(false));
  budget.refund();
  EXPECT_EQ(budget.tokens(), 10U);
  budget.refund();
  EXPECT_EQ(budget.tokens(), 14U);
  budget.refund();
  EXPECT_EQ(budget.tokens(), 14U);
}

TEST(RetryBudget, extreme_settings_do_not_wrap) {
  RetryBudget budget{
      {.tokens_max = UINT32_MAX, .cost_transient = 1, .cost_throttled = UINT32_MAX, .refund_per_success = UINT32_MAX}};
  EXPECT_TRUE(budget.try_spend(false));
  budget.refund();
  EXPECT_EQ(budget.tokens(), UINT32_MAX);
  EXPECT_TRUE(budget.try_spend(true));
  EXPECT_EQ(budget.tokens(), 0U);

  RetryBudget closed{{.tokens_max = 0}};
  EXPECT_FALSE(closed.try_spend(false));
  closed.refund();
  EXPECT_EQ(closed.tokens(), 0U);
}

RC_GTEST_PROP(RetryBudget, agrees_with_plain_arithmetic, ()) {
  const RetryBudgetSettings settings{.tokens_max = *rc::gen::inRange(0U, 100U),
                                     .cost_transient = *rc::gen::inRange(0U, 30U),
                                     .cost_throttled = *rc::gen::inRange(0U, 30U),
                                     .refund_per_success = *rc::gen::inRange(0U, 30U)};
  RetryBudget budget{settings};
  std::uint64_t model = settings.tokens_max;
  for (const int action : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 3))) {
    if (action == 2) {
      budget.refund();
      model = std::min<std::uint64_t>(settings.tokens_max, model + settings.refund_per_success);
    } else {
      const std::uint32_t cost = action == 1 ? settings.cost_throttled : settings.cost_transient;
      RC_ASSERT(budget.try_spend(action == 1) == (model >= cost));
      if (model >= cost) model -= cost;
    }
    RC_ASSERT(budget.tokens() == model);
  }
}

// Refunds that fit must all arrive and payments must all be taken: the final count is exact, and no reader sees a value outside.
RC_GTEST_PROP(RetryBudget, loses_nothing_between_threads, ()) {
  const RetryBudgetSettings settings{.tokens_max = *rc::gen::inRange(50U, 5000U),
                                     .cost_transient = *rc::gen::inRange(1U, 20U),
                                     .cost_throttled = *rc::gen::inRange(1U, 20U)};
  constexpr int threads = 4;
  constexpr int rounds = 300;
  RetryBudget budget{settings};
  std::atomic<std::uint64_t> spent{0};
  std::atomic<bool> outside{false};
  {
    std::vector<std::jthread> crowd;
    for (int thread = 0; thread < threads; ++thread) {
      crowd.emplace_back([&, thread] {
        for (int round = 0; round < rounds; ++round) {
          const bool throttled = (round + thread) % 2 == 0;
          if (budget.try_spend(throttled)) spent += throttled ? settings.cost_throttled : settings.cost_transient;
          if (budget.tokens() > settings.tokens_max) outside = true;
        }
      });
    }
  }
  RC_ASSERT(!outside);
  RC_ASSERT(budget.tokens() + spent == settings.tokens_max);

  const std::uint32_t before = budget.tokens();
  {
    std::vector<std::jthread> crowd;
    for (int thread = 0; thread < threads; ++thread) {
      crowd.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          budget.refund();
          if (budget.tokens() > settings.tokens_max) outside = true;
        }
      });
    }
  }
  RC_ASSERT(!outside);
  RC_ASSERT(budget.tokens() == std::min<std::uint32_t>(settings.tokens_max, before + threads * rounds));
}

}  // namespace
}  // namespace reprise
