// From evidence to a failure class: the handler's own word, our own doing, exit codes, HTTP, types, and text last.
//
//   reprise::classify({.http_status = 503}).kind == reprise::FailureKind::throttled
//
// Pure; without rules of the user's own it allocates nothing. Thread safety: everything is an argument.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <reprise/policy.hpp>

namespace reprise {

// What was seen of one attempt. Views must outlive the call. Any subset may be filled in.
struct Evidence {
  std::string_view type = {};
  std::string_view message = {};
  std::optional<int> exit_code = {};
  std::optional<int> signal = {};
  std::optional<int> http_status = {};
  std::string_view spawn_error = {};  // errno name of a failed start: ENOENT, EACCES …
  bool timed_out = false;             // stopped by us: the attempt's time was over
  bool stalled = false;               // stopped by us: no progress
  bool canceled = false;              // stopped by us or the operator
  bool worker_lost = false;
  bool dns_error = false;
  bool schema_failed = false;
  bool test_step = false;                          // a step of `kind: test`: an unexplained exit code is a test_failure
  bool names_failing_tests = false;                // ... and its output says which
  bool by_first_rules = false;                     // of a run that 0.1.0 began: without the words and types that came later
  std::optional<FailureClass> failure_class = {};  // the handler's own word
  FailureKind kind = FailureKind::none;
  std::optional<bool> permanent = {};
  const TypeTree* types = nullptr;  // nullptr = TypeTree::builtin()
};

Evidence evidence_of(const Failure& failure) noexcept;

struct Classification {
  FailureClass failure_class = FailureClass::transient;
  FailureKind kind = FailureKind::none;
  bool retryable = true;
  bool failed = true;              // false: the evidence speaks of success (exit 0, HTTP 2xx) and of nothing else
  std::string_view rule = {};      // what was decisive: "exit", "http", "type", a phrase …; describe_rule() words it
  std::optional<int> number = {};  // its number, when the rule has one: 503
  bool by_text = false;            // `rule` is a phrase of the message
  int user_rule = -1;              // index of the user's rule that matched
};

// A rule of the user's own; tried in order before the built-in ones, but after the handler's word and a cancellation.
struct ClassifyRule {
  FailureRule when;
  FailureClass then = FailureClass::transient;
};

Classification classify(const Evidence& evidence, std::span<const ClassifyRule> rules = {});

// How a person would name the rule: http 503, type TimeoutError, text "rate limit", rule 2: /quota/.
std::string describe_rule(const Classification& classification, const Evidence& evidence,
                          std::span<const ClassifyRule> rules = {});

// Retry-After as HTTP sends it: seconds or a date. A past date is 0; anything else is std::nullopt.
std::optional<Duration> parse_retry_after(std::string_view value, std::chrono::sys_seconds now) noexcept;

// The same failure again? Timestamps, durations, ids, addresses, paths and long numbers are taken out of the message, so that only
// what does not vary from attempt to attempt counts.
std::string normalize_message(std::string_view message);

// Fingerprints are stored and compared with later ones of the same run, so a run keeps the rules it began with.
enum class FingerprintRules : std::uint8_t {
  by_message = 1,  // of runs that 0.1.0 began
  by_cause = 2,    // what failed (Failure::cause) where that is known, else the message
};
std::uint64_t fingerprint(std::string_view step, FailureClass failure_class, const Failure& failure,
                          FingerprintRules rules = FingerprintRules::by_cause);
std::uint64_t fingerprint(std::string_view step, FailureClass failure_class, std::string_view message,
                          std::optional<int> exit_code);

}  // namespace reprise
