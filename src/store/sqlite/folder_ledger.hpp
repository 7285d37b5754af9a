// The shards of a SQLite store: files beside each other, their owners' locks as the fence.
//
// Thread safety: as ledger.hpp says.
#pragma once

#include <memory>
#include <string_view>

#include "store/ledger.hpp"

namespace reprise::store {

std::unique_ptr<Ledger> make_folder_ledger(std::string_view path, const LedgerSettings& settings);

}  // namespace reprise::store
