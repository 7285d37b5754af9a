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
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/shard_snapshot.hpp"
#include "store/ledger.hpp"

namespace reprise::runtime {

class Snapshot {
 public:
  // `not_found` when there is no such store.
  static std::expected<Snapshot, Error> open(std::string_view url);
  static std::expected<Snapshot, Error> open(std::vector<store::ShardView> shards);
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();

  // Why a shard is missing from all that follows; its path is in the message.
  const std::vector<Error>& troubles() const noexcept;
  std::vector<store::Shard> shards() const;  // those that can be read

  // Newest first, by time of creation.
  std::expected<RunPage, Error> find(const RunQuery& query, std::string_view cursor = {});
  std::expected<std::optional<RunId>, Error> find_key(std::string_view key);
  // A full id, a unique prefix of one (at least 4 characters), @last or @last-failed. The error is a sentence; code `not_found` or,
  // when several runs match, `invalid`.
  std::expected<RunId, Error> resolve(std::string_view name);
  // Of all runs, newest run first; at most `limit`.
  std::expected<std::vector<DeadLetter>, Error> dead_letters(std::size_t limit);

  // Which shard has the run, if it is there. `not_found`: the id is not of this store.
  std::expected<store::Shard, Error> shard_of(const RunId& id) const;
  // As in shard_snapshot.hpp, of the shard that has the run.
  std::expected<std::optional<RunView>, Error> run(const RunId& id);
  std::expected<std::vector<Event>, Error> events(const RunId& id);
  std::expected<void, Error> each_event(const RunId& id, const std::function<bool(Event&&)>& visit);
  std::expected<std::string, Error> payload(const RunId& id, std::string_view hash);
  // What the failed attempt left behind, in the failure itself, wherever it was kept. What cannot be read stays as it is.
  void add_evidence(const RunId& id, Failure& failure);
  std::expected<std::vector<std::string>, Error> item_inputs(const RunId& id, std::string_view step, std::size_t limit);
  std::expected<std::string, Error> item_input(const RunId& id, std::string_view step, std::uint32_t item);
  std::expected<Replayed, Error> replay(const RunId& id);
  std::expected<std::vector<DeadLetter>, Error> dead_letters_of(const RunId& id, std::size_t limit);

 private:
  struct State;
  explicit Snapshot(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace reprise::runtime
