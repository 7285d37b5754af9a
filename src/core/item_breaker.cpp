// The circuit of a map's items: after so many failures in a row nothing further of it begins for a while, then a few try.
//
// Items count, not attempts: one that has given up, and one that has succeeded. What has begun goes on, its retries too. All of it is
// state and events: `circuit_opened` says until when nothing begins, and the step's `due` is that time, with its timer; `circuit_half_opened`
// is recorded before the first item that tries, `circuit_closed` when enough of them have succeeded.
#include <algorithm>

#include "core/core.hpp"

namespace reprise::core {

using event::Record;
using Circuit = StepExtra::Circuit;

namespace {

std::uint32_t under_way(const StepState& state) {
  const auto returned = state.map != nullptr ? static_cast<std::uint32_t>(state.map->returned.size()) : 0;
  return state.next - returned - state.succeeded - state.failed - state.canceled;
}

bool has_breaker(const Run& run, std::uint32_t step) { return run.step_plan(step).item_breaker.failures > 0; }

}  // namespace

void close_circuit(Run& run, std::uint32_t step) {
  StepExtra& own = extra_of(run).steps[step];
  if (own.circuit == Circuit::open) run.steps[step].due = 0;
  own = {.reruns = own.reruns, .keeps_dependants = own.keeps_dependants};
}

// As part of apply(): an item has ended for good.
void Core::count_item(Run& run, std::uint32_t step, bool succeeded) {
  if (!has_breaker(run, step)) return;
  StepExtra& own = extra_of(run).steps[step];
  own.failures = succeeded ? 0 : own.failures + 1;
  if (succeeded && own.circuit == Circuit::half_open) ++own.successes;
}

void Core::apply_circuit(Run& run, const Record& record) {
  const bool is_of_items = record.type != EventType::circuit_opened || record.due != 0;
  if (!is_of_items) return;  // the breaker of failures: `failed` says what follows
  StepState& state = run.steps[record.step];
  StepExtra& own = extra_of(run).steps[record.step];
  own.failures = 0;
  own.successes = 0;
  state.due = record.due;
  disarm(state.timer);
  switch (record.type) {
    case EventType::circuit_opened:
      own.circuit = Circuit::open;
      break;
    case EventType::circuit_half_opened:
      own.circuit = Circuit::half_open;
      break;
    default:
      own.circuit = Circuit::closed;
  }
  if (run.live && record.type != EventType::circuit_half_opened) index_step(run, record.step, record.time);
}

// Of those that nobody has touched. Its time is looked at elsewhere, with that of any step whose items do not begin yet.
bool Core::may_begin_item(Run& run, std::uint32_t step, Time now) {
  if (!has_breaker(run, step)) return true;
  const Circuit circuit = run.step_extra(step).circuit;
  if (circuit == Circuit::half_open) return under_way(run.steps[step]) < run.step_plan(step).item_breaker.probes;
  if (circuit == Circuit::closed || run.steps[step].due > now) return true;
  Record record{.type = EventType::circuit_half_opened, .step = step};
  emit(run, record, now);
  return under_way(run.steps[step]) < run.step_plan(step).item_breaker.probes;
}

// Once an item has ended: what its end means for those that have not begun.
void Core::turn_circuit(Run& run, std::uint32_t step, Time now) {
  if (!has_breaker(run, step)) return;
  const StepState& state = run.steps[step];
  if (state.status != StepStatus::active || !state.has_untouched() || is_doomed(run, step)) return;
  const ItemBreaker& rule = run.step_plan(step).item_breaker;
  const StepExtra own = run.step_extra(step);
  const bool fails = own.circuit == Circuit::half_open ? own.failures > 0 : own.failures >= rule.failures;
  if (own.circuit != Circuit::open && fails) {
    Record opened{.type = EventType::circuit_opened,
                  .step = step,
                  .due = std::max<Time>(later(std::max(now, run.last_time), rule.open_for), 1)};
    emit(run, opened, now);
  } else if (own.circuit == Circuit::half_open && own.successes >= rule.successes) {
    Record closed{.type = EventType::circuit_closed, .step = step};
    emit(run, closed, now);
  }
}

}  // namespace reprise::core
