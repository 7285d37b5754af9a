#include "policy/dialect/reading.hpp"

#include <limits>

#include <fmt/format.h>

namespace reprise::dialect {

bool is_null(const text::Field& field) noexcept { return field.node->type == text::NodeType::null; }

Backoff backoff_named(std::string_view word) noexcept {
  if (word == "fixed" || word == "constant") return Backoff::constant;
  if (word == "linear") return Backoff::linear;
  return word == "fibonacci" ? Backoff::fibonacci : Backoff::exponential;
}

std::optional<Duration> read_seconds(const text::Field& field, text::Report& report) {
  return text::read_decimal_duration(field, ns_per_second, "seconds", report);
}

void read_limits(const text::Field& field, std::optional<std::uint32_t>& worker_lost_max, text::Report& report) {
  text::Fields limits{*field.node, field.key, report};
  if (const auto lost = limits.find("worker_lost"))
    assign(worker_lost_max, text::read_whole(*lost, {0, std::numeric_limits<std::uint32_t>::max()}, report));
  if (limits.is_map()) limits.finish();
}

std::optional<FailureRules> read_type_names(const text::Field& field, text::Report& report) {
  const auto items = text::read_list(field, "error type names", report, names_max);
  if (!items) return std::nullopt;
  FailureRules rules;
  for (const text::Node* item : *items) {
    if (item->type != text::NodeType::string || item->text.empty()) {
      report.error(*item, fmt::format("{}: expected an error type name, found {}", field.key, text::describe(*item)),
                   "such as TimeoutError");
      continue;
    }
    rules.push_back(FailureRule::of_type(item->text));
  }
  return rules;
}

}  // namespace reprise::dialect
