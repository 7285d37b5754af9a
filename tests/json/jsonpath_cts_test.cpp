// The public compliance suite of JSONPath (github.com/jsonpath-standard/jsonpath-compliance-test-suite), all of it.
//
// The suite is not part of this project. Its file is looked for where the environment variable REPRISE_JSONPATH_CTS points to, else at
// ../shared/external/jsonpath-cts.json beside the checkout (CMake: REPRISE_JSONPATH_SUITE); where it is not, that test is skipped and
// says so. A few cases of our own in the same form run in any case.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "json/json.hpp"
#include "json/jsonpath.hpp"

namespace reprise::json {
namespace {

constexpr std::size_t suite_cases_min = 600;  // fewer means that the file is not what it should be

constexpr std::string_view own_cases = R"({"tests": [
  {"name": "root", "selector": "$", "document": [1], "result": [[1]]},
  {"name": "names", "selector": "$.a['b'][\"c\"]", "document": {"a": {"b": {"c": 3}}}, "result": [3]},
  {"name": "indexes", "selector": "$[0,-1,7]", "document": [1, 2, 3], "result": [1, 3]},
  {"name": "slice", "selector": "$[4:0:-2]", "document": [0, 1, 2, 3, 4, 5], "result": [4, 2]},
  {"name": "wildcard", "selector": "$.*", "document": {"a": 1, "b": 2}, "results": [[1, 2], [2, 1]]},
  {"name": "descendants", "selector": "$..a", "document": {"a": [{"a": 1}]}, "result": [[{"a": 1}], 1]},
  {"name": "filter", "selector": "$[?@.p < 10 && !@.x]", "document": [{"p": 9}, {"p": 9, "x": 0}, {"p": 10}], "result": [{"p": 9}]},
  {"name": "nothing equals nothing", "selector": "$[?@.a == @.b]", "document": [{}, {"a": 1}], "result": [{}]},
  {"name": "functions", "selector": "$[?length(@) == 2 && count(@[*]) == 2]", "document": [[1, 2], [1], "ab"], "result": [[1, 2]]},
  {"name": "match", "selector": "$[?match(@, 'a.c')]", "document": ["abc", "xabc"], "result": ["abc"]},
  {"name": "search", "selector": "$[?search(@, 'a.c')]", "document": ["abc", "xabc", "a"], "result": ["abc", "xabc"]},
  {"name": "no leading zeros", "selector": "$[01]", "invalid_selector": true},
  {"name": "no blanks at the end", "selector": "$ ", "invalid_selector": true},
  {"name": "only singular queries are compared", "selector": "$[?@.* == 1]", "invalid_selector": true},
  {"name": "a value alone is no condition", "selector": "$[?length(@)]", "invalid_selector": true}
]})";

std::string suite_path() {
  const char* const asked = std::getenv("REPRISE_JSONPATH_CTS");
  return asked != nullptr && *asked != '\0' ? asked : REPRISE_JSONPATH_SUITE;
}

Json nodes_as_list(const JsonPath& path, const Json& document) {
  boost::json::array list;
  const auto nodes = path.select(document);
  EXPECT_TRUE(nodes.has_value()) << nodes.error();
  if (nodes) {
    for (const Json* node : *nodes) list.push_back(*node);
  }
  return list;
}

bool is_one_of_the_results(const boost::json::object& test, const Json& found) {
  if (const Json* only = test.if_contains("result")) return equal(*only, found);
  for (const Json& each : test.at("results").as_array()) {
    if (equal(each, found)) return true;
  }
  return false;
}

void run(const boost::json::object& test) {
  const std::string selector{test.at("selector").as_string()};
  SCOPED_TRACE(std::string{test.at("name").as_string()} + ": " + selector);
  const auto path = JsonPath::parse(selector);
  if (test.contains("invalid_selector")) {
    ASSERT_FALSE(path.has_value()) << "it should be refused";
    EXPECT_FALSE(path.error().message.empty());
    EXPECT_LE(path.error().offset, selector.size());
    return;
  }
  ASSERT_TRUE(path.has_value()) << "at " << path.error().offset << ": " << path.error().message;
  EXPECT_EQ(path->text(), selector);
  const Json found = nodes_as_list(*path, test.at("document"));
  EXPECT_TRUE(is_one_of_the_results(test, found)) << "found " << to_text(found);
}

std::size_t run_all(std::string_view suite) {
  const auto parsed = parse_json(suite);
  EXPECT_TRUE(parsed.has_value()) << parsed.error();
  if (!parsed) return 0;
  const auto& tests = parsed->as_object().at("tests").as_array();
  for (const Json& test : tests) run(test.as_object());
  return tests.size();
}

TEST(FlowJsonPathCompliance, our_own_cases_pass) { EXPECT_GT(run_all(own_cases), 0U); }

TEST(FlowJsonPathCompliance, every_case_of_the_suite_passes) {
  std::ifstream file{suite_path(), std::ios::binary};
  if (!file) GTEST_SKIP() << "the compliance suite is not at " << suite_path() << ": only our own cases ran";
  const std::size_t cases = run_all(std::string{std::istreambuf_iterator<char>{file}, {}});
  std::cout << "JSONPath: " << cases << " cases ran (" << suite_path() << ")\n";
  EXPECT_GE(cases, suite_cases_min);
}

}  // namespace
}  // namespace reprise::json
