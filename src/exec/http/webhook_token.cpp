// The tokens of webhooks: made here, and never part of a URL.
#include <array>
#include <cstddef>

#include "base/encoding.hpp"
#include "env/secure_random.hpp"
#include "exec/http/webhook_listener.hpp"

namespace reprise::exec {

std::string new_token() {
  std::array<std::byte, 24> bytes{};  // exactly 32 characters
  fill_with_secure_random(bytes);
  return base::base64_for_urls({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace reprise::exec
