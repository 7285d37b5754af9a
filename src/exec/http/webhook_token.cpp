// The tokens of webhooks: made here, compared here, and never part of a URL.
#include <array>
#include <cstddef>

#include "env/secure_random.hpp"
#include "exec/http/webhook_listener.hpp"

namespace reprise::exec {

std::string new_token() {
  // RFC 4648, section 5. 24 bytes make exactly 32 characters: nothing to pad.
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<std::byte, 24> bytes{};
  fill_with_secure_random(bytes);
  std::string token;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const unsigned three = std::to_integer<unsigned>(bytes[at]) << 16U |
                           std::to_integer<unsigned>(bytes[at + 1]) << 8U | std::to_integer<unsigned>(bytes[at + 2]);
    for (const unsigned shift : {18U, 12U, 6U, 0U}) token += alphabet[three >> shift & 63U];
  }
  return token;
}

bool same_token(std::string_view left, std::string_view right) noexcept {
  if (left.size() != right.size()) return false;  // how long tokens are is no secret
  volatile unsigned differences = 0;              // volatile: the compiler must not stop at the first one
  for (std::size_t at = 0; at < left.size(); ++at) {
    differences = differences |
                  static_cast<unsigned>(static_cast<unsigned char>(left[at]) ^ static_cast<unsigned char>(right[at]));
  }
  return differences == 0;
}

}  // namespace reprise::exec
