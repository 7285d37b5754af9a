// Entries of only_on, never_on and `when`, and the user's classify rules.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "policy/dialect/dialects.hpp"
#include "text/nearest.hpp"
#include "text/pattern.hpp"

namespace reprise::dialect {
namespace {

using Parsed = std::expected<FailureRule, std::string>;

std::optional<int> small_number(std::string_view text) noexcept {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && stop == text.data() + text.size() && !text.starts_with('-');
  return whole ? std::optional{value} : std::nullopt;
}

Parsed parse_exit(std::string_view text) {
  constexpr int most = 255;
  const std::size_t dash = text.find('-');
  const auto low = small_number(text.substr(0, dash));
  const auto high = dash == std::string_view::npos ? low : small_number(text.substr(dash + 1));
  if (!low || !high || *high < 1 || *high > most || *low > *high) {  // exit 0 alone is no failure
    return std::unexpected("exit codes of failures go from 1 to 255: exit:75 or exit:64-74");
  }
  return FailureRule::of_exit(*low, *high);
}

Parsed parse_http(std::string_view text) {
  const bool family = text.size() == 3 && text.substr(1) == "xx" && text[0] >= '1' && text[0] <= '5';
  if (family) return FailureRule::of_http_family(text[0] - '0');
  const auto status = small_number(text);
  if (text.size() != 3 || !status || *status < 100 || *status > 599) {
    return std::unexpected("statuses go from 100 to 599: http:503 or http:5xx");
  }
  return FailureRule::of_http(*status);
}

Parsed parse_signal(std::string_view text) {
  const auto number = signal_number(text);
  if (!number) return std::unexpected("there is no such signal: signal:KILL or signal:SIGKILL");
  FailureRule rule = FailureRule::of_signal(*number);
  rule.text = fmt::format("signal:{}", text);
  return rule;
}

Parsed parse_regex(std::string_view text) {
  if (text.size() < 3 || !text.ends_with('/'))
    return std::unexpected("a pattern stands between slashes: /connection reset/");
  auto pattern = text::compile_pattern(text.substr(1, text.size() - 2));
  if (!pattern) return std::unexpected(fmt::format("RE2 cannot read this pattern: {}", pattern.error()));
  return FailureRule::of_message(std::string{text}, *std::move(pattern));
}

bool is_type_name(std::string_view text) noexcept {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto inside = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; };
  return !text.empty() && letter(text.front()) && std::ranges::all_of(text, inside) && !text.ends_with('.') &&
         text.find("..") == std::string_view::npos;
}

}  // namespace

Parsed parse_rule(std::string_view text) {
  if (text.starts_with('/')) return parse_regex(text);
  if (text.starts_with("exit:")) return parse_exit(text.substr(5));
  if (text.starts_with("http:")) return parse_http(text.substr(5));
  if (text.starts_with("signal:")) return parse_signal(text.substr(7));
  if (const auto failure_class = failure_class_named(text)) return FailureRule::of(*failure_class);
  if (const auto kind = failure_kind_named(text)) return FailureRule::of(*kind);
  if (is_type_name(text)) return FailureRule::of_type(std::string{text});
  return std::unexpected(
      "an entry is a class (transient), a kind (timeout), an error type (TimeoutError), exit:75, exit:64-74, "
      "signal:KILL, "
      "http:503, http:5xx or /a pattern/");
}

}  // namespace reprise::dialect

namespace reprise {
namespace {

void read_rule(const text::Node& node, text::Report& report, std::vector<ClassifyRule>& rules) {
  text::Fields fields{node, "a classify rule", report};
  if (!fields.is_map()) return;
  const auto when = fields.find("when");
  const auto then = fields.find("class");
  fields.finish();
  if (!when) report.error(node, "a classify rule needs `when`", "such as {when: \"exit:3\", class: deterministic}");
  if (!then) report.error(node, "a classify rule needs `class`", "such as {when: \"exit:3\", class: deterministic}");
  ClassifyRule rule;
  bool complete = when && then;
  if (when) {
    auto parsed = when->node->type == text::NodeType::string
                      ? dialect::parse_rule(when->node->text)
                      : std::unexpected(std::string{"an entry is text, such as \"exit:3\""});
    if (!parsed)
      report.error(*when->node, fmt::format("when: {} cannot match anything", text::describe(*when->node)),
                   parsed.error());
    complete = complete && parsed;
    if (parsed) rule.when = *std::move(parsed);
  }
  if (then) {
    const auto word = text::read_word(*then, failure_class_names(), report);
    complete = complete && word;
    if (word) rule.then = *failure_class_named(*word);
  }
  if (complete) rules.push_back(std::move(rule));
}

}  // namespace

std::vector<ClassifyRule> dialect::read_classify_list(const text::Field& field, text::Report& report) {
  std::vector<ClassifyRule> rules;
  const auto items = text::read_list(field, "rules", report, rules_max);
  for (const text::Node* item : items.value_or(std::vector<const text::Node*>{})) read_rule(*item, report, rules);
  return rules;
}

std::expected<std::vector<ClassifyRule>, std::vector<Diagnostic>> read_classify_rules(std::string text,
                                                                                      std::string file) {
  const auto document = text::read_document(std::move(text), std::move(file));
  if (!document) return std::unexpected(document.error());
  text::Report report{*document};
  std::vector<ClassifyRule> rules;
  const text::Node* list = &document->root();
  if (list->type == text::NodeType::mapping) {
    text::Fields fields{*list, "", report};
    const auto classify = fields.find("classify");
    fields.finish();
    if (!classify && !report.has_errors())
      report.error(*list, "there is no list of rules here",
                   "write classify: [{when: \"exit:3\", class: deterministic}]");
    if (classify) list = classify->node;
  }
  if (!report.has_errors()) {
    rules = dialect::read_classify_list({"classify", list}, report);
  }
  if (report.has_errors()) return std::unexpected(report.take());
  return rules;
}

}  // namespace reprise
