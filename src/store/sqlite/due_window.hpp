// The part of the due lists that is read next, sorted and in memory, so that a list is decoded once and not at every question.
//
// It holds every entry after `from` up to and including `to` that the lists have; entries that no longer hold are dropped when
// somebody notices. Bounded: window_entries_max entries of 16 bytes.
// Thread safety: everything while mutex() is held, by the writer from before its COMMIT until it has added what it parked.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "store/sqlite/run_list.hpp"
#include "store/store.hpp"

namespace reprise::store::sqlite {

inline constexpr std::size_t window_entries_max = std::size_t{1} << 20U;
inline constexpr DueCursor due_never{INT64_MAX, UINT64_MAX};

class DueWindow {
 public:
  std::mutex& mutex() noexcept { return mutex_; }

  // After a commit: its parked runs.
  void add(std::span<const DueCursor> entries);

  // Takes in what was added, before reading.
  void catch_up();
  void forget();

  bool covers(DueCursor after) const noexcept { return valid_ && !(after < from_) && after < to_; }
  DueCursor to() const noexcept { return to_; }

  // begin_fill, then offer() entries in any order, then end_fill.
  void begin_fill(DueCursor after, DueCursor to);
  void offer(std::span<const DueCursor> entries);
  void end_fill();

  // The entries after `after`. drop_marked() removes those whose run was set to 0.
  std::span<DueCursor> after(DueCursor after);
  void drop_marked();

 private:
  void shrink();

  std::mutex mutex_;
  bool valid_ = false;
  DueCursor from_;
  DueCursor to_;
  std::vector<DueCursor> entries_;

  std::vector<DueCursor> added_;  // since the last reading
  bool added_too_many_ = false;
};

}  // namespace reprise::store::sqlite
