// From the store to runs: rows and journal as the core's own state, and runs as those who list them see them. What the loop continues and what
// others only look at comes from here.
//
// Thread safety: functions of their arguments; a core belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_set>
#include <vector>

#include <reprise/engine.hpp>

#include "core/core.hpp"
#include "runtime/ids.hpp"
#include "store/store.hpp"

namespace reprise::runtime {

// Which shard's runs: what ids are made of.
struct ShardKey {
  std::uint64_t secret = 0;
  std::uint32_t slot = 0;

  RunId id(std::uint64_t number, event::Time created) const noexcept { return id_of(secret, number, created, slot); }
};

// ---- one run ----------------------------------------

RunInfo info_of(const core::Run& run, const ShardKey& shard);
// Without the details. `name` is that of its plan.
RunInfo info_of(const store::StoredRun& row, const ShardKey& shard, std::string_view name);

// Its state from its row, not live; nullptr: the row cannot be read.
core::Run* revive(core::Core& core, const store::StoredRun& row);
// The error for that.
Error unreadable_row(std::uint64_t run);

// ---- the journal ----------------------------------------

// Applies what the journal has about runs that are not in an image yet. The core knows the plans, and no run but those that this makes.
struct JournalVisitor {
  std::function<void(std::uint64_t run)> named = {};  // each run that is spoken of, those in images too
  std::function<core::Run*(const store::StoredRun&)> revive = {};
  // A run that is in memory from now on, and whose oldest event here is in that commit's frame.
  std::function<void(core::Run& run, std::uint64_t commit)> found = {};
};
store::Result<void> replay_journal(store::Store& store, core::Core& core, const JournalVisitor& visitor);

// ---- lists ----------------------------------------

inline constexpr std::size_t page_max = 10'000;

std::size_t limit_of(const RunQuery& query) noexcept;
store::RunFilter filter_of(const RunQuery& query) noexcept;

struct FoundRuns {
  std::vector<RunInfo> runs = {};         // newest (highest number) first, at most the query's limit
  std::vector<std::uint32_t> plans = {};  // of each
  std::uint64_t next_below = 0;           // where the next page begins; 0 = there is none
};
// What has become of runs since their rows were asked for, of those that are not in the core: a row says nothing about them any more.
struct MeanwhileRuns {
  struct Left {
    RunInfo info;
    std::uint32_t plan = 0;
  };
  std::map<std::uint64_t, Left> left = {};  // memory, as they were then
  std::unordered_set<std::uint64_t> changed = {};
  std::unordered_set<std::uint64_t> removed = {};

  bool knows(std::uint64_t run) const { return changed.contains(run) || removed.contains(run); }
};

// One page. `rows` are what the store finds for filter_of() and limit_of(), below the same number (0 = from the newest); of runs that are in
// the core, that one knows better, and then `meanwhile`. Their plans are known.
FoundRuns found_runs(const RunQuery& query, std::uint64_t below, const std::vector<store::StoredRun>& rows,
                     core::Core& core, const ShardKey& shard, const MeanwhileRuns& meanwhile = {});

}  // namespace reprise::runtime
