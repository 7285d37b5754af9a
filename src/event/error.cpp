// The names of the engine's errors.
#include <reprise/error.hpp>

#include <array>

namespace reprise {

std::string_view name_of(ErrorCode code) noexcept {
  constexpr std::array<std::string_view, 14> names{
      "invalid",           "not_found",   "full",          "stopped",         "timed_out",
      "store_locked",      "store_newer", "store_damaged", "store_read_only", "store_full",
      "store_unavailable", "store_gone",  "fenced",        "store_behind"};
  static_assert(names.size() == static_cast<std::size_t>(ErrorCode::store_behind) + 1);
  const auto number = static_cast<std::size_t>(code);
  return number < names.size() ? names[number] : "unknown";
}

}  // namespace reprise
