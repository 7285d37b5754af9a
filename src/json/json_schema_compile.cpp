// Schema documents → rules. Every keyword is checked here, so that checking values cannot meet a surprise.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/string.hpp>

#include "json/json_number.hpp"
#include "json/json_schema_references.hpp"
#include "json/json_schema_rules.hpp"
#include "text/place.hpp"

namespace reprise::json::schema {
namespace {

constexpr std::size_t shown_characters_max = 40;
constexpr std::size_t rules_in_place_max = 64;  // schemas that one value passes through without going down into it

using boost::json::object;

std::string_view view(const boost::json::string& text) noexcept { return {text.data(), text.size()}; }

struct SchemaMistake {
  std::string pointer;
  std::string sentence;
};

using Done = std::expected<void, SchemaMistake>;
template <typename T>
using Read = std::expected<T, SchemaMistake>;

constexpr std::array<std::pair<std::string_view, Type>, 7> type_names{{
    {"null", type_null},
    {"boolean", type_boolean},
    {"integer", type_integer},
    {"number", type_number},
    {"string", type_string},
    {"array", type_array},
    {"object", type_object},
}};

// They came after draft-07. A schema that says it is of a later draft and uses them would be checked only in part.
constexpr std::array<std::string_view, 9> later_keywords{
    "prefixItems", "unevaluatedItems", "unevaluatedProperties", "dependentSchemas", "dependentRequired",
    "minContains", "maxContains",      "$dynamicRef",           "$recursiveRef",
};

bool is_later_draft(const Json& document) noexcept {
  const auto* keywords = if_map(document);
  const Json* name = keywords == nullptr ? nullptr : keywords->if_contains("$schema");
  return name != nullptr && name->is_string() &&
         view(name->get_string()).find("json-schema.org/draft/20") != std::string_view::npos;
}

std::unexpected<SchemaMistake> wrong(const std::string& pointer, std::string_view expected, const Json& found) {
  const std::string shown = found.is_array() ? "an array"
                            : is_map(found)  ? "an object"
                                             : text::shorten(to_text(found), shown_characters_max);
  return std::unexpected(SchemaMistake{pointer, "expected " + std::string{expected} + ", found " + shown});
}

// One argument of a keyword.
struct Argument {
  const Json& value;
  std::string pointer;
};

Read<const Json*> number_of(const Argument& argument) {
  if (!is_number(argument.value)) return wrong(argument.pointer, "a number", argument.value);
  return &argument.value;
}

Read<std::uint64_t> count_of(const Argument& argument) {
  constexpr double beyond = 18'446'744'073'709'551'616.0;
  const Json value = is_number(argument.value) ? computable(argument.value) : Json(nullptr);
  if (const auto* whole = value.if_int64(); whole != nullptr && *whole >= 0) return static_cast<std::uint64_t>(*whole);
  if (const auto* whole = value.if_uint64()) return *whole;
  if (is_whole(value) && value.is_double() && value.get_double() >= 0 && value.get_double() < beyond)
    return static_cast<std::uint64_t>(value.get_double());
  return wrong(argument.pointer, "a whole number of at least 0", argument.value);
}

Read<std::vector<std::string>> names_of(const Argument& argument) {
  const auto* list = argument.value.if_array();
  if (list == nullptr) return wrong(argument.pointer, "an array of names", argument.value);
  std::vector<std::string> names;
  for (const Json& name : *list) {
    if (!name.is_string()) return wrong(argument.pointer, "an array of names", name);
    names.emplace_back(view(name.get_string()));
  }
  return names;
}

Read<NamedPattern> pattern_of(std::string_view text, const std::string& pointer) {
  auto pattern = compile_ecma_regex(text);
  if (!pattern)
    return std::unexpected(SchemaMistake{
        pointer, "\"" + text::shorten(text, shown_characters_max) + "\" is no pattern: " + pattern.error()});
  return NamedPattern{std::string{text}, *std::move(pattern)};
}

Read<unsigned> type_of(const Json& name, const std::string& pointer) {
  for (const auto& [word, bit] : type_names) {
    if (name.is_string() && view(name.get_string()) == word) return bit;
  }
  return wrong(pointer, "null, boolean, integer, number, string, array or object", name);
}

Read<unsigned> types_of(const Argument& argument) {
  const auto* list = argument.value.if_array();
  if (list == nullptr) return type_of(argument.value, argument.pointer);
  unsigned types = 0;
  for (const Json& name : *list) {
    const auto type = type_of(name, argument.pointer);
    if (!type) return type;
    types |= *type;
  }
  return types;
}

template <typename T, typename Into>
Done put(Read<T> read, Into& into) {
  if (!read) return std::unexpected(std::move(read.error()));
  into = *std::move(read);
  return {};
}

class Compiler {
 public:
  Compiler(Compiled& compiled, const References& references)
      : compiled_{compiled}, references_{references}, is_later_{is_later_draft(compiled.document)} {}

  Done run() {
    compiled_.root = rule_for(compiled_.document, "", "");
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      if (auto done = compile(next); !done) return done;
    }
    return check_endless();
  }

 private:
  struct Pending {
    const Json* schema;
    Rule* rule;
    std::string pointer;
    std::string base;  // within it
  };

  // Each schema becomes one rule, however many references lead to it. It is filled in later: schemas may refer to themselves.
  const Rule* rule_for(const Json& schema, std::string pointer, const std::string& base_around) {
    return rule_within(schema, std::move(pointer), References::base_within(schema, base_around));
  }
  const Rule* rule_within(const Json& schema, std::string pointer, std::string base) {
    const auto [known, is_new] = rules_.try_emplace(&schema, nullptr);
    if (!is_new) return known->second;
    known->second = &compiled_.rules.emplace_back();
    pointers_[known->second] = pointer;
    pending_.push_back({&schema, known->second, std::move(pointer), std::move(base)});
    return known->second;
  }

  Done compile(const Pending& here) {
    if (const auto* accepts = here.schema->if_bool()) {
      here.rule->refuses_all = !*accepts;
      return {};
    }
    const auto* keywords = if_map(*here.schema);
    if (keywords == nullptr) return wrong(here.pointer, "a schema, which is an object, true or false", *here.schema);
    if (const Json* reference = keywords->if_contains("$ref"))
      return compile_reference(here, {*reference, here.pointer + "/$ref"});
    for (const auto& keyword : *keywords) {
      const std::string_view name{keyword.key().data(), keyword.key().size()};
      const Argument argument{keyword.value(), pointer_to(here.pointer, name)};
      using Compile = Done (Compiler::*)(std::string_view, const Argument&, const Pending&);
      for (const Compile group : {&Compiler::of_any, &Compiler::of_numbers, &Compiler::of_counts, &Compiler::of_strings,
                                  &Compiler::of_arrays, &Compiler::of_objects, &Compiler::of_logic}) {
        if (auto done = (this->*group)(name, argument, here); !done) return done;
      }
    }
    return {};
  }

  Done compile_reference(const Pending& here, const Argument& argument) {
    const auto* reference = argument.value.if_string();
    if (reference == nullptr) return wrong(argument.pointer, "a reference like \"#/definitions/name\"", argument.value);
    auto target = references_.resolve(here.base, view(*reference));
    if (!target) return std::unexpected(SchemaMistake{argument.pointer, std::move(target.error())});
    here.rule->reference = rule_within(*target->schema, std::move(target->pointer), std::move(target->base));
    return {};
  }

  const Rule* part(const Argument& argument, const Pending& here) {
    return rule_for(argument.value, argument.pointer, here.base);
  }

  Read<std::vector<const Rule*>> parts(const Argument& argument, const Pending& here) {
    const auto* list = argument.value.if_array();
    if (list == nullptr) return wrong(argument.pointer, "an array of schemas", argument.value);
    std::vector<const Rule*> rules;
    for (std::size_t at = 0; at < list->size(); ++at)
      rules.push_back(part({(*list)[at], pointer_to(argument.pointer, std::to_string(at))}, here));
    return rules;
  }

  Done of_any(std::string_view name, const Argument& argument, const Pending& here) {
    Rule& rule = *here.rule;
    if (name == "type") return put(types_of(argument), rule.types);
    if (name == "const") rule.constant = &argument.value;
    if (is_later_ && std::ranges::find(later_keywords, name) != later_keywords.end())
      return std::unexpected(
          SchemaMistake{argument.pointer, "this keyword is not supported; only those of draft-07 are"});
    if (name != "enum") return {};
    if (!argument.value.is_array()) return wrong(argument.pointer, "an array of values", argument.value);
    rule.enumeration = &argument.value;
    for (const Json& each : argument.value.get_array()) rule.enumeration_by_hash.emplace(hash_of(each), &each);
    return {};
  }

  Done of_numbers(std::string_view name, const Argument& argument, const Pending& here) {
    Rule& rule = *here.rule;
    if (name == "minimum") return put(number_of(argument), rule.minimum);
    if (name == "maximum") return put(number_of(argument), rule.maximum);
    if (name == "exclusiveMinimum") return put(number_of(argument), rule.exclusive_minimum);
    if (name == "exclusiveMaximum") return put(number_of(argument), rule.exclusive_maximum);
    if (name != "multipleOf") return {};
    const bool positive =
        is_number(argument.value) && compare_numbers(argument.value, Json(0)) == std::partial_ordering::greater;
    if (!positive) return wrong(argument.pointer, "a number greater than 0", argument.value);
    rule.multiple_of = &argument.value;
    return {};
  }

  Done of_counts(std::string_view name, const Argument& argument, const Pending& here) {
    Rule& rule = *here.rule;
    if (name == "minLength") return put(count_of(argument), rule.length.min);
    if (name == "maxLength") return put(count_of(argument), rule.length.max);
    if (name == "minItems") return put(count_of(argument), rule.items_count.min);
    if (name == "maxItems") return put(count_of(argument), rule.items_count.max);
    if (name == "minProperties") return put(count_of(argument), rule.members_count.min);
    if (name == "maxProperties") return put(count_of(argument), rule.members_count.max);
    return {};
  }

  Done of_strings(std::string_view name, const Argument& argument, const Pending& here) {
    if (name != "pattern") return {};
    const auto* text = argument.value.if_string();
    if (text == nullptr) return wrong(argument.pointer, "a regular expression", argument.value);
    return put(pattern_of(view(*text), argument.pointer), here.rule->pattern);
  }

  Done of_arrays(std::string_view name, const Argument& argument, const Pending& here) {
    Rule& rule = *here.rule;
    if (name == "items" && argument.value.is_array()) return put(parts(argument, here), rule.items_by_place);
    if (name == "items") rule.items = part(argument, here);
    if (name == "contains") rule.contains = part(argument, here);
    const Json* items = here.schema->get_object().if_contains("items");
    if (name == "additionalItems" && items != nullptr && items->is_array())
      rule.additional_items = part(argument, here);
    if (name != "uniqueItems") return {};
    if (!argument.value.is_bool()) return wrong(argument.pointer, "true or false", argument.value);
    rule.unique_items = argument.value.get_bool();
    return {};
  }

  Done of_objects(std::string_view name, const Argument& argument, const Pending& here) {
    Rule& rule = *here.rule;
    if (name == "required") return put(names_of(argument), rule.required);
    if (name == "additionalProperties") rule.additional_properties = part(argument, here);
    if (name == "propertyNames") rule.property_names = part(argument, here);
    const bool named =
        name == "properties" || name == "patternProperties" || name == "dependencies" || name == "definitions";
    if (!named) return {};
    const auto* members = if_map(argument.value);
    if (members == nullptr) return wrong(argument.pointer, "an object", argument.value);
    for (const auto& member : *members) {
      const std::string_view key{member.key().data(), member.key().size()};
      const Argument inner{member.value(), pointer_to(argument.pointer, key)};
      if (auto done = of_member(name, key, inner, here); !done) return done;
    }
    return {};
  }

  Done of_member(std::string_view name, std::string_view key, const Argument& argument, const Pending& here) {
    Rule& rule = *here.rule;
    if (name == "definitions") {
      part(argument, here);  // also what is not referred to must be right
    } else if (name == "properties") {
      rule.properties.emplace(key, part(argument, here));
    } else if (name == "patternProperties") {
      auto pattern = pattern_of(key, argument.pointer);
      if (!pattern) return std::unexpected(std::move(pattern.error()));
      rule.pattern_properties.emplace_back(*std::move(pattern), part(argument, here));
    } else {
      Dependency dependency{.name = std::string{key}, .members = {}};
      if (!argument.value.is_array()) {
        dependency.rule = part(argument, here);
      } else if (auto done = put(names_of(argument), dependency.members); !done) {
        return done;
      }
      rule.dependencies.push_back(std::move(dependency));
    }
    return {};
  }

  Done of_logic(std::string_view name, const Argument& argument, const Pending& here) {
    Rule& rule = *here.rule;
    const bool alternatives = name == "allOf" || name == "anyOf" || name == "oneOf";
    if (alternatives && argument.value.is_array() && argument.value.get_array().empty())
      return std::unexpected(SchemaMistake{argument.pointer, "expected at least one schema, found an empty array"});
    if (name == "allOf") return put(parts(argument, here), rule.all_of);
    if (name == "anyOf") return put(parts(argument, here), rule.any_of);
    if (name == "oneOf") return put(parts(argument, here), rule.one_of);
    if (name == "not") rule.negation = part(argument, here);
    if (name == "if") rule.condition = part(argument, here);
    if (name == "then") rule.consequence = part(argument, here);
    if (name == "else") rule.alternative = part(argument, here);
    return {};
  }

  // The rules that are applied to the same value as this one.
  static std::vector<const Rule*> in_place(const Rule& rule) {
    std::vector<const Rule*> all;
    for (const auto* list : {&rule.all_of, &rule.any_of, &rule.one_of})
      all.insert(all.end(), list->begin(), list->end());
    for (const Dependency& dependency : rule.dependencies) all.push_back(dependency.rule);
    for (const Rule* one : {rule.reference, rule.negation, rule.condition, rule.consequence, rule.alternative})
      all.push_back(one);
    std::erase(all, nullptr);
    return all;
  }

  // A schema that leads back to itself without going down into the value would never be done.
  Done check_endless() {
    for (const Rule& rule : compiled_.rules) {
      if (auto height = height_of(rule, 0); !height) return std::unexpected(std::move(height.error()));
    }
    return {};
  }

  // How many rules follow one another in place from here on. The bound ends cycles, too.
  Read<std::size_t> height_of(const Rule& rule, std::size_t depth) {
    if (const auto known = heights_.find(&rule); known != heights_.end() && known->second + depth <= rules_in_place_max)
      return known->second;
    if (depth > rules_in_place_max)
      return std::unexpected(
          SchemaMistake{pointers_[&rule], "it refers to itself without end, or through more than 64 other schemas"});
    std::size_t height = 0;
    for (const Rule* next : in_place(rule)) {
      auto below = height_of(*next, depth + 1);
      if (!below) return below;
      height = std::max(height, *below + 1);
    }
    heights_[&rule] = height;
    return height;
  }

  Compiled& compiled_;
  const References& references_;
  bool is_later_;
  std::map<const Json*, Rule*> rules_;
  std::map<const Rule*, std::string> pointers_;
  std::map<const Rule*, std::size_t> heights_;
  std::vector<Pending> pending_;
};

}  // namespace

std::expected<std::shared_ptr<const Compiled>, std::string> compile_schema(Json schema) {
  auto compiled = std::make_shared<Compiled>();
  compiled->document = std::move(schema);
  const auto references = References::find_in(compiled->document);
  if (!references) return std::unexpected(references.error());
  if (auto done = Compiler{*compiled, *references}.run(); !done) {
    const std::string& pointer = done.error().pointer;
    return std::unexpected((pointer.empty() ? "the whole schema" : pointer) + ": " + done.error().sentence);
  }
  return compiled;
}

}  // namespace reprise::json::schema
