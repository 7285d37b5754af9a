#include "store/content_hash.hpp"

#include <openssl/evp.h>

#include <array>

namespace reprise::store {

std::string content_hash(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

}  // namespace reprise::store
