#include "exec/process/guardian.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>

#include "exec/process/uninstrumented.hpp"

namespace reprise::exec {
namespace {

constexpr std::size_t table_bytes = Guardian::groups_max * sizeof(Guardian::Slot);

// The life of the guardian. The process it was copied from may have had threads that held locks: nothing but system calls here, and
// nothing of the C library that keeps a state. Every signal is blocked, so that a Ctrl-C or a TERM for everybody leaves it alone.
[[noreturn]] REPRISE_UNINSTRUMENTED void guard(const Guardian::Slot* table, int alive) {
  ::syscall(SYS_setsid);
  ::syscall(SYS_prctl, PR_SET_NAME, "reprise-guard", 0, 0, 0);
  ::syscall(SYS_chdir, "/");
  ::syscall(SYS_dup3, alive, 0, 0);
  if (::syscall(SYS_close_range, 1U, ~0U, 0U) != 0) {
    for (int number = 1; number < descriptors_without_close_range; ++number) ::syscall(SYS_close, number);
  }
  char byte = 0;
  while (::syscall(SYS_read, 0, &byte, 1) < 0 && errno == EINTR) continue;
  for (std::size_t index = 0; index < Guardian::groups_max; ++index) {
    const pid_t group = __atomic_load_n(&table[index], __ATOMIC_ACQUIRE);
    if (group > 1) ::syscall(SYS_kill, -group, SIGKILL);
  }
  ::syscall(SYS_exit_group, 0);
  __builtin_unreachable();
}

}  // namespace

Guardian::Guardian() noexcept {
  int ends[2] = {-1, -1};
  void* const memory =
      ::mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || ::pipe2(ends, O_CLOEXEC) != 0) {
    error_ = errno;
    if (memory != MAP_FAILED) ::munmap(memory, table_bytes);
    return;
  }
  table_ = static_cast<Slot*>(memory);
  const Descriptor watched{ends[0]};
  alive_ = Descriptor{ends[1]};

  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Not fork(): no handlers of other libraries should run in there. No signal at its end either: it is nobody's business.
  int process = -1;
  const long pid = ::syscall(SYS_clone, static_cast<unsigned long>(CLONE_PIDFD), nullptr, &process, nullptr, nullptr);
  if (pid == 0) guard(table_, watched.get());
  error_ = pid < 0 ? errno : 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error_ != 0) return;
  pid_ = static_cast<pid_t>(pid);
  process_ = Descriptor{process};
}

Guardian::~Guardian() {
  if (process_.is_open()) {
    ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
    siginfo_t info;
    while (::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED | __WALL) < 0 && errno == EINTR)
      continue;
  }
  if (table_ != nullptr) ::munmap(table_, table_bytes);
}

Guardian::Slot* Guardian::take() noexcept {
  if (!process_.is_open()) return nullptr;
  if (!free_.empty()) {
    Slot* const slot = free_.back();
    free_.pop_back();
    return slot;
  }
  return used_ < groups_max ? &table_[used_++] : nullptr;
}

void Guardian::give_back(Slot* slot) noexcept {
  if (slot == nullptr) return;
  __atomic_store_n(slot, 0, __ATOMIC_RELEASE);
  free_.push_back(slot);
}

}  // namespace reprise::exec
