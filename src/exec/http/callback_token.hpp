// The token of a webhook's URL: which attempt it speaks of, signed with the store's key. Nothing of it is stored, so it means the same after a
// restart, and nobody who does not have the key can make one.
//
//   const std::string token = token_of(place, key);
//   place_in(token, key);                              // the same place; std::nullopt: somebody has guessed
//
// Thread safety: functions of their arguments; callback_key() may be called by several processes at once.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include <reprise/event.hpp>

namespace reprise::exec {

struct CallbackPlace {
  RunId run = {};
  std::uint32_t step = 0;
  std::uint32_t item = 0;
  std::uint32_t visit = 0;  // of the step: a later one has nothing to do with it
  std::uint32_t attempt = 0;
  bool only_own = false;  // it is of no use to a later attempt

  bool operator==(const CallbackPlace&) const = default;
};

std::string token_of(const CallbackPlace& place, std::string_view key);
std::optional<CallbackPlace> place_in(std::string_view token, std::string_view key);

// The key of the store in this folder, made when it is first asked for; without a folder one that ends with the process.
std::expected<std::string, std::string> callback_key(const std::string& store_folder);

}  // namespace reprise::exec
