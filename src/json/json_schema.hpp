// JSON Schema, draft-07, to check what a step returned: `check: {schema: …}`, `expect: {schema: …}`.
//
//   auto schema = json::JsonSchema::compile(value);
//   schema->mistakes_in(output);                  // {"/items/3/price: expected a number, found \"free\""}
//
// Supported: type, enum, const, the number, string, array and object keywords, properties, patternProperties, additionalProperties,
// required, dependencies, propertyNames, items, additionalItems, contains, uniqueItems, allOf, anyOf, oneOf, not, if/then/else, and $ref
// within the document (#, #/definitions/…, $id of a part). `format` is an annotation. Not supported, and said so when compiling: $ref to
// other documents, look-around and back-references in patterns, and keywords of later drafts in a schema that names one. Bounds: depth 64,
// and 100 million steps for one value; a value that takes more is refused. Thread safety: immutable once compiled.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "json/json.hpp"

namespace reprise::json {

namespace schema {
struct Compiled;
}

class JsonSchema {
 public:
  // The error says what is wrong with the schema, with the place in it as a JSON pointer.
  static std::expected<JsonSchema, std::string> compile(Json schema);

  // Empty: it is valid. Each with a JSON pointer, what was expected and what was found; at most 10.
  std::vector<std::string> mistakes_in(const Json& value) const;

 private:
  std::shared_ptr<const schema::Compiled> compiled_;
};

}  // namespace reprise::json
