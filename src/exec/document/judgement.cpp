#include "exec/document/judgement.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <boost/json/object.hpp>
#include <reprise/classify.hpp>

#include "event/evidence.hpp"
#include "policy/error_line.hpp"
#include "policy/failing_lines.hpp"
#include "policy/verdict.hpp"
#include "text/ascii.hpp"
#include "text/duration.hpp"

namespace reprise::exec {

using event::FailureEvidence;
using json::Json;

namespace {

constexpr std::size_t message_max = 400;
constexpr std::size_t evidence_max = 8192;  // of what was written, for rules that look at text

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

// By the first rules tabs are lost, and the fingerprints of runs that began with them are made of that.
std::string on_one_line(std::string_view text, bool by_first_rules = false) {
  std::string line;
  for (const char c : last_bytes(trimmed(text), message_max)) {
    if (c == '\n') {
      line += "; ";
    } else if (c == '\t' && !by_first_rules) {
      line += ' ';
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

// By the first rules only the last line counts: the type, if it begins with one.
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

// What an attempt wrote, cut to what is kept of it.
FailureEvidence written_by(const ProcessEnd& end) {
  return {.out = std::string{event::tail_of(end.out.text())}, .err = std::string{event::tail_of(end.err.text())}};
}

Failure with_evidence(Failure failure, const FailureEvidence& evidence) {
  failure.evidence = event::encode(evidence);
  return failure;
}

// What both streams say at the end, for rules that look at text.
std::string written_text(const std::string& out, const std::string& err) {
  const std::string text = std::string{last_bytes(out, evidence_max / 2)} + "\n" + err;
  return std::string{last_bytes(text, evidence_max)};
}

// "--- FAIL: TestAdd (0.00s); --- FAIL: TestSub (0.00s)", as far as there is room.
std::string in_short(const std::vector<std::string>& failing) {
  std::string text;
  for (std::size_t index = 0; index < failing.size(); ++index) {
    if (index > 0 && text.size() + failing[index].size() > message_max)
      return text + "; and " + std::to_string(failing.size() - index) + " more";
    text += (text.empty() ? "" : "; ") + failing[index];
  }
  return text;
}

// The place in the value and the rule it breaks: what was found there instead may be another each time.
std::vector<std::string> broken_rules(const std::vector<std::string>& mistakes) {
  std::vector<std::string> rules;
  for (const std::string& mistake : mistakes) rules.push_back(mistake.substr(0, mistake.rfind(", found ")));
  return rules;
}

std::string seconds(Duration span) { return text::rough_duration(span); }

const Json* member(const Json& value, std::string_view key) {
  const auto* const map = json::if_map(value);
  return map != nullptr ? map->if_contains(key) : nullptr;
}

// An object whose `success` is true or false; anything else says nothing.
std::optional<Json> verdict_in(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with('{')) return std::nullopt;
  auto value = json::parse_json(text);
  const Json* const success = value ? member(*value, "success") : nullptr;
  if (success == nullptr || !success->is_bool()) return std::nullopt;
  return *std::move(value);
}

// What a command has said about itself: the last line that is a verdict. Programs write other things there, too.
std::optional<Json> verdict_of_command(std::string_view output) {
  for (std::string_view rest = trimmed(output); !rest.empty();) {
    const std::size_t line = rest.rfind('\n');
    if (auto found = verdict_in(line == std::string_view::npos ? rest : rest.substr(line + 1))) return found;
    rest = trimmed(rest.substr(0, line == std::string_view::npos ? 0 : line));
  }
  return verdict_in(output);  // one object over several lines
}

}  // namespace

// Sets class and kind, and says which rule found them.
Failure Judge::classified(Failure failure, Evidence evidence) const {
  evidence.types = flow.types.get();
  evidence.test_step = step.is_test;
  evidence.by_first_rules = by_first_rules;
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
  if (end.timed_out) return std::unexpected{with_evidence(timed_out("timed out"), written_by(end))};
  if (end.stalled) {
    Failure failure{.type = "TimeoutError", .message = "stalled: no sign of life for " + seconds(step.stall_timeout)};
    return std::unexpected{with_evidence(classified(std::move(failure), {.stalled = true}), written_by(end))};
  }
  if (end.spawn_errno != 0) return std::unexpected{not_started(end)};
  if (end.relay_errno != 0) {  // it would get lost again
    return std::unexpected{Failure{.type = end.relay_errno == EPIPE ? "BrokenPipeError" : "OSError",
                                   .message = std::string{"cannot write to standard output: "} + std::strerror(end.relay_errno),
                                   .failure_class = FailureClass::deterministic,
                                   .permanent = true,
                                   .details = "classified by output that could not be passed on"}};
  }
  if (!end.stdout_problem.empty()) {  // it ended well, but its caller would get less than it wrote
    return std::unexpected{Failure{.type = "OSError",
                                   .message = "its standard output could not be kept: " + end.stdout_problem,
                                   .failure_class = FailureClass::transient,
                                   .details = "classified by output that could not be kept"}};
  }
  if (step.needs_verdict) return with_verdict(end);
  if (end.exit_code == 0) return end.out.text();
  return std::unexpected{exited(end)};
}

// Arguments that are too long are the document's own mistake. What the system has no room for now says nothing about the command.
Failure Judge::not_started(const ProcessEnd& end) const {
  const bool is_lack = end.spawn_errno == EMFILE || end.spawn_errno == ENFILE || end.spawn_errno == EAGAIN ||
                       end.spawn_errno == ENOMEM;
  Failure failure{.type = end.spawn_errno == EACCES   ? "PermissionError"
                          : end.spawn_errno == ENOENT ? "FileNotFoundError"
                                                      : "OSError",
                  .message = end.spawn_problem,
                  .exit_code = end.spawn_errno == ENOENT ? 127 : 126};
  if (is_lack && !by_first_rules) failure.exit_code.reset();
  failure = classified(std::move(failure), {.spawn_error = errno_name(end.spawn_errno)});
  // Whoever wrote the command made it too long: the next attempt would be as long.
  const bool is_built_in_rule = failure.details.starts_with("classified by spawn error");
  if (end.spawn_errno == E2BIG && is_built_in_rule && !by_first_rules) {
    failure.failure_class = FailureClass::deterministic;
    failure.kind = FailureKind::invalid_input;
  }
  return failure;
}

namespace {

// How it ended, without what it said.
Failure end_of(const ProcessEnd& end) {
  Failure failure;
  if (end.signal != 0) {
    failure.type = "SignalError";
    failure.signal = end.signal;
    failure.message = std::string{signal_name(end.signal)};
  } else {
    failure.type = "ExitError";
    failure.exit_code = end.exit_code;
    failure.message = "exit " + std::to_string(end.exit_code);
  }
  return failure;
}

void add_said(Failure& failure, std::string_view said) {
  if (!said.empty()) failure.message += ": " + std::string{said};
}

// All of a short standard error, or the last line of a long one.
std::string said_in(const std::string& err, bool by_first_rules) {
  return on_one_line(err.size() <= message_max ? std::string_view{err} : last_line(err), by_first_rules);
}

}  // namespace

Judged Judge::with_verdict(const ProcessEnd& end) const {
  Failure failure = end_of(end);
  const std::string err = end.err.text();
  if (const std::string_view type = error_type_in(last_line(err)); !type.empty()) failure.type = type;
  add_said(failure, said_in(err, by_first_rules));
  std::string output = end.out.text();
  auto said_itself = verdict_of_command(output);
  const bool exit_counts = step.exit_is_verdict && end.exit_code == 0 && end.signal == 0;
  if (!said_itself && exit_counts) return output;
  Judged judged = verdict(std::move(said_itself), std::move(failure));
  if (!judged) judged.error().evidence = event::encode(written_by(end));
  return judged;
}

// What it said is read from the most exact to the least: the error line of its language, the tests that failed, its last line.
Failure Judge::exited(const ProcessEnd& end) const {
  const std::string out = end.out.text();
  const std::string err = end.err.text();
  const std::string written = written_text(out, err);
  FailureEvidence left = written_by(end);
  Failure failure = end_of(end);
  std::string said = said_in(err, by_first_rules);
  if (said.empty()) said = on_one_line(last_line(out), by_first_rules);  // test runners tell it there
  Evidence evidence{.message = written, .exit_code = failure.exit_code, .signal = failure.signal};
  std::optional<ErrorLine> error;
  if (by_first_rules) {
    if (const std::string_view type = error_type_in(last_line(err)); !type.empty()) failure.type = type;
    if (failure.type != "ExitError" && failure.type != "SignalError") evidence.type = failure.type;
  } else {
    error = last_error_line(trimmed(err).empty() ? out : err);
    if (error) failure.type = error->type;
    if (error) evidence.type = error->type;
    if (error) said = on_one_line(error->text);
    add_curl(failure, evidence, written);
    left.failing = failing_lines(out + "\n" + err);
    evidence.names_failing_tests = !left.failing.empty();
  }
  add_said(failure, said);
  failure = classified(std::move(failure), evidence);
  if (failure.failure_class != FailureClass::test_failure) left.failing.clear();
  if (!left.failing.empty()) {
    failure.message = end_of(end).message;
    add_said(failure, on_one_line(in_short(left.failing)));
    failure.cause = cause_of(left.failing);
  }
  return with_evidence(std::move(failure), left);
}

void Judge::add_curl(Failure& failure, Evidence& evidence, std::string_view written) {
  const std::optional<CurlReport> report = curl_report(written);
  if (!report || failure.exit_code != report->code) return;
  if (report->http_status) {
    failure.type = "HTTPError";
    failure.http_status = evidence.http_status = report->http_status;
  } else if (const std::string_view type = curl_error_type(report->code); !type.empty()) {
    failure.type = type;
  }
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
    case HttpProblem::stalled:
      failure.type = "TimeoutError";
      evidence = {.stalled = true};
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
  if (const std::string* const after = end.header("retry-after")) failure.retry_after = parse_retry_after(*after, now);
  if (step.needs_verdict && (!call.is_async || holds_verdict(end.body))) {
    failure.message = "HTTP " + std::to_string(end.status);
    failure.http_status = end.status;
    failure.evidence = event::encode({.out = std::string{event::tail_of(end.body)}});
    return verdict(verdict_in(end.body), std::move(failure));
  }
  const bool expected = std::ranges::any_of(
      call.expect_status, [&](const auto& range) { return end.status >= range.first && end.status <= range.second; });
  if (expected) return std::move(end.body);
  failure.http_status = end.status;
  failure.message = "HTTP " + std::to_string(end.status);
  failure.evidence = event::encode({.out = std::string{event::tail_of(end.body)}});
  if (const std::string said = on_one_line(said_by(end.body).substr(0, message_max)); !said.empty())
    failure.message += ": " + said;
  if (step.needs_verdict) return verdict(std::nullopt, std::move(failure));
  if (end.status < 300) {  // an answer, but not the one that was asked for
    failure.message += " (expected another status)";
    failure.failure_class = FailureClass::contract_failure;
    failure.details = "classified by expect.status";
    return std::unexpected{std::move(failure)};
  }
  return std::unexpected{classified(failure, {.message = failure.message, .http_status = end.status})};
}

bool Judge::holds_verdict(std::string_view body) { return verdict_in(body).has_value(); }

// Only the handler's own word counts: {"success": true} or {"success": false, "error": …, "permanent": …}.
Judged Judge::verdict(std::optional<json::Json> said, Failure otherwise) const {
  if (!said) {
    otherwise.details = "there is no verdict: {\"success\": true} or {\"success\": false, \"error\": …}";
    return std::unexpected{std::move(otherwise)};
  }
  if (member(*said, "success")->get_bool()) {
    const Json* const output = member(*said, "output");
    return json::to_plain(output != nullptr ? *output : *said);
  }
  const Json* const error = member(*said, "error");
  const Json* const permanent = member(*said, "permanent");
  Failure failure{.type = std::string{policy::work_not_completed},
                  .message = error != nullptr ? json::to_plain(*error) : "the work is not completed",
                  .exit_code = otherwise.exit_code,
                  .http_status = otherwise.http_status,
                  .retry_after = otherwise.retry_after,
                  .evidence = std::move(otherwise.evidence)};
  failure.permanent = permanent != nullptr && permanent->is_bool() && permanent->get_bool();
  if (step.needs_verdict) return std::unexpected{std::move(failure)};
  if (!*failure.permanent) failure.permanent.reset();
  Evidence evidence{.message = failure.message, .permanent = failure.permanent};
  return std::unexpected{classified(failure, evidence)};
}

Judged Judge::webhook(std::string_view body) const {
  return verdict(verdict_in(body), {.type = "ValueError", .message = "the webhook brought no verdict"});
}

Failure Judge::not_json(std::string_view output, const std::string& problem) const {
  Failure failure{.type = "ValidationError", .message = "the output is not JSON: " + problem, .failed_check = true};
  return with_evidence(classified(std::move(failure), {.schema_failed = true}),
                       {.out = std::string{event::tail_of(output)}, .mistakes = {"not JSON: " + problem}});
}

std::expected<void, Failure> Judge::form(std::string_view output) const {
  if (step.output != flow::OutputForm::json) return {};
  const auto value = json::parse_json(output);
  if (value) return {};
  return std::unexpected{not_json(output, value.error())};
}

Failure Judge::unreadable(std::string_view what, const FileProblem& problem) const {
  std::string message = std::string{what} + ": " + problem.message;
  if (!problem.passes_by) return invalid(std::move(message));
  return classified({.type = "TimeoutError", .message = std::move(message)},
                    {.type = "TimeoutError", .timed_out = true});
}

std::expected<void, Failure> Judge::schema(std::string_view output, const json::JsonSchema& schema,
                                           const std::string& name) const {
  const auto value = json::parse_json(output);
  if (!value) return std::unexpected{not_json(output, value.error())};
  std::vector<std::string> mistakes = schema.mistakes_in(*value);
  if (mistakes.empty()) return {};
  Failure failure{.type = "ValidationError", .message = "the output does not match " + name + ": " + mistakes.front()};
  failure.failed_check = true;
  if (mistakes.size() > 1) failure.message += " (and " + std::to_string(mistakes.size() - 1) + " more)";
  if (by_first_rules) failure.message = "the output does not match " + name + ": " + mistakes.front();
  failure.cause = cause_of(broken_rules(mistakes));
  return std::unexpected{with_evidence(classified(std::move(failure), {.schema_failed = true}),
                                       {.out = std::string{event::tail_of(output)}, .mistakes = std::move(mistakes)})};
}

}  // namespace reprise::exec
