#include "env/wall_clock.hpp"

namespace reprise {

std::chrono::sys_seconds wall_clock_now() noexcept {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace reprise
