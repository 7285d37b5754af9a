// One seed, one history: a program, its callers and its troubles are drawn from the seed; then they live, and then the promises are due.
//
// A history has two parts. In the first everything goes wrong that the seed says: writes fail or are not answered, the power goes,
// handlers misbehave, operators interfere. In the second nothing goes wrong any more, and everything that can end has to end.
// Thread safety: none; several histories may run on several threads.
#pragma once

#include <cstdint>
#include <string>

namespace reprise::sim {

struct HistoryReport {
  bool ok = true;
  std::string what = {};    // the broken promise
  std::string events = {};  // of the run it concerns
  std::string settings = {};
  std::uint64_t runs = 0;
  std::uint64_t events_recorded = 0;
  std::uint64_t crashes = 0;
  std::uint64_t commits = 0;
  std::uint64_t attempts_lost = 0;
};

HistoryReport run_history(std::uint64_t seed);

}  // namespace reprise::sim
