#include "exec/process/spawn.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "exec/process/uninstrumented.hpp"

// The thread sanitizer takes every clone() for a fork and gives up in the child, which here still shares its memory: go past it.
#if defined(__has_feature)
#define REPRISE_HAS_FEATURE(feature) __has_feature(feature)
#else
#define REPRISE_HAS_FEATURE(feature) 0
#endif
#if defined(__SANITIZE_THREAD__) || REPRISE_HAS_FEATURE(thread_sanitizer)
extern "C" int __clone(int (*)(void*), void*, int, void*, ...) noexcept;
#define REPRISE_CLONE __clone
#else
#define REPRISE_CLONE ::clone
#endif

namespace reprise::exec {
namespace {

constexpr std::size_t stack_bytes = std::size_t{64} << 10U;
constexpr int signal_count = 64;
constexpr std::size_t kernel_mask_bytes = 8;
constexpr std::string_view path_without_path = "/bin:/usr/bin";  // what execvp() takes when PATH is not set

enum class Stage : std::uint8_t { descriptors, directory, exec };

// What the child has to do, made ready by us: it allocates nothing. It answers here too.
struct ChildPlan {
  const char* directory = nullptr;  // nullptr = stay
  StandardDescriptors descriptors;
  Guardian::Slot* slot = nullptr;
  pid_t parent = 0;
  bool ignores_hangup = false;          // we do (nohup), so it does
  const char* const* places = nullptr;  // ends with nullptr
  const char** arguments = nullptr;     // [0] is free, for /bin/sh; ends with nullptr
  const char* const* environment = nullptr;

  Stage stage = Stage::descriptors;
  int error = 0;
};

// Everything of the host is closed by exec and not before: the guardian needs its pipe held open until then.
REPRISE_UNINSTRUMENTED void close_others() {
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  for (int number = 3; number < descriptors_without_close_range; ++number)
    ::syscall(SYS_fcntl, number, F_SETFD, FD_CLOEXEC);
}

REPRISE_UNINSTRUMENTED void reset_signals(bool ignores_hangup) {
  const unsigned long default_action[8] = {};  // larger than the kernel's structure on every platform; SIG_DFL is 0
  for (int number = 1; number <= signal_count; ++number) {
    if (number == SIGHUP && ignores_hangup) continue;
    ::syscall(SYS_rt_sigaction, number, default_action, nullptr, kernel_mask_bytes);
  }
  const unsigned long nothing[2] = {};
  ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, nothing, nullptr, kernel_mask_bytes);
}

// As execvp() does it: go on when a place has nothing, remember that one was forbidden, stop at everything else.
REPRISE_UNINSTRUMENTED int execute(const ChildPlan& plan) {
  int answer = ENOENT;
  for (const char* const* place = plan.places; *place != nullptr; ++place) {
    ::syscall(SYS_execve, *place, plan.arguments + 1, plan.environment);
    switch (errno) {
      case EACCES:
        answer = EACCES;
        break;
      case ENOENT:
      case ENOTDIR:
      case ESTALE:
      case ENODEV:
      case ETIMEDOUT:
        break;
      case ENOEXEC:
        plan.arguments[0] = "/bin/sh";
        plan.arguments[1] = *place;
        ::syscall(SYS_execve, "/bin/sh", plan.arguments, plan.environment);
        return errno;
      default:
        return errno;
    }
  }
  return answer;
}

REPRISE_UNINSTRUMENTED bool prepare(ChildPlan& plan) {
  if (plan.directory != nullptr) {
    plan.stage = Stage::directory;
    if (::syscall(SYS_chdir, plan.directory) != 0) return false;
  }
  plan.stage = Stage::descriptors;
  if (::syscall(SYS_dup3, plan.descriptors.in, 0, 0) < 0 || ::syscall(SYS_dup3, plan.descriptors.out, 1, 0) < 0 ||
      ::syscall(SYS_dup3, plan.descriptors.err, 2, 0) < 0) {
    return false;
  }
  close_others();
  reset_signals(plan.ignores_hangup);
  return true;
}

// For the case that we and the guardian are killed at the same moment. It helps against this one process only, not against those that it
// starts, and the kernel drops it where set-user-ID programs are executed.
REPRISE_UNINSTRUMENTED void die_with(pid_t parent) {
  ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::syscall(SYS_getppid) != parent) ::syscall(SYS_exit_group, 127);  // it was too late
}

REPRISE_UNINSTRUMENTED int child(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  ::syscall(SYS_setpgid, 0, 0);
  if (plan.slot != nullptr) __atomic_store_n(plan.slot, static_cast<pid_t>(::syscall(SYS_getpid)), __ATOMIC_RELEASE);
  die_with(plan.parent);
  if (!prepare(plan)) {
    plan.error = errno;
  } else {
    plan.stage = Stage::exec;
    plan.error = execute(plan);
  }
  ::syscall(SYS_exit_group, 127);
  __builtin_unreachable();
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts, std::size_t free_in_front) {
  std::vector<const char*> pointers(free_in_front, nullptr);
  pointers.reserve(free_in_front + texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  pointers.push_back(nullptr);
  return pointers;
}

bool ignores_hangup() noexcept {
  struct sigaction action = {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool has_nul(const std::vector<std::string>& texts) {
  return std::ranges::any_of(texts, [](const std::string& text) { return text.find('\0') != std::string::npos; });
}

SpawnProblem check(const ProcessSpec& spec) {
  if (spec.argv.empty()) return {EINVAL, "no command was given"};
  if (has_nul(spec.argv)) return {EINVAL, "an argument of the command has a NUL byte, which no command can be given"};
  if (has_nul(spec.env)) return {EINVAL, "an environment variable has a NUL byte, which no command can be given"};
  return {};
}

SpawnProblem explain(const ChildPlan& plan, const ProcessSpec& spec, const std::vector<std::string>& places) {
  switch (plan.stage) {
    case Stage::directory:
      return explain_directory_problem(spec.directory, plan.error);
    case Stage::exec:
      return explain_exec_problem(spec, places, plan.error);
    case Stage::descriptors:
      break;
  }
  return {plan.error,
          "standard input and output could not be connected: " + std::generic_category().message(plan.error)};
}

}  // namespace

std::vector<std::string> places_to_look(const ProcessSpec& spec) {
  const std::string& command = spec.argv.front();
  if (command.empty()) return {};
  if (command.find('/') != std::string::npos) return {command};
  std::string_view path = path_without_path;
  for (const std::string& variable : spec.env) {
    if (variable.starts_with("PATH=")) {
      path = std::string_view{variable}.substr(5);
      break;
    }
  }
  std::vector<std::string> places;
  while (true) {
    const std::size_t colon = path.find(':');
    std::string& place = places.emplace_back(path.substr(0, colon));
    if (!place.empty()) place += '/';  // an empty part means the current folder
    place += command;
    if (colon == std::string_view::npos) return places;
    path.remove_prefix(colon + 1);
  }
}

Spawner::Spawner() : stack_{std::make_unique_for_overwrite<std::byte[]>(stack_bytes)} {}

std::expected<Spawned, SpawnProblem> Spawner::spawn(const ProcessSpec& spec, StandardDescriptors descriptors,
                                                    Guardian::Slot* slot) {
  if (SpawnProblem problem = check(spec); problem.error != 0) return std::unexpected{std::move(problem)};
  const std::vector<std::string> places = places_to_look(spec);
  const std::vector<const char*> place_pointers = pointers_to(places, 0);
  std::vector<const char*> arguments = pointers_to(spec.argv, 1);
  const std::vector<const char*> environment = pointers_to(spec.env, 0);
  ChildPlan plan{.directory = spec.directory.empty() ? nullptr : spec.directory.c_str(),
                 .descriptors = descriptors,
                 .slot = slot,
                 .parent = ::getpid(),
                 .ignores_hangup = ignores_hangup(),
                 .places = place_pointers.data(),
                 .arguments = arguments.data(),
                 .environment = environment.data()};

  int process = -1;
  const pid_t pid =
      REPRISE_CLONE(child, stack_.get() + stack_bytes, CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &plan, &process);
  if (pid < 0) {
    const int error = errno;
    return std::unexpected{SpawnProblem{error, "no process could be made: " + std::generic_category().message(error)}};
  }
  Spawned spawned{.pid = pid, .process = Descriptor{process}};
  if (plan.error == 0) return spawned;
  siginfo_t info;
  while (::waitid(P_PIDFD, static_cast<id_t>(process), &info, WEXITED) < 0 && errno == EINTR) continue;
  return std::unexpected{explain(plan, spec, places)};
}

}  // namespace reprise::exec
