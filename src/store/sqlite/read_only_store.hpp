// A SQLite store for those who only look: no owner's lock, no writing, no checkpoint, one moment in time.
//
// One connection holds one read transaction from the opening to the end, so everything that is read fits together. The owner may go on
// writing; its WAL cannot be shortened meanwhile, so look and let go.
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string_view>

#include "store/store.hpp"

namespace reprise::store {

// Errors: not_found (no file, or nothing in it yet), store_newer, store_damaged, and store_read_only when the folder does not let
// SQLite make the -shm file that readers share with the owner.
Result<std::unique_ptr<Store>> open_sqlite_store_read_only(std::string_view path);

}  // namespace reprise::store
