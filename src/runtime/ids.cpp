#include "runtime/ids.hpp"

#include <algorithm>
#include <span>

#include "env/secure_random.hpp"

#include <reprise/random.hpp>

namespace reprise::runtime {

namespace {

constexpr unsigned slot_shift = 24;  // those of the check's bits that become bytes 9 and, as far as its lower half, 10

std::uint64_t check_of(std::uint64_t secret, std::uint64_t number, std::uint64_t milliseconds) noexcept {
  return Random{secret ^ (milliseconds * 0x9E3779B97F4A7C15ULL) ^ (number << 20U)}.next();
}

RunId id_with(std::uint64_t milliseconds, std::uint64_t check, std::uint64_t number) noexcept {
  RunId id;
  for (unsigned byte = 0; byte < 6; ++byte)
    id.bytes[byte] = static_cast<std::uint8_t>(milliseconds >> (40U - 8U * byte));
  id.bytes[6] = static_cast<std::uint8_t>(0x70U | (check & 0x0FU));
  id.bytes[7] = static_cast<std::uint8_t>(check >> 8U);
  id.bytes[8] = static_cast<std::uint8_t>(0x80U | (check >> 16U & 0x3FU));
  id.bytes[9] = static_cast<std::uint8_t>(check >> 24U);
  id.bytes[10] = static_cast<std::uint8_t>(check >> 32U);
  for (unsigned byte = 0; byte < 5; ++byte)
    id.bytes[11 + byte] = static_cast<std::uint8_t>(number >> (32U - 8U * byte));
  return id;
}

}  // namespace

RunId id_of(std::uint64_t secret, std::uint64_t number, event::Time created, std::uint32_t slot) noexcept {
  const auto milliseconds = static_cast<std::uint64_t>(created / 1'000'000);
  const std::uint64_t check = check_of(secret, number, milliseconds);
  return id_with(milliseconds, check ^ std::uint64_t{slot} << slot_shift, number);
}

std::optional<std::uint32_t> slot_in(std::uint64_t secret, const RunId& id) noexcept {
  std::uint64_t milliseconds = 0;
  for (unsigned byte = 0; byte < 6; ++byte) milliseconds = milliseconds << 8U | id.bytes[byte];
  const std::uint64_t number = number_in(id);
  const std::uint64_t check = check_of(secret, number, milliseconds);
  const std::uint64_t found = std::uint64_t{id.bytes[9]} | std::uint64_t{id.bytes[10]} << 8U;
  const std::uint64_t slot = (found ^ check >> slot_shift) & slot_max;
  if (id_with(milliseconds, check ^ slot << slot_shift, number) != id) return std::nullopt;
  return static_cast<std::uint32_t>(slot);
}

RunId new_request_id(event::Time now) {
  RunId id;
  fill_with_secure_random(std::as_writable_bytes(std::span{id.bytes}));
  const auto milliseconds = static_cast<std::uint64_t>(std::max<event::Time>(now, 0)) / 1'000'000;
  for (unsigned index = 0; index < 6; ++index)
    id.bytes[index] = static_cast<std::uint8_t>(milliseconds >> (8U * (5 - index)));
  id.bytes[6] = static_cast<std::uint8_t>(0x70U | (id.bytes[6] & 0x0FU));  // version
  id.bytes[8] = static_cast<std::uint8_t>(0x80U | (id.bytes[8] & 0x3FU));  // variant
  return id;
}

std::uint64_t number_in(const RunId& id) noexcept {
  std::uint64_t number = 0;
  for (unsigned byte = 0; byte < 5; ++byte) number = number << 8U | id.bytes[11 + byte];
  return number;
}

}  // namespace reprise::runtime
