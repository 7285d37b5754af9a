// Those who watch: each has a bounded buffer of its own, and none can slow the engine.
//
// Thread safety: published() from the loop's thread; everything else from any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <reprise/engine.hpp>

#include "event/history.hpp"
#include "runtime/loop.hpp"

namespace reprise::runtime {

struct Feed {
  explicit Feed(Subscription wanted) : subscription{std::move(wanted)} {}

  void add(const Event& event);  // of the past, in order; one run only
  // As it becomes durable, also while the past is still being added. `is_sure`: with everything that depends on the past.
  void publish(const Event& event, bool is_sure = true);
  std::optional<Event> take();  // the next one; the mutex is held
  void close();

  const Subscription subscription;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Event> past;
  std::deque<Event> events;
  std::uint64_t taken = 0;         // one run: the highest sequence that was read or dropped
  std::uint64_t unsure_until = 0;  // the last event that was published by somebody who did not know the past
  std::uint64_t dropped = 0;
  bool open = true;

 private:
  bool is_known(const Event& event) const;
  void drop_oldest();
};

class Feeds final : public Observer {
 public:
  std::shared_ptr<Feed> add(Subscription subscription);
  // Somebody has read the past of this run: so what follows can be told with everything that depends on it.
  void prime(const RunId& run, event::EventHistory history, std::uint64_t last_sequence);
  void close();

  bool is_watching() noexcept override { return watching_.load(std::memory_order_relaxed); }
  bool knows(const RunId& run) override;
  void published(const RunId& run, const core::Plan& plan, std::uint64_t chunk_first, std::uint64_t new_first,
                 std::string_view chunk) override;

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<Feed>> feeds_;
  struct Known {
    event::EventHistory history;
    std::uint64_t next = 1;    // the first event it has not seen
    bool is_complete = false;  // it has seen the run from its beginning
  };
  std::map<RunId, Known> histories_;  // of the runs seen since somebody watches
  std::atomic<bool> watching_ = false;
};

}  // namespace reprise::runtime
