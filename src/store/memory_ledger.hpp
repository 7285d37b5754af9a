// A ledger in memory: shards with owners, for the simulator and as the model that other ledgers are compared with.
//
// What a folder's locks cannot show it can: ownership that lapses while the owner still works, as a lease does. From then on the owner's
// store refuses to append with `fenced`, whether or not the shard has a new owner; it may still read.
//
// Views see what is there when they are asked, as others do after let_go().
// Thread safety: as ledger.hpp says; lapse() beside anything.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "store/ledger.hpp"

namespace reprise::store {

class MemoryLedger final : public Ledger {
 public:
  MemoryLedger(std::uint64_t secret, const LedgerSettings& settings);
  ~MemoryLedger() override;

  Result<OwnedShard> claim() override;
  Result<OwnedShard> open_shard(const Shard& shard) override;
  std::vector<ShardView> look() override;
  std::vector<Result<void>> append(std::span<const ShardCommit> commits) override;
  Result<KeysLock> try_lock_keys() override;

  // The shard's owner, if there is one, owns it no more. Not while an append is in progress: it waits.
  void lapse(std::uint32_t slot);

  struct Place;  // one shard: what it holds, and who may write

 private:
  std::uint64_t secret_;
  std::uint32_t shards_max_;
  std::shared_ptr<std::mutex> owners_ = std::make_shared<std::mutex>();
  std::vector<std::shared_ptr<Place>> places_;  // by slot
  std::weak_ptr<const void> keys_lock_;
};

}  // namespace reprise::store
