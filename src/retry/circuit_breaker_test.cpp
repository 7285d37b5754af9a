// CircuitBreaker: each state and each way between them, against the clock of a SimEnv; and under many threads.
#include <reprise/circuit_breaker.hpp>
#include <reprise/testing.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <thread>

namespace reprise {
namespace {

using namespace std::chrono_literals;
using State = CircuitBreaker::State;

void report(CircuitBreaker& breaker, bool ok) { std::move(*breaker.try_acquire()).report(ok); }

// Counts how often the time is asked for.
struct CountingEnv final : SimEnv {
  TimePoint now() override {
    ++reads;
    return SimEnv::now();
  }
  int reads = 0;
};

TEST(CircuitBreaker, opens_after_failures_in_a_row) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 3, .failure_ratio = 0}, &env};
  for (int round = 0; round < 50; ++round) {
    report(breaker, false);
    report(breaker, false);
    report(breaker, true);
  }
  EXPECT_EQ(breaker.state(), State::closed);
  report(breaker, false);
  report(breaker, false);
  EXPECT_EQ(breaker.state(), State::closed);
  report(breaker, false);
  EXPECT_EQ(breaker.state(), State::open);
}

TEST(CircuitBreaker, opens_at_a_share_of_failures_once_there_are_enough_calls) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 0, .failure_ratio = 0.5, .window = 10, .minimum_calls = 6}, &env};
  for (int call = 0; call < 5; ++call) report(breaker, false);
  EXPECT_EQ(breaker.state(), State::closed) << "five calls are too few to judge";
  report(breaker, false);
  EXPECT_EQ(breaker.state(), State::open);

  CircuitBreaker mixed{{.consecutive_failures = 0, .failure_ratio = 0.5, .window = 10, .minimum_calls = 6}, &env};
  for (int call = 0; call < 10; ++call) report(mixed, true);
  for (int call = 0; call < 4; ++call) report(mixed, false);
  EXPECT_EQ(mixed.state(), State::closed);
  report(mixed, false);
  EXPECT_EQ(mixed.state(), State::open) << "5 of the last 10";
}

TEST(CircuitBreaker, forgets_calls_that_left_the_window) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 0, .failure_ratio = 0.5, .window = 4, .minimum_calls = 4}, &env};
  report(breaker, false);
  for (int call = 0; call < 3; ++call) report(breaker, true);
  report(breaker, true);
  report(breaker, false);
  EXPECT_EQ(breaker.state(), State::closed) << "1 of the last 4";
  report(breaker, false);
  EXPECT_EQ(breaker.state(), State::open) << "2 of the last 4";
}

TEST(CircuitBreaker, a_long_run_needs_no_long_window) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 31, .failure_ratio = 0, .window = 1}, &env};
  for (int call = 0; call < 30; ++call) report(breaker, false);
  EXPECT_EQ(breaker.state(), State::closed);
  report(breaker, false);
  EXPECT_EQ(breaker.state(), State::open);
}

TEST(CircuitBreaker, goes_round_through_all_states) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 10s}, &env};
  report(breaker, false);
  EXPECT_TRUE(breaker.refuses());
  EXPECT_FALSE(breaker.try_acquire());
  env.advance(10s - 1ns);
  EXPECT_TRUE(breaker.refuses());
  EXPECT_FALSE(breaker.try_acquire());
  env.advance(1ns);
  EXPECT_FALSE(breaker.refuses());
  EXPECT_EQ(breaker.state(), State::open);

  auto probe = breaker.try_acquire();
  ASSERT_TRUE(probe);
  EXPECT_EQ(breaker.state(), State::half_open);
  EXPECT_FALSE(breaker.try_acquire()) << "one probe at a time";
  std::move(*probe).report(false);
  EXPECT_EQ(breaker.state(), State::open);
  EXPECT_FALSE(breaker.try_acquire()) << "a failed probe starts the time anew";

  env.advance(10s);
  report(breaker, true);
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST(CircuitBreaker, closing_forgets_the_old_outcomes) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 2, .open_for = 1s}, &env};
  report(breaker, false);
  report(breaker, false);
  env.advance(1s);
  report(breaker, true);
  report(breaker, false);
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST(CircuitBreaker, several_probes_are_limited_and_all_must_succeed) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 1s, .half_open_probes = 3}, &env};
  report(breaker, false);
  env.advance(1s);
  auto first = breaker.try_acquire();
  auto second = breaker.try_acquire();
  auto third = breaker.try_acquire();
  ASSERT_TRUE(first && second && third);
  EXPECT_FALSE(breaker.try_acquire());
  std::move(*first).report(true);
  EXPECT_FALSE(breaker.try_acquire()) << "two in flight and one success are enough to close";
  std::move(*second).report(true);
  EXPECT_EQ(breaker.state(), State::half_open);
  std::move(*third).report(true);
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST(CircuitBreaker, an_abandoned_probe_gives_its_place_back) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 1s}, &env};
  report(breaker, false);
  env.advance(1s);
  {
    const auto dropped = breaker.try_acquire();
    ASSERT_TRUE(dropped);
    EXPECT_FALSE(breaker.try_acquire());
  }
  EXPECT_EQ(breaker.state(), State::half_open);
  report(breaker, true);
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST(CircuitBreaker, a_moved_permit_is_one_permit) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 1s}, &env};
  report(breaker, false);
  env.advance(1s);
  auto probe = breaker.try_acquire();
  {
    const CircuitBreaker::Permit moved = *std::move(probe);
    probe.reset();
    EXPECT_FALSE(breaker.try_acquire()) << "the empty shell gives nothing back";
  }
  EXPECT_TRUE(breaker.try_acquire());
}

TEST(CircuitBreaker, late_reports_are_ignored) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 1s}, &env};
  auto slow_failure = breaker.try_acquire();
  auto slow_success = breaker.try_acquire();
  auto forgotten = breaker.try_acquire();
  report(breaker, false);
  std::move(*slow_success).report(true);
  EXPECT_EQ(breaker.state(), State::open);
  env.advance(1s);
  auto probe = breaker.try_acquire();
  ASSERT_TRUE(probe);
  std::move(*slow_failure).report(false);
  forgotten.reset();
  EXPECT_EQ(breaker.state(), State::half_open) << "that failure began before the circuit opened";
  EXPECT_FALSE(breaker.try_acquire()) << "and that permit held no probe's place";
  std::move(*probe).report(true);
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST(CircuitBreaker, a_probe_that_is_late_for_its_own_half_open_is_ignored) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 1s, .half_open_probes = 2}, &env};
  report(breaker, false);
  env.advance(1s);
  auto late = breaker.try_acquire();
  report(breaker, false);
  env.advance(1s);
  auto probe = breaker.try_acquire();
  std::move(*late).report(true);
  EXPECT_EQ(breaker.state(), State::half_open);
  std::move(*probe).report(true);
  EXPECT_EQ(breaker.state(), State::half_open) << "one success of two";
}

TEST(CircuitBreaker, epochs_may_wrap) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 1ns}, &env};
  for (int round = 0; round < 20'000; ++round) {
    report(breaker, false);
    ASSERT_EQ(breaker.state(), State::open);
    env.advance(1ns);
    report(breaker, true);
    ASSERT_EQ(breaker.state(), State::closed);
  }
}

TEST(CircuitBreaker, asks_for_the_time_only_when_it_is_not_closed) {
  CountingEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 2, .failure_ratio = 0}, &env};
  for (int call = 0; call < 40; ++call) report(breaker, call % 2 == 0);
  EXPECT_EQ(env.reads, 0);
  report(breaker, false);
  EXPECT_EQ(env.reads, 1);
}

TEST(CircuitBreaker, settings_are_clamped) {
  const CircuitBreaker wild{{.consecutive_failures = 1000,
                             .failure_ratio = 7.0,
                             .window = 1000,
                             .minimum_calls = 1000,
                             .open_for = -5s,
                             .half_open_probes = 1000}};
  EXPECT_EQ(wild.settings(), (CircuitBreakerSettings{.consecutive_failures = 31,
                                                     .failure_ratio = 1.0,
                                                     .window = 31,
                                                     .minimum_calls = 31,
                                                     .open_for = 0s,
                                                     .half_open_probes = 255}));
  const CircuitBreaker none{{.failure_ratio = std::nan(""), .window = 0, .minimum_calls = 0, .half_open_probes = 0}};
  EXPECT_EQ(none.settings().failure_ratio, 0.0);
  EXPECT_EQ(none.settings().window, 1U);
  EXPECT_EQ(none.settings().minimum_calls, 1U);
  EXPECT_EQ(none.settings().half_open_probes, 1U);
}

TEST(CircuitBreaker, an_endless_opening_does_not_wrap) {
  SimEnv env;
  env.advance(5s);
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = Duration::max()}, &env};
  report(breaker, false);
  env.advance(std::chrono::hours{1'000'000});
  EXPECT_FALSE(breaker.try_acquire());
}

TEST(CircuitBreaker, state_names) {
  EXPECT_EQ(name_of(State::closed), "closed");
  EXPECT_EQ(name_of(State::open), "open");
  EXPECT_EQ(name_of(State::half_open), "half_open");
}

// ---- Against a model that is slow and obvious ----------------------------------------

struct Model {
  CircuitBreakerSettings settings;
  State state = State::closed;
  int generation = 0;
  std::deque<bool> failures = {};  // newest first
  std::uint32_t in_flight = 0;
  std::uint32_t successes = 0;
  Env::TimePoint until{};

  void enter(State next) {
    state = next;
    ++generation;
    failures.clear();
    in_flight = successes = 0;
  }

  std::optional<int> acquire(Env::TimePoint now) {
    if (state == State::open && now >= until) enter(State::half_open);
    if (state == State::open) return std::nullopt;
    if (state == State::half_open) {
      if (in_flight + successes >= settings.half_open_probes) return std::nullopt;
      ++in_flight;
    }
    return generation;
  }

  bool trips() const {
    const auto first_success = std::ranges::find(failures, false);
    if (settings.consecutive_failures > 0 && first_success - failures.begin() >= settings.consecutive_failures)
      return true;
    const auto judged = std::min<std::size_t>(failures.size(), settings.window);
    if (settings.failure_ratio == 0.0 || judged < settings.minimum_calls) return false;
    const auto failed = std::count(failures.begin(), failures.begin() + static_cast<std::ptrdiff_t>(judged), true);
    return static_cast<double>(failed) >= settings.failure_ratio * static_cast<double>(judged);
  }

  void report(int permit, bool ok, Env::TimePoint now) {
    if (permit != generation) return;
    if (state == State::half_open) {
      --in_flight;
      if (ok && ++successes < settings.half_open_probes) return;
      enter(ok ? State::closed : State::open);
    } else {
      failures.push_front(!ok);
      if (!ok && trips()) enter(State::open);
    }
    if (state == State::open) until = now + settings.open_for;
  }

  void abandon(int permit) {
    if (permit == generation && state == State::half_open) --in_flight;
  }
};

RC_GTEST_PROP(CircuitBreaker, agrees_with_the_model, ()) {
  const CircuitBreakerSettings settings{.consecutive_failures = *rc::gen::inRange(0U, 6U),
                                        .failure_ratio = *rc::gen::element(0.0, 0.25, 0.5, 1.0),
                                        .window = *rc::gen::inRange(1U, 32U),
                                        .minimum_calls = *rc::gen::inRange(1U, 12U),
                                        .open_for = Duration{*rc::gen::inRange<std::int64_t>(0, 5)},
                                        .half_open_probes = *rc::gen::inRange(1U, 4U)};
  SimEnv env;
  CircuitBreaker breaker{settings, &env};
  Model model{.settings = breaker.settings()};
  std::vector<std::pair<CircuitBreaker::Permit, int>> permits;
  const auto actions = *rc::gen::container<std::vector<std::pair<int, unsigned>>>(
      200, rc::gen::pair(rc::gen::inRange(0, 8), rc::gen::arbitrary<unsigned>()));
  for (const auto& [action, pick] : actions) {
    if (action <= 2) {
      auto permit = breaker.try_acquire();
      const auto expected = model.acquire(env.now());
      RC_ASSERT(permit.has_value() == expected.has_value());
      if (permit) permits.emplace_back(*std::move(permit), *expected);
    } else if (action == 3) {
      env.advance(Duration{1});
    } else if (!permits.empty()) {
      auto [permit, generation] = std::move(permits.back());
      permits.pop_back();
      if (action == 4) {
        model.abandon(generation);
      } else {
        const bool ok = pick % 3 == 0;
        std::move(permit).report(ok);
        model.report(generation, ok, env.now());
      }
    }
    RC_ASSERT(breaker.state() == model.state);
  }
}

// ---- Many threads ----------------------------------------

TEST(CircuitBreaker, never_more_probes_than_allowed_between_threads) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 1, .open_for = 1ns, .half_open_probes = 2}, &env};
  for (int round = 0; round < 200; ++round) {
    report(breaker, false);
    env.advance(1ns);
    std::atomic<int> admitted{0};
    std::vector<std::optional<CircuitBreaker::Permit>> kept;
    kept.reserve(4);
    for (int thread = 0; thread < 4; ++thread) kept.emplace_back();
    {
      std::vector<std::jthread> crowd;
      for (auto& place : kept) {
        crowd.emplace_back([&] {
          if (auto permit = breaker.try_acquire()) {
            ++admitted;
            place.emplace(*std::move(permit));
          }
        });
      }
    }
    ASSERT_EQ(admitted, 2);
    for (auto& place : kept) {
      if (place) std::move(*place).report(true);
    }
    ASSERT_EQ(breaker.state(), State::closed);
  }
}

TEST(CircuitBreaker, is_never_stuck_after_a_storm) {
  SimEnv env;
  CircuitBreaker breaker{{.consecutive_failures = 3, .open_for = 5ns, .half_open_probes = 2}, &env};
  {
    std::vector<std::jthread> crowd;
    for (int thread = 0; thread < 4; ++thread) {
      crowd.emplace_back([&, thread] {
        Random random{static_cast<std::uint64_t>(thread)};
        for (int call = 0; call < 5000; ++call) {
          const std::uint64_t draw = random.next() % 10;
          if (auto permit = breaker.try_acquire(); permit && draw > 1) std::move(*permit).report(draw > 5);
          if (draw == 0) env.advance(1ns);
        }
      });
    }
  }
  env.advance(5ns);
  for (int call = 0; call < 2; ++call) {
    auto permit = breaker.try_acquire();
    ASSERT_TRUE(permit);
    std::move(*permit).report(true);
  }
  EXPECT_EQ(breaker.state(), State::closed);
}

}  // namespace
}  // namespace reprise
