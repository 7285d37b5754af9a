// Time and chance of one simulated history: a virtual clock, a queue of what will happen, and one seeded generator.
//
// The same seed gives the same history, on every machine: nothing here reads a clock, draws from anywhere else or knows a thread.
// What is due at the same moment happens in the order in which it was asked for.
// Thread safety: none; a history is one thread's.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <reprise/failure.hpp>
#include <reprise/random.hpp>

#include "event/record.hpp"

namespace reprise::sim {

using event::Time;

inline constexpr Time millisecond = 1'000'000;
inline constexpr Time second = 1'000'000'000;
inline constexpr Time birth = 1'700'000'000 * second;  // when every history begins

// A promise was broken. Thrown from wherever it is noticed, also through product code: the history is over.
class Violation : public std::runtime_error {
 public:
  Violation(const std::string& what, std::uint64_t run) : std::runtime_error{what}, run_{run} {}
  std::uint64_t run() const noexcept { return run_; }  // 0 = no single run

 private:
  std::uint64_t run_;
};

class World {
 public:
  explicit World(std::uint64_t seed) : random_{seed} {}

  Time now() const noexcept { return now_; }
  void at(Time when, std::function<void()> what);  // what lies in the past happens next
  void after(Time delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }

  bool is_over() const noexcept { return queue_.empty(); }
  Time next() const noexcept { return queue_.front().when; }
  void run_next();

  Random& random() noexcept { return random_; }
  std::int64_t between(std::int64_t low, std::int64_t high) { return random_.between(low, high); }
  std::size_t below(std::size_t end) {
    return static_cast<std::size_t>(between(0, static_cast<std::int64_t>(end) - 1));
  }
  bool chance(std::uint32_t permille) { return permille > 0 && random_.next() % 1000 < permille; }
  // A time between the two, of any order of magnitude: short ones are as likely as long ones.
  Time span(Time low, Time high);

 private:
  struct Happening {
    Time when;
    std::uint64_t order;
    std::function<void()> what;
  };
  static bool is_later(const Happening& left, const Happening& right) noexcept {
    return left.when != right.when ? left.when > right.when : left.order > right.order;
  }

  Time now_ = birth;
  std::uint64_t order_ = 0;
  std::vector<Happening> queue_;  // a heap
  Random random_;
};

}  // namespace reprise::sim
