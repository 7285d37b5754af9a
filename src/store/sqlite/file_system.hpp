// Where a store may be kept: on a file system that one machine has for itself.
//
// Readers share memory with the owner (PATH-shm) and the owner is known by a lock. Over a network neither holds between machines, and
// SQLite warns of lost commits there. Thread safety: free functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "store/store.hpp"

namespace reprise::store::sqlite {

// The name of a network file system by its number in statfs(2); empty: it is none that we know.
std::string_view network_file_system(std::uint32_t type) noexcept;

// The same of a folder that is there.
std::string_view network_file_system_at(const std::string& folder);

// Error: the folder of this store is on a network file system. One that cannot be asked is accepted: opening will tell.
Result<void> check_file_system(const std::string& store_path);

}  // namespace reprise::store::sqlite
