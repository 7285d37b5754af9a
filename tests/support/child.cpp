#include "support/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace reprise::testing_support {

Child::Child(std::vector<std::string> arguments) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error{"pipe2 failed"};
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int problem = ::posix_spawn(&pid_, words.front(), &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  out_ = ends[0];
  if (problem != 0) throw std::runtime_error{"cannot start " + arguments.front()};
}

Child::~Child() {
  if (pid_ > 0) {
    signal(SIGKILL);
    join();
  }
  ::close(out_);
}

std::optional<std::string> Child::line(std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (const std::size_t end = said_.find('\n', taken_); end != std::string::npos) {
      std::string line = said_.substr(taken_, end - taken_);
      taken_ = end + 1;
      return line;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd waiting{out_, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(out_, buffer.data(), buffer.size());
    if (count == 0 || (count < 0 && errno != EINTR)) return std::nullopt;
    if (count > 0) said_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

bool Child::wait_for(std::string_view words, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const std::optional<std::string> next = line(left);
    if (!next) return false;
    if (next->find(words) != std::string::npos) return true;
  }
}

bool Child::is_held_up() const {
  constexpr int buffer = 4096;  // it writes in pieces of this
  int waiting = 0;
  return ::ioctl(out_, FIONREAD, &waiting) == 0 && waiting > ::fcntl(out_, F_GETPIPE_SZ) - buffer;
}

void Child::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

int Child::join() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace reprise::testing_support
