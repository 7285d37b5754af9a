// A store as it is at this moment, all its shards as one: what `runs`, `show`, `why` and the other commands that look stand on.
//
//   auto snapshot = Snapshot::open("sqlite:.reprise/reprise.db");
//   for (const RunInfo& run : snapshot->find({.status = RunStatus::failed})->runs) …
//
// Each shard is seen as it was at one moment (shard_snapshot.hpp); there is no common moment of all. A shard that cannot be read is named in
// troubles(), and the others are shown. Bounds: store::shards_max shards, one open file each.
// Thread safety: one thread at a time.
#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/run_reader.hpp"
#include "runtime/shard_reader.hpp"
#include "store/ledger.hpp"

namespace reprise::runtime {

class Snapshot final : public RunReader {
 public:
  // `not_found` when there is no such store.
  static std::expected<Snapshot, Error> open(std::string_view url);
  static std::expected<Snapshot, Error> open(std::vector<store::ShardView> shards);
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot() override;

  // That shard is read by its owner, which is this process: its engine's reader, in place of the stored state.
  void read_live(const store::Shard& shard, std::unique_ptr<ShardReader> reader);

  // Why a shard is missing from all that follows; its path is in the message.
  const std::vector<Error>& troubles() const noexcept;
  std::vector<store::Shard> shards() const;  // those that can be read
  // Which shard has the run, if it is there. `not_found`: the id is not of this store.
  std::expected<store::Shard, Error> shard_of(const RunId& id) const;

  std::expected<RunPage, Error> find(const RunQuery& query, std::string_view cursor = {}) override;
  std::expected<std::optional<RunId>, Error> find_key(std::string_view key) override;
  std::expected<std::optional<RunView>, Error> run(const RunId& id) override;
  std::expected<void, Error> each_event(const RunId& id, const std::function<bool(Event&&)>& visit) override;
  std::expected<void, Error> each_item(const RunId& id, const std::function<bool(const ItemView&)>& visit) override;
  std::expected<std::string, Error> item_input(const RunId& id, std::string_view step, std::uint32_t item) override;
  std::expected<std::vector<std::string>, Error> item_inputs(const RunId& id, std::string_view step,
                                                             std::size_t limit) override;
  std::expected<Replayed, Error> replay(const RunId& id) override;
  std::expected<std::vector<DeadLetter>, Error> dead_letters(std::size_t limit) override;
  std::expected<std::vector<DeadLetter>, Error> dead_letters_of(const RunId& id, std::size_t limit) override;
  std::expected<std::string, Error> payload(const RunId& id, std::string_view hash) override;

 private:
  struct State;
  explicit Snapshot(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::runtime
