// The functions used here bring no providers of OpenSSL along, which would make every start slower (see sha256.cpp).
#include "base/encoding.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

namespace reprise::base {

std::string base64(std::string_view bytes) {
  constexpr std::size_t piece_max = std::size_t{3} << 20U;  // whole groups of three, and far from what an int can count
  std::string text;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, piece_max);
    bytes.remove_prefix(piece.size());
    const std::size_t before = text.size();
    text.resize(before + (piece.size() + 2) / 3 * 4 + 1);  // it writes a zero at the end
    EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data() + before),
                    reinterpret_cast<const unsigned char*>(piece.data()), static_cast<int>(piece.size()));
    text.pop_back();
  }
  return text;
}

std::string base64_for_urls(std::string_view bytes) {
  std::string text = base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::size_t piece_max = std::size_t{4} << 20U;
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view piece = rest.substr(0, piece_max);
    rest.remove_prefix(piece.size());
    const std::size_t before = bytes.size();
    bytes.resize(before + piece.size() / 4 * 3);
    if (EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data() + before),
                        reinterpret_cast<const unsigned char*>(piece.data()), static_cast<int>(piece.size())) < 0)
      return std::nullopt;
  }
  bytes.resize(bytes.size() - (text.ends_with("==") ? 2U : text.ends_with('=') ? 1U : 0U));
  if (base64(bytes) != text) return std::nullopt;  // it takes blanks and bits too many for granted
  return bytes;
}

bool same_secret(std::string_view left, std::string_view right) noexcept {
  return left.size() == right.size() && CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace reprise::base
