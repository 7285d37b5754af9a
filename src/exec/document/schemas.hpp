// JSON Schemas of documents, compiled once and again only when their file has another content.
//
// Bounds: 64 of them are kept. Thread safety: the serial queue's thread only.
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <string>

#include "json/json_schema.hpp"

namespace reprise::exec {

class Schemas {
 public:
  // The error names the file and says what is wrong with the schema.
  std::expected<json::JsonSchema, std::string> compiled(const std::string& path, std::string content);

 private:
  struct Known {
    std::string content;
    json::JsonSchema schema;
  };
  static constexpr std::size_t known_max = 64;

  std::map<std::string, Known> known_;
};

}  // namespace reprise::exec
