// reprise classify: evidence of a failure on standard input, its class on standard output.
#include "cli/io.hpp"

#include <fmt/format.h>

#include "env/wall_clock.hpp"
#include "text/duration.hpp"

namespace reprise::cli {
namespace {

// Owns what the evidence views.
struct Seen {
  Failure failure;
  std::string spawn_error;
  bool timed_out = false;
  bool stalled = false;
  bool canceled = false;
  bool worker_lost = false;
  bool dns_error = false;
  bool schema_failed = false;
  bool test_step = false;
  std::optional<Duration> retry_after;
};

void read_flag(text::Fields& fields, const char* key, bool& target, text::Report& report) {
  if (const auto field = fields.find_given(key)) target = text::read_boolean(*field, report).value_or(false);
}

std::expected<Seen, int> read_evidence() {
  auto input = read_input("-");
  if (!input) return std::unexpected(input.error());
  const auto document = text::read_document(std::move(input->text), std::move(input->name));
  if (!document) {
    print_error(render(document.error()));
    return std::unexpected(exit_invalid);
  }
  text::Report report{*document};
  Seen seen;
  text::Fields fields{document->root(), "", report};
  read_failure_fields(fields, seen.failure, report);
  if (const auto field = fields.find_given("spawn_error")) seen.spawn_error = read_text(*field, report).value_or("");
  read_flag(fields, "timed_out", seen.timed_out, report);
  read_flag(fields, "stalled", seen.stalled, report);
  read_flag(fields, "canceled", seen.canceled, report);
  read_flag(fields, "worker_lost", seen.worker_lost, report);
  read_flag(fields, "dns_error", seen.dns_error, report);
  read_flag(fields, "schema_failed", seen.schema_failed, report);
  if (const auto field = fields.find_given("step_kind")) seen.test_step = read_text(*field, report) == "test";
  if (const auto field = fields.find_given("retry_after")) {
    if (!field->node->is_scalar()) {
      report.error(*field->node, "retry_after: expected seconds or a date, found " + text::describe(*field->node));
    } else {
      seen.retry_after = parse_retry_after(field->node->text, wall_clock_now());
    }
  }
  if (fields.is_map()) {
    if (document->root().members.empty())
      report.error(document->root(), "there is no evidence to classify", "such as {\"exit_code\": 1}");
    fields.finish();
  }
  if (report.has_errors()) {
    print_error(render(report.take()));
    return std::unexpected(exit_invalid);
  }
  if (!seen.retry_after) seen.retry_after = seen.failure.retry_after;
  return seen;
}

Evidence evidence_from(const Seen& seen) {
  Evidence evidence = evidence_of(seen.failure);
  evidence.spawn_error = seen.spawn_error;
  evidence.timed_out = seen.timed_out;
  evidence.stalled = seen.stalled;
  evidence.canceled = seen.canceled;
  evidence.worker_lost = seen.worker_lost;
  evidence.dns_error = seen.dns_error;
  evidence.schema_failed = seen.schema_failed;
  evidence.test_step = seen.test_step;
  return evidence;
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
  const auto seen = read_evidence();
  if (!seen) return seen.error();
  const Evidence evidence = evidence_from(*seen);
  const Classification found = classify(evidence, *rules);
  const std::string rule = describe_rule(found, evidence, *rules);
  const bool has_kind = found.kind != FailureKind::none;
  if (!options.json) {
    const std::string kind = has_kind ? fmt::format(" ({})", name_of(found.kind)) : "";
    const std::string wait =
        seen->retry_after ? fmt::format(", retry after {}", text::format_duration(*seen->retry_after)) : "";
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
  answer.set("retry_after_ms", seen->retry_after ? milliseconds(*seen->retry_after) : text::Value{});
  print(text::to_json(answer) + "\n");
  return exit_done;
}

}  // namespace reprise::cli
