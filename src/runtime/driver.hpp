// Threads around the loop: callers and workers push inputs, one thread drives the loop, one writes, and two read: one for each kind of
// reading, begun when there is something to read for the first time.
//
// A small commit is written by the loop's own thread, which saves two hops when there is little to do; a large one by the writer, so
// that the next batch is filled while it is synced; and while something is read all are written by the writer, because the store may let
// it wait for the reading. While a commit is on its way the loop is not woken for every single input: they would only wait for the commit
// anyway.
// Thread safety: push() and stats() from any thread; start() and stop() from one.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <expected>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <reprise/env.hpp>
#include <reprise/error.hpp>

#include "runtime/loop.hpp"
#include "store/store.hpp"

namespace reprise::runtime {

// Wall time that never jumps: read once, then moved on by the steady clock.
class Clock {
 public:
  Clock(Env& env, Time wall_now) : env_{&env}, start_{env.now()}, wall_{wall_now} {}

  Time now() const { return wall_ + std::chrono::duration_cast<Duration>(env_->now() - start_).count(); }
  Env::TimePoint steady(Time wall) const;  // saturates

 private:
  Env* env_;
  Env::TimePoint start_;
  Time wall_;
};

class Driver {
 public:
  Driver(Loop& loop, store::Store& store, const Clock& clock, std::size_t inbox_max);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver();

  void start();

  void push(Input&& input);            // from workers: there is always room
  bool push_when_room(Input&& input);  // from callers: waits for room; false: the engine has stopped
  // From callers that must not wait: `full` when there is no room, `stopped` when there will be none.
  std::expected<void, Error> try_push(Input&& input);

  void stop_starting();
  // Waits until no attempt runs and everything is recorded, or until `patience` is over.
  bool drain(Duration patience);
  // Records what is in the inbox and what follows from it, then ends both threads. Whoever still waits is told that the engine has stopped.
  void finish();

  EngineStats stats() const;

 private:
  bool put(Input&& input);  // with the mutex held; true: the loop is to be woken
  void run();
  void run_writer();
  bool step(std::vector<Input>& inputs);
  bool wait_for_work(bool more, std::vector<Input>& inputs);  // true: it woke far too late
  void write(Time now);
  void read(Time now);
  void run_reader(Reading kind);
  bool is_reading() const;
  std::optional<ReadAnswer> take_answer(Reading kind);  // with the mutex held
  void publish_stats();
  std::size_t wake_threshold() const;

  Loop& loop_;
  store::Store& store_;
  Clock clock_;
  const std::size_t inbox_max_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // the loop's thread
  std::condition_variable room_;  // callers
  std::condition_variable calm_;  // drain()
  std::vector<Input> inbox_;
  std::size_t threshold_ = 1;  // inputs that are worth waking up for
  bool sleeping_ = false;
  bool finishing_ = false;
  bool stop_starting_ = false;
  bool ended_ = false;
  bool is_calm_ = false;
  std::optional<store::Result<void>> written_;
  EngineStats stats_;

  std::mutex writer_mutex_;
  std::condition_variable writer_wake_;
  std::optional<Loop::Writing> to_write_;
  bool writer_ends_ = false;

  struct Reader {
    std::thread thread;
    std::condition_variable wake;
    const ReadRequest* request = nullptr;  // being read
    std::optional<ReadAnswer> answer;
  };
  std::array<Reader, std::size(readings)> readers_;  // with mutex_
  bool readers_end_ = false;

  std::thread loop_thread_;
  std::thread writer_thread_;
};

}  // namespace reprise::runtime
