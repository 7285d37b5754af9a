#include "exec/document/schemas.hpp"

#include <utility>

#include "json/json.hpp"

namespace reprise::exec {

std::expected<json::JsonSchema, std::string> Schemas::compiled(const std::string& path, std::string content) {
  if (const auto known = known_.find(path); known != known_.end() && known->second.content == content)
    return known->second.schema;
  auto parsed = json::parse_json(content);
  if (!parsed) return std::unexpected{"the schema " + path + " is not JSON: " + parsed.error()};
  auto compiled = json::JsonSchema::compile(*std::move(parsed));
  if (!compiled) return std::unexpected{"the schema " + path + ": " + compiled.error()};
  if (known_.size() >= known_max) known_.clear();
  return known_.insert_or_assign(path, Known{std::move(content), *std::move(compiled)}).first->second.schema;
}

}  // namespace reprise::exec
