// Words of other tools, so that a newcomer is told what to write in this dialect: each gives a hint for text::Fields::finish().
//
// Thread safety: pure.
#pragma once

#include <string>

#include <fmt/format.h>

#include "policy/dialect/dialects.hpp"
#include "text/scalar.hpp"

namespace reprise::dialect {

template <const char* Key>
std::string use_instead(const text::Node&) {
  return std::string{"write "} + Key;
}

// A count of retries where the dialect counts attempts.
template <const char* Key>
std::string count_first_run(const text::Node& value) {
  const auto retries = text::whole_number(value.text);
  return retries && *retries >= 0 && *retries < counts_max
             ? fmt::format("write {}: {} (the first run counts)", Key, *retries + 1)
             : fmt::format("write {}, which counts the first run too", Key);
}

// A count of attempts where the dialect counts retries.
template <const char* Key>
std::string count_retries_only(const text::Node& value) {
  const auto attempts = text::whole_number(value.text);
  return attempts && *attempts >= 1 && *attempts <= counts_max
             ? fmt::format("write {}: {} (the first run does not count)", Key, *attempts - 1)
             : fmt::format("write {}, which does not count the first run", Key);
}

namespace key {
inline constexpr char attempts[] = "attempts";
inline constexpr char backoff_in_ms[] = "backoff, in milliseconds";
inline constexpr char backoff_multiplier[] = "backoff_multiplier";
inline constexpr char backoff_strategy[] = "backoff_strategy";
inline constexpr char base_delay[] = "base_delay";
inline constexpr char factor[] = "factor";
inline constexpr char initial_delay[] = "initial_delay";
inline constexpr char initial_delay_in_seconds[] = "initial_delay, a number of seconds";
inline constexpr char max_attempts[] = "max_attempts";
inline constexpr char max_backoff_in_ms[] = "max_backoff, in milliseconds";
inline constexpr char max_delay[] = "max_delay";
inline constexpr char max_delay_in_seconds[] = "max_delay, a number of seconds";
inline constexpr char max_retries[] = "max_retries";
inline constexpr char retry_on_exceptions[] = "retry_on_exceptions";
inline constexpr char retry_timeout[] = "retry_timeout, a number of seconds";
}  // namespace key

}  // namespace reprise::dialect
