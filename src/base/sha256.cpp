#include "base/sha256.hpp"

#include <openssl/evp.h>

#include <array>
#include <new>

namespace reprise::base {

void Sha256::Release::operator()(evp_md_ctx_st* context) const noexcept { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_{EVP_MD_CTX_new()} {
  if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) throw std::bad_alloc{};
}

void Sha256::add(std::string_view piece) { EVP_DigestUpdate(context_.get(), piece.data(), piece.size()); }

std::string Sha256::take() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string sha256(std::string_view bytes) {
  Sha256 hasher;
  hasher.add(bytes);
  return hasher.take();
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4U];
    text += digits[byte & 0xFU];
  }
  return text;
}

}  // namespace reprise::base
