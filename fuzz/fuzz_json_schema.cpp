// JSON Schema: a schema on the first line, a value behind it. Every schema is refused with a reason or checks any value: always the same,
// with a bounded list of mistakes, and its negation accepts what it refuses.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "json/json.hpp"
#include "json/json_schema_rules.hpp"
#include "require.hpp"

namespace {

using reprise::json::Json;
namespace schemas = reprise::json::schema;
using reprise::fuzz::require;

constexpr std::size_t steps_max =
    300'000;  // schemas may multiply the work; with the real limit one of those takes seconds

constexpr std::string_view sample = R"({"a":[1,2.5,{"b":"x","c":null}],"b":{"a":true,"d":[[],{}]},"ü":""})";

bool was_given_up(const std::vector<std::string>& mistakes) {
  return std::ranges::any_of(mistakes,
                             [](const std::string& each) { return each.find("given up") != std::string::npos; });
}

// Only for schemas without $ref and $id: those mean something else when the schema stands elsewhere.
void check_negation(const Json& schema, const Json& value, bool fits, std::string_view text) {
  if (text.find("$ref") != std::string_view::npos || text.find("$id") != std::string_view::npos ||
      text.find('\\') != std::string_view::npos)
    return;
  const auto negation = schemas::compile_schema(boost::json::object{{"not", schema}});
  if (!negation) return;  // one level deeper than allowed
  const auto mistakes = schemas::check_value(**negation, value, steps_max);
  require(was_given_up(mistakes) || mistakes.empty() != fits, "a negation accepts what is refused", text);
}

void check_value(const schemas::Compiled& compiled, const Json& schema, const Json& value, std::string_view text) {
  const auto mistakes = schemas::check_value(compiled, value, steps_max);
  require(mistakes.size() <= schemas::mistakes_max, "the list of mistakes is bounded", text);
  for (const std::string& mistake : mistakes)
    require(mistake.find(": ") != std::string::npos, "a mistake has a place", mistake);
  require(schemas::check_value(compiled, value, steps_max) == mistakes, "the same value has the same mistakes", text);
  if (!was_given_up(mistakes)) check_negation(schema, value, mistakes.empty(), text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input{reinterpret_cast<const char*>(data), size};
  const std::size_t line_end = std::min(input.find('\n'), input.size());
  const std::string_view text = input.substr(0, line_end);
  const auto schema = reprise::json::parse_json(text);
  if (!schema) return 0;
  const auto compiled = schemas::compile_schema(*schema);
  if (!compiled) {
    require(compiled.error().find(": ") != std::string::npos || compiled.error().find("nested") != std::string::npos,
            "a refusal has a place", text);
    return 0;
  }
  const auto value = reprise::json::parse_json(input.substr(std::min(line_end + 1, input.size())));
  check_value(**compiled, *schema, value ? *value : *reprise::json::parse_json(sample), text);
  return 0;
}
