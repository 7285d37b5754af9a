// JSON Schema, draft-07: each keyword, references, messages, bounds.
#include "json/json_schema.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "json/json_schema_references.hpp"

namespace reprise::json {
namespace {

Json read(std::string_view text) {
  auto value = parse_json(text);
  EXPECT_TRUE(value.has_value()) << text << ": " << (value ? "" : value.error());
  return value ? *std::move(value) : Json{};
}

std::vector<std::string> mistakes_of(std::string_view schema, const Json& value) {
  const auto compiled = JsonSchema::compile(read(schema));
  EXPECT_TRUE(compiled.has_value()) << schema << ": " << (compiled ? "" : compiled.error());
  return compiled ? compiled->mistakes_in(value) : std::vector<std::string>{"not compiled"};
}
std::vector<std::string> mistakes(std::string_view schema, std::string_view value) {
  return mistakes_of(schema, read(value));
}

std::string mistake(std::string_view schema, std::string_view value) {
  const auto all = mistakes(schema, value);
  EXPECT_LE(all.size(), 1U);
  return all.empty() ? "valid" : all.front();
}

std::string refusal(std::string_view schema) {
  const auto compiled = JsonSchema::compile(read(schema));
  return compiled ? "accepted" : compiled.error();
}

void expect(std::string_view schema, std::initializer_list<std::string_view> valid,
            std::initializer_list<std::string_view> invalid) {
  for (const std::string_view value : valid) {
    const auto found = mistakes(schema, value);
    EXPECT_TRUE(found.empty()) << schema << " should accept " << value << ": " << found.front();
  }
  for (const std::string_view value : invalid)
    EXPECT_FALSE(mistakes(schema, value).empty()) << schema << " should refuse " << value;
}

TEST(FlowJsonSchema, of_any_value) {
  expect("true", {"1", "null", "{}"}, {});
  expect("{}", {"1", "null", "{}"}, {});
  expect("false", {}, {"1", "null", "{}"});
  expect(R"({"type":"integer"})", {"1", "1.0", "-7", "1e3"}, {"1.5", "\"1\"", "true"});
  expect(R"({"type":"number"})", {"1", "1.5"}, {"\"1\"", "null"});
  expect(R"({"type":["string","null"]})", {"\"\"", "null"}, {"1", "[]", "{}", "false"});
  expect(R"({"type":"boolean"})", {"true"}, {"0"});
  expect(R"({"enum":[1,"a",{"x":[1]},null]})", {"1", "1.0", "\"a\"", "{\"x\":[1.0]}", "null"},
         {"2", "\"b\"", "{}", "false"});
  expect(R"({"const":{"a":1,"b":2}})", {R"({"b":2,"a":1.0})"}, {R"({"a":1})", "1"});
  expect(R"({"const":0})", {"0", "0.0"}, {"false"});
  expect(R"({"format":"email","unknown":7})", {"\"no mail\""}, {});
}

TEST(FlowJsonSchema, of_numbers) {
  expect(R"({"minimum":1,"maximum":3})", {"1", "3.0", "2.5", "\"x\""}, {"0.99", "4"});
  expect(R"({"exclusiveMinimum":1,"exclusiveMaximum":3})", {"1.01", "2"}, {"1", "3"});
  expect(R"({"multipleOf":0.01})", {"19.99", "0", "3"}, {"0.001", "0.0151"});
  expect(R"({"multipleOf":2})", {"4", "-4", "1e300"}, {"3", "7.5"});
  expect(R"({"maximum":9007199254740992})", {"9007199254740992"}, {"9007199254740993"});
}

TEST(FlowJsonSchema, of_strings) {
  expect(R"({"minLength":2,"maxLength":3})", {"\"ab\"", "\"😀😀😀\"", "12345"}, {"\"a\"", "\"😀\"", "\"abcd\""});
  expect(R"({"pattern":"^a+$"})", {"\"aaa\"", "1"}, {"\"b\"", "\"\""});
  expect(R"({"pattern":"a"})", {"\"xay\""}, {"\"b\""});
  expect(R"({"minLength":2.0})", {"\"ab\""}, {"\"a\""});
}

TEST(FlowJsonSchema, of_arrays) {
  expect(R"({"items":{"type":"integer"}})", {"[]", "[1,2]", "{}"}, {"[1,\"a\"]"});
  expect(R"({"items":[{"type":"integer"},{"type":"string"}]})", {"[1]", "[1,\"a\",null]"}, {"[\"a\"]", "[1,2]"});
  expect(R"({"items":[{}],"additionalItems":{"type":"null"}})", {"[1]", "[1,null]"}, {"[1,2]"});
  expect(R"({"items":[{}],"additionalItems":false})", {"[]", "[1]"}, {"[1,2]"});
  expect(R"({"items":{},"additionalItems":false})", {"[1,2]"}, {});
  expect(R"({"items":[],"additionalItems":false})", {"[]"}, {"[1]"});
  expect(R"({"additionalItems":false})", {"[1,2]"}, {});
  expect(R"({"items":false})", {"[]"}, {"[1]"});
  expect(R"({"minItems":1,"maxItems":2})", {"[1]", "[1,2]"}, {"[]", "[1,2,3]"});
  expect(R"({"uniqueItems":true})", {"[]", "[1,2,true,[1],{\"a\":1}]", "[0,false,null,\"\"]"},
         {"[1,1.0]", "[{\"a\":1,\"b\":2},{\"b\":2,\"a\":1}]", "[[1],[1]]"});
  expect(R"({"uniqueItems":false})", {"[1,1]"}, {});
  expect(R"({"contains":{"minimum":5}})", {"[1,5]", "7"}, {"[]", "[1,2]"});
}

TEST(FlowJsonSchema, of_objects) {
  expect(R"({"properties":{"a":{"type":"integer"}}})", {"{}", "{\"a\":1,\"b\":2}"}, {"{\"a\":\"x\"}"});
  expect(R"({"required":["a","b"]})", {"{\"a\":null,\"b\":1}", "[]"}, {"{\"a\":1}"});
  expect(R"({"properties":{"a":{}},"patternProperties":{"^x":{"type":"null"}},"additionalProperties":false})",
         {"{\"a\":1,\"xy\":null}"}, {"{\"b\":1}", "{\"xy\":1}"});
  expect(R"({"additionalProperties":{"type":"integer"}})", {"{\"a\":1}"}, {"{\"a\":\"x\"}"});
  expect(R"({"properties":{"xa":{"minimum":2}},"patternProperties":{"^x":{"maximum":3}}})", {"{\"xa\":2}"},
         {"{\"xa\":1}", "{\"xa\":4}"});
  expect(R"({"minProperties":1,"maxProperties":2})", {"{\"a\":1}"}, {"{}", "{\"a\":1,\"b\":1,\"c\":1}"});
  expect(R"({"propertyNames":{"pattern":"^[a-z]+$"}})", {"{\"abc\":1}"}, {"{\"A\":1}"});
  expect(R"({"propertyNames":false})", {"{}"}, {"{\"A\":1}"});
  expect(R"({"dependencies":{"a":["b"],"c":{"required":["d"]}}})",
         {"{}", "{\"b\":1}", "{\"a\":1,\"b\":1}", "{\"c\":1,\"d\":1}"}, {"{\"a\":1}", "{\"c\":1}"});
}

TEST(FlowJsonSchema, of_logic) {
  expect(R"({"allOf":[{"minimum":1},{"maximum":3}]})", {"2"}, {"0", "4"});
  expect(R"({"anyOf":[{"type":"string"},{"minimum":3}]})", {"\"a\"", "3", "null"}, {"1"});
  expect(R"({"oneOf":[{"multipleOf":2},{"multipleOf":3}]})", {"2", "3"}, {"6", "1"});
  expect(R"({"not":{"type":"string"}})", {"1"}, {"\"a\""});
  expect(R"({"if":{"minimum":10},"then":{"multipleOf":10},"else":{"multipleOf":2}})", {"20", "4"}, {"15", "3"});
  expect(R"({"if":{"minimum":10},"then":{"multipleOf":10}})", {"20", "3"}, {"15"});
  expect(R"({"then":false,"else":false})", {"1"}, {});
}

TEST(FlowJsonSchema, references_within_the_document) {
  expect(R"({"definitions":{"n":{"type":"integer"}},"properties":{"a":{"$ref":"#/definitions/n"}}})", {"{\"a\":1}"},
         {"{\"a\":\"x\"}"});
  expect(R"({"properties":{"next":{"$ref":"#"}},"additionalProperties":false})", {"{\"next\":{\"next\":{}}}"},
         {"{\"next\":{\"other\":1}}"});
  expect(R"({"$ref":"#/definitions/n","type":"string","definitions":{"n":{"type":"integer"}}})", {"1"}, {"\"a\""});
  expect(R"({"definitions":{"a~b/c%d":{"type":"integer"}},"items":{"$ref":"#/definitions/a~0b~1c%25d"}})", {"[1]"},
         {"[\"a\"]"});
  expect(R"({"items":[{"type":"integer"},{"$ref":"#/items/0"}]})", {"[1,2]"}, {"[1,\"a\"]"});
  expect(R"({"definitions":{"n":{"$id":"#num","type":"integer"}},"items":{"$ref":"#num"}})", {"[1]"}, {"[\"a\"]"});
  expect(
      R"({"$id":"http://x.org/root.json","items":{"$ref":"http://x.org/root.json#/definitions/n"},"definitions":{"n":{"type":"integer"}}})",
      {"[1]"}, {"[\"a\"]"});
  expect(R"({"$id":"http://x.org/root.json#","definitions":{"n":{"$id":"n.json","items":{"$ref":"#/definitions/k"},
             "definitions":{"k":{"type":"integer"}}}},"items":{"$ref":"n.json"}})",
         {"[[1]]"}, {"[[\"a\"]]"});
  expect(
      R"({"$id":"http://x.org/a/","definitions":{"n":{"$id":"b/","definitions":{"k":{"$id":"k.json","type":"null"}}}},
             "items":{"$ref":"b/k.json"}})",
      {"[null]"}, {"[1]"});
  expect(
      R"({"enum":[{"$id":"#x"},{"$ref":"nowhere"}],"properties":{"$ref":{"type":"string"},"$id":{"type":"string"}}})",
      {R"({"$id":"#x"})"}, {"1"});
  EXPECT_EQ(refusal(R"({"items":{"$ref":"#/definitions/n"}})"),
            "/items/$ref: there is nothing at \"#/definitions/n\" in this schema");
  EXPECT_EQ(refusal(R"({"$ref":"other.json#/a"})"),
            "/$ref: references to other documents are not supported: \"other.json#/a\"; copy that schema under "
            "\"definitions\"");
  EXPECT_NE(refusal(R"({"definitions":{"a":{"$id":"#n"},"b":{"$id":"#n"}}})")
                .find("is the name of another part already, /definitions/a"),
            std::string::npos);
}

TEST(FlowJsonSchema, uris_are_resolved_as_rfc_3986_says) {
  constexpr std::string_view base = "http://a/b/c/d;p?q";
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"g:h", "g:h"},
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q#s"},
      {"g#s", "http://a/b/c/g#s"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"g/../h", "http://a/b/c/h"},
      {"g..", "http://a/b/c/g.."},
  };
  for (const auto& [reference, expected] : cases)
    EXPECT_EQ(schema::resolve_uri(base, reference), expected) << reference;
  EXPECT_EQ(schema::resolve_uri("", "a.json#/x"), "a.json#/x");
  EXPECT_EQ(schema::resolve_uri("urn:uuid:1", "#x"), "urn:uuid:1#x");
}

TEST(FlowJsonSchema, mistakes_say_where_what_was_expected_and_what_was_found) {
  constexpr std::string_view prices =
      R"({"properties":{"items":{"items":{"properties":{"price":{"type":"number"}}}}}})";
  EXPECT_EQ(mistake(prices, R"({"items":[{},{},{},{"price":"free"}]})"),
            "/items/3/price: expected a number, found \"free\"");
  EXPECT_EQ(mistake(R"({"type":["string","null"]})", "3"), "the whole value: expected a string or null, found 3");
  EXPECT_EQ(mistake(R"({"type":"object"})", "[1]"), "the whole value: expected an object, found an array");
  EXPECT_EQ(mistake(R"({"enum":["a","b"]})", "\"c\""), "the whole value: expected one of \"a\", \"b\", found \"c\"");
  EXPECT_EQ(mistake(R"({"enum":[1,2,3,4,5,6]})", "7"), "the whole value: expected one of 1, 2, 3, 4 …, found 7");
  EXPECT_EQ(mistake(R"({"const":1})", "2"), "the whole value: expected 1, found 2");
  EXPECT_EQ(mistake(R"({"minimum":1.5})", "1"), "the whole value: expected at least 1.5, found 1");
  EXPECT_EQ(mistake(R"({"exclusiveMaximum":1})", "1"), "the whole value: expected less than 1, found 1");
  EXPECT_EQ(mistake(R"({"multipleOf":2})", "1"), "the whole value: expected a multiple of 2, found 1");
  EXPECT_EQ(mistake(R"({"minLength":1})", "\"\""), "the whole value: expected at least 1 character, found 0");
  EXPECT_EQ(mistake(R"({"maxItems":2})", "[1,2,3]"), "the whole value: expected at most 2 elements, found 3");
  EXPECT_EQ(mistake(R"({"pattern":"^a"})", "\"b\""), "the whole value: expected text that matches ^a, found \"b\"");
  EXPECT_EQ(mistake(R"({"uniqueItems":true})", "[1,2,1]"),
            "the whole value: expected no element twice, found 1 at 0 and at 2");
  EXPECT_EQ(mistake(R"({"required":["a"]})", "{}"), "the whole value: expected a member \"a\", found none");
  EXPECT_EQ(mistake(R"({"properties":{"a/b":{"additionalProperties":false}}})", R"({"a/b":{"~":1}})"),
            "/a~1b/~0: expected no member \"~\", found 1");
  EXPECT_EQ(mistake(R"({"propertyNames":{"maxLength":1}})", R"({"ab":1})"),
            "/ab: its name: expected at most 1 character, found 2");
  EXPECT_EQ(mistake(R"({"dependencies":{"a":["b"]}})", R"({"a":1})"),
            "the whole value: expected a member \"b\" beside \"a\", found none");
  EXPECT_EQ(mistake(R"({"anyOf":[{"type":"string"},{"properties":{"a":{"const":1}}}]})", R"({"a":2})"),
            "the whole value: none of the 2 alternatives fits: expected a string, found an object; or /a: expected 1, "
            "found 2");
  EXPECT_EQ(mistake(R"({"oneOf":[{},{}]})", "1"),
            "the whole value: expected that exactly one schema of \"oneOf\" fits, found that 2 do");
  EXPECT_EQ(mistake(R"({"not":{}})", "1"), "the whole value: expected anything but what fits \"not\", found 1");
  EXPECT_EQ(mistake(R"({"contains":{"type":"null"}})", "[1]"),
            "the whole value: expected an element that fits \"contains\", found none");
}

TEST(FlowJsonSchema, all_mistakes_are_found_but_no_more_than_twenty_are_told) {
  EXPECT_EQ(mistakes(R"({"items":{"type":"null"}})", "[1,2,3]").size(), 3U);
  EXPECT_EQ(mistakes(R"({"required":["a","b"],"properties":{"c":{"type":"null"}},"allOf":[{"required":["d"]}]})",
                     R"({"c":1})")
                .size(),
            4U);
  EXPECT_EQ(mistakes(R"({"items":{"type":"null"}})", "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22]").size(), 20U);
}

TEST(FlowJsonSchema, mistakes_in_schemas_have_a_place) {
  EXPECT_EQ(refusal("3"), "the whole schema: expected a schema, which is an object, true or false, found 3");
  EXPECT_EQ(refusal(R"({"properties":{"a":{"type":"text"}}})"),
            "/properties/a/type: expected null, boolean, integer, number, string, array or object, found \"text\"");
  EXPECT_EQ(refusal(R"({"minimum":"1"})"), "/minimum: expected a number, found \"1\"");
  EXPECT_EQ(refusal(R"({"exclusiveMinimum":true})"), "/exclusiveMinimum: expected a number, found true");
  EXPECT_EQ(refusal(R"({"multipleOf":0})"), "/multipleOf: expected a number greater than 0, found 0");
  EXPECT_EQ(refusal(R"({"minLength":-1})"), "/minLength: expected a whole number of at least 0, found -1");
  EXPECT_EQ(refusal(R"({"maxItems":1.5})"), "/maxItems: expected a whole number of at least 0, found 1.5");
  EXPECT_EQ(refusal(R"({"maxItems":1e30})"), "/maxItems: expected a whole number of at least 0, found 1e30");
  EXPECT_EQ(refusal(R"({"required":"a"})"), "/required: expected an array of names, found \"a\"");
  EXPECT_EQ(refusal(R"({"required":[1]})"), "/required: expected an array of names, found 1");
  EXPECT_EQ(refusal(R"({"properties":[]})"), "/properties: expected an object, found an array");
  EXPECT_EQ(refusal(R"({"enum":1})"), "/enum: expected an array of values, found 1");
  EXPECT_EQ(refusal(R"({"uniqueItems":1})"), "/uniqueItems: expected true or false, found 1");
  EXPECT_EQ(refusal(R"({"allOf":{}})"), "/allOf: expected an array of schemas, found an object");
  EXPECT_EQ(refusal(R"({"allOf":[]})"), "/allOf: expected at least one schema, found an empty array");
  EXPECT_EQ(refusal(R"({"anyOf":[1]})"), "/anyOf/0: expected a schema, which is an object, true or false, found 1");
  EXPECT_EQ(refusal(R"({"definitions":{"unused":{"type":7}}})").substr(0, 25), "/definitions/unused/type:");
  EXPECT_EQ(refusal(R"x({"pattern":"(?=a)"})x"),
            "/pattern: \"(?=a)\" is no pattern: look-around ((?=…) is not supported; say it with allOf and not");
  EXPECT_EQ(refusal(R"({"patternProperties":{"(":{}}})").substr(0, 22), "/patternProperties/(: ");
  EXPECT_EQ(refusal(R"({"$ref":1})"), "/$ref: expected a reference like \"#/definitions/name\", found 1");
  EXPECT_EQ(refusal(R"({"prefixItems":[],"$schema":"https://json-schema.org/draft/2020-12/schema"})"),
            "/prefixItems: this keyword is not supported; only those of draft-07 are");
  EXPECT_EQ(refusal(R"({"prefixItems":[],"$schema":"http://json-schema.org/draft-07/schema#"})"), "accepted")
      << "unknown keywords do not count";
}

TEST(FlowJsonSchema, schemas_that_would_never_be_done_are_refused) {
  const std::string endless = "it refers to itself without end, or through more than 64 other schemas";
  EXPECT_NE(refusal(R"({"$ref":"#"})").find(endless), std::string::npos);
  EXPECT_NE(refusal(R"({"allOf":[{"$ref":"#"}]})").find(endless), std::string::npos);
  EXPECT_NE(refusal(R"({"definitions":{"a":{"not":{"$ref":"#/definitions/b"}},"b":{"if":{"$ref":"#/definitions/a"}}}})")
                .find(endless),
            std::string::npos);
  EXPECT_EQ(refusal(R"({"anyOf":[{"items":{"$ref":"#"}}]})"), "accepted");
}

// Two references at each of 30 levels, to schemas that refuse.
std::string doubling_schema(const std::string& keyword) {
  std::string schema =
      R"({"if":false,")" + keyword + R"(":{"$ref":"#/definitions/d0"},"definitions":{"d60":{"type":"null"})";
  for (int level = 0; level < 30; ++level) {
    const std::string next = "{\"$ref\":\"#/definitions/d" + std::to_string(level == 29 ? 60 : level + 1) + "\"}";
    schema += ",\"d" + std::to_string(level) + "\":{\"oneOf\":[" + next + "," + next + "]}";
  }
  return schema + "}}";
}

TEST(FlowJsonSchema, work_is_bounded_and_what_takes_too_long_is_refused) {
  const auto found = mistakes(doubling_schema("else"), "1");
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found.front().find("given up"), std::string::npos);
  EXPECT_LE(found.size(), 10U);
  const auto negated = mistakes(doubling_schema("not"), "1");
  ASSERT_FALSE(negated.empty()) << "giving up inside of a negation makes nothing valid";
}

TEST(FlowJsonSchema, large_lists_are_no_trouble) {
  boost::json::array list;
  for (int at = 0; at < 300'000; ++at) list.emplace_back(at);
  EXPECT_TRUE(mistakes_of(R"({"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":0}})",
                          Json(std::move(list)))
                  .empty());
}

RC_GTEST_PROP(FlowJsonSchema, not_is_the_opposite, (int value, int low, int high)) {
  const std::string range =
      "{\"minimum\":" + std::to_string(low) + ",\"exclusiveMaximum\":" + std::to_string(high) + "}";
  const bool inside = low <= value && value < high;
  RC_ASSERT(mistakes_of(range, Json(value)).empty() == inside);
  RC_ASSERT(mistakes_of("{\"not\":" + range + "}", Json(value)).empty() == !inside);
}

}  // namespace
}  // namespace reprise::json
