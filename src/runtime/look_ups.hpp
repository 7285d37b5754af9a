// What the loop has asked its store for, and what it was told, for as long as somebody needs it.
//
// Whoever needs a row asks for it; if it is not there it is wanted, and the next request brings it. Then the same is tried again, from its
// beginning. An answer is only ever given as long as it is true: when a run is written and leaves memory, or is removed, what was read about
// it is forgotten, and an answer that is on its way meanwhile is asked for again.
// Thread safety: none; it belongs to a loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/reads.hpp"

namespace reprise::runtime {

class LookUps {
 public:
  template <class T>
  using Known = const store::Result<std::optional<T>>*;  // nullptr: it has to be read first

  Known<store::StoredRun> row(std::uint64_t run) { return rows_.find(run, round_); }
  Known<KeyOwner> owner(const std::string& key) { return owners_.find(key, round_); }
  Known<std::uint32_t> list_size(const std::string& hash) { return lists_.find(hash, round_); }

  bool has_wanted() const noexcept { return rows_.has_wanted() || owners_.has_wanted() || lists_.has_wanted(); }
  void put_wanted(ReadRequest& request);
  // `anew`: what could not be read is asked for again instead of being told.
  void take(const ReadRequest& request, ReadAnswer& answer, bool anew);

  // Its row is another one now, or it has none any more.
  void changed(std::uint64_t run);
  // Since the request that was answered last was made.
  bool has_changed(std::uint64_t run) const { return changed_.contains(run); }
  void key_given(const std::string& key) { owners_.forget(key); }

  // Everybody has tried again: what nobody looked at is forgotten, and so is what could not be read.
  void end_round(bool somebody_waits);
  std::size_t size() const noexcept { return rows_.size() + owners_.size() + lists_.size(); }

 private:
  template <class Key, class Value>
  class Table {
   public:
    using Answer = store::Result<std::optional<Value>>;

    const Answer* find(const Key& key, std::uint64_t round) {
      const auto [at, is_new] = entries_.try_emplace(key);
      if (is_new) wanted_.push_back(key);
      at->second.used = round;
      return at->second.answer ? &*at->second.answer : nullptr;
    }
    std::vector<Key> take_wanted() { return std::exchange(wanted_, {}); }
    bool has_wanted() const noexcept { return !wanted_.empty(); }
    bool has(const Key& key) const { return entries_.contains(key); }
    void want(const Key& key) { wanted_.push_back(key); }
    void put(const Key& key, Answer&& answer) { entries_.at(key).answer = std::move(answer); }
    void forget(const Key& key) {
      const auto at = entries_.find(key);
      if (at != entries_.end() && at->second.answer) entries_.erase(at);
    }
    void forget_unused(std::uint64_t round, bool all) {
      std::erase_if(entries_, [&](const auto& entry) {
        const auto& answer = entry.second.answer;
        return answer && (all || !*answer || entry.second.used != round);
      });
    }
    std::size_t size() const noexcept { return entries_.size(); }

   private:
    struct Entry {
      std::optional<Answer> answer;
      std::uint64_t used = 0;
    };
    std::unordered_map<Key, Entry> entries_;  // without an answer: wanted, or on its way
    std::vector<Key> wanted_;
  };

  Table<std::uint64_t, store::StoredRun> rows_;
  Table<std::string, KeyOwner> owners_;
  Table<std::string, std::uint32_t> lists_;
  std::unordered_multimap<std::uint64_t, std::string> keys_of_;  // of the runs that answers name
  std::unordered_set<std::uint64_t> changed_;
  bool is_under_way_ = false;
  std::uint64_t round_ = 1;
};

}  // namespace reprise::runtime
