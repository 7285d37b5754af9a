#include "support/run_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace reprise::testing_support {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error{"pipe2 failed"};
    read_end = ends[0];
    write_end = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(read_end);
    close_end(write_end);
  }
  static void close_end(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

// A program that does not read its input closes the pipe; that is its right and not ours to die of.
void ignore_broken_pipes() {
  static const auto previous = std::signal(SIGPIPE, SIG_IGN);
  (void)previous;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Feeds the input and drains both outputs at once, so that no full pipe can stop the two sides.
void exchange(Pipe& input_pipe, std::string_view input, Pipe& out_pipe, std::string& out, Pipe& err_pipe,
              std::string& err) {
  ::fcntl(input_pipe.write_end, F_SETFL, O_NONBLOCK);
  if (input.empty()) Pipe::close_end(input_pipe.write_end);
  while (out_pipe.read_end >= 0 || err_pipe.read_end >= 0) {
    std::array<pollfd, 3> waiting{
        {{out_pipe.read_end, POLLIN, 0}, {err_pipe.read_end, POLLIN, 0}, {input_pipe.write_end, POLLOUT, 0}}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
    const auto drain = [](const pollfd& ready, int& end, std::string& text) {
      if (ready.revents == 0) return;
      std::array<char, 65536> buffer{};
      const ssize_t count = ::read(end, buffer.data(), buffer.size());
      if (count > 0) {
        text.append(buffer.data(), static_cast<std::size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        Pipe::close_end(end);
      }
    };
    drain(waiting[0], out_pipe.read_end, out);
    drain(waiting[1], err_pipe.read_end, err);
    if (waiting[2].revents == 0) continue;
    const ssize_t count = ::write(input_pipe.write_end, input.data(), input.size());
    if (count > 0) input.remove_prefix(static_cast<std::size_t>(count));
    if (input.empty() || (count < 0 && errno != EAGAIN && errno != EINTR)) Pipe::close_end(input_pipe.write_end);
  }
}

}  // namespace

Outcome run_program(const std::vector<std::string>& arguments, std::string_view input,
                    const std::vector<Setting>& settings) {
  ignore_broken_pipes();
  std::vector<std::string> words = arguments;
  const char* path = std::getenv("PATH");
  std::vector<std::string> environment{std::string{"PATH="} + (path != nullptr ? path : "/usr/bin:/bin")};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS",
                           "LLVM_PROFILE_FILE"}) {  // how the program was built is no business of its tests
    if (const char* value = std::getenv(name)) environment.push_back(std::string{name} + "=" + value);
  }
  for (const auto& [name, value] : settings) environment.push_back(name + "=" + value);

  Pipe input_pipe;
  Pipe out_pipe;
  Pipe err_pipe;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input_pipe.read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out_pipe.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err_pipe.write_end, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, words.front().c_str(), &actions, &attributes, pointers_to(words).data(),
                                     pointers_to(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  Outcome outcome;
  if (problem != 0) return outcome;

  Pipe::close_end(input_pipe.read_end);
  Pipe::close_end(out_pipe.write_end);
  Pipe::close_end(err_pipe.write_end);
  exchange(input_pipe, input, out_pipe, outcome.out, err_pipe, outcome.err);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

TemporaryDirectory::TemporaryDirectory() {
  path_ = (std::filesystem::temp_directory_path() / "reprise-test-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error{"mkdtemp failed"};
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::write(std::string_view name, std::string_view content) const {
  std::string file = path_ + "/" + std::string{name};
  std::ofstream{file, std::ios::binary}.write(content.data(), static_cast<std::streamsize>(content.size()));
  return file;
}

}  // namespace reprise::testing_support
