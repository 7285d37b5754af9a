#include "text/fields.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "text/nearest.hpp"
#include "text/place.hpp"
#include "text/scalar.hpp"

namespace reprise::text {
namespace {

void wrong(const Field& field, std::string_view expected, Report& report, std::string help = {}) {
  report.error(*field.node, fmt::format("{}: expected {}, found {}", field.key, expected, describe(*field.node)),
               std::move(help));
}

bool is_number(const Node& node) noexcept { return node.type == NodeType::integer || node.type == NodeType::number; }

std::string shown(double value) { return fmt::format("{:g}", value); }

}  // namespace

void Report::add(Severity severity, const Node& node, std::string message, std::string help) {
  if (is_full()) return;
  diagnostics_.push_back(diagnostic_at(document_, severity, node.place, std::move(message), std::move(help)));
}

void Report::error(const Node& node, std::string message, std::string help) {
  ++errors_;
  add(Severity::error, node, std::move(message), std::move(help));
}

void Report::warning(const Node& node, std::string message, std::string help) {
  add(Severity::warning, node, std::move(message), std::move(help));
}

Diagnostics Report::take() {
  std::ranges::sort(diagnostics_, {}, [](const Diagnostic& d) { return std::tie(d.line, d.column, d.message); });
  return std::move(diagnostics_);
}

std::optional<std::int64_t> read_whole(const Field& field, WholeRange range, Report& report) {
  const Node& node = *field.node;
  const auto value = node.type == NodeType::integer ? whole_number(node.text) : std::nullopt;
  if (value && *value >= range.min && *value <= range.max) return value;
  const bool quoted_number = node.type == NodeType::string && whole_number(node.text);
  const std::string expected = fmt::format("a whole number from {} to {}", range.min, range.max);
  wrong(field, expected, report, quoted_number ? fmt::format("write {} without quotes", node.text) : "");
  return std::nullopt;
}

std::optional<double> read_decimal(const Field& field, DecimalRange range, Report& report) {
  const Node& node = *field.node;
  const auto value = is_number(node) ? finite_number(node.text) : std::nullopt;
  if (value && *value >= range.min && *value <= range.max) return value;
  const std::string limits = range.max < DecimalRange{}.max
                                 ? fmt::format("from {} to {}", shown(range.min), shown(range.max))
                                 : fmt::format("of at least {}", shown(range.min));
  wrong(field, "a finite number " + limits, report);
  return std::nullopt;
}

std::optional<Duration> read_decimal_duration(const Field& field, std::int64_t unit_ns, std::string_view unit_name,
                                              Report& report) {
  const Node& node = *field.node;
  const auto value = is_number(node) ? finite_number(node.text) : std::nullopt;
  if (value && *value >= 0 && (!node.text.starts_with('-') || decimal_duration(node.text, unit_ns))) {
    if (const auto duration = decimal_duration(node.text, unit_ns)) return duration;
    wrong(field, fmt::format("at most 292 years of {}", unit_name), report);
    return std::nullopt;
  }
  const auto written_out = node.type == NodeType::string ? parse_duration(node.text, DurationGrammar::native)
                                                         : std::unexpected(DurationProblem{});
  const std::string help = written_out ? fmt::format("write {}", decimal_text(*written_out, unit_ns)) : "";
  wrong(field, fmt::format("a number of {}, 0 or more", unit_name), report, help);
  return std::nullopt;
}

std::optional<Duration> read_duration(const Field& field, DurationGrammar grammar, Report& report) {
  const Node& node = *field.node;
  const bool candidate = node.type == NodeType::string || is_number(node);
  if (!candidate) {
    wrong(field, "a duration such as 500ms, 2s or 1h30m", report);
    return std::nullopt;
  }
  const auto duration = parse_duration(node.text, grammar);
  if (duration) return *duration;
  std::string help = "a duration is a number and a unit, such as 500ms, 2s or 1h30m";
  if (!duration.error().remedy.empty()) help = duration.error().remedy + "; " + help;
  report.error(node, fmt::format("{}: \"{}\" {}", field.key, shorten(node.text, 40), duration.error().message),
               std::move(help));
  return std::nullopt;
}

std::optional<bool> read_boolean(const Field& field, Report& report) {
  const Node& node = *field.node;
  if (node.type == NodeType::boolean) return node.text.front() == 't' || node.text.front() == 'T';
  wrong(field, "true or false", report);
  return std::nullopt;
}

std::optional<std::string_view> read_word(const Field& field, std::span<const std::string_view> allowed,
                                          Report& report) {
  const Node& node = *field.node;
  const auto known = std::ranges::find(allowed, node.text);
  if (node.type == NodeType::string && known != allowed.end()) return *known;
  const std::string_view close = node.is_scalar() ? nearest(node.text, allowed) : std::string_view{};
  wrong(field, join_words(allowed), report, close.empty() ? "" : fmt::format("did you mean {}?", close));
  return std::nullopt;
}

std::optional<std::string_view> read_word(const Field& field, std::initializer_list<std::string_view> allowed,
                                          Report& report) {
  return read_word(field, std::span<const std::string_view>{allowed.begin(), allowed.size()}, report);
}

std::optional<std::vector<const Node*>> read_list(const Field& field, std::string_view of_what, Report& report,
                                                  std::size_t items_max) {
  const Node& node = *field.node;
  if (node.type != NodeType::sequence) {
    const std::string help = node.type == NodeType::string ? fmt::format("write [{}]", shorten(node.text, 40)) : "";
    wrong(field, fmt::format("a list of {}", of_what), report, help);
    return std::nullopt;
  }
  if (node.items.size() > items_max) {
    report.error(node, fmt::format("{}: {} entries, at most {} are allowed", field.key, node.items.size(), items_max));
    return std::nullopt;
  }
  return node.items;
}

Fields::Fields(const Node& node, std::string_view name, Report& report) : node_{node}, name_{name}, report_{report} {
  if (is_map()) return;
  const std::string subject = name.empty() ? "the document" : std::string{name};
  report.error(node, fmt::format("{}: expected a map, found {}", subject, describe(node)),
               "a map has keys and values: key: value, or {\"key\": value}");
}

std::optional<Field> Fields::find(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.push_back(key);
  const Node* value = node_.find(key);
  return value != nullptr ? std::optional{Field{key, value}} : std::nullopt;
}

std::optional<Field> Fields::find_given(std::string_view key) {
  const auto field = find(key);
  return field && field->node->type != NodeType::null ? field : std::nullopt;
}

void Fields::finish(std::initializer_list<Hint> hints) {
  for (const auto& [key, value] : node_.members) {
    if (report_.is_full()) return;
    if (std::ranges::find(known_, key->text) != known_.end()) continue;
    const std::string where = name_.empty() ? "" : fmt::format(" in {}", name_);
    const auto hint = std::ranges::find_if(hints, [&](const Hint& candidate) { return candidate.key == key->text; });
    const std::string_view close = nearest(key->text, known_);
    std::string help = "allowed: " + join_words(known_, "and");
    if (hint != hints.end()) {
      help = hint->rewrite(*value) + "; " + help;
    } else if (!close.empty()) {
      help = fmt::format("did you mean {}? ", close) + help;
    }
    report_.error(*key, fmt::format("unknown key \"{}\"{}", shorten(key->text, 60), where), help);
  }
}

void Fields::finish_ignoring() {
  for (const auto& [key, value] : node_.members) {
    if (report_.is_full()) return;
    if (std::ranges::find(known_, key->text) != known_.end()) continue;
    const std::string_view close = nearest(key->text, known_);
    report_.warning(*key, fmt::format("the key \"{}\" is ignored", shorten(key->text, 60)),
                    close.empty() ? "" : fmt::format("did you mean {}?", close));
  }
}

}  // namespace reprise::text
