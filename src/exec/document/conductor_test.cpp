// The conductor: everything in order, never two at a time, on whatever thread.
#include "exec/document/conductor.hpp"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace reprise::exec {
namespace {

TEST(ExecConductor, WhatIsPostedRunsElsewhereAndInOrder) {
  std::vector<int> done;
  std::thread::id where;
  Conductor conductor;
  for (int number = 0; number < 100; ++number) {
    conductor.post([&, number]() noexcept {
      done.push_back(number);
      where = std::this_thread::get_id();
    });
  }
  conductor.finish();
  ASSERT_EQ(done.size(), 100U);
  for (int number = 0; number < 100; ++number) EXPECT_EQ(done[static_cast<std::size_t>(number)], number);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(ExecConductor, SmallThingsRunHereWhenNobodyIsAtWork) {
  Conductor conductor;
  std::thread::id where;
  conductor.run_or_post([&]() noexcept { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(ExecConductor, SmallThingsWaitForTheirTurnWhenSomebodyIs) {
  Conductor conductor;
  std::promise<void> began;
  std::promise<void> go_on;
  std::vector<int> done;
  conductor.post([&]() noexcept {
    began.set_value();
    go_on.get_future().wait();
    done.push_back(1);
  });
  began.get_future().wait();
  conductor.post([&]() noexcept { done.push_back(2); });
  conductor.run_or_post([&]() noexcept { done.push_back(3); });
  go_on.set_value();
  conductor.finish();
  EXPECT_EQ(done, (std::vector{1, 2, 3}));
}

TEST(ExecConductor, WhatASmallThingPostsComesAfterIt) {
  Conductor conductor;
  std::vector<int> done;
  conductor.run_or_post([&]() noexcept {
    conductor.run_or_post([&]() noexcept { done.push_back(2); });
    conductor.post([&]() noexcept { done.push_back(3); });
    done.push_back(1);
  });
  conductor.finish();
  EXPECT_EQ(done, (std::vector{1, 2, 3}));
}

TEST(ExecConductor, NeverTwoAtATime) {
  constexpr int threads = 4;
  constexpr int each = 2'000;
  Conductor conductor;
  int count = 0;  // not atomic: the thread sanitizer would see two at a time
  std::atomic<int> inside = 0;
  std::atomic<bool> overlapped = false;
  const auto action = [&]() noexcept {
    if (inside.fetch_add(1) != 0) overlapped = true;
    ++count;
    inside.fetch_sub(1);
  };
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < threads; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < each; ++round) {
        (round + caller) % 3 == 0 ? conductor.post(action) : conductor.run_or_post(action);
      }
    });
  }
  callers.clear();
  conductor.finish();
  EXPECT_FALSE(overlapped);
  EXPECT_EQ(count, threads * each);
}

TEST(ExecConductor, WhatIsDueLaterIsNotForgottenBySmallThings) {
  Conductor conductor;
  std::promise<void> fired;
  conductor.post_at(system_env().now() + std::chrono::milliseconds{20}, [&]() noexcept { fired.set_value(); });
  for (int round = 0; round < 1'000; ++round) conductor.run_or_post([]() noexcept {});
  EXPECT_EQ(fired.get_future().wait_for(std::chrono::minutes{1}), std::future_status::ready);
}

TEST(ExecConductor, AfterTheEndNothingIsDone) {
  Conductor conductor;
  conductor.finish();
  bool was_done = false;
  conductor.post([&]() noexcept { was_done = true; });
  conductor.run_or_post([&]() noexcept { was_done = true; });
  EXPECT_FALSE(was_done);
}

}  // namespace
}  // namespace reprise::exec
