// The public face of JSONPath: a query and its text.
#include "json/jsonpath.hpp"

#include <utility>

#include "json/jsonpath_evaluate.hpp"
#include "json/jsonpath_parser.hpp"

namespace reprise::json {

std::expected<JsonPath, JsonPathMistake> JsonPath::parse(std::string_view text) {
  auto query = jsonpath::parse_query(text);
  if (!query) return std::unexpected(std::move(query.error()));
  JsonPath path;
  path.text_ = text;
  path.query_ = std::make_shared<const jsonpath::Query>(*std::move(query));
  return path;
}

std::expected<std::vector<const Json*>, std::string> JsonPath::select(const Json& value) const {
  return jsonpath::evaluate(*query_, value);
}

}  // namespace reprise::json
