// A batch of jobs, and the slot of a thread that works on it: which call runs there, what it was asked, who answers for it.
//
// A job belongs to whoever sets `taken` first: the slot that claims it, or somebody who takes it back. A call that runs is answered by
// whoever ends it in its slot first: its own thread with leave(), or the watchdog that gives it up in look().
// Thread safety: claim(), limit() and leave() from the slot's thread; everything else from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <reprise/engine.hpp>
#include <reprise/env.hpp>

#include "exec/executor.hpp"

namespace reprise::exec {

struct NamedHandler {
  std::string name;
  Handler call;
  std::shared_ptr<std::atomic<std::uint32_t>>
      average_ns;  // of its calls; 0 = none so far. Stays when the handler is replaced
};
using HandlerTable = std::vector<NamedHandler>;

struct JobBatch {
  struct Place {
    std::atomic<bool> taken = false;
    std::uint32_t charge =
        0;  // what the job weighs in the pool's load: expected nanoseconds, or 0 = a thread of its own
  };

  JobBatch(std::vector<Job> taken_jobs, std::shared_ptr<const HandlerTable> table)
      : jobs{std::move(taken_jobs)}, places{std::make_unique<Place[]>(jobs.size())}, handlers{std::move(table)} {}

  std::size_t left() const noexcept {
    const std::size_t begun = next.load(std::memory_order_relaxed);
    return begun < jobs.size() ? jobs.size() - begun : 0;
  }

  std::vector<Job> jobs;
  std::unique_ptr<Place[]> places;
  std::shared_ptr<const HandlerTable> handlers;  // as it was at the start
  alignas(64) std::atomic<std::uint32_t> next = 0;
};

// Why a call was asked to stop. `deadline`: not its own time was over, but that of its work item or run.
enum class Asked : std::uint8_t { nothing, timeout, deadline, cancel, stop };

// A call that somebody else answers for, because it did not return.
struct GivenUp {
  AttemptId id;
  Asked asked = Asked::nothing;
  Duration allowed{0};
  std::uint32_t charge = 0;
};

class WorkerSlot {
 public:
  using TimePoint = Env::TimePoint;
  static constexpr TimePoint never = TimePoint::max();

  // The next job that nobody has taken; nullptr = there is none left.
  Job* claim(JobBatch& batch, TimePoint now);
  void limit(TimePoint began, TimePoint due, Asked when_due);

  struct Left {
    Asked asked = Asked::nothing;
    Duration allowed{0};
    std::uint32_t charge = 0;
  };
  // std::nullopt: the call was given up.
  std::optional<Left> leave();

  bool ask(const AttemptId& id, Asked why);  // false: it does not run here
  void ask_any(Asked why);

  struct Look {
    TimePoint next = never;                  // when there is something to do
    std::optional<std::stop_source> stop{};  // request it, without any lock
    std::optional<GivenUp> given_up{};
  };
  Look look(TimePoint now, Duration grace);

  // A call that has taken longer than it was charged for weighs a thread of its own from then on.
  template <class Move>
  void recharge(TimePoint begun_before, Move&& move) {
    const std::lock_guard lock{mutex_};
    if (job_ != nullptr && charge_ != 0 && began_ < begun_before) move(std::exchange(charge_, 0));
  }

  // For the call's own eyes.
  const std::stop_token& token() noexcept;
  std::optional<Duration> remaining(Env& env);
  template <class Action>
  void unless_given_up(Action&& action) {
    const std::lock_guard lock{mutex_};
    if (!given_up_) action();
  }

  // Where an idle thread sleeps; guarded by the pool's mutex.
  std::condition_variable wake;
  bool awake = true;
  std::thread thread;

 private:
  std::mutex mutex_;
  const Job* job_ = nullptr;  // nullptr = no call
  bool given_up_ = false;
  Asked asked_ = Asked::nothing;
  bool told_ = false;  // stop was requested, and due_ is the end of the grace
  bool extended_ = false;
  std::uint32_t charge_ = 0;
  TimePoint began_{};
  TimePoint due_ = never;
  Duration allowed_{0};
  Asked when_due_ = Asked::timeout;
  std::stop_source source_{std::nostopstate};  // made when somebody wants its token: most calls do not
  std::stop_token token_;
};

}  // namespace reprise::exec
