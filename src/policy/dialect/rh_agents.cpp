// rh-agents: RetryConfig, seconds as numbers, filters by exception type.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "policy/dialect/reading.hpp"
#include "policy/dialect/writing.hpp"
#include "text/scalar.hpp"

namespace reprise::dialect {
namespace {

using text::Report;
using text::Value;

constexpr double jitter_ratio = 0.25;

// Never retried, whatever the config says; exclude_exceptions adds to them.
constexpr std::array<const char*, 5> always_excluded{"ValidationError", "ValueError", "TypeError", "KeyError",
                                                     "AttributeError"};
// Retried when retry_on_exceptions is not given; ConnectionError stands for its whole family.
constexpr std::array<const char*, 2> retried_by_default{"TimeoutError", "ConnectionError"};

FailureRules types(std::span<const char* const> names) {
  FailureRules rules;
  for (const char* name : names) rules.push_back(FailureRule::of_type(name));
  return rules;
}

bool contains(const FailureRules& rules, const FailureRule& rule) {
  return std::ranges::find(rules, rule) != rules.end();
}

void write_backoff(const Policy& policy, Value& map, Losses& losses) {
  const bool known = policy.backoff == Backoff::constant || policy.backoff == Backoff::exponential ||
                     policy.backoff == Backoff::fibonacci ||
                     (policy.backoff == Backoff::linear && grows_by_itself(policy));
  if (!known)
    losses.push_back(backoff_in_words(policy) + (policy.backoff == Backoff::linear
                                                     ? " (written as growing by initial_delay)"
                                                     : " (written as exponential)"));
  const bool written_by_name = known || policy.backoff == Backoff::linear;
  map.set("backoff_strategy", written_by_name ? std::string{name_of(policy.backoff)} : "exponential");
  map.set("initial_delay", seconds(policy.initial));
  map.set("max_delay", seconds(effective_max(policy)));
  map.set("backoff_multiplier", policy.factor);
  const bool ratio = policy.jitter == Jitter::ratio && policy.jitter_ratio == jitter_ratio;
  if (policy.jitter != Jitter::none && !ratio)
    losses.push_back(fmt::format("{} jitter (written as ±25 %)", policy.jitter == Jitter::ratio
                                                                     ? fmt::format("±{:g} %", policy.jitter_ratio * 100)
                                                                     : std::string{name_of(policy.jitter)}));
  map.set("jitter", policy.jitter != Jitter::none);
}

// Could a failure of this type, or of one below it, be retried by what only_on says?
bool may_retry(const Policy& policy, std::string_view type) {
  if (!policy.only_on) return true;
  return std::ranges::any_of(*policy.only_on, [&](const FailureRule& rule) {
    const TypeTree& tree = TypeTree::builtin();
    return rule.what != FailureRule::What::type || tree.is_a(type, rule.text) || tree.is_a(rule.text, type);
  });
}

void write_filters(const Policy& policy, Value& map, Losses& losses) {
  const FailureRules excluded = types(always_excluded);
  FailureRules never_on = policy.never_on.value_or(FailureRules{});
  std::string forced;
  for (const FailureRule& rule : excluded) {
    if (!contains(never_on, rule) && may_retry(policy, rule.text)) forced += (forced.empty() ? "" : ", ") + rule.text;
  }
  if (!forced.empty()) losses.push_back(fmt::format("retrying on {}: rh-agents never does", forced));
  std::erase_if(never_on, [&](const FailureRule& rule) { return contains(excluded, rule); });

  if (!policy.only_on) {
    losses.push_back("retrying on errors without a type: rh-agents looks at types only");
    map.set("retry_on_exceptions", type_names("only_on", {FailureRule::of_type("Exception")}, losses));
  } else if (*policy.only_on != types(retried_by_default)) {
    map.set("retry_on_exceptions", type_names("only_on", *policy.only_on, losses));
  }
  if (!never_on.empty()) map.set("exclude_exceptions", type_names("never_on", never_on, losses));
  const bool lists_types =
      (policy.only_on && !policy.only_on->empty()) || (policy.never_on && !policy.never_on->empty());
  if (policy.match == Matching::exact && lists_types)
    losses.push_back("matching error types exactly (rh-agents also matches subtypes)");
}

std::string unwrap(const text::Node&) { return "write what stands under retry_config: alone"; }

}  // namespace

Policy read_rh_agents(const text::Node& root, Report& report) {
  Policy policy{.max = std::chrono::seconds{60},
                .jitter = Jitter::ratio,
                .jitter_ratio = jitter_ratio,
                .only_on = types(retried_by_default),
                .never_on = types(always_excluded),
                .stops_on_class = false};
  policy.elapsed_from = ElapsedFrom::first_start;
  text::Fields fields{root, "", report};
  if (const auto field = fields.find("max_attempts"))
    assign(policy.max_attempts, text::read_whole(*field, {1, counts_max}, report));
  if (const auto field = fields.find("backoff_strategy")) {
    if (const auto word = text::read_word(*field, {"constant", "linear", "exponential", "fibonacci"}, report)) {
      policy.backoff = backoff_named(*word);
    }
  }
  if (const auto field = fields.find("initial_delay")) assign(policy.initial, read_seconds(*field, report));
  if (const auto field = fields.find("max_delay")) assign(policy.max, read_seconds(*field, report));
  if (const auto field = fields.find("backoff_multiplier"))
    assign(policy.factor, text::read_decimal(*field, {.min = 1}, report));
  if (const auto field = fields.find("jitter")) {
    if (const auto on = text::read_boolean(*field, report)) policy.jitter = *on ? Jitter::ratio : Jitter::none;
  }
  if (const auto field = fields.find("retry_on_exceptions"); field && !is_null(*field))
    assign(policy.only_on, read_type_names(*field, report));
  if (const auto field = fields.find("exclude_exceptions"); field && !is_null(*field)) {
    for (FailureRule& rule : read_type_names(*field, report).value_or(FailureRules{})) {
      if (!contains(*policy.never_on, rule)) policy.never_on->push_back(std::move(rule));
    }
  }
  if (const auto field = fields.find("retry_timeout"); field && !is_null(*field))
    assign(policy.max_elapsed, read_seconds(*field, report));
  bool enabled = true;
  if (const auto field = fields.find("enabled")) assign(enabled, text::read_boolean(*field, report));
  if (!enabled) policy.max_attempts = 1;
  if (const auto field = fields.find("backoff_multiplier"); field && policy.backoff != Backoff::exponential) {
    report.warning(*field->node, fmt::format("backoff_multiplier is not used by {} backoff", name_of(policy.backoff)));
  }
  if (fields.is_map()) fields.finish({{"retry_config", unwrap}});
  return policy;
}

Value write_rh_agents(const Policy& policy, Losses& losses) {
  Value map = Value::map();
  map.set("max_attempts", capped_attempts(policy, losses));
  write_backoff(policy, map, losses);
  write_filters(policy, map, losses);
  if (policy.max_elapsed) map.set("retry_timeout", seconds(*policy.max_elapsed));
  lose_elapsed_from(policy, ElapsedFrom::first_start, losses);
  lose(policy,
       {Feature::attempt_timeout, Feature::class_rule, Feature::parallelism, Feature::retry_after,
        Feature::retry_budget, Feature::verdict},
       losses);
  return map;
}

}  // namespace reprise::dialect
