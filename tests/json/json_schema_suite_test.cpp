// The official test suite of JSON Schema (github.com/json-schema-org/JSON-Schema-Test-Suite), draft-07: required cases and optional ones.
//
// The suite is not part of this project: Debian has it as json-schema-test-suite, which scripts/setup.sh installs. Where it is not, the
// tests are skipped and say so. What is not supported stands in docs/reference/flow.md, with the counts that these tests print.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "json/json.hpp"
#include "json/json_schema.hpp"

namespace reprise::json {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suite_folder = REPRISE_JSON_SCHEMA_SUITE;
constexpr std::size_t required_cases_min = 400;  // fewer means that the folder is not what it should be

std::string content_of(const fs::path& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

struct Counts {
  std::size_t cases = 0;
  std::size_t refused = 0;              // in schemas that do not compile
  std::vector<std::string> refusals;    // of schemas, as file, description and why
  std::vector<std::string> too_strict;  // values that are refused and should not be
  std::vector<std::string> too_lax;     // and the other way round
};

void run(const std::string& file, const boost::json::object& group, Counts& counts) {
  const std::string name = file + ": " + std::string{group.at("description").as_string()};
  const auto& tests = group.at("tests").as_array();
  counts.cases += tests.size();
  const auto schema = JsonSchema::compile(group.at("schema"));
  if (!schema) {
    counts.refused += tests.size();
    counts.refusals.push_back(name + ": " + schema.error());
    return;
  }
  for (const Json& test : tests) {
    const bool is_valid = schema->mistakes_in(test.at("data")).empty();
    if (is_valid == test.at("valid").as_bool()) continue;
    auto& wrong = is_valid ? counts.too_lax : counts.too_strict;
    wrong.push_back(name + ": " + std::string{test.at("description").as_string()});
  }
}

Counts run_files(std::string_view folder, const std::function<bool(const std::string&)>& is_wanted) {
  Counts counts;
  for (const auto& entry : fs::directory_iterator{fs::path{suite_folder} / "tests/draft7" / folder}) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() != ".json" || !is_wanted(name)) continue;
    const auto groups = parse_json(content_of(entry.path()));
    EXPECT_TRUE(groups) << entry.path() << ": " << groups.error();
    if (!groups) continue;
    for (const Json& group : groups->as_array()) run(name, group.as_object(), counts);
  }
  std::cout << "JSON Schema, draft-07/" << folder << ": " << counts.cases << " cases, " << counts.refused
            << " of them in schemas that are refused, " << counts.too_lax.size() << " judged too mildly\n";
  return counts;
}

std::string lines_of(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& each : all) text += each + "\n";
  return text;
}

bool any(const std::string& /*file*/) { return true; }

// `format` and content* are annotations: they say something about a value and refuse none. That test of regular expressions is one of `format`.
bool is_of_annotations(const std::string& file) { return file == "content" || file == "ecmascript-regex"; }

class FlowJsonSchemaSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory(fs::path{suite_folder} / "tests/draft7"))
      GTEST_SKIP() << "the test suite of JSON Schema is not installed (scripts/setup.sh test)";
  }
};

TEST_F(FlowJsonSchemaSuite, every_required_case_passes_within_one_document) {
  const Counts found = run_files("", any);
  EXPECT_GE(found.cases, required_cases_min);
  EXPECT_EQ(lines_of(found.too_strict), "");
  EXPECT_EQ(lines_of(found.too_lax), "");
  for (const std::string& refusal : found.refusals)
    EXPECT_NE(refusal.find("references to other documents are not supported"), std::string::npos) << refusal;
}

TEST_F(FlowJsonSchemaSuite, optional_cases_pass_but_for_annotations) {
  const Counts found = run_files("optional", [](const std::string& file) { return !is_of_annotations(file); });
  EXPECT_GT(found.cases, 0U);
  EXPECT_EQ(lines_of(found.refusals) + lines_of(found.too_strict) + lines_of(found.too_lax), "");
}

TEST_F(FlowJsonSchemaSuite, annotations_refuse_nothing) {
  for (const Counts& found : {run_files("optional", is_of_annotations), run_files("optional/format", any)}) {
    EXPECT_GT(found.cases, 0U);
    EXPECT_EQ(lines_of(found.refusals) + lines_of(found.too_strict), "");
  }
}

}  // namespace
}  // namespace reprise::json
