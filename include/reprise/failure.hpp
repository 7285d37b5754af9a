// What went wrong: one failed attempt, described well enough to decide about the next one.
//
// A Failure is a plain value. Fill in what you know; whatever is missing is found out by classify() when a policy asks.
// Thread safety: none needed, these are values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reprise {

using Duration = std::chrono::nanoseconds;

// Six classes decide what the engine does next. Kinds refine a class and only add a name (docs/reference/failures.md).
enum class FailureClass : std::uint8_t {
  transient,
  deterministic,
  budget_exhausted,
  contract_failure,
  test_failure,
  canceled,
};

enum class FailureKind : std::uint8_t {
  none,
  timeout,
  throttled,
  stalled,
  worker_lost,
  crashed,
  not_found,
  auth,
  invalid_input,
};

constexpr bool is_retryable(FailureClass failure_class) noexcept {
  return failure_class == FailureClass::transient || failure_class == FailureClass::contract_failure ||
         failure_class == FailureClass::test_failure;
}

std::string_view name_of(FailureClass failure_class) noexcept;
std::string_view name_of(FailureKind kind) noexcept;  // "none" for FailureKind::none
std::optional<FailureClass> failure_class_named(std::string_view name) noexcept;
std::optional<FailureKind> failure_kind_named(std::string_view name) noexcept;
std::span<const std::string_view> failure_class_names() noexcept;
std::span<const std::string_view> failure_kind_names() noexcept;  // without "none"

// The class every failure of this kind has.
FailureClass class_of(FailureKind kind) noexcept;

// "SIGKILL" or "KILL" -> 9; std::nullopt for a name this platform does not have. The other way gives "SIGKILL", or "" if unknown.
std::optional<int> signal_number(std::string_view name) noexcept;
std::string_view signal_name(int number) noexcept;

struct Failure {
  std::string type = {};  // such as "TimeoutError"; matched through the type tree
  std::string message = {};
  std::optional<FailureClass> failure_class = {};  // the handler's own word; absent = ask the classifier
  FailureKind kind = FailureKind::none;
  std::optional<int> exit_code = {};
  std::optional<int> http_status = {};
  std::optional<int> signal = {};
  std::optional<Duration> retry_after = {};  // a floor under the next delay
  std::optional<bool> permanent = {};        // true: do not retry. false: a verdict too (Argyll's "not completed")
  std::string details = {};                  // free text for people; never matched
  bool failed_check = false;                 // the work was done, and a check of its result failed; not stored
  std::uint64_t cause =
      0;  // stands for what failed (tests, places in a schema): equal ones are the same failure. 0: the message says it
  // What the attempt left behind for who repairs it (docs/formats/events.md). Above 512 bytes the engine keeps it once in its store: then
  // this is its SHA-256 in hexadecimal, and `evidence_size` is larger than what stands here.
  std::string evidence = {};
  std::uint64_t evidence_size = 0;
  std::uint32_t command = 0;  // of a work item with several commands that has a policy for this one: which it was, from 1

  bool operator==(const Failure&) const = default;
};

}  // namespace reprise
