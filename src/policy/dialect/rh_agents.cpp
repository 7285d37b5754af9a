// rh-agents: RetryConfig, seconds as numbers, filters by exception type.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "policy/dialect/other_words.hpp"
#include "policy/dialect/reading.hpp"
#include "policy/dialect/writing.hpp"
#include "text/scalar.hpp"

namespace reprise::dialect {
namespace {

using text::Report;
using text::Value;

constexpr double jitter_ratio = 0.25;
constexpr Duration built_in_max = std::chrono::seconds{30};

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

// Would a type of this name be read as something else?
bool means_something_else(std::string_view name) {
  return name.starts_with('/') || name.starts_with("signal:") || name.starts_with("http:") || name.starts_with("exit:");
}

// An exception type, or a status or exit code that stands for errors without a type. Patterns and signals name no exception.
std::optional<FailureRule> read_entry(const text::Node& item, std::string_view key, Report& report) {
  constexpr const char* help = "write an exception type such as TimeoutError, http:503, http:5xx or exit:75";
  const bool is_text = item.type == text::NodeType::string && !item.text.empty();
  if (!is_text) {
    report.error(item, fmt::format("{}: expected an exception type, found {}", key, text::describe(item)), help);
    return std::nullopt;
  }
  const bool is_pattern = item.text.starts_with('/') || item.text.starts_with("signal:");
  if (is_pattern) {
    report.error(
        item, fmt::format("{}: {} cannot match anything: the list names exceptions", key, text::describe(item)), help);
    return std::nullopt;
  }
  if (!item.text.starts_with("http:") && !item.text.starts_with("exit:")) return FailureRule::of_type(item.text);
  auto rule = parse_rule(item.text);
  if (rule) return *std::move(rule);
  report.error(item, fmt::format("{}: {} cannot match anything", key, text::describe(item)), rule.error());
  return std::nullopt;
}

std::optional<FailureRules> read_entries(const text::Field& field, Report& report) {
  const auto items = text::read_list(field, "exception types", report, names_max);
  if (!items) return std::nullopt;
  FailureRules rules;
  for (const text::Node* item : *items) {
    if (auto rule = read_entry(*item, field.key, report)) rules.push_back(*std::move(rule));
  }
  return rules;
}

// The entries that its lists can hold; the others are lost from the list of this name.
Value entries(const char* list, const FailureRules& rules, Losses& losses) {
  using enum FailureRule::What;
  Value names = Value::list();
  for (const FailureRule& rule : rules) {
    const bool is_code = rule.what == http_status || rule.what == exit_code;
    if (is_code || (rule.what == type && !means_something_else(rule.text))) {
      names.add(rule.text);
    } else {
      losses.push_back(
          fmt::format("{} in {}: rh-agents names exception types, statuses and exit codes", rule.text, list));
    }
  }
  return names;
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
    map.set("retry_on_exceptions", entries("only_on", {FailureRule::of_type("Exception")}, losses));
  } else if (*policy.only_on != types(retried_by_default)) {
    map.set("retry_on_exceptions", entries("only_on", *policy.only_on, losses));
  }
  if (!never_on.empty()) map.set("exclude_exceptions", entries("never_on", never_on, losses));
  const bool lists_types =
      (policy.only_on && !policy.only_on->empty()) || (policy.never_on && !policy.never_on->empty());
  if (policy.match == Matching::exact && lists_types)
    losses.push_back("matching error types exactly (rh-agents also matches subtypes)");
}

std::string unwrap(const text::Node&) { return "write what stands under retry_config: alone"; }

}  // namespace

Policy rh_agents_built_in(std::string_view actor_type) {
  Policy policy = default_policy(Dialect::rh_agents);
  policy.max = built_in_max;
  const std::string_view type = actor_type_of(actor_type);
  if (type != "tool" && type != "llm") policy.max_attempts = 1;
  return policy;
}

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
    assign(policy.only_on, read_entries(*field, report));
  if (const auto field = fields.find("exclude_exceptions"); field && !is_null(*field)) {
    for (FailureRule& rule : read_entries(*field, report).value_or(FailureRules{})) {
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
  if (fields.is_map()) {
    fields.finish({{"retries", count_first_run<key::max_attempts>},
                   {"max_retries", count_first_run<key::max_attempts>},
                   {"attempts", use_instead<key::max_attempts>},
                   {"backoff", use_instead<key::backoff_strategy>},
                   {"delay", use_instead<key::initial_delay_in_seconds>},
                   {"initial", use_instead<key::initial_delay_in_seconds>},
                   {"base_delay", use_instead<key::initial_delay_in_seconds>},
                   {"max", use_instead<key::max_delay_in_seconds>},
                   {"multiplier", use_instead<key::backoff_multiplier>},
                   {"factor", use_instead<key::backoff_multiplier>},
                   {"retry_on", use_instead<key::retry_on_exceptions>},
                   {"timeout", use_instead<key::retry_timeout>},
                   {"retry_config", unwrap}});
  }
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
