// JSONPath: a query on the first line, a JSON document behind it. Every query is refused with a place or selects nodes of the document, the
// same ones every time; and JSON that was read is written so that it reads the same again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "json/json.hpp"
#include "json/json_number.hpp"
#include "json/jsonpath.hpp"
#include "json/jsonpath_evaluate.hpp"
#include "json/jsonpath_parser.hpp"
#include "require.hpp"

namespace {

using reprise::fuzz::require;
using reprise::json::Json;
using reprise::json::JsonPath;

// Queries may multiply what they look at; with the real limits one of those takes seconds.
constexpr reprise::json::jsonpath::EvaluationLimits limits{.steps_max = 300'000, .selected_nodes_max = 100'000};

// What queries are tried on when the input brings no document.
constexpr std::string_view sample = R"({"a":[1,2.5,{"b":"x","c":null}],"b":{"a":true,"d":[[],{}]},"ü":"\ud83d\ude00"})";

Json check_json(std::string_view text) {
  auto value = reprise::json::parse_json(text);
  if (!value) {
    require(value.error().starts_with("line "), "a refusal has a place", value.error());
    return *reprise::json::parse_json(sample);
  }
  const std::string written = reprise::json::to_text(*value);
  const auto again = reprise::json::parse_json(written);
  require(again.has_value(), "what is written is JSON", written);
  require(reprise::json::equal(*value, *again), "what is written reads back the same", written);
  require(reprise::json::to_text(*again) == written, "one value has one form", written);
  require(reprise::json::hash_of(*value) == reprise::json::hash_of(*again), "equal values have equal hashes", written);
  return *std::move(value);
}

void collect(const Json& value, std::unordered_set<const Json*>& nodes) {
  nodes.insert(&value);
  if (const auto* list = value.if_array()) {
    for (const Json& each : *list) collect(each, nodes);
  } else if (const auto* map = value.if_object()) {
    for (const auto& each : *map) collect(each.value(), nodes);
  }
}

void check_query(std::string_view text, const Json& document) {
  const auto path = JsonPath::parse(text);
  if (!path) {
    require(path.error().offset <= text.size(), "the place of a mistake lies inside of the text", text);
    require(!path.error().message.empty(), "a refusal has a reason", text);
    return;
  }
  require(path->text() == text, "a query keeps its text", text);
  const auto query = reprise::json::jsonpath::parse_query(text);
  require(query.has_value(), "a query is parsed the same every time", text);
  const auto nodes = evaluate(*query, document, limits);
  require(nodes.has_value() || !nodes.error().empty(), "giving up has a reason", text);
  if (!nodes) return;
  std::unordered_set<const Json*> known;
  collect(document, known);
  for (const Json* node : *nodes) require(known.contains(node), "only nodes of the document are selected", text);
  require(evaluate(*query, document, limits) == nodes, "the same query selects the same nodes", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const std::size_t line_end = std::min(input.find('\n'), input.size());
  const std::string_view rest = input.substr(std::min(line_end + 1, input.size()));
  check_query(input.substr(0, line_end), check_json(rest));
  return 0;
}
