// Wave: a step's `retry:` block: a named policy and overrides, Go durations, no jitter.
#include <fmt/format.h>

#include "policy/dialect/other_words.hpp"
#include "policy/dialect/reading.hpp"
#include "policy/dialect/writing.hpp"

namespace reprise::dialect {
namespace {

using text::Report;
using text::Value;

constexpr auto grammar = text::DurationGrammar::go;

std::string unwrap(const text::Node&) { return "write what stands under retry: alone"; }

}  // namespace

Policy read_wave(const text::Node& root, Report& report) {
  Policy policy = policy::standard;
  policy.max_attempts = 1;
  text::Fields fields{root, "", report};
  if (const auto field = fields.find("policy")) {
    if (const auto name = text::read_word(*field, {"none", "standard", "aggressive", "patient"}, report))
      policy = *policy::named(*name);
  }
  policy.jitter = Jitter::none;
  if (const auto field = fields.find("max_attempts"))
    assign(policy.max_attempts, text::read_whole(*field, {1, counts_max}, report));
  if (const auto field = fields.find("backoff")) {
    if (const auto word = text::read_word(*field, {"fixed", "linear", "exponential"}, report)) {
      policy.backoff = backoff_named(*word);
    }
  }
  if (const auto field = fields.find("base_delay"))
    assign(policy.initial, text::read_duration(*field, grammar, report));
  if (const auto field = fields.find("max_delay")) assign(policy.max, text::read_duration(*field, grammar, report));
  if (const auto field = fields.find("factor")) assign(policy.factor, text::read_decimal(*field, {.min = 1}, report));
  if (const auto field = fields.find("factor"); field && policy.backoff != Backoff::exponential) {
    report.warning(*field->node, fmt::format("factor is not used by {} backoff",
                                             policy.backoff == Backoff::linear ? "linear" : "fixed"));
  }
  if (fields.is_map()) {
    fields.finish({{"retries", count_first_run<key::max_attempts>},
                   {"max_retries", count_first_run<key::max_attempts>},
                   {"attempts", use_instead<key::max_attempts>},
                   {"delay", use_instead<key::base_delay>},
                   {"initial", use_instead<key::base_delay>},
                   {"initial_delay", use_instead<key::base_delay>},
                   {"max", use_instead<key::max_delay>},
                   {"multiplier", use_instead<key::factor>},
                   {"base", use_instead<key::factor>},
                   {"retry", unwrap}});
  }
  return policy;
}

Value write_wave(const Policy& policy, Losses& losses) {
  Value map = Value::map();
  map.set("max_attempts", capped_attempts(policy, losses));
  std::string backoff = policy.backoff == Backoff::constant ? "fixed" : std::string{name_of(policy.backoff)};
  const bool known = policy.backoff == Backoff::constant || policy.backoff == Backoff::exponential ||
                     (policy.backoff == Backoff::linear && grows_by_itself(policy));
  if (!known) {
    const bool linear = policy.backoff == Backoff::linear;
    losses.push_back(backoff_in_words(policy) +
                     (linear ? " (written as growing by base_delay)" : " (written as exponential)"));
    if (!linear) backoff = "exponential";
  }
  map.set("backoff", std::move(backoff));
  map.set("base_delay", text::format_duration(policy.initial, grammar));
  map.set("max_delay", text::format_duration(effective_max(policy), grammar));
  if (policy.backoff == Backoff::exponential || policy.factor != policy::standard.factor)
    map.set("factor", policy.factor);
  if (policy.jitter != Jitter::none)
    losses.push_back(fmt::format("{} jitter: Wave waits exactly", name_of(policy.jitter)));
  if (!policy.stops_on_class)
    losses.push_back("retrying failures of every class: Wave stops on deterministic and budget_exhausted");
  lose(policy,
       {Feature::attempt_timeout, Feature::filters, Feature::max_elapsed, Feature::parallelism, Feature::retry_after,
        Feature::retry_budget, Feature::verdict},
       losses);
  return map;
}

}  // namespace reprise::dialect
