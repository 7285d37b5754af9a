// A store as a set of shards: how a process gets one to work with, and how those who look see all of them.
//
// A shard is what store.hpp describes: one journal, own run numbers, one owner at a time. The shard with slot 0 is the file that the
// store's address names; further ones stand beside it (my.db: my-1.db, my-2.db, …) and are made when all others have an owner. They are
// never removed, and taken again when their owner has ended, however it ended. All shards of a store share its secret, and ids carry the
// slot: so an id says which shard has its run. docs/decisions/0015 says why.
//
// Thread safety: one thread at a time, but append() beside any other; any number of processes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.hpp"

namespace reprise::store {

inline constexpr std::uint32_t shards_max = 64;

struct Shard {
  std::uint32_t slot = 0;
  std::string path = {};  // full, without links; empty: in memory

  bool operator==(const Shard&) const = default;
};

struct OwnedShard {
  Shard shard;
  std::unique_ptr<Store> store;
};

struct ShardView {
  Shard shard;
  Result<std::unique_ptr<StoreView>> view;  // or why this one cannot be looked at
};

using KeysLock = std::shared_ptr<const void>;  // held as long as it lives

class Ledger {
 public:
  Ledger() = default;
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  virtual ~Ledger() = default;

  // The lowest shard that nobody owns, made if need be. `full`: there are as many as there may be, and all have owners.
  virtual Result<OwnedShard> claim() = 0;
  // This one. `store_locked`: another process has it.
  virtual Result<OwnedShard> open_shard(const Shard& shard) = 0;
  // All there are, by slot, each for looking only. The one with slot 0 is always among them; `not_found` if it is not there.
  virtual std::vector<ShardView> look() = 0;
  // Commits of shards that this ledger gave to this process, at most one for each: as Store::append(), with an answer for each. Whether a shard
  // is fenced is asked for all of them at one moment if the ledger can; each commit is all or nothing, and so is a transaction of several.
  virtual std::vector<Result<void>> append(std::span<const ShardCommit> commits) { return append_each(commits); }
  // For the look-up of a key in all shards and the submit that follows: one process at a time. nullptr: another process has it.
  virtual Result<KeysLock> try_lock_keys() = 0;
};

struct LedgerSettings {
  std::uint32_t shards_max = store::shards_max;  // 1 to 64; tests take fewer
};

// As open_store().
Result<std::unique_ptr<Ledger>> open_ledger(std::string_view url, const LedgerSettings& settings = {});

}  // namespace reprise::store
