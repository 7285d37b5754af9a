#include "exec/document/conductor.hpp"

#include <utility>

namespace reprise::exec {

Conductor::Conductor() : thread_{[this] { run(); }} {}

Conductor::~Conductor() { finish(); }

void Conductor::post(Action action) {
  const std::lock_guard lock{mutex_};
  if (finishing_) return;
  actions_.push_back(std::move(action));
  if (actions_.size() == 1) wake_.notify_one();
}

void Conductor::post_at(Env::TimePoint due, Action action) {
  const std::lock_guard lock{mutex_};
  if (finishing_) return;
  later_.emplace(due, std::move(action));
  wake_.notify_one();
}

void Conductor::finish() {
  {
    const std::lock_guard lock{mutex_};
    finishing_ = true;
    wake_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

void Conductor::run() {
  std::deque<Action> todo;
  while (true) {
    {
      std::unique_lock lock{mutex_};
      while (actions_.empty() && !finishing_) {
        if (later_.empty()) {
          wake_.wait(lock);
        } else if (const Env::TimePoint due = later_.begin()->first; system_env().now() < due) {
          wake_.wait_until(lock, due);
        } else {
          break;
        }
      }
      if (actions_.empty() && finishing_) return;
      todo.swap(actions_);
      const Env::TimePoint now = system_env().now();
      while (!later_.empty() && later_.begin()->first <= now) {
        todo.push_back(std::move(later_.begin()->second));
        later_.erase(later_.begin());
      }
    }
    for (Action& action : todo) action();
    todo.clear();
  }
}

}  // namespace reprise::exec
