// What begins: who is next in the queues, whether there is a place for it, and what is recorded ahead of one.
//
// A limit (of a handler, a step, a run) is reached when as many attempts run or are reserved as it allows. Below it an attempt is
// `started` and begins in any case. Above it a first attempt may be `reserved`: it is handed to the executor, which begins it when one of
// the others has succeeded, without waiting for a commit. Both count, so the two views of who has a place can differ for a moment and
// still never let more begin than the limit allows: what starts in any case finds a place, and the executor counts the others.
#include <algorithm>

#include "base/check.hpp"
#include "core/core.hpp"

namespace reprise::core {

using event::Record;

void Core::dispatch(const Room& room, std::size_t limit, Time now, const Ahead& ahead) {
  if (counters_.ready == 0) return;
  std::uint32_t executors = 0;
  for (Queue& queue : queues_) {
    executors = std::max(executors, queue.address.executor + 1);
    queue.room = queue.open && queue.size > 0 ? room(queue.address) : 0;
  }
  std::vector<std::size_t> started(executors, 0);
  std::size_t all = 0;
  ++rotation_;
  for (std::size_t level = priorities; level-- > 0;) {
    for (std::size_t turn = 0; turn < queues_.size(); ++turn) {
      Queue& queue = queues_[(turn + rotation_) % queues_.size()];
      std::size_t& taken = started[queue.address.executor];
      while (!queue.levels[level].empty() && all < limit && taken < queue.room &&
             has_place(queue, queue.levels[level].front(), ahead)) {
        const Begun begun = start_next(queue, level, ahead, now);
        if (begun == Begun::started) ++taken;
        if (begun != Begun::nothing) ++all;
      }
    }
  }
}

// As far as the handler's limit goes.
bool Core::has_place(const Queue& queue, const Entry& entry, const Ahead& ahead) const {
  if (queue.limit == 0 || queue.taken < queue.limit) return true;
  if (entry.item != untouched_items) return false;
  const Run* const run = runs_.find(entry.run);
  return run != nullptr && run->live && run->steps != nullptr && may_reserve(*run, entry.step, queue, ahead);
}

// May a first attempt of this step be recorded ahead of a place? What is lost in a crash must cost it nothing, and no clock may run that
// begins with its start. Attempts outside have places that the executor does not know of.
bool Core::may_reserve(const Run& run, std::uint32_t step, const Queue& queue, const Ahead& ahead) const {
  const StepPlan& plan = run.step_plan(step);
  const StepState& state = run.steps[step];
  if (!ahead || !run.judges_own_failures_only() || plan.effect == Effect::at_most_once || run.outside > 0) return false;
  const Policy& policy = run.policy(step, state.first_untouched());
  if (policy.max_elapsed && policy.elapsed_from == ElapsedFrom::first_start) return false;
  if (run.step_plan(step).item_breaker.failures > 0) return false;  // whether it may begin is known when it does
  const auto has_room = [&](std::uint32_t places, std::uint32_t taken) {
    return places == 0 || taken < places || taken - places < ahead(queue.address, places);
  };
  return has_room(queue.limit, queue.taken) && has_room(plan.max_parallel, state.taken()) &&
         has_room(run.plan->plan->max_parallel, run.taken());
}

namespace {

bool is_full(const Run& run, std::uint32_t step) {
  const std::uint32_t step_max = run.step_plan(step).max_parallel;
  const std::uint32_t run_max = run.plan->plan->max_parallel;
  return (step_max > 0 && run.steps[step].taken() >= step_max) || (run_max > 0 && run.taken() >= run_max);
}

}  // namespace

// Takes one entry out and begins what it stands for. `nothing`: it was out of date, or has no place.
Core::Begun Core::start_next(Queue& queue, std::size_t level, const Ahead& ahead, Time now) {
  const Entry entry = queue.levels[level].front();
  queue.levels[level].pop_front();
  REPRISE_CHECK(queue.size > 0 && counters_.ready > 0, entry.run);
  --queue.size;
  --counters_.ready;
  Run* const run = runs_.find(entry.run);
  if (run == nullptr || !run->live || run->steps == nullptr) return Begun::nothing;
  if (run->queued > 0) --run->queued;  // the entry may be older than the run's stay in memory
  StepState& state = run->steps[entry.step];
  const bool untouched = entry.item == untouched_items;
  if (untouched) {
    state.queued = state.queued && state.status == StepStatus::preparing;
  } else if (state.touched(entry.item) != nullptr) {
    state.item(entry.item).queued = false;
  }
  if (state.status != StepStatus::active || run->has_ended() || run->paused_at != 0 || run->cancel_requested)
    return Begun::nothing;
  if (!is_allowed(*run)) return Begun::nothing;  // allow() finds it again
  if (untouched ? is_doomed(*run, entry.step) : is_given_up(*run, entry.step)) return Begun::nothing;
  if (untouched && (state.circuit_open || !may_begin_item(*run, entry.step, now))) return Begun::nothing;
  if (deadline_of(*run) <= now) return Begun::nothing;  // its timer is about to fire
  if (run->function != nullptr && run->function->canceling && entry.step == 0) return Begun::nothing;
  if (untouched) return start_untouched(*run, entry.step, queue, ahead, now);

  if (state.touched(entry.item) == nullptr) return Begun::nothing;  // the step was visited again in the meantime
  Item& item = state.item(entry.item);
  if (item.status != ItemStatus::waiting) return Begun::nothing;
  if (item.due > now) {  // the clock was set back
    index_item(*run, entry.step, entry.item, item, now);
    return Begun::nothing;
  }
  if (is_full(*run, entry.step)) {
    if (state.map != nullptr) {
      item.queued = true;
      state.map->held.push_back(entry.item);
    }
    return Begun::nothing;
  }
  return start(*run, entry.step, entry.item, now) ? Begun::started : Begun::nothing;
}

// One item that nobody has touched; the others take their place in the queue again, if there may be one for them.
Core::Begun Core::start_untouched(Run& run, std::uint32_t step, const Queue& queue, const Ahead& ahead, Time now) {
  StepState& state = run.steps[step];
  if (state.due > now) index_step(run, step, now);  // the clock was set back
  if (!state.has_untouched() || state.due > now) return Begun::nothing;
  if (state.map != nullptr && !state.map->held.empty()) return Begun::nothing;  // these come first: refill() follows
  const auto needs_reservation = [&] {
    return is_full(run, step) || (queue.limit > 0 && queue.taken >= queue.limit);
  };
  Begun begun = Begun::nothing;
  if (!needs_reservation()) {
    begun = start(run, step, state.first_untouched(), now) ? Begun::started : Begun::nothing;
  } else if (may_reserve(run, step, queue, ahead)) {
    reserve(run, step, state.first_untouched(), now);
    begun = Begun::reserved;
  }
  const bool goes_on = state.status == StepStatus::active && (!is_full(run, step) || may_reserve(run, step, queue, ahead));
  if (begun != Begun::nothing && goes_on) enqueue_untouched(run, step);
  return begun;
}

// The wait is over, but so is the time: the timer, a pause or a queue was late.
void Core::give_up_late(Run& run, std::uint32_t step, std::uint32_t index, Time now) {
  const Item& item = *run.steps[step].touched(index);
  const Failure failure = item.trouble != nullptr ? item.trouble->failure : Failure{};
  retry_or_give_up(
      run, step, index, failure,
      {.reason = StopReason::deadline, .failure_class = failure.failure_class.value_or(FailureClass::transient)},
      AttemptEnd::failed, now);
  take_back_if_doomed(run, step, now);
  refill(run, step);
  settle(run, now);
}

bool Core::start(Run& run, std::uint32_t step, std::uint32_t index, Time now) {
  StepState& state = run.steps[step];
  const Policy& policy = run.policy(step, index);
  const Item* const item = state.touched(index);
  const std::uint32_t attempt = run.last_attempt(step, index) + 1;
  const bool by_policy = item != nullptr && item->has_begun() && item->stage == stage::main;
  if (by_policy && policy.max_elapsed && elapsed_of(run, step, *item, policy, now) >= *policy.max_elapsed) {
    give_up_late(run, step, index, now);
    return false;
  }
  if (by_policy && item->trouble != nullptr && item->trouble->failure.failure_class == FailureClass::contract_failure) {
    Record rework{.type = EventType::rework, .step = step, .item = index, .attempt = attempt};
    emit(run, rework, now);
  }
  Record record{.type = EventType::started, .step = step, .item = index, .attempt = attempt};
  emit(run, record, now);
  ++counters_.attempts;
  effects_.starts.push_back({{run.number, step, index, static_cast<std::uint32_t>(record.sequence)}, attempt, &run});
  return true;
}

// ---- ahead of a place ----------------------------------------

void Core::reserve(Run& run, std::uint32_t step, std::uint32_t index, Time now) {
  Record record{
      .type = EventType::reserved, .step = step, .item = index, .attempt = run.last_attempt(step, index) + 1};
  emit(run, record, now);
  effects_.starts.push_back({.id = {run.number, step, index, static_cast<std::uint32_t>(record.sequence)},
                             .attempt = record.attempt,
                             .run = &run,
                             .reserved = true});
}

void Core::began(const AttemptId& id, Time when, Time now) {
  Run* run = nullptr;
  const Item* const item = find_open(id, run);
  if (item == nullptr || item->status != ItemStatus::reserved) return;
  Record record{.type = EventType::started, .step = id.step, .item = id.item, .attempt = item->attempt};
  emit(*run, record, std::min(when, now));
  ++counters_.attempts;
}

// The executor gives back what has not begun; what has begun in the meantime goes on. What it was not given yet, it does not get.
void Core::take_back(Run& run, std::uint32_t step, Time now) {
  std::vector<AttemptId> reserved;
  run.steps[step].for_each_item([&](std::uint32_t index, const Item& item) {
    if (item.status == ItemStatus::reserved) reserved.push_back({run.number, step, index, item.token});
  });
  for (const AttemptId& id : reserved) {
    if (std::erase_if(effects_.starts, [&](const Start& start) { return start.id == id; }) > 0) {
      withdraw(run, id, now);
      refill(run, step);
    } else {
      effects_.take_backs.push_back(id);
    }
  }
}

void Core::withdraw(Run& run, const AttemptId& id, Time now) {
  Record record{.type = EventType::reserved,
                .step = id.step,
                .item = id.item,
                .attempt = run.steps[id.step].touched(id.item)->attempt,
                .withdrawn = true};
  emit(run, record, now);
}

// A step that has failed begins no further items.
void Core::take_back_if_doomed(Run& run, std::uint32_t step, Time now) {
  if (run.steps[step].reserved > 0 && is_doomed(run, step)) take_back(run, step, now);
}

}  // namespace reprise::core
