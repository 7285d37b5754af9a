// A small seeded generator: the same seed gives the same draws on every machine and with every standard library.
//
// Not for secrets. Thread safety: none; give each thread or each call its own.
#pragma once

#include <cstdint>

namespace reprise {

// SplitMix64: one addition and three multiply-xor rounds a draw, any seed is good, eight bytes of state.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) noexcept : state_{seed} {}

  constexpr std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
    return mixed ^ (mixed >> 31);
  }

  // Uniform in [low, high], both ends possible. Needs low <= high.
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
    const std::uint64_t span = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
    if (span == UINT64_MAX) return static_cast<std::int64_t>(next());
    // Masking and drawing again keeps the result exactly uniform; each round succeeds with a chance above one half.
    std::uint64_t mask = span;
    for (unsigned shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    std::uint64_t offset = next() & mask;
    while (offset > span) offset = next() & mask;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + offset);
  }

 private:
  std::uint64_t state_;
};

}  // namespace reprise
