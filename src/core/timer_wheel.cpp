#include "core/timer_wheel.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.hpp"

// A timer stands on the level of the highest byte in which its tick differs from the cursor. So everything on a level is earlier than
// everything on the levels above it, slots never wrap around, and the first slot of the lowest level that has one comes next. Where a
// timer stands follows from its time and the cursor, and moving the cursor up to the next stop does not change it.

namespace reprise::core {
namespace {

constexpr unsigned tick_bits = 20;
constexpr unsigned level_bits = 8;
constexpr unsigned wheel_bits = 32;
constexpr std::uint64_t sign = std::uint64_t{1} << 63U;
constexpr std::uint64_t tick_max = std::numeric_limits<std::uint64_t>::max() >> tick_bits;

}  // namespace

unsigned TimerWheel::Level::first() const noexcept {
  for (unsigned word = 0; word < words.size(); ++word) {
    if (words[word] != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(words[word]));
  }
  return slots_per_level;
}

// Goes through all lanes of a list in turn. It has read a node before it hands it out, so the node may then be moved or freed.
class TimerWheel::Walk {
 public:
  Walk(const TimerWheel& wheel, Index list) noexcept : wheel_{wheel} {
    for (unsigned lane = 0; lane < lanes; ++lane) at_[lane] = wheel.lists_[list][lane].first;
  }

  Index next() noexcept {
    for (unsigned tries = 0; tries < lanes; ++tries) {
      Index& lane = at_[turn_++ % lanes];
      if (lane == none) continue;
      const Index index = lane;
      lane = wheel_.nodes_[index].next;
      if (lane != none) __builtin_prefetch(&wheel_.nodes_[lane]);
      return index;
    }
    return none;
  }

 private:
  const TimerWheel& wheel_;
  std::array<Index, lanes> at_;
  unsigned turn_ = 0;
};

TimerWheel::Tick TimerWheel::tick_of(Time time) noexcept {
  return (static_cast<std::uint64_t>(time) ^ sign) >> tick_bits;
}

TimerWheel::Time TimerWheel::start_of(Tick tick) noexcept { return static_cast<Time>((tick << tick_bits) ^ sign); }

TimerWheel::Time TimerWheel::end_of(Tick tick) noexcept {
  return tick == tick_max ? std::numeric_limits<Time>::max() : start_of(tick + 1);
}

TimerWheel::TimerWheel(Time now) : now_{now}, cursor_{tick_of(now)}, not_before_{start_of(cursor_)} {}

void TimerWheel::clear(Time now) {
  nodes_.clear();
  lists_.fill({});
  levels_.fill({});
  free_count_ = 0;
  armed_ = 0;
  now_ = now;
  cursor_ = tick_of(now);
  not_before_ = start_of(cursor_);
}

TimerWheel::Handle TimerWheel::arm(Time due, const Timer& timer) {
  // What is late takes its place at the present tick, behind what a limit has left: a timer that is armed anew each time it fires
  // must not keep the others waiting.
  const Time place = std::max(due, now_);
  const Tick tick = tick_of(place);
  const Index index = acquire();
  nodes_[index].due = place;
  nodes_[index].timer = timer;
  if (tick == cursor_) not_before_ = std::min(not_before_, place);
  link(index, list_for(tick));
  ++armed_;
  return index;
}

void TimerWheel::cancel(Handle handle) {
  if (handle == none) return;
  REPRISE_CHECK(handle < nodes_.size() && nodes_[handle].previous != handle);
  unlink(handle);
  release(handle);
}

void TimerWheel::expire(Time now, std::size_t limit, std::vector<Timer>& fired) {
  now_ = std::max(now_, now);
  const std::size_t end = limit > fired.max_size() - fired.size() ? fired.max_size() : fired.size() + limit;
  const Tick target = tick_of(now);
  while (true) {
    if (not_before_ <= now && !take_due(now, end, fired)) return;
    if (cursor_ >= target) return;
    const std::optional<Tick> stop = next_stop();
    if (!stop || *stop > target) break;
    move_cursor(*stop);
  }
  move_cursor(target);
}

std::optional<TimerWheel::Time> TimerWheel::next_expiry() const {
  if (armed_ == 0) return std::nullopt;
  if (!is_empty(list_for(cursor_))) return not_before_ <= now_ ? now_ : end_of(cursor_);
  const Tick stop = *next_stop();
  return (stop ^ cursor_) < slots_per_level ? end_of(stop) : start_of(stop);
}

TimerWheel::Index TimerWheel::list_for(Tick tick) const noexcept {
  const Tick difference = tick ^ cursor_;
  if (difference >> wheel_bits != 0) return overflow_list;
  const unsigned level = difference == 0 ? 0 : (static_cast<unsigned>(std::bit_width(difference)) - 1) / level_bits;
  const auto slot = static_cast<Index>(tick >> (level * level_bits)) % slots_per_level;
  return level * slots_per_level + slot;
}

bool TimerWheel::is_empty(Index list) const noexcept {
  return std::ranges::all_of(lists_[list], [](const List& lane) { return lane.first == none; });
}

void TimerWheel::link(Index index, Index list) noexcept {
  Node& node = nodes_[index];
  List& lane = lists_[list][index % lanes];
  node.next = none;
  node.previous = lane.last;
  if (node.previous != none) {
    nodes_[node.previous].next = index;
  } else {
    lane.first = index;
    if (list < overflow_list) levels_[list / slots_per_level].set(list % slots_per_level);
  }
  lane.last = index;
}

void TimerWheel::unlink(Index index) noexcept {
  const Node& node = nodes_[index];
  const Index list = list_for(tick_of(node.due));
  List& lane = lists_[list][index % lanes];
  (node.previous != none ? nodes_[node.previous].next : lane.first) = node.next;
  (node.next != none ? nodes_[node.next].previous : lane.last) = node.previous;
  if (lane.first == none && list < overflow_list && is_empty(list)) {
    levels_[list / slots_per_level].reset(list % slots_per_level);
  }
}

TimerWheel::Index TimerWheel::acquire() {
  if (free_count_ != 0) return free_[--free_count_];
  REPRISE_CHECK(nodes_.size() < none);
  if (nodes_.size() == free_.size()) {
    free_.resize(std::max<std::size_t>(64, nodes_.size() * 2));
    nodes_.reserve(free_.size());
  }
  nodes_.emplace_back();
  return static_cast<Index>(nodes_.size() - 1);
}

void TimerWheel::release(Index index) noexcept {
  nodes_[index].previous = index;
  free_[free_count_++] = index;
  REPRISE_CHECK(armed_ > 0);
  --armed_;
}

// What is due in the cursor's slot. False: there may be more, but `fired` has reached `end`.
bool TimerWheel::take_due(Time now, std::size_t end, std::vector<Timer>& fired) {
  Time earliest = std::numeric_limits<Time>::max();
  Walk walk{*this, list_for(cursor_)};
  for (Index index = walk.next(); index != none; index = walk.next()) {
    if (nodes_[index].due > now) {
      earliest = std::min(earliest, nodes_[index].due);
    } else if (fired.size() >= end) {
      return false;
    } else {
      fired.push_back(nodes_[index].timer);  // first: when it throws, the timer is still armed
      unlink(index);
      release(index);
    }
  }
  not_before_ = earliest;
  return true;
}

// The next tick at which there is something to fire or to move down, when the cursor's own slot is empty.
std::optional<TimerWheel::Tick> TimerWheel::next_stop() const noexcept {
  for (unsigned level = 0; level < level_count; ++level) {
    const unsigned slot = levels_[level].first();
    if (slot == slots_per_level) continue;
    const unsigned shift = level * level_bits;
    const Tick above = cursor_ >> (shift + level_bits) << (shift + level_bits);
    return above | Tick{slot} << shift;
  }
  if (is_empty(overflow_list)) return std::nullopt;
  return ((cursor_ >> wheel_bits) + 1) << wheel_bits;
}

// To next_stop() or to anything before it.
void TimerWheel::move_cursor(Tick tick) {
  const Tick before = cursor_;
  const Index slot = list_for(tick);
  not_before_ = start_of(tick);
  cursor_ = tick;
  if (slot == overflow_list) {
    // The levels are empty here, so nothing hinders a jump over empty blocks of 52 days.
    cursor_ = std::max(tick, std::min(first_overflow_block(), tick_of(now_)));
    not_before_ = start_of(cursor_);
    move_down(overflow_list);
  } else if (tick != before && slot >= slots_per_level) {
    move_down(slot);
  }
}

void TimerWheel::move_down(Index list) {
  Walk walk{*this, list};
  lists_[list] = {};
  if (list < overflow_list) levels_[list / slots_per_level].reset(list % slots_per_level);
  for (Index index = walk.next(); index != none; index = walk.next()) link(index, list_for(tick_of(nodes_[index].due)));
}

TimerWheel::Tick TimerWheel::first_overflow_block() const noexcept {
  Tick earliest = tick_max;
  Walk walk{*this, overflow_list};
  for (Index index = walk.next(); index != none; index = walk.next()) {
    earliest = std::min(earliest, tick_of(nodes_[index].due));
  }
  return earliest >> wheel_bits << wheel_bits;
}

}  // namespace reprise::core
