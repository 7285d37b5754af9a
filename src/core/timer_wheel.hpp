// A hierarchical timing wheel: a million waits, each armed, cancelled and fired in constant time.
//
// Time comes in as an argument. A timer never fires early: it fires in the first expire(now) with now >= due, at most one tick (2^20 ns,
// about a millisecond) of waiting after its time when expire() is called whenever next_expiry() says so.
// Four levels of 256 slots reach 52 days ahead; what is farther waits in one list that is looked at every 52 days. An armed timer
// costs 36 bytes, and memory stays at the highest number that was ever armed at once (at most 2^32 - 1).
// Thread safety: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace reprise::core {

class TimerWheel {
 public:
  using Time = std::int64_t;  // nanoseconds, any epoch
  using Handle = std::uint32_t;
  static constexpr Handle none = UINT32_MAX;

  struct Timer {  // what fires: the owner's own words
    std::uint64_t run = 0;
    std::uint32_t step = 0;
    std::uint32_t item = 0;
  };

  explicit TimerWheel(Time now);

  Handle arm(Time due, const Timer& timer);  // a due time in the past fires at the next expire()
  void cancel(Handle handle);                // of an armed timer; `none` is allowed and does nothing

  // Takes out up to `limit` timers that are due, in order of their ticks, and appends them.
  void expire(Time now, std::size_t limit, std::vector<Timer>& fired);

  // When expire() should be called next: never later than one tick after the earliest due time, never before that time; a timer that
  // was armed too late counts as due when it was armed. It may be early for timers far away (to let them move down a level) and, once,
  // after a cancel or a limit. std::nullopt = nothing is armed.
  std::optional<Time> next_expiry() const;

  std::size_t size() const noexcept { return armed_; }
  void clear(Time now);

 private:
  using Tick = std::uint64_t;  // ordered as Time, but without a sign
  using Index = std::uint32_t;

  static constexpr unsigned level_count = 4;
  static constexpr unsigned slots_per_level = 256;
  static constexpr Index overflow_list = level_count * slots_per_level;  // farther than the levels reach
  static constexpr Index list_count = overflow_list + 1;

  struct alignas(32) Node {  // two in a cache line, because a timer is mostly waiting for memory
    Time due;                // or when it was armed, if that was later
    Timer timer;
    Index previous;  // itself = the node is free
    Index next;
  };
  static_assert(sizeof(Node) == 32);

  struct List {  // in the order of arming
    Index first = none;
    Index last = none;
  };
  // A list of a million nodes is a million waits for memory, one after the other; several that are walked abreast wait together.
  static constexpr unsigned lanes = 8;
  using Slot = std::array<List, lanes>;

  struct Level {  // which slots are not empty
    std::array<std::uint64_t, slots_per_level / 64> words{};

    void set(unsigned slot) noexcept { words[slot / 64] |= std::uint64_t{1} << (slot % 64); }
    void reset(unsigned slot) noexcept { words[slot / 64] &= ~(std::uint64_t{1} << (slot % 64)); }
    unsigned first() const noexcept;  // slots_per_level = none
  };

  class Walk;

  static Tick tick_of(Time time) noexcept;
  static Time start_of(Tick tick) noexcept;
  static Time end_of(Tick tick) noexcept;

  Index list_for(Tick tick) const noexcept;
  void link(Index index, Index list) noexcept;
  void unlink(Index index) noexcept;
  Index acquire();
  void release(Index index) noexcept;
  bool is_empty(Index list) const noexcept;
  bool take_due(Time now, std::size_t end, std::vector<Timer>& fired);
  std::optional<Tick> next_stop() const noexcept;
  void move_cursor(Tick tick);
  void move_down(Index list);
  Tick first_overflow_block() const noexcept;

  std::vector<Node> nodes_;
  // A stack with room for all nodes. A chain through the nodes would have to wait for their memory.
  std::vector<Index> free_;
  std::size_t free_count_ = 0;
  std::array<Slot, list_count> lists_{};
  std::array<Level, level_count> levels_{};
  std::size_t armed_ = 0;
  Time now_;         // the latest that expire() was told
  Tick cursor_;      // everything before it has fired; behind now_ when a limit stopped it
  Time not_before_;  // no timer in the cursor's slot is due before; spares looking through it again
};

}  // namespace reprise::core
