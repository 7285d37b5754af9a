// apply(): how each event changes the state of a run. Nothing else does.
#include <algorithm>
#include <ranges>

#include <reprise/classify.hpp>

#include "base/check.hpp"
#include "core/core.hpp"

namespace reprise::core {

using event::Record;

Extra& extra_of(Run& run) {
  if (run.extra == nullptr) run.extra = std::make_unique<Extra>();
  return *run.extra;
}

namespace {

bool is_tracked(const StepPlan& plan, FailureClass failure_class) {
  return plan.breaker_limit > 0 && (plan.breaker_classes >> static_cast<unsigned>(failure_class) & 1U) != 0;
}

void count_failure(Run& run, std::uint32_t step, FailureClass failure_class, const Failure& failure) {
  if (!is_tracked(run.step_plan(step), failure_class)) return;
  const std::uint64_t print = fingerprint_of(run, step, failure_class, failure);
  auto& counts = extra_of(run).breakers;
  const auto found = std::ranges::find_if(
      counts, [&](const Extra::Count& count) { return count.fingerprint == print && count.step == step; });
  if (found != counts.end()) {
    ++found->count;
  } else {
    counts.push_back({print, step, 1});
  }
}

void reset_breaker(Run& run, std::uint32_t step) {
  if (run.extra == nullptr) return;
  std::erase_if(run.extra->breakers, [&](const Extra::Count& count) { return count.step == step; });
}

Trouble& trouble_of(Item& item) {
  if (item.trouble == nullptr) item.trouble = std::make_unique<Trouble>();
  return *item.trouble;
}

// It has succeeded: what is left of its trouble is which of its attempts count.
void forget_failure(Item& item) {
  if (item.trouble == nullptr) return;
  const Trouble before = std::move(*item.trouble);
  item.trouble.reset();
  if (before.lost + before.interrupted + before.earlier == 0) return;
  Trouble& counts = trouble_of(item);
  counts.lost = before.lost;
  counts.interrupted = before.interrupted;
  counts.earlier = before.earlier;
}

// An attempt that did not end by itself is not used.
void count_attempt(Trouble& trouble, const Record& failed, bool was_reserved) {
  if (failed.lost) {
    ++trouble.lost;
    if (!was_reserved) ++trouble.lost_in_a_row;  // it may never have begun, and costs nothing
    return;
  }
  trouble.lost_in_a_row = 0;
  if (failed.reason == StopReason::canceled) ++trouble.interrupted;
}

// What the work itself said is worth more than that it was lost or stopped afterwards: the next attempt is told the former.
void take_failure(Trouble& trouble, const Record& failed, bool own_failures_only) {
  using Cause = Trouble::Cause;
  const bool is_own = !own_failures_only || !(failed.lost || failed.reason == StopReason::canceled);
  if (!is_own && !failed.lost && trouble.cause != Cause::none) return;
  if (!is_own && trouble.cause == Cause::own) return;
  trouble.cause = is_own ? Cause::own : Cause::loss;
  trouble.failure = *failed.failure;
  if (!trouble.failure.failure_class) trouble.failure.failure_class = failed.failure_class;
}

// An item that is retried on request. A number names one attempt for ever: they go on, and only the count begins again. What had failed
// is still to be seen, if it is given up before it has begun.
void begin_anew(Item& item, bool keeps_numbers) {
  const Item before = std::move(item);
  item = Item{};
  if (!keeps_numbers || before.attempt == 0) return;
  item.attempt = before.attempt;
  Trouble& trouble = trouble_of(item);
  trouble.earlier = before.attempt;
  if (before.trouble != nullptr) trouble.failure = std::move(before.trouble->failure);
}

// Numbers below it that were given in earlier visits are not those of this one.
void take_number(Item& item, std::uint32_t attempt) {
  if (attempt > item.attempt + 1) trouble_of(item).earlier += attempt - item.attempt - 1;
  item.attempt = attempt;
}

// The breaker counts what the work itself has done wrong.
bool is_counted(const Run& run, const Record& failed, bool had_begun) {
  if (!run.judges_own_failures_only()) return true;
  const bool is_foreign = failed.lost || failed.cut || failed.reason == StopReason::canceled;
  return !is_foreign && (had_begun || failed.precondition);
}

void consume_signal(Run& run, std::string_view name) {
  if (run.extra == nullptr) return;
  auto& signals = run.extra->signals;
  const auto found = std::ranges::find(signals, name, &Signal::name);
  if (found != signals.end()) signals.erase(found);
}

void end_preparing(Run& run, StepState& state) {
  state.status = StepStatus::active;
  if (!state.queued) return;  // nobody was asked: this is a replay
  state.queued = false;
  REPRISE_CHECK(run.preparing > 0, run.number);
  --run.preparing;
}

// When a step that waits has waited long enough; 0 = never.
Time end_of_wait(const StepPlan& plan, Time begin) {
  if (plan.wait_until != 0) return std::max(plan.wait_until, begin);
  return plan.kind == StepKind::wait || plan.wait > 0 ? later(begin, plan.wait) : 0;
}

// What is to be tried again: everything, a step, an item, or several.
Chosen chosen_by(const Record& reopened) {
  if (!reopened.text.empty()) return chosen_in(reopened.text).value_or(Chosen{});
  if (reopened.from_step == 0) return {};
  ChosenStep only{reopened.from_step - 1};
  if (reopened.items > 0) only.items = {{reopened.items - 1, reopened.items - 1}};
  return {{std::move(only)}};
}

void set_items(StepState& state, std::uint32_t items, bool is_list) {
  state.items = items;
  if (is_list) {
    state.map = std::make_unique<Map>();
  } else {
    state.map.reset();
  }
}

}  // namespace

namespace {

std::uint64_t tolerated(const Run& run, std::uint32_t step) {
  const StepPlan& plan = run.step_plan(step);
  const std::uint64_t share = std::uint64_t{run.steps[step].items} * plan.tolerate_millionths / 1'000'000;
  return std::max<std::uint64_t>(plan.tolerate, share);
}

// Is nothing left of what somebody had tried again in a step that has failed for other reasons?
bool has_nothing_waiting(StepState& state) {
  bool waits = false;
  state.for_each_item([&](std::uint32_t, const Item& item) { waits = waits || item.status == ItemStatus::waiting; });
  return !waits;
}

}  // namespace

bool is_doomed(const Run& run, std::uint32_t step) {
  const StepState& state = run.steps[step];
  const bool all_failed = state.map != nullptr && state.items > 0 && state.failed == state.items;
  return state.failed > tolerated(run, step) || (state.circuit_open && state.succeeded < state.items) ||
         (all_failed && run.step_plan(step).needs_success);
}

std::uint64_t fingerprint_of(const Run& run, std::uint32_t step, FailureClass failure_class, const Failure& failure) {
  return fingerprint(*run.step_plan(step).name, failure_class, failure,
                     run.plan->plan->has_first_rules() ? FingerprintRules::by_message : FingerprintRules::by_cause);
}

bool is_given_up(const Run& run, std::uint32_t step) {
  return run.steps[step].failed - run.steps[step].excused > tolerated(run, step);
}

// Has this step ended in a way that the steps which need it may start?
bool lets_go_on(const Run& run, std::uint32_t step) {
  const OnFailure rule = run.step_plan(step).on_failure;
  const StepStatus status = run.steps[step].status;
  return status == StepStatus::succeeded || (status == StepStatus::failed && rule == OnFailure::proceed);
}

std::uint32_t breaker_count(const Run& run, std::uint32_t step, FailureClass failure_class, const Failure& failure) {
  if (!is_tracked(run.step_plan(step), failure_class)) return 0;
  if (run.extra == nullptr) return 1;
  const std::uint64_t print = fingerprint_of(run, step, failure_class, failure);
  for (const Extra::Count& count : run.extra->breakers) {
    if (count.fingerprint == print && count.step == step) return count.count + 1;
  }
  return 1;
}

std::vector<std::uint32_t> steps_from(const Plan& plan, std::uint32_t step) {
  std::vector<bool> reached(plan.steps.size(), false);
  std::vector<std::uint32_t> open{step};
  reached[step] = true;
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    for (const std::uint32_t next : plan.steps[at].dependants) {
      if (!reached[next]) open.push_back(next);
      reached[next] = true;
    }
  }
  std::vector<std::uint32_t> steps;
  for (std::uint32_t index = 0; index < reached.size(); ++index) {
    if (reached[index]) steps.push_back(index);
  }
  return steps;
}

void Core::apply(Run& run, const Record& record) {
  run.sequence = static_cast<std::uint32_t>(record.sequence);
  run.last_time = record.time;
  switch (record.type) {
    case EventType::submitted:
      return apply_submitted(run, record);
    case EventType::prepared:
      return apply_prepared(run, record);
    case EventType::reserved:
      return apply_reserved(run, record);
    case EventType::started:
      return apply_started(run, record);
    case EventType::completed:
      return apply_completed(run, record);
    case EventType::failed:
      return apply_failed(run, record);
    case EventType::retrying:
      return apply_retrying(run, record);
    case EventType::interrupted:
      return apply_interrupted(run, record);
    case EventType::handed_over:
      return apply_handed_over(run, record);
    case EventType::handed_back:
      return apply_handed_back(run, record);
    case EventType::extended:
      return apply_extended(run, record);
    case EventType::skipped:
      return apply_skipped(run, record);
    case EventType::unreachable:
      return end_step(run, record.step, StepStatus::unreachable);
    case EventType::dead_lettered:
      run.steps[record.step].item(record.item).dead_letter = true;
      return;
    case EventType::dropped:
      run.steps[record.step].item(record.item).dead_letter = false;
      return;
    case EventType::fallback:
      return apply_fallback(run, record);
    case EventType::finishing:
      return apply_finishing(run, record);
    case EventType::cancel_requested:
      return apply_cancel(run, record);
    case EventType::paused:
      run.status = RunStatus::paused;
      run.paused_at = record.time;
      if (run.live) take_timers(run);
      if (run.live) index_outside(run);  // what has begun goes on
      return;
    case EventType::resumed:
      return apply_resumed(run, record);
    case EventType::signaled:
      extra_of(run).signals.push_back({std::string{record.text}, Payload::of(record.payload)});
      return;
    case EventType::revisited:
      return apply_revisited(run, record);
    case EventType::reopened:
      return apply_reopened(run, record);
    case EventType::ended:
      run.status = record.status;
      run.reason = record.reason;
      run.ended = record.time;
      if (run.live) take_timers(run);
      return;
    case EventType::circuit_opened:
    case EventType::circuit_half_opened:
    case EventType::circuit_closed:
      return apply_circuit(run, record);
    case EventType::called:
      return apply_called(run, record);
    case EventType::dismissed:
      return apply_dismissed(run, record);
    case EventType::continued:
      return apply_continued(run, record);
    case EventType::diverged:
      return apply_diverged(run, record);
    case EventType::published:
      if (run.function != nullptr) run.function->published = Payload::of(record.payload);
      return;
    case EventType::recovered:
    case EventType::rework:
    case EventType::progress:
      return;  // told, and without consequences
  }
}

void Core::apply_submitted(Run& run, const Record& record) {
  run.created = record.time;
  run.due = record.due;
  run.priority = std::min<std::uint8_t>(record.priority, priorities - 1);
  run.key = record.text;
  run.input = Payload::of(record.payload);
  run.plan = plan(record.plan);
  if (run.facts == nullptr && !record.facts.empty()) run.facts = facts_.read(record.facts);  // a replay
  const std::size_t count = run.planned_steps();
  run.steps.create(count);
  if (run.plan->plan->is_function) run.function = std::make_unique<FunctionState>();
  run.open_steps = static_cast<std::uint32_t>(count);
  for (std::uint32_t step = 0; step < count; ++step) {
    run.steps[step].needs_left = static_cast<std::uint32_t>(run.step_plan(step).needs.size());
  }
  if (record.items > 0) set_items(run.steps[0], record.items, true);
  for (std::uint32_t step = 0; step < count; ++step) {
    if (run.steps[step].needs_left == 0 && !run.step_plan(step).runs_finally) activate(run, step, record.time);
  }
}

namespace {

void keep_numbers(Run& run, std::uint32_t step) {
  run.steps[step].for_each_item([&](std::uint32_t index, const Item& item) {
    if (item.attempt == 0) return;
    std::vector<std::uint32_t>& attempts = extra_of(run).attempts[step];
    if (attempts.size() <= index) attempts.resize(index + 1);
    attempts[index] = std::max(attempts[index], item.attempt);
  });
}

}  // namespace

void Core::activate(Run& run, std::uint32_t step, Time time) {
  StepState& state = run.steps[step];
  const StepPlan& plan = run.step_plan(step);
  ++state.visits;
  state.activated = std::max(time, run.due);
  state.status = plan.for_each || plan.prepares ? StepStatus::preparing : StepStatus::active;
  state.due = run.due > time ? run.due : 0;
  if (plan.kind != StepKind::call) state.due = end_of_wait(plan, state.activated);
  if (const Operation* const operation = run.operation(step)) state.due = operation->due;
  if (run.live) index_step(run, step, time);
}

// Back to where no one has visited it, except for the count of visits and the numbers that were given.
void Core::deactivate(Run& run, std::uint32_t step) {
  StepState& state = run.steps[step];
  if (is_final(state.status)) ++run.open_steps;
  state.for_each_item([&](std::uint32_t index, Item& item) {
    item_stopped_running(run, step, index, item);
    disarm(item.timer);
  });
  disarm(state.timer);
  if (state.status == StepStatus::preparing && state.queued) --run.preparing;
  const std::uint32_t visits = state.visits;
  const bool was_given_items = !run.step_plan(step).for_each && state.map != nullptr;
  const std::uint32_t items = state.items;
  const bool circuit_open = state.circuit_open;
  if (run.has_visits_that_go_on()) keep_numbers(run, step);
  state = StepState{};
  if (run.extra != nullptr) {
    if (const auto known = run.extra->steps.find(step); known != run.extra->steps.end())
      known->second = {.reruns = known->second.reruns, .keeps_dependants = known->second.keeps_dependants};
  }
  state.visits = visits;
  state.circuit_open = circuit_open;
  if (was_given_items) set_items(state, items, true);
}

void Core::take_place(Run& run, std::uint32_t step) {
  ++queues_[run.queue_of(step)].taken;
  ++counters_.running;
}

void Core::leave_place(Run& run, std::uint32_t step) {
  Queue& queue = queues_[run.queue_of(step)];
  REPRISE_CHECK(queue.taken > 0 && counters_.running > 0, run.number);
  --queue.taken;
  --counters_.running;
}

// It has begun, or will not.
void Core::item_left_reserved(Run& run, std::uint32_t step) {
  REPRISE_CHECK(run.steps[step].reserved > 0, run.number);
  --run.steps[step].reserved;
  if (!run.live) return;
  Queue& queue = queues_[run.queue_of(step)];
  REPRISE_CHECK(run.reserved > 0 && counters_.reserved > 0 && queue.taken > 0, run.number);
  --run.reserved;
  --counters_.reserved;
  --queue.taken;
}

void Core::item_stopped_running(Run& run, std::uint32_t step, std::uint32_t index, Item& item) {
  if (item.status == ItemStatus::reserved) {
    item.token = 0;
    return item_left_reserved(run, step);
  }
  const bool was_outside = item.status == ItemStatus::outside;
  if (item.status != ItemStatus::running && !was_outside) return;
  REPRISE_CHECK(run.steps[step].running > 0, run.number);
  if (was_outside && run.live) effects_.settled.push_back({run.number, step, index, item.token});
  item.token = 0;
  --run.steps[step].running;
  if (was_outside) run.extra->outside.erase({step, index});
  if (!run.live) return;
  REPRISE_CHECK(run.running > 0 && (!was_outside || run.outside > 0), run.number);
  --run.running;
  if (was_outside) {
    --run.outside;
  } else {
    leave_place(run, step);
  }
}

void Core::end_step(Run& run, std::uint32_t step, StepStatus status) {
  StepState& state = run.steps[step];
  state.status = status;
  --run.open_steps;
  disarm(state.timer);
  if (Operation* const operation = run.steps.operation(step)) operation_ended(run, step, *operation);
}

void Core::release_dependants(Run& run, std::uint32_t step, Time time) {
  for (const std::uint32_t dependant : run.step_plan(step).dependants) {
    StepState& state = run.steps[dependant];
    if (state.needs_left > 0 && --state.needs_left == 0 && state.status == StepStatus::pending) {
      activate(run, dependant, time);
    }
  }
}

void Core::check_step_end(Run& run, std::uint32_t step, Time time) {
  StepState& state = run.steps[step];
  if (state.status != StepStatus::active || state.taken() > 0 || state.canceled > 0) return;
  const bool doomed = is_doomed(run, step);
  // A step whose circuit is open is over when nothing of it is left that may still start: the last resorts of its items.
  const bool is_over = is_given_up(run, step) || (doomed && has_nothing_waiting(state));
  if (!is_over && state.succeeded + state.failed < state.items) return;
  end_step(run, step, doomed ? StepStatus::failed : StepStatus::succeeded);
  run.finished.push_back(step);
  if (lets_go_on(run, step)) release_dependants(run, step, time);
}

// Its items could not even be counted: nothing that it tolerates.
void Core::fail_step(Run& run, std::uint32_t step, Time time) {
  end_step(run, step, StepStatus::failed);
  run.finished.push_back(step);
  if (lets_go_on(run, step)) release_dependants(run, step, time);
}

void Core::apply_prepared(Run& run, const Record& record) {
  StepState& state = run.steps[record.step];
  const StepPlan& plan = run.step_plan(record.step);
  end_preparing(run, state);
  if (plan.for_each) {
    set_items(state, record.items, true);
    state.map->list = Payload::of(record.payload);
  } else if (plan.kind != StepKind::call) {
    state.due = end_of_wait(plan, std::max(record.time, run.due));
  }
  apply_item_policies(run, record);
  if (run.live) index_step(run, record.step, record.time);
  check_step_end(run, record.step, record.time);
}

void Core::apply_item_policies(Run& run, const Record& record) {
  if (run.extra != nullptr) run.extra->item_policies.erase(record.step);
  if (record.policies.empty()) return;
  auto read = read_item_policies(record.policies, facts_, run.plan->plan->type_tree.get());
  if (read != nullptr) extra_of(run).item_policies.emplace(record.step, std::move(read));
}

// Nothing but a promise of a place: clocks begin with `started`. Taken back, it is as if it had never been.
void Core::apply_reserved(Run& run, const Record& record) {
  StepState& state = run.steps[record.step];
  if (record.withdrawn) {
    const Item* const item = state.touched(record.item);
    if (item == nullptr || item->status != ItemStatus::reserved) return;  // damaged: nothing of it fits
    item_left_reserved(run, record.step);
    state.return_item(record.item);
    return check_step_end(run, record.step, record.time);  // it may have been the last that a failed step waited for
  }
  state.touch(record.item);
  Item& item = state.item(record.item);
  if (item.status != ItemStatus::untouched) return;
  item.status = ItemStatus::reserved;
  take_number(item, record.attempt);
  item.token = static_cast<std::uint32_t>(record.sequence);
  ++state.reserved;
  if (!run.live) return;
  ++run.reserved;
  ++counters_.reserved;
  ++queues_[run.queue_of(record.step)].taken;
}

void Core::apply_started(Run& run, const Record& record) {
  StepState& state = run.steps[record.step];
  state.touch(record.item);
  Item& item = state.item(record.item);
  disarm(item.timer);
  const bool was_reserved = item.status == ItemStatus::reserved;  // it keeps its token
  if (was_reserved) item_left_reserved(run, record.step);
  item.status = ItemStatus::running;
  item.due = 0;
  take_number(item, record.attempt);
  if (!was_reserved) item.token = static_cast<std::uint32_t>(record.sequence);
  if (item.first_started == 0) item.first_started = record.time;
  ++state.running;
  if (!run.live) return;
  ++run.running;
  take_place(run, record.step);
}

void Core::apply_handed_over(Run& run, const Record& record) {
  Item& item = run.steps[record.step].item(record.item);
  if (item.status != ItemStatus::running && item.status != ItemStatus::outside) return;  // damaged: nothing of it fits
  const bool leaves = item.status == ItemStatus::running;
  item.status = ItemStatus::outside;
  item.due = record.due;
  Extra& extra = extra_of(run);
  extra.outside.insert_or_assign({record.step, record.item},
                                 Outside{.run = record.other, .returns = record.returns, .reopens = record.reopens});
  if (record.failure != nullptr) extra.overdue.insert_or_assign(record.step, *record.failure);
  if (!record.text.empty()) extra.callback = record.text;
  if (!run.live) return;
  if (leaves) {
    ++run.outside;
    leave_place(run, record.step);
  }
  disarm(item.timer);
  index_outside(run, record.step, record.item, item);
}

void Core::apply_handed_back(Run& run, const Record& record) {
  Item& item = run.steps[record.step].item(record.item);
  if (item.status != ItemStatus::outside) return;
  item.status = ItemStatus::running;  // `due` still says when its time is over
  run.extra->outside.erase({record.step, record.item});
  disarm(item.timer);
  if (!run.live) return;
  REPRISE_CHECK(run.outside > 0, run.number);
  --run.outside;
  take_place(run, record.step);
}

void Core::apply_extended(Run& run, const Record& record) {
  Item& item = run.steps[record.step].item(record.item);
  if (item.status != ItemStatus::outside) return;
  item.due = record.due;
  disarm(item.timer);
  if (run.live) index_outside(run, record.step, record.item, item);
}

void Core::apply_completed(Run& run, const Record& record) {
  StepState& state = run.steps[record.step];
  state.touch(record.item);
  Item& item = state.item(record.item);
  item_stopped_running(run, record.step, record.item, item);
  disarm(item.timer);
  item.status = ItemStatus::succeeded;
  forget_failure(item);
  if (record.payload.size > 0) item.output = std::make_unique<Payload>(Payload::of(record.payload));
  ++state.succeeded;
  reset_breaker(run, record.step);
  count_item(run, record.step, true);
  if (run.waits_for_signal(record.step)) consume_signal(run, run.signal_of(record.step));
  check_step_end(run, record.step, record.time);
}

void Core::apply_failed(Run& run, const Record& record) {
  StepState& state = run.steps[record.step];
  state.touch(record.item);
  if (state.status == StepStatus::preparing) end_preparing(run, state);  // its items could not even be counted
  Item& item = state.item(record.item);
  const bool had_begun = item.token != 0;
  const bool was_reserved = item.status == ItemStatus::reserved;
  item_stopped_running(run, record.step, record.item, item);
  disarm(item.timer);
  Trouble& trouble = trouble_of(item);
  if (run.judges_own_failures_only() && had_begun) count_attempt(trouble, record, was_reserved);
  if (record.failure != nullptr) {
    take_failure(trouble, record, run.judges_own_failures_only());
    if (is_counted(run, record, had_begun)) count_failure(run, record.step, record.failure_class, *record.failure);
  }
  // What ends its last resort for now is not why the main way was given up, and that is what the end will tell.
  const bool keeps_reason =
      item.stage != stage::main && (record.reason == StopReason::canceled || (record.lost && record.will_retry));
  if (!keeps_reason) trouble.reason = record.reason;
  item.due = record.time;
  if (record.reason == StopReason::circuit_open && run.judges_own_failures_only()) state.circuit_open = true;
  if (record.will_retry) {
    item.status = ItemStatus::waiting;  // `retrying` follows and says until when
  } else if (record.reason == StopReason::canceled) {
    item.status = ItemStatus::canceled;
    ++state.canceled;
  } else {
    item.status = ItemStatus::failed;
    ++state.failed;
    if (is_counted(run, record, had_begun)) count_item(run, record.step, false);
  }
  const bool has_no_items = run.step_plan(record.step).for_each && state.map == nullptr;
  if (has_no_items && state.status == StepStatus::active) return fail_step(run, record.step, record.time);
  check_step_end(run, record.step, record.time);
}

// The whole step, or an item of it that waits for an attempt it will not get.
void Core::apply_skipped(Run& run, const Record& record) {
  StepState& state = run.steps[record.step];
  if (record.attempt == 0) {
    if (state.status == StepStatus::preparing) end_preparing(run, state);
    return end_step(run, record.step, StepStatus::skipped);
  }
  Item& item = state.item(record.item);
  if (item.status != ItemStatus::waiting) return;  // damaged: nothing of it fits
  disarm(item.timer);
  item.status = ItemStatus::failed;
  item.due = record.time;
  trouble_of(item).reason = record.reason;
  ++state.failed;
  check_step_end(run, record.step, record.time);
}

void Core::apply_retrying(Run& run, const Record& record) {
  Item& item = run.steps[record.step].item(record.item);
  item.status = ItemStatus::waiting;
  item.due = record.due;
  Trouble& trouble = trouble_of(item);
  trouble.wait = record.delay;
  if (trouble.lost_in_a_row == 0) {
    trouble.waited = later(trouble.waited, record.delay);
    trouble.previous_delay = record.delay;
  }
  if (run.live) index_item(run, record.step, record.item, item, record.time);
}

void Core::apply_interrupted(Run& run, const Record& record) {
  StepState& state = run.steps[record.step];
  Item& item = state.item(record.item);
  if (item.token != 0) {  // a wait, on the other hand, goes on when the run is resumed
    item.due = record.time;
    if (run.judges_own_failures_only()) {
      Trouble& trouble = trouble_of(item);
      ++trouble.interrupted;
      trouble.wait = 0;
    }
  }
  item_stopped_running(run, record.step, record.item, item);
  disarm(item.timer);
  if (run.cancel_requested) {
    item.status = ItemStatus::canceled;
    ++state.canceled;
    return;
  }
  item.status = ItemStatus::waiting;
  if (run.live) index_item(run, record.step, record.item, item, record.time);
  check_step_end(run, record.step, record.time);  // it may have been the last that a failed step waited for
}

void Core::apply_cancel(Run& run, const Record& record) {
  if (run.function != nullptr) return apply_function_cancel(run, record);
  run.cancel_requested = true;
  run.reason = record.reason;
  if (run.paused_at != 0) end_pause(run, record.time);
  if (run.live) take_timers(run);
}

// The clocks stood still: everything that waits, waits that much longer. A wait that began during the pause counts from now on.
void Core::end_pause(Run& run, Time now) {
  const std::int64_t pause = now - run.paused_at;
  const Time delayed = run.due > run.paused_at ? run.due : 0;  // the delay it was submitted with is not over
  if (delayed != 0) run.due = later(run.due, pause);
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    StepState& state = run.steps[step];
    if (is_final(state.status) || state.status == StepStatus::pending) continue;
    const bool waits_for_delay = delayed != 0 && state.activated == delayed;
    const std::int64_t shift = waits_for_delay ? pause : std::min(pause, now - state.activated);
    state.activated = later(state.activated, shift);
    if (state.due > 0 && run.step_plan(step).wait_until == 0) state.due = later(state.due, shift);
    state.for_each_item([&](std::uint32_t, Item& item) {
      if (item.first_started > 0) item.first_started += std::min(pause, now - item.first_started);
      if (item.status != ItemStatus::waiting) return;
      const Time since = item.due - (item.trouble != nullptr ? item.trouble->wait : 0);
      item.due = later(item.due, std::clamp<std::int64_t>(now - since, 0, pause));
    });
  }
  run.paused_total += pause;
  run.paused_at = 0;
  run.status = RunStatus::running;
}

void Core::apply_resumed(Run& run, const Record& record) {
  end_pause(run, record.time);
  if (run.function != nullptr) run.function->divergence.clear();
  if (run.live) index_run(run, record.time);
  if (run.live) announce(run);
}

void Core::apply_revisited(Run& run, const Record& record) {
  const std::vector<std::uint32_t> again =
      record.only_this ? std::vector{record.step} : steps_from(*run.plan->plan, record.step);
  for (const std::uint32_t step : again) {
    if (record.on_request && has_begun(run.steps[step])) ++extra_of(run).steps[step].reruns;
    deactivate(run, step);
    if (record.on_request) forget_circuits(run, step);
  }
  if (record.only_this) extra_of(run).steps[record.step].keeps_dependants = true;
  std::erase_if(run.finished, [&](std::uint32_t step) { return std::ranges::binary_search(again, step); });
  for (const std::uint32_t step : again) {
    const auto& needs = run.step_plan(step).needs;
    run.steps[step].needs_left = static_cast<std::uint32_t>(
        std::ranges::count_if(needs, [&](std::uint32_t need) { return !lets_go_on(run, need); }));
  }
  // What was healed may still be at it, or something else that the step needs.
  const bool is_awaited = record.on_request && run.steps[record.step].needs_left > 0;
  if (!is_awaited) activate(run, record.step, record.time);
}

void Core::forget_circuits(Run& run, std::uint32_t step) {
  run.steps[step].circuit_open = false;
  reset_breaker(run, step);
}

// The failed attempt is not the last: there is another way to try.
void Core::apply_fallback(Run& run, const Record& record) {
  Item& item = run.steps[record.step].item(record.item);
  if (item.stage != record.stage && item.trouble != nullptr) item.trouble->lost_in_a_row = 0;
  item.stage = record.stage;
  item.status = ItemStatus::waiting;
  item.due = record.time;
  if (run.live) index_item(run, record.step, record.item, item, record.time);
}

void Core::apply_finishing(Run& run, const Record& record) {
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    const bool begins = run.step_plan(step).runs_finally && run.steps[step].status == StepStatus::pending;
    if (begins && run.steps[step].needs_left == 0) activate(run, step, record.time);
  }
}

namespace {

// As often as max_visits says, from now on.
void forget_visits(Run& run, std::uint32_t step) {
  if (run.extra != nullptr) run.extra->steps.erase(step);
  if (!run.has_visits_that_go_on()) {
    run.steps[step].visits = 0;
  } else if (run.steps[step].visits > 0) {
    extra_of(run).steps[step].reruns = run.steps[step].visits;
  }
}

}  // namespace

void Core::apply_reopened(Run& run, const Record& record) {
  run.status = RunStatus::running;
  run.reason = StopReason::none;
  run.ended = 0;
  run.cancel_requested = false;
  run.paused_at = 0;
  run.paused_total = record.time - run.created;  // deadlines start again
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    if (!run.step_plan(step).runs_finally) continue;
    deactivate(run, step);  // they run again after what is tried again
    run.steps[step].circuit_open = false;
    forget_visits(run, step);
  }
  if (run.extra != nullptr && !record.resumes) {
    for (auto& [step, own] : run.extra->steps) own.keeps_dependants = false;
  }
  run.open_steps = 0;
  const Chosen chosen = chosen_by(record);
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    reopen_step(run, step, record, chosen);
    if (!is_final(run.steps[step].status)) ++run.open_steps;
  }
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    StepState& state = run.steps[step];
    if (state.status != StepStatus::pending) continue;
    const auto& needs = run.step_plan(step).needs;
    state.needs_left = static_cast<std::uint32_t>(
        std::ranges::count_if(needs, [&](std::uint32_t need) { return !lets_go_on(run, need); }));
    if (state.needs_left == 0 && !run.step_plan(step).runs_finally) activate(run, step, record.time);
  }
  if (record.resumes) {  // what was stopped may have been the last that a failed step waited for
    for (std::uint32_t step = 0; step < run.step_count(); ++step) check_step_end(run, step, record.time);
  }
  if (run.live) index_run(run, record.time);
}

// What was stopped goes on where it was; what had failed, and is chosen, has everything again but its numbers.
void Core::reopen_step(Run& run, std::uint32_t step, const Record& record, const Chosen& chosen) {
  StepState& state = run.steps[step];
  const StepPlan& plan = run.step_plan(step);
  bool incomplete = false;
  bool had_attempts = false;
  bool retries = false;
  state.for_each_item([&](std::uint32_t index, Item& item) {
    const bool has_failed = !record.resumes && item.status == ItemStatus::failed && chosen.has(step, index);
    if (!has_failed && item.status != ItemStatus::canceled) return;
    --(has_failed ? state.failed : state.canceled);
    incomplete = true;
    retries |= has_failed;
    had_attempts |= item.attempt > 0;
    if (has_failed) begin_anew(item, run.judges_own_failures_only());
    item.status = ItemStatus::waiting;
    item.due = std::max(item.due, record.time);
  });
  if (retries && run.judges_own_failures_only()) forget_circuits(run, step);
  if (retries && run.extra != nullptr && run.extra->steps.contains(step)) close_circuit(run, step);
  if (retries && record.only_this) extra_of(run).steps[step].keeps_dependants = true;
  if (incomplete && is_final(state.status)) state.status = StepStatus::active;
  if (incomplete && !record.resumes) state.excused = state.failed;
  const bool is_open = !is_final(state.status) && state.status != StepStatus::pending;
  if (is_open) state.activated = std::max(record.time, run.due);
  // What comes before its first attempt had failed.
  const bool uncounted = incomplete && (plan.for_each ? state.map == nullptr : plan.prepares && !had_attempts);
  if (uncounted) state.status = StepStatus::preparing;
  if (incomplete && plan.kind != StepKind::call) state.due = end_of_wait(plan, record.time);
  if (uncounted || (incomplete && plan.kind != StepKind::call)) {
    state.one = Item{};
    state.next = 0;
  }
  if (record.resumes) return;
  if (state.status == StepStatus::skipped && state.activated > 0) --state.visits;  // its condition is asked again
  if (state.status == StepStatus::skipped || state.status == StepStatus::unreachable)
    state.status = StepStatus::pending;
}

}  // namespace reprise::core
