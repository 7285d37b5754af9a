// Where work stands while it waits: ready queues and the timer wheel. All of it follows from the state of the runs.
//
// Entries of queues are hints: whoever takes one out looks at the state before starting anything, so an entry that is out of date is
// dropped there instead of being searched for when things change.
#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "core/core.hpp"

namespace reprise::core {

Time deadline_of(const Run& run) {
  const std::int64_t deadline = run.deadline();
  if (run.function != nullptr && run.function->canceling) return INT64_MAX;  // it has been told; its undos have their time
  return deadline == 0 ? INT64_MAX : later(run.created + run.paused_total, deadline);
}

Time own_deadline_of(const Run& run, std::uint32_t step, std::uint32_t index) {
  const Policy& policy = run.policy(step, index);
  const Item* const item = run.steps[step].touched(index);
  if (!policy.max_elapsed || (item != nullptr && item->stage != stage::main)) return INT64_MAX;
  const bool is_first = item == nullptr || !item->has_begun_before();
  if (is_first && policy.max_elapsed->count() == 0) return INT64_MAX;  // no retries, but an attempt
  return later(clock_start(run, step, item, policy), policy.max_elapsed->count());
}

Duration elapsed_of(const Run& run, std::uint32_t step, const Item& item, const Policy& policy, Time now) {
  const Time start = clock_start(run, step, &item, policy);
  return Duration{start > 0 ? std::max<std::int64_t>(0, now - start) : 0};
}

const NumberedPlan* Core::add_plan(std::uint32_t number, std::shared_ptr<const Plan> plan) {
  if (plans_.size() <= number) plans_.resize(number + 1);
  if (plans_[number] != nullptr) return plans_[number].get();
  auto numbered = std::make_unique<NumberedPlan>();
  numbered->number = number;
  for (const StepPlan& step : plan->steps) numbered->queues.push_back(queue_named(step.handler));
  numbered->plan = std::move(plan);
  plans_[number] = std::move(numbered);
  return plans_[number].get();
}

const NumberedPlan* Core::plan(std::uint32_t number) const {
  return number < plans_.size() ? plans_[number].get() : nullptr;
}

std::uint32_t Core::queue_named(std::string_view handler) {
  const auto found = queue_numbers_.find(handler);
  if (found != queue_numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(queues_.size());
  queues_.emplace_back().handler = handler;
  queue_numbers_.emplace(handler, number);
  return number;
}

void Core::open_queue(std::string_view handler, HandlerAddress address, std::uint32_t limit) {
  Queue& queue = queues_[queue_named(handler)];
  queue.open = true;
  queue.address = address;
  queue.limit = limit;
}

void Core::disarm(TimerWheel::Handle& handle) {
  if (handle == TimerWheel::none) return;
  wheel_.cancel(handle);
  handle = TimerWheel::none;
}

void Core::take_timers(Run& run) {
  disarm(run.deadline_timer);
  if (run.plan == nullptr || run.steps == nullptr) return;  // its state could not be read
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    disarm(run.steps[step].timer);
    run.steps[step].for_each_item([&](std::uint32_t, Item& item) { disarm(item.timer); });
  }
}

void Core::index_run(Run& run, Time now) {
  const std::int64_t deadline = run.deadline();
  if (deadline > 0 && run.deadline_timer == TimerWheel::none && run.paused_at == 0 && !run.cancel_requested) {
    run.deadline_timer = wheel_.arm(later(run.created + run.paused_total, deadline), {run.number, whole_run, 0});
  }
  index_outside(run);
  for (std::uint32_t step = 0; step < run.step_count(); ++step) index_step(run, step, now);
}

void Core::index_step(Run& run, std::uint32_t step, Time now) {
  StepState& state = run.steps[step];
  if (run.paused_at != 0 || run.cancel_requested) return;
  if (state.status == StepStatus::preparing) return ask_for_items(run, step, now);
  if (state.status != StepStatus::active) return;
  if (run.step_plan(step).kind != StepKind::call) {
    if (state.next == 0 && state.due > 0 && state.timer == TimerWheel::none) {
      state.timer = wheel_.arm(state.due, {run.number, step, untouched_items});
    }
    return;
  }
  // What has been begun, or is tried again, comes before what is new.
  release_held(run, step);
  state.for_each_item([&](std::uint32_t index, Item& item) {
    if (item.status == ItemStatus::waiting) index_item(run, step, index, item, now);
  });
  if (!state.has_untouched()) return;
  if (state.due <= now) {
    enqueue_untouched(run, step);
  } else if (state.timer == TimerWheel::none) {
    state.timer = wheel_.arm(state.due, {run.number, step, untouched_items});
  }
}

// Not before the delay of the run is over: a condition is asked when the work would begin.
void Core::ask_for_items(Run& run, std::uint32_t step, Time now) {
  StepState& state = run.steps[step];
  if (state.queued || !is_allowed(run)) return;
  if (run.due > now) {
    if (state.timer == TimerWheel::none) state.timer = wheel_.arm(run.due, {run.number, step, untouched_items});
    return;
  }
  const Item* const list = run.steps[run.step_plan(step).list_step].touched(0);
  state.queued = true;
  ++run.preparing;
  effects_.prepares.push_back(
      {run.number, step, list != nullptr && list->output != nullptr ? *list->output : Payload{}});
}

void Core::index_item(Run& run, std::uint32_t step, std::uint32_t index, Item& item, Time now) {
  if (run.paused_at != 0 || run.cancel_requested || item.queued || item.timer != TimerWheel::none) return;
  if (item.due <= now) {
    item.queued = true;
    enqueue(run, step, index);
  } else {
    item.timer = wheel_.arm(item.due, {run.number, step, index});
  }
}

// Their clocks go on while the run is paused: so does the work.
void Core::index_outside(Run& run) {
  if (run.extra == nullptr) return;
  for (const auto& [place, outside] : run.extra->outside)
    index_outside(run, place.first, place.second, run.steps[place.first].item(place.second));
}

void Core::index_outside(Run& run, std::uint32_t step, std::uint32_t index, Item& item) {
  if (run.cancel_requested || item.due == 0 || item.timer != TimerWheel::none) return;
  item.timer = wheel_.arm(item.due, {run.number, step, index});
}

void Core::enqueue(Run& run, std::uint32_t step, std::uint32_t item) {
  Queue& queue = queues_[run.queue_of(step)];
  queue.levels[run.priority].push_back({run.number, step, item});
  ++queue.size;
  ++run.queued;
  ++counters_.ready;
}

void Core::enqueue_untouched(Run& run, std::uint32_t step) {
  StepState& state = run.steps[step];
  if (state.queued || !state.has_untouched()) return;
  state.queued = true;
  enqueue(run, step, untouched_items);
}

// A place under max_parallel may be free again: that of the step, and with it that of the run.
void Core::refill(Run& run, std::uint32_t step) {
  if (run.paused_at != 0 || run.cancel_requested) return;
  if (run.plan->plan->max_parallel == 0) return refill_step(run, step);
  for (std::uint32_t other = 0; other < run.step_count(); ++other) refill_step(run, other);
}

void Core::refill_step(Run& run, std::uint32_t step) {
  StepState& state = run.steps[step];
  if (state.status != StepStatus::active || run.step_plan(step).kind != StepKind::call) return;
  release_held(run, step);
  if (state.due <= run.last_time) enqueue_untouched(run, step);
  if (state.map == nullptr && state.one.status == ItemStatus::waiting)
    index_item(run, step, 0, state.one, run.last_time);
}

void Core::release_held(Run& run, std::uint32_t step) {
  StepState& state = run.steps[step];
  if (state.map == nullptr) return;
  for (const std::uint32_t index : state.map->held) enqueue(run, step, index);
  state.map->held.clear();
}

bool Core::is_allowed(const Run& run) const {
  return run.number >= first_allowed_ || !run.plan->plan->is_document || allowed_.contains(run.number);
}

void Core::restrict_documents(std::uint64_t first_new) {
  first_allowed_ = first_new;
  // Recovery comes first, and has asked for what steps need before they begin.
  std::erase_if(effects_.prepares, [&](const Prepare& prepare) {
    Run* const run = runs_.find(prepare.run);
    if (run == nullptr || is_allowed(*run)) return false;
    // One that was cancelled since then is not counted any more.
    if (std::exchange(run->steps[prepare.step].queued, false)) {
      REPRISE_CHECK(run->preparing > 0, run->number);
      --run->preparing;
    }
    return true;
  });
}

void Core::allow(std::uint64_t number, Time now) {
  if (number < first_allowed_) allowed_.insert(number);
  Run* const run = runs_.find(number);
  if (run != nullptr && run->live && !run->has_ended()) index_run(*run, now);
}

void Core::forget(Run& run) {
  take_timers(run);
  runs_.remove(run.number);
}

std::optional<Time> Core::idle_until(const Run& run) const {
  constexpr std::size_t items_max = 256;  // looking at more each time it is touched would cost more than it saves
  if (run.taken() > run.outside || run.preparing > 0 || run.has_ended()) return std::nullopt;
  if (run.outside > items_max) return std::nullopt;
  Time earliest = INT64_MAX;
  if (run.outside > 0) {
    for (const auto& [place, outside] : run.extra->outside) {
      const Time due = run.steps[place.first].touched(place.second)->due;
      if (due != 0) earliest = std::min(earliest, due);
    }
  }
  if (run.paused_at != 0) return earliest;
  const std::int64_t deadline = run.deadline();
  if (deadline > 0) earliest = std::min(earliest, deadline_of(run));
  // One that has not begun here waits for an executor that knows it, and nothing else would bring it back.
  bool is_busy = run.function != nullptr &&
                 (run.function->is_due || run.function->deciding > 0 || !run.function->has_begun);
  run.for_each_open_step([&](std::uint32_t step) {
    const StepState& state = run.steps[step];
    is_busy |= state.map != nullptr && state.map->items.size() > items_max;
    if (state.status == StepStatus::preparing) earliest = std::min(earliest, run.due);
    if (is_busy || state.status != StepStatus::active) return;
    is_busy |= state.map != nullptr && !state.map->held.empty();
    if (state.due > 0 && state.has_untouched()) earliest = std::min(earliest, state.due);
    is_busy |= state.due == 0 && state.has_untouched() && run.step_plan(step).kind == StepKind::call;  // ready
    for (std::uint32_t index = 0; index < state.next; ++index) {
      const Item* const item = state.touched(index);
      if (item != nullptr && item->status == ItemStatus::waiting) earliest = std::min(earliest, item->due);
    }
  });
  if (is_busy) return std::nullopt;
  return earliest;
}

bool Core::is_backlog(const Run& run) const {
  return run.live && run.taken() == 0 && run.preparing == 0 && run.queued > 0 && !run.has_ended();
}

}  // namespace reprise::core
