#include "exec/function/alarm.hpp"

namespace reprise::exec {

void Alarm::wait_until(TimePoint due) {
  std::unique_lock lock{mutex_};
  if (!rung_ && due == never) {
    wake_.wait(lock, [&] { return rung_; });
  } else if (!rung_) {
    // Before anybody can see the time: who compares with it and stays silent relies on this sleep.
    wakes_by_.store(due.time_since_epoch().count());
    sleep_ = std::stop_source{};
    const std::stop_token token = sleep_.get_token();
    lock.unlock();
    env_.wait_until(due, token);
    lock.lock();
    sleep_ = std::stop_source{std::nostopstate};
  }
  rung_ = false;
}

void Alarm::ring() {
  std::stop_source sleep{std::nostopstate};
  {
    const std::lock_guard lock{mutex_};
    rung_ = true;
    sleep = sleep_;
    wake_.notify_all();
  }
  sleep.request_stop();
}

}  // namespace reprise::exec
