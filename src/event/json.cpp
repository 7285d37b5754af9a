// Events as JSON, for programs that watch: docs/formats/events.md lists the fields.
#include <reprise/event.hpp>

#include <algorithm>
#include <utility>

#include "base/rfc3339.hpp"
#include "text/value.hpp"

namespace reprise {
namespace {

using text::Value;

Value whole(std::uint64_t number) { return Value::Number{std::to_string(number)}; }
Value word(std::string_view name) { return Value{std::string{name}}; }

// A negative duration means nothing here, and must not become something that is not JSON.
Value milliseconds(Duration duration) { return text::milliseconds(std::max(duration, Duration{0})); }

Value signal_value(int signal) {
  const std::string_view name = signal_name(signal);
  return name.empty() ? Value{std::int64_t{signal}} : word(name);
}

// What is not known is left out.
Value error_value(const Failure& failure) {
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
  if (failure.retry_after) error.set("retry_after_ms", milliseconds(*failure.retry_after));
  if (failure.permanent) error.set("permanent", *failure.permanent);
  if (!failure.details.empty()) error.set("details", failure.details);
  return error;
}

// A large payload is in the store; the event has its hash.
void set_payload(Value& object, const std::string& name, const Event& event) {
  if (event.output_size > event.output.size()) {
    object.set(name + "_hash", event.output);
    object.set(name + "_size", whole(event.output_size));
  } else {
    object.set(name, event.output);
  }
}

void set_rule(Value& object, const Event& event) {
  if (event.rule >= 0) object.set("rule", std::int64_t{event.rule});
}

void set_stop_reason(Value& object, const Event& event) {
  if (event.reason != StopReason::none) object.set("stop_reason", word(name_of(event.reason)));
}

void set_totals(Value& object, const Event& event) {
  object.set("total_attempts", whole(event.total_attempts));
  object.set("total_elapsed_ms", milliseconds(event.total_elapsed));
  set_stop_reason(object, event);
}

void set_submitted(Value& object, const Event& event) {
  if (!event.text.empty()) object.set("key", event.text);
  if (event.due != WallTime{}) object.set("due_at", base::to_rfc3339(event.due));
  set_payload(object, "input", event);
}

void set_started(Value& object, const Event& event) {
  object.set("is_retry", event.is_retry);
  if (!event.failure) return;
  object.set("original_error", error_value(*event.failure));
  object.set("retry_delay_ms", milliseconds(event.delay));
}

void set_failed(Value& object, const Event& event) {
  object.set("will_retry", event.will_retry);
  if (event.precondition) object.set("phase", word("precondition"));
  if (event.lost) object.set("lost", true);
  object.set("error", error_value(event.failure.value_or(Failure{})));
  set_rule(object, event);
  if (event.will_retry) return;
  object.set("reason", word(name_of(event.reason)));
  set_totals(object, event);
}

void set_retrying(Value& object, const Event& event) {
  object.set("next_attempt", whole(event.next_attempt));
  object.set("delay_ms", milliseconds(event.delay));
  object.set("due_at", base::to_rfc3339(event.due));
  if (event.failure && event.failure->failure_class) object.set("reason", word(name_of(*event.failure->failure_class)));
  set_rule(object, event);
  object.set("nominal_ms", milliseconds(event.range.nominal));
  object.set("min_ms", milliseconds(event.range.min));
  object.set("max_ms", milliseconds(event.range.max));
  if (event.floored) object.set("floored", true);
}

void set_fields(Value& object, const Event& event) {
  switch (event.type) {
    case EventType::submitted:
      return set_submitted(object, event);
    case EventType::prepared:
      return object.set("items", whole(event.items));
    case EventType::started:
      return set_started(object, event);
    case EventType::completed:
      set_payload(object, "output", event);
      if (!event.text.empty()) object.set("whole_output", event.text);
      return set_totals(object, event);
    case EventType::failed:
      return set_failed(object, event);
    case EventType::retrying:
      return set_retrying(object, event);
    case EventType::progress:
      return object.set("text", event.text);
    case EventType::cancel_requested:
      if (!event.text.empty()) object.set("why", event.text);
      return set_stop_reason(object, event);
    case EventType::signaled:
      object.set("name", event.text);
      return set_payload(object, "input", event);
    case EventType::fallback:
      if (!event.text.empty()) object.set("by", event.text);
      return;
    case EventType::reopened:
      if (!event.text.empty()) object.set("only_step", event.text);
      return;
    case EventType::finishing:
      return object.set("status", word(name_of(event.status)));
    case EventType::handed_over:
      if (!event.text.empty()) object.set("to_run", event.text);
      if (event.due != WallTime{}) object.set("due_at", base::to_rfc3339(event.due));
      return;
    case EventType::extended:
      return object.set("due_at", base::to_rfc3339(event.due));
    case EventType::ended:
      object.set("status", word(name_of(event.status)));
      object.set("total_elapsed_ms", milliseconds(event.total_elapsed));
      return set_stop_reason(object, event);
    default:
      return;
  }
}

}  // namespace

std::string to_json(const Event& event) {
  Value object = Value::map();
  const std::string_view name = name_of(event.type);
  object.set("type", word(name));
  if (!event_type_named(name)) object.set("type_number", std::int64_t{static_cast<std::uint8_t>(event.type)});
  object.set("sequence", whole(event.sequence));
  object.set("time", base::to_rfc3339(event.time));
  object.set("run", to_string(event.run));
  if (!event.step.empty()) {
    object.set("step", event.step);
    object.set("item", whole(event.item));
  }
  if (event.attempt > 0) object.set("attempt", whole(event.attempt));
  set_fields(object, event);
  return text::to_json(object);
}

}  // namespace reprise
