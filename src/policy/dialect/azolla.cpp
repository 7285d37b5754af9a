// Azolla: {version, stop, wait, retry}, seconds as numbers.
#include <fmt/format.h>

#include "policy/dialect/other_words.hpp"
#include "policy/dialect/reading.hpp"
#include "policy/dialect/writing.hpp"
#include "text/duration.hpp"
#include "text/scalar.hpp"

namespace reprise::dialect {
namespace {

using text::Field;
using text::Report;
using text::Value;

void read_stop(const Field& section, Policy& policy, Report& report) {
  text::Fields fields{*section.node, section.key, report};
  if (!fields.is_map()) return;
  if (const auto field = fields.find("max_attempts")) {
    if (is_null(*field)) {
      policy.max_attempts.reset();
    } else {
      assign(policy.max_attempts, text::read_whole(*field, {1, counts_max}, report));
    }
  }
  if (const auto field = fields.find("max_delay")) {
    if (!is_null(*field)) assign(policy.max_elapsed, read_seconds(*field, report));
  }
  fields.finish({{"retries", count_first_run<key::max_attempts>},
                 {"max_retries", count_first_run<key::max_attempts>},
                 {"attempts", use_instead<key::max_attempts>}});
}

void warn_unused(text::Fields& fields, std::string_view strategy, Report& report) {
  const auto unused = [&](std::string_view key) {
    if (const auto field = fields.find(key))
      report.warning(*field->node, fmt::format("{} is not used by the strategy {}", key, strategy));
  };
  if (strategy != "fixed") return unused("delay");
  for (const std::string_view key : {"initial_delay", "multiplier", "max_delay"}) unused(key);
}

void read_wait(const Field& section, Policy& policy, Report& report) {
  text::Fields fields{*section.node, section.key, report};
  if (!fields.is_map()) return;
  std::string_view strategy = "exponential_jitter";
  bool is_known = true;
  Duration delay = std::chrono::seconds{1};
  if (const auto field = fields.find("strategy")) {
    const auto word = text::read_word(*field, {"fixed", "exponential", "exponential_jitter"}, report);
    is_known = word.has_value();
    assign(strategy, word);
  }
  if (const auto field = fields.find("delay")) assign(delay, read_seconds(*field, report));
  if (const auto field = fields.find("initial_delay")) assign(policy.initial, read_seconds(*field, report));
  if (const auto field = fields.find("multiplier"))
    assign(policy.factor, text::read_decimal(*field, {.min = 1}, report));
  if (const auto field = fields.find("max_delay")) assign(policy.max, read_seconds(*field, report));
  if (is_known) warn_unused(fields, strategy, report);
  fields.finish();
  if (strategy == "fixed") {  // its formula has no cap and no growth
    policy.backoff = Backoff::constant;
    policy.initial = delay;
    policy.factor = policy::standard.factor;
    policy.max.reset();
  }
  policy.jitter = strategy == "exponential_jitter" ? Jitter::full : Jitter::none;
}

void read_retry(const Field& section, Policy& policy, Report& report) {
  text::Fields fields{*section.node, section.key, report};
  if (!fields.is_map()) return;
  if (const auto field = fields.find("include_errors")) assign(policy.only_on, read_type_names(*field, report));
  if (const auto field = fields.find("exclude_errors")) assign(policy.never_on, read_type_names(*field, report));
  fields.finish();
}

Value write_wait(const Policy& policy, Losses& losses) {
  Value wait = Value::map();
  const bool constant = policy.backoff == Backoff::constant;
  if (constant && policy.jitter == Jitter::none) {
    wait.set("strategy", "fixed");
    wait.set("delay", seconds(effective_constant(policy)));
    return wait;
  }
  if (!constant && policy.backoff != Backoff::exponential) {
    losses.push_back(backoff_in_words(policy) + " (written as exponential)");
  }
  if (policy.jitter == Jitter::equal || policy.jitter == Jitter::ratio) {
    losses.push_back(fmt::format("{} jitter (written as full jitter)", name_of(policy.jitter)));
  }
  wait.set("strategy", policy.jitter == Jitter::none ? "exponential" : "exponential_jitter");
  wait.set("initial_delay", seconds(policy.initial));
  wait.set("multiplier", constant ? 1.0 : policy.factor);  // growing by 1 is not growing
  wait.set("max_delay", seconds(effective_max(policy)));
  return wait;
}

}  // namespace

Policy read_azolla(const text::Node& root, Report& report) {
  Policy policy{.max_attempts = 5,
                .elapsed_from = ElapsedFrom::submission,
                .max = std::chrono::seconds{300},
                .only_on = FailureRules{FailureRule::of_type("ValueError")},
                .match = Matching::exact,
                .stops_on_class = false};
  text::Fields fields{root, "", report};
  if (const auto field = fields.find("version");
      field && !(field->node->type == text::NodeType::integer && field->node->text == "1")) {
    report.error(*field->node, fmt::format("version: expected 1, found {}", text::describe(*field->node)),
                 "this reader knows version 1");
  }
  if (const auto field = fields.find("stop")) read_stop(*field, policy, report);
  if (const auto field = fields.find("wait")) read_wait(*field, policy, report);
  if (const auto field = fields.find("retry")) read_retry(*field, policy, report);
  fields.finish_ignoring();  // unknown top-level keys belong to the future
  return policy;
}

Value write_azolla(const Policy& policy, Losses& losses) {
  Value map = Value::map();
  map.set("version", std::int64_t{1});
  Value stop = Value::map();
  stop.set("max_attempts", policy.max_attempts ? Value{capped_attempts(policy, losses)} : Value{});
  if (policy.max_elapsed) stop.set("max_delay", seconds(*policy.max_elapsed));
  map.set("stop", std::move(stop));
  map.set("wait", write_wait(policy, losses));
  Value retry = Value::map();
  if (policy.only_on) {
    retry.set("include_errors", type_names("only_on", *policy.only_on, losses));
  } else {
    losses.push_back(
        "retrying on every kind of error (written as an empty list, so nothing is retried): Azolla lists types");
    retry.set("include_errors", Value::list());
  }
  if (policy.never_on) retry.set("exclude_errors", type_names("never_on", *policy.never_on, losses));
  map.set("retry", std::move(retry));
  if (policy.match == Matching::tree && (policy.only_on || policy.never_on))
    losses.push_back("matching subtypes of the listed error types");
  lose_elapsed_from(policy, ElapsedFrom::submission, losses);
  lose(policy,
       {Feature::attempt_timeout, Feature::parallelism, Feature::retry_after, Feature::retry_budget, Feature::verdict},
       losses);
  return map;
}

}  // namespace reprise::dialect
