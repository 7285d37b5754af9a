// Checks of our own work, which stay on in release: REPRISE_CHECK(state.running > 0) before a hand-kept counter goes down, or
// REPRISE_CHECK(run.preparing > 0, run.number) where a run is at hand.
//
// They are for our own mistakes and never reachable from input. A failed one says where, and which run, and stops the process at once: before it
// writes, so that the store is as it was. Thread safety: any thread.
#pragma once

#include <cstdint>

namespace reprise::base {

[[noreturn]] void check_failed(const char* condition, const char* file, int line, std::uint64_t run = 0) noexcept;

}  // namespace reprise::base

// A run's number may follow the condition.
#define REPRISE_CHECK(condition, ...) \
  (static_cast<bool>(condition)       \
       ? void()                       \
       : ::reprise::base::check_failed(#condition, __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__))
