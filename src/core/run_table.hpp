// From run numbers to the runs in memory: open addressing, no allocation per run, runs are used again with their memory.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/state.hpp"

namespace reprise::core {

class RunTable {
 public:
  RunTable() : slots_(64) {}

  Run* find(std::uint64_t number) const noexcept {
    for (std::size_t at = home(number);; at = (at + 1) & mask()) {
      if (slots_[at].run == nullptr) return nullptr;
      if (slots_[at].number == number) return slots_[at].run;
    }
  }

  // The number must not be there.
  Run& add(std::uint64_t number) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    Run* run = take();
    run->number = number;
    insert({number, run});
    ++size_;
    return *run;
  }

  // The number must be there.
  void remove(std::uint64_t number) {
    std::size_t at = home(number);
    while (slots_[at].number != number || slots_[at].run == nullptr) at = (at + 1) & mask();
    Run* const run = slots_[at].run;
    close_gap(at);
    --size_;
    if (free_.size() < free_max) {
      run->reset();
      free_.push_back(run);
    } else {
      forget(run);
    }
  }

  std::size_t size() const noexcept { return size_; }

  template <class F>
  void for_each(F&& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.run != nullptr) visit(*slot.run);
    }
  }

  RunTable(const RunTable&) = delete;
  RunTable& operator=(const RunTable&) = delete;
  ~RunTable() {
    for_each([](Run& run) { delete &run; });
    for (Run* run : free_) delete run;
  }

 private:
  static constexpr std::size_t free_max = 4096;  // more would only hold memory that a peak once needed
  struct Slot {
    std::uint64_t number = 0;
    Run* run = nullptr;
  };

  std::size_t mask() const noexcept { return slots_.size() - 1; }
  std::size_t home(std::uint64_t number) const noexcept { return (number * 0x9E3779B97F4A7C15ULL >> 32) & mask(); }

  Run* take() {
    if (free_.empty()) return new Run;
    Run* const run = free_.back();
    free_.pop_back();
    return run;
  }
  static void forget(Run* run) { delete run; }

  void insert(Slot slot) {
    std::size_t at = home(slot.number);
    while (slots_[at].run != nullptr) at = (at + 1) & mask();
    slots_[at] = slot;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.run != nullptr) insert(slot);
    }
  }

  // Moves later entries of the same probe sequence up, so that no tombstones are needed.
  void close_gap(std::size_t gap) {
    for (std::size_t at = (gap + 1) & mask(); slots_[at].run != nullptr; at = (at + 1) & mask()) {
      const std::size_t wanted = home(slots_[at].number);
      const bool may_move = ((at - wanted) & mask()) >= ((at - gap) & mask());
      if (!may_move) continue;
      slots_[gap] = slots_[at];
      gap = at;
    }
    slots_[gap] = {};
  }

  std::vector<Slot> slots_;
  std::vector<Run*> free_;
  std::size_t size_ = 0;
};

}  // namespace reprise::core
