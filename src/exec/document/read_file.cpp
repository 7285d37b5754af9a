#include "exec/document/read_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/descriptor.hpp"

namespace reprise::exec {
namespace {

std::string_view kind_in_words(mode_t mode) noexcept {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::unexpected<FileProblem> refused(const std::string& path, std::string_view why, bool passes_by = false) {
  return std::unexpected{FileProblem{"cannot read " + path + ": " + std::string{why}, passes_by}};
}

std::unexpected<FileProblem> problem(const std::string& path) {
  const int code = errno;
  return refused(path, std::strerror(code), code == EAGAIN || code == ETIMEDOUT || code == ESTALE);
}

}  // namespace

FileContent read_regular_file(const std::string& path, std::size_t bytes_max) {
  struct stat status {};
  // Looked at before it is opened, too: opening a pipe would wake up the one who writes to it.
  const auto is_regular = [&] { return S_ISREG(status.st_mode); };
  const auto other_kind = [&] {
    return refused(
        path, "it is " + std::string{kind_in_words(status.st_mode)} + ", and a document can name regular files only");
  };
  if (::stat(path.c_str(), &status) != 0) return problem(path);
  if (!is_regular()) return other_kind();
  const base::Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0) return problem(path);
  if (!is_regular()) return other_kind();
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return problem(path);
    if (count == 0) return content;
    content.append(buffer, static_cast<std::size_t>(count));
    if (content.size() > bytes_max)
      return refused(path, "it has more than " + std::to_string(bytes_max >> 20U) + " MiB");
  }
}

}  // namespace reprise::exec
