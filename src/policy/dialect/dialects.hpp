// The dialects: each is a pair of functions between a node tree and a Policy, and the words it uses for things.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/dialect.hpp>

#include "text/fields.hpp"
#include "text/value.hpp"

namespace reprise::dialect {

inline constexpr std::int64_t ns_per_second = 1'000'000'000;
inline constexpr std::int64_t ns_per_millisecond = 1'000'000;
inline constexpr std::int64_t counts_max = std::int64_t{1} << 32;
inline constexpr std::size_t names_max = 1000;  // error types or delays in one list
inline constexpr std::size_t rules_max = 256;   // entries of a list that may hold patterns, which take time to compile

// What the target of a conversion cannot say.
using Losses = std::vector<std::string>;

Policy read_native(const text::Node& root, const NamedPolicies& names, text::Report& report);
Policy read_azolla(const text::Node& root, text::Report& report);
Policy read_rh_agents(const text::Node& root, text::Report& report);
Policy read_wave(const text::Node& root, text::Report& report);
Policy read_argyll(const text::Node& root, text::Report& report);
Policy read_prodigy(const text::Node& root, text::Report& report);

text::Value write_native(const Policy& policy, Losses& losses);
text::Value write_azolla(const Policy& policy, Losses& losses);
text::Value write_rh_agents(const Policy& policy, Losses& losses);
text::Value write_wave(const Policy& policy, Losses& losses);
text::Value write_argyll(const Policy& policy, Losses& losses);
text::Value write_prodigy(const Policy& policy, Losses& losses);

// Any of them, for documents that hold policies; only native ones may use names.
Policy read_policy_in(const text::Node& node, Dialect dialect, const NamedPolicies& names, text::Report& report);

// What a document of that system means when it says nothing at all.
Policy default_policy(Dialect dialect);
Policy rh_agents_built_in(std::string_view actor_type);

// The entries of `classify:`.
std::vector<ClassifyRule> read_classify_list(const text::Field& field, text::Report& report);

// How a dialect names what a warning speaks of. A dotted name is a path into the document; "" = it has no such thing.
struct Vocabulary {
  std::string_view max_attempts;
  std::string_view max_elapsed;
  std::string_view initial;
  std::string_view max;
  std::string_view factor;
  std::string_view jitter;
  std::string_view delays;
  std::string_view only_on;
  std::string_view never_on;
  std::string_view retry_budget;
  std::string_view parallelism;
  std::string_view no_attempt_cap;  // what to write to have no cap on attempts
};
const Vocabulary& vocabulary_of(Dialect dialect) noexcept;

// Warnings about a valid policy, placed at the keys they speak of.
void warn_about(const Policy& policy, Dialect dialect, const text::Node& root, text::Report& report);

// An entry of only_on, never_on or `when`. The error says what is wrong with it.
std::expected<FailureRule, std::string> parse_rule(std::string_view text);

}  // namespace reprise::dialect
