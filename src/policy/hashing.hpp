// FNV-1a over fields: what fingerprints are made of. Stored, so it never changes.
//
// Pure. Thread safety: everything is an argument.
#pragma once

#include <cstdint>
#include <string_view>

namespace reprise {

inline constexpr std::uint64_t hash_seed = 0xCBF29CE484222325ULL;

// With an end mark, so that fields cannot run together.
constexpr void mix(std::uint64_t& hash, std::string_view bytes) noexcept {
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
  hash = (hash ^ 0xFFU) * 0x100000001B3ULL;
}

}  // namespace reprise
