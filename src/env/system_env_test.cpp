// The real Env: no durations are asserted, only that waits never end early and stops are heard.
#include <reprise/env.hpp>

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

namespace reprise {
namespace {

using namespace std::chrono_literals;

TEST(SystemEnv, never_wakes_early) {
  Env& env = system_env();
  std::stop_source source;
  for (const bool stoppable : {false, true}) {
    const Env::TimePoint due = env.now() + 2ms;
    EXPECT_TRUE(env.wait_until(due, stoppable ? source.get_token() : std::stop_token{}));
    EXPECT_GE(env.now(), due);
    EXPECT_TRUE(env.wait_until(due, stoppable ? source.get_token() : std::stop_token{}))
        << "what is over is not waited for";
  }
}

TEST(SystemEnv, a_stop_wakes_an_endless_wait) {
  std::stop_source source;
  std::jthread canceler{[&] { source.request_stop(); }};
  EXPECT_FALSE(system_env().wait_until(Env::TimePoint::max(), source.get_token()));
  EXPECT_FALSE(system_env().wait_until(system_env().now() + 1000h, source.get_token()));
}

TEST(SystemEnv, seeds_differ) {
  std::set<std::uint64_t> seeds;
  for (int draw = 0; draw < 1000; ++draw) seeds.insert(system_env().random_seed());
  std::jthread{[&] { seeds.insert(system_env().random_seed()); }}.join();
  EXPECT_EQ(seeds.size(), 1001U);
}

TEST(SystemEnv, a_forked_child_draws_its_own_seeds) {
  (void)system_env().random_seed();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t draw = system_env().random_seed();
    _exit(write(ends[1], &draw, sizeof draw) == sizeof draw ? 0 : 1);
  }
  std::uint64_t drawn_by_child = 0;
  ASSERT_EQ(read(ends[0], &drawn_by_child, sizeof drawn_by_child), static_cast<ssize_t>(sizeof drawn_by_child));
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_NE(drawn_by_child, system_env().random_seed());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace reprise
