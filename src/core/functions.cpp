// Durable functions: what their operations are to a run, and how such a run ends.
//
// The plan of a function's run has one step, the function. Each operation that it begins is a step more, recorded by `called`, and from
// then on a step like others: its attempts, waits and signals are those of all runs. What differs is the end. The function is told what has
// ended (Effects::functions), and decides what follows. When it is over, what nobody waits for is dismissed; if it failed or was cancelled,
// its undos come, the newest first, one after the other; and then the run is what the function was.
//
// A cancel does not stop such a run at once: the function is told so where it waits, and what it has not shielded is dismissed.
#include <algorithm>
#include <functional>

#include "base/check.hpp"
#include "core/core.hpp"

namespace reprise::core {

using event::OperationKind;
using event::Record;

namespace {

constexpr std::size_t none = SIZE_MAX;

std::size_t bytes_of(const Operation& operation) {
  return sizeof(Operation) + operation.path.capacity() + operation.name.capacity() + operation.place.capacity() +
         operation.input.bytes.capacity();
}

std::size_t output_bytes_of(const Operation& operation) {
  const Item& item = operation.state.one;
  return (item.output != nullptr ? sizeof(Payload) + item.output->bytes.capacity() : 0) +
         (item.trouble != nullptr ? sizeof(Trouble) + item.trouble->failure.message.capacity() : 0);
}

// Forgotten: nothing but its number is left.
bool is_gone(const Operation& operation) { return operation.path.empty(); }

bool is_told(const Operation& operation) {
  return operation.kind != OperationKind::undo && operation.kind != OperationKind::mark;
}

// The newest undo that has not begun.
std::size_t next_undo(const Run& run) {
  for (std::size_t step = run.step_count(); step-- > run.planned_steps();) {
    const Operation& operation = *run.operation(static_cast<std::uint32_t>(step));
    if (operation.kind == OperationKind::undo && operation.state.status == StepStatus::pending) return step;
  }
  return none;
}

// Is it an operation of an earlier turn of the loop at this path? Undos stay until the function is over.
bool is_forgotten(const Operation& operation, std::string_view path) {
  return operation.kind != OperationKind::undo && operation.ended_at != 0 && operation.path.size() > path.size() &&
         operation.path.starts_with(path) && operation.path[path.size()] == '.';
}

}  // namespace

bool is_over(const Run& run) {
  const Item* const item = run.steps[0].touched(0);
  const bool was_never_begun = item == nullptr || item->status == ItemStatus::waiting;
  if (run.function->canceling && was_never_begun) return true;
  return item != nullptr && (item->status == ItemStatus::succeeded || item->status == ItemStatus::failed ||
                             item->status == ItemStatus::canceled);
}

void index_operations(Run& run) {
  FunctionState& function = *run.function;
  function.open.clear();
  function.ended.clear();
  function.bytes = 0;
  for (auto step = static_cast<std::uint32_t>(run.planned_steps()); step < run.step_count(); ++step) {
    const Operation& operation = *run.operation(step);
    function.bytes += bytes_of(operation) + output_bytes_of(operation);
    if (operation.ended_at == 0 && operation.state.status != StepStatus::pending) function.open.push_back(step);
    if (operation.ended_at != 0 && is_told(operation) && !is_gone(operation)) function.ended.push_back(step);
  }
  std::ranges::sort(function.ended, {}, [&](std::uint32_t step) { return run.operation(step)->ended_at; });
}

// ---- what happens ----------------------------------------

bool Core::adds_step(const Run& run, const Record& record) const {
  return record.type == EventType::called && !record.path.empty() && run.function != nullptr &&
         record.step == run.step_count() && plan(record.plan) != nullptr;
}

void Core::apply_called(Run& run, const Record& record) {
  if (run.function == nullptr) return;
  FunctionState& function = *run.function;
  if (record.path.empty()) {  // an undo of before: its turn has come
    if (run.operation(record.step) == nullptr || run.steps[record.step].status != StepStatus::pending) return;
    function.open.push_back(record.step);
    return activate(run, record.step, record.time);
  }
  if (!adds_step(run, record)) return;
  Operation& operation = run.steps.add();
  operation.plan = plan(record.plan);
  operation.kind = record.operation;
  operation.shielded = record.shielded;
  operation.path = record.path;
  operation.name = record.text;
  operation.place = record.place;
  operation.input = Payload::of(record.payload);
  operation.due = record.due;
  operation.called = record.time;
  function.bytes += bytes_of(operation);
  ++run.open_steps;
  if (operation.kind == OperationKind::undo) return;
  if (operation.kind == OperationKind::mark) return end_step(run, record.step, StepStatus::succeeded);
  function.open.push_back(record.step);
  activate(run, record.step, record.time);
}

void Core::operation_ended(Run& run, std::uint32_t step, Operation& operation) {
  FunctionState& function = *run.function;
  operation.ended_at = run.sequence;
  operation.ended = run.last_time;
  std::erase(function.open, step);
  function.bytes += output_bytes_of(operation);
  if (!is_told(operation)) return;
  function.ended.push_back(step);
  if (run.live) announce(run);
}

void Core::apply_dismissed(Run& run, const Record& record) {
  if (run.operation(record.step) == nullptr || is_final(run.steps[record.step].status)) return;
  StepState& state = run.steps[record.step];
  state.for_each_item([&](std::uint32_t index, Item& item) {
    if (item.status == ItemStatus::failed || item.status == ItemStatus::canceled) return;
    item_stopped_running(run, record.step, index, item);
    disarm(item.timer);
    item.status = ItemStatus::canceled;
    ++state.canceled;
  });
  end_step(run, record.step, StepStatus::skipped);
}

// The last steps of the run are gone; what is forgotten before them keeps its number and nothing else.
void Core::apply_continued(Run& run, const Record& record) {
  if (run.function == nullptr) return;
  FunctionState& function = *run.function;
  std::erase_if(function.loops, [&](const auto& loop) {  // those inside of the turns before
    return loop.first.size() > record.path.size() && loop.first.starts_with(record.path) &&
           loop.first[record.path.size()] == '.';
  });
  function.loops.insert_or_assign(std::string{record.path}, LoopTurn{record.items, Payload::of(record.payload)});
  const auto has_gone = [&](std::uint32_t step) { return is_gone(*run.operation(step)); };
  for (auto step = static_cast<std::uint32_t>(run.planned_steps()); step < run.step_count(); ++step) {
    Operation& operation = *run.steps.operation(step);
    if (!is_forgotten(operation, record.path)) continue;
    operation.path = {};
    operation.name = {};
    operation.place = {};
    operation.input = {};
    operation.state.one = Item{};
    operation.state.next = 0;
    operation.state.succeeded = operation.state.failed = operation.state.canceled = 0;
  }
  const auto told = function.ended.begin() + static_cast<std::ptrdiff_t>(std::min(function.told, function.ended.size()));
  function.told = static_cast<std::size_t>(std::count_if(function.ended.begin(), told, std::not_fn(has_gone)));
  std::erase_if(function.ended, has_gone);
  while (run.steps.added() > 0 && has_gone(static_cast<std::uint32_t>(run.step_count() - 1))) run.steps.remove_last();
  function.bytes = 0;
  for (auto step = static_cast<std::uint32_t>(run.planned_steps()); step < run.step_count(); ++step)
    function.bytes += bytes_of(*run.operation(step)) + output_bytes_of(*run.operation(step));
}

void Core::apply_diverged(Run& run, const Record& record) {
  if (run.function == nullptr || run.paused_at != 0) return;
  run.function->divergence = record.text;
  run.status = RunStatus::paused;
  run.paused_at = record.time;
  if (!run.live) return;
  take_timers(run);
  index_outside(run);
}

void Core::apply_function_cancel(Run& run, const Record& record) {
  run.function->canceling = true;
  run.reason = record.reason;
  disarm(run.deadline_timer);
  const bool was_paused = run.paused_at != 0;
  if (!was_paused) return;
  end_pause(run, record.time);
  run.function->divergence.clear();
  if (run.live) index_run(run, record.time);
}

// ---- what the function asks for ----------------------------------------

std::uint32_t Core::called(Run& run, const Call& call, Time now) {
  REPRISE_CHECK(run.function != nullptr && !call.path.empty(), run.number);
  const auto step = static_cast<std::uint32_t>(run.step_count());
  Record record{.type = EventType::called,
                .step = step,
                .due = call.due,
                .plan = call.plan->number,
                .text = call.name,
                .payload = call.input,
                .operation = call.kind,
                .shielded = call.shielded,
                .path = call.path,
                .place = call.place};
  emit(run, record, now);
  deliver_signals(run, now);
  return step;
}

void Core::dismiss(Run& run, std::uint32_t step, Time now) {
  if (run.operation(step) == nullptr || is_final(run.steps[step].status)) return;
  call_off(run, step);
  Record record{.type = EventType::dismissed, .step = step};
  emit(run, record, now);
}

void Core::continued(Run& run, std::string_view path, std::uint32_t turn, const event::PayloadView& state, Time now) {
  Record record{.type = EventType::continued, .items = turn, .payload = state, .path = path};
  emit(run, record, now);
}

void Core::published(Run& run, const event::PayloadView& state, Time now) {
  Record record{.type = EventType::published, .payload = state};
  emit(run, record, now);
}

void Core::diverged(Run& run, std::string_view what, Time now) {
  if (run.has_ended() || run.paused_at != 0) return;
  Record record{.type = EventType::diverged, .text = what};
  emit(run, record, now);
}

void Core::announce(Run& run) {
  if (run.function == nullptr || run.function->is_due || !run.live || run.has_ended()) return;
  run.function->is_due = true;
  effects_.functions.push_back(run.number);
}

Core::Answer Core::resolved(Run& run, std::uint32_t step, const event::PayloadView& value, const Failure* failure,
                            Time now) {
  const Operation* const operation = run.operation(step);
  if (operation == nullptr || operation->kind != OperationKind::promise || operation->ended_at != 0)
    return std::unexpected{Error{ErrorCode::not_found, "nobody waits for this promise any more"}};
  Record record{.type = failure == nullptr ? EventType::completed : EventType::failed, .step = step, .payload = value};
  if (failure != nullptr) {
    record.reason = StopReason::permanent;
    record.failure_class = failure->failure_class.value_or(FailureClass::deterministic);
    record.failure = failure;
  }
  emit(run, record, now);
  settle(run, now);
  return {};
}

// ---- cancel, and the end ----------------------------------------

void Core::cancel_function(Run& run, std::string_view why, StopReason reason, Time now,
                           const event::RequestView& asked) {
  if (run.function->canceling) return;
  Record record{.type = EventType::cancel_requested, .reason = reason, .text = why, .request = asked};
  emit(run, record, now);
  const std::vector<std::uint32_t> open = run.function->open;
  for (const std::uint32_t step : open) {
    const Operation& operation = *run.operation(step);
    if (!operation.shielded && operation.kind != OperationKind::undo) dismiss(run, step, now);
  }
  announce(run);
}

void Core::settle_function(Run& run, Time now) {
  run.finished.clear();
  if (run.has_ended() || !is_over(run)) return;
  const std::vector<std::uint32_t> open = run.function->open;
  for (const std::uint32_t step : open) {
    if (run.operation(step)->kind != OperationKind::undo) dismiss(run, step, now);
  }
  const Item* const own = run.steps[0].touched(0);
  const bool succeeded = own != nullptr && own->status == ItemStatus::succeeded;
  if (!run.function->open.empty()) return;  // an undo is under way
  if (const std::size_t undo = succeeded ? none : next_undo(run); undo != none) {
    Record begins{.type = EventType::called, .step = static_cast<std::uint32_t>(undo)};
    return emit(run, begins, now);
  }
  Record ended{.type = EventType::ended, .status = RunStatus::failed};
  if (succeeded) {
    ended.status = RunStatus::succeeded;
    ++counters_.succeeded;
  } else if (run.function->canceling) {
    ended.status = RunStatus::canceled;
    ended.reason = run.reason;
    ++counters_.canceled;
  } else {
    ++counters_.failed;
  }
  run.finished.clear();
  emit(run, ended, now);
  effects_.ended.push_back(run.number);
}

}  // namespace reprise::core
