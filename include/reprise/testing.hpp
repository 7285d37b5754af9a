// Testing your retries: a simulated world in which waiting takes no time, and calls that fail by script.
//
//   reprise::SimEnv env;
//   reprise::Flaky<int> answer{42};
//   answer.fails(2, {.type = "TimeoutError"});
//
//   auto result = reprise::retry(reprise::policy::standard, answer, {.env = &env, .seed = 1});
//   // *result == 42, answer.calls() == 3, env.waits() has the two delays, and not a millisecond has passed
//
// Give the same SimEnv to the CircuitBreaker, if there is one. These are the tools of our own tests.
// Thread safety: a SimEnv may be used from many threads at once; a Flaky from one at a time.
// Not supported: waking a thread that waits in real time, and threads that wait for each other's virtual time: each wait moves
// the one clock forward at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <reprise/env.hpp>
#include <reprise/failure.hpp>
#include <reprise/random.hpp>

namespace reprise {

// An Env whose clock stands still until somebody waits or moves it.
class SimEnv : public Env {
 public:
  explicit SimEnv(std::uint64_t seed = 1) noexcept : random_{seed} {}

  TimePoint now() override {
    const std::lock_guard lock{mutex_};
    return now_;
  }

  // Jumps to `due`, or to the moment before it when a scheduled action requests the stop.
  bool wait_until(TimePoint due, const std::stop_token& stop) override {
    {
      const std::lock_guard lock{mutex_};
      waits_.push_back(due > now_ ? due - now_ : Duration{0});
    }
    if (stop.stop_requested()) return false;
    return move_to(due, &stop);
  }

  std::uint64_t random_seed() override {
    const std::lock_guard lock{mutex_};
    return random_.next();
  }

  void warn(std::string_view message) noexcept override {
    const std::lock_guard lock{mutex_};
    warnings_.emplace_back(message);
  }

  // Moves the clock; the scheduled actions on the way happen, in order. Time never goes back.
  void advance(Duration span) { move_to(now() + span, nullptr); }
  void set(TimePoint time) { move_to(time, nullptr); }

  // Does something when the clock gets there: env.at(env.start() + 5s, [&] { source.request_stop(); }). The clock shows that time
  // while the action runs. An action whose time is already over happens at the next move.
  void at(TimePoint time, std::function<void()> action) {
    const std::lock_guard lock{mutex_};
    actions_.emplace(time, std::move(action));
  }

  static constexpr TimePoint start() noexcept { return TimePoint{}; }  // where the clock begins
  Duration elapsed() { return now() - start(); }

  // Each wait that was asked for, in order, as long as it was to be.
  std::vector<Duration> waits() const {
    const std::lock_guard lock{mutex_};
    return waits_;
  }

  std::vector<std::string> warnings() const {
    const std::lock_guard lock{mutex_};
    return warnings_;
  }

 private:
  // False when `stop` was requested on the way. Actions run without the lock: they may use this Env.
  bool move_to(TimePoint time, const std::stop_token* stop) {
    while (std::function<void()> action = next_action(time)) {
      action();
      if (stop != nullptr && stop->stop_requested()) return false;
    }
    return true;
  }

  // Moves to the first action that is due by `time` and takes it; without one, moves to `time`.
  std::function<void()> next_action(TimePoint time) {
    const std::lock_guard lock{mutex_};
    if (actions_.empty() || actions_.begin()->first > time) {
      now_ = std::max(now_, time);
      return {};
    }
    const auto first = actions_.extract(actions_.begin());
    now_ = std::max(now_, first.key());
    return std::move(first.mapped());
  }

  mutable std::mutex mutex_;
  TimePoint now_ = start();
  Random random_;
  std::multimap<TimePoint, std::function<void()>> actions_;
  std::vector<Duration> waits_;
  std::vector<std::string> warnings_;
};

using SimClock = SimEnv;  // for those who only want the time

// A call that fails as it is told and then succeeds, and counts its calls. Pass it to retry() by reference, as a named variable.
// T must be copyable: the same value is returned each time.
template <class T>
class Flaky {
 public:
  Flaky() requires std::is_void_v<T>
  = default;
  template <class U = T>
  requires(!std::is_void_v<T>) explicit Flaky(U value) : success_{std::move(value)} {}

  // The next `times` calls fail like this; call it again for what comes after them.
  Flaky& fails(std::uint64_t times, Failure failure) {
    script_.emplace_back(times, std::move(failure));
    return *this;
  }
  Flaky& fails_always(Failure failure) { return fails(UINT64_MAX, std::move(failure)); }

  // Each call takes this long on the simulated clock.
  Flaky& takes(SimEnv& env, Duration span) {
    env_ = &env;
    span_ = span;
    return *this;
  }

  std::expected<T, Failure> operator()() {
    ++calls_;
    if (env_ != nullptr) env_->advance(span_);
    for (auto& [times, failure] : script_) {
      if (times == 0) continue;
      --times;
      return std::unexpected{failure};
    }
    return success_;
  }

  std::uint64_t calls() const noexcept { return calls_; }

 private:
  std::expected<T, Failure> success_ = {};
  std::vector<std::pair<std::uint64_t, Failure>> script_ = {};
  SimEnv* env_ = nullptr;
  Duration span_{0};
  std::uint64_t calls_ = 0;
};

using FlakyHandler = Flaky<void>;  // work that has no result but its success

}  // namespace reprise
