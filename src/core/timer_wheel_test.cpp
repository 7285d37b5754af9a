// TimerWheel against a model that keeps a sorted list: nothing early, nothing forgotten, whatever time does.
#include "core/timer_wheel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include <reprise/random.hpp>

namespace reprise::core {
namespace {

using Time = TimerWheel::Time;
using Handle = TimerWheel::Handle;
using Timer = TimerWheel::Timer;

constexpr Time tick = Time{1} << 20;
constexpr Time forever = std::numeric_limits<Time>::max();
constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

Time plus(Time time, Time span) { return time > forever - span ? forever : time + span; }

std::vector<std::uint64_t> fire(TimerWheel& wheel, Time now, std::size_t limit = no_limit) {
  std::vector<Timer> fired;
  wheel.expire(now, limit, fired);
  std::vector<std::uint64_t> runs;
  for (const Timer& timer : fired) runs.push_back(timer.run);
  return runs;
}

using Runs = std::vector<std::uint64_t>;

TEST(CoreTimerWheel, fires_at_its_time_and_not_a_nanosecond_before) {
  for (const Time start : {Time{0}, Time{-5'000'000'007}, Time{1'700'000'000'123'456'789}}) {
    for (const Time span : {Time{1}, tick - 1, tick, 255 * tick, 256 * tick, 65'536 * tick + 3, Time{1} << 44,
                            (Time{1} << 52) + 9, Time{1} << 58}) {
      TimerWheel wheel{start};
      wheel.arm(start + span, {.run = 7, .step = 8, .item = 9});
      EXPECT_EQ(fire(wheel, start + span - 1), Runs{});
      std::vector<Timer> fired;
      wheel.expire(start + span, 10, fired);
      ASSERT_EQ(fired.size(), 1U) << span;
      EXPECT_EQ(fired[0].run, 7U);
      EXPECT_EQ(fired[0].step, 8U);
      EXPECT_EQ(fired[0].item, 9U);
      EXPECT_EQ(wheel.size(), 0U);
      EXPECT_EQ(wheel.next_expiry(), std::nullopt);
    }
  }
}

TEST(CoreTimerWheel, what_is_late_fires_at_once) {
  TimerWheel wheel{1000 * tick};
  wheel.arm(-forever, {.run = 1});
  wheel.arm(1000 * tick, {.run = 2});
  EXPECT_EQ(wheel.next_expiry(), 1000 * tick);
  EXPECT_EQ(fire(wheel, 1000 * tick), (Runs{1, 2}));
}

TEST(CoreTimerWheel, the_ends_of_time_are_times_too) {
  TimerWheel wheel{-forever - 1};
  wheel.arm(forever, {.run = 1});
  wheel.arm(-forever - 1, {.run = 2});
  EXPECT_EQ(fire(wheel, forever - 1), Runs{2});
  ASSERT_TRUE(wheel.next_expiry());
  EXPECT_EQ(*wheel.next_expiry(), forever);
  EXPECT_EQ(fire(wheel, forever), Runs{1});
  wheel.arm(forever, {.run = 3});
  EXPECT_EQ(fire(wheel, forever), Runs{3});
}

TEST(CoreTimerWheel, a_limit_leaves_the_rest_in_order) {
  TimerWheel wheel{0};
  for (std::uint64_t run = 0; run < 10; ++run) wheel.arm(static_cast<Time>(10 - run) * 300 * tick, {.run = run});
  EXPECT_EQ(fire(wheel, 5000 * tick, 0), Runs{});
  EXPECT_EQ(fire(wheel, 5000 * tick, 3), (Runs{9, 8, 7}));
  ASSERT_TRUE(wheel.next_expiry());
  EXPECT_LE(*wheel.next_expiry(), 5000 * tick);
  EXPECT_EQ(fire(wheel, 5000 * tick, 4), (Runs{6, 5, 4, 3}));
  EXPECT_EQ(fire(wheel, 5000 * tick), (Runs{2, 1, 0}));
}

TEST(CoreTimerWheel, timers_that_are_armed_again_and_again_do_not_starve_others) {
  TimerWheel wheel{0};
  wheel.arm(tick, {.run = 99});
  for (std::uint64_t run = 0; run < 4; ++run) wheel.arm(0, {.run = run});
  for (Time now = 2 * tick; now < 10 * tick; now += tick) {
    for (const std::uint64_t run : fire(wheel, now, 2)) {
      if (run == 99) return;
      wheel.arm(now, {.run = run});
    }
  }
  FAIL() << "run 99 never had its turn";
}

TEST(CoreTimerWheel, handles_are_used_again_and_clear_forgets_all) {
  TimerWheel wheel{0};
  const Handle first = wheel.arm(5 * tick, {.run = 1});
  wheel.cancel(first);
  wheel.cancel(TimerWheel::none);
  EXPECT_EQ(wheel.size(), 0U);
  const Handle second = wheel.arm(7 * tick, {.run = 2});
  EXPECT_EQ(second, first);
  EXPECT_EQ(fire(wheel, 6 * tick), Runs{});
  wheel.arm(1'000'000 * tick, {.run = 3});
  wheel.clear(0);
  EXPECT_EQ(wheel.size(), 0U);
  EXPECT_EQ(wheel.next_expiry(), std::nullopt);
  EXPECT_EQ(fire(wheel, 2'000'000 * tick), Runs{});
}

// A wait of years is a few steps: if the wheel walked tick by tick, this test would not end.
TEST(CoreTimerWheel, empty_time_costs_nothing) {
  TimerWheel wheel{0};
  Time now = 0;
  for (int round = 0; round < 10'000; ++round) {
    wheel.arm(forever, {.run = 1});
    now += 800'000'000 * tick;
    EXPECT_EQ(fire(wheel, now), Runs{});
    wheel.cancel(0);
  }
}

// ---- Against the model ----------------------------------------

class Model {
 public:
  Model(std::uint64_t seed, Time start) : random_{seed}, now_{start}, wheel_{start} {}

  void step() {
    switch (random_.next() % 8) {
      case 0:
      case 1:
      case 2:
        return arm();
      case 3:
        return cancel();
      case 4:
        return follow();
      default:
        return expire();
    }
  }

  void finish() {
    now_ = forever;
    check_fired(no_limit);
    EXPECT_TRUE(armed_.empty()) << "forgotten";
    EXPECT_EQ(wheel_.size(), 0U);
  }

  void check() {
    ASSERT_EQ(wheel_.size(), armed_.size());
    const std::optional<Time> next = wheel_.next_expiry();
    ASSERT_EQ(next.has_value(), !armed_.empty());
    if (!next) return;
    Time earliest = forever;
    for (const auto& [run, armed] : armed_) earliest = std::min(earliest, std::max(armed.due, armed.since));
    ASSERT_LE(*next, std::max(plus(earliest, tick), now_));  // what a limit has left is wanted at once
    const bool far = earliest / tick - now_ / tick > 255 || (earliest >> 28) != (now_ >> 28);
    if (!far && *next > now_) {
      ASSERT_GE(*next, earliest);
    }
  }

 private:
  struct Armed {
    Time due;
    Time since;  // the wheel's time when it was armed
    Handle handle;
  };

  // Tiny and huge spans alike.
  Time span() { return static_cast<Time>(random_.next() >> (random_.next() % 64) >> 2); }

  void arm() {
    const Time due = random_.next() % 8 == 0 ? now_ - std::min(span(), Time{1} << 40) : plus(now_, span());
    const std::uint64_t run = next_run_++;
    const Handle handle = wheel_.arm(due, {.run = run, .step = static_cast<std::uint32_t>(run), .item = 3});
    for (const auto& [other, armed] : armed_) ASSERT_NE(armed.handle, handle) << "two timers with one handle";
    armed_[run] = {due, now_, handle};
  }

  void cancel() {
    if (armed_.empty()) return;
    const auto chosen = std::next(armed_.begin(), static_cast<std::ptrdiff_t>(random_.next() % armed_.size()));
    wheel_.cancel(chosen->second.handle);
    armed_.erase(chosen);
  }

  void expire() {
    if (random_.next() % 4 != 0) now_ = plus(now_, std::min(span(), Time{1} << (random_.next() % 60)));
    check_fired(random_.next() % 3 == 0 ? random_.next() % 4 : no_limit);
  }

  // As a loop does: to the time the wheel asks for, until something fires. So it must not ask for ever without progress.
  void follow() {
    const std::size_t before = armed_.size();
    for (int calls = 0; !armed_.empty() && armed_.size() == before; ++calls) {
      ASSERT_LT(calls, 10'000);
      now_ = std::max(now_, *wheel_.next_expiry());
      check_fired(no_limit);
    }
  }

  void check_fired(std::size_t limit) {
    std::vector<Timer> fired{{.run = 424242}};
    wheel_.expire(now_, limit, fired);
    ASSERT_EQ(fired[0].run, 424242U) << "it appends";
    const auto due = static_cast<std::size_t>(
        std::ranges::count_if(armed_, [&](const auto& entry) { return entry.second.due <= now_; }));
    ASSERT_EQ(fired.size() - 1, std::min(due, limit));
    Time last_tick = std::numeric_limits<Time>::min();
    for (std::size_t index = 1; index < fired.size(); ++index) {
      const auto found = armed_.find(fired[index].run);
      ASSERT_NE(found, armed_.end()) << "fired twice, or after its cancel";
      ASSERT_LE(found->second.due, now_) << "early";
      ASSERT_EQ(fired[index].step, static_cast<std::uint32_t>(fired[index].run));
      const Time its_tick = std::max(found->second.due, found->second.since) >> 20;
      ASSERT_GE(its_tick, last_tick) << "out of order";
      last_tick = its_tick;
      armed_.erase(found);
    }
    for (const auto& [run, armed] : armed_) {
      if (armed.due <= now_) {
        ASSERT_GE(std::max(armed.due, armed.since) >> 20, last_tick) << "overtaken";
      }
    }
  }

  Random random_;
  Time now_;
  TimerWheel wheel_;
  std::uint64_t next_run_ = 0;
  std::map<std::uint64_t, Armed> armed_;
};

TEST(CoreTimerWheel, agrees_with_a_sorted_list) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    const Time start = seed % 3 == 0 ? -(Time{1} << 60) : seed % 3 == 1 ? 0 : Time{1'790'000'000'000'000'000};
    Model model{seed, start};
    for (int step = 0; step < 200 && !testing::Test::HasFatalFailure(); ++step) {
      model.step();
      model.check();
    }
    model.finish();
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace reprise::core
