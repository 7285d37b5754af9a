#include "store/sqlite/due_window.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace reprise::store::sqlite {
namespace {

constexpr std::size_t added_max = std::size_t{1} << 16U;  // then it is cheaper to read the lists again

}  // namespace

void DueWindow::add(std::span<const DueCursor> entries) {
  if (entries.empty()) return;
  if (added_too_many_) return;
  if (added_.size() + entries.size() > added_max) {
    added_too_many_ = true;
    added_.clear();
    return;
  }
  added_.insert(added_.end(), entries.begin(), entries.end());
}

void DueWindow::catch_up() {
  if (std::exchange(added_too_many_, false)) valid_ = false;
  std::vector<DueCursor> added;
  added.swap(added_);
  if (!valid_) return;
  std::erase_if(added, [&](DueCursor entry) { return !(from_ < entry) || to_ < entry; });
  if (added.empty()) return;
  std::ranges::sort(added);
  std::vector<DueCursor> merged;
  merged.reserve(entries_.size() + added.size());
  std::ranges::merge(entries_, added, std::back_inserter(merged));
  entries_.swap(merged);
  entries_.erase(std::unique(entries_.begin(), entries_.end()), entries_.end());
  if (entries_.size() > 2 * window_entries_max) shrink();
}

void DueWindow::forget() {
  valid_ = false;
  entries_.clear();
}

void DueWindow::begin_fill(DueCursor after, DueCursor to) {
  valid_ = false;
  from_ = after;
  to_ = to;
  entries_.clear();
}

void DueWindow::offer(std::span<const DueCursor> entries) {
  for (const DueCursor entry : entries) {
    if (from_ < entry && !(to_ < entry)) entries_.push_back(entry);
  }
  if (entries_.size() > 2 * window_entries_max) shrink();
}

void DueWindow::end_fill() {
  std::ranges::sort(entries_);
  entries_.erase(std::unique(entries_.begin(), entries_.end()), entries_.end());
  valid_ = true;
}

// Keeps the earliest ones; the window then ends with the last of them.
void DueWindow::shrink() {
  const auto last = entries_.begin() + static_cast<std::ptrdiff_t>(window_entries_max) - 1;
  std::nth_element(entries_.begin(), last, entries_.end());
  to_ = *last;
  entries_.resize(window_entries_max);
  if (valid_) std::ranges::sort(entries_);
}

std::span<DueCursor> DueWindow::after(DueCursor after) {
  return {std::upper_bound(entries_.begin(), entries_.end(), after), entries_.end()};
}

void DueWindow::drop_marked() {
  std::erase_if(entries_, [](DueCursor entry) { return entry.run == 0; });
}

}  // namespace reprise::store::sqlite
