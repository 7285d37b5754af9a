#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace reprise::base {

void check_failed(const char* condition, const char* file, int line, std::uint64_t run) noexcept {
  char of_run[40] = "";
  if (run != 0) std::snprintf(of_run, sizeof of_run, " (run number %llu)", static_cast<unsigned long long>(run));
  std::fprintf(
      stderr,
      "reprise: a check of its own work failed at %s:%d: %s%s. This is a mistake in reprise, and it stops before it "
      "writes: the store is as it was. Please report this line.\n",
      file, line, condition, of_run);
  std::abort();
}

}  // namespace reprise::base
