// Retry-After as HTTP sends it: seconds, a date in one of three forms, or something to be ignored.
#include <reprise/classify.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;
using std::chrono::sys_days;

// Sunday, 6 November 1994, 08:49:37: the date of the RFC's examples.
constexpr std::chrono::sys_seconds example = sys_days{std::chrono::year{1994} / 11 / 6} + 8h + 49min + 37s;
constexpr std::chrono::sys_seconds a_minute_before = example - 60s;

TEST(PolicyRetryAfter, whole_seconds) {
  EXPECT_EQ(parse_retry_after("120", example), Duration{120s});
  EXPECT_EQ(parse_retry_after("0", example), Duration{0});
  EXPECT_EQ(parse_retry_after(" 7\t", example), Duration{7s});
  EXPECT_EQ(parse_retry_after("007", example), Duration{7s});
}

TEST(PolicyRetryAfter, huge_numbers_saturate) {
  EXPECT_EQ(parse_retry_after("9223372036", example), Duration{9223372036s});
  EXPECT_EQ(parse_retry_after("9223372037", example), Duration::max());
  EXPECT_EQ(parse_retry_after("18446744073709551616", example), Duration::max());
  EXPECT_EQ(parse_retry_after(std::string(400, '9'), example), Duration::max());
}

TEST(PolicyRetryAfter, three_forms_of_a_date) {
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", a_minute_before), Duration{60s});
  EXPECT_EQ(parse_retry_after("Sunday, 06-Nov-94 08:49:37 GMT", a_minute_before), Duration{60s});
  EXPECT_EQ(parse_retry_after("Sun Nov  6 08:49:37 1994", a_minute_before), Duration{60s});
  EXPECT_EQ(parse_retry_after("Wed Nov 16 08:49:37 1994", example), Duration{240h});
}

TEST(PolicyRetryAfter, a_past_date_is_now) {
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", example), Duration{0});
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", example + 1s), Duration{0});
  EXPECT_EQ(parse_retry_after("Thu, 01 Jan 1970 00:00:00 GMT", example), Duration{0});
  EXPECT_EQ(parse_retry_after("Sat, 01 Jan 0000 00:00:00 GMT", example), Duration{0});
}

TEST(PolicyRetryAfter, a_far_date_saturates) {
  EXPECT_EQ(parse_retry_after("Fri, 31 Dec 9999 23:59:59 GMT", example), Duration::max());
}

TEST(PolicyRetryAfter, two_digit_years_are_at_most_50_years_ahead) {
  const std::chrono::sys_seconds in_2026 = sys_days{std::chrono::year{2026} / 1 / 1};
  EXPECT_EQ(parse_retry_after("Friday, 02-Jan-26 00:00:00 GMT", in_2026), Duration{24h});
  EXPECT_EQ(parse_retry_after("Wednesday, 01-Jan-76 00:00:00 GMT", in_2026),
            Duration{sys_days{std::chrono::year{2076} / 1 / 1} - in_2026});
  EXPECT_EQ(parse_retry_after("Saturday, 01-Jan-77 00:00:00 GMT", in_2026), Duration{0}) << "1977";
}

TEST(PolicyRetryAfter, leap_days_and_leap_seconds) {
  const std::chrono::sys_seconds eve = sys_days{std::chrono::year{2024} / 2 / 28};
  EXPECT_EQ(parse_retry_after("Thu, 29 Feb 2024 00:00:00 GMT", eve), Duration{24h});
  EXPECT_EQ(parse_retry_after("Wed, 29 Feb 2023 00:00:00 GMT", eve), std::nullopt);
  EXPECT_EQ(parse_retry_after("Sat, 31 Dec 2016 23:59:60 GMT", sys_days{std::chrono::year{2016} / 12 / 31}),
            Duration{24h});
}

TEST(PolicyRetryAfter, garbage_is_ignored) {
  for (const std::string_view value : {"",
                                       "  ",
                                       "soon",
                                       "-1",
                                       "+1",
                                       "1.5",
                                       "1e3",
                                       "12 seconds",
                                       "0x10",
                                       "1,2",
                                       "Sun, 06 Nov 1994 08:49:37",
                                       "Sun, 06 Nov 1994 08:49:37 CET",
                                       "Sun, 6 Nov 1994 08:49:37 GMT",
                                       "Sun, 06 Nou 1994 08:49:37 GMT",
                                       "Sun, 32 Nov 1994 08:49:37 GMT",
                                       "Sun, 06 Nov 1994 24:00:00 GMT",
                                       "Sun, 06 Nov 1994 08:60:37 GMT",
                                       "Sun, 06 Nov 1994 08:49:61 GMT",
                                       "Sun, 06 Nov 94 08:49:37 GMT",
                                       "Sunday, 06-Nov-1994 08:49:37 GMT",
                                       "Sun Nov 6 08:49:37 1994",
                                       "Sun, 06 Nov 1994 08:49:37 GMT tomorrow",
                                       "1994-11-06T08:49:37Z",
                                       "Sun, -6 Nov 1994 08:49:37 GMT",
                                       ", ",
                                       "S"}) {
    EXPECT_EQ(parse_retry_after(value, example), std::nullopt) << value;
  }
}

RC_GTEST_PROP(PolicyRetryAfterProperty, any_text_gives_nothing_or_no_negative_time, (const std::string& text)) {
  const auto parsed = parse_retry_after(text, example);
  RC_ASSERT(!parsed || parsed->count() >= 0);
}

}  // namespace
}  // namespace reprise
