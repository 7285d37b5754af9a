// The user's own classify rules: read from any text, and once valid, usable on any evidence.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <reprise/dialect.hpp>

#include "require.hpp"

namespace {

using reprise::fuzz::require;

const std::array<reprise::Evidence, 6> evidences{{
    {},
    {.type = "TimeoutError", .message = "quota exceeded"},
    {.message = "exit code 3", .exit_code = 3},
    {.signal = 9},
    {.message = std::string_view{"\xff\0 not text", 10}, .http_status = 503},
    {.canceled = true, .failure_class = reprise::FailureClass::deterministic},
}};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto rules = reprise::read_classify_rules(std::string(reinterpret_cast<const char*>(data), size));
  if (!rules) {
    require(!rules.error().empty(), "a refusal has a reason");
    reprise::render(rules.error());
    return 0;
  }
  for (const reprise::Evidence& evidence : evidences) {
    const reprise::Classification found = reprise::classify(evidence, *rules);
    require(found.user_rule >= -1 && found.user_rule < static_cast<int>(rules->size()),
            "the rule that matched is one of the rules");
    if (found.user_rule >= 0) {
      const reprise::ClassifyRule& rule = (*rules)[static_cast<std::size_t>(found.user_rule)];
      require(found.failure_class == rule.then, "the rule that matched gives the class");
    }
    require(!evidence.canceled || found.user_rule == -1, "no rule beats a cancellation");
    reprise::describe_rule(found, evidence, *rules);
  }
  return 0;
}
