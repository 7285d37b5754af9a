#include "policy/dialect/reading.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "text/duration.hpp"

namespace reprise::dialect {

bool is_null(const text::Field& field) noexcept { return field.node->type == text::NodeType::null; }

std::optional<FailureRules> read_type_names(const text::Field& field, text::Report& report) {
  const auto items = text::read_list(field, "error type names", report);
  if (!items) return std::nullopt;
  FailureRules rules;
  for (const text::Node* item : *items) {
    if (item->type != text::NodeType::string || item->text.empty()) {
      report.error(*item, fmt::format("{}: expected an error type name, found {}", field.key, text::describe(*item)),
                   "such as TimeoutError");
      continue;
    }
    rules.push_back(FailureRule::of_type(item->text));
  }
  return rules;
}

void lose_attempt_timeout(const Policy& policy, Losses& losses) {
  if (policy.attempt_timeout)
    losses.push_back(fmt::format("the limit of {} for each attempt", text::format_duration(*policy.attempt_timeout)));
}

void lose_max_elapsed(const Policy& policy, Losses& losses) {
  if (policy.max_elapsed)
    losses.push_back(
        fmt::format("giving up {} after the work was created", text::format_duration(*policy.max_elapsed)));
}

void lose_retry_budget(const Policy& policy, Losses& losses) {
  if (policy.retry_budget)
    losses.push_back(
        fmt::format("the budget of {} for all waits together", text::format_duration(*policy.retry_budget)));
}

void lose_parallelism(const Policy& policy, Losses& losses) {
  if (policy.parallelism != 1) losses.push_back(fmt::format("running {} work items at a time", policy.parallelism));
}

void lose_retry_after(const Policy& policy, Losses& losses) {
  if (!policy.honor_retry_after) losses.push_back("ignoring what a server asks for with Retry-After");
}

void lose_verdict(const Policy& policy, Losses& losses) {
  if (policy.needs_verdict) losses.push_back("retrying only what the handler itself reports as not completed");
}

void lose_filters(const Policy& policy, Losses& losses) {
  if (policy.only_on) losses.push_back(fmt::format("retrying only on: {}", rules_in_words(*policy.only_on)));
  if (policy.never_on && !policy.never_on->empty())
    losses.push_back(fmt::format("never retrying on: {}", rules_in_words(*policy.never_on)));
}

void lose_class_rule(const Policy& policy, Losses& losses) {
  // With only_on given, whatever it does not name stops anyway.
  if (policy.stops_on_class && !policy.only_on)
    losses.push_back("stopping on failures whose class is not retryable (deterministic, budget_exhausted)");
}

std::int64_t capped_attempts(const Policy& policy, Losses& losses) {
  if (!policy.max_attempts) {
    losses.push_back(fmt::format("unlimited attempts (written as {})", counts_max));
  } else if (*policy.max_attempts > static_cast<std::uint64_t>(counts_max)) {
    losses.push_back(fmt::format("{} attempts (written as {})", *policy.max_attempts, counts_max));
  } else {
    return static_cast<std::int64_t>(*policy.max_attempts);
  }
  return counts_max;
}

void lose_elapsed_from(const Policy& policy, ElapsedFrom target, Losses& losses) {
  if (!policy.max_elapsed || policy.elapsed_from == target) return;
  losses.push_back(target == ElapsedFrom::creation
                       ? "counting the deadline from the start of the first attempt (here: from creation)"
                       : "counting the deadline from creation (here: from the start of the first attempt)");
}

Duration effective_constant(const Policy& policy) noexcept { return std::min(policy.initial, effective_max(policy)); }

Duration effective_max(const Policy& policy) noexcept { return policy.max.value_or(Duration::max()); }

bool grows_by_itself(const Policy& policy) noexcept {
  return policy.increment.value_or(policy.initial) == policy.initial;
}

std::string backoff_in_words(const Policy& policy) {
  switch (policy.backoff) {
    case Backoff::linear:
      return fmt::format("linear backoff by {}", text::format_duration(policy.increment.value_or(policy.initial)));
    case Backoff::exponential:
      return fmt::format("exponential backoff by {:g}", policy.factor);
    case Backoff::list:
      return "a list of delays";
    default:
      return fmt::format("{} backoff", name_of(policy.backoff));
  }
}

std::string rules_in_words(const FailureRules& rules) {
  if (rules.empty()) return "nothing";
  std::string words;
  for (const FailureRule& rule : rules) words += (words.empty() ? "" : ", ") + rule.text;
  return words;
}

bool holds_only(const FailureRules& rules, FailureRule::What what) noexcept {
  return std::ranges::all_of(rules, [&](const FailureRule& rule) { return rule.what == what; });
}

}  // namespace reprise::dialect
