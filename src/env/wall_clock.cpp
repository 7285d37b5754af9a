#include "env/wall_clock.hpp"

namespace reprise {

std::chrono::sys_time<std::chrono::nanoseconds> wall_clock_now_exactly() noexcept {
  return std::chrono::system_clock::now();
}

std::chrono::sys_seconds wall_clock_now() noexcept {
  return std::chrono::floor<std::chrono::seconds>(wall_clock_now_exactly());
}

}  // namespace reprise
