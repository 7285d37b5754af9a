#include "exec/function/worker_slot.hpp"

#include <algorithm>
#include <new>

#include "exec/time_limit.hpp"

namespace reprise::exec {

// Claiming happens under the mutex as a whole: who looks for a job and finds it taken will find it in a slot.
Job* WorkerSlot::claim(JobBatch& batch, TimePoint now) {
  const std::lock_guard lock{mutex_};
  while (true) {
    const std::uint32_t index = batch.next.fetch_add(1, std::memory_order_relaxed);
    if (index >= batch.jobs.size()) return nullptr;
    if (batch.places[index].taken.exchange(true)) continue;
    job_ = &batch.jobs[index];
    charge_ = batch.places[index].charge;
    began_ = now;
    asked_ = Asked::nothing;
    told_ = false;
    extended_ = false;
    due_ = never;
    if (source_.stop_possible()) {
      source_ = std::stop_source{std::nostopstate};
      token_ = {};
    }
    return &batch.jobs[index];
  }
}

void WorkerSlot::limit(TimePoint began, TimePoint due, Asked when_due) {
  const std::lock_guard lock{mutex_};
  began_ = began;
  allowed_ = due - began;
  when_due_ = when_due;
  if (!told_) due_ = due;
}

std::optional<WorkerSlot::Left> WorkerSlot::leave() {
  const std::lock_guard lock{mutex_};
  if (given_up_) return std::nullopt;
  job_ = nullptr;
  return Left{asked_, allowed_, charge_};
}

bool WorkerSlot::ask(const AttemptId& id, Asked why) {
  const std::lock_guard lock{mutex_};
  if (job_ == nullptr || job_->id != id) return false;
  if (asked_ == Asked::nothing) asked_ = why;
  return true;
}

void WorkerSlot::ask_any(Asked why) {
  const std::lock_guard lock{mutex_};
  if (job_ != nullptr && asked_ == Asked::nothing) asked_ = why;
}

WorkerSlot::Look WorkerSlot::look(TimePoint now, Duration grace) {
  const std::lock_guard lock{mutex_};
  Look look;
  if (job_ == nullptr) return look;
  // A call does not run when the process does not. Once: a program in which every look is late has no excuse any more.
  if (asked_ == Asked::nothing && due_ <= now && !std::exchange(extended_, true)) due_ = fair_due(due_, allowed_, now);
  if (asked_ == Asked::nothing && due_ <= now) asked_ = when_due_;
  if (asked_ != Asked::nothing && !told_) {
    told_ = true;
    due_ = grace < never - now ? now + grace : never;
    if (source_.stop_possible()) look.stop = source_;
  } else if (told_ && due_ <= now) {
    look.given_up = GivenUp{job_->id, asked_, allowed_, charge_};
    given_up_ = true;
    job_ = nullptr;
    return look;
  }
  look.next = due_;
  return look;
}

const std::stop_token& WorkerSlot::token() noexcept {
  const std::lock_guard lock{mutex_};
  if (!source_.stop_possible()) {
    try {
      source_ = std::stop_source{};
      token_ = source_.get_token();
      if (told_) source_.request_stop();
    } catch (const std::bad_alloc&) {
      // A token that never stops: the call may then be given up, which is better than ending the program.
    }
  }
  return token_;
}

std::optional<Duration> WorkerSlot::remaining(Env& env) {
  const std::lock_guard lock{mutex_};
  if (given_up_ || asked_ != Asked::nothing) return Duration{0};
  if (due_ == never) return std::nullopt;
  return std::max(Duration{0}, Duration{due_ - env.now()});
}

}  // namespace reprise::exec
