// What a ShardSnapshot holds: the plans and the runs of the journal at one moment, replayed and never live, and a door to the rest.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/core.hpp"
#include "event/codec.hpp"
#include "runtime/ids.hpp"
#include "runtime/shard_snapshot.hpp"

namespace reprise::runtime {

using event::Time;

core::FactsDecoder facts_decoder();

struct ShardSnapshot::State {
  explicit State(std::unique_ptr<store::StoreView> opened)
      : store{std::move(opened)}, secret{store->secret()}, slot{store->slot()} {
    core.use(facts_decoder());
  }

  std::unique_ptr<store::StoreView> store;
  std::uint64_t secret;
  std::uint32_t slot;
  core::Core core{0, 0};                    // the runs of the journal, and the visited one; none of them is live
  std::vector<std::uint64_t> journal_runs;  // newest first
  std::uint64_t visited = 0;                // the run whose row was read last; 0 = none

  store::Result<void> load_plans();  // those that are not known yet
  bool is_in_journal(std::uint64_t run) const;
  store::Result<void> load_journal();
  core::Run* revive(const store::StoredRun& row);
  core::Run* first_seen(const event::FramePart& part, std::optional<Error>& mistake);

  RunId id(std::uint64_t number, Time created) const noexcept { return id_of(secret, number, created, slot); }
  RunInfo info_of(const core::Run& run) const;
  RunInfo info_of(const store::StoredRun& row) const;

  // nullptr: there is no such run. One that is not in the journal is loaded, and stays as it is now until another one is.
  store::Result<core::Run*> load(const RunId& wanted);
  store::Result<std::string> bytes_of(const event::Payload& payload);
  store::Result<RunView> view_of(const core::Run& run);
  store::Result<void> each_chunk(const core::Run& run, const store::Store::ChunkReader& visit);
};

}  // namespace reprise::runtime
