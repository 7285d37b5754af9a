#include "base/block_signals.hpp"

#include <csignal>

namespace reprise::base {

void block_signals() noexcept {
  sigset_t blocked;
  sigfillset(&blocked);
  struct sigaction action = {};
  if (::sigaction(SIGCHLD, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) sigdelset(&blocked, SIGCHLD);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&blocked, number);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

}  // namespace reprise::base
