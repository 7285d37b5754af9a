// What a $ref in a schema means: URIs resolved against $id, and the part of the document that they lead to.
//
// Thread safety: immutable once made. It points into the document, which must outlive it.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>

#include "json/json.hpp"

namespace reprise::json::schema {

// RFC 3986, section 5.2: `reference` as it is meant in a document that is called `base`.
std::string resolve_uri(std::string_view base, std::string_view reference);

// One more step of a JSON pointer, escaped.
std::string pointer_to(const std::string& pointer, std::string_view name);

struct Target {
  const Json* schema = nullptr;
  std::string base;     // the URI that references within it start from; its own $id counts already
  std::string pointer;  // where it is in the document
};

class References {
 public:
  // The error: two parts have the same name, or the schema is nested too deeply.
  static std::expected<References, std::string> find_in(const Json& document);

  std::expected<Target, std::string> resolve(std::string_view base, std::string_view reference) const;

  // The base within a schema whose surroundings have this one.
  static std::string base_within(const Json& schema, const std::string& base);

 private:
  std::expected<void, std::string> walk(const Json& schema, const Target& around, std::size_t depth);
  std::expected<void, std::string> walk_all(const Json& parts, const Target& around, std::size_t depth);
  std::expected<void, std::string> add(std::string uri, Target target);

  std::map<std::string, Target, std::less<>> by_uri_;
};

}  // namespace reprise::json::schema
