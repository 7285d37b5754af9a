// reprise classify: evidence of a failure on standard input, its class on standard output.
#include "cli/io.hpp"
#include "cli/policy/failure_fields.hpp"

#include <fmt/format.h>

#include "env/wall_clock.hpp"
#include "text/duration.hpp"
#include "text/value.hpp"

namespace reprise::cli {
namespace {

// Owns what the evidence views, so it stays where it is.
struct Seen {
  Seen() = default;
  Seen(const Seen&) = delete;
  Seen& operator=(const Seen&) = delete;

  Failure failure;
  std::string spawn_error;
  Evidence evidence;
  std::optional<Duration> retry_after;
};

void read_flag(text::Fields& fields, const char* key, bool& target, text::Report& report) {
  if (const auto field = fields.find_given(key)) target = text::read_boolean(*field, report).value_or(false);
}

void read_retry_after(const text::Field& field, Seen& seen, text::Report& report) {
  if (!field.node->is_scalar()) {
    return report.error(*field.node, "retry_after: expected seconds or a date, found " + text::describe(*field.node));
  }
  if (const auto wait = parse_retry_after(field.node->text, wall_clock_now())) seen.retry_after = wait;
}

int read_evidence(Seen& seen) {
  const auto document = read_input_document();
  if (!document) return document.error();
  text::Report report{*document};
  text::Fields fields{document->root(), "", report};
  read_failure_fields(fields, seen.failure, report);
  if (const auto field = fields.find_given("spawn_error")) seen.spawn_error = read_text(*field, report).value_or("");
  Evidence& evidence = seen.evidence = evidence_of(seen.failure);
  evidence.spawn_error = seen.spawn_error;
  read_flag(fields, "timed_out", evidence.timed_out, report);
  read_flag(fields, "stalled", evidence.stalled, report);
  read_flag(fields, "canceled", evidence.canceled, report);
  read_flag(fields, "worker_lost", evidence.worker_lost, report);
  read_flag(fields, "dns_error", evidence.dns_error, report);
  read_flag(fields, "schema_failed", evidence.schema_failed, report);
  if (const auto field = fields.find_given("step_kind")) evidence.test_step = read_text(*field, report) == "test";
  seen.retry_after = seen.failure.retry_after;
  if (const auto field = fields.find_given("retry_after")) read_retry_after(*field, seen, report);
  if (fields.is_map()) {
    if (document->root().members.empty()) {
      report.error(document->root(), "there is no evidence to classify", "such as {\"exit_code\": 1}");
    }
    fields.finish();
  }
  if (!report.has_errors()) return exit_done;
  print_error(render(report.take()));
  return exit_invalid;
}

std::expected<std::vector<ClassifyRule>, int> load_rules(const std::string& file) {
  if (file.empty()) return std::vector<ClassifyRule>{};
  if (file == "-")
    return std::unexpected(usage_error("classify: standard input holds the evidence, so the rules must be a file"));
  auto input = read_input(file);
  if (!input) return std::unexpected(input.error());
  auto rules = read_classify_rules(std::move(input->text), std::move(input->name));
  if (rules) return *std::move(rules);
  print_error(render(rules.error()));
  return std::unexpected(exit_invalid);
}

}  // namespace

int classify_failure(const ClassifyOptions& options) {
  const auto rules = load_rules(options.rules_file);
  if (!rules) return rules.error();
  Seen seen;
  if (const int code = read_evidence(seen); code != exit_done) return code;
  const Classification found = classify(seen.evidence, *rules);
  const std::string rule = describe_rule(found, seen.evidence, *rules);
  const bool has_kind = found.kind != FailureKind::none;
  if (!options.json) {
    const std::string kind = has_kind ? fmt::format(" ({})", name_of(found.kind)) : "";
    const std::string wait =
        seen.retry_after ? fmt::format(", retry after {}", text::format_duration(*seen.retry_after)) : "";
    print(found.failed ? fmt::format("{}{}: {}, by {}{}\n", name_of(found.failure_class), kind,
                                     found.retryable ? "retryable" : "not retryable", rule, wait)
                       : "not a failure\n");
    return exit_done;
  }
  text::Value answer = text::Value::map();
  answer.set("class", found.failed ? text::Value{std::string{name_of(found.failure_class)}} : text::Value{});
  answer.set("kind", has_kind ? text::Value{std::string{name_of(found.kind)}} : text::Value{});
  answer.set("retryable", found.retryable);
  answer.set("rule", rule);
  answer.set("retry_after_ms", seen.retry_after ? text::milliseconds(*seen.retry_after) : text::Value{});
  print(text::to_json(answer) + "\n");
  return exit_done;
}

}  // namespace reprise::cli
