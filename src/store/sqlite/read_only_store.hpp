// A SQLite store for those who only look: no owner's lock, no writing, no checkpoint.
//
// One connection holds one read transaction from the opening to let_go(), so everything that is read until then fits together. The owner
// may go on writing; its WAL cannot be shortened meanwhile. After that each call has a transaction of its own.
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string_view>

#include "store/store.hpp"

namespace reprise::store {

// Errors: not_found (no file, or nothing in it yet), store_newer, store_damaged, and store_read_only when the folder does not let
// SQLite make the -shm file that readers share with the owner.
Result<std::unique_ptr<StoreView>> open_sqlite_store_read_only(std::string_view path);

}  // namespace reprise::store
