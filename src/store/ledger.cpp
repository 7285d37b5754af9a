#include "store/ledger.hpp"

#include <reprise/env.hpp>

#include "base/store_address.hpp"
#include "store/memory_store.hpp"
#include "store/sqlite/folder_ledger.hpp"

namespace reprise::store {
namespace {

// One shard, for the process that makes it.
class PrivateLedger final : public Ledger {
 public:
  Result<OwnedShard> claim() override { return OwnedShard{{}, make_memory_store(system_env().random_seed())}; }
  Result<OwnedShard> open_shard(const Shard&) override { return claim(); }
  std::vector<ShardView> look() override {
    std::vector<ShardView> views;
    views.push_back({{}, open_store_read_only("memory:")});
    return views;
  }
  Result<KeysLock> try_lock_keys() override { return std::make_shared<int>(); }
};

}  // namespace

Result<std::unique_ptr<Ledger>> open_ledger(std::string_view url, const LedgerSettings& settings) {
  const auto address = base::parse_store_address(url);
  if (!address) return std::unexpected{Error{ErrorCode::invalid, address.error()}};
  if (address->kind == base::StoreKind::memory) return std::make_unique<PrivateLedger>();
  return make_folder_ledger(address->path, settings);
}

}  // namespace reprise::store
