// Reading and writing JSON: exact numbers, bounds, messages, and that what is written reads back as the same value.
#include "json/json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "json/json_number.hpp"

namespace reprise::json {
namespace {

Json read(std::string_view text) {
  auto value = parse_json(text);
  EXPECT_TRUE(value.has_value()) << text << ": " << (value ? "" : value.error());
  return value ? *std::move(value) : Json{};
}

std::string again(std::string_view text) { return to_text(read(text)); }
std::string problem(std::string_view text) {
  const auto value = parse_json(text);
  return value ? "accepted: " + to_text(*value) : value.error();
}

TEST(FlowJson, numbers_are_written_in_the_shortest_form_people_use) {
  const auto computed = [](std::string_view text) { return to_text(computable(read(text))); };
  EXPECT_EQ(computed("0.2"), "0.2");
  EXPECT_EQ(computed("2E-1"), "0.2");
  EXPECT_EQ(computed("3.0"), "3.0");
  EXPECT_EQ(computed("3"), "3");
  EXPECT_EQ(computed("100000.0"), "100000.0");
  EXPECT_EQ(computed("0.0001"), "0.0001");
  EXPECT_EQ(computed("1e300"), "1e+300");
  EXPECT_EQ(computed("1e-9"), "1e-09");
  EXPECT_EQ(computed("-0.0"), "-0.0");
  EXPECT_EQ(computed("-0"), "0");
  EXPECT_EQ(computed("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(computed("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(computed("18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(computed("18446744073709551616"), "18446744073709551616.0");
  EXPECT_EQ(computed("1e-400"), "0.0");
  EXPECT_EQ(to_text(Json(std::numeric_limits<double>::infinity())), "null");
}

TEST(FlowJson, numbers_that_are_read_keep_their_spelling) {
  for (const char* text :
       {"1.10", "0.10", "1e2", "1E+02", "100.0", "-0", "-0.00", "1234567890123456789012", "18446744073709551616",
        "0.1000000000000000055511151231257827", "1e-400", R"([1.10,{"v":2.50}])", R"({"a":1.10})", "[1e2]"}) {
    EXPECT_EQ(again(text), text);
    EXPECT_EQ(again(again(text)), text);
  }
  const Json value = read(R"({"price":1.10})");
  const Json& price = value.as_object().at("price");
  EXPECT_TRUE(is_number(price));
  EXPECT_FALSE(is_map(price));
  EXPECT_EQ(if_map(price), nullptr);
  EXPECT_TRUE(is_map(value));
  EXPECT_EQ(to_plain(price), "1.10");
  EXPECT_TRUE(equal(price, Json(1.1)));
}

TEST(FlowJson, a_number_in_a_text_is_the_whole_text) {
  EXPECT_EQ(to_text(*number_in("1.10")), "1.10");
  EXPECT_EQ(to_text(*number_in("-7")), "-7");
  for (const char* text :
       {"", "010", "+1", ".5", "5.", "0x1F", " 1", "1 ", "1\n", "1e999", "true", "[1]", "\"1\"", "1,2"})
    EXPECT_FALSE(number_in(text).has_value()) << text;
}

// No text may pass for a number that is held by its spelling, whatever bytes it has.
TEST(FlowJson, a_spelling_cannot_be_forged) {
  EXPECT_TRUE(is_map(read(R"({"\u00ff=":"1.10"})")));
  EXPECT_FALSE(parse_json("{\"\xFF=\":\"1.10\"}").has_value());
}

TEST(FlowJson, doubles_are_the_nearest_ones) {
  for (const char* text :
       {"0.1", "1.7976931348623157e308", "5e-324", "2.2250738585072014e-308", "123456789012345678e-20",
        "9007199254740993.0", "0.30000000000000004", "179.10000000000002"}) {
    EXPECT_EQ(computable(read(text)).as_double(), std::strtod(text, nullptr)) << text;
  }
}

TEST(FlowJson, values_are_written_on_one_line) {
  EXPECT_EQ(again(" { \"a\" : [ 1 , true , false , null , \"x\" ] , \"b\" : { } , \"c\": [ ] } "),
            R"({"a":[1,true,false,null,"x"],"b":{},"c":[]})");
  EXPECT_EQ(again(R"("\u0000\u001f\"\\\/\b\f\n\r\tü\ud83d\ude00")"), "\"\\u0000\\u001f\\\"\\\\/\\b\\f\\n\\r\\tü😀\"");
  EXPECT_EQ(to_text(Json("a\xFF\xC3")), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(FlowJson, plain_text_has_no_quotes_around_it) {
  EXPECT_EQ(to_plain(Json("a \"b\"")), "a \"b\"");
  EXPECT_EQ(to_plain(Json(nullptr)), "");
  EXPECT_EQ(to_plain(Json(0.5)), "0.5");
  EXPECT_EQ(to_plain(read("[\"a\", null]")), "[\"a\",null]");
}

TEST(FlowJson, mistakes_say_where_and_what) {
  EXPECT_EQ(problem("[1,\n 2\n 3]"), "line 3, column 2: expected a comma or ]");
  EXPECT_EQ(problem("{\"a\": 1 \"b\": 2}"), "line 1, column 9: expected a comma or }");
  EXPECT_EQ(problem("{\"a\" 1}"), "line 1, column 6: expected a colon");
  EXPECT_EQ(problem("{\"a\": 1, 2: 3}"), "line 1, column 10: expected a name in double quotes");
  EXPECT_EQ(problem("{a: 1}"), "line 1, column 2: expected a name in double quotes");
  EXPECT_EQ(problem("[1,]"), "line 1, column 4: expected a value");
  EXPECT_EQ(problem("{\"a\": }"), "line 1, column 7: expected a value");
  EXPECT_EQ(problem("[1] x"), "line 1, column 5: there is more text after the value");
  EXPECT_EQ(problem("[1, 2"), "line 1, column 6: the text ends before the value does");
  EXPECT_EQ(problem("\"abc"), "line 1, column 5: the text ends before the value does");
  EXPECT_EQ(problem(""), "line 1, column 1: there is no value, the text is empty");
  EXPECT_EQ(problem(" \n"), "line 2, column 1: there is no value, the text is empty");
  EXPECT_EQ(problem("hello"), "line 1, column 1: expected a value");
  EXPECT_EQ(problem("1e999").substr(0, 8), "line 1, ");
  EXPECT_NE(problem("[1e999]").find("the number is too large"), std::string::npos);
  EXPECT_NE(problem("1e99999999999").find("the number is too large"), std::string::npos);
  EXPECT_NE(problem("\"\\ud800\"").find("half of a surrogate pair"), std::string::npos);
  EXPECT_NE(problem("\"\\ud83dx\"").find("half of a surrogate pair"), std::string::npos);
  EXPECT_NE(problem("\"\\ud83d\\n\"").find("half of a surrogate pair"), std::string::npos);
  EXPECT_EQ(problem("\"\\x\""), "line 1, column 3: unknown escape");
  EXPECT_NE(problem("\"a\nb\"").find("line 1, column 3: a line end"), std::string::npos);
  EXPECT_NE(problem("\"\\u12g4\"").find("four hexadecimal digits"), std::string::npos);
  EXPECT_NE(problem("[\"a\xFFz\"]").find("not valid UTF-8"), std::string::npos);
  EXPECT_NE(problem("\"a\x01\"").find("control character"), std::string::npos);
}

TEST(FlowJson, what_json_does_not_have_is_refused) {
  for (const char* text : {"nul",
                           "True",
                           "01",
                           "1.",
                           ".5",
                           "+1",
                           "-",
                           "1e",
                           "0x10",
                           "NaN",
                           "Infinity",
                           "'a'",
                           "[1 2]",
                           "{}{}",
                           "// c\n1",
                           "[,1]",
                           "{\"a\":1,}",
                           "\"\t\"",
                           "\"\\x41\"",
                           "\xEF\xBB\xBF"
                           "1"}) {
    EXPECT_FALSE(parse_json(text).has_value()) << text;
  }
}

TEST(FlowJson, nesting_is_bounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json(nested(json_depth_max)).has_value());
  EXPECT_NE(problem(nested(json_depth_max + 1)).find("nested deeper than 64 levels"), std::string::npos);
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')).has_value());
  EXPECT_FALSE(parse_json(std::string(1'000'000, '{')).has_value());
}

TEST(FlowJson, the_last_of_two_members_of_the_same_name_counts) {
  EXPECT_EQ(again(R"({"a":1,"b":2,"a":3})"), again(R"({"a":3,"b":2})"));
}

TEST(FlowJson, large_lists_are_no_trouble) {
  constexpr std::size_t count = 1'000'000;
  boost::json::array list;
  for (std::size_t at = 0; at < count; ++at) list.emplace_back(static_cast<double>(at) / 4);
  const Json value(std::move(list));
  const std::string text = to_text(value);
  EXPECT_TRUE(equal(read(text), value));
}

TEST(FlowJson, equality_is_that_of_json) {
  const auto same = [](std::string_view left, std::string_view right) {
    const bool forth = equal(read(left), read(right));
    EXPECT_EQ(forth, equal(read(right), read(left))) << left << " " << right;
    if (forth) {
      EXPECT_EQ(hash_of(read(left)), hash_of(read(right))) << left << " " << right;
    }
    return forth;
  };
  EXPECT_TRUE(same("1", "1.0"));
  EXPECT_TRUE(same("0", "-0.0"));
  EXPECT_TRUE(same("1.1", "1.10"));
  EXPECT_TRUE(same("1.10", "110e-2"));
  EXPECT_TRUE(same("100", "1e2"));
  EXPECT_TRUE(same("0", "-0.00"));
  EXPECT_TRUE(same("0", "0e9"));
  EXPECT_TRUE(same("1234567890123456789012", "1234567890123456789012.0"));
  EXPECT_FALSE(same("1234567890123456789012", "1234567890123456789013"));
  EXPECT_FALSE(same("1.10", "{}"));
  EXPECT_FALSE(same("1.10", R"("1.10")"));
  EXPECT_TRUE(same("18446744073709551615", "18446744073709551615"));
  EXPECT_TRUE(same(R"({"a":1,"b":[2]})", R"({"b":[2.0],"a":1})"));
  EXPECT_FALSE(same("9007199254740993", "9007199254740992.0"));
  EXPECT_FALSE(same("18446744073709551615", "18446744073709551616"));
  EXPECT_FALSE(same("-1", "18446744073709551615"));
  EXPECT_FALSE(same("[1,2]", "[2,1]"));
  EXPECT_FALSE(same("[1]", "[1,1]"));
  EXPECT_FALSE(same(R"({"a":1})", R"({"b":1})"));
  EXPECT_FALSE(same(R"({"a":1})", R"({"a":1,"b":1})"));
  EXPECT_FALSE(same("null", "false"));
  EXPECT_FALSE(same("0", "false"));
  EXPECT_FALSE(same("\"1\"", "1"));
}

TEST(FlowJsonNumber, numbers_compare_exactly_whatever_holds_them) {
  const char* const ascending[] = {"-1e300",
                                   "-9223372036854775808",
                                   "-9223372036854775807",
                                   "-2.50",
                                   "-2",
                                   "-0.5",
                                   "0",
                                   "0.5",
                                   "1",
                                   "1.10",
                                   "1.5",
                                   "1e2",
                                   "9007199254740992.0",
                                   "9007199254740993",
                                   "9223372036854775807",
                                   "9223372036854775808",
                                   "18446744073709551615",
                                   "18446744073709551616",
                                   "1234567890123456789012",
                                   "1234567890123456789013",
                                   "1e300"};
  for (std::size_t left = 0; left < std::size(ascending); ++left) {
    for (std::size_t right = 0; right < std::size(ascending); ++right) {
      EXPECT_EQ(compare_numbers(read(ascending[left]), read(ascending[right])), std::partial_ordering{left <=> right})
          << ascending[left] << " and " << ascending[right];
    }
  }
}

TEST(FlowJsonNumber, multiples_are_those_of_decimal_digits) {
  const auto multiple = [](std::string_view value, std::string_view divisor) {
    return is_multiple(read(value), read(divisor));
  };
  EXPECT_TRUE(multiple("0.3", "0.1"));
  EXPECT_TRUE(multiple("19.99", "0.01"));
  EXPECT_TRUE(multiple("-7.5", "2.5"));
  EXPECT_TRUE(multiple("0", "7"));
  EXPECT_TRUE(multiple("1e300", "3e299") == false);
  EXPECT_TRUE(multiple("1e300", "0.5"));
  EXPECT_TRUE(multiple("18446744073709551615", "5"));
  EXPECT_TRUE(multiple("-9223372036854775808", "2"));
  EXPECT_TRUE(multiple("1200", "400.0"));
  EXPECT_FALSE(multiple("0.35", "0.1"));
  EXPECT_FALSE(multiple("7", "2"));
  EXPECT_FALSE(multiple("5", "10"));
  EXPECT_FALSE(multiple("18446744073709551615", "2"));
}

Json arbitrary(int depth) {
  using boost::json::array;
  using boost::json::object;
  switch (*rc::gen::inRange(0, depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return *rc::gen::arbitrary<bool>();
    case 2:
      return *rc::gen::arbitrary<std::int64_t>();
    case 3:
      return *rc::gen::arbitrary<std::uint64_t>();
    case 4: {
      const auto bits = *rc::gen::arbitrary<std::uint64_t>();
      double number = 0;
      std::memcpy(&number, &bits, sizeof number);
      return std::isfinite(number) ? number : 0.1;
    }
    case 5:
      return Json(*rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127)));
    case 6: {
      array list;
      for (int left = *rc::gen::inRange(0, 5); left > 0; --left) list.push_back(arbitrary(depth - 1));
      return list;
    }
    default: {
      object map;
      for (int left = *rc::gen::inRange(0, 5); left > 0; --left)
        map[*rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127))] = arbitrary(depth - 1);
      return map;
    }
  }
}

RC_GTEST_PROP(FlowJson, what_is_written_reads_back_the_same, ()) {
  const Json value = arbitrary(4);
  const std::string text = to_text(value);
  const auto back = parse_json(text);
  RC_ASSERT(back.has_value());
  RC_ASSERT(equal(*back, value));
  RC_ASSERT(to_text(*back) == text);
  RC_ASSERT(hash_of(*back) == hash_of(value));
}

std::string arbitrary_spelling() {
  const auto digits = [](int most) {
    return *rc::gen::resize(most,
                            rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange<char>('0', '9' + 1))));
  };
  std::string text = *rc::gen::arbitrary<bool>() ? "-" : "";
  const std::string whole = digits(25);
  text += whole.front() == '0' ? "0" : whole;
  if (*rc::gen::arbitrary<bool>()) text += "." + digits(25);
  if (*rc::gen::arbitrary<bool>()) {
    text += *rc::gen::element('e', 'E');
    text += *rc::gen::element<std::string>("", "+", "-");
    text += std::to_string(*rc::gen::inRange(0, 250));
  }
  return text;
}

RC_GTEST_PROP(FlowJson, every_number_keeps_its_spelling, ()) {
  const std::string text = arbitrary_spelling();
  const auto value = parse_json(text);
  RC_ASSERT(value.has_value());
  RC_ASSERT(is_number(*value));
  RC_ASSERT(to_text(*value) == text);
  RC_ASSERT(equal(*value, *parse_json(text)));
  RC_ASSERT(is_whole(*value) || !computable(*value).is_int64());
  const auto in_a_list = parse_json("[{\"v\":" + text + "}]");
  RC_ASSERT(to_text(*in_a_list) == "[{\"v\":" + text + "}]");
}

RC_GTEST_PROP(FlowJsonNumber, products_are_multiples, (std::int32_t factor, std::uint16_t unit)) {
  if (unit == 0) return;
  RC_ASSERT(is_multiple(Json(static_cast<std::int64_t>(factor) * unit), Json(unit)));
  RC_ASSERT(is_multiple(Json(factor), Json(unit)) == (factor % unit == 0));
}

}  // namespace
}  // namespace reprise::json
