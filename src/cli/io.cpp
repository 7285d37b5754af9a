#include "cli/io.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "text/scalar.hpp"

namespace reprise::cli {
namespace {

constexpr std::int64_t ns_per_millisecond = 1'000'000;

bool read_all(int descriptor, std::size_t bytes_max, std::string& text) {
  char buffer[64 * 1024];
  while (text.size() < bytes_max) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count == 0) return true;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace

std::expected<Input, int> read_input(const std::string& path) {
  const bool standard_input = path == "-";
  Input input{standard_input ? "<stdin>" : path, {}};
  const int descriptor = standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::size_t enough = text::Limits{}.bytes_max + 1;
  const bool read = descriptor >= 0 && read_all(descriptor, enough, input.text);
  const int problem = errno;
  if (descriptor >= 0 && !standard_input) ::close(descriptor);
  if (!read) return std::unexpected(usage_error(fmt::format("cannot read {}: {}", input.name, std::strerror(problem))));
  return input;
}

std::expected<text::Document, int> read_input_document() {
  auto input = read_input("-");
  if (!input) return std::unexpected(input.error());
  auto document = text::read_document(std::move(input->text), std::move(input->name));
  if (document) return *std::move(document);
  print_error(render(document.error()));
  return std::unexpected(exit_invalid);
}

std::expected<Policy, int> load_policy(const PolicySource& source, Warnings warnings) {
  auto input = read_input(source.file);
  if (!input) return std::unexpected(input.error());
  auto read = read_policy(std::move(input->text), source.from, std::move(input->name));
  if (!read) {
    print_error(render(read.error()));
    return std::unexpected(exit_invalid);
  }
  if (warnings == Warnings::show) print_error(render(read->warnings));
  return std::move(read->policy);
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int usage_error(std::string_view message) {
  print_error(fmt::format("reprise: {}\n", message));
  return exit_usage;
}

text::Value milliseconds(Duration duration) {
  return text::Value::Number{text::decimal_text(duration, ns_per_millisecond)};
}

std::optional<Duration> read_milliseconds(const text::Field& field, text::Report& report) {
  return text::read_decimal_duration(field, ns_per_millisecond, "milliseconds", report);
}

std::optional<std::string> read_text(const text::Field& field, text::Report& report) {
  if (field.node->type == text::NodeType::string) return field.node->text;
  report.error(*field.node, fmt::format("{}: expected text, found {}", field.key, text::describe(*field.node)),
               "put it in quotes");
  return std::nullopt;
}

namespace {

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
    const auto word = text::read_word(
        *field, {"transient", "deterministic", "budget_exhausted", "contract_failure", "test_failure", "canceled"},
        report);
    if (word) failure.failure_class = failure_class_named(*word);
  }
  if (const auto field = fields.find_given("kind")) {
    const auto word = text::read_word(
        *field, {"timeout", "throttled", "stalled", "worker_lost", "crashed", "not_found", "auth", "invalid_input"},
        report);
    if (word) failure.kind = *failure_kind_named(*word);
  }
  if (const auto field = fields.find_given("permanent")) failure.permanent = text::read_boolean(*field, report);
  if (const auto field = fields.find_given("retry_after_ms")) failure.retry_after = read_milliseconds(*field, report);
}

}  // namespace reprise::cli
