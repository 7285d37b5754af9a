#include "cli/run/interrupts.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <utility>

namespace reprise::cli {

namespace {

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

// Blocked, an ignored signal would be told to us all the same.
bool is_ignored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// What Ctrl-Z does when nobody minds it. Returns when the program goes on.
void stop_as_usual() {
  const sigset_t stop = set_of({SIGTSTP});
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
  raise(SIGTSTP);
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  const sigset_t go_on = set_of({SIGCONT});
  const timespec at_once{};
  sigtimedwait(&go_on, nullptr, &at_once);  // the one that ended this
}

}  // namespace

Interrupts::Interrupts(bool also_stops) {
  sigset_t set = also_stops ? set_of({SIGINT, SIGTERM, SIGTSTP, SIGCONT}) : set_of({SIGINT, SIGTERM});
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  quit_ = eventfd(0, EFD_CLOEXEC);
}

int Interrupts::wait_to_read(int descriptor) const {
  while (true) {
    pollfd polled[2] = {{signals_, POLLIN, 0}, {descriptor, POLLIN, 0}};
    if (poll(polled, 2, -1) < 0) continue;
    signalfd_siginfo info{};
    if (polled[0].revents != 0 && read(signals_, &info, sizeof info) == sizeof info)
      return static_cast<int>(info.ssi_signo);
    if (polled[1].revents != 0) return 0;
  }
}

int Interrupts::wait_for(std::chrono::milliseconds time) const {
  pollfd polled{signals_, POLLIN, 0};
  signalfd_siginfo info{};
  const bool has_come = poll(&polled, 1, static_cast<int>(time.count())) == 1;
  return has_come && read(signals_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void Interrupts::take(int signal, const Handler& handler, const Stops& stops) const {
  if (signal == SIGTSTP) {
    if (stops.before) stops.before();
    stop_as_usual();
  }
  if (signal != SIGTSTP && signal != SIGCONT) {
    handler(signal);
  } else if (stops.after) {
    stops.after();
  }
}

void Interrupts::handle(Handler handler, Stops stops) {
  thread_ = std::thread{[this, handler = std::move(handler), stops = std::move(stops)] {
    while (true) {
      pollfd polled[2] = {{signals_, POLLIN, 0}, {quit_, POLLIN, 0}};
      if (poll(polled, 2, -1) < 0) continue;
      if (polled[1].revents != 0) return;
      signalfd_siginfo info{};
      if (read(signals_, &info, sizeof info) == sizeof info) take(static_cast<int>(info.ssi_signo), handler, stops);
    }
  }};
}

void Interrupts::stop() {
  const std::uint64_t one = 1;
  if (thread_.joinable() && write(quit_, &one, sizeof one) == sizeof one) thread_.join();
}

Interrupts::~Interrupts() {
  stop();
  close(signals_);
  close(quit_);
}

}  // namespace reprise::cli
