#include "support/loopback.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace reprise::testing_support {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error{errno, std::generic_category(), what}; }

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

LoopbackSocket new_socket() {
  LoopbackSocket socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) fail("socket");
  return socket;
}

}  // namespace

LoopbackSocket& LoopbackSocket::operator=(LoopbackSocket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

LoopbackSocket LoopbackSocket::listening() {
  LoopbackSocket socket = new_socket();
  const sockaddr_in address = loopback(0);
  if (::bind(socket.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("bind");
  if (::listen(socket.descriptor_, SOMAXCONN) != 0) fail("listen");
  return socket;
}

LoopbackSocket LoopbackSocket::connected_to(std::uint16_t port) {
  LoopbackSocket socket = new_socket();
  const sockaddr_in address = loopback(port);
  if (::connect(socket.descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("connect");
  return socket;
}

std::uint16_t LoopbackSocket::port() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size) != 0) fail("getsockname");
  return ntohs(address.sin_port);
}

LoopbackSocket LoopbackSocket::accept() const {
  while (true) {
    LoopbackSocket socket{::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC)};
    if (!socket.is_open() && (errno == EINTR || errno == ECONNABORTED)) continue;
    const int at_once = 1;  // bytes that a test sends apart should arrive apart
    if (socket.is_open()) ::setsockopt(socket.descriptor_, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    return socket;
  }
}

bool LoopbackSocket::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EINTR) return false;
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

bool LoopbackSocket::receive(std::string& more) const {
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t received = ::recv(descriptor_, buffer.data(), buffer.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received > 0) more.append(buffer.data(), static_cast<std::size_t>(received));
    return received > 0;
  }
}

std::string LoopbackSocket::receive_all(std::chrono::seconds patience) const {
  const timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::string all;
  while (receive(all)) {
  }
  return all;
}

void LoopbackSocket::finish_sending() const noexcept { ::shutdown(descriptor_, SHUT_WR); }

void LoopbackSocket::shut_down() const noexcept { ::shutdown(descriptor_, SHUT_RDWR); }

void LoopbackSocket::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void LoopbackSocket::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

std::string post(const std::string& url, const std::string& header_line, const std::string& body) {
  constexpr std::string_view scheme = "http://";
  const std::size_t slash = url.find('/', scheme.size());
  const std::string place = url.substr(scheme.size(), slash - scheme.size());
  const auto port = static_cast<std::uint16_t>(std::stoi(place.substr(place.find(':') + 1)));
  const LoopbackSocket socket = LoopbackSocket::connected_to(port);
  socket.send("POST " + url.substr(slash) + " HTTP/1.1\r\nHost: " + place + "\r\nConnection: close\r\n" + header_line +
              "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  const std::string answer = socket.receive_all();
  return answer.substr(0, answer.find('\r'));
}

std::uint16_t closed_port() { return LoopbackSocket::listening().port(); }

}  // namespace reprise::testing_support
