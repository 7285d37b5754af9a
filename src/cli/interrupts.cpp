#include "cli/interrupts.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <csignal>
#include <cstdint>
#include <utility>

namespace reprise::cli {

Interrupts::Interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
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

void Interrupts::handle(Handler handler) {
  thread_ = std::thread{[this, handler = std::move(handler)] {
    while (true) {
      pollfd polled[2] = {{signals_, POLLIN, 0}, {quit_, POLLIN, 0}};
      if (poll(polled, 2, -1) < 0) continue;
      if (polled[1].revents != 0) return;
      signalfd_siginfo info{};
      if (read(signals_, &info, sizeof info) == sizeof info) handler(static_cast<int>(info.ssi_signo));
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
