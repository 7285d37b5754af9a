// Plain TCP on 127.0.0.1 for tests: bytes in, bytes out, nothing understood. Nothing else is ever contacted.
//
// Thread safety: a socket belongs to one thread, except that shut_down() may be called from another to wake it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace reprise::testing_support {

class LoopbackSocket {
 public:
  LoopbackSocket() = default;
  explicit LoopbackSocket(int descriptor) noexcept : descriptor_{descriptor} {}
  LoopbackSocket(LoopbackSocket&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
  LoopbackSocket& operator=(LoopbackSocket&& other) noexcept;
  ~LoopbackSocket() { close(); }

  static LoopbackSocket listening();                       // on a port of its own; throws std::system_error
  static LoopbackSocket connected_to(std::uint16_t port);  // throws std::system_error

  bool is_open() const noexcept { return descriptor_ >= 0; }
  int descriptor() const noexcept { return descriptor_; }
  std::uint16_t port() const;     // of this end
  LoopbackSocket accept() const;  // not open: it was shut down

  bool send(std::string_view bytes) const;  // all of them; false: the other side has gone
  bool receive(std::string& more) const;    // appends what there is, waits for some; false: the end
  std::string receive_all(std::chrono::seconds patience = std::chrono::seconds{
                              60}) const;  // until the other side closes
  void finish_sending() const noexcept;
  void shut_down() const noexcept;
  void reset();  // closes so that the other side sees "connection reset"
  void close() noexcept;

 private:
  int descriptor_ = -1;
};

// Posts JSON to a URL of this machine, with one more header line. Gives the status line of the answer.
std::string post(const std::string& url, const std::string& header_line, const std::string& body);

// A port that nobody listens on: it was free a moment ago, and the kernel hands out others first.
std::uint16_t closed_port();

}  // namespace reprise::testing_support
