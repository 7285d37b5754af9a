// The JSON Schema and the reader of native policies say the same, but for a short list of what a schema cannot say.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <set>

#include <boost/json.hpp>

#include <reprise/dialect.hpp>

#include "support/conformance_cases.hpp"
#include "support/run_program.hpp"
#include "text/document.hpp"
#include "text/scalar.hpp"

namespace reprise {
namespace {

namespace json = boost::json;

const json::value& schema() {
  static const json::value parsed = json::parse(policy_schema());
  return parsed;
}

// A document as a JSON editor's validator sees it.
json::value as_json(const text::Node& node) {
  switch (node.type) {
    case text::NodeType::null:
      return nullptr;
    case text::NodeType::boolean:
      return node.text.front() == 't' || node.text.front() == 'T';
    case text::NodeType::integer:
      if (const auto whole = text::whole_number(node.text)) return *whole;
      [[fallthrough]];
    case text::NodeType::number:
      return text::finite_number(node.text).value_or(std::numeric_limits<double>::quiet_NaN());
    case text::NodeType::string:
      return json::string{node.text};
    case text::NodeType::sequence: {
      json::array items;
      for (const text::Node* item : node.items) items.push_back(as_json(*item));
      return items;
    }
    case text::NodeType::mapping: {
      json::object members;
      for (const auto& [key, value] : node.members) members[key->text] = as_json(*value);
      return members;
    }
  }
  return nullptr;
}

// The part of draft-07 that the schema uses. A keyword it does not know is a failure of this test, not something to skip over.
class Evaluator {
 public:
  bool accepts(const json::value& rule, const json::value& value) const {
    const json::object& keywords = rule.as_object();
    if (const json::value* reference = keywords.if_contains("$ref"))
      return accepts(resolve(std::string{reference->as_string()}), value);  // siblings do not count
    bool ok = true;
    for (const auto& [keyword, argument] : keywords) ok = holds(keyword, argument, keywords, value) && ok;
    return ok;
  }

 private:
  static const json::value& resolve(const std::string& reference) {
    constexpr std::string_view prefix = "#/definitions/";
    EXPECT_TRUE(reference.starts_with(prefix)) << reference;
    return schema().at("definitions").at(reference.substr(prefix.size()));
  }

  bool holds(std::string_view keyword, const json::value& argument, const json::object& keywords,
             const json::value& value) const {
    if (keyword == "description" || keyword == "title" || keyword == "$schema" || keyword == "definitions") return true;
    if (keyword == "type") return has_type(std::string{argument.as_string()}, value);
    if (keyword == "enum")
      return std::find(argument.as_array().begin(), argument.as_array().end(), value) != argument.as_array().end();
    if (keyword == "pattern") {
      return !value.is_string() ||
             std::regex_search(std::string{value.as_string()},
                               std::regex{std::string{argument.as_string()}, std::regex::ECMAScript});
    }
    if (keyword == "minimum") return !value.is_number() || value.to_number<double>() >= argument.to_number<double>();
    if (keyword == "maximum") return !value.is_number() || value.to_number<double>() <= argument.to_number<double>();
    if (keyword == "maxItems") return !value.is_array() || value.as_array().size() <= argument.to_number<std::size_t>();
    if (keyword == "items") {
      if (!value.is_array()) return true;
      return std::all_of(value.as_array().begin(), value.as_array().end(),
                         [&](const json::value& item) { return accepts(argument, item); });
    }
    if (keyword == "oneOf") {
      return std::count_if(argument.as_array().begin(), argument.as_array().end(),
                           [&](const json::value& each) { return accepts(each, value); }) == 1;
    }
    if (keyword == "properties") {
      if (!value.is_object()) return true;
      bool ok = true;
      for (const auto& [key, member] : value.as_object()) {
        if (const json::value* rule = argument.as_object().if_contains(key)) ok = accepts(*rule, member) && ok;
      }
      return ok;
    }
    if (keyword == "additionalProperties") {
      EXPECT_TRUE(argument.is_bool() && !argument.as_bool()) << "only false is understood here";
      if (!value.is_object()) return true;
      const json::object& properties = keywords.at("properties").as_object();
      return std::all_of(value.as_object().begin(), value.as_object().end(),
                         [&](const auto& member) { return properties.contains(member.key()); });
    }
    ADD_FAILURE() << "the schema uses a keyword that this test does not know: " << keyword;
    return false;
  }

  static bool has_type(const std::string& type, const json::value& value) {
    if (type == "string") return value.is_string();
    if (type == "integer")
      return value.is_int64() || value.is_uint64() ||
             (value.is_double() && std::floor(value.as_double()) == value.as_double());
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object();
    ADD_FAILURE() << "unknown type " << type;
    return false;
  }
};

bool schema_accepts(const json::value& value) { return Evaluator{}.accepts(schema(), value); }
bool reader_accepts(const std::string& text) { return read_policy(text, Dialect::native).has_value(); }

const json::object& properties() { return schema().at("oneOf").at(1).at("properties").as_object(); }

std::set<std::string> split(std::string list) {
  std::set<std::string> words;
  const std::regex word{"[a-z_]+"};
  for (auto found = std::sregex_iterator{list.begin(), list.end(), word}; found != std::sregex_iterator{}; ++found)
    words.insert(found->str());
  words.erase("and");
  return words;
}

TEST(Schema, is_what_the_command_prints) {
  const auto outcome = testing_support::run_program({REPRISE_COMMAND, "schema", "policy"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, policy_schema());
  EXPECT_EQ(schema().at("$schema"), "http://json-schema.org/draft-07/schema#");
}

TEST(Schema, has_exactly_the_keys_the_reader_allows) {
  const auto read = read_policy("no_such_key_at_all: 1", Dialect::native);
  ASSERT_FALSE(read.has_value());
  const std::string& help = read.error().front().help;
  ASSERT_TRUE(help.starts_with("allowed: ")) << help;
  std::set<std::string> in_schema;
  for (const auto& [key, rule] : properties()) in_schema.insert(std::string{key});
  EXPECT_EQ(in_schema, split(help.substr(9)));
}

TEST(Schema, has_exactly_the_words_the_reader_allows) {
  const auto expected_words = [](const std::string& document, const std::string& after, const std::string& before) {
    const auto read = read_policy(document, Dialect::native);
    EXPECT_FALSE(read.has_value());
    const std::string message = read ? "" : read.error().front().message;
    const std::size_t begin = message.find(after) + after.size();
    std::set<std::string> words = split(message.substr(begin, message.find(before, begin) - begin));
    words.erase("or");
    return words;
  };
  const auto words_of = [](const json::value& alternatives) {
    std::set<std::string> words;
    for (const json::value& each : alternatives.as_array()) {
      if (const json::value* list = each.as_object().if_contains("enum")) {
        for (const json::value& word : list->as_array()) words.insert(std::string{word.as_string()});
      }
    }
    return words;
  };
  EXPECT_EQ(words_of(properties().at("backoff").at("oneOf")), expected_words("backoff: 1", "expected ", " or a list"));
  EXPECT_EQ(words_of(properties().at("jitter").at("oneOf")), expected_words("jitter: 1", "expected ", " or a ratio"));
  EXPECT_EQ(words_of(properties().at("max_attempts").at("oneOf")), (std::set<std::string>{"unlimited"}));
  for (const std::string& word : words_of(properties().at("backoff").at("oneOf")))
    EXPECT_TRUE(reader_accepts("backoff: " + word)) << word;
  for (const std::string& word : words_of(properties().at("jitter").at("oneOf")))
    EXPECT_TRUE(reader_accepts("jitter: " + word)) << word;
}

// What a schema cannot say. Each is accepted by the schema and refused by the reader, never the other way round.
const std::set<std::string> beyond_a_schema{
    // Names of policies depend on the document around.
    R"("nope")",
    R"({"policy":"nope"})",
    R"({"policy":""})",
    R"("")",
    // The sum of a duration.
    R"("999999w")",
    // Numbers inside of a pattern.
    R"("101%")",
    R"(["exit:0"])",
    R"(["exit:256"])",
    R"(["exit:9-3"])",
    // Names of signals, regular expressions, dots in type names.
    R"(["signal:FOO"])",
    R"(["/(/"])",
    R"(["a..b"])",
    R"(["A."])",
    // 3.0 is an integer for JSON Schema.
    "3.0",
    "0.0",
};

const char* const values[] = {
    "null",
    "true",
    "false",
    "0",
    "1",
    "3",
    "3.0",
    "0.0",
    "0.5",
    "1.5",
    "-1",
    "4294967296",
    "4294967297",
    "1e300",
    "1e305",
    "{}",
    "[]",
    "[[]]",
    "[null]",
    "[1]",
    "[0]",
    R"("")",
    R"("none")",
    R"("full")",
    R"("equal")",
    R"("Full")",
    R"("0%")",
    R"("25%")",
    R"("12.5%")",
    R"("100%")",
    R"("101%")",
    R"("-5%")",
    R"(".5%")",
    R"("5.%")",
    R"("25")",
    R"("constant")",
    R"("linear")",
    R"("exponential")",
    R"("fibonacci")",
    R"("decorrelated")",
    R"("list")",
    R"("fixed")",
    R"("ratio")",
    R"("0")",
    R"("00")",
    R"("0s")",
    R"("1s")",
    R"("1ns")",
    R"("1us")",
    R"("1µs")",
    R"("500")",
    R"("1h30m")",
    R"("1.5s")",
    R"(".5s")",
    R"("1.s")",
    R"("1 s")",
    R"("-1s")",
    R"("1d")",
    R"("1w")",
    R"("1y")",
    R"("999999w")",
    R"("unlimited")",
    R"("standard")",
    R"("nope")",
    R"(["1s"])",
    R"(["1s","500ms",0])",
    R"(["x s"])",
    R"(["transient"])",
    R"(["timeout","TimeoutError","a.b.C"])",
    R"(["exit:3"])",
    R"(["exit:64-74"])",
    R"(["exit:0"])",
    R"(["exit:256"])",
    R"(["exit:9-3"])",
    R"(["exit:"])",
    R"(["http:503"])",
    R"(["http:5xx"])",
    R"(["http:6xx"])",
    R"(["http:99"])",
    R"(["signal:KILL"])",
    R"(["signal:FOO"])",
    R"(["signal:kill"])",
    R"(["/x/"])",
    R"(["//"])",
    R"(["/x"])",
    R"(["/(/"])",
    R"(["a b"])",
    R"(["a..b"])",
    R"(["A."])",
    R"(["1A"])",
    R"([""])",
};

TEST(Schema, agrees_with_the_reader_about_every_value_of_every_key) {
  std::size_t compared = 0;
  std::size_t beyond = 0;
  for (const auto& [key, rule] : properties()) {
    for (const char* value : values) {
      const std::string document = "{" + json::serialize(json::value(key)) + ":" + value + "}";
      const bool by_schema = schema_accepts(json::parse(document));
      const bool by_reader = reader_accepts(document);
      ++compared;
      if (by_schema == by_reader) continue;
      ++beyond;
      const bool stated = by_schema && beyond_a_schema.contains(value);
      EXPECT_TRUE(stated) << document << " is " << (by_schema ? "accepted" : "refused") << " by the schema and "
                          << (by_reader ? "accepted" : "refused") << " by the reader";
    }
  }
  EXPECT_GT(compared, 900U);
  EXPECT_LT(beyond, 120U);
}

TEST(Schema, agrees_with_the_reader_about_the_conformance_documents) {
  std::size_t compared = 0;
  for (const auto& test : testing_support::conformance_cases("native")) {
    const auto document = text::read_document(test.document, test.id);
    if (!document) continue;  // no JSON editor would get that far
    const bool by_schema = schema_accepts(as_json(document->root()));
    const bool by_reader = reader_accepts(test.document);
    ++compared;
    if (by_schema == by_reader) continue;
    // Only the reader may be the stricter one, and only about what the list above names.
    static const std::regex beyond{
        "policy:|cannot match anything|is not a pattern|jitter: expected|longer than 292 years|max_attempts: expected "
        "a whole number"};
    const auto read = read_policy(test.document, Dialect::native);
    ASSERT_FALSE(read.has_value()) << test.id << " is refused by the schema alone:\n" << test.document;
    for (const Diagnostic& diagnostic : read.error())
      EXPECT_TRUE(std::regex_search(diagnostic.message, beyond)) << test.id << ": " << diagnostic.message;
  }
  EXPECT_GT(compared, 150U);
}

}  // namespace
}  // namespace reprise
