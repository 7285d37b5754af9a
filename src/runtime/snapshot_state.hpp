// What a Snapshot holds: the store at one moment, its plans, and the runs of its journal, replayed and never live.
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
#include "runtime/snapshot.hpp"

namespace reprise::runtime {

using event::Time;

struct Snapshot::State {
  explicit State(std::unique_ptr<store::Store> opened) : store{std::move(opened)}, secret{store->secret()} {}

  std::unique_ptr<store::Store> store;
  std::uint64_t secret;
  core::Core core{0, 0};  // the runs of the journal; none of them is live
  std::vector<std::uint64_t> journal_runs;

  store::Result<void> load_plans();
  store::Result<void> load_journal();
  core::Run* revive(const store::StoredRun& row);
  core::Run* first_seen(const event::FramePart& part, std::optional<Error>& mistake);

  RunId id(std::uint64_t number, Time created) const noexcept { return id_of(secret, number, created); }
  RunInfo info_of(const core::Run& run) const;
  RunInfo info_of(const store::StoredRun& row) const;

  // The run for as long as this lives: those that are not in the journal are loaded, and leave again.
  class Loaded {
   public:
    Loaded(State& state, core::Run* run, bool fresh) : state_{&state}, run_{run}, fresh_{fresh} {}
    Loaded(const Loaded&) = delete;
    Loaded& operator=(const Loaded&) = delete;
    Loaded(Loaded&& other) noexcept
        : state_{other.state_}, run_{std::exchange(other.run_, nullptr)}, fresh_{other.fresh_} {}
    ~Loaded() {
      if (fresh_ && run_ != nullptr) state_->core.forget(*run_);
    }
    core::Run* get() const noexcept { return run_; }  // nullptr: there is no such run

   private:
    State* state_;
    core::Run* run_;
    bool fresh_;
  };
  store::Result<Loaded> load(const RunId& wanted);
  store::Result<std::string> bytes_of(const event::Payload& payload);
  store::Result<RunView> view_of(const core::Run& run);
  store::Result<void> each_chunk(const core::Run& run, const store::Store::ChunkReader& visit);
};

}  // namespace reprise::runtime
