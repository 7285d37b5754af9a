#include "policy/dialect/writing.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "text/duration.hpp"
#include "text/place.hpp"
#include "text/scalar.hpp"

namespace reprise::dialect {
namespace {

void lose_one(const Policy& policy, Feature feature, Losses& losses) {
  switch (feature) {
    case Feature::attempt_timeout:
      if (policy.attempt_timeout) {
        losses.push_back(
            fmt::format("the limit of {} for each attempt", text::format_duration(*policy.attempt_timeout)));
      }
      break;
    case Feature::class_rule:
      // With only_on given, whatever it does not name stops anyway.
      if (policy.stops_on_class && !policy.only_on) {
        losses.push_back("stopping on failures whose class is not retryable (deterministic, budget_exhausted)");
      }
      break;
    case Feature::filters:
      if (policy.only_on) losses.push_back(fmt::format("retrying only on: {}", rules_in_words(*policy.only_on)));
      if (policy.never_on && !policy.never_on->empty()) {
        losses.push_back(fmt::format("never retrying on: {}", rules_in_words(*policy.never_on)));
      }
      break;
    case Feature::max_elapsed:
      if (policy.max_elapsed) {
        losses.push_back(
            fmt::format("giving up {} after the work was created", text::format_duration(*policy.max_elapsed)));
      }
      break;
    case Feature::parallelism:
      if (policy.parallelism != 1) losses.push_back(fmt::format("running {} work items at a time", policy.parallelism));
      break;
    case Feature::retry_after:
      if (!policy.honor_retry_after) losses.push_back("ignoring what a server asks for with Retry-After");
      break;
    case Feature::retry_budget:
      if (policy.retry_budget) {
        losses.push_back(
            fmt::format("the budget of {} for all waits together", text::format_duration(*policy.retry_budget)));
      }
      break;
    case Feature::verdict:
      if (policy.needs_verdict) losses.push_back("retrying only what the handler itself reports as not completed");
      break;
  }
}

}  // namespace

void lose(const Policy& policy, std::initializer_list<Feature> features, Losses& losses) {
  for (const Feature feature : features) lose_one(policy, feature, losses);
}

std::int64_t capped_attempts(const Policy& policy, Losses& losses) {
  if (!policy.max_attempts) {
    losses.push_back(fmt::format("unlimited attempts (written as {})", counts_max));
  } else if (*policy.max_attempts > static_cast<std::uint64_t>(counts_max)) {
    losses.push_back(fmt::format("{} attempts (written as {})", *policy.max_attempts, counts_max));
  } else {
    return std::max<std::int64_t>(static_cast<std::int64_t>(*policy.max_attempts), 1);
  }
  return counts_max;
}

void lose_elapsed_from(const Policy& policy, ElapsedFrom target, Losses& losses) {
  const auto is_first_start = [](ElapsedFrom from) { return from == ElapsedFrom::first_start; };
  // A policy that is not a task's has no delay: creation and submission are the same there.
  if (!policy.max_elapsed || is_first_start(policy.elapsed_from) == is_first_start(target)) return;
  losses.push_back(!is_first_start(target)
                       ? "counting the deadline from the start of the first attempt (here: from creation)"
                       : "counting the deadline from creation (here: from the start of the first attempt)");
}

text::Value seconds(Duration duration) { return text::Value::Number{text::decimal_text(duration, ns_per_second)}; }

text::Value type_names(const char* list, const FailureRules& rules, Losses& losses) {
  text::Value names = text::Value::list();
  for (const FailureRule& rule : rules) {
    if (rule.what == FailureRule::What::type) {
      names.add(rule.text);
    } else {
      losses.push_back(fmt::format("{} in {}: only error types can be named", rule.text, list));
    }
  }
  return names;
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
  for (const FailureRule& rule : rules) words += (words.empty() ? "" : ", ") + text::shorten(rule.text, 80);
  return words;
}

}  // namespace reprise::dialect
