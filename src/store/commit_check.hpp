// What every store refuses before it writes anything: commits out of order, and commits that contradict themselves.
//
// Thread safety: none needed, everything is an argument.
#pragma once

#include <cstdint>

#include "store/store.hpp"

namespace reprise::store {

Result<void> check(const Commit& commit, std::uint64_t last_commit);

}  // namespace reprise::store
