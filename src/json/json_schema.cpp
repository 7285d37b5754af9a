// The public face of JSON Schema; the work is done in json_schema_compile.cpp and json_schema_check.cpp.
#include "json/json_schema.hpp"

#include <utility>

#include "json/json_schema_rules.hpp"

namespace reprise::json {

std::expected<JsonSchema, std::string> JsonSchema::compile(Json schema) {
  auto compiled = schema::compile_schema(std::move(schema));
  if (!compiled) return std::unexpected(std::move(compiled.error()));
  JsonSchema made;
  made.compiled_ = *std::move(compiled);
  return made;
}

std::vector<std::string> JsonSchema::mistakes_in(const Json& value) const {
  return schema::check_value(*compiled_, value);
}

}  // namespace reprise::json
