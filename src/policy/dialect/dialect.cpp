// The dialects by name, and the way in and out that they share.
#include <reprise/dialect.hpp>

#include <array>

#include <fmt/format.h>

#include "policy/dialect/reading.hpp"
#include "text/scalar.hpp"

namespace reprise {
namespace {

constexpr std::array<std::string_view, 6> names{"native", "azolla", "rh_agents", "wave", "argyll", "prodigy"};

Policy read_as(Dialect dialect, const text::Node& root, const NamedPolicies& named, text::Report& report) {
  switch (dialect) {
    case Dialect::native:
      return dialect::read_native(root, named, report);
    case Dialect::azolla:
      return dialect::read_azolla(root, report);
    case Dialect::rh_agents:
      return dialect::read_rh_agents(root, report);
    case Dialect::wave:
      return dialect::read_wave(root, report);
    case Dialect::argyll:
      return dialect::read_argyll(root, report);
    case Dialect::prodigy:
      return dialect::read_prodigy(root, report);
  }
  return {};
}

text::Value write_as(Dialect dialect, const Policy& policy, dialect::Losses& losses) {
  switch (dialect) {
    case Dialect::native:
      return dialect::write_native(policy, losses);
    case Dialect::azolla:
      return dialect::write_azolla(policy, losses);
    case Dialect::rh_agents:
      return dialect::write_rh_agents(policy, losses);
    case Dialect::wave:
      return dialect::write_wave(policy, losses);
    case Dialect::argyll:
      return dialect::write_argyll(policy, losses);
    case Dialect::prodigy:
      return dialect::write_prodigy(policy, losses);
  }
  return {};
}

text::Value milliseconds(const std::optional<Duration>& duration) {
  if (!duration) return {};
  return text::Value::Number{text::decimal_text(*duration, dialect::ns_per_millisecond)};
}

text::Value rule_list(const std::optional<FailureRules>& rules) {
  if (!rules) return {};
  text::Value list = text::Value::list();
  for (const FailureRule& rule : *rules) list.add(rule.text);
  return list;
}

}  // namespace

std::string_view name_of(Dialect dialect) noexcept { return names[static_cast<std::size_t>(dialect)]; }

std::optional<Dialect> dialect_named(std::string_view name) noexcept {
  for (const Dialect dialect : all_dialects) {
    if (name_of(dialect) == name) return dialect;
  }
  return std::nullopt;
}

std::expected<ReadPolicy, std::vector<Diagnostic>> read_policy(std::string text, Dialect dialect, std::string file,
                                                               const NamedPolicies& named) {
  const auto document = text::read_document(std::move(text), std::move(file));
  if (!document) return std::unexpected(document.error());
  text::Report report{*document};
  Policy policy = read_as(dialect, document->root(), named, report);
  if (report.has_errors()) return std::unexpected(report.take());
  dialect::warn_about(policy, dialect, document->root(), report);
  return ReadPolicy{std::move(policy), report.take()};
}

WrittenPolicy write_policy(const Policy& policy, Dialect dialect, TextFormat format) {
  WrittenPolicy written;
  const text::Value value = write_as(dialect, policy, written.losses);
  written.text = format == TextFormat::yaml ? text::to_yaml(value) : text::to_json(value, 2) + "\n";
  return written;
}

std::string policy_json(const Policy& policy) {
  const bool list = policy.backoff == Backoff::list;
  text::Value map = text::Value::map();
  map.set("max_attempts",
          policy.max_attempts ? text::Value{static_cast<std::int64_t>(*policy.max_attempts)} : text::Value{});
  map.set("max_elapsed_ms", milliseconds(policy.max_elapsed));
  map.set("attempt_timeout_ms", milliseconds(policy.attempt_timeout));
  map.set("backoff", std::string{name_of(policy.backoff)});
  map.set("initial_ms", milliseconds(policy.initial));
  map.set("increment_ms", milliseconds(policy.increment.value_or(policy.initial)));
  map.set("factor", policy.factor);
  text::Value delays = text::Value::list();
  for (const Duration delay : policy.delays) delays.add(milliseconds(delay));
  map.set("delays_ms", list ? std::move(delays) : text::Value{});
  map.set("max_ms", milliseconds(policy.max));
  map.set("jitter", std::string{name_of(policy.jitter)});
  map.set("jitter_ratio", policy.jitter == Jitter::ratio ? text::Value{policy.jitter_ratio} : text::Value{});
  map.set("only_on", rule_list(policy.only_on));
  map.set("never_on", rule_list(policy.never_on));
  map.set("match", std::string{name_of(policy.match)});
  map.set("honor_retry_after", policy.honor_retry_after);
  map.set("retry_budget_ms", milliseconds(policy.retry_budget));
  map.set("parallelism", static_cast<std::int64_t>(policy.parallelism));
  return text::to_json(map);
}

}  // namespace reprise
