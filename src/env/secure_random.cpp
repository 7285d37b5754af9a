#include "env/secure_random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace reprise {

void fill_with_secure_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t filled = ::getrandom(bytes.data(), bytes.size(), 0);
    if (filled >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(filled));
    } else if (errno != EINTR) {
      throw std::system_error{errno, std::generic_category(), "the kernel gives no random bytes (getrandom)"};
    }
  }
}

}  // namespace reprise
