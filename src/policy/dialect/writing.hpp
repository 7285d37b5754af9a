// What the dialects' writers share: saying what gets lost, and the forms several of them use.
#pragma once

#include <initializer_list>

#include "policy/dialect/dialects.hpp"

namespace reprise::dialect {

// What a policy may have and a dialect may lack.
enum class Feature : std::uint8_t {
  attempt_timeout,
  class_rule,  // stopping on a class that is not retryable
  filters,     // only_on and never_on
  max_elapsed,
  parallelism,
  retry_after,  // ignoring it
  retry_budget,
  verdict,  // retrying on the handler's word alone
};

// Lists those of the features that the policy makes use of.
void lose(const Policy& policy, std::initializer_list<Feature> features, Losses& losses);

// For targets that have max_elapsed and count it from `target`.
void lose_elapsed_from(const Policy& policy, ElapsedFrom target, Losses& losses);

// The number of attempts for targets that must have one, or cannot have so many.
std::int64_t capped_attempts(const Policy& policy, Losses& losses);

// Base delays that are the same for every target: constant below its cap, no cap as the longest duration there is.
Duration effective_constant(const Policy& policy) noexcept;
Duration effective_max(const Policy& policy) noexcept;
bool grows_by_itself(const Policy& policy) noexcept;  // linear with increment == initial

text::Value seconds(Duration duration);

// The error types among the rules; the others are lost from the list of this name.
text::Value type_names(const char* list, const FailureRules& rules, Losses& losses);

std::string backoff_in_words(const Policy& policy);
std::string rules_in_words(const FailureRules& rules);

}  // namespace reprise::dialect
