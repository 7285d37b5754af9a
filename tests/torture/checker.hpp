// Looks at what a tortured program left behind, and says what should not be: the promises of the engine, seen from outside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace reprise::torture {

struct Findings {
  std::vector<std::string> mistakes;  // the first few
  std::uint64_t more = 0;             // and how many there were beyond those
  std::uint64_t runs = 0;
  std::uint64_t attempts = 0;
  std::uint64_t lost = 0;  // attempts that a kill ended
  std::uint64_t retries = 0;
  std::uint64_t interrupted = 0;  // attempts that an orderly stop ended
  std::uint64_t recovered = 0;    // runs times restarts that found an attempt running

  void add(std::string mistake);
};

// The program must have ended, with everything done. Opens the store, and reads LOG and ACCEPTED as torture_worker.cpp describes them.
Findings check(const std::string& store, const std::string& log, const std::string& accepted);

}  // namespace reprise::torture
