// The native policy: what `retry:` holds in a flow document (docs/reference/policy.md).
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "policy/dialect/other_words.hpp"
#include "policy/dialect/reading.hpp"
#include "policy/dialect/writing.hpp"
#include "text/duration.hpp"
#include "text/nearest.hpp"
#include "text/place.hpp"
#include "text/scalar.hpp"

namespace reprise::dialect {
namespace {

using text::Field;
using text::NodeType;
using text::Report;

constexpr auto grammar = text::DurationGrammar::native;

std::vector<std::string_view> policy_names(const NamedPolicies& names) {
  std::vector<std::string_view> all{"none", "standard", "aggressive", "patient"};
  for (const auto& [name, policy] : names) all.push_back(name);
  return all;
}

const Policy* find_policy(const Field& field, const NamedPolicies& names, Report& report) {
  if (field.node->type == NodeType::string) {
    const auto own = names.find(field.node->text);
    const Policy* found = own != names.end() ? &own->second : policy::named(field.node->text);
    if (found != nullptr) return found;
  }
  const auto all = policy_names(names);
  const bool glued = field.node->type == NodeType::string && field.node->text.find(':') != std::string::npos;
  const std::string_view close = field.node->is_scalar() ? text::nearest(field.node->text, all) : std::string_view{};
  report.error(*field.node,
               fmt::format("{}: expected {}, found {}", field.key, text::join_words(all), text::describe(*field.node)),
               glued           ? "a blank is missing after the colon"
               : close.empty() ? ""
                               : fmt::format("did you mean {}?", close));
  return nullptr;
}

void read_max_attempts(const Field& field, Policy& policy, Report& report) {
  if (is_null(field) || (field.node->type == NodeType::string && field.node->text == "unlimited")) {
    policy.max_attempts.reset();
  } else if (field.node->type == NodeType::string) {
    const auto quoted = text::whole_number(field.node->text);
    report.error(*field.node,
                 fmt::format("max_attempts: expected a whole number from 1, or unlimited, found {}",
                             text::describe(*field.node)),
                 quoted ? fmt::format("write {} without quotes", field.node->text) : "");
  } else {
    assign(policy.max_attempts, text::read_whole(field, {1, counts_max}, report));
  }
}

void read_optional_duration(const Field& field, std::optional<Duration>& target, Report& report) {
  if (is_null(field)) {
    target.reset();
  } else {
    assign(target, text::read_duration(field, grammar, report));
  }
}

void read_backoff(const Field& field, Policy& policy, Report& report) {
  if (field.node->type == NodeType::sequence) {
    policy.backoff = Backoff::list;
    policy.delays.clear();
    for (const text::Node* item :
         text::read_list(field, "durations", report, names_max).value_or(std::vector<const text::Node*>{})) {
      if (const auto delay = text::read_duration({"backoff", item}, grammar, report)) policy.delays.push_back(*delay);
    }
    return;
  }
  for (const Backoff backoff :
       {Backoff::constant, Backoff::linear, Backoff::exponential, Backoff::fibonacci, Backoff::decorrelated}) {
    if (field.node->type == NodeType::string && field.node->text == name_of(backoff)) {
      policy.backoff = backoff;
      return;
    }
  }
  constexpr std::string_view words[] = {"constant", "linear", "exponential", "fibonacci", "decorrelated"};
  const bool fixed = field.node->text == "fixed";
  const std::string_view close = fixed                     ? "constant"
                                 : field.node->is_scalar() ? text::nearest(field.node->text, words)
                                                           : std::string_view{};
  report.error(
      *field.node,
      fmt::format(
          "backoff: expected constant, linear, exponential, fibonacci, decorrelated or a list of durations, found {}",
          text::describe(*field.node)),
      close.empty() ? "" : fmt::format("did you mean {}?", close));
}

// 25%, 12.5%. The division happens in the text ("25e-2"), so that no rounding comes between reading and writing.
std::optional<double> percentage(std::string_view written) {
  if (!written.ends_with('%')) return std::nullopt;
  written.remove_suffix(1);
  const bool digits_and_point = !written.empty() && written.front() != '.' && !written.ends_with('.') &&
                                written.find_first_not_of("0123456789.") == std::string_view::npos;
  const auto value = digits_and_point ? text::finite_number(std::string{written} + "e-2") : std::nullopt;
  return value && *value <= 1 ? value : std::nullopt;
}

std::string percentage_text(double ratio) {
  char buffer[400];  // the smallest double needs 326 characters
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, ratio, std::chars_format::fixed).ptr;
  std::string digits(buffer, end);
  const std::size_t point = std::min(digits.find('.'), digits.size());
  if (point < digits.size()) digits.erase(point, 1);
  digits.append(point + 2 > digits.size() ? point + 2 - digits.size() : 0, '0');
  if (point + 2 < digits.size()) digits.insert(point + 2, ".");
  const std::size_t first = std::min(digits.find_first_not_of('0'), point + 1);
  return digits.substr(first) + "%";
}

void read_jitter(const Field& field, Policy& policy, Report& report) {
  const std::string& written = field.node->text;
  const bool word = field.node->type == NodeType::string;
  if (const auto ratio = word ? percentage(written) : std::nullopt) {
    policy.jitter = Jitter::ratio;
    policy.jitter_ratio = *ratio;
  } else if (word && (written == "none" || written == "full" || written == "equal")) {
    policy.jitter = written == "none" ? Jitter::none : written == "full" ? Jitter::full : Jitter::equal;
  } else {
    constexpr std::string_view words[] = {"none", "full", "equal"};
    const auto number = text::finite_number(written);
    const bool fraction = field.node->type == NodeType::number && number && *number >= 0 && *number <= 1;
    const std::string_view close = word ? text::nearest(written, words) : std::string_view{};
    report.error(*field.node,
                 fmt::format("jitter: expected none, full, equal or a ratio from 0% to 100%, found {}",
                             text::describe(*field.node)),
                 fraction         ? fmt::format("write {}", percentage_text(*number))
                 : !close.empty() ? fmt::format("did you mean {}?", close)
                                  : "such as 25%");
  }
}

std::optional<FailureRules> read_rules(const Field& field, Report& report) {
  const auto items = text::read_list(field, "classes, kinds, types, exit:N, http:N or /patterns/", report, rules_max);
  if (!items) return std::nullopt;
  FailureRules rules;
  for (const text::Node* item : *items) {
    auto rule = item->type == NodeType::string ? parse_rule(item->text)
                                               : std::unexpected(std::string{"an entry is text; quote it"});
    if (rule) {
      rules.push_back(*std::move(rule));
    } else {
      const std::string_view what = item->text.starts_with('/') ? "is not a pattern" : "cannot match anything";
      report.error(*item, fmt::format("{}: {} {}", field.key, text::describe(*item), what), rule.error());
    }
  }
  return rules;
}

// Words of other tools, so that a newcomer is told what to write here.
constexpr char initial_key[] = "initial";
constexpr char initial_or_wave_key[] = "initial; or put dialect: wave at the top, if the document is one of Wave's";
constexpr char max_key[] = "max";
constexpr char factor_key[] = "factor";
constexpr char only_on_key[] = "only_on";
constexpr char never_on_key[] = "never_on";
constexpr char timeout_key[] = "attempt_timeout";
constexpr char elapsed_key[] = "max_elapsed";
std::string unwrap_hint(const text::Node&) { return "write what stands under retry: alone"; }

void set_rules(text::Value& map, const char* key, const std::optional<FailureRules>& rules, Losses& losses) {
  if (!rules) return;
  text::Value list = text::Value::list();
  for (const FailureRule& rule : *rules) {
    if (rule.what == FailureRule::What::category) {
      losses.push_back(fmt::format("{} in {}: written as the nearest native entries", rule.text, key));
      switch (static_cast<ErrorCategory>(rule.low)) {
        case ErrorCategory::network:
          for (const char* entry : {"ConnectionError", "NetworkError", "/(?i)\\b(connection|network)\\b/"})
            list.add(entry);
          break;
        case ErrorCategory::timeout:
          for (const char* entry :
               {"timeout", "TimeoutError", "http:408", "http:504", "/(?i)\\b(timeout|timed out)\\b/"})
            list.add(entry);
          break;
        case ErrorCategory::server_error:
          for (const char* entry : {"http:5xx", "/(?i)\\b(server error|unavailable)\\b/"}) list.add(entry);
          break;
        case ErrorCategory::rate_limit:
          for (const char* entry : {"throttled", "http:429", "/(?i)\\b(rate limit|too many requests|429)\\b/"})
            list.add(entry);
          break;
      }
      continue;
    }
    const auto read_back = parse_rule(rule.text);
    if (!read_back || read_back->what != rule.what) {
      losses.push_back(
          fmt::format("\"{}\" in {}: it would be read as something else here", text::shorten(rule.text, 40), key));
      continue;
    }
    list.add(rule.text);
  }
  map.set(key, std::move(list));
}

text::Value optional_duration(const std::optional<Duration>& duration) {
  return duration ? text::Value{text::format_duration(*duration, grammar)} : text::Value{};
}

bool names_types(const std::optional<FailureRules>& rules) {
  return rules &&
         std::ranges::any_of(*rules, [](const FailureRule& rule) { return rule.what == FailureRule::What::type; });
}

}  // namespace

Policy read_native(const text::Node& root, const NamedPolicies& names, Report& report) {
  if (root.type == NodeType::string) {  // `retry: aggressive`
    const Policy* base = find_policy({"policy", &root}, names, report);
    return base != nullptr ? *base : policy::standard;
  }
  text::Fields fields{root, "", report};
  const auto base_name = fields.find("policy");
  const Policy* base = base_name ? find_policy(*base_name, names, report) : &policy::standard;
  Policy policy = base != nullptr ? *base : policy::standard;
  if (const auto field = fields.find("max_attempts")) read_max_attempts(*field, policy, report);
  if (const auto field = fields.find("max_elapsed")) read_optional_duration(*field, policy.max_elapsed, report);
  if (const auto field = fields.find("attempt_timeout")) read_optional_duration(*field, policy.attempt_timeout, report);
  if (const auto field = fields.find("limits")) read_limits(*field, policy.worker_lost_max, report);
  if (const auto field = fields.find("backoff")) read_backoff(*field, policy, report);
  if (const auto field = fields.find("initial")) assign(policy.initial, text::read_duration(*field, grammar, report));
  if (const auto field = fields.find("increment"))
    assign(policy.increment, text::read_duration(*field, grammar, report));
  if (const auto field = fields.find("factor")) assign(policy.factor, text::read_decimal(*field, {.min = 1}, report));
  if (const auto field = fields.find("max")) read_optional_duration(*field, policy.max, report);
  if (const auto field = fields.find("jitter")) read_jitter(*field, policy, report);
  if (const auto field = fields.find("only_on")) assign(policy.only_on, read_rules(*field, report));
  if (const auto field = fields.find("never_on")) assign(policy.never_on, read_rules(*field, report));
  if (const auto field = fields.find("honor_retry_after"))
    assign(policy.honor_retry_after, text::read_boolean(*field, report));
  if (fields.is_map()) {
    fields.finish({{"retries", count_first_run<key::max_attempts>},
                   {"max_retries", count_first_run<key::max_attempts>},
                   {"attempts", use_instead<key::max_attempts>},
                   {"delay", use_instead<initial_key>},
                   {"base_delay", use_instead<initial_or_wave_key>},
                   {"initial_delay", use_instead<initial_key>},
                   {"max_delay", use_instead<max_key>},
                   {"multiplier", use_instead<factor_key>},
                   {"base", use_instead<factor_key>},
                   {"on", use_instead<only_on_key>},
                   {"retry_on", use_instead<only_on_key>},
                   {"include_errors", use_instead<only_on_key>},
                   {"exclude_errors", use_instead<never_on_key>},
                   {"timeout", use_instead<timeout_key>},
                   {"deadline", use_instead<elapsed_key>},
                   {"retry", unwrap_hint}});
  }
  return policy;
}

text::Value write_native(const Policy& policy, Losses& losses) {
  const Policy& defaults = policy::standard;
  text::Value map = text::Value::map();
  map.set("max_attempts",
          policy.max_attempts ? text::Value{capped_attempts(policy, losses)} : text::Value{"unlimited"});
  if (policy.max_elapsed) map.set("max_elapsed", optional_duration(policy.max_elapsed));
  if (policy.attempt_timeout) map.set("attempt_timeout", optional_duration(policy.attempt_timeout));
  if (policy.worker_lost_max) {
    text::Value limits = text::Value::map();
    limits.set("worker_lost", std::int64_t{*policy.worker_lost_max});
    map.set("limits", std::move(limits));
  }
  if (policy.backoff == Backoff::list) {
    text::Value delays = text::Value::list();
    for (const Duration delay : policy.delays) delays.add(text::format_duration(delay, grammar));
    map.set("backoff", std::move(delays));
  } else {
    map.set("backoff", std::string{name_of(policy.backoff)});
  }
  if (policy.backoff != Backoff::list || policy.initial != defaults.initial)
    map.set("initial", text::format_duration(policy.initial, grammar));
  if (policy.increment) map.set("increment", optional_duration(policy.increment));
  if (policy.backoff == Backoff::exponential || policy.factor != defaults.factor) map.set("factor", policy.factor);
  map.set("max", optional_duration(policy.max));
  map.set("jitter", policy.jitter == Jitter::ratio ? text::Value{percentage_text(policy.jitter_ratio)}
                                                   : text::Value{std::string{name_of(policy.jitter)}});
  std::optional<FailureRules> only_on = policy.only_on;
  if (!policy.stops_on_class && !only_on) {
    // Where every class is named, no class stops the work: that is how a policy without classes reads in native words.
    only_on.emplace();
    for (const FailureClass each :
         {FailureClass::transient, FailureClass::deterministic, FailureClass::budget_exhausted,
          FailureClass::contract_failure, FailureClass::test_failure}) {
      only_on->push_back(FailureRule::of(each));
    }
  }
  set_rules(map, "only_on", only_on, losses);
  set_rules(map, "never_on", policy.never_on, losses);
  if (!policy.honor_retry_after) map.set("honor_retry_after", false);
  if (policy.match == Matching::exact && (names_types(policy.only_on) || names_types(policy.never_on))) {
    losses.push_back(
        "matching error types exactly (native also matches subtypes, and dotted names by their last part)");
  }
  lose_elapsed_from(policy, ElapsedFrom::creation, losses);
  lose(policy, {Feature::parallelism, Feature::retry_budget, Feature::verdict}, losses);
  return map;
}

}  // namespace reprise::dialect
