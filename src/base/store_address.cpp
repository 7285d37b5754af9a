#include "base/store_address.hpp"

#include <algorithm>

namespace reprise::base {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_kind_name(std::string_view text) {  // one letter alone is not: C:\runs.db should fail as a path
  return text.size() > 1 && is_letter(text.front()) && std::ranges::all_of(text, [](char c) {
           return is_letter(c) || (c >= '0' && c <= '9') || c == '+' || c == '-';
         });
}

std::expected<StoreAddress, std::string> sqlite_at(std::string_view path) {
  if (path.empty())
    return std::unexpected{"The store has no path: write sqlite:PATH, for example sqlite:.reprise/store.db."};
  if (path.find('\0') != std::string_view::npos) return std::unexpected{"The path of the store contains a zero byte."};
  if (path.starts_with("//") && !path.starts_with("///")) {
    return std::unexpected{"sqlite:" + std::string{path} + " names no host: write sqlite:" +
                           std::string{path.substr(2)} + " for a path from here, or sqlite:/PATH for a full one."};
  }
  return StoreAddress{StoreKind::sqlite, std::string{path}};
}

}  // namespace

std::expected<StoreAddress, std::string> parse_store_address(std::string_view address) {
  const std::size_t colon = address.find(':');
  const std::string_view kind = address.substr(0, std::min(colon, address.size()));
  if (colon == std::string_view::npos || !is_kind_name(kind)) return sqlite_at(address);
  const std::string_view rest = address.substr(colon + 1);
  if (kind == "sqlite") return sqlite_at(rest);
  if (kind == "memory") {
    if (rest.empty()) return StoreAddress{StoreKind::memory};
    return std::unexpected{"memory: takes nothing after the colon, and there stands " + std::string{rest} + "."};
  }
  return std::unexpected{"There is no kind of store named " + std::string{kind} +
                         ": write memory:, sqlite:PATH, or a path alone (./" + std::string{address} +
                         " if that is one)."};
}

}  // namespace reprise::base
