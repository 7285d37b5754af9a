// Everything about documents happens here, one thing after the other: so nothing there needs a lock.
//
// What was posted runs on the serial queue's thread. Small things need not wait for it to wake up: run_or_post() does them on the thread of
// the caller when nobody else is at work. Either way they happen in order, and never two at a time.
// Actions throw nothing, because one thread serves all attempts: each does its work through guarded(), which fails its own attempt alone.
// Thread safety: any thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include <reprise/env.hpp>

namespace reprise::exec {

// Does the work. What it throws (a thread that cannot be made, memory that is not there) is told to its owner, which fails of it.
template <class Owner, class Work>
void guarded(Owner& owner, const Work& work) noexcept {
  try {
    work();
  } catch (const std::exception& problem) {
    owner.broke(problem.what());
  }
}

class SerialQueue {
 public:
  using Action = std::move_only_function<void() noexcept>;

  SerialQueue();
  SerialQueue(const SerialQueue&) = delete;
  SerialQueue& operator=(const SerialQueue&) = delete;
  ~SerialQueue();  // finish()

  void post(Action action);
  void run_or_post(Action action) noexcept;         // for what is short and waits for nobody
  void post_at(Env::TimePoint due, Action action);  // not before then; dropped when the queue finishes earlier
  void finish();                                    // does what is posted already, then ends the thread

 private:
  void run();
  bool wait_for_work(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Action> actions_;
  std::multimap<Env::TimePoint, Action> later_;
  bool is_busy_ = false;  // somebody is at work, here or in run_or_post()
  bool finishing_ = false;
  std::thread thread_;
};

}  // namespace reprise::exec
