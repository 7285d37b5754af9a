// Texts with expressions, JSON values, names, durations: the leaves of a flow document.
#include <algorithm>
#include <cmath>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "flow/reader/reading.hpp"
#include "text/ascii.hpp"
#include "text/nearest.hpp"
#include "text/place.hpp"
#include "text/scalar.hpp"

namespace reprise::flow {
namespace {

using text::Field;
using text::Node;
using text::NodeType;

constexpr std::string_view shell_help = "for the shell's own ${…} write $${…}, or $NAME without braces";

std::uint32_t characters_in(std::string_view bytes) noexcept {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(bytes, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// The place of a byte of a scalar's text, when the line it is on stands in the source as it is.
std::optional<text::Place> place_inside(const Node& node, std::size_t offset, const text::Document& document) {
  const std::string_view all = node.text;
  offset = std::min(offset, all.size());
  const auto lines_before = static_cast<std::uint32_t>(std::ranges::count(all.substr(0, offset), '\n'));
  const std::size_t begin = lines_before == 0 ? 0 : all.rfind('\n', offset - 1) + 1;
  const std::string_view line = all.substr(begin, std::min(all.find('\n', begin), all.size()) - begin);
  if (line.empty()) return std::nullopt;
  for (const std::uint32_t header : {0U, 1U}) {  // a block's text begins on the line after its | or >
    const std::uint32_t number = node.place.line + lines_before + header;
    const std::string_view source = document.line(number);
    const std::size_t found = source.find(line);
    if (found == std::string_view::npos) continue;
    const bool before_the_node = header == 0 && lines_before == 0 && found + 1 < node.place.column;
    const std::size_t at = before_the_node ? source.find(line, node.place.column - 1) : found;
    if (at == std::string_view::npos) continue;
    return text::Place{number, characters_in(source.substr(0, at + offset - begin)) + 1, 1};
  }
  return std::nullopt;
}

// Prodigy's names for the results of the map, in ours.
std::string with_step_names(std::string_view text) {
  const auto is_name = [](char c) {
    return c == '_' || c == '.' || text::is_digit(c) || (text::to_lower(c) >= 'a' && text::to_lower(c) <= 'z');
  };
  std::string out;
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("${")) inside = true;
    if (text[at] == '}') inside = false;
    const bool begins = inside && at > 0 && !is_name(text[at - 1]);
    if (begins && text.substr(at).starts_with("map.successful")) {
      out += "steps.map.succeeded";
      at += std::string_view{"map.successful"}.size();
    } else if (begins && text.substr(at).starts_with("map.")) {
      out += "steps.map.";
      at += std::string_view{"map."}.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

std::optional<Template> parse_text(const Node& node, Reading& reading) {
  const std::string rewritten = reading.map_names ? with_step_names(node.text) : node.text;
  const bool same = rewritten == node.text;
  auto parsed = parse_template(rewritten);
  if (!parsed) {
    const std::string help = parsed.error().help.empty() ? std::string{shell_help} : parsed.error().help;
    error_inside(node, same ? parsed.error().offset : 0, "in an expression: " + parsed.error().message, help, reading);
    return std::nullopt;
  }
  if (auto references = parsed->references(); !references.empty())
    reading.uses.push_back({&node, std::move(references), reading.visible, reading.step, same});
  return *std::move(parsed);
}

bool is_number(const Node& node) noexcept { return node.type == NodeType::integer || node.type == NodeType::number; }

// Parentheses matter: Json{x} is the list [x].
std::optional<Json> scalar_json(const Node& node, Reading& reading) {
  if (node.type == NodeType::null) return Json(nullptr);
  if (node.type == NodeType::boolean) return Json(text::to_lower(node.text.front()) == 't');
  if (is_number(node)) {
    if (auto number = json::number_in(node.text)) return number;
    if (text::finite_number(node.text)) return Json(boost::json::string{node.text});  // 010, +1, .5: no number of JSON
    reading.report.error(node, "expected a finite number, found " + text::describe(node),
                         "write it in quotes to mean text");
    return std::nullopt;
  }
  return Json(boost::json::string{node.text});
}

}  // namespace

SourcePlace place_of(const Node& node) noexcept { return {node.place.line, node.place.column}; }

std::string quoted(std::string_view text) { return "\"" + text::shorten(text, 60) + "\""; }

std::string suggestion(std::string_view word, const std::vector<std::string_view>& known) {
  constexpr std::size_t shown_max = 12;
  if (known.empty()) return {};
  if (const std::string_view close = text::nearest(word, known); !close.empty())
    return "did you mean " + std::string{close} + "?";
  if (known.size() > shown_max) return {};
  return "there is " + text::join_words(known, "and");
}

void error_inside(const Node& node, std::size_t offset, std::string message, std::string help, Reading& reading) {
  Node at;  // only its place is looked at
  at.place = place_inside(node, offset, reading.document).value_or(node.place);
  reading.report.error(at, std::move(message), std::move(help));
}

bool is_identifier(std::string_view text) noexcept {
  const auto letter = [](char c) { return c == '_' || (text::to_lower(c) >= 'a' && text::to_lower(c) <= 'z'); };
  return !text.empty() && letter(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return letter(c) || text::is_digit(c); });
}

bool is_step_id(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c == '_' || c == '.' || c == '-' || text::is_digit(c) ||
           (text::to_lower(c) >= 'a' && text::to_lower(c) <= 'z');
  });
}

std::optional<Template> read_template(const Field& field, Reading& reading) {
  if (field.node->type != NodeType::string || field.node->text.empty()) {
    const bool forgotten_quotes = field.node->type == NodeType::mapping || field.node->type == NodeType::sequence;
    reading.report.error(
        *field.node, std::string{field.key} + ": expected text, found " + text::describe(*field.node),
        forgotten_quotes ? "put it in quotes if it begins with { or [ or holds a colon and a blank" : "");
    return std::nullopt;
  }
  return parse_text(*field.node, reading);
}

std::optional<Template> read_scalar_template(const Field& field, Reading& reading) {
  if (field.node->is_scalar() && field.node->type != NodeType::null) return parse_text(*field.node, reading);
  reading.report.error(*field.node, std::string{field.key} + ": expected text, found " + text::describe(*field.node));
  return std::nullopt;
}

std::optional<Expression> read_condition(const Field& field, Reading& reading) {
  const Node& node = *field.node;
  if (!node.is_scalar() || node.text.empty()) {
    reading.report.error(node, std::string{field.key} + ": expected a condition, found " + text::describe(node),
                         "such as ${steps.fetch.succeeded > 0}");
    return std::nullopt;
  }
  std::string_view inner = node.text;
  std::size_t skipped = 0;
  if (inner.starts_with("${") && inner.ends_with('}') && inner.find("${", 2) == std::string_view::npos) {
    inner = inner.substr(2, inner.size() - 3);
    skipped = 2;
  } else if (const std::size_t part = inner.find("${"); part != std::string_view::npos) {
    error_inside(node, part, std::string{field.key} + ": a condition is one expression",
                 "write it without ${…}, or with one ${…} around all of it", reading);
    return std::nullopt;
  }
  auto parsed = parse_expression(inner);
  if (!parsed) {
    error_inside(node, parsed.error().offset + skipped, "in an expression: " + parsed.error().message,
                 parsed.error().help, reading);
    return std::nullopt;
  }
  auto references = parsed->references();
  for (Reference& reference : references) reference.offset += skipped;
  reading.uses.push_back({&node, std::move(references), reading.visible, reading.step, true});
  return *std::move(parsed);
}

JsonTemplate read_json_template(const Node& node, Reading& reading) {
  if (node.type == NodeType::sequence) {
    JsonTemplate::List list;
    for (const Node* item : node.items) list.push_back(read_json_template(*item, reading));
    return {std::move(list)};
  }
  if (node.type == NodeType::mapping) {
    JsonTemplate::Map map;
    for (const auto& [key, value] : node.members) map.emplace_back(key->text, read_json_template(*value, reading));
    return {std::move(map)};
  }
  if (node.type == NodeType::string) {
    if (auto parsed = parse_text(node, reading)) return {*std::move(parsed)};
    return {Json(nullptr)};
  }
  return {scalar_json(node, reading).value_or(Json(nullptr))};
}

std::optional<Json> read_json(const Field& field, Reading& reading) {
  const Node& node = *field.node;
  if (node.is_scalar()) {
    if (node.text.find("${") != std::string::npos) {
      error_inside(node, node.text.find("${"), std::string{field.key} + ": no expressions are possible here",
                   "write the value itself", reading);
      return std::nullopt;
    }
    return scalar_json(node, reading);
  }
  if (node.type == NodeType::sequence) {
    boost::json::array list;
    for (const Node* item : node.items) list.push_back(read_json({field.key, item}, reading).value_or(nullptr));
    return list;
  }
  boost::json::object map;
  for (const auto& [key, value] : node.members)
    map[key->text] = read_json({field.key, value}, reading).value_or(nullptr);
  return map;
}

std::optional<std::string> read_plain_text(const Field& field, std::string_view what, Reading& reading) {
  const Node& node = *field.node;
  const std::string key{field.key};
  if (node.type != NodeType::string || node.text.empty()) {
    reading.report.error(node, key + ": expected " + std::string{what} + ", found " + text::describe(node));
    return std::nullopt;
  }
  if (const std::size_t at = node.text.find("${"); at != std::string::npos) {
    error_inside(node, at, key + ": no expressions are possible here", "write " + std::string{what}, reading);
    return std::nullopt;
  }
  return node.text;
}

std::optional<Duration> read_positive_duration(const Field& field, Reading& reading) {
  const auto duration = text::read_duration(field, reading.duration_grammar(), reading.report);
  if (duration && *duration == Duration{0}) {
    reading.report.error(*field.node, std::string{field.key} + ": 0 leaves no time at all",
                         "leave the key out for no limit");
    return std::nullopt;
  }
  return duration;
}

NamedTemplates read_env(const Field& field, Reading& reading) {
  NamedTemplates variables;
  text::Fields fields{*field.node, field.key, reading.report};
  for (const auto& [key, value] : field.node->members) {
    if (reading.report.is_full()) break;
    if (!is_identifier(key->text)) {
      reading.report.error(*key,
                           std::string{field.key} + ": " + quoted(key->text) + " cannot be the name of a variable",
                           "letters, digits and _, not a digit first");
      continue;
    }
    if (auto text = read_scalar_template({key->text, value}, reading))
      variables.emplace_back(key->text, *std::move(text));
  }
  if (field.node->members.size() > entries_max)
    reading.report.error(*field.node,
                         std::string{field.key} + ": more than " + std::to_string(entries_max) + " variables");
  return variables;
}

std::optional<CircuitBreakerRule> read_circuit_breaker(const Field& field, Reading& reading) {
  constexpr std::int64_t limit_max = 1'000'000;
  text::Fields fields{*field.node, "circuit_breaker", reading.report};
  if (!fields.is_map()) return std::nullopt;
  CircuitBreakerRule rule;
  if (const auto limit = fields.find("limit")) {
    if (const auto number = text::read_whole(*limit, {1, limit_max}, reading.report))
      rule.limit = static_cast<std::uint32_t>(*number);
  }
  if (const auto classes = fields.find("tracked_classes")) {
    rule.tracked.clear();
    const auto items = text::read_list(*classes, "failure classes", reading.report, entries_max);
    for (const Node* item : items.value_or(std::vector<const Node*>{})) {
      const auto word = text::read_word({"tracked_classes", item}, failure_class_names(), reading.report);
      if (word) rule.tracked.push_back(*failure_class_named(*word));
    }
  }
  fields.finish();
  return rule;
}

void read_description(text::Fields& fields, Reading& reading) {
  const auto field = fields.find("description");
  if (field && !(field->node->is_scalar() && field->node->type != NodeType::null))
    reading.report.error(*field->node, "description: expected text, found " + text::describe(*field->node));
}

}  // namespace reprise::flow
