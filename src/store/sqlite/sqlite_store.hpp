// The store in one SQLite file: one connection writes, a few read. docs/formats/store.md describes the file.
//
// Thread safety: as store.hpp says. One process owns a file: PATH-owner is locked as long as the store lives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/store.hpp"

namespace reprise::store {

namespace sqlite {
class Connection;
}

struct SqliteSettings {
  std::string vfs = {};                      // SQLite's own when empty; tests bring one that fails
  std::uint32_t checkpoint_pages = 4000;     // how long the WAL grows before its pages are copied into the file
  std::optional<std::uint64_t> secret = {};  // for a new store; else drawn at random
  std::uint32_t slot = 0;                    // for a new store: which shard it is
  // The steps from version 0 (an empty file) to the newest; tests bring their own. Empty: those of this program.
  std::span<Result<void> (*const)(sqlite::Connection&)> schema_steps = {};
};

// Makes the file, and the folders above it, when they are not there.
Result<std::unique_ptr<Store>> open_sqlite_store(std::string_view path, const SqliteSettings& settings = {});

}  // namespace reprise::store
