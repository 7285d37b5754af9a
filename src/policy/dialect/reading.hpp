// What the dialects' readers share.
#pragma once

#include <optional>

#include "policy/dialect/dialects.hpp"

namespace reprise::dialect {

bool is_null(const text::Field& field) noexcept;

// Assigns what a reader returned, when it returned something.
template <class Target, class Source>
void assign(Target& target, const std::optional<Source>& value) {
  if (value) target = static_cast<Target>(*value);
}
template <class Target, class Source>
void assign(std::optional<Target>& target, const std::optional<Source>& value) {
  if (value) target = static_cast<Target>(*value);
}

// constant (also called fixed), linear, exponential, fibonacci; the word is known to be one of them.
Backoff backoff_named(std::string_view word) noexcept;

// A number of seconds, 0 or more.
std::optional<Duration> read_seconds(const text::Field& field, text::Report& report);

// limits: {worker_lost: 3}, of a policy or of a document.
void read_limits(const text::Field& field, std::optional<std::uint32_t>& worker_lost_max, text::Report& report);

// A list of strings: error type names.
std::optional<FailureRules> read_type_names(const text::Field& field, text::Report& report);

}  // namespace reprise::dialect
