#include "exec/process/guardian.hpp"

#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "exec/process/uninstrumented.hpp"

namespace reprise::exec {
namespace {

constexpr std::size_t table_bytes = Guardian::groups_max * sizeof(Guardian::Slot);
constexpr const char name[] = "rp-guardian";  // at most 15 characters, and none that a search for us would find

// Where the kernel reads the command line of this process.
struct CommandLine {
  char* begin = nullptr;
  std::size_t size = 0;
};

// proc(5): arg_start and arg_end are the 48th and 49th field of stat. The second one, a name in brackets, may hold blanks.
CommandLine command_line() noexcept {
  char text[2048];
  const Descriptor file{::open("/proc/self/stat", O_RDONLY | O_CLOEXEC)};
  const ssize_t size = file.is_open() ? ::read(file.get(), text, sizeof text) : 0;
  if (size <= 0) return {};
  std::string_view fields{text, static_cast<std::size_t>(size)};
  fields.remove_prefix(std::min(fields.rfind(')'), fields.size()));
  constexpr int fields_before_arg_start = 46;  // after the name
  for (int field = 0; field < fields_before_arg_start; ++field) {
    const std::size_t blank = fields.find(' ');
    if (blank == std::string_view::npos) return {};
    fields.remove_prefix(blank + 1);
  }
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  const char* const last = fields.data() + fields.size();
  const auto [next, problem] = std::from_chars(fields.data(), last, begin);
  if (problem != std::errc{} || next == last) return {};
  if (std::from_chars(next + 1, last, end).ec != std::errc{} || begin == 0 || end <= begin) return {};
  return {reinterpret_cast<char*>(begin), end - begin};
}

// In the guardian's own copy of our memory.
REPRISE_UNINSTRUMENTED void take_name(CommandLine line) {
  ::syscall(SYS_prctl, PR_SET_NAME, name, 0, 0, 0);
  for (std::size_t at = 0; at < line.size; ++at) {
    volatile char& letter = line.begin[at];  // or this becomes a call of memset(), which sanitizers replace
    letter = at + 1 < sizeof name && at + 1 < line.size ? name[at] : '\0';
  }
}

// The life of the guardian. The process it was copied from may have had threads that held locks: nothing but system calls here, and
// nothing of the C library that keeps a state. Every signal is blocked, so that a Ctrl-C or a TERM for everybody leaves it alone.
[[noreturn]] REPRISE_UNINSTRUMENTED void guard(const Guardian::Slot* table, int alive, CommandLine line) {
  take_name(line);
  ::syscall(SYS_setsid);
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
  void* const memory =
      ::mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    error_ = errno;
    return;
  }
  table_ = static_cast<Slot*>(memory);
  make();
}

void Guardian::make() noexcept {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    error_ = errno;
    return;
  }
  const Descriptor watched{ends[0]};
  alive_ = Descriptor{ends[1]};
  const CommandLine line = command_line();
  ++made_;

  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Not fork(): no handlers of other libraries should run in there. No signal at its end either: it is nobody's business.
  int process = -1;
  const long pid = ::syscall(SYS_clone, static_cast<unsigned long>(CLONE_PIDFD), nullptr, &process, nullptr, nullptr);
  if (pid == 0) guard(table_, watched.get(), line);
  error_ = pid < 0 ? errno : 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error_ == 0) process_ = Descriptor{process};
}

void Guardian::replace() noexcept {
  end();
  if (made_ < guardians_max) return make();
  error_ = ECHILD;
}

void Guardian::end() noexcept {
  if (!process_.is_open()) return;
  ::syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  siginfo_t info;
  while (::waitid(P_PIDFD, static_cast<id_t>(process_.get()), &info, WEXITED | __WALL) < 0 && errno == EINTR) continue;
  process_.close();
}

Guardian::~Guardian() {
  end();
  if (table_ != nullptr) ::munmap(table_, table_bytes);
}

Guardian::Slot* Guardian::take() noexcept {
  if (table_ == nullptr) return nullptr;
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
