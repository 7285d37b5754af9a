// Durations in three grammars: what is read, what is refused and with which advice, and the way back.
#include "text/duration.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "support/document_generators.hpp"

namespace reprise::text {
namespace {

using namespace std::chrono_literals;
using enum DurationGrammar;

constexpr Duration longest = Duration::max();
constexpr DurationGrammar grammars[] = {native, go, humantime};

std::string name_of(DurationGrammar grammar) {
  return grammar == native ? "native" : grammar == go ? "go" : "humantime";
}

struct Accepted {
  std::string_view text;
  Duration expected;
};

void expect_accepted(DurationGrammar grammar, std::initializer_list<Accepted> cases) {
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_duration(text, grammar);
    ASSERT_TRUE(parsed.has_value()) << name_of(grammar) << " refuses " << text << ": " << parsed.error().message;
    EXPECT_EQ(parsed->count(), expected.count()) << name_of(grammar) << ": " << text;
  }
}

TEST(TextDuration, native_accepts) {
  expect_accepted(native, {{"0", 0ns},
                           {"0s", 0ns},
                           {"1ns", 1ns},
                           {"7us", 7us},
                           {"500ms", 500ms},
                           {"2s", 2s},
                           {"3m", 3min},
                           {"4h", 4h},
                           {"5d", 120h},
                           {"2w", 336h},
                           {"1h30m", 90min},
                           {"1.5s", 1500ms},
                           {"0.5m", 30s},
                           {"1w2d3h4m5s6ms7us8ns", 168h + 48h + 3h + 4min + 5s + 6ms + 7us + 8ns},
                           {"1s1s", 2s},
                           {"30m1h", 90min},
                           {"007s", 7s},
                           {"0.000000001s", 1ns},
                           {"1.9ns", 1ns},
                           {"0.999999999999999w", 604799999999999ns},
                           {"9223372036854775807ns", longest},
                           {"9223372036.854775807s", longest}});
}

TEST(TextDuration, go_accepts) {
  expect_accepted(go, {{"0", 0ns},
                       {"1µs", 1us},  // U+00B5
                       {"1μs", 1us},  // U+03BC
                       {"1us", 1us},
                       {".5s", 500ms},
                       {"1.s", 1s},
                       {"1h15m30.918273645s", 1h + 15min + 30s + 918273645ns},
                       {"2562047h47m16.854775807s", longest}});
}

TEST(TextDuration, humantime_accepts) {
  expect_accepted(humantime,
                  {{"0s", 0ns}, {"500ms", 500ms}, {"1h30m", 90min}, {"2w", 336h}, {"1d", 24h}, {"1s500ms", 1500ms}});
}

struct Refused {
  DurationGrammar grammar;
  std::string_view text;
  std::string_view message;
  std::string_view remedy;
};

TEST(TextDuration, refusals_say_what_is_wrong_and_what_to_write) {
  const Refused cases[] = {
      {native, "", "is empty", ""},
      {native, "500", "has no unit", "write 500ms or 500s"},
      {native, "1.5", "has no unit", "write 1.5ms or 1.5s"},
      {native, "00", "has no unit", "write 00ms or 00s"},
      {native, "1h30", "has no unit", ""},
      {native, "-1s", "has a sign", ""},
      {native, "+1s", "has a sign", ""},
      {native, "1 s", "has a blank", "write 1s"},
      {native, " 1s", "has a blank", "write 1s"},
      {native, "1s\t", "has a blank", ""},
      {native, "1h 30m", "has a blank", ""},
      {native, "1 second", "has a blank", "write 1s"},
      {native, "2 minutes", "has a blank", "write 2m"},
      {native, "2minutes", "is not a duration", "write 2m"},
      {native, "2hours", "is not a duration", "write 2h"},
      {native, "2 sec", "has a blank", "write 2s"},
      {native, "3 Hours", "has a blank", "write 3h"},
      {native, "5S", "has an unknown unit (units: ns, us, ms, s, m, h, d or w)", "write 5s"},
      {native, "1y", "has an unknown unit (units: ns, us, ms, s, m, h, d or w)", ""},
      {native, "s", "is not a duration", ""},
      {native, ".5s", "is not a duration", ""},
      {native, "1.s", "is not a duration", ""},
      {native, "1..5s", "is not a duration", ""},
      {native, "soon", "is not a duration", ""},
      {native, "1e3s", "has an unknown unit (units: ns, us, ms, s, m, h, d or w)", ""},
      {native, "1s-1s", "is not a duration", ""},
      {go, "500", "has no unit", "write 500ms or 500s"},
      {go, ".s", "is not a duration", ""},
      {go, "-1s", "has a sign", ""},
      {go, "1w", "has an unknown unit (units: ns, us, ms, s, m or h)", "write 168h"},
      {go, "1d", "has an unknown unit (units: ns, us, ms, s, m or h)", "write 24h"},
      {humantime, "0", "has no unit", "write 0ms or 0s"},
      {humantime, "500", "has no unit", "write 500ms or 500s"},
      {humantime, "1 second", "has a blank", "write 1s"},
      {humantime, "2 minutes", "has a blank", "write 2m"},
      {humantime, "1.5s", "has a fraction", "write 1s500ms"},
  };
  for (const Refused& refused : cases) {
    const auto parsed = parse_duration(refused.text, refused.grammar);
    ASSERT_FALSE(parsed.has_value()) << name_of(refused.grammar) << " accepts " << refused.text;
    EXPECT_EQ(parsed.error().message, refused.message) << name_of(refused.grammar) << ": " << refused.text;
    if (refused.remedy.empty() || parsed.error().remedy.empty()) continue;  // the next test judges remedies in general
    EXPECT_EQ(parsed.error().remedy, refused.remedy) << name_of(refused.grammar) << ": " << refused.text;
  }
}

// "1 second", "500" and "2 minutes" are promised an answer (docs/reference/dialects.md).
TEST(TextDuration, common_mistakes_get_a_remedy) {
  for (const DurationGrammar grammar : grammars) {
    EXPECT_EQ(parse_duration("1 second", grammar).error().remedy, "write 1s");
    EXPECT_EQ(parse_duration("2 minutes", grammar).error().remedy, "write 2m");
    EXPECT_EQ(parse_duration("500", grammar).error().remedy, "write 500ms or 500s");
  }
}

// Whatever a remedy tells people to write must be accepted when they write it.
TEST(TextDuration, remedies_are_accepted_by_the_same_grammar) {
  for (const DurationGrammar grammar : grammars) {
    for (const std::string_view text : {"500",
                                        "1.5",
                                        "1.5s",
                                        "1.5 seconds",
                                        "1 second",
                                        "2 days",
                                        "1d",
                                        "1 week",
                                        "1w",
                                        "1µs",
                                        "1μs",
                                        "1 µs",
                                        "999999999w",
                                        "9999999999999999h",
                                        "5S",
                                        "5 M",
                                        "0.5 hours",
                                        "3 msec",
                                        "99999999999999999999",
                                        "1..5",
                                        "1.2.3s",
                                        "."}) {
      const auto parsed = parse_duration(text, grammar);
      if (parsed || parsed.error().remedy.empty()) continue;
      std::string_view remedy = parsed.error().remedy;
      ASSERT_TRUE(remedy.starts_with("write ")) << remedy;
      remedy.remove_prefix(6);
      const std::size_t joint = remedy.find(" or ");
      const std::string_view first = remedy.substr(0, joint);
      EXPECT_TRUE(parse_duration(first, grammar).has_value())
          << name_of(grammar) << ": " << text << " -> " << parsed.error().remedy;
      if (joint != std::string_view::npos) {
        EXPECT_TRUE(parse_duration(remedy.substr(joint + 4), grammar).has_value())
            << name_of(grammar) << ": " << text << " -> " << parsed.error().remedy;
      }
    }
  }
}

TEST(TextDuration, nothing_longer_than_63_bits_of_nanoseconds) {
  for (const DurationGrammar grammar : grammars) {
    for (const std::string_view text : {"9223372036854775808ns", "9223372037s", "2562048h", "9223372036854775807ns1ns",
                                        "99999999999999999999999999s", "2562047h47m16s854ms775us808ns"}) {
      const auto parsed = parse_duration(text, grammar);
      ASSERT_FALSE(parsed.has_value()) << name_of(grammar) << ": " << text;
      EXPECT_EQ(parsed.error().message, "is longer than 292 years") << name_of(grammar) << ": " << text;
    }
  }
}

TEST(TextDuration, formats_as_people_write) {
  EXPECT_EQ(format_duration(0ns), "0s");
  EXPECT_EQ(format_duration(1500ms), "1.5s");
  EXPECT_EQ(format_duration(90min), "1h30m");
  EXPECT_EQ(format_duration(200ms), "200ms");
  EXPECT_EQ(format_duration(1h + 1ns), "1h1ns");
  EXPECT_EQ(format_duration(24h), "24h");
  EXPECT_EQ(format_duration(1500us), "1.5ms");
  EXPECT_EQ(format_duration(1500ms, humantime), "1s500ms");
  EXPECT_EQ(format_duration(longest, humantime), "2562047h47m16s854ms775us807ns");
  EXPECT_EQ(format_duration(longest, go), "2562047h47m16.854775807s");
}

RC_GTEST_PROP(TextDurationProperty, what_is_formatted_is_read_back_exactly, ()) {
  const Duration duration = *testing_support::any_duration();
  for (const DurationGrammar grammar : grammars) {
    const std::string text = format_duration(duration, grammar);
    const auto parsed = parse_duration(text, grammar);
    RC_ASSERT(parsed.has_value());
    RC_ASSERT(parsed->count() == duration.count());
  }
}

TEST(TextDuration, rough_ones_have_three_digits_and_never_an_exponent) {
  EXPECT_EQ(rough_duration(0ns), "0s");
  EXPECT_EQ(rough_duration(-1h), "0s");
  EXPECT_EQ(rough_duration(999ns), "999ns");
  EXPECT_EQ(rough_duration(1500ns), "1.5us");
  EXPECT_EQ(rough_duration(1234567ns), "1.23ms");
  EXPECT_EQ(rough_duration(1274ms), "1.27s");
  EXPECT_EQ(rough_duration(30s), "30s");
  EXPECT_EQ(rough_duration(5min), "5m");
  EXPECT_EQ(rough_duration(2h + 10min), "2h10m");
  EXPECT_EQ(rough_duration(60s + 400ms), "1m");
  EXPECT_EQ(rough_duration(999'999'600ns), "1s");
  EXPECT_EQ(rough_duration(999'600ns), "1ms");
  EXPECT_EQ(rough_duration(59'999ms), "60s");
  EXPECT_TRUE(rough_duration(longest).starts_with("2562047h47m1")) << "rounding does not pass the end of time";
}

RC_GTEST_PROP(TextDurationProperty, rough_ones_are_durations_near_the_exact_one, ()) {
  const Duration duration = *testing_support::any_duration();
  const std::string text = rough_duration(duration);
  RC_ASSERT(text.find('e') == std::string::npos);
  const auto parsed = parse_duration(text, native);
  if (duration.count() > longest.count() - 1'000'000'000) return;  // rounding up may pass the end
  RC_ASSERT(parsed.has_value());
  const double exact = static_cast<double>(duration.count());
  RC_ASSERT(std::abs(static_cast<double>(parsed->count()) - exact) <= exact * 0.01 + 0.5);
}

}  // namespace
}  // namespace reprise::text
