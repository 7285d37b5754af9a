#include "cli/init_process.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>

namespace reprise::cli {
namespace {

// Everything but what the kernel sends for a fault of this process itself, and what the terminal sends for its input and output.
sigset_t forwarded_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGTTIN, SIGTTOU}) sigdelset(&set, own);
  return set;
}

int exit_code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

// Waits for all who have ended. Ends this process with the child's code once the child is among them.
void reap(pid_t child) {
  int status = 0;
  for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG | __WALL)) > 0;) {
    if (ended == child) ::_exit(exit_code_of(status));
  }
}

[[noreturn]] void serve(pid_t child, const sigset_t& signals) {
  while (true) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal == SIGCHLD) {
      reap(child);
    } else if (signal > 0 && info.si_code != SI_KERNEL) {
      // The terminal's own (Ctrl-C) went to the child as well: twice would mean "at once".
      ::kill(child, signal);
    }
  }
}

}  // namespace

void act_as_init_process() {
  if (::getpid() != 1) return;
  const sigset_t signals = forwarded_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &signals, &before);
  // An ignored SIGCHLD, inherited from who made the container, would lose how the child ended.
  ::signal(SIGCHLD, SIG_DFL);
  const pid_t child = ::fork();
  if (child < 0) {
    std::perror("reprise: cannot start a process, as the first one of a container has to");
    ::_exit(2);
  }
  if (child > 0) serve(child, signals);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace reprise::cli
