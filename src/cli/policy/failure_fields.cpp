#include "cli/policy/failure_fields.hpp"

#include <fmt/format.h>

namespace reprise::cli {
namespace {

constexpr std::int64_t ns_per_millisecond = 1'000'000;
constexpr text::WholeRange exit_codes{0, 255};
constexpr text::WholeRange http_statuses{100, 599};

void read_signal(const text::Field& field, Failure& failure, text::Report& report) {
  if (field.node->type == text::NodeType::integer) {
    if (const auto number = text::read_whole(field, {1, 64}, report)) failure.signal = static_cast<int>(*number);
    return;
  }
  const auto number = field.node->type == text::NodeType::string ? signal_number(field.node->text) : std::nullopt;
  if (number) {
    failure.signal = number;
  } else {
    report.error(*field.node,
                 fmt::format("signal: expected a signal such as SIGKILL, found {}", text::describe(*field.node)));
  }
}

void read_code(const text::Field& field, Failure& failure, text::Report& report) {
  constexpr std::int64_t first_status = 100;
  const auto code = text::read_whole(field, {0, http_statuses.max}, report);
  if (!code) return;
  auto& target = *code >= first_status ? failure.http_status : failure.exit_code;
  if (target) {
    report.error(*field.node,
                 fmt::format("code: {} is given too, and they mean the same",
                             *code >= first_status ? "http_status" : "exit_code"),
                 "keep one of them");
  }
  target = static_cast<int>(*code);
}

}  // namespace

std::optional<Duration> read_milliseconds(const text::Field& field, text::Report& report) {
  return text::read_decimal_duration(field, ns_per_millisecond, "milliseconds", report);
}

std::optional<std::string> read_text(const text::Field& field, text::Report& report) {
  if (field.node->type == text::NodeType::string) return field.node->text;
  report.error(*field.node, fmt::format("{}: expected text, found {}", field.key, text::describe(*field.node)),
               "put it in quotes");
  return std::nullopt;
}

void read_failure_fields(text::Fields& fields, Failure& failure, text::Report& report) {
  const auto assign_int = [](std::optional<int>& target, const std::optional<std::int64_t>& value) {
    if (value) target = static_cast<int>(*value);
  };
  if (const auto field = fields.find_given("type")) failure.type = read_text(*field, report).value_or("");
  if (const auto field = fields.find_given("message")) failure.message = read_text(*field, report).value_or("");
  if (const auto field = fields.find_given("exit_code"))
    assign_int(failure.exit_code, text::read_whole(*field, exit_codes, report));
  if (const auto field = fields.find_given("http_status"))
    assign_int(failure.http_status, text::read_whole(*field, http_statuses, report));
  if (const auto field = fields.find_given("code")) read_code(*field, failure, report);
  if (const auto field = fields.find_given("signal")) read_signal(*field, failure, report);
  if (const auto field = fields.find_given("class")) {
    const auto word = text::read_word(*field, failure_class_names(), report);
    if (word) failure.failure_class = failure_class_named(*word);
  }
  if (const auto field = fields.find_given("kind")) {
    const auto word = text::read_word(*field, failure_kind_names(), report);
    if (word) failure.kind = *failure_kind_named(*word);
  }
  if (const auto field = fields.find_given("permanent")) failure.permanent = text::read_boolean(*field, report);
  if (const auto field = fields.find_given("check"))
    failure.failed_check = text::read_boolean(*field, report).value_or(false);
  if (const auto field = fields.find_given("retry_after_ms")) failure.retry_after = read_milliseconds(*field, report);
}

}  // namespace reprise::cli
