// One thread on which everything about documents happens, one thing after the other: so nothing there needs a lock.
//
// Thread safety: post() and post_at() from any thread; what was posted runs on the conductor's thread, in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include <reprise/env.hpp>

namespace reprise::exec {

class Conductor {
 public:
  using Action = std::move_only_function<void()>;

  Conductor();
  Conductor(const Conductor&) = delete;
  Conductor& operator=(const Conductor&) = delete;
  ~Conductor();  // finish()

  void post(Action action);
  void post_at(Env::TimePoint due, Action action);  // not before then; dropped when the conductor finishes earlier
  void finish();                                    // does what is posted already, then ends the thread

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Action> actions_;
  std::multimap<Env::TimePoint, Action> later_;
  bool finishing_ = false;
  std::thread thread_;
};

}  // namespace reprise::exec
