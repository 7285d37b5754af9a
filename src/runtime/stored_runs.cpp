#include "runtime/stored_runs.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "event/attributes.hpp"
#include "event/codec.hpp"
#include "runtime/parentage.hpp"

namespace reprise::runtime {
namespace {

using event::Time;

WallTime wall_time(Time time) { return WallTime{Duration{time}}; }

Error damaged(std::string message) { return Error{ErrorCode::store_damaged, std::move(message)}; }

// Reads the list of runs that have an image in the commit of this frame.
template <class F>
void for_each_imaged(const event::FramePart& part, F&& visit) {
  event::ByteReader in{part.chunk.substr(std::min(event::chunk_header_bytes, part.chunk.size()))};
  std::uint64_t run = 0;
  while (!in.at_end()) {
    run += static_cast<std::uint64_t>(in.signed_varint());
    visit(run);
  }
}

}  // namespace

// ---- one run ----------------------------------------

RunInfo info_of(const core::Run& run, const ShardKey& shard) {
  RunInfo info{.id = shard.id(run.number, run.created),
               .name = run.plan->plan->name,
               .status = run.status,
               .created = wall_time(run.created),
               .key = run.key,
               .changed = wall_time(run.last_time)};
  if (run.ended != 0) info.ended = wall_time(run.ended);
  if (const auto place = parent_of(run)) info.parent = place->run;
  if (run.facts != nullptr) info.attributes = event::read_attributes(run.facts->bytes);
  return info;
}

RunInfo info_of(const store::StoredRun& row, const ShardKey& shard, std::string_view name) {
  RunInfo info{.id = shard.id(row.run, row.created),
               .name = std::string{name},
               .status = row.status,
               .created = wall_time(row.created),
               .key = row.key};
  if (row.ended != 0) info.ended = wall_time(row.ended);
  return info;
}

core::Run* revive(core::Core& core, const store::StoredRun& row) {
  core::Run& run = core.add(row.run);
  if (core.restore(run, row.state)) {
    run.has_row = true;
    return &run;
  }
  core.forget(run);
  return nullptr;
}

Error unreadable_row(std::uint64_t run) { return damaged("the row of run " + std::to_string(run) + " cannot be read"); }

// ---- the journal ----------------------------------------

namespace {

class JournalReplay {
 public:
  JournalReplay(store::Store& store, core::Core& core, const JournalVisitor& visitor)
      : store_{store}, core_{core}, visitor_{visitor} {}

  // Two passes: a run's events count only from its last image on, and most runs in the journal have ended.
  store::Result<void> replay() {
    auto first = read_frames([&](std::uint64_t commit, const event::FramePart& part) {
      if (part.run == 0) for_each_imaged(part, [&](std::uint64_t run) { imaged_[run] = commit; });
    });
    if (!first) return first;
    return read_frames([&](std::uint64_t commit, const event::FramePart& part) { apply(commit, part); });
  }

 private:
  template <class Visit>
  store::Result<void> read_frames(const Visit& visit) {
    auto read = store_.read_journal([&](std::uint64_t commit, std::string_view frame) {
      event::FrameReader reader{frame};
      event::FramePart part;
      while (!mistake_ && reader.next(part)) visit(commit, part);
      if (!mistake_ && reader.newer())
        mistake_ = Error{ErrorCode::store_newer, "the journal was written by a newer version of Reprise"};
      if (!mistake_ && !reader.ok())
        mistake_ = damaged("commit " + std::to_string(commit) + " of the journal cannot be read");
      return !mistake_;
    });
    if (read && mistake_) return std::unexpected{*mistake_};
    return read;
  }

  void apply(std::uint64_t commit, const event::FramePart& part) {
    if (part.run == 0) return;
    if (visitor_.named) visitor_.named(part.run);
    const auto image = imaged_.find(part.run);
    if (image != imaged_.end() && image->second >= commit) return;
    core::Run* run = core_.find(part.run);
    if (run == nullptr) {
      run = first_seen(part);
      if (run == nullptr) return;
      visitor_.found(*run, commit);
    }
    if (!core_.replay(*run, part.chunk, part.first_sequence))
      mistake_ = damaged("the events of run " + std::to_string(part.run) + " do not fit together");
  }

  // New, or one whose image is older than this.
  core::Run* first_seen(const event::FramePart& part) {
    if (part.first_sequence <= 1) return &core_.add(part.run);
    const auto row = store_.read_run(part.run);
    if (!row) {
      mistake_ = row.error();
      return nullptr;
    }
    core::Run* const run = *row ? visitor_.revive(**row) : nullptr;
    if (run == nullptr) mistake_ = damaged("run " + std::to_string(part.run) + " is in the journal and has no row");
    return run;
  }

  store::Store& store_;
  core::Core& core_;
  const JournalVisitor& visitor_;
  std::unordered_map<std::uint64_t, std::uint64_t> imaged_;  // run → commit of its last image
  std::optional<Error> mistake_;
};

}  // namespace

store::Result<void> replay_journal(store::Store& store, core::Core& core, const JournalVisitor& visitor) {
  return JournalReplay{store, core, visitor}.replay();
}

// ---- lists ----------------------------------------

std::size_t limit_of(const RunQuery& query) noexcept { return std::clamp<std::size_t>(query.limit, 1, page_max); }

store::RunFilter filter_of(const RunQuery& query) noexcept {
  store::RunFilter filter{.status = query.status};
  if (query.created_from) filter.created_from = query.created_from->time_since_epoch().count();
  if (query.created_before) filter.created_before = query.created_before->time_since_epoch().count();
  return filter;
}

FoundRuns found_runs(const RunQuery& query, std::uint64_t below, const std::vector<store::StoredRun>& rows,
                     core::Core& core, const ShardKey& shard, const MeanwhileRuns& meanwhile) {
  using Found = MeanwhileRuns::Left;
  const store::RunFilter filter = filter_of(query);
  const std::size_t limit = limit_of(query);
  const std::uint64_t lowest = rows.size() == limit ? rows.back().run : 0;  // there may be more rows below it
  const auto is_wanted = [&](std::uint64_t run, RunStatus status, Time created) {
    return (below == 0 || run < below) && run >= lowest && (!query.status || status == *query.status) &&
           created >= filter.created_from && created < filter.created_before;
  };
  std::map<std::uint64_t, Found, std::greater<>> found;
  for (const store::StoredRun& row : rows) {
    if (core.find(row.run) != nullptr || meanwhile.knows(row.run)) continue;
    const core::NumberedPlan* const plan = core.plan(row.plan);
    found.emplace(row.run, Found{info_of(row, shard, plan != nullptr ? plan->plan->name : ""), row.plan});
  }
  for (const auto& [number, left] : meanwhile.left) {
    if (core.find(number) != nullptr || meanwhile.removed.contains(number)) continue;
    if (is_wanted(number, left.info.status, left.info.created.time_since_epoch().count())) found.emplace(number, left);
  }
  core.for_each_run([&](const core::Run& run) {
    if (run.plan == nullptr || !is_wanted(run.number, run.status, run.created)) return;
    found.emplace(run.number, Found{info_of(run, shard), run.plan->number});
  });
  FoundRuns page{.next_below = lowest};
  for (auto& [number, run] : found) {
    if (page.runs.size() == limit) {
      page.next_below = number + 1;
      break;
    }
    if (!query.name.empty() && run.info.name != query.name) continue;
    page.runs.push_back(std::move(run.info));
    page.plans.push_back(run.plan);
  }
  return page;
}

}  // namespace reprise::runtime
