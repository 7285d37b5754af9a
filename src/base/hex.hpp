// Hexadecimal digits, both ways.
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reprise::base {

inline constexpr std::string_view hex_digits = "0123456789abcdef";
inline constexpr std::string_view upper_hex_digits = "0123456789ABCDEF";

// Of either case; -1: it is no digit.
constexpr int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The last `count` digits of the number, 16 at most.
inline void append_hex(std::string& out, std::uint64_t number, unsigned count, std::string_view digits = hex_digits) {
  while (count > 0) out += digits[number >> (4U * --count) & 0xFU];
}

// The number that the digits make, 8 at most; false: one of them is none.
constexpr bool read_hex(std::string_view digits, std::uint32_t& number) noexcept {
  number = 0;
  for (const char c : digits) {
    if (hex_value(c) < 0) return false;
    number = number * 16U + static_cast<std::uint32_t>(hex_value(c));
  }
  return true;
}

// Two lower-case digits for each byte.
inline std::string hexadecimal(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) append_hex(text, static_cast<unsigned char>(c), 2);
  return text;
}

// The other way; std::nullopt: something there is no digit, or half a byte.
inline std::optional<std::string> bytes_of_hexadecimal(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t at = 0; at < digits.size(); at += 2) {
    std::uint32_t byte = 0;
    if (!read_hex(digits.substr(at, 2), byte)) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

}  // namespace reprise::base
