// Which processes live in a folder: what a run has started and must not leave behind.
//
// A process belongs to a folder if it works there or was given it as HOME (FlowFolder gives every command its folder so). Zombies do
// not count: they have ended.
// Thread safety: none needed, everything is read from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace reprise::testing_support {

struct LivingProcess {
  pid_t pid = 0;
  std::string name;          // the program's, at most 15 characters
  std::string command_line;  // words separated by spaces
};

std::vector<LivingProcess> processes_in(const std::string& folder);

// What is left once everything had a minute to go away, in words; "" when nothing is.
std::string leftovers_in(const std::string& folder);

// The process of the reprise command that works in this folder; 0: there is none.
pid_t reprise_in(const std::string& folder);

// The most memory it has ever had, in MiB. 0: it is gone.
std::uint64_t peak_memory_mib(pid_t pid);

// Looks again and again, for two minutes; false: it never came true.
bool eventually(const std::function<bool()>& is_true);

}  // namespace reprise::testing_support
