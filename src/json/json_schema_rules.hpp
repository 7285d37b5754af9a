// A JSON Schema in the form in which values are checked: references resolved, patterns compiled, every keyword understood.
//
// Made by compile_schema() (json_schema_compile.cpp), used by check_value() (json_schema_check.cpp).
// Thread safety: immutable once compiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "json/regex_to_re2.hpp"

namespace reprise::json::schema {

// Bits of a set of types.
enum Type : unsigned {
  type_null = 1U << 0U,
  type_boolean = 1U << 1U,
  type_integer = 1U << 2U,
  type_number = 1U << 3U,
  type_string = 1U << 4U,
  type_array = 1U << 5U,
  type_object = 1U << 6U,
};

struct Rule;

struct Range {
  std::optional<std::uint64_t> min;
  std::optional<std::uint64_t> max;
};

struct NamedPattern {
  std::string text;  // as the schema has it
  Pattern pattern = nullptr;
};

struct Dependency {
  std::string name;                  // when there is a member of this name …
  std::vector<std::string> members;  // … there must be these, or …
  const Rule* rule = nullptr;        // … the whole object must fit this
};

// One schema. nullptr and nullopt stand for a keyword that is not there; pointers to Json point into the schema's document.
struct Rule {
  bool refuses_all = false;         // the schema `false`
  const Rule* reference = nullptr;  // $ref; what stands beside it does not count

  std::optional<unsigned> types;
  const Json* enumeration = nullptr;
  std::unordered_multimap<std::size_t, const Json*> enumeration_by_hash;
  const Json* constant = nullptr;

  const Json* minimum = nullptr;
  const Json* maximum = nullptr;
  const Json* exclusive_minimum = nullptr;
  const Json* exclusive_maximum = nullptr;
  const Json* multiple_of = nullptr;

  Range length;
  std::optional<NamedPattern> pattern;

  Range items_count;
  bool unique_items = false;
  const Rule* items = nullptr;              // of each element …
  std::vector<const Rule*> items_by_place;  // … or of the first ones,
  const Rule* additional_items = nullptr;   // and of those behind them
  const Rule* contains = nullptr;

  Range members_count;
  std::vector<std::string> required;
  std::unordered_map<std::string, const Rule*> properties;
  std::vector<std::pair<NamedPattern, const Rule*>> pattern_properties;
  const Rule* additional_properties = nullptr;
  const Rule* property_names = nullptr;
  std::vector<Dependency> dependencies;

  std::vector<const Rule*> all_of;
  std::vector<const Rule*> any_of;
  std::vector<const Rule*> one_of;
  const Rule* negation = nullptr;
  const Rule* condition = nullptr;
  const Rule* consequence = nullptr;
  const Rule* alternative = nullptr;
};

struct Compiled {
  Json document;
  std::deque<Rule> rules;
  const Rule* root = nullptr;
};

std::expected<std::shared_ptr<const Compiled>, std::string> compile_schema(Json schema);

inline constexpr std::size_t mistakes_max = 20;
inline constexpr std::size_t steps_max =
    100'000'000;  // a schema can make work grow exponentially; the answer is then "refused"

std::vector<std::string> check_value(const Compiled& schema, const Json& value, std::size_t steps = steps_max);

}  // namespace reprise::json::schema
