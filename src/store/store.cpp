#include "store/store.hpp"

#include <reprise/env.hpp>

#include "base/store_address.hpp"
#include "store/memory_store.hpp"
#include "store/sqlite/read_only_store.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace reprise::store {
namespace {

std::unexpected<Error> refused(std::string message) {
  return std::unexpected{Error{ErrorCode::invalid, std::move(message)}};
}

}  // namespace

void Commit::clear() {
  id = 0;
  frame = {};
  images.clear();
  keys.clear();
  payloads.clear();
  plans.clear();
  cut = 0;
  removals.clear();
  bytes.clear();
}

std::vector<Result<void>> append_each(std::span<const ShardCommit> commits) {
  std::vector<Result<void>> results;
  results.reserve(commits.size());
  for (const auto& [shard, commit] : commits) results.push_back(shard->append(*commit));
  return results;
}

Result<std::unique_ptr<Store>> open_store(std::string_view url) {
  const auto address = base::parse_store_address(url);
  if (!address) return refused(address.error());
  if (address->kind == base::StoreKind::memory) return make_memory_store(system_env().random_seed());
  return open_sqlite_store(address->path);
}

Result<std::unique_ptr<StoreView>> open_store_read_only(std::string_view url) {
  const auto address = base::parse_store_address(url);
  if (!address) return refused(address.error());
  if (address->kind == base::StoreKind::memory) {
    return refused(
        "A store in memory: ends with the program that made it, and nobody else can look at it. "
        "Run with a sqlite:PATH store to look at runs.");
  }
  return open_sqlite_store_read_only(address->path);
}

}  // namespace reprise::store
