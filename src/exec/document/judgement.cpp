#include "exec/document/judgement.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <boost/json/object.hpp>
#include <reprise/classify.hpp>

#include "text/ascii.hpp"
#include "text/duration.hpp"

namespace reprise::exec {

using flow::Json;

namespace {

constexpr std::size_t message_max = 400;
constexpr std::size_t evidence_max = 8192;  // of what was written, for rules that look at text
constexpr std::size_t details_max = 2048;

std::string_view last_bytes(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  text.remove_prefix(text.size() - most);
  while (!text.empty() && (static_cast<unsigned char>(text.front()) & 0xC0U) == 0x80U) text.remove_prefix(1);
  return text;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty() && (text.front() == '\n' || text.front() == '\r' || text.front() == ' ')) text.remove_prefix(1);
  return text;
}

std::string_view last_line(std::string_view text) {
  text = trimmed(text);
  const std::size_t line = text.rfind('\n');
  return trimmed(line == std::string_view::npos ? text : text.substr(line + 1));
}

std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : last_bytes(trimmed(text), message_max)) {
    if (c == '\n') {
      line += "; ";
    } else if (static_cast<unsigned char>(c) >= ' ' && c != 0x7F) {
      line += c;
    }
  }
  return line;
}

// What a page for people says about a failure is its title; anything else says it itself.
std::string_view said_by(std::string_view body) {
  const auto find = [&](std::string_view what, std::size_t from) {
    const auto found = std::ranges::search(body.substr(from), what, {}, text::to_lower);
    return found.empty() ? std::string_view::npos : static_cast<std::size_t>(found.begin() - body.begin());
  };
  constexpr std::string_view opening = "<title>";
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || (find("<!doctype html", first) != first && find("<html", first) != first))
    return body;
  const std::size_t title = find(opening, first);
  const std::size_t end = title == std::string_view::npos ? title : find("</title>", title);
  if (end == std::string_view::npos) return "";
  return body.substr(title + opening.size(), end - title - opening.size());
}

// "ValueError: no such order", as the last line of a traceback: the type, if the line begins with one.
std::string_view error_type_in(std::string_view line) {
  const std::size_t end = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, end);
  const bool is_name = !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
  const bool is_type = name.ends_with("Error") || name.ends_with("Exception") || name == "KeyboardInterrupt";
  return is_name && is_type ? name : std::string_view{};
}

std::string_view errno_name(int number) {
  const char* const name = strerrorname_np(number);
  return name != nullptr ? name : "EIO";
}

// What both streams say at the end, for rules that look at text.
std::string written_text(const ProcessEnd& end) {
  std::string text = end.out.text();
  text = std::string{last_bytes(text, evidence_max / 2)} + "\n" + end.err.text();
  return std::string{last_bytes(text, evidence_max)};
}

std::string seconds(Duration span) { return text::rough_duration(span); }

const Json* member(const Json& value, std::string_view key) {
  const auto* const map = flow::if_map(value);
  return map != nullptr ? map->if_contains(key) : nullptr;
}

}  // namespace

// Sets class and kind, and says which rule found them.
Failure Judge::classified(Failure failure, Evidence evidence) const {
  evidence.types = flow.types.get();
  evidence.test_step = step.is_test;
  const Classification found = classify(evidence, flow.classify);
  failure.failure_class = found.failure_class;
  failure.kind = found.kind;
  if (!failure.details.empty()) failure.details = "\n" + failure.details;
  failure.details = "classified by " + describe_rule(found, evidence, flow.classify) + failure.details;
  return failure;
}

Failure broken_off(std::string_view why) {
  return {.type = "ResourceError",
          .message = "broken off, because something is lacking here: " + std::string{why},
          .failure_class = FailureClass::transient};
}

Failure Judge::timed_out(std::string_view what) const {
  Failure failure{.type = "TimeoutError", .message = std::string{what} + " after " + seconds(timeout)};
  return classified(std::move(failure), {.type = "TimeoutError", .timed_out = true});
}

Failure Judge::canceled() const {
  return {.type = "CanceledError", .message = "canceled while it ran", .failure_class = FailureClass::canceled};
}

Failure Judge::invalid(std::string message) const {
  return {.type = "ValueError",
          .message = std::move(message),
          .failure_class = FailureClass::deterministic,
          .kind = FailureKind::invalid_input};
}

Judged Judge::process(ProcessEnd&& end) const {
  if (end.canceled) return std::unexpected{canceled()};
  if (end.timed_out) return std::unexpected{timed_out("timed out")};
  const std::string written = written_text(end);
  Failure failure;
  failure.details = std::string{last_bytes(trimmed(end.err.text()), details_max)};
  Evidence evidence{.message = written};
  if (end.stalled) {
    failure.type = "TimeoutError";
    failure.message = "stalled: no sign of life for " + seconds(step.stall_timeout);
    evidence.stalled = true;
    return std::unexpected{classified(std::move(failure), evidence)};
  }
  if (end.spawn_errno != 0) {
    failure.type = end.spawn_errno == EACCES   ? "PermissionError"
                   : end.spawn_errno == ENOENT ? "FileNotFoundError"
                                               : "OSError";
    failure.message = end.spawn_problem;
    failure.exit_code = end.spawn_errno == ENOENT ? 127 : 126;
    evidence = {.spawn_error = errno_name(end.spawn_errno)};
    return std::unexpected{classified(std::move(failure), evidence)};
  }
  if (!end.stdout_problem.empty()) {  // it ended well, but its caller would get less than it wrote
    failure.type = "OSError";
    failure.message = "its standard output could not be kept: " + end.stdout_problem;
    failure.failure_class = FailureClass::transient;
    failure.details = "classified by output that could not be kept";
    return std::unexpected{std::move(failure)};
  }
  std::string output = end.out.text();
  if (end.exit_code == 0 && !step.needs_verdict) return output;

  const std::string err = end.err.text();
  const std::string_view line = last_line(err);
  const std::string_view type = error_type_in(line);
  failure.type = type.empty() ? (end.signal != 0 ? "SignalError" : "ExitError") : std::string{type};
  std::string said = on_one_line(err.size() <= message_max ? std::string_view{err} : line);
  if (said.empty() && !step.needs_verdict) said = on_one_line(last_line(output));  // test runners tell it there
  if (end.signal != 0) {
    failure.signal = end.signal;
    failure.message = std::string{signal_name(end.signal)};
  } else {
    failure.exit_code = end.exit_code;
    failure.message = "exit " + std::to_string(end.exit_code);
  }
  if (!said.empty()) failure.message += ": " + said;
  if (step.needs_verdict) return verdict(output, std::move(failure));
  evidence.type = type;
  if (end.signal != 0) {
    evidence.signal = end.signal;
  } else {
    evidence.exit_code = end.exit_code;
  }
  return std::unexpected{classified(std::move(failure), evidence)};
}

Judged Judge::http(const flow::HttpCall& call, HttpEnd&& end, std::chrono::sys_seconds now) const {
  if (end.problem == HttpProblem::canceled) return std::unexpected{canceled()};
  Failure failure{.type = "HTTPError", .message = end.message};
  Evidence evidence{.message = failure.message};
  switch (end.problem) {
    case HttpProblem::none:
      break;
    case HttpProblem::bad_request:
      return std::unexpected{invalid(end.message)};
    case HttpProblem::timed_out:
      failure.type = "TimeoutError";
      evidence = {.type = failure.type, .timed_out = true};
      break;
    case HttpProblem::dns:
      failure.type = "NetworkError";
      evidence = {.dns_error = true};
      break;
    case HttpProblem::refused:
      failure.type = "ConnectionRefusedError";
      evidence = {.type = failure.type};
      break;
    case HttpProblem::reset:
      failure.type = "ConnectionResetError";
      evidence = {.type = failure.type};
      break;
    case HttpProblem::tls:
    case HttpProblem::garbage:
    case HttpProblem::too_large:
    case HttpProblem::canceled:
    case HttpProblem::other:
      failure.type = "NetworkError";
      evidence = {.message = failure.message};
      break;
  }
  if (end.problem == HttpProblem::too_large) return std::unexpected{invalid(end.message)};
  if (end.problem != HttpProblem::none) {
    return std::unexpected{step.needs_verdict ? failure
                                              : classified(failure, evidence)};  // the evidence points into it
  }
  if (step.needs_verdict && !call.is_async)
    return verdict(end.body,
                   {.type = "HTTPError", .message = "HTTP " + std::to_string(end.status), .http_status = end.status});
  const bool expected = std::ranges::any_of(
      call.expect_status, [&](const auto& range) { return end.status >= range.first && end.status <= range.second; });
  if (expected) return std::move(end.body);
  failure.http_status = end.status;
  failure.message = "HTTP " + std::to_string(end.status);
  if (const std::string said = on_one_line(said_by(end.body).substr(0, message_max)); !said.empty())
    failure.message += ": " + said;
  if (step.needs_verdict) return verdict(end.body, std::move(failure));
  if (const std::string* const after = end.header("retry-after")) failure.retry_after = parse_retry_after(*after, now);
  if (end.status < 300) {  // an answer, but not the one that was asked for
    failure.message += " (expected another status)";
    failure.failure_class = FailureClass::contract_failure;
    failure.details = "classified by expect.status";
    return std::unexpected{std::move(failure)};
  }
  return std::unexpected{classified(failure, {.message = failure.message, .http_status = end.status})};
}

// Only the handler's own word counts: {"success": true} or {"success": false, "error": …, "permanent": …}.
Judged Judge::verdict(std::string_view body, Failure otherwise) const {
  const auto value = flow::parse_json(body);
  const Json* const success = value ? member(*value, "success") : nullptr;
  if (success == nullptr || !success->is_bool()) {
    if (otherwise.exit_code == 0) return std::string{body};  // a command that ends well has said so
    otherwise.details = "the answer holds no verdict: {\"success\": true} or {\"success\": false, \"error\": …}";
    return std::unexpected{std::move(otherwise)};
  }
  if (success->get_bool()) {
    const Json* const output = member(*value, "output");
    return output != nullptr ? flow::to_plain(*output) : std::string{body};
  }
  const Json* const error = member(*value, "error");
  const Json* const permanent = member(*value, "permanent");
  Failure failure{.type = "WorkNotCompleted",
                  .message = error != nullptr ? flow::to_plain(*error) : "the work is not completed",
                  .exit_code = otherwise.exit_code,
                  .http_status = otherwise.http_status};
  failure.permanent = permanent != nullptr && permanent->is_bool() && permanent->get_bool();
  if (step.needs_verdict) return std::unexpected{std::move(failure)};
  if (!*failure.permanent) failure.permanent.reset();
  Evidence evidence{.message = failure.message, .permanent = failure.permanent};
  return std::unexpected{classified(failure, evidence)};
}

Judged Judge::webhook(std::string_view body) const {
  return verdict(body, {.type = "ValueError", .message = "the webhook brought no verdict"});
}

std::expected<void, Failure> Judge::form(std::string_view output) const {
  if (step.output != flow::OutputForm::json) return {};
  const auto value = flow::parse_json(output);
  if (value) return {};
  Failure failure{.type = "ValidationError", .message = "the output is not JSON: " + value.error()};
  return std::unexpected{classified(std::move(failure), {.schema_failed = true})};
}

Failure Judge::unreadable(std::string_view what, const FileProblem& problem) const {
  std::string message = std::string{what} + ": " + problem.message;
  if (!problem.passes_by) return invalid(std::move(message));
  return classified({.type = "TimeoutError", .message = std::move(message)},
                    {.type = "TimeoutError", .timed_out = true});
}

std::expected<void, Failure> Judge::schema(std::string_view output, const flow::JsonSchema& schema,
                                           const std::string& name) const {
  Failure failure{.type = "ValidationError"};
  const auto value = flow::parse_json(output);
  if (!value) {
    failure.message = "the output is not JSON: " + value.error();
    return std::unexpected{classified(std::move(failure), {.schema_failed = true})};
  }
  const auto mistakes = schema.mistakes_in(*value);
  if (mistakes.empty()) return {};
  failure.message = "the output does not match " + name + ": " + mistakes.front();
  for (const std::string& mistake : mistakes) failure.details += (failure.details.empty() ? "" : "\n") + mistake;
  return std::unexpected{classified(std::move(failure), {.schema_failed = true})};
}

}  // namespace reprise::exec
