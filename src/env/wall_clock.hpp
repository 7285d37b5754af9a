// The time of day, for dates that other programs wrote and for what is stored. Everything else uses Env's steady clock.
#pragma once

#include <chrono>

namespace reprise {

std::chrono::sys_time<std::chrono::nanoseconds> wall_clock_now_exactly() noexcept;
std::chrono::sys_seconds wall_clock_now() noexcept;

}  // namespace reprise
