// A cache with a limit: when it is full, what was asked for longest ago makes room.
//
// Thread safety: none; it belongs to one thread, or stands under its owner's mutex.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <utility>

namespace reprise::base {

template <class Key, class Value>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(std::size_t limit) : limit_{limit} {}  // at least 1

  // nullptr: not there (any more). Valid until the next put().
  template <class Asked>
  Value* find(const Asked& key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  // In place of what the key had before.
  Value& put(Key key, Value value) {
    if (Value* const known = find(key); known != nullptr) return *known = std::move(value);
    if (entries_.size() >= limit_) {
      places_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(std::move(key), std::move(value));
    places_.emplace(entries_.front().first, entries_.begin());
    return entries_.front().second;
  }

  std::size_t size() const noexcept { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<const Key, Value>>;  // what was asked for last comes first

  std::size_t limit_;
  Entries entries_;
  std::map<Key, typename Entries::iterator, std::less<>> places_;
};

}  // namespace reprise::base
