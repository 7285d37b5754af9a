// JSONPath beyond the compliance suite: messages, places, bounds, and that hostile queries end. The suite: tests/flow/jsonpath_cts_test.cpp.
#include "json/jsonpath.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "json/jsonpath_query.hpp"

namespace reprise::json {
namespace {

Json read(std::string_view text) {
  auto value = parse_json(text);
  EXPECT_TRUE(value.has_value()) << text << ": " << (value ? "" : value.error());
  return value ? *std::move(value) : Json{};
}

JsonPath query(std::string_view text) {
  auto path = JsonPath::parse(text);
  EXPECT_TRUE(path.has_value()) << text << ": " << (path ? "" : path.error().message);
  return path ? *std::move(path) : *JsonPath::parse("$.none");
}

std::string selected(std::string_view text, std::string_view document) {
  const Json value = read(document);
  const auto nodes = query(text).select(value);
  if (!nodes) return nodes.error();
  boost::json::array list;
  for (const Json* node : *nodes) list.push_back(*node);
  return to_text(list);
}

std::string refusal(std::string_view text) {
  const auto path = JsonPath::parse(text);
  return path ? "accepted" : std::to_string(path.error().offset) + ": " + path.error().message;
}

constexpr std::string_view store = R"({"store":{"book":[
  {"category":"reference","author":"Nigel Rees","title":"Sayings of the Century","price":8.95},
  {"category":"fiction","author":"Evelyn Waugh","title":"Sword of Honour","price":12.99},
  {"category":"fiction","author":"Herman Melville","title":"Moby Dick","isbn":"0-553-21311-3","price":8.99},
  {"category":"fiction","author":"J. R. R. Tolkien","title":"The Lord of the Rings","isbn":"0-395-19395-8","price":22.99}],
  "bicycle":{"color":"red","price":399}}})";

TEST(FlowJsonPath, the_examples_of_the_rfc) {
  EXPECT_EQ(selected("$.store.book[*].author", store),
            R"(["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"])");
  EXPECT_EQ(selected("$.store..price", store), "[8.95,12.99,8.99,22.99,399]");
  EXPECT_EQ(selected("$..book[2].title", store), R"(["Moby Dick"])");
  EXPECT_EQ(selected("$..book[2].publisher", store), "[]");
  EXPECT_EQ(selected("$..book[-1].title", store), R"(["The Lord of the Rings"])");
  EXPECT_EQ(selected("$..book[:2].price", store), "[8.95,12.99]");
  EXPECT_EQ(selected("$..book[?@.isbn].price", store), "[8.99,22.99]");
  EXPECT_EQ(selected("$..book[?@.price<10].title", store), R"(["Sayings of the Century","Moby Dick"])");
  EXPECT_EQ(selected("$.store.book[?match(@.author, '.*R.*') && @.price > 10].price", store), "[22.99]");
}

TEST(FlowJsonPath, numbers_are_compared_exactly) {
  EXPECT_EQ(selected("$[?@ == 9007199254740993]", "[9007199254740992, 9007199254740993, 9007199254740992.0]"),
            "[9007199254740993]");
  EXPECT_EQ(selected("$[?@ < 18446744073709551615]", "[18446744073709551614, 18446744073709551615, 1e300]"),
            "[18446744073709551614]");
  EXPECT_EQ(selected("$[?@ == -0]", "[0, -0.0, 1]"), "[0,-0.0]");
  EXPECT_EQ(selected("$[?@ == 1E2]", "[100, 100.0, 1]"), "[100,100.0]");
}

TEST(FlowJsonPath, texts_are_ordered_by_characters) {
  EXPECT_EQ(selected("$[?@ > 'ﬀ']", R"(["😀", "z", "ﬀ"])"), R"(["😀"])") << "UTF-16 would order them the other way round";
  EXPECT_EQ(selected("$[?length(@) == 1]", R"(["😀", "ab", "é", ""])"), R"(["😀","é"])");
}

TEST(FlowJsonPath, nodes_point_into_the_value) {
  const Json value = read(R"({"a":[1,2]})");
  const auto nodes = query("$.a[1]").select(value);
  ASSERT_TRUE(nodes.has_value());
  ASSERT_EQ(nodes->size(), 1U);
  EXPECT_EQ(nodes->front(), &value.as_object().at("a").as_array()[1]);
}

TEST(FlowJsonPath, patterns_that_are_computed_are_the_same_as_written_ones) {
  EXPECT_EQ(selected("$.t[?search(@, $.p)]", R"({"p":"b.","t":["abc","ab","b\n"]})"), R"(["abc"])");
  EXPECT_EQ(selected("$[?match(@.t, @.p)].t",
                     R"([{"t":"aa","p":"a+"},{"t":"aa","p":"a"},{"t":"aa","p":"(("},{"t":"aa","p":1}])"),
            R"(["aa"])");
  EXPECT_EQ(selected("$[?match(@, '((')]", R"(["((", "a"])"), "[]") << "what is no I-Regexp matches nothing";
  EXPECT_EQ(selected("$[?!match(@, '((')]", R"(["a"])"), R"(["a"])");
}

TEST(FlowJsonPath, mistakes_say_where_and_what) {
  EXPECT_EQ(refusal(""), "0: expected $, with which every query begins, found the end");
  EXPECT_EQ(refusal("store"), "0: expected $, with which every query begins, found store");
  EXPECT_EQ(refusal("$.store.[0]"), "8: expected a name or * after ., found [0]");
  EXPECT_EQ(refusal("$.."), "3: expected a name, * or [ after .., found the end");
  EXPECT_EQ(refusal("$[a]"), "2: expected a selector: a quoted name, an index, a slice, * or ?, found a]");
  EXPECT_EQ(refusal("$['a' 'b']"), "6: expected a comma or ], found 'b']");
  EXPECT_EQ(refusal("$['a"), "2: the string is never closed");
  EXPECT_EQ(refusal("$['\\d']"), "3: unknown escape; in a string, \\ is written \\\\");
  EXPECT_EQ(refusal("$['\\ud800']"), "3: the first half of a surrogate pair without the second");
  EXPECT_EQ(refusal("$[007]"), "2: a whole number has no leading zeros and no -0");
  EXPECT_EQ(refusal("$[9007199254740992]"),
            "2: a whole number must lie between -9007199254740991 and 9007199254740991");
  EXPECT_EQ(refusal("$[?size(@) == 1]"),
            "3: there is no function size(); there are length, count, match, search and value");
  EXPECT_EQ(refusal("$[?length(@, @)]"), "3: length() takes one argument, not 2");
  EXPECT_EQ(refusal("$[?match(@)]"), "3: match() takes two arguments, not 1");
  EXPECT_EQ(refusal("$[?length(@)]"), "3: length() gives a value; compare it with something");
  EXPECT_EQ(refusal("$[?match(@, 'a') == true]"), "3: match() is true or false and cannot be compared");
  EXPECT_EQ(refusal("$[?count(1) > 1]"), "9: count() takes a query");
  EXPECT_EQ(refusal("$[?1]"), "3: a literal alone is no condition; compare it with something");
  EXPECT_NE(refusal("$[?@..a == 1]").find("3: this query may select several nodes"), std::string::npos);
  EXPECT_EQ(refusal("$[?@.a == 1e999]"), "10: the number is too large");
  EXPECT_EQ(refusal("$.a\xFF"), "3: not valid UTF-8");
  EXPECT_EQ(refusal("$ "), "1: expected a segment like .name or [0], found  ");
}

TEST(FlowJsonPath, queries_are_bounded) {
  EXPECT_EQ(refusal("$" + std::string(4096, ' ')), "4096: the query is longer than 4096 bytes");
  const auto repeated = [](std::string_view part, int times) {
    std::string text;
    for (; times > 0; --times) text += part;
    return text;
  };
  EXPECT_NE(refusal("$[?" + repeated("(", 65) + "@.a" + repeated(")", 65) + "]").find("nested deeper"),
            std::string::npos);
  EXPECT_NE(refusal("$" + repeated("[?@", 1000)).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal("$[?" + repeated("length(", 500)).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal("$[?" + repeated("!(", 500)).find("nested deeper"), std::string::npos);
  EXPECT_EQ(refusal("$[?" + repeated("(", 60) + "@.a" + repeated(")", 60) + "]"), "accepted");
  EXPECT_EQ(refusal("$" + repeated(".a", 2000)), "accepted");
  EXPECT_EQ(refusal("$[?@.a" + repeated("||@.a", 700) + "]"), "accepted");
}

TEST(FlowJsonPath, queries_that_multiply_are_given_up_and_say_so) {
  std::string chain = "1";
  for (int level = 0; level < 60; ++level) chain = "[" + chain + "]";
  std::string doubling = "$";
  for (int times = 0; times < 60; ++times) doubling += "[0,0]";
  EXPECT_EQ(selected(doubling, chain), "the query selects more than 10 million nodes; narrow it down");
  const std::string below = "the query looks at more than 100 million nodes; use fewer .. and nested filters";
  EXPECT_EQ(selected("$[?@..[?@..[?@..[?@..[?@..[?@..[?@..[?@..[?@..[?@..[?@..[?@..[?@..x]]]]]]]]]]]]]", chain), below);
}

TEST(FlowJsonPath, comparing_large_values_again_and_again_is_given_up) {
  std::string list = "[0";
  for (int at = 1; at < 20'000; ++at) list += ",0";
  list += "]";
  const std::string document = "{\"a\":" + list + ",\"b\":" + list + "}";
  EXPECT_NE(selected("$.a[?$.a == $.b]", document).find("more than 100 million"), std::string::npos);
}

TEST(FlowJsonPath, large_lists_are_no_trouble) {
  boost::json::array list;
  for (int at = 0; at < 1'000'000; ++at) list.push_back(boost::json::object{{"n", at}});
  const Json value(std::move(list));
  const auto count = [&](std::string_view text) {
    const auto nodes = query(text).select(value);
    EXPECT_TRUE(nodes.has_value()) << text << ": " << nodes.error();
    return nodes ? nodes->size() : 0;
  };
  EXPECT_EQ(count("$[*]"), 1'000'000U);
  EXPECT_EQ(count("$..n"), 1'000'000U);
  EXPECT_EQ(count("$..*"), 2'000'000U);
  EXPECT_EQ(count("$[?@.n >= 999000].n"), 1'000U);
  EXPECT_EQ(count("$[::-10]"), 100'000U);
}

// The rule of the RFC, said a second time and differently: walk all indexes, keep those in the range.
RC_GTEST_PROP(FlowJsonPath, slices_select_what_the_rfc_says, ()) {
  const int size = *rc::gen::inRange(0, 8);
  const auto bound = rc::gen::maybe(rc::gen::inRange(-10, 10));
  const auto start = *bound;
  const auto end = *bound;
  const int step = *rc::gen::inRange(-4, 5);
  boost::json::array list;
  for (int at = 0; at < size; ++at) list.emplace_back(at);
  const std::string text = "$[" + (start ? std::to_string(*start) : "") + ":" + (end ? std::to_string(*end) : "") +
                           ":" + std::to_string(step) + "]";
  const int first = start ? (*start < 0 ? *start + size : *start) : (step < 0 ? size - 1 : 0);
  const int last = end ? (*end < 0 ? *end + size : *end) : (step < 0 ? -1 : size);
  boost::json::array expected;
  const int lower = step > 0 ? std::max(first, 0) : std::min(first, size - 1);
  if (step > 0) {
    for (int at = lower; at < std::min(last, size); at += step) expected.emplace_back(at);
  } else if (step < 0) {
    for (int at = lower; at > std::max(last, -1); at += step) expected.emplace_back(at);
  }
  RC_ASSERT(selected(text, to_text(list)) == to_text(expected));
}

// Any member name can be asked for, in both kinds of quotes.
RC_GTEST_PROP(FlowJsonPath, every_name_can_be_written, ()) {
  const auto name = *rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127));
  const Json value = boost::json::object{{name, 7}};
  const std::string quoted = to_text(Json(name));  // JSON's strings are JSONPath's
  const auto nodes = query("$[" + quoted + "]").select(value);
  RC_ASSERT(nodes.has_value());
  RC_ASSERT(nodes->size() == 1U);
}

RC_GTEST_PROP(FlowJsonPath, no_text_does_harm, ()) {
  const auto part = rc::gen::elementOf(std::vector<std::string>{
      "$",     "@", ".",  "..",    "[",  "]",  "?",  "(",  ")", "!", "*",       ":",      ",",      "'a'",
      "\"b\"", "0", "-1", "1.5e1", "==", "<=", "&&", "||", " ", "a", "length(", "count(", "value(", "match("});
  std::string text = "$";
  for (const std::string& each : *rc::gen::container<std::vector<std::string>>(part)) text += each;
  const auto path = JsonPath::parse(text);
  if (!path) {
    RC_ASSERT(path.error().offset <= text.size());
    RC_ASSERT(!path.error().message.empty());
    return;
  }
  RC_ASSERT(path->select(read(R"({"a":[1,{"b":"x"}],"b":null})")).has_value());
}

}  // namespace
}  // namespace reprise::json
