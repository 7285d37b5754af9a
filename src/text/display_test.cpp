// Columns: what fits on a line of a terminal.
#include "text/display.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace reprise::text {
namespace {

TEST(TextDisplay, CountsColumnsNotBytes) {
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("abc"), 3U);
  EXPECT_EQ(columns_of("✔ ↻ ·"), 5U);
  EXPECT_EQ(columns_of("日本"), 4U);
  EXPECT_EQ(columns_of("e\u0301"), 1U);
  EXPECT_EQ(columns_of("\xff\xfe"), 2U);
}

TEST(TextDisplay, ClipsBetweenCharacters) {
  EXPECT_EQ(clipped("日本", 3), "日");
  EXPECT_EQ(clipped("e\u0301x", 1), "e\u0301");
  rc::check([](const std::string& text) {
    const auto columns = *rc::gen::inRange<std::size_t>(0, 40);
    const std::string_view part = clipped(text, columns);
    RC_ASSERT(text.starts_with(part));
    RC_ASSERT(columns_of(part) <= columns);
    RC_ASSERT(part.size() == text.size() || columns_of(part) + 2 > columns);
  });
}

}  // namespace
}  // namespace reprise::text
