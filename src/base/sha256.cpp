// OpenSSL would rather be asked through EVP, which brings all of its ciphers along and makes every program that links its archive start later.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "base/sha256.hpp"

#include <openssl/sha.h>

#include <array>

#include "base/check.hpp"

namespace reprise::base {

Sha256::Sha256() : state_{std::make_unique<SHA256state_st>()} { SHA256_Init(state_.get()); }
Sha256::~Sha256() = default;

void Sha256::add(std::string_view piece) { SHA256_Update(state_.get(), piece.data(), piece.size()); }

std::string Sha256::take() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Final(digest.data(), state_.get());
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

std::string sha256(std::string_view bytes) {
  Sha256 hasher;
  hasher.add(bytes);
  return hasher.take();
}

// Not OpenSSL's own, which asks EVP.
std::string hmac_sha256(std::string_view key, std::string_view bytes) {
  constexpr std::size_t block_bytes = 64;
  REPRISE_CHECK(key.size() <= block_bytes);
  const auto padded = [&](char pad) {
    std::string block(block_bytes, pad);
    for (std::size_t at = 0; at < key.size(); ++at) block[at] = static_cast<char>(block[at] ^ key[at]);
    return block;
  };
  return sha256(padded(0x5C) + sha256(padded(0x36).append(bytes)));
}

}  // namespace reprise::base
