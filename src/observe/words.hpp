// The same words wherever a person reads about a run: what failed, which piece of work, when.
//
// Plain text on one line: no control characters, whatever a program wrote into its message. Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/event.hpp>
#include <reprise/failure.hpp>

namespace reprise::observe {

inline constexpr std::size_t message_characters_max = 200;  // of a failure on one line; the rest is "…"

// HTTP 429: too many requests · exit 1 · SIGKILL · TimeoutError: no answer
std::string what_failed(const Failure& failure);

// transient, throttled
std::string class_words(const Failure& failure);

// What the attempt left behind, line by line: mistakes, failing tests, the end of its output where the message does not say it all.
std::vector<std::string> evidence_lines(const Failure& failure);

// Why work was skipped, in a map whose breaker has opened.
inline constexpr std::string_view circuit_open_words = "circuit open";

// What a stop reason means: "its attempts were used up".
std::string_view reason_words(StopReason reason) noexcept;

// attempt 2/5; without the limit when there is none, or it is passed by a fallback
std::string numbered_attempt(std::uint64_t attempt, std::optional<std::uint64_t> max_attempts);
// The same where not every attempt counts: attempt 5 (2 of 3 used; 2 interrupted, 1 lost).
struct AttemptCounts {
  std::uint64_t used = 0;  // 0 = not known
  std::uint64_t interrupted = 0;
  std::uint64_t lost = 0;
};
std::string numbered_attempt(std::uint64_t attempt, std::optional<std::uint64_t> max_attempts,
                             const AttemptCounts& counts);

// " by ada@host (reprise cancel)"; "" when that is not known. `why` is not in it.
std::string asker_words(const std::optional<ChangeRequest>& request);

// fetch, or fetch[57] for a step with items.
// What people call an item, beside its index: empty = nothing but the index.
using LabelOf = std::function<std::string(std::string_view step, std::uint32_t item)>;

// fetch[28] clang-format-14, safe to show.
std::string labelled(std::string work, std::string_view label);

std::string work_name(std::string_view step, std::uint32_t item, bool has_items);

// 2026-11-15T10:00:00.123Z, with 0, 3, 6 or 9 decimals.
std::string date_and_time(WallTime time);
// 10:00:00Z
std::string clock_time(WallTime time);

// For what changes while it is looked at: 2.1s, 42s, 3m5s.
std::string calm_duration(Duration duration);

// When so much is left to do at that speed: 7s, 3m5s.
std::string time_left(std::uint64_t count, double per_second);

// 1 item, 2 items
std::string counted(std::uint64_t number, std::string_view noun);
std::string counted_retries(std::uint64_t number);  // 1 retry, 2 retries

// 85.7 %, of nothing: 0 %
std::string percent(std::uint64_t part, std::uint64_t whole);
// One decimal below ten: 1.7, 42
std::string rough_number(double number);

}  // namespace reprise::observe
