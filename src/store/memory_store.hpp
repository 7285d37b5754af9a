// A store in memory: for work that need not outlive the process, and the model every other store is compared with.
//
// So it is written to be plainly right rather than fast. Thread safety: as store.hpp says; one mutex guards everything.
#pragma once

#include <cstdint>
#include <memory>

#include "store/store.hpp"

namespace reprise::store {

std::unique_ptr<Store> make_memory_store(std::uint64_t secret, std::uint32_t slot = 0);

}  // namespace reprise::store
