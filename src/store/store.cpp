#include "store/store.hpp"

#include <algorithm>
#include <cctype>

#include <reprise/env.hpp>

#include "store/ledger.hpp"
#include "store/memory_store.hpp"
#include "store/sqlite/folder_ledger.hpp"
#include "store/sqlite/read_only_store.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace reprise::store {
namespace {

bool is_scheme(std::string_view text) {  // one letter alone is not: C:\runs.db should fail as a path
  return text.size() > 1 && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
         std::ranges::all_of(
             text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-'; });
}

std::unexpected<Error> refused(std::string message) {
  return std::unexpected{Error{ErrorCode::invalid, std::move(message)}};
}

Result<std::string> checked_path(std::string_view path) {
  if (path.empty()) return refused("The store has no path: write sqlite:PATH, for example sqlite:.reprise/store.db.");
  if (path.find('\0') != std::string_view::npos) return refused("The path of the store contains a zero byte.");
  if (path.starts_with("//") && !path.starts_with("///")) {
    return refused("sqlite:" + std::string{path} + " names no host: write sqlite:" + std::string{path.substr(2)} +
                   " for a path from here, or sqlite:/PATH for a full one.");
  }
  return std::string{path};
}

std::unexpected<Error> unknown_kind(std::string_view url, std::string_view scheme) {
  return refused("There is no kind of store named " + std::string{scheme} +
                 ": write memory:, sqlite:PATH, or a path alone (./" + std::string{url} + " if that is one).");
}

struct Address {
  std::string_view scheme;
  std::string_view rest;
};

// A path alone is one of sqlite.
Address address_in(std::string_view url) {
  const std::size_t colon = url.find(':');
  const std::string_view scheme = url.substr(0, std::min(colon, url.size()));
  if (colon == std::string_view::npos || !is_scheme(scheme)) return {"sqlite", url};
  return {scheme, url.substr(colon + 1)};
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

Result<std::unique_ptr<Store>> open_store(std::string_view url) {
  const auto [scheme, rest] = address_in(url);
  if (scheme == "sqlite") {
    const auto path = checked_path(rest);
    if (!path) return std::unexpected{path.error()};
    return open_sqlite_store(*path);
  }
  if (scheme == "memory") {
    if (!rest.empty())
      return refused("memory: takes nothing after the colon, and there stands " + std::string{rest} + ".");
    return make_memory_store(system_env().random_seed());
  }
  return unknown_kind(url, scheme);
}

namespace {

// One shard, for the process that has it.
class MemoryLedger final : public Ledger {
 public:
  Result<OwnedShard> claim() override { return OwnedShard{{}, make_memory_store(system_env().random_seed())}; }
  Result<OwnedShard> open_shard(const Shard&) override { return claim(); }
  std::vector<ShardView> look() override {
    std::vector<ShardView> views;
    views.push_back({{}, open_store_read_only("memory:")});
    return views;
  }
  Result<std::optional<base::Descriptor>> try_lock_keys() override { return base::Descriptor{}; }
};

}  // namespace

Result<std::unique_ptr<Ledger>> open_ledger(std::string_view url, const LedgerSettings& settings) {
  const auto [scheme, rest] = address_in(url);
  if (scheme == "memory" && rest.empty()) return std::make_unique<MemoryLedger>();
  if (scheme != "sqlite") return std::unexpected{open_store(url).error()};
  const auto path = checked_path(rest);
  if (!path) return std::unexpected{path.error()};
  return make_folder_ledger(*path, settings);
}

Result<std::unique_ptr<StoreView>> open_store_read_only(std::string_view url) {
  const auto [scheme, rest] = address_in(url);
  if (scheme == "memory") {
    return refused(
        "A store in memory: ends with the program that made it, and nobody else can look at it. "
        "Run with a sqlite:PATH store to look at runs.");
  }
  if (scheme != "sqlite") return unknown_kind(url, scheme);
  const auto path = checked_path(rest);
  if (!path) return std::unexpected{path.error()};
  return open_sqlite_store_read_only(*path);
}

}  // namespace reprise::store
