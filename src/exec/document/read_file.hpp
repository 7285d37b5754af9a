// Files that documents name: lists of items, schemas, secrets, other flows. All of it or an error: half a list must not look like a list.
//
// Thread safety: none needed.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>

namespace reprise::exec {

// The error: "cannot read PATH: what the system said".
inline std::expected<std::string, std::string> read_file(const std::string& path) {
  const auto problem = [&path] { return std::unexpected{"cannot read " + path + ": " + std::strerror(errno)}; };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return problem();
  std::string content;
  char buffer[65536];
  while (true) {
    const ssize_t count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const auto answer = problem();
      ::close(file);
      return answer;
    }
    if (count == 0) break;
    content.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(file);
  return content;
}

}  // namespace reprise::exec
