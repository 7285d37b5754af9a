// Starts one command: everything that happens between us and exec().
//
// The child shares our memory until it has become the command (CLONE_VM | CLONE_VFORK), so nothing is copied, whatever our size, and it can
// tell exactly what went wrong. It leads a group of its own, has default signal handling with nothing blocked (only SIGHUP stays ignored if we
// ignore it, as nohup has it), and only the three descriptors it is given. It is killed when the thread that started it ends.
//
// A file that the kernel does not know how to execute is given to /bin/sh, as execvp() does: a script without #! is a shell script.
//
// Thread safety: one Spawner, one thread; that thread must have all signals blocked, or a handler of ours could run in the child.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "base/descriptor.hpp"
#include "exec/process/guardian.hpp"
#include "exec/process/process_runner.hpp"

namespace reprise::exec {

// Each at least 3, so that none of them is overwritten while the others are put in place.
struct StandardDescriptors {
  int in = -1;
  int out = -1;
  int err = -1;
};

struct Spawned {
  pid_t pid = 0;  // also the number of its group
  Descriptor process;
};

struct SpawnProblem {
  int error = 0;
  std::string words;
};

class Spawner {
 public:
  Spawner();

  std::expected<Spawned, SpawnProblem> spawn(const ProcessSpec& spec, StandardDescriptors descriptors,
                                             Guardian::Slot* slot);

 private:
  std::unique_ptr<std::byte[]> stack_;  // of the child, until exec
};

// Where the command may be found, in this order: argv[0] itself if it has a slash, otherwise in each folder of PATH in `env`.
std::vector<std::string> places_to_look(const ProcessSpec& spec);

// Why nothing could be executed, looked up afterwards: what is there, what is missing, what is not allowed.
SpawnProblem explain_exec_problem(const ProcessSpec& spec, const std::vector<std::string>& places, int error);
SpawnProblem explain_directory_problem(const std::string& directory, int error);
SpawnProblem explain_input_problem(const std::string& file, int error);

}  // namespace reprise::exec
