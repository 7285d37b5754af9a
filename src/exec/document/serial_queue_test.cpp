// The queue: everything in order, never two at a time, on whatever thread.
#include "exec/document/serial_queue.hpp"

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
  SerialQueue queue;
  for (int number = 0; number < 100; ++number) {
    queue.post([&, number]() noexcept {
      done.push_back(number);
      where = std::this_thread::get_id();
    });
  }
  queue.finish();
  ASSERT_EQ(done.size(), 100U);
  for (int number = 0; number < 100; ++number) EXPECT_EQ(done[static_cast<std::size_t>(number)], number);
  EXPECT_NE(where, std::this_thread::get_id());
}

TEST(ExecConductor, SmallThingsRunHereWhenNobodyIsAtWork) {
  SerialQueue queue;
  std::thread::id where;
  queue.run_or_post([&]() noexcept { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(ExecConductor, SmallThingsWaitForTheirTurnWhenSomebodyIs) {
  SerialQueue queue;
  std::promise<void> began;
  std::promise<void> go_on;
  std::vector<int> done;
  queue.post([&]() noexcept {
    began.set_value();
    go_on.get_future().wait();
    done.push_back(1);
  });
  began.get_future().wait();
  queue.post([&]() noexcept { done.push_back(2); });
  queue.run_or_post([&]() noexcept { done.push_back(3); });
  go_on.set_value();
  queue.finish();
  EXPECT_EQ(done, (std::vector{1, 2, 3}));
}

TEST(ExecConductor, WhatASmallThingPostsComesAfterIt) {
  SerialQueue queue;
  std::vector<int> done;
  queue.run_or_post([&]() noexcept {
    queue.run_or_post([&]() noexcept { done.push_back(2); });
    queue.post([&]() noexcept { done.push_back(3); });
    done.push_back(1);
  });
  queue.finish();
  EXPECT_EQ(done, (std::vector{1, 2, 3}));
}

TEST(ExecConductor, NeverTwoAtATime) {
  constexpr int threads = 4;
  constexpr int each = 2'000;
  SerialQueue queue;
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
        (round + caller) % 3 == 0 ? queue.post(action) : queue.run_or_post(action);
      }
    });
  }
  callers.clear();
  queue.finish();
  EXPECT_FALSE(overlapped);
  EXPECT_EQ(count, threads * each);
}

TEST(ExecConductor, WhatIsDueLaterIsNotForgottenBySmallThings) {
  SerialQueue queue;
  std::promise<void> fired;
  queue.post_at(system_env().now() + std::chrono::milliseconds{20}, [&]() noexcept { fired.set_value(); });
  for (int round = 0; round < 1'000; ++round) queue.run_or_post([]() noexcept {});
  EXPECT_EQ(fired.get_future().wait_for(std::chrono::minutes{1}), std::future_status::ready);
}

TEST(ExecConductor, AfterTheEndNothingIsDone) {
  SerialQueue queue;
  queue.finish();
  bool was_done = false;
  queue.post([&]() noexcept { was_done = true; });
  queue.run_or_post([&]() noexcept { was_done = true; });
  EXPECT_FALSE(was_done);
}

}  // namespace
}  // namespace reprise::exec
