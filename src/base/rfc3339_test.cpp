// Dates and times, both ways.
#include "base/rfc3339.hpp"

#include <gtest/gtest.h>

namespace reprise::base {
namespace {

using namespace std::chrono_literals;

const UtcTime noon{std::chrono::sys_days{std::chrono::year{2026} / 11 / 15} + 12h + 3s};

TEST(BaseRfc3339, IsWrittenAsShortAsItIsExact) {
  EXPECT_EQ(to_rfc3339(noon), "2026-11-15T12:00:03Z");
  EXPECT_EQ(to_rfc3339(noon + 5ms), "2026-11-15T12:00:03.005Z");
  EXPECT_EQ(to_rfc3339(noon + 1ns), "2026-11-15T12:00:03.000000001Z");
  EXPECT_EQ(to_rfc3339(UtcTime{-1ns}), "1969-12-31T23:59:59.999999999Z");
  EXPECT_EQ(to_rfc3339(UtcTime::min()), "1677-09-21T00:12:43.145224192Z");
  EXPECT_EQ(to_rfc3339(UtcTime::max()), "2262-04-11T23:47:16.854775807Z");
  EXPECT_EQ(utc_clock(noon), "12:00:03");
}

TEST(BaseRfc3339, IsReadInAnyZone) {
  for (const char* const same : {"2026-11-15T12:00:03Z", "2026-11-15t12:00:03z", "2026-11-15 12:00:03.0Z",
                                 "2026-11-15T13:30:03+01:30", "2026-11-14T23:00:03-13:00"})
    EXPECT_EQ(parse_rfc3339(same), noon) << same;
  EXPECT_EQ(parse_rfc3339("2026-11-15T12:00:03.1234567899Z"), noon + 123456789ns);
}

TEST(BaseRfc3339, WhatIsNoneIsRefused) {
  for (const char* const wrong :
       {"", "2026-11-15", "2026-11-15T12:00:03", "2026-02-29T12:00:03Z", "2026-13-01T12:00:03Z", "2026-11-15T24:00:00Z",
        "2026-11-15T12:60:03Z", "2026-11-15T12:00:60Z", "2026-11-15T12:00:03.Z", "2026-11-15T12:00:03+24:00",
        "2026-11-15T12:00:03Zx", "-026-11-15T12:00:03Z", "2026--1-15T12:00:03Z", "1969-12-31T23:59:59Z",
        "2262-01-01T00:00:00Z", "2026-11-15T12:00:03 Z"})
    EXPECT_FALSE(parse_rfc3339(wrong)) << wrong;
}

}  // namespace
}  // namespace reprise::base
