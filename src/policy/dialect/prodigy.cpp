// Prodigy: `retry_config`, durations with units, backoff as a word or a map.
#include <algorithm>

#include <fmt/format.h>

#include "policy/dialect/other_words.hpp"
#include "policy/dialect/reading.hpp"
#include "policy/dialect/writing.hpp"
#include "text/nearest.hpp"
#include "text/pattern.hpp"

namespace reprise::dialect {
namespace {

using text::Field;
using text::NodeType;
using text::Report;
using text::Value;

constexpr auto grammar = text::DurationGrammar::humantime;
constexpr double default_jitter_factor = 0.3;
constexpr std::string_view strategies[] = {"fixed", "linear", "exponential", "fibonacci", "custom"};
constexpr ErrorCategory categories[] = {ErrorCategory::network, ErrorCategory::timeout, ErrorCategory::server_error,
                                        ErrorCategory::rate_limit};

void read_initial(text::Fields& fields, Policy& policy, Report& report) {
  if (const auto field = fields.find("initial")) assign(policy.initial, text::read_duration(*field, grammar, report));
}

void read_fixed(const text::Node& node, Policy& policy, Report& report) {
  text::Fields fields{node, "fixed", report};
  if (!fields.is_map()) return;
  policy.backoff = Backoff::constant;
  if (const auto field = fields.find("delay")) {
    assign(policy.initial, text::read_duration(*field, grammar, report));
  } else {
    report.error(node, "fixed: delay is missing", "write {fixed: {delay: 5s}}");
  }
  fields.finish();
}

void read_linear(const text::Node& node, Policy& policy, Report& report) {
  text::Fields fields{node, "linear", report};
  if (!fields.is_map()) return;
  policy.backoff = Backoff::linear;
  if (const auto field = fields.find("increment")) {
    assign(policy.increment, text::read_duration(*field, grammar, report));
  } else {
    report.error(node, "linear: increment is missing", "write {linear: {increment: 2s}}");
  }
  read_initial(fields, policy, report);
  fields.finish();
}

void read_exponential(const text::Node& node, Policy& policy, Report& report) {
  text::Fields fields{node, "exponential", report};
  if (!fields.is_map()) return;
  policy.backoff = Backoff::exponential;
  const auto base = fields.find("base");
  const auto multiplier = fields.find("multiplier");
  if (base) assign(policy.factor, text::read_decimal(*base, {.min = 1}, report));
  if (multiplier) assign(policy.factor, text::read_decimal(*multiplier, {.min = 1}, report));
  if (base && multiplier)
    report.error(*multiplier->node, "multiplier: base is given too, and they mean the same", "keep one of them");
  read_initial(fields, policy, report);
  fields.finish();
}

void read_fibonacci(const text::Node& node, Policy& policy, Report& report) {
  text::Fields fields{node, "fibonacci", report};
  if (!fields.is_map()) return;
  policy.backoff = Backoff::fibonacci;
  read_initial(fields, policy, report);
  fields.finish();
}

void read_custom(const text::Node& node, Policy& policy, Report& report) {
  text::Fields fields{node, "custom", report};
  if (!fields.is_map()) return;
  policy.backoff = Backoff::list;
  if (const auto field = fields.find("delays")) {
    for (const text::Node* item :
         text::read_list(*field, "durations", report, names_max).value_or(std::vector<const text::Node*>{})) {
      if (const auto delay = text::read_duration({"delays", item}, grammar, report)) policy.delays.push_back(*delay);
    }
  } else {
    report.error(node, "custom: delays is missing", "write {custom: {delays: [1s, 5s]}}");
  }
  fields.finish();
}

void read_backoff(const Field& field, Policy& policy, Report& report) {
  if (field.node->type != NodeType::mapping) {
    if (field.node->type == NodeType::string && field.node->text == "custom") {
      return report.error(*field.node, "backoff: custom needs its delays", "write {custom: {delays: [1s, 5s]}}");
    }
    if (const auto word = text::read_word(field, {"fixed", "linear", "exponential", "fibonacci"}, report)) {
      policy.backoff = backoff_named(*word);
    }
    return;
  }
  if (field.node->members.size() != 1) {
    report.error(*field.node,
                 fmt::format("backoff: expected exactly one strategy, found {}", field.node->members.size()),
                 "one of " + text::join_words(strategies));
  }
  for (const auto& [key, value] : field.node->members) {
    if (key->text == "fixed") {
      read_fixed(*value, policy, report);
    } else if (key->text == "linear") {
      read_linear(*value, policy, report);
    } else if (key->text == "exponential") {
      read_exponential(*value, policy, report);
    } else if (key->text == "fibonacci") {
      read_fibonacci(*value, policy, report);
    } else if (key->text == "custom") {
      read_custom(*value, policy, report);
    } else {
      const std::string_view close = text::nearest(key->text, strategies);
      report.error(
          *key, fmt::format("backoff: unknown strategy \"{}\"", key->text),
          (close.empty() ? "" : fmt::format("did you mean {}? ", close)) + "allowed: " + text::join_words(strategies));
    }
  }
}

void read_retry_on_entry(const text::Node& item, FailureRules& rules, Report& report) {
  if (item.type == NodeType::mapping) {
    text::Fields fields{item, "retry_on", report};
    const auto pattern = fields.find("pattern");
    fields.finish();
    if (!pattern)
      return report.error(item, "retry_on: pattern is missing", "write {pattern: \"a regular expression\"}");
    if (pattern->node->type != NodeType::string) {
      return report.error(*pattern->node,
                          fmt::format("pattern: expected text, found {}", text::describe(*pattern->node)));
    }
    auto compiled = text::compile_pattern(pattern->node->text);
    if (!compiled)
      return report.error(*pattern->node, fmt::format("pattern: RE2 cannot read it: {}", compiled.error()));
    rules.push_back(FailureRule::of_message("/" + pattern->node->text + "/", *std::move(compiled)));
    return;
  }
  for (const ErrorCategory category : categories) {
    if (item.type == NodeType::string && item.text == name_of(category))
      return rules.push_back(FailureRule::of(category));
  }
  constexpr std::string_view words[] = {"network", "timeout", "server_error", "rate_limit"};
  const std::string_view close = item.is_scalar() ? text::nearest(item.text, words) : std::string_view{};
  report.error(item,
               fmt::format("retry_on: expected network, timeout, server_error, rate_limit or {{pattern: …}}, found {}",
                           text::describe(item)),
               close.empty() ? "for other words use {pattern: \"…\"}" : fmt::format("did you mean {}?", close));
}

Value write_backoff(const Policy& policy, Losses& losses) {
  Value map = Value::map();
  Value inside = Value::map();
  switch (policy.backoff) {
    case Backoff::constant:
      return "fixed";
    case Backoff::fibonacci:
      return "fibonacci";
    case Backoff::decorrelated:
      losses.push_back("decorrelated backoff (written as exponential)");
      return "exponential";
    case Backoff::linear:
      if (!policy.increment) return "linear";
      inside.set("increment", text::format_duration(*policy.increment, grammar));
      map.set("linear", std::move(inside));
      return map;
    case Backoff::exponential:
      inside.set("base", policy.factor);
      map.set("exponential", std::move(inside));
      return map;
    case Backoff::list: {
      Value delays = Value::list();
      for (const Duration delay : policy.delays) delays.add(text::format_duration(delay, grammar));
      if (!policy.max) losses.push_back("repeating the last delay when the list is over");
      inside.set("delays", std::move(delays));
      map.set("custom", std::move(inside));
      return map;
    }
  }
  return map;
}

Value write_retry_on(const FailureRules& rules, Losses& losses) {
  Value list = Value::list();
  for (const FailureRule& rule : rules) {
    if (rule.what == FailureRule::What::category) {
      list.add(rule.text);
    } else if (rule.what == FailureRule::What::message) {
      Value pattern = Value::map();
      pattern.set("pattern", rule.text.substr(1, rule.text.size() - 2));
      list.add(std::move(pattern));
    } else {
      losses.push_back(fmt::format(
          "{} in only_on: retry_on knows network, timeout, server_error, rate_limit and patterns", rule.text));
    }
  }
  return list;
}

std::string unwrap(const text::Node&) { return "write what stands under retry_config: alone"; }

}  // namespace

Policy read_prodigy(const text::Node& root, Report& report) {
  Policy policy{.jitter = Jitter::none, .stops_on_class = false};
  text::Fields fields{root, "", report};
  const auto attempts = fields.find("attempts");
  const auto alias = fields.find("max_attempts");
  if (attempts) assign(policy.max_attempts, text::read_whole(*attempts, {1, counts_max}, report));
  if (alias) assign(policy.max_attempts, text::read_whole(*alias, {1, counts_max}, report));
  if (attempts && alias)
    report.error(*alias->node, "max_attempts: attempts is given too, and they mean the same", "keep one of them");
  if (const auto field = fields.find("initial_delay"))
    assign(policy.initial, text::read_duration(*field, grammar, report));
  if (const auto field = fields.find("backoff")) read_backoff(*field, policy, report);
  if (const auto field = fields.find("max_delay")) assign(policy.max, text::read_duration(*field, grammar, report));
  bool jitter = false;
  double factor = default_jitter_factor;
  if (const auto field = fields.find("jitter")) assign(jitter, text::read_boolean(*field, report));
  if (const auto field = fields.find("jitter_factor"))
    assign(factor, text::read_decimal(*field, {.min = 0, .max = 1}, report));
  if (const auto field = fields.find("jitter_factor"); field && !jitter) {
    report.warning(*field->node, "jitter_factor is not used without jitter: true");
  }
  if (jitter) {
    policy.jitter = Jitter::ratio;
    policy.jitter_ratio = factor;
  }
  if (const auto field = fields.find("retry_budget"))
    assign(policy.retry_budget, text::read_duration(*field, grammar, report));
  if (const auto field = fields.find("retry_on")) {
    FailureRules rules;
    for (const text::Node* item :
         text::read_list(*field, "network, timeout, server_error, rate_limit or {pattern: …}", report, rules_max)
             .value_or(std::vector<const text::Node*>{})) {
      read_retry_on_entry(*item, rules, report);
    }
    if (!rules.empty()) policy.only_on = std::move(rules);  // an empty list retries every error
  }
  if (fields.is_map()) {
    fields.finish({{"retries", count_first_run<key::attempts>},
                   {"max_retries", count_first_run<key::attempts>},
                   {"delay", use_instead<key::initial_delay>},
                   {"initial", use_instead<key::initial_delay>},
                   {"base_delay", use_instead<key::initial_delay>},
                   {"max", use_instead<key::max_delay>},
                   {"retry_config", unwrap}});
  }
  return policy;
}

Value write_prodigy(const Policy& policy, Losses& losses) {
  Value map = Value::map();
  map.set("attempts", capped_attempts(policy, losses));
  map.set("backoff", write_backoff(policy, losses));
  map.set("initial_delay", text::format_duration(policy.initial, grammar));
  map.set("max_delay", text::format_duration(effective_max(policy), grammar));
  if (policy.jitter == Jitter::ratio) {
    map.set("jitter", true);
    map.set("jitter_factor", policy.jitter_ratio);
  } else if (policy.jitter != Jitter::none) {
    losses.push_back(fmt::format("{} jitter (written as none)", name_of(policy.jitter)));
  }
  if (policy.retry_budget) map.set("retry_budget", text::format_duration(*policy.retry_budget, grammar));
  if (policy.only_on && policy.only_on->empty()) {
    losses.push_back("retrying on nothing: an empty retry_on retries every error");
  } else if (policy.only_on) {
    Value retry_on = write_retry_on(*policy.only_on, losses);
    if (retry_on.empty())
      losses.push_back("retrying on some errors only (written as an empty list, so every error is retried)");
    map.set("retry_on", std::move(retry_on));
  }
  if (policy.never_on && !policy.never_on->empty())
    losses.push_back(fmt::format("never retrying on: {}", rules_in_words(*policy.never_on)));
  lose(policy,
       {Feature::attempt_timeout, Feature::class_rule, Feature::max_elapsed, Feature::parallelism, Feature::retry_after,
        Feature::verdict},
       losses);
  return map;
}

}  // namespace reprise::dialect
