// The names of event types, run statuses and runs.
#include <reprise/event.hpp>

#include <algorithm>

#include "base/hex.hpp"
#include "event/record.hpp"

namespace reprise {
namespace {

constexpr std::array<std::string_view, 5> status_names{"running", "paused", "succeeded", "failed", "canceled"};

// By number; the first number is 1.
constexpr std::array<std::string_view, 37> type_names{
    "unknown",        "submitted",   "prepared",         "started",     "completed",   "failed",      "retrying",
    "recovered",      "interrupted", "skipped",          "unreachable", "fallback",    "rework",      "dead_lettered",
    "circuit_opened", "progress",    "cancel_requested", "paused",      "resumed",     "signaled",    "revisited",
    "reopened",       "ended",       "dropped",          "finishing",   "handed_over", "handed_back", "extended",
    "reserved",       "called",      "continued",        "diverged",    "published",   "dismissed",   {},
    "circuit_half_opened", "circuit_closed"};
static_assert(type_names[static_cast<std::size_t>(EventType::reserved)] == "reserved");
static_assert(type_names[static_cast<std::size_t>(EventType::dismissed)] == "dismissed");
static_assert(type_names[static_cast<std::size_t>(EventType::circuit_closed)] == "circuit_closed");

constexpr std::size_t id_characters = 36;  // xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
constexpr bool is_dash_place(std::size_t at) noexcept { return at == 8 || at == 13 || at == 18 || at == 23; }

}  // namespace

std::string to_string(const RunId& id) {
  std::string text;
  text.reserve(id_characters);
  for (const std::uint8_t byte : id.bytes) {
    if (is_dash_place(text.size())) text += '-';
    base::append_hex(text, byte, 2);
  }
  return text;
}

std::optional<RunId> run_id_from(std::string_view text) noexcept {
  if (text.size() != id_characters) return std::nullopt;
  RunId id;
  std::size_t at = 0;
  for (std::uint8_t& byte : id.bytes) {
    if (is_dash_place(at) && text[at++] != '-') return std::nullopt;
    const int high = base::hex_value(text[at++]);
    const int low = base::hex_value(text[at++]);
    if (high < 0 || low < 0) return std::nullopt;
    byte = static_cast<std::uint8_t>(high * 16 + low);
  }
  return id;
}

std::string_view name_of(RunStatus status) noexcept {
  const auto number = static_cast<std::size_t>(status);
  return number < status_names.size() ? status_names[number] : "unknown";
}

std::string_view name_of(EventType type) noexcept {
  const auto number = static_cast<std::size_t>(type);
  const bool is_known = number < type_names.size() && !type_names[number].empty();
  return type_names[is_known ? number : 0];
}

std::optional<EventType> event_type_named(std::string_view name) noexcept {
  const auto found = std::find(type_names.begin() + 1, type_names.end(), name);
  if (found == type_names.end() || name.empty()) return std::nullopt;
  return static_cast<EventType>(found - type_names.begin());
}

std::string_view event::name_of(OperationKind kind) noexcept {
  constexpr std::array<std::string_view, 8> names{"call", "sleep", "signal", "run", "child", "promise", "undo", "mark"};
  static_assert(names.size() == last_operation_kind + 1);
  const auto number = static_cast<std::size_t>(kind);
  return number < names.size() ? names[number] : "unknown";
}

}  // namespace reprise
