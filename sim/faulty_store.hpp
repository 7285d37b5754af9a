// A shard that fails: around one that its owner got from the ledger, with faults drawn from the world's seed.
//
// A write may fail before it happened, or happen and say that it failed; reopen() and reads may fail for a while; the disk may be full;
// after reopen() an older copy may stand in its place.
// What reaches the inner store is durable and survives a crash of the machine; the model is told of every commit that does.
// Thread safety: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/model.hpp"
#include "sim/world.hpp"
#include "store/store.hpp"

namespace reprise::sim {

struct StoreFaults {             // chances in a thousand
  std::uint32_t fails = 0;       // append: nothing happened, and an error
  std::uint32_t unanswered = 0;  // append: it happened, and an error
  std::uint32_t reopen_fails = 0;
  std::uint32_t read_fails = 0;
  std::uint32_t forgets = 0;  // reopen: from then on, until the next start, the last two commits are missing
  Time slowest = 0;           // a write takes up to this long; 0 = no time at all
  Time exactly = 0;           // a write takes so long, and happens at the end of it
  Time slowest_read = 0;      // while the engine goes on, a reading takes up to this long, and its answer as long again
};

class FaultyStore final : public store::Store {
 public:
  FaultyStore(World& world, Model& model) : world_{world}, model_{model} {}

  StoreFaults faults;
  bool is_full = false;

  void give(std::unique_ptr<store::Store> owned) { inner_ = std::move(owned); }
  // The process ends, or does not know yet that it has lost the shard; until the next one is given there is nothing to read.
  std::unique_ptr<store::Store> take() { return std::move(inner_); }
  bool is_given() const noexcept { return inner_ != nullptr; }
  void power_cycle() { is_behind_ = false; }
  store::Store& inner() noexcept { return *inner_; }
  std::uint64_t writes() const noexcept { return writes_; }

  store::Result<void> append(const store::Commit& commit) override;
  store::Result<void> reopen() override;
  store::Result<std::uint64_t> last_commit() override;
  std::uint64_t secret() override { return inner_->secret(); }
  std::uint32_t slot() override { return inner_->slot(); }
  store::Result<std::uint64_t> last_run() override;
  store::Result<void> read_journal(const FrameReader& reader) override;
  store::Result<std::optional<store::StoredRun>> read_run(std::uint64_t run) override;
  store::Result<void> read_history(std::uint64_t run, const ChunkReader& reader) override;
  store::Result<std::vector<store::StoredRun>> read_open(std::uint64_t after_run, std::size_t limit) override;
  store::Result<std::vector<store::StoredRun>> read_due(Time before, store::DueCursor after,
                                                        std::size_t limit) override;
  store::Result<std::optional<Time>> next_due(store::DueCursor after) override;
  store::Result<std::vector<store::StoredRun>> find(const store::RunFilter& filter, std::uint64_t below_run,
                                                    std::size_t limit) override;
  store::Result<std::vector<std::uint64_t>> expired(Time ended_before, std::uint64_t keep, std::size_t limit) override;
  store::Result<std::optional<std::uint64_t>> run_of_key(std::string_view key) override;
  store::Result<std::optional<std::string>> read_payload(std::string_view hash) override;
  store::Result<std::vector<store::StoredPlan>> read_plans() override;
  store::Result<std::uint64_t> count_open() override;

 private:
  bool read_fails() { return inner_ == nullptr || world_.chance(faults.read_fails); }

  World& world_;
  Model& model_;
  std::unique_ptr<store::Store> inner_;
  std::uint64_t writes_ = 0;
  bool is_behind_ = false;
};

}  // namespace reprise::sim
