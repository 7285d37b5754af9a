#include "runtime/ids.hpp"

#include <reprise/random.hpp>

namespace reprise::runtime {

RunId id_of(std::uint64_t secret, std::uint64_t number, event::Time created) noexcept {
  const auto milliseconds = static_cast<std::uint64_t>(created / 1'000'000);
  Random mixer{secret ^ (milliseconds * 0x9E3779B97F4A7C15ULL) ^ (number << 20U)};
  const std::uint64_t check = mixer.next();
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

std::uint64_t number_in(const RunId& id) noexcept {
  std::uint64_t number = 0;
  for (unsigned byte = 0; byte < 5; ++byte) number = number << 8U | id.bytes[11 + byte];
  return number;
}

}  // namespace reprise::runtime
