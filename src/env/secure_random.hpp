// Bytes that nobody can guess, for tokens. Everything that only needs to be scattered uses Env::random_seed().
//
// Thread safety: may be called from any thread.
#pragma once

#include <cstddef>
#include <span>

namespace reprise {

// Throws std::system_error when the kernel has none to give, which Linux does not do once it has started.
void fill_with_secure_random(std::span<std::byte> bytes);

}  // namespace reprise
