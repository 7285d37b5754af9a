// Policy values: names, named bases, equality, and which level's policy applies.
#include <reprise/policy.hpp>

#include <algorithm>
#include <array>

namespace reprise {
namespace {

template <std::size_t Count, class Enum>
std::string_view name_in(const std::array<std::string_view, Count>& names, Enum value) noexcept {
  return names[static_cast<std::size_t>(value)];
}

}  // namespace

std::string_view name_of(Backoff backoff) noexcept {
  static constexpr std::array<std::string_view, 6> names{"constant",  "linear", "exponential",
                                                         "fibonacci", "list",   "decorrelated"};
  return name_in(names, backoff);
}

std::string_view name_of(Jitter jitter) noexcept {
  static constexpr std::array<std::string_view, 4> names{"none", "full", "equal", "ratio"};
  return name_in(names, jitter);
}

std::string_view name_of(Matching matching) noexcept { return matching == Matching::tree ? "tree" : "exact"; }

std::string_view name_of(ErrorCategory category) noexcept {
  static constexpr std::array<std::string_view, 4> names{"network", "timeout", "server_error", "rate_limit"};
  return name_in(names, category);
}

std::string_view name_of(StopReason reason) noexcept {
  static constexpr std::array<std::string_view, 12> names{"none",       "canceled",     "permanent", "not_listed",
                                                          "no_verdict", "circuit_open", "attempts",  "deadline",
                                                          "budget",     "max_visits",   "lost",      "unclear"};
  static_assert(names.size() == static_cast<std::size_t>(last_stop_reason) + 1);
  return name_in(names, reason);
}

namespace {
constexpr std::array<std::string_view, 3> effect_names{"keyed", "idempotent", "at_most_once"};
}  // namespace

std::string_view name_of(Effect effect) noexcept { return name_in(effect_names, effect); }

std::optional<Effect> effect_named(std::string_view name) noexcept {
  for (std::size_t index = 0; index < effect_names.size(); ++index) {
    if (effect_names[index] == name) return static_cast<Effect>(index);
  }
  return std::nullopt;
}

std::string_view name_of(PolicyLevel level) noexcept {
  static constexpr std::array<std::string_view, 5> names{"work item", "step", "actor type", "run", "built-in"};
  return name_in(names, level);
}

bool Policy::operator==(const Policy& other) const = default;

const Policy* policy::named(std::string_view name) noexcept {
  if (name == "none") return &none;
  if (name == "standard") return &standard;
  if (name == "aggressive") return &aggressive;
  if (name == "patient") return &patient;
  return nullptr;
}

std::string_view actor_type_of(std::string_view word) noexcept {
  const auto is = [&](std::string_view name) {
    const auto small = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(word, name, {}, small);
  };
  if (is("tool") || is("tool_call")) return "tool";
  if (is("llm") || is("llm_call")) return "llm";
  return is("agent") || is("agent_call") ? "agent" : word;
}

ResolvedPolicy resolve(const PolicyLevels& levels, std::string_view actor_type) noexcept {
  if (levels.work_item != nullptr) return {levels.work_item, PolicyLevel::work_item};
  if (levels.step != nullptr) return {levels.step, PolicyLevel::step};
  if (levels.actor_type != nullptr) return {levels.actor_type, PolicyLevel::actor_type};
  if (levels.run != nullptr) return {levels.run, PolicyLevel::run};
  actor_type = actor_type_of(actor_type);
  if (actor_type == "tool") return {&policy::tool, PolicyLevel::built_in};
  if (actor_type == "llm") return {&policy::llm, PolicyLevel::built_in};
  if (actor_type == "agent") return {&policy::agent, PolicyLevel::built_in};
  return {&policy::standard, PolicyLevel::built_in};
}

}  // namespace reprise
