// For code that runs between fork and exec: sanitizers must not add anything to it, because their state belongs to another process.
//
// Thread safety: nothing here has a state.
#pragma once

#define REPRISE_UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

namespace reprise::exec {

// Kernels and sandboxes without close_range(): so many descriptors are closed one by one.
inline constexpr int descriptors_without_close_range = 4096;

}  // namespace reprise::exec
