// Events as JSON, for programs that watch: docs/formats/events.md lists the fields.
#include <reprise/event.hpp>

#include <algorithm>
#include <utility>

#include "base/rfc3339.hpp"
#include "event/attributes.hpp"
#include "event/failure_json.hpp"
#include "policy/verdict.hpp"
#include "text/value.hpp"

namespace reprise {
namespace {

using event::failure_value;
using text::Value;

Value whole(std::uint64_t number) { return Value::Number{std::to_string(number)}; }
Value word(std::string_view name) { return Value{std::string{name}}; }

// A negative duration means nothing here, and must not become something that is not JSON.
Value milliseconds(Duration duration) { return text::milliseconds(std::max(duration, Duration{0})); }

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

// Only where not every attempt counts towards max_attempts.
void set_counts(Value& object, const Event& event) {
  if (event.lost_attempts == 0 && event.interrupted_attempts == 0) return;
  object.set("attempts_used", whole(event.used_attempts));
  if (event.interrupted_attempts > 0) object.set("attempts_interrupted", whole(event.interrupted_attempts));
  if (event.lost_attempts > 0) object.set("attempts_lost", whole(event.lost_attempts));
}

void set_totals(Value& object, const Event& event) {
  object.set("total_attempts", whole(event.total_attempts));
  object.set("total_elapsed_ms", milliseconds(event.total_elapsed));
  set_stop_reason(object, event);
}

void set_submitted(Value& object, const Event& event) {
  if (!event.text.empty()) object.set("key", event.text);
  if (event.due != WallTime{}) object.set("due_at", base::to_rfc3339(event.due));
  if (event.items > 0) object.set("items", whole(event.items));
  if (event.attributes) event::set_attributes(object, *event.attributes);
  set_payload(object, "input", event);
}

// `why` of a cancel stands there in any case.
void set_request(Value& object, const Event& event) {
  if (!event.request) return;
  const ChangeRequest& request = *event.request;
  if (!request.by.empty()) object.set("by", request.by);
  if (!request.why.empty() && event.type != EventType::cancel_requested) object.set("why", request.why);
  object.set("request", request.id);
}

void set_started(Value& object, const Event& event) {
  set_counts(object, event);
  if (!event.failure) return;
  object.set("original_error", failure_value(*event.failure));
  object.set("retry_delay_ms", milliseconds(event.delay));
}

void set_failed(Value& object, const Event& event) {
  object.set("will_retry", event.will_retry);
  if (event.precondition) object.set("phase", word("precondition"));
  if (event.lost) object.set("lost", true);
  if (event.cut) object.set("cut", word("deadline"));
  object.set("error", failure_value(event.failure.value_or(Failure{})));
  set_rule(object, event);
  set_counts(object, event);
  if (event.will_retry) return;
  object.set("reason", word(name_of(event.reason)));
  set_totals(object, event);
}

// Stopped work has no failure of its own: what stopped it is an error of the class `canceled`, where it is known.
void set_interrupted(Value& object, const Event& event) {
  object.set("class", word(name_of(FailureClass::canceled)));
  set_counts(object, event);
  if (!event.failure) return;
  Failure how = *event.failure;
  how.failure_class = FailureClass::canceled;
  how.kind = FailureKind::none;
  object.set("error", failure_value(how));
}

void set_retrying(Value& object, const Event& event) {
  object.set("next_attempt", whole(event.next_attempt));
  object.set("delay_ms", milliseconds(event.delay));
  object.set("due_at", base::to_rfc3339(event.due));
  if (event.lost) {
    object.set("reason", word("lost"));
  } else if (event.failure && policy::is_verdict(*event.failure)) {
    object.set("reason", word("not_completed"));
  } else if (event.failure && event.failure->failure_class) {
    object.set("reason", word(name_of(*event.failure->failure_class)));
  }
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
      set_counts(object, event);
      return set_totals(object, event);
    case EventType::failed:
      return set_failed(object, event);
    case EventType::retrying:
      return set_retrying(object, event);
    case EventType::interrupted:
      return set_interrupted(object, event);
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
      if (!event.only.empty()) object.set("only", event.only);
      if (event.only_item) object.set("only_item", whole(*event.only_item));
      if (event.resumes) object.set("resumes", true);
      if (event.only_this) object.set("only_this", true);
      return;
    case EventType::revisited:
      if (event.on_request) object.set("on_request", true);
      if (event.only_this) object.set("only_this", true);
      return;
    case EventType::circuit_opened:
      if (event.due != WallTime{}) object.set("due_at", base::to_rfc3339(event.due));
      return;
    case EventType::skipped:
      if (event.reason != StopReason::none) object.set("reason", word(name_of(event.reason)));
      return;
    case EventType::finishing:
      return object.set("status", word(name_of(event.status)));
    case EventType::handed_over:
      if (!event.text.empty()) object.set("to_run", event.text);
      if (event.due != WallTime{}) object.set("due_at", base::to_rfc3339(event.due));
      return;
    case EventType::extended:
      return object.set("due_at", base::to_rfc3339(event.due));
    case EventType::called:
      if (!event.operation.empty()) object.set("operation", event.operation);
      if (!event.text.empty()) object.set("path", event.text);
      if (!event.place.empty()) object.set("place", event.place);
      if (event.due != WallTime{}) object.set("due_at", base::to_rfc3339(event.due));
      return set_payload(object, "input", event);
    case EventType::continued:
      object.set("path", event.text);
      object.set("turn", whole(event.items));
      return set_payload(object, "state", event);
    case EventType::published:
      return set_payload(object, "state", event);
    case EventType::diverged:
      return object.set("text", event.text);
    case EventType::reserved:
      if (event.withdrawn) object.set("withdrawn", true);
      return;
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
  if (event.attempt > 0) {
    object.set("attempt", whole(event.attempt));
    object.set("is_retry", event.is_retry);
    if (!event.actor_type.empty()) object.set("actor_type", event.actor_type);
  }
  set_fields(object, event);
  set_request(object, event);
  if (event.replayed) object.set("replayed", true);
  return text::to_json(object);
}

}  // namespace reprise
