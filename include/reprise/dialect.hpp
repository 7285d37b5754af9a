// Retry policies as text: the native form and those of five other systems, read, explained, checked and converted.
//
//   auto read = reprise::read_policy(R"({"stop": {"max_attempts": 5}})", reprise::Dialect::azolla);
//   if (!read) std::cerr << reprise::render(read.error());
//   else use(read->policy);                       // a plain reprise::Policy, for retry() and decide()
//
// Needs the library target Reprise::text (libyaml and RE2). Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/classify.hpp>
#include <reprise/diagnostic.hpp>
#include <reprise/policy.hpp>

namespace reprise {

enum class Dialect : std::uint8_t { native, azolla, rh_agents, wave, argyll, prodigy };
inline constexpr Dialect all_dialects[] = {Dialect::native, Dialect::azolla, Dialect::rh_agents,
                                           Dialect::wave,   Dialect::argyll, Dialect::prodigy};

std::string_view name_of(Dialect dialect) noexcept;
std::optional<Dialect> dialect_named(std::string_view name) noexcept;

// Policies of the user's own, usable as a native `policy:` beside none, standard, aggressive and patient.
using NamedPolicies = std::map<std::string, Policy, std::less<>>;

struct ReadPolicy {
  Policy policy;
  std::vector<Diagnostic> warnings;  // the policy is valid but may not do what its author meant
};

// YAML or JSON. All mistakes are found in one pass. `file` is what diagnostics call the text.
std::expected<ReadPolicy, std::vector<Diagnostic>> read_policy(std::string text, Dialect dialect,
                                                               std::string file = "-", const NamedPolicies& names = {});

// What a system does for an actor type (tool, llm, agent, or your own) that nobody has configured. In rh_agents tool and llm are retried
// on that system's own list of errors, and no other type is retried at all; azolla, wave, argyll and prodigy make no difference.
Policy built_in_policy(Dialect dialect, std::string_view actor_type);

enum class TextFormat : std::uint8_t { yaml, json };

struct WrittenPolicy {
  std::string text;
  std::vector<std::string> losses;  // what the dialect cannot say; empty = it means exactly the same
};
WrittenPolicy write_policy(const Policy& policy, Dialect dialect, TextFormat format = TextFormat::yaml);

// The fields of the command line contract as one JSON object (docs/reference/policy.md).
std::string policy_json(const Policy& policy);

// What the policy does, in sentences for people, one per line.
std::string explain(const Policy& policy);

// User rules for classify(): `classify: [{when: "exit:3", class: deterministic}]`, or the list alone.
std::expected<std::vector<ClassifyRule>, std::vector<Diagnostic>> read_classify_rules(std::string text,
                                                                                      std::string file = "-");

// JSON Schema (draft-07) of the native policy, for editors.
std::string policy_schema();

}  // namespace reprise
