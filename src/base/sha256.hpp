// SHA-256: the name under which the store keeps a payload once, and how a file beside the store is known to be the one that was written.
//
// Thread safety: a hasher has one owner at a time; the functions are functions of their arguments.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct SHA256state_st;

namespace reprise::base {

// Of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::string_view piece);
  std::string take();  // 32 bytes; nothing can be added any more

 private:
  std::unique_ptr<SHA256state_st> state_;
};

std::string sha256(std::string_view bytes);  // 32 bytes

// RFC 2104: 32 bytes that only those who have the key can make. A key has at most 64 bytes.
std::string hmac_sha256(std::string_view key, std::string_view bytes);

}  // namespace reprise::base
