// The dialects by name, and the way in and out that they share.
#include <reprise/dialect.hpp>

#include <array>

#include "policy/dialect/dialects.hpp"
#include "text/json_comments.hpp"
#include "text/utf8.hpp"

namespace reprise {
namespace {

using Read = Policy (*)(const text::Node&, const NamedPolicies&, text::Report&);
using Write = text::Value (*)(const Policy&, dialect::Losses&);

// Only native documents may name policies.
template <Policy (*read)(const text::Node&, text::Report&)>
Policy without_names(const text::Node& root, const NamedPolicies&, text::Report& report) {
  return read(root, report);
}

struct Entry {
  std::string_view name;
  Read read;
  Write write;
};

// In the order of the enum.
constexpr std::array<Entry, 6> dialects{{
    {"native", dialect::read_native, dialect::write_native},
    {"azolla", without_names<dialect::read_azolla>, dialect::write_azolla},
    {"rh_agents", without_names<dialect::read_rh_agents>, dialect::write_rh_agents},
    {"wave", without_names<dialect::read_wave>, dialect::write_wave},
    {"argyll", without_names<dialect::read_argyll>, dialect::write_argyll},
    {"prodigy", without_names<dialect::read_prodigy>, dialect::write_prodigy},
}};

const Entry& entry_of(Dialect dialect) noexcept { return dialects[static_cast<std::size_t>(dialect)]; }

text::Value milliseconds(const std::optional<Duration>& duration) {
  return duration ? text::milliseconds(*duration) : text::Value{};
}

text::Value rule_list(const std::optional<FailureRules>& rules) {
  if (!rules) return {};
  text::Value list = text::Value::list();
  for (const FailureRule& rule : *rules) list.add(rule.text);
  return list;
}

}  // namespace

Policy dialect::read_policy_in(const text::Node& node, Dialect dialect, const NamedPolicies& names,
                               text::Report& report) {
  return entry_of(dialect).read(node, names, report);
}

Policy built_in_policy(Dialect dialect, std::string_view actor_type) {
  if (dialect == Dialect::native) return *resolve({}, actor_type).policy;
  if (dialect == Dialect::rh_agents) return dialect::rh_agents_built_in(actor_type);
  return dialect::default_policy(dialect);
}

Policy dialect::default_policy(Dialect dialect) {
  if (dialect == Dialect::native) return policy::standard;
  if (dialect == Dialect::prodigy) return {.max_attempts = 1, .jitter = Jitter::none, .stops_on_class = false};
  const auto empty = text::read_document("{}", "");
  text::Report report{*empty};
  return read_policy_in(empty->root(), dialect, {}, report);
}

std::string_view name_of(Dialect dialect) noexcept { return entry_of(dialect).name; }

std::optional<Dialect> dialect_named(std::string_view name) noexcept {
  for (const Dialect dialect : all_dialects) {
    if (name_of(dialect) == name) return dialect;
  }
  return std::nullopt;
}

std::expected<ReadPolicy, std::vector<Diagnostic>> read_policy(std::string text, Dialect dialect, std::string file,
                                                               const NamedPolicies& named) {
  if (dialect == Dialect::azolla) text = text::without_json_comments(text);  // its documents are written with them
  const auto document = text::read_document(std::move(text), std::move(file));
  if (!document) return std::unexpected(document.error());
  text::Report report{*document};
  Policy policy = entry_of(dialect).read(document->root(), named, report);
  if (report.has_errors()) return std::unexpected(report.take());
  dialect::warn_about(policy, dialect, document->root(), report);
  return ReadPolicy{std::move(policy), report.take()};
}

WrittenPolicy write_policy(const Policy& policy, Dialect dialect, TextFormat format) {
  WrittenPolicy written;
  const text::Value value = entry_of(dialect).write(policy, written.losses);
  if (dialect != Dialect::native && policy.worker_lost_max) {
    written.losses.push_back("making again at most " + std::to_string(*policy.worker_lost_max) +
                             " lost attempts in a row (limits.worker_lost)");
  }
  for (std::string& loss : written.losses) loss = text::safe_to_show(loss);  // they quote the policy
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
  text::Value limits = text::Value::map();
  limits.set("worker_lost", std::int64_t{policy.worker_lost_max.value_or(worker_lost_default)});
  map.set("limits", std::move(limits));
  map.set("parallelism", static_cast<std::int64_t>(policy.parallelism));
  return text::to_json(map);
}

}  // namespace reprise
