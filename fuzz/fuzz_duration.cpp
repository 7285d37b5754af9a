// Durations: what a grammar reads it writes so that it reads the same again, and the grammars agree where they overlap.
#include <cstddef>
#include <cstdint>

#include "require.hpp"
#include "text/duration.hpp"
#include "text/scalar.hpp"

namespace {

using reprise::Duration;
using reprise::fuzz::require;
using reprise::text::DurationGrammar;

constexpr std::size_t rough_bytes_max = 64;

void check_grammar(std::string_view text, DurationGrammar grammar) {
  const auto read = reprise::text::parse_duration(text, grammar);
  if (!read) {
    require(!read.error().message.empty(), "a refusal has a reason", text);
    return;
  }
  require(*read >= Duration{0}, "no grammar reads negative durations", text);
  const std::string written = reprise::text::format_duration(*read, grammar);
  require(reprise::text::parse_duration(written, grammar) == *read, "what is written reads back the same", written);
  require(reprise::text::format_duration(*read, grammar) == written, "one duration has one form", written);
  require(reprise::text::rough_duration(*read).size() <= rough_bytes_max, "the rough form is short", written);
}

void check_decimal(std::string_view text, std::int64_t unit_ns) {
  const auto read = reprise::text::decimal_duration(text, unit_ns);
  if (!read) return;
  require(*read >= Duration{0}, "no decimal duration is negative", text);
  const std::string written = reprise::text::decimal_text(*read, unit_ns);
  require(reprise::text::decimal_duration(written, unit_ns) == *read, "a decimal that is written reads back the same",
          written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  for (const auto grammar : {DurationGrammar::native, DurationGrammar::go, DurationGrammar::humantime})
    check_grammar(text, grammar);
  if (const auto narrow = reprise::text::parse_duration(text, DurationGrammar::humantime)) {
    require(reprise::text::parse_duration(text, DurationGrammar::native) == *narrow,
            "native reads all that humantime reads", text);
  }
  for (const std::int64_t unit_ns : {std::int64_t{1}, std::int64_t{1'000'000}, std::int64_t{1'000'000'000}})
    check_decimal(text, unit_ns);
  reprise::text::scalar_type(text);
  reprise::text::whole_number(text);
  reprise::text::finite_number(text);
  return 0;
}
