// The JSON Schema of flows and the reader agree about a corpus of documents: tests/flow/corpus/{valid,invalid}/*.yaml.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <boost/json.hpp>

#include "flow/reader/reader.hpp"
#include "json/json_schema.hpp"
#include "text/document.hpp"
#include "text/scalar.hpp"

namespace reprise::flow {
namespace {

namespace fs = std::filesystem;

struct Sample {
  std::string name;
  std::string text;
};

std::vector<Sample> samples_in(const std::string& folder) {
  std::vector<Sample> samples;
  for (const fs::directory_entry& entry : fs::directory_iterator{fs::path{REPRISE_FLOW_CORPUS_DIRECTORY} / folder}) {
    std::ifstream file{entry.path(), std::ios::binary};
    std::ostringstream content;
    content << file.rdbuf();
    samples.push_back({entry.path().filename().string(), content.str()});
  }
  std::ranges::sort(samples, {}, &Sample::name);
  return samples;
}

// A document as an editor's validator sees it.
boost::json::value as_json(const text::Node& node) {
  switch (node.type) {
    case text::NodeType::null:
      return nullptr;
    case text::NodeType::boolean:
      return node.text.front() == 't' || node.text.front() == 'T';
    case text::NodeType::integer:
      if (const auto whole = text::whole_number(node.text)) return *whole;
      [[fallthrough]];
    case text::NodeType::number:
      return text::finite_number(node.text).value_or(0);
    case text::NodeType::string:
      return boost::json::string{node.text};
    case text::NodeType::sequence: {
      boost::json::array items;
      for (const text::Node* item : node.items) items.push_back(as_json(*item));
      return items;
    }
    case text::NodeType::mapping: {
      boost::json::object members;
      for (const auto& [key, value] : node.members) members[key->text] = as_json(*value);
      return members;
    }
  }
  return nullptr;
}

const json::JsonSchema& schema() {
  static const auto compiled = json::JsonSchema::compile(boost::json::parse(flow_schema()));
  if (!compiled) ADD_FAILURE() << compiled.error();
  return *compiled;
}

std::vector<std::string> schema_mistakes(const Sample& sample) {
  const auto document = text::read_document(sample.text, sample.name);
  if (!document) return {"not YAML: " + render(document.error())};
  return schema().mistakes_in(as_json(document->root()));
}

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

TEST(FlowSchema, IsDraft07) {
  EXPECT_EQ(boost::json::parse(flow_schema()).at("$schema"), "http://json-schema.org/draft-07/schema#");
}

TEST(FlowSchema, AcceptsWhatTheReaderAccepts) {
  const auto samples = samples_in("valid");
  EXPECT_GE(samples.size(), 20U);
  for (const Sample& sample : samples) {
    const auto read = read_flow(sample.text, sample.name);
    EXPECT_TRUE(read.has_value()) << render(read ? text::Diagnostics{} : read.error());
    const auto mistakes = schema_mistakes(sample);
    EXPECT_TRUE(mistakes.empty()) << sample.name << ":\n" << joined(mistakes);
  }
}

TEST(FlowSchema, RefusesWhatTheReaderRefuses) {
  const auto samples = samples_in("invalid");
  EXPECT_GE(samples.size(), 40U);
  for (const Sample& sample : samples) {
    EXPECT_FALSE(read_flow(sample.text, sample.name).has_value()) << sample.name << " is accepted by the reader";
    EXPECT_FALSE(schema_mistakes(sample).empty()) << sample.name << " is accepted by the schema";
  }
}

// The keys the reader says are allowed on a step and in a document are those of the schema.
void expect_keys(const std::string& document, const std::string& unknown_key, const boost::json::object& properties,
                 const std::vector<std::string>& others) {
  const auto read = read_flow(document, "keys.yaml");
  ASSERT_FALSE(read.has_value());
  const auto mistake = std::ranges::find_if(
      read.error(), [&](const Diagnostic& each) { return each.message.find(unknown_key) != std::string::npos; });
  ASSERT_NE(mistake, read.error().end());
  std::string list = mistake->help.substr(mistake->help.find("allowed: ") + 9);
  for (std::size_t at = list.find(" and "); at != std::string::npos; at = list.find(" and ")) list.replace(at, 5, ", ");
  std::vector<std::string> by_reader;
  for (std::istringstream words{list}; std::getline(words >> std::ws, list, ',');) by_reader.push_back(list);
  std::vector<std::string> by_schema = others;
  for (const auto& [key, rule] : properties) by_schema.emplace_back(key);
  std::ranges::sort(by_reader);
  std::ranges::sort(by_schema);
  EXPECT_EQ(by_reader, by_schema);
}

TEST(FlowSchema, HasExactlyTheKeysOfTheReader) {
  const boost::json::value parsed = boost::json::parse(flow_schema());
  const auto& definitions = parsed.at("definitions");
  expect_keys("steps: [{id: a, run: x, qqqqqqqqqqqqqq: 1}]", "qqqqqqqqqqqqqq",
              definitions.at("step").at("properties").as_object(), {});
  expect_keys("steps: [{id: a, run: x}]\nqqqqqqqqqqqqqqqqq: 1", "qqqqqqqqqqqqqqqqq",
              definitions.at("native_document").at("properties").as_object(), {"mode"});
}

}  // namespace
}  // namespace reprise::flow
