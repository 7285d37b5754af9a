// When ended runs are looked for that are to be removed, and which removals are on their way.
//
// A run whose removal is not durable yet is gone for everybody who asks. The loop asks the store which runs have expired, and writes the
// removals; this class says when, and remembers.
// Thread safety: none; it belongs to a loop.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>

#include "event/record.hpp"

namespace reprise::runtime {

struct RetentionSettings {
  std::optional<Duration> keep_ended = {};
  std::optional<std::uint64_t> keep_count = {};
  std::size_t at_once = 256;  // removals in one commit
};

class Retention {
 public:
  explicit Retention(const RetentionSettings& settings) : settings_{settings} {}

  void begin(event::Time now);
  // When to look next; std::nullopt: never.
  std::optional<event::Time> next() const noexcept { return next_; }
  // What to ask for now, or nothing: it is not time yet, or what was found last is not durable (`durable` is the last commit that is).
  struct Question {
    event::Time ended_before = INT64_MIN;
    std::uint64_t keep = UINT64_MAX;
    std::size_t limit = 0;
  };
  std::optional<Question> question(event::Time now, std::uint64_t durable);
  // So many of the runs that were found are removed with this commit. More than it asked for may be there: it looks again at once, unless
  // none could be removed, because they have been reopened.
  void found(std::size_t runs, std::size_t removed, std::uint64_t commit, event::Time now);

  // False: it is being removed already.
  bool remove(std::uint64_t run) { return removing_.insert(run).second; }
  bool is_removing(std::uint64_t run) const { return removing_.contains(run); }
  void removed(std::span<const std::uint64_t> runs);  // for good

 private:
  RetentionSettings settings_;
  std::optional<event::Time> next_;
  std::uint64_t removed_with_ = 0;              // the commit with the last removals
  std::unordered_set<std::uint64_t> removing_;  // whose removal is not durable yet
};

}  // namespace reprise::runtime
