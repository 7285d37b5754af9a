#include "event/failure_json.hpp"

#include <algorithm>

#include "event/evidence.hpp"

namespace reprise::event {
namespace {

using text::Value;

Value word(std::string_view name) { return Value{std::string{name}}; }

Value signal_value(int signal) {
  const std::string_view name = signal_name(signal);
  return name.empty() ? Value{std::int64_t{signal}} : word(name);
}

void set_list(Value& object, const char* key, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  Value list = Value::list();
  for (const std::string& text : texts) list.add(text);
  object.set(key, std::move(list));
}

void set_evidence(Value& error, const Failure& failure) {
  if (is_kept_apart(failure)) {
    error.set("evidence_hash", failure.evidence);
    error.set("evidence_size", Value::Number{std::to_string(failure.evidence_size)});
    return;
  }
  const FailureEvidence evidence = evidence_in(failure);
  set_list(error, "mistakes", evidence.mistakes);
  set_list(error, "failing", evidence.failing);
  if (!evidence.out.empty()) error.set("stdout", evidence.out);
  if (!evidence.err.empty()) error.set("stderr", evidence.err);
}

}  // namespace

Value failure_value(const Failure& failure) {
  Value error = Value::map();
  const auto set_number = [&](const char* key, const std::optional<int>& number) {
    if (number) error.set(key, std::int64_t{*number});
  };
  if (!failure.type.empty()) error.set("type", failure.type);
  if (!failure.message.empty()) error.set("message", failure.message);
  if (failure.failure_class) error.set("class", word(name_of(*failure.failure_class)));
  if (failure.kind != FailureKind::none) error.set("kind", word(name_of(failure.kind)));
  set_number("exit_code", failure.exit_code);
  set_number("http_status", failure.http_status);
  if (failure.signal) error.set("signal", signal_value(*failure.signal));
  // A negative duration means nothing here, and must not become something that is not JSON.
  if (failure.retry_after) error.set("retry_after_ms", text::milliseconds(std::max(*failure.retry_after, Duration{0})));
  if (failure.permanent) error.set("permanent", *failure.permanent);
  if (failure.command > 0) error.set("command", std::int64_t{failure.command});
  if (!failure.details.empty()) error.set("details", failure.details);
  set_evidence(error, failure);
  return error;
}

}  // namespace reprise::event
