// The classifier and the fingerprint over arbitrary evidence: bounded, the same every time, and never contradicting itself.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "evidence_bytes.hpp"
#include "require.hpp"

namespace {

using reprise::Duration;
using reprise::fuzz::require;

constexpr std::size_t normalized_bytes_max = 512;
constexpr std::chrono::sys_seconds a_day{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1}};

void check_class(const reprise::Evidence& evidence) {
  const reprise::Classification found = reprise::classify(evidence);
  require(!reprise::name_of(found.failure_class).empty(), "the class has a name");
  require(!reprise::name_of(found.kind).empty(), "the kind has a name");
  require(found.user_rule == -1, "no rule of the user's matches when there is none");
  reprise::describe_rule(found, evidence);
  const reprise::Classification again = reprise::classify(evidence);
  require(again.failure_class == found.failure_class && again.kind == found.kind &&
              again.retryable == found.retryable && again.failed == found.failed && again.rule == found.rule &&
              again.number == found.number,
          "the same evidence has the same class");
  if (evidence.failure_class && !evidence.canceled) {
    require(found.failure_class == *evidence.failure_class, "the handler's own word counts", evidence.message);
  }
}

void check_fingerprint(const reprise::Evidence& evidence) {
  const std::string normal = reprise::normalize_message(evidence.message);
  require(normal.size() <= normalized_bytes_max, "a normalised message is short", normal);
  require(normal.find_first_of("\t\r\n") == std::string::npos, "a normalised message is one line", normal);
  require(!normal.starts_with(' ') && !normal.ends_with(' ') && normal.find("  ") == std::string::npos,
          "blanks are single and inside", normal);
  const auto print = [&](std::string_view step, std::string_view message) {
    return reprise::fingerprint(step, reprise::FailureClass::transient, message, evidence.exit_code);
  };
  require(print("step", evidence.message) == print("step", evidence.message),
          "the same failure has the same fingerprint");
  require(print("step", evidence.message) != print("other", evidence.message), "another step has another fingerprint");
}

void check_retry_after(std::string_view value) {
  for (const auto now : {a_day, std::chrono::sys_seconds{}, std::chrono::sys_seconds{std::chrono::days{-800'000}}}) {
    const auto wait = reprise::parse_retry_after(value, now);
    require(!wait || *wait >= Duration{0}, "Retry-After never lies in the past", value);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto [evidence, retry_after] = reprise::fuzz::unpack({reinterpret_cast<const char*>(data), size});
  check_class(evidence);
  check_fingerprint(evidence);
  check_retry_after(retry_after);
  check_retry_after(evidence.message);
  return 0;
}
