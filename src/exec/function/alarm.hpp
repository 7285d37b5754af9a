// How one thread sleeps until the earliest of many times that others may move forward.
//
//   while (true) {
//     alarm.listen();
//     alarm.wait_until(look_at_everything());   // what changes between the two ends the sleep at once
//   }
//
// Thread safety: listen() and wait_until() from the thread that sleeps; ring() and ring_by() from any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stop_token>

#include <reprise/env.hpp>

namespace reprise::exec {

class Alarm {
 public:
  using TimePoint = Env::TimePoint;
  static constexpr TimePoint never = TimePoint::max();

  explicit Alarm(Env& env) noexcept : env_{env} {}

  void listen() noexcept { wakes_by_.store(never.time_since_epoch().count()); }
  void wait_until(TimePoint due);  // `never` = until somebody rings

  void ring();
  // One comparison, unless the sleeper would wake too late.
  void ring_by(TimePoint due) {
    if (due.time_since_epoch().count() < wakes_by_.load()) ring();
  }

 private:
  Env& env_;
  std::atomic<TimePoint::rep> wakes_by_ = never.time_since_epoch().count();
  std::mutex mutex_;
  std::condition_variable wake_;
  std::stop_source sleep_{std::nostopstate};  // of the sleep that goes on
  bool rung_ = false;
};

}  // namespace reprise::exec
