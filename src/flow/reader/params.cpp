// The parameters of one run: what was given, checked against what the flow declares.
#include <algorithm>

#include <boost/json/object.hpp>

#include "flow/reader/reader.hpp"
#include "json/json_number.hpp"
#include "text/nearest.hpp"
#include "text/place.hpp"

namespace reprise::flow {
namespace {

using Type = Parameter::Type;

constexpr std::size_t shown_max = 40;

std::string_view name_of(Type type) noexcept {
  switch (type) {
    case Type::any:
      return "a value";
    case Type::text:
      return "text";
    case Type::integer:
      return "a whole number";
    case Type::number:
      return "a number";
    case Type::boolean:
      return "true or false";
    case Type::list:
      return "a list";
    case Type::map:
      return "a map";
  }
  return "a value";
}

bool fits(Type type, const Json& value) {
  switch (type) {
    case Type::any:
      return true;
    case Type::text:
      return value.is_string();
    case Type::integer:
      return json::is_whole(value);
    case Type::number:
      return json::is_number(value);
    case Type::boolean:
      return value.is_bool();
    case Type::list:
      return value.is_array();
    case Type::map:
      return json::is_map(value);
  }
  return false;
}

std::string in_words(const Parameter& parameter) { return "parameter \"" + parameter.name + "\""; }

std::string unknown(const FlowDocument& flow, std::string_view name) {
  std::vector<std::string_view> known;
  for (const Parameter& parameter : flow.params) known.push_back(parameter.name);
  std::string sentence = "there is no parameter \"" + text::shorten(name, shown_max) + "\"";
  if (known.empty()) return sentence + "; the flow has none";
  const std::string meant = text::did_you_mean(name, known);
  return sentence + (meant.empty() ? "; there is " + text::join_words(known, "and") : meant);
}

// The type of a value for a parameter that says none: that of its default.
Type type_of_default(const Parameter& parameter) {
  if (!parameter.value) return Type::any;
  for (const Type type : {Type::text, Type::integer, Type::number, Type::boolean, Type::list, Type::map}) {
    if (fits(type, *parameter.value)) return type == Type::integer ? Type::number : type;
  }
  return Type::any;
}

// `v=010` and `v= 1` are no JSON, or not only: a scalar without a declared type means what it spells.
Json value_or_text(const std::string& text, std::expected<Json, std::string> parsed) {
  const bool keeps_spelling =
      parsed && (parsed->is_string() || parsed->is_array() || json::is_map(*parsed) || json::to_text(*parsed) == text);
  return keeps_spelling ? *std::move(parsed) : Json(boost::json::string{text});
}

}  // namespace

std::expected<Json, std::vector<std::string>> bind_params(const FlowDocument& flow, const Json& given) {
  static const boost::json::object nothing;
  if (!json::is_map(given) && !given.is_null())
    return std::unexpected(std::vector<std::string>{"the input must be a map of parameters, found " +
                                                    text::shorten(json::to_text(given), shown_max)});
  const boost::json::object& values = given.is_object() ? given.get_object() : nothing;
  std::vector<std::string> mistakes;
  for (const auto& [name, value] : values) {
    if (std::ranges::none_of(
            flow.params, [&](const Parameter& each) { return std::string_view{each.name} == std::string_view{name}; }))
      mistakes.push_back(unknown(flow, name));
  }
  boost::json::object bound;
  for (const Parameter& parameter : flow.params) {
    const Json* value = values.if_contains(parameter.name);
    if (value == nullptr && !parameter.value) {
      mistakes.push_back(in_words(parameter) + " has no default and was not given; add --set " + parameter.name + "=…");
    } else if (value != nullptr && !fits(parameter.type, *value)) {
      mistakes.push_back(in_words(parameter) + " must be " + std::string{name_of(parameter.type)} + ", found " +
                         text::shorten(json::to_text(*value), shown_max));
    } else {
      bound[parameter.name] = value != nullptr ? *value : *parameter.value;
    }
  }
  if (!mistakes.empty()) return std::unexpected(std::move(mistakes));
  return bound;
}

std::expected<Json, std::string> param_from_text(const FlowDocument& flow, const std::string& key,
                                                 const std::string& value) {
  const auto parameter = std::ranges::find(flow.params, key, &Parameter::name);
  if (parameter == flow.params.end()) return std::unexpected(unknown(flow, key));
  const Type type = parameter->type == Type::any ? type_of_default(*parameter) : parameter->type;
  if (type == Type::text) return Json(boost::json::string{value});
  auto parsed = json::parse_json(value);
  if (type == Type::any) return value_or_text(value, std::move(parsed));
  const bool declared = parameter->type != Type::any;
  if (parsed && fits(type, *parsed)) return *std::move(parsed);
  if (!declared) return value_or_text(value, std::move(parsed));
  std::string sentence = in_words(*parameter) + " must be " + std::string{name_of(type)} + ", found \"" +
                         text::shorten(value, shown_max) + "\"";
  if (type == Type::list) sentence += "; such as " + key + "=[1,2]";
  if (type == Type::map) sentence += "; such as " + key + "={\"a\":1}";
  return std::unexpected(std::move(sentence));
}

}  // namespace reprise::flow
