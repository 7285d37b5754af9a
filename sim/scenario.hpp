// Scenarios: a history written down by a person, as text. docs/testing.md describes the format.
//
//   flow  fetch: flaky 2 transient ; retry standard
//   at 0s    start
//   at 1.5s  crash
//   at 9s    restart
//   expect   fetch attempts == 3
//
// Everything the simulator promises is checked besides what the scenario expects. Thread safety: none needed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reprise::sim {

// What went wrong, each as file:line: sentence. Empty = everything was as expected.
std::vector<std::string> run_scenario(std::string_view file_name, std::string_view text);

}  // namespace reprise::sim
