// JSONPath as RFC 9535 defines it: which parts of a JSON value a query selects.
//
//   auto path = json::JsonPath::parse("$.items[?@.price < 10].name");
//   const auto nodes = path->select(value);
//   for (const json::Json* node : *nodes) …
//
// Bounds: the query has at most 4096 bytes, nesting 64; regular expressions are RE2. A query may multiply what it selects
// (`$..*..*..*`), therefore one selection looks at 100 million nodes and selects 10 million of them at most.
// Thread safety: immutable once parsed.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.hpp"

namespace reprise::json {

namespace jsonpath {
struct Query;
}

struct JsonPathMistake {
  std::size_t offset = 0;  // in bytes
  std::string message;
};

class JsonPath {
 public:
  static std::expected<JsonPath, JsonPathMistake> parse(std::string_view text);

  // The selected nodes, in the order of the RFC; they live as long as `value` does.
  // The error says which bound was reached: nothing is ever left out silently.
  std::expected<std::vector<const Json*>, std::string> select(const Json& value) const;
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
  std::shared_ptr<const jsonpath::Query> query_;
};

}  // namespace reprise::json
