// Threads around the loops of one process: callers and workers push inputs, one thread drives all loops, one writes, and two read: one for
// each kind of reading, begun when there is something to read for the first time.
//
// Each loop works with a shard of its own. What they have to write is one append, and so are their readings of a kind. An input goes to the
// loop that it is pushed to; without that to the one whose shard has the run that it names, or to the first one. A loop that is fenced, because
// its shard is another process's by now, is dropped: who waits there is told so, and whoever comes; the others go on.
//
// A small commit is written by the loop's own thread, which saves two hops when there is little to do; a large one by the writer, so
// that the next batch is filled while it is synced; and while something is read all are written by the writer, because the store may let
// it wait for the reading. While a commit is on its way the loop is not woken for every single input: they would only wait for the commit
// anyway.
// Thread safety: push() and stats() from any thread; start() and finish() from one. Loops and stores outlive it.
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
#include "store/ledger.hpp"
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

struct DrivenShard {
  Loop* loop;
  store::Store* store;  // the loop's
};

class Driver {
 public:
  Driver(Loop& loop, store::Store& store, const Clock& clock, std::size_t inbox_max);
  // With a ledger, commits of several shards are written by it.
  Driver(const std::vector<DrivenShard>& shards, const Clock& clock, std::size_t inbox_max,
         store::Ledger* ledger = nullptr);
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver();

  // Before start(). Called once for each that is dropped, on the thread that drives: what works for it is to be stopped.
  void when_dropped(std::function<void(std::size_t shard)> tell) { when_dropped_ = std::move(tell); }
  void start();

  using ShardIndex = std::optional<std::size_t>;
  void push(Input&& input, ShardIndex shard = {});            // from workers: there is always room
  bool push_when_room(Input&& input, ShardIndex shard = {});  // from callers: waits for room; false: the engine has stopped
  // From callers that must not wait: `full` when there is no room, `stopped` when there will be none.
  std::expected<void, Error> try_push(Input&& input, ShardIndex shard = {});

  void stop_starting();
  // Waits until no attempt runs and everything is recorded, or until `patience` is over.
  bool drain(Duration patience);
  // Records what is in the inbox and what follows from it, then ends both threads. Whoever still waits is told that the engine has stopped.
  void finish();

  EngineStats stats() const;  // of all together

 private:
  struct Addressed {
    Input input;
    std::size_t shard = 0;
  };
  struct Driven {
    Loop* loop;
    store::Store* store;
    std::optional<Error> dropped = {};
  };
  struct Write {
    std::size_t shard;
    Loop::Writing writing;
  };
  struct Read {
    std::size_t shard;
    const ReadRequest* request;
    ReadAnswer answer = {};
  };

  Addressed addressed(Input&& input, ShardIndex shard) const;
  bool put(Addressed&& input);  // with the mutex held; true: the loop is to be woken
  template <class F>
  void for_each_live(const F& visit) const;
  template <class F>
  bool any_live(const F& is) const;
  void run();
  void run_writer();
  bool step(std::vector<Addressed>& inputs);
  bool wait_for_work(bool more, std::vector<Addressed>& inputs);  // true: it woke far too late
  void take(Addressed&& input, Time now);
  void write(Time now);
  void append(std::vector<store::Result<void>>& results);
  void end_writes(std::vector<store::Result<void>>& results, Time now);
  void read(Time now);
  bool has_thread(Reading kind);
  void run_reader(Reading kind);
  bool is_reading() const;
  void end_reads(Reading kind, Time now);
  void publish_stats();
  std::size_t wake_threshold() const;

  std::vector<Driven> shards_;
  store::Ledger* ledger_ = nullptr;
  std::function<void(std::size_t)> when_dropped_;
  Clock clock_;
  const std::size_t inbox_max_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;  // the loop's thread
  std::condition_variable room_;  // callers
  std::condition_variable calm_;  // drain()
  std::vector<Addressed> inbox_;
  std::size_t threshold_ = 1;  // inputs that are worth waking up for
  bool sleeping_ = false;
  bool finishing_ = false;
  bool stop_starting_ = false;
  bool ended_ = false;
  bool is_calm_ = false;
  std::vector<store::Result<void>> written_;  // empty: nothing, or not yet
  EngineStats stats_;

  std::mutex writer_mutex_;
  std::condition_variable writer_wake_;
  bool has_to_write_ = false;
  bool writer_ends_ = false;
  std::vector<Write> writes_;  // on their way; as it is while the writer has it
  std::vector<store::Result<void>> results_;

  struct Reader {
    std::thread thread;
    std::condition_variable wake;
    std::vector<Read> reads;  // on their way; as it is while the reader has it
    enum class State : std::uint8_t { idle, asked, told } state = State::idle;
  };
  std::array<Reader, std::size(readings)> readers_;  // with mutex_
  bool readers_end_ = false;

  std::thread loop_thread_;
  std::thread writer_thread_;
};

}  // namespace reprise::runtime
