#include "store/sqlite/folder_ledger.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include <reprise/env.hpp>

#include "base/descriptor.hpp"
#include "base/private_file.hpp"
#include "store/real_path.hpp"
#include "store/sqlite/open_files.hpp"
#include "store/sqlite/read_only_store.hpp"
#include "store/sqlite/schema.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace reprise::store {
namespace {

namespace fs = std::filesystem;
using sqlite::Access;
using sqlite::Connection;

// What makes a file a shard of a certain store.
struct Identity {
  std::uint64_t secret = 0;  // 0: it is being made, or its maker was killed meanwhile
  std::uint32_t slot = 0;

  bool operator==(const Identity&) const = default;
};

// Of whatever version this program knows; nothing is changed. A file that is empty, or not there, has none.
Result<Identity> identity_at(const std::string& path) {
  if (!sqlite::file_id_at(path)) return Identity{};
  auto connection = Connection::open(path, Access::read, "");
  if (!connection) return std::unexpected{connection.error()};
  sqlite3_db_config(connection->get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  const auto version = sqlite::schema_version(*connection, static_cast<std::int64_t>(sqlite::schema_steps().size()));
  if (!version) return std::unexpected{version.error()};
  if (*version == 0) return Identity{};
  const auto number = [&](const std::string& name) {
    return connection->integer("SELECT value FROM meta WHERE key = '" + name + "'", "open");
  };
  const auto secret = number("secret");
  if (!secret) return std::unexpected{secret.error()};
  const auto slot = number("slot");
  if (!slot) return std::unexpected{slot.error()};
  return Identity{static_cast<std::uint64_t>(*secret), static_cast<std::uint32_t>(*slot)};
}

class FolderLedger final : public Ledger {
 public:
  FolderLedger(std::string path, std::uint32_t shards_max) : path_{std::move(path)}, shards_max_{shards_max} {}

  Result<OwnedShard> claim() override;
  Result<OwnedShard> open_shard(const Shard& shard) override { return open(shard, {}); }
  std::vector<ShardView> look() override;
  Result<KeysLock> try_lock_keys() override;

 private:
  // my.db → my-3.db
  Shard shard(std::uint32_t slot) const {
    if (slot == 0) return {0, path_};
    const fs::path path{path_};
    const std::string name = path.stem().string() + "-" + std::to_string(slot) + path.extension().string();
    return {slot, (path.parent_path() / name).string()};
  }
  static Result<OwnedShard> open(const Shard& shard, const SqliteSettings& settings) {
    auto store = open_sqlite_store(shard.path, settings);
    if (!store) return std::unexpected{store.error()};
    return OwnedShard{shard, *std::move(store)};
  }
  Result<OwnedShard> claim_further(std::uint64_t secret);
  Error all_are_owned() const {
    return {ErrorCode::full, std::to_string(shards_max_) + " processes work with " + path_ +
                                 " already, and there cannot be more. Wait until one of them has ended."};
  }

  std::string path_;
  std::uint32_t shards_max_;
};

// Whoever owns the first shard makes the store's secret, under that shard's lock. Others that start at the same moment need it for theirs.
Result<OwnedShard> FolderLedger::claim() {
  constexpr Duration look_again = std::chrono::milliseconds{5};
  constexpr int looks_max = 2000;
  for (int look = 0;; ++look) {
    auto first = open(shard(0), {});
    if (first || first.error().code != ErrorCode::store_locked) return first;
    std::error_code problem;
    if (fs::hard_link_count(path_, problem) > 1) return first;  // its log stands beside one of the names only
    const auto identity = identity_at(path_);
    if (!identity) return std::unexpected{identity.error()};
    if (identity->slot != 0) return first;  // the address names one shard of a store: it has none of its own
    if (identity->secret != 0) return claim_further(identity->secret);
    if (look == looks_max) return first;
    system_env().wait_until(system_env().now() + look_again, {});
  }
}

Result<OwnedShard> FolderLedger::claim_further(std::uint64_t secret) {
  for (std::uint32_t slot = 1; slot < shards_max_; ++slot) {
    const Shard wanted = shard(slot);
    const Identity ours{secret, slot};
    const auto identity = identity_at(wanted.path);
    const bool is_unusable = !identity && (identity.error().code == ErrorCode::store_damaged ||
                                           identity.error().code == ErrorCode::store_newer);
    const bool is_another_store = identity && identity->secret != 0 && *identity != ours;
    if (is_unusable || is_another_store) continue;
    if (!identity) return std::unexpected{identity.error()};
    auto owned = open(wanted, {.secret = secret, .slot = slot});
    if (owned || owned.error().code != ErrorCode::store_locked) return owned;
  }
  return std::unexpected{all_are_owned()};
}

std::vector<ShardView> FolderLedger::look() {
  std::vector<ShardView> views;
  std::uint64_t secret = 0;
  for (std::uint32_t slot = 0; slot < store::shards_max; ++slot) {
    const Shard looked = shard(slot);
    if (slot > 0 && !sqlite::file_id_at(looked.path)) continue;
    auto view = open_sqlite_store_read_only(looked.path);
    const bool is_being_made = !view && view.error().code == ErrorCode::not_found;
    if (slot > 0 && is_being_made) continue;
    if (view && secret == 0) secret = (*view)->secret();
    const bool is_another_store = view && slot > 0 && ((*view)->slot() != slot || (*view)->secret() != secret);
    if (!is_another_store) views.push_back({looked, std::move(view)});
  }
  return views;
}

Result<KeysLock> FolderLedger::try_lock_keys() {
  const std::string path = path_ + "-keys";
  if (auto made = base::make_private_file(path); !made)
    return std::unexpected{sqlite::error_from_errno(made.error().value(), path, "open")};
  base::Descriptor file{::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
  if (!file.is_open()) return std::unexpected{sqlite::error_from_errno(errno, path, "open")};
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return std::make_shared<base::Descriptor>(std::move(file));
  if (errno == EWOULDBLOCK || errno == EINTR) return nullptr;
  return std::unexpected{sqlite::error_from_errno(errno, path, "lock")};
}

}  // namespace

std::unique_ptr<Ledger> make_folder_ledger(std::string_view path, const LedgerSettings& settings) {
  const std::uint32_t shards = std::clamp<std::uint32_t>(settings.shards_max, 1, store::shards_max);
  return std::make_unique<FolderLedger>(real_path(path), shards);
}

}  // namespace reprise::store
