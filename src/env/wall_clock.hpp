// The time of day, for dates that other programs wrote. Everything else uses Env's steady clock.
#pragma once

#include <chrono>

namespace reprise {

std::chrono::sys_seconds wall_clock_now() noexcept;

}  // namespace reprise
