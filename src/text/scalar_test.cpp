// Plain scalars: their types, and decimal numbers that are exact to the nanosecond.
#include "text/scalar.hpp"

#include "text/json_escapes.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "support/document_generators.hpp"

namespace reprise::text {
namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t millisecond = 1'000'000;

TEST(TextScalar, types_follow_the_core_schema_of_yaml_1_2) {
  const std::pair<std::string_view, NodeType> cases[] = {
      {"", NodeType::null},         {"~", NodeType::null},       {"null", NodeType::null},
      {"NULL", NodeType::null},     {"nUll", NodeType::string},  {"true", NodeType::boolean},
      {"False", NodeType::boolean}, {"TRUE", NodeType::boolean}, {"yes", NodeType::string},
      {"on", NodeType::string},     {"no", NodeType::string},    {"0", NodeType::integer},
      {"-17", NodeType::integer},   {"+5", NodeType::integer},   {"007", NodeType::integer},
      {"1.5", NodeType::number},    {".5", NodeType::number},    {"1.", NodeType::number},
      {"1e5", NodeType::number},    {"-1E-5", NodeType::number}, {".inf", NodeType::number},
      {"-.INF", NodeType::number},  {".nan", NodeType::number},  {"+.nan", NodeType::string},
      {"inf", NodeType::string},    {"nan", NodeType::string},   {"1e", NodeType::string},
      {"1e+", NodeType::string},    {"1.2.3", NodeType::string}, {"0x10", NodeType::string},
      {"1_000", NodeType::string},  {"12:30", NodeType::string}, {"-", NodeType::string},
      {"+-5", NodeType::string},    {".", NodeType::string},     {"-.", NodeType::string},
      {"1s", NodeType::string},     {"e5", NodeType::string},    {"-.5", NodeType::number},
      {"5e-3", NodeType::number},
  };
  for (const auto& [text, type] : cases) EXPECT_EQ(scalar_type(text), type) << '"' << text << '"';
}

TEST(TextScalar, whole_numbers_are_digits_with_at_most_a_minus) {
  EXPECT_EQ(whole_number("0"), 0);
  EXPECT_EQ(whole_number("-12"), -12);
  EXPECT_EQ(whole_number("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(whole_number("-9223372036854775808"), INT64_MIN);
  for (const std::string_view text : {"", "+1", "1.0", "1e3", " 1", "1 ", "9223372036854775808", "0x1", "--1", "-"}) {
    EXPECT_EQ(whole_number(text), std::nullopt) << text;
  }
}

TEST(TextScalar, finite_numbers_are_finite) {
  EXPECT_EQ(finite_number("1.5"), 1.5);
  EXPECT_EQ(finite_number("+1.5"), 1.5);
  EXPECT_EQ(finite_number("-0.25"), -0.25);
  EXPECT_EQ(finite_number("1e-400"), 0.0);
  EXPECT_EQ(finite_number("1e308"), 1e308);
  for (const std::string_view text :
       {"1e309", "-1e309", ".inf", "inf", "nan", ".nan", "", "1.5x", "+", "abc", "+-1", "++1"}) {
    EXPECT_EQ(finite_number(text), std::nullopt) << text;
  }
}

struct Exact {
  std::string_view text;
  std::int64_t unit;
  std::int64_t expected;
};

TEST(TextScalar, decimal_durations_are_exact) {
  const Exact cases[] = {
      {"0", second, 0},
      {"0.0", second, 0},
      {"-0", second, 0},
      {"1", second, second},
      {"0.1", second, 100'000'000},
      {"0.3", second, 300'000'000},
      {"2.5E1", second, 25 * second},
      {"1e-9", second, 1},
      {"0.0000000005", second, 1},  // half a nanosecond rounds up
      {"0.0000000004999999999999999999999999999999999999999999999", second, 0},
      {"0.123456789123456789", second, 123'456'789},
      {"1234567.890123456", second, 1'234'567'890'123'456},  // a double would lose its end
      {"9007199.254740993", second, 9'007'199'254'740'993},
      {"9223372036.854775807", second, INT64_MAX},
      {"9223372036854.775807", millisecond, INT64_MAX},
      {"0.000001", millisecond, 1},
      {"000000000000000000000000000000000000000000001.5", second, 1'500'000'000},
      {"0.00000000000000000000000000000000000000000000001e47", second, second},
      {"1500000000e-9", second, 1'500'000'000},
      {"+2", second, 2 * second},
  };
  for (const auto& [text, unit, expected] : cases) {
    const auto duration = decimal_duration(text, unit);
    ASSERT_TRUE(duration.has_value()) << text;
    EXPECT_EQ(duration->count(), expected) << text;
  }
}

TEST(TextScalar, decimal_durations_refuse_what_is_none) {
  for (const std::string_view text :
       {"-1", "-0.1", "9223372036.854775808", "1e10", "1e999999", "1e99999999999999999999", "99999999999999999999",
        "abc", "", ".", "1s", "--1", "1e", "9223372036.8547758075"}) {
    EXPECT_EQ(decimal_duration(text, second), std::nullopt) << text;
  }
}

TEST(TextScalar, decimal_text_is_what_a_person_would_write) {
  EXPECT_EQ(decimal_text(Duration{0}, second), "0");
  EXPECT_EQ(decimal_text(Duration{1'500'000'000}, second), "1.5");
  EXPECT_EQ(decimal_text(Duration{1}, second), "0.000000001");
  EXPECT_EQ(decimal_text(Duration{200'000'000}, millisecond), "200");
  EXPECT_EQ(decimal_text(Duration{1'000'001}, millisecond), "1.000001");
  EXPECT_EQ(decimal_text(Duration::max(), second), "9223372036.854775807");
}

RC_GTEST_PROP(TextScalarProperty, decimal_text_and_decimal_duration_are_inverse, ()) {
  const Duration duration = *testing_support::any_duration();
  for (const std::int64_t unit : {std::int64_t{1}, std::int64_t{1'000}, millisecond, second}) {
    const auto back = decimal_duration(decimal_text(duration, unit), unit);
    RC_ASSERT(back.has_value());
    RC_ASSERT(back->count() == duration.count());
  }
}

TEST(TextScalar, surrogate_escapes_are_joined) {
  EXPECT_EQ(join_surrogate_escapes(R"("\ud83d\ude00")").text, R"("\U0001F600")");
  EXPECT_EQ(join_surrogate_escapes(R"("a\uD834\uDD1Eb\ud83d\ude00c")").text, R"("a\U0001D11Eb\U0001F600c")");
  EXPECT_EQ(join_surrogate_escapes("no escape").text, "");
  EXPECT_EQ(join_surrogate_escapes(R"("\u0041")").text, "") << "nothing to join";
  EXPECT_EQ(join_surrogate_escapes(R"("\ud83d alone")").text, "");
  EXPECT_EQ(join_surrogate_escapes(R"("\\ud83d\ude00")").text, "") << "an escaped backslash does not begin an escape";
  EXPECT_EQ(join_surrogate_escapes(R"("\ud83d\u0041")").text, "");
  EXPECT_EQ(join_surrogate_escapes(R"("\ud83d\ude0)").text, "") << "cut off";
}

}  // namespace
}  // namespace reprise::text
