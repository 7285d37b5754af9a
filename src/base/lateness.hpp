// How late a busy machine may wake us. Who wakes later than that was halted: Ctrl-Z, a debugger, a paused container, a restart.
//
// Thread safety: a constant.
#pragma once

#include <chrono>

namespace reprise::base {

inline constexpr std::chrono::nanoseconds late_without_excuse = std::chrono::milliseconds{500};

}  // namespace reprise::base
