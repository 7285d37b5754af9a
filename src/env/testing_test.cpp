// SimEnv and Flaky, the tools of reprise/testing.hpp, checked themselves.
#include <reprise/testing.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace reprise {
namespace {

using namespace std::chrono_literals;

TEST(SimEnv, waiting_takes_no_time_and_is_recorded) {
  SimEnv env;
  EXPECT_EQ(env.elapsed(), 0s);
  EXPECT_TRUE(env.wait_until(env.now() + std::chrono::hours{100}, {}));
  EXPECT_TRUE(env.wait_until(env.now() - 1s, {}));
  EXPECT_EQ(env.elapsed(), std::chrono::hours{100}) << "time never goes back";
  EXPECT_EQ(env.waits(), (std::vector<Duration>{std::chrono::hours{100}, 0s}));
}

TEST(SimEnv, can_be_moved_by_hand) {
  SimClock env;
  env.advance(3s);
  EXPECT_EQ(env.elapsed(), 3s);
  env.set(env.start() + 2s);
  EXPECT_EQ(env.elapsed(), 3s);
  env.set(env.start() + 9s);
  EXPECT_EQ(env.elapsed(), 9s);
  EXPECT_TRUE(env.waits().empty());
}

TEST(SimEnv, actions_happen_in_order_at_their_time) {
  SimEnv env;
  std::vector<std::pair<int, Duration>> seen;
  env.at(env.start() + 5s, [&] { seen.emplace_back(2, env.elapsed()); });
  env.at(env.start() + 3s, [&] {
    seen.emplace_back(1, env.elapsed());
    env.at(env.start() + 4s, [&] { seen.emplace_back(3, env.elapsed()); });
  });
  env.at(env.start() + 11s, [&] { seen.emplace_back(4, env.elapsed()); });
  EXPECT_TRUE(env.wait_until(env.start() + 10s, {}));
  EXPECT_EQ(seen, (std::vector<std::pair<int, Duration>>{{1, 3s}, {3, 4s}, {2, 5s}}));
  EXPECT_EQ(env.elapsed(), 10s);
}

TEST(SimEnv, a_stop_ends_the_wait_where_it_was_requested) {
  SimEnv env;
  std::stop_source source;
  env.at(env.start() + 2s, [&] { source.request_stop(); });
  EXPECT_FALSE(env.wait_until(env.start() + 10s, source.get_token()));
  EXPECT_EQ(env.elapsed(), 2s);
  EXPECT_FALSE(env.wait_until(env.start() + 10s, source.get_token()));
  EXPECT_EQ(env.elapsed(), 2s);
}

TEST(SimEnv, the_same_seed_gives_the_same_draws) {
  SimEnv left{7};
  SimEnv right{7};
  SimEnv other{8};
  const std::uint64_t draw = left.random_seed();
  EXPECT_EQ(draw, right.random_seed());
  EXPECT_NE(draw, other.random_seed());
  EXPECT_NE(draw, left.random_seed());
}

TEST(SimEnv, keeps_warnings) {
  SimEnv env;
  env.warn("one");
  env.warn("two");
  EXPECT_EQ(env.warnings(), (std::vector<std::string>{"one", "two"}));
}

TEST(SimEnv, may_be_shared_by_threads) {
  SimEnv env;
  {
    std::vector<std::jthread> crowd;
    for (int thread = 0; thread < 4; ++thread) {
      crowd.emplace_back([&] {
        for (int round = 0; round < 100; ++round) {
          env.wait_until(env.now() + 1ms, {});
          env.random_seed();
        }
      });
    }
  }
  EXPECT_EQ(env.waits().size(), 400U);
  EXPECT_GE(env.elapsed(), 100ms);
}

TEST(Flaky, fails_by_script_and_then_succeeds) {
  Flaky<int> call{42};
  call.fails(2, {.type = "A"}).fails(1, {.type = "B"});
  EXPECT_EQ(call().error().type, "A");
  EXPECT_EQ(call().error().type, "A");
  EXPECT_EQ(call().error().type, "B");
  EXPECT_EQ(call().value(), 42);
  EXPECT_EQ(call().value(), 42);
  EXPECT_EQ(call.calls(), 5U);
}

TEST(Flaky, may_have_no_result_and_may_never_succeed) {
  FlakyHandler work;
  EXPECT_TRUE(work().has_value());
  work.fails_always({.type = "A"});
  for (int call = 0; call < 10; ++call) EXPECT_FALSE(work().has_value());
}

TEST(Flaky, takes_simulated_time) {
  SimEnv env;
  Flaky<int> call{1};
  call.takes(env, 250ms);
  EXPECT_EQ(call().value(), 1);
  EXPECT_EQ(env.elapsed(), 250ms);
}

}  // namespace
}  // namespace reprise
