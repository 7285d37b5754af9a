#include "exec/document/serial_queue.hpp"

#include <utility>

namespace reprise::exec {

SerialQueue::SerialQueue() : thread_{[this] { run(); }} {}

SerialQueue::~SerialQueue() { finish(); }

void SerialQueue::post(Action action) {
  const std::lock_guard lock{mutex_};
  if (finishing_) return;
  actions_.push_back(std::move(action));
  if (actions_.size() == 1) wake_.notify_one();
}

void SerialQueue::run_or_post(Action action) noexcept {
  {
    const std::lock_guard lock{mutex_};
    if (finishing_) return;
    if (is_busy_ || !actions_.empty()) {
      actions_.push_back(std::move(action));
      if (actions_.size() == 1) wake_.notify_one();
      return;
    }
    is_busy_ = true;
  }
  action();
  action = nullptr;  // what it holds is let go while nobody else is at work
  const std::lock_guard lock{mutex_};
  is_busy_ = false;
  if (!actions_.empty() || !later_.empty() || finishing_) wake_.notify_one();
}

void SerialQueue::post_at(Env::TimePoint due, Action action) {
  const std::lock_guard lock{mutex_};
  if (finishing_) return;
  later_.emplace(due, std::move(action));
  wake_.notify_one();
}

void SerialQueue::finish() {
  {
    const std::lock_guard lock{mutex_};
    finishing_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

// False: there is none, and there will be none.
bool SerialQueue::wait_for_work(std::unique_lock<std::mutex>& lock) {
  while (true) {
    if (is_busy_) {
      wake_.wait(lock);
    } else if (!actions_.empty()) {
      return true;
    } else if (finishing_) {
      return false;
    } else if (later_.empty()) {
      wake_.wait(lock);
    } else if (const Env::TimePoint due = later_.begin()->first; system_env().now() < due) {
      wake_.wait_until(lock, due);
    } else {
      return true;
    }
  }
}

void SerialQueue::run() {
  std::deque<Action> todo;
  while (true) {
    {
      std::unique_lock lock{mutex_};
      if (!wait_for_work(lock)) return;
      is_busy_ = true;
      todo.swap(actions_);
      const Env::TimePoint now = system_env().now();
      while (!later_.empty() && later_.begin()->first <= now) {
        todo.push_back(std::move(later_.begin()->second));
        later_.erase(later_.begin());
      }
    }
    for (Action& action : todo) action();
    todo.clear();
    const std::lock_guard lock{mutex_};
    is_busy_ = false;
  }
}

}  // namespace reprise::exec
