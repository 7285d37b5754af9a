#include "runtime/control_socket.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "runtime/control.hpp"
#include "store/real_path.hpp"

namespace reprise::runtime {
namespace {

using base::Descriptor;

constexpr std::size_t path_bytes_max = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::size_t hash_bytes_used = 12;
constexpr int backlog = 64;
constexpr mode_t owner_only = 0600;

std::optional<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() > path_bytes_max || path.find('\0') != std::string::npos) return std::nullopt;
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

bool bind_to(int socket, const sockaddr_un& address) noexcept {
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

int connect_to(int socket, const sockaddr_un& address) noexcept {
  int result = 0;
  do {
    result = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } while (result != 0 && errno == EINTR);
  return result;
}

// A socket file nobody listens on: its owner was killed. Everything else stays where it is.
bool remove_if_dead(const std::string& path, const sockaddr_un& address) {
  struct stat there {};
  if (::lstat(path.c_str(), &there) != 0 || !S_ISSOCK(there.st_mode)) return false;
  const Descriptor probe{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!probe.is_open() || connect_to(probe.get(), address) == 0 || errno != ECONNREFUSED) return false;
  return ::unlink(path.c_str()) == 0;
}

}  // namespace

std::string control_socket_path(const std::string& store_path) {
  std::error_code error;
  const std::string real = store::real_path(store_path);
  // As it was named when no link is in the way: a path from here is the shorter one.
  const bool is_linked = std::filesystem::absolute(store_path, error).lexically_normal() != real;
  std::string beside = (is_linked ? real : store_path) + ".sock";
  if (beside.size() <= path_bytes_max) return beside;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  const std::string name =
      "reprise-" + base::hexadecimal(std::string_view{base::sha256(real)}.substr(0, hash_bytes_used)) + ".sock";
  return (error ? std::filesystem::path{"/tmp"} : folder) / name;
}

BoundSocket bind_control_socket(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return {};
  BoundSocket bound{.listener = Descriptor{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)},
                    .path = path};
  const int socket = bound.listener.get();
  // On Linux the file gets the mode that the socket has before: there is no moment in which others could connect.
  if (socket < 0 || ::fchmod(socket, owner_only) != 0) return {};
  if (!bind_to(socket, *address) &&
      (errno != EADDRINUSE || !remove_if_dead(path, *address) || !bind_to(socket, *address))) {
    return {};
  }
  struct stat made {};
  if (::lstat(path.c_str(), &made) != 0) return {};
  bound.device = made.st_dev;
  bound.inode = made.st_ino;
  if (::chmod(path.c_str(), owner_only) == 0 && ::listen(socket, backlog) == 0) return bound;
  remove_control_socket(bound);
  return {};
}

void remove_control_socket(const BoundSocket& socket) noexcept {
  struct stat there {};
  if (::lstat(socket.path.c_str(), &there) != 0) return;
  if (there.st_dev == socket.device && there.st_ino == socket.inode) ::unlink(socket.path.c_str());
}

Descriptor connect_control_socket(const std::string& path, int time_max_ms) {
  const auto address = address_of(path);
  errno = ENOENT;  // no socket can have such a path
  if (!address) return {};
  Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) return {};
  const timeval limit{.tv_sec = time_max_ms / 1000, .tv_usec = time_max_ms % 1000 * 1000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // a full backlog makes connect() wait
  if (connect_to(socket.get(), *address) == 0) return socket;
  const int why = errno;
  socket.close();
  errno = why;
  return {};
}

bool peer_is_same_user(int socket) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace reprise::runtime
