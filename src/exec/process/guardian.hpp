// A small process that does one thing: when this process is gone, it kills the groups that were still running.
//
// It shares one table with us, in which every running group has a slot, and waits for the end of a pipe that only we hold open. So a
// command costs it nothing: no message, no wake-up. The child writes its own group into the slot, before it becomes the
// command; until then it holds the pipe open too, so there is no moment in which a group could be missed.
//
// It has no name of ours, neither as process nor as command line: what kills all processes of this program by name (pkill, pkill -f, killall)
// leaves it alone. Who watches us is watched as well: process() becomes readable when it was killed, and replace() makes another one,
// which finds all running groups in the same table.
//
// Thread safety: none; the thread of the runner, once that has begun. Bounds: groups_max groups; those beyond are not watched.
// guardians_max guardians one after the other: where each of them is killed at once, none can be had.
// Not supported: groups that have left for a session of their own (daemons). Both killed at the same moment: spawn.cpp sees to it that
// the commands themselves go, not those that they have started.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/descriptor.hpp"

namespace reprise::exec {

using base::Descriptor;

class Guardian {
 public:
  static constexpr std::size_t groups_max = std::size_t{1} << 18U;
  static constexpr int guardians_max = 100;
  using Slot = pid_t;  // 0 = free; read by the other process, so use store() outside of a child

  Guardian() noexcept;  // error() says whether it could be made
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  ~Guardian();  // nothing is killed: whoever owns the groups has ended them

  int error() const noexcept { return error_; }            // 0, or why there is none
  int process() const noexcept { return process_.get(); }  // readable once it has ended
  void replace() noexcept;                                 // after it has ended; error() says whether there is another

  Slot* take() noexcept;  // nullptr: the table is full, or there is none
  void give_back(
      Slot* slot) noexcept;  // must come before the leader of the group is reaped; its number is free after that

 private:
  void make() noexcept;
  void end() noexcept;

  Slot* table_ = nullptr;
  std::size_t used_ = 0;  // slots that were ever taken
  std::vector<Slot*> free_;
  Descriptor alive_;  // the end of the pipe that is open as long as we live
  Descriptor process_;
  int made_ = 0;
  int error_ = 0;
};

}  // namespace reprise::exec
