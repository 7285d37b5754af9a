#include "cli/run/kept_stdin.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>

#include <fmt/format.h>
#include <reprise/env.hpp>

#include "cli/io.hpp"
#include "exec/document/program.hpp"

namespace reprise::cli {
namespace {

int trouble(std::string_view message) {
  usage_error(message);
  return exit_exec_usage;
}

bool is_at_its_end(int pipe) {
  pollfd polled{.fd = pipe, .events = POLLIN, .revents = 0};
  return poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) == 0;
}

// A `while read` loop, or a shell that reads its script from there: whatever is read here, it will miss.
bool is_pipe_of_caller(const struct stat& input) {
  struct stat other {};
  const std::string path = fmt::format("/proc/{}/fd/0", getppid());
  return S_ISFIFO(input.st_mode) && stat(path.c_str(), &other) == 0 && other.st_dev == input.st_dev &&
         other.st_ino == input.st_ino;
}

void warn_of_shared_pipe(const struct stat& input, const WatchOptions& options) {
  if (options.progress == ProgressMode::quiet || !is_pipe_of_caller(input) || is_at_its_end(STDIN_FILENO)) return;
  print_error(
      "reprise exec: warning: the calling shell reads from the same pipe, and standard input is read to its end here: "
      "a `while read` loop would end after this command. -n (--no-stdin) leaves it alone\n");
}

// Bytes from standard input as they come, or of a file from its position, which stays where it is.
class Source {
 public:
  Source(const RunSession& session, const struct stat& input)
      : session_{session},
        is_file_{S_ISREG(input.st_mode)},
        position_{is_file_ ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0} {}

  // 0 = the end. The error is an exit code.
  std::expected<std::size_t, int> read(std::span<char> buffer) {
    while (true) {
      // A file has always something to read; signals are looked for all the same.
      if (const int signal = session_.wait_to_read(STDIN_FILENO); signal != 0) return std::unexpected{128 + signal};
      const ssize_t count = is_file_ ? pread(STDIN_FILENO, buffer.data(), buffer.size(), position_)
                                     : ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count < 0)
        return std::unexpected{trouble(fmt::format("cannot read standard input: {}", std::strerror(errno)))};
      position_ += count;
      return static_cast<std::size_t>(count);
    }
  }

 private:
  const RunSession& session_;
  bool is_file_;
  off_t position_;
};

std::expected<std::optional<exec::KeptFile>, int> copy(Source source, exec::KeptFileWriter& file) {
  const auto refused = [&] { return std::unexpected{trouble("cannot keep standard input: " + file.problem())}; };
  char buffer[65536];
  bool is_empty = true;
  while (true) {
    const auto size = source.read(buffer);
    if (!size) return std::unexpected{size.error()};
    if (*size == 0) break;
    is_empty = false;
    file.write({buffer, *size});
    if (!file.problem().empty()) return refused();
  }
  if (is_empty) return std::nullopt;
  const auto kept = file.finish();
  if (!kept) return refused();
  return *kept;
}

}  // namespace

std::expected<KeptStdin, int> keep_stdin(const RunSession& session, StdinMode mode) {
  struct stat input {};
  if (mode == StdinMode::none || fstat(STDIN_FILENO, &input) != 0) return KeptStdin{};
  if (mode == StdinMode::automatic && S_ISCHR(input.st_mode)) return KeptStdin{};
  if (mode == StdinMode::automatic) warn_of_shared_pipe(input, session.options());
  const std::string name = fmt::format("{:016x}", system_env().random_seed());
  const std::string path = fmt::format("{}/{}/{}", session.folder(), exec::stdin_folder, name);
  exec::KeptFileWriter file{path, session.folder()};
  auto content = copy(Source{session, input}, file);
  if (content && *content) return KeptStdin{path, *std::move(content)};
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (!content) return std::unexpected{content.error()};
  return KeptStdin{};
}

}  // namespace reprise::cli
