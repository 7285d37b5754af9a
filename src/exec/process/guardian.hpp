// A small process that does one thing: when this process is gone, it kills the groups that were still running.
//
// It shares one table with us, in which every running group has a slot, and waits for the end of a pipe that only we hold open. So a
// command costs it nothing: no message, no wake-up. The child writes its own group into the slot, before it becomes the
// command; until then it holds the pipe open too, so there is no moment in which a group could be missed.
//
// Thread safety: none; the thread of the runner. Bounds: groups_max groups; those beyond are not watched.
// Not supported: groups that have left for a session of their own (daemons).
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
  using Slot = pid_t;  // 0 = free; read by the other process, so use store() outside of a child

  Guardian() noexcept;  // error() says whether it could be made
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  ~Guardian();  // nothing is killed: whoever owns the groups has ended them

  int error() const noexcept { return error_; }  // 0, or why there is none
  pid_t pid() const noexcept { return pid_; }

  Slot* take() noexcept;  // nullptr: the table is full, or there is no guardian
  void give_back(
      Slot* slot) noexcept;  // must come before the leader of the group is reaped; its number is free after that

 private:
  Slot* table_ = nullptr;
  std::size_t used_ = 0;  // slots that were ever taken
  std::vector<Slot*> free_;
  Descriptor alive_;  // the end of the pipe that is open as long as we live
  Descriptor process_;
  pid_t pid_ = 0;
  int error_ = 0;
};

}  // namespace reprise::exec
