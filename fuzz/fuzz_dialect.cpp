// Policies in all dialects; the first byte picks one. A valid policy can be explained, scheduled, decided by and converted; its own
// dialect says exactly the same again, and a conversion without losses behaves the same.
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#include <reprise/dialect.hpp>

#include "require.hpp"
#include "text/document.hpp"

namespace {

using reprise::Decision;
using reprise::DelayRange;
using reprise::Dialect;
using reprise::Duration;
using reprise::Policy;
using reprise::fuzz::require;

constexpr std::uint64_t scheduled_failures = 50;

const std::array<reprise::Failure, 9> failures{{
    {},
    {.type = "TimeoutError", .message = "request timed out"},
    {.type = "asyncio.ConnectionResetError", .message = "Connection reset by peer"},
    {.message = "rate limit", .http_status = 429, .retry_after = std::chrono::seconds{7}},
    {.http_status = 503, .retry_after = Duration::max()},
    {.message = "2 tests failed", .exit_code = 75},
    {.message = "no", .failure_class = reprise::FailureClass::deterministic},
    {.message = "not completed", .permanent = false},
    {.type = "ValueError", .signal = 9},
}};

const std::array<reprise::History, 4> histories{{
    {},
    {.attempt = 2,
     .elapsed = std::chrono::seconds{3},
     .waited = std::chrono::seconds{2},
     .previous_delay = std::chrono::seconds{2}},
    {.attempt = UINT64_MAX, .elapsed = Duration::max(), .waited = Duration::max(), .previous_delay = Duration::max()},
    {.attempt = 1, .circuit_open = true},
}};

bool is_range(const DelayRange& range) {
  return Duration{0} <= range.min && range.min <= range.nominal && range.nominal <= range.max;
}

reprise::Schedule check_schedule(const Policy& policy) {
  reprise::Schedule schedule = reprise::schedule(policy, scheduled_failures);
  require(schedule.retries.size() <= scheduled_failures, "no more retries than failures");
  for (const DelayRange& range : schedule.retries) require(is_range(range), "0 <= min <= nominal <= max in a schedule");
  return schedule;
}

Decision check_decision(const Policy& policy, const reprise::History& history, const reprise::Failure& failure) {
  reprise::Random random{1};
  const Decision decision = reprise::decide(policy, history, failure, random);
  require(decision.retry == (decision.reason == reprise::StopReason::none),
          "it is retried, or there is a reason why not");
  require(Duration{0} <= decision.range.min && decision.range.min <= decision.range.max,
          "0 <= min <= max in a decision");
  require(decision.range.min <= decision.delay && decision.delay <= decision.range.max, "the draw lies in its range");
  return decision;
}

// A conversion that loses nothing means the same.
void check_same_behaviour(const Policy& policy, const Policy& converted, std::string_view text) {
  const reprise::Schedule one = check_schedule(policy);
  const reprise::Schedule other = check_schedule(converted);
  require(one.retries == other.retries && one.stop == other.stop && one.after_attempt == other.after_attempt,
          "a conversion without losses has the same schedule", text);
  for (const reprise::History& history : histories) {
    for (const reprise::Failure& failure : failures) {
      const Decision left = check_decision(policy, history, failure);
      const Decision right = check_decision(converted, history, failure);
      require(left.retry == right.retry && left.delay == right.delay && left.range == right.range,
              "a conversion without losses decides the same", text);
    }
  }
}

void check_conversion(const Policy& policy, Dialect from, Dialect to, reprise::TextFormat format) {
  const reprise::WrittenPolicy written = reprise::write_policy(policy, to, format);
  const auto again = reprise::read_policy(written.text, to);
  require(again.has_value(), "what is written can be read", again ? "" : written.text + reprise::render(again.error()));
  if (from == to) {
    require(written.losses.empty(), "a dialect loses nothing of its own",
            written.losses.empty() ? "" : written.losses.front());
    require(again->policy == policy, "its own dialect says exactly the same", written.text);
  } else if (written.losses.empty()) {
    check_same_behaviour(policy, again->policy, written.text);
  }
}

void check_policy(const reprise::ReadPolicy& read, Dialect dialect) {
  const Policy& policy = read.policy;
  require(!reprise::explain(policy).empty(), "every policy can be explained");
  const std::string json = reprise::policy_json(policy);
  require(reprise::text::read_document(json, "json").has_value(), "the fields are JSON", json);
  for (const reprise::Diagnostic& warning : read.warnings) {
    require(warning.severity == reprise::Severity::warning, "a valid policy has warnings only", warning.message);
  }
  reprise::render(read.warnings);
  check_same_behaviour(policy, policy, json);
  for (const Dialect target : reprise::all_dialects) {
    for (const auto format : {reprise::TextFormat::yaml, reprise::TextFormat::json})
      check_conversion(policy, dialect, target, format);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Dialect dialect = reprise::all_dialects[data[0] % std::size(reprise::all_dialects)];
  const auto read = reprise::read_policy(std::string(reinterpret_cast<const char*>(data) + 1, size - 1), dialect);
  if (read) {
    check_policy(*read, dialect);
  } else {
    require(!read.error().empty(), "a refusal has a reason");
    reprise::render(read.error());
  }
  return 0;
}
