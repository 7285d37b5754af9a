// What each input means: decisions, the events that record them, and the effects that follow.
#include <algorithm>
#include <utility>

#include <reprise/classify.hpp>

#include "base/check.hpp"
#include "base/lateness.hpp"
#include "core/core.hpp"
#include "event/codec.hpp"

namespace reprise::core {

using event::Record;

namespace {

Core::Answer refuse(std::string message) { return std::unexpected{Error{ErrorCode::invalid, std::move(message)}}; }

Failure lost_attempt(bool was_reserved = false) {
  return {.type = "WorkerLost",
          .message = was_reserved ? "the engine ended when the attempt was about to begin, and may have begun it"
                                  : "the engine ended while the attempt was running",
          .failure_class = FailureClass::transient,
          .kind = FailureKind::worker_lost};
}

Failure interrupted_attempt() {
  return {.type = "CanceledError", .message = "stopped while it ran", .failure_class = FailureClass::canceled};
}

}  // namespace

void Core::emit(Run& run, Record& record, Time now) {
  record.time =
      std::max(now, run.last_time);  // the wall clock may have been set back; the story of a run never goes back
  record.sequence = run.sequence + 1;
  if (run.events.empty()) {
    event::put_chunk_header(run.events, run.last_time);
    run.events_first = record.sequence;
    run.framed = run.events.size();
    run.framed_sequence = run.sequence;
    run.framed_time = run.last_time;
  }
  event::put_event(run.events, record, run.last_time);
  ++counters_.events;
  run.leaving_with = 0;
  if (!run.touched) {
    run.touched = true;
    effects_.touched.push_back(&run);
  }
  apply(run, record);
}

Run& Core::submit(Submission submission, Time now) {
  Run& run = runs_.add(submission.run);
  run.live = !submission.asleep;
  run.last_time = now;
  run.facts = std::move(submission.facts);
  Record record{.type = EventType::submitted,
                .due = submission.due > now ? submission.due : 0,
                .plan = submission.plan->number,
                .priority = submission.priority,
                .items = submission.items,
                .text = submission.key,
                .payload = submission.input,
                .facts = run.facts != nullptr ? std::string_view{run.facts->bytes} : std::string_view{}};
  emit(run, record, now);
  if (run.deadline() > 0 && run.live)
    run.deadline_timer = wheel_.arm(later(run.created, run.deadline()), {run.number, whole_run, 0});
  ++counters_.accepted;
  settle(run, now);
  return run;
}

// The item whose attempt has this token and has not ended; nullptr: there is none (any more).
Item* Core::find_open(const AttemptId& id, Run*& run) {
  run = runs_.find(id.run);
  if (run != nullptr && run->live && run->steps != nullptr && id.step < run->step_count()) {
    StepState& state = run->steps[id.step];
    if (state.touched(id.item) != nullptr) {
      Item& item = state.item(id.item);
      const bool is_open = item.status == ItemStatus::running || item.status == ItemStatus::outside ||
                           item.status == ItemStatus::reserved;
      if (is_open && item.token == id.token) return &item;
    }
  }
  return nullptr;
}

Item* Core::open_item(const AttemptId& id, Run*& run) {
  Item* const item = find_open(id, run);
  if (item == nullptr) ++counters_.late;
  return item;
}

// What is heard of an attempt is heard of one that has begun.
Item* Core::begun_item(const AttemptId& id, Run*& run, Time now) {
  Item* const item = open_item(id, run);
  if (item != nullptr && item->status == ItemStatus::reserved) began(id, now, now);
  return item;
}

bool Core::succeeded(const AttemptId& id, const event::PayloadView& output, Time now, std::string_view whole_output) {
  Run* run = nullptr;
  const Item* const item = begun_item(id, run, now);
  if (item == nullptr) return false;
  Record record{.type = EventType::completed,
                .step = id.step,
                .item = id.item,
                .attempt = item->attempt,
                .text = whole_output,
                .payload = output};
  complete(*run, record, now);
  refill(*run, id.step);
  settle(*run, now);
  return true;
}

bool Core::failed(const AttemptId& id, const Failure& failure, bool precondition, Time now, AttemptEnd end) {
  Run* run = nullptr;
  const Item* const item = begun_item(id, run, now);
  if (item == nullptr) return false;
  // The executor cuts attempts at the run's deadline too, and may be quicker than the timer.
  const Time deadline = deadline_of(*run);
  const bool is_cut_with_run = end == AttemptEnd::deadline && deadline <= own_deadline_of(*run, id.step, id.item);
  const bool is_over = deadline <= now || (is_cut_with_run && deadline != INT64_MAX);
  if (is_over && !run->cancel_requested && run->paused_at == 0)
    request_cancel(*run, "deadline", StopReason::deadline, now);
  if (run->function != nullptr && find_open(id, run) == nullptr) {  // nobody waits for it any more
    settle(*run, now);
    return true;
  }
  const bool is_stopped = is_cut_with_run || failure.failure_class == FailureClass::canceled;
  if (run->cancel_requested && is_stopped) {
    interrupt_attempt(*run, id.step, id.item, &failure, true, now);
  } else if (precondition && !run->cancel_requested) {
    fail_precondition(*run, id.step, id.item, failure, now);
  } else {
    fail_attempt(*run, id.step, id.item, failure, end, now);
  }
  take_back_if_doomed(*run, id.step, now);
  refill(*run, id.step);
  settle(*run, now);
  return true;
}

// The item is given up at once, whatever its policy says.
void Core::fail_precondition(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, Time now) {
  Record record{.type = EventType::failed,
                .step = step,
                .item = index,
                .precondition = true,
                .reason = StopReason::permanent,
                .failure_class = failure.failure_class.value_or(FailureClass::deterministic),
                .failure = &failure};
  const bool is_item = !run.step_plan(step).for_each || run.steps[step].map != nullptr;  // and not the question which there are
  emit(run, record, now);
  if (run.step_plan(step).on_failure == OnFailure::dead_letter && is_item) {
    Record letter{.type = EventType::dead_lettered, .step = step, .item = index};
    emit(run, letter, now);
  }
  turn_circuit(run, step, now);
}

bool Core::interrupted(const AttemptId& id, Time now, bool began) {
  Run* run = nullptr;
  const Item* const item = began ? begun_item(id, run, now) : open_item(id, run);
  if (item == nullptr) return false;
  if (item->status == ItemStatus::reserved) {
    withdraw(*run, id, now);
    refill(*run, id.step);
    settle(*run, now);
    return true;
  }
  interrupt_attempt(*run, id.step, id.item, nullptr, began, now);
  settle(*run, now);
  return true;
}

// Something else than the work has ended it: it is made again when the run goes on, unless it must not be done twice.
void Core::interrupt_attempt(Run& run, std::uint32_t step, std::uint32_t index, const Failure* how, bool began,
                             Time now) {
  const Item& item = *run.steps[step].touched(index);
  if (began && run.step_plan(step).effect == Effect::at_most_once && run.judges_own_failures_only())
    return fail_attempt(run, step, index, how != nullptr ? *how : interrupted_attempt(), AttemptEnd::interrupted, now);
  Record record{.type = EventType::interrupted, .step = step, .item = index, .attempt = item.attempt, .failure = how};
  emit(run, record, now);
  if (run.steps[step].circuit_open && !run.cancel_requested) skip_waiting_items(run, step, now);
}

bool Core::lost(const AttemptId& id, Time now) {
  Run* run = nullptr;
  if (begun_item(id, run, now) == nullptr) return false;
  fail_attempt(*run, id.step, id.item, lost_attempt(), AttemptEnd::lost, now);
  take_back_if_doomed(*run, id.step, now);
  refill(*run, id.step);
  settle(*run, now);
  return true;
}

Run* Core::run_of(const AttemptId& id) {
  Run* run = nullptr;
  return open_item(id, run) != nullptr ? run : nullptr;
}

void Core::settle_unless_open(const AttemptId& id) {
  Run* run = nullptr;
  if (find_open(id, run) == nullptr) effects_.settled.push_back(id);
}

bool Core::handed_over(const AttemptId& id, const HandOver& to, Time now) {
  Run* run = nullptr;
  const Item* const item = begun_item(id, run, now);
  if (item == nullptr) return false;
  Record record{.type = EventType::handed_over,
                .step = id.step,
                .item = id.item,
                .attempt = item->attempt,
                .returns = to.returns,
                .reopens = to.reopens,
                .failure = to.overdue,
                .due = to.due,
                .other = to.run};
  if (run->extra == nullptr || run->extra->callback != to.callback) record.text = to.callback;
  // The same for all items of a step, mostly: it is recorded with the first.
  if (to.overdue != nullptr && run->extra != nullptr) {
    const auto known = run->extra->overdue.find(id.step);
    if (known != run->extra->overdue.end() && known->second == *to.overdue) record.failure = nullptr;
  }
  emit(*run, record, now);
  // What works for it may need the places that these are promised, and they would wait for its end.
  for (std::uint32_t step = 0; run->reserved > 0 && step < run->step_count(); ++step) take_back(*run, step, now);
  return true;
}

bool Core::handed_back(const AttemptId& id, std::shared_ptr<const Payload> brought, Time now) {
  Run* run = nullptr;
  const Item* const item = open_item(id, run);
  if (item == nullptr || item->status != ItemStatus::outside) return false;
  Record record{.type = EventType::handed_back, .step = id.step, .item = id.item, .attempt = item->attempt};
  emit(*run, record, now);
  effects_.starts.push_back({id, item->attempt, run, std::move(brought)});
  return true;
}

bool Core::extended(const AttemptId& id, Time due, Time now) {
  Run* run = nullptr;
  const Item* const item = open_item(id, run);
  if (item == nullptr || item->status != ItemStatus::outside) return false;
  Record record{.type = EventType::extended, .step = id.step, .item = id.item, .attempt = item->attempt, .due = due};
  emit(*run, record, now);
  return true;
}

void Core::progressed(const AttemptId& id, std::string_view text, Time now) {
  Run* run = nullptr;
  const Item* const item = begun_item(id, run, now);
  if (item == nullptr) return;
  Record record{.type = EventType::progress, .step = id.step, .item = id.item, .attempt = item->attempt, .text = text};
  emit(*run, record, now);
}

void Core::fail_attempt(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, AttemptEnd end,
                        Time now) {
  const Item& item = *run.steps[step].touched(index);
  if (item.stage != stage::main) return fail_last_resort(run, step, index, failure, end, now);
  const Decision decision = judge(run, step, index, failure, end, now);
  retry_or_give_up(run, step, index, failure, decision, end, now);
  if (decision.reason == StopReason::canceled) cancel_by_step(run, step, now);
}

// Asks the policy, with everything that is known about the item; what was not its own failure is not shown to the breaker.
Decision Core::judge(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, AttemptEnd end,
                     Time now) {
  const StepPlan& plan = run.step_plan(step);
  const Item& item = *run.steps[step].touched(index);
  const CommandPolicy* const of_command = plan.policy_of_command(failure.command);
  const Policy& policy = of_command != nullptr ? of_command->policy : run.policy(step, index);
  const bool by_own_failures = run.judges_own_failures_only();
  History history{.attempt = std::max<std::uint64_t>(by_own_failures ? item.used_attempts() : item.attempt, 1),
                  .elapsed = elapsed_of(run, step, item, policy, now),
                  .canceled = run.cancel_requested,
                  .skips_lists = failure.failed_check && plan.dialect == Dialect::rh_agents};
  if (item.trouble != nullptr) {
    history.waited = Duration{item.trouble->waited};
    history.previous_delay = Duration{item.trouble->previous_delay};
    history.lost_in_a_row = item.trouble->lost_in_a_row + 1;
  }
  if (item.status == ItemStatus::reserved) history.lost_in_a_row = 0;  // nobody knows whether it had begun: not counted
  if (by_own_failures) {
    history.end = end;
    history.effect = plan.effect;
  }
  std::optional<FailureClass> judged;
  const bool is_own = !by_own_failures || end == AttemptEnd::failed || end == AttemptEnd::timed_out;
  bool opens = false;
  if (plan.breaker_limit > 0 && is_own) {
    Evidence evidence = evidence_of(failure);
    evidence.types = policy.types;
    judged = classify(evidence).failure_class;
    opens = breaker_count(run, step, *judged, failure) >= plan.breaker_limit;
  }
  history.circuit_open = by_own_failures && (opens || (is_own && run.steps[step].circuit_open));
  Decision decision = decide(policy, history, failure, random_);
  const bool is_retryable = decision.retry || decision.reason == StopReason::attempts ||
                            decision.reason == StopReason::deadline || decision.reason == StopReason::budget;
  if (opens && !by_own_failures && is_retryable) decision = {.reason = StopReason::circuit_open};
  if (by_own_failures && run.steps[step].circuit_open && decision.retry)  // a loss: nothing of the step starts any more
    decision = {.reason = StopReason::circuit_open, .failure_class = decision.failure_class};
  if (judged)
    decision.failure_class = *judged;  // a policy without classes does not judge, and the breaker counts by class
  return decision;
}

void Core::cancel_by_step(Run& run, std::uint32_t step, Time now) {
  if (run.operation(step) != nullptr) return dismiss(run, step, now);
  if (run.cancel_requested) return;
  request_cancel(run, "step \"" + *run.step_plan(step).name + "\" said so", StopReason::canceled, now);
}

// The fallback of an item, or its handler of failures: one attempt, unless that was not its own failure.
void Core::fail_last_resort(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, AttemptEnd end,
                            Time now) {
  const Item& item = *run.steps[step].touched(index);
  const bool lost = end == AttemptEnd::lost;
  const bool canceled = run.cancel_requested || failure.failure_class == FailureClass::canceled;
  const StopReason given_up_for = item.trouble != nullptr ? item.trouble->reason : StopReason::permanent;
  Decision decision{.reason = canceled ? StopReason::canceled : given_up_for,
                    .failure_class = failure.failure_class.value_or(FailureClass::transient)};
  if (run.judges_own_failures_only() && end != AttemptEnd::failed && end != AttemptEnd::deadline) {
    const History history{.canceled = canceled,
                          .end = end,
                          .lost_in_a_row = item.trouble != nullptr ? item.trouble->lost_in_a_row + 1 : 1,
                          .effect = run.step_plan(step).effect};
    Policy policy = run.policy(step, index);
    policy.max_elapsed.reset();  // its time binds the main way alone
    const Decision judged = decide(policy, history, failure, random_);
    if (lost || judged.reason == StopReason::unclear) decision = judged;
  } else if (lost && !canceled) {
    return repeat_last_resort(run, step, index, failure, now);
  }
  retry_or_give_up(run, step, index, failure, decision, end, now);
  if (decision.reason == StopReason::canceled) cancel_by_step(run, step, now);
}

// As runs do that began when losses were judged like failures: at once, and as often as it takes.
void Core::repeat_last_resort(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure, Time now) {
  const Item& item = *run.steps[step].touched(index);
  const std::uint8_t same_way = item.stage;
  Record failed{.type = EventType::failed,
                .step = step,
                .item = index,
                .attempt = item.attempt,
                .will_retry = true,
                .lost = true,
                .reason = item.trouble != nullptr ? item.trouble->reason : StopReason::permanent,
                .failure_class = failure.failure_class.value_or(FailureClass::transient),
                .failure = &failure};
  emit(run, failed, now);
  Record again{
      .type = EventType::fallback, .step = step, .item = index, .attempt = item.attempt + 1, .stage = same_way};
  emit(run, again, now);
}

namespace {

// Which other way there is to try an item that would be given up; `main` = none.
std::uint8_t next_stage(const StepPlan& plan, const Item& item, const Decision& decision, const Failure& failure) {
  if (decision.retry || decision.reason == StopReason::canceled) return stage::main;
  if (decision.reason == StopReason::unclear) return stage::main;  // any other way might do the same work twice
  const bool over_budget = failure.failure_class.value_or(decision.failure_class) == FailureClass::budget_exhausted;
  const bool falls_back =
      plan.fallback == FallbackRule::gave_up || (plan.fallback == FallbackRule::budget_exhausted && over_budget);
  if (item.stage == stage::main && falls_back) return stage::fallback;
  return item.stage < stage::failure_handler && plan.handles_failure ? stage::failure_handler : stage::main;
}

// Does an item that is given up for this become a dead letter?
bool is_kept(const StepPlan& plan, StopReason reason) {
  if (reason == StopReason::unclear) return true;  // a person has to find out
  return plan.on_failure == OnFailure::dead_letter && reason != StopReason::canceled;
}

}  // namespace

void Core::retry_or_give_up(Run& run, std::uint32_t step, std::uint32_t index, const Failure& failure,
                            const Decision& decision, AttemptEnd end, Time now) {
  const Item& item = *run.steps[step].touched(index);
  const std::uint32_t attempt = item.attempt;
  const std::uint8_t other_way = next_stage(run.step_plan(step), item, decision, failure);
  Record failed{.type = EventType::failed,
                .step = step,
                .item = index,
                .attempt = item.token != 0 || !run.judges_own_failures_only() ? attempt : 0,  // 0: none was running
                .will_retry = decision.retry || other_way != stage::main,
                .lost = end == AttemptEnd::lost,
                .cut = end == AttemptEnd::deadline && run.judges_own_failures_only(),
                .reason = decision.reason,
                .rule = decision.rule,
                .failure_class = decision.failure_class,
                .failure = &failure};
  const bool opens = decision.reason == StopReason::circuit_open && !run.steps[step].circuit_open;
  if (opens) {
    Record opened{.type = EventType::circuit_opened,
                  .step = step,
                  .item = index,
                  .attempt = attempt,
                  .fingerprint = fingerprint_of(run, step, decision.failure_class, failure)};
    emit(run, opened, now);
  }
  emit(run, failed, now);
  if (decision.retry) {
    ++counters_.retries;
    const std::int64_t delay = decision.delay.count();
    Record retrying{.type = EventType::retrying,
                    .step = step,
                    .item = index,
                    .attempt = attempt + 1,
                    .floored = decision.floored,
                    .rule = decision.rule,
                    .delay = delay,
                    .nominal = decision.range.nominal.count(),
                    .delay_min = decision.range.min.count(),
                    .delay_max = decision.range.max.count(),
                    .due = later(failed.time, delay)};
    emit(run, retrying, now);
  } else if (other_way != stage::main) {
    Record fallback{
        .type = EventType::fallback, .step = step, .item = index, .attempt = attempt + 1, .stage = other_way};
    emit(run, fallback, now);
  } else if (is_kept(run.step_plan(step), decision.reason)) {
    Record letter{.type = EventType::dead_lettered, .step = step, .item = index, .attempt = attempt};
    emit(run, letter, now);
  }
  if (opens && run.steps[step].circuit_open) skip_waiting_items(run, step, now);
  turn_circuit(run, step, now);
}

// The circuit of the step is open: what waits for its next attempt does not get it. Last resorts are no attempts of the main way.
void Core::skip_waiting_items(Run& run, std::uint32_t step, Time now) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> waiting;
  run.steps[step].for_each_item([&](std::uint32_t index, const Item& item) {
    if (item.status == ItemStatus::waiting && item.stage == stage::main) waiting.emplace_back(index, item.attempt);
  });
  for (const auto& [index, attempt] : waiting) {
    Record skipped{.type = EventType::skipped,
                   .step = step,
                   .item = index,
                   .attempt = std::max(attempt, 1U),
                   .reason = StopReason::circuit_open};
    emit(run, skipped, now);
    if (!is_kept(run.step_plan(step), StopReason::circuit_open)) continue;
    Record letter{.type = EventType::dead_lettered, .step = step, .item = index, .attempt = attempt};
    emit(run, letter, now);
  }
}

// Are the items of this step still to be counted? A run that is cancelled or has ended asks again when it is reopened.
bool Core::is_asked_for(Run& run, std::uint32_t step) {
  StepState& state = run.steps[step];
  if (!run.live || state.status != StepStatus::preparing) return false;
  if (!run.cancel_requested && !run.has_ended()) return true;
  if (state.queued) --run.preparing;
  state.queued = false;
  return false;
}

void Core::prepared(std::uint64_t number, std::uint32_t step, std::uint32_t items, const event::PayloadView& list,
                    Time now, std::string_view policies) {
  Run* const run = runs_.find(number);
  if (run == nullptr || !is_asked_for(*run, step)) return;
  Record record{.type = EventType::prepared, .step = step, .items = items, .payload = list, .policies = policies};
  emit(*run, record, now);
  settle(*run, now);
}

void Core::condition_is_false(std::uint64_t number, std::uint32_t step, Time now) {
  Run* const run = runs_.find(number);
  if (run == nullptr || !is_asked_for(*run, step)) return;
  Record record{.type = EventType::skipped, .step = step};
  emit(*run, record, now);
  mark_dependants(*run, step, EventType::skipped, now);
  settle(*run, now);
}

void Core::prepare_failed(std::uint64_t number, std::uint32_t step, const Failure& failure, Time now) {
  Run* const run = runs_.find(number);
  if (run == nullptr || !is_asked_for(*run, step)) return;
  fail_precondition(*run, step, 0, failure, now);
  settle(*run, now);
}

// ---- time ----------------------------------------

bool Core::due(Time now, std::size_t limit) {
  fired_.clear();
  wheel_.expire(now, limit, fired_);
  // None of them is in the wheel any more, also those whose turn has not come: what the first one causes must not disarm the second.
  for (const TimerWheel::Timer& timer : fired_) forget_handle(timer);
  for (const TimerWheel::Timer& timer : fired_) fire(timer, now);
  return fired_.size() == limit;
}

void Core::forget_handle(const TimerWheel::Timer& timer) {
  Run* const run = runs_.find(timer.run);
  if (run == nullptr || !run->live) return;
  if (timer.step == whole_run) {
    run->deadline_timer = TimerWheel::none;
  } else if (timer.item == untouched_items) {
    run->steps[timer.step].timer = TimerWheel::none;
  } else if (StepState& state = run->steps[timer.step]; state.touched(timer.item) != nullptr) {
    state.item(timer.item).timer = TimerWheel::none;
  }
}

// A timer is a hint: one that fired together with it may have changed what it was for.
void Core::fire(const TimerWheel::Timer& timer, Time now) {
  Run* const run = runs_.find(timer.run);
  if (run == nullptr || !run->live) return;
  if (timer.step == whole_run) {
    if (run->has_ended() || run->cancel_requested || run->paused_at != 0 || deadline_of(*run) > now) return;
    request_cancel(*run, "deadline", StopReason::deadline, now);
    settle(*run, now);
    return;
  }
  if (timer.item == untouched_items) {
    fire_step(*run, timer.step, now);
    return;
  }
  StepState& state = run->steps[timer.step];
  if (state.touched(timer.item) == nullptr) return;
  Item& item = state.item(timer.item);
  if (item.status == ItemStatus::waiting) index_item(*run, timer.step, timer.item, item, now);
  if (item.status == ItemStatus::outside) fire_outside(*run, timer.step, timer.item, now);
}

// The attempt's time is over, unless we did not run when it was: what works for it may not have run either, and gets as much time again
// as we know to have missed, at most the whole limit (exec/time_limit.hpp has the same rule).
void Core::fire_outside(Run& run, std::uint32_t step, std::uint32_t index, Time now) {
  const Item& item = *run.steps[step].touched(index);
  if (run.cancel_requested || item.due == 0) return;
  if (item.due > now) return index_outside(run, step, index, run.steps[step].item(index));  // the clock was set back
  const AttemptId id{run.number, step, index, item.token};
  const std::int64_t late = now - item.due;
  const auto& limit = run.policy(step, index).attempt_timeout;
  if (late > base::late_without_excuse.count()) {
    extended(id, later(now, limit ? std::min(late, limit->count()) : late), now);
    return;
  }
  const auto known = run.extra->overdue.find(step);
  const Failure failure = known != run.extra->overdue.end() ? known->second
                                                            : Failure{.type = "TimeoutError",
                                                                      .message = "timed out",
                                                                      .failure_class = FailureClass::transient,
                                                                      .kind = FailureKind::timeout};
  const RunId by = run.outside_of(step, index)->run;
  if (by == RunId{}) {
    effects_.cancels.push_back(id);  // its report may be in the executor
  } else {
    effects_.recalls.push_back({id, by});
  }
  const bool is_cut = own_deadline_of(run, step, index) <= now;
  failed(id, failure, false, now, is_cut ? AttemptEnd::deadline : AttemptEnd::timed_out);
}

Core::ReportUse Core::use_of(const ReportFacts& report) const {
  const AttemptId& id = report.id;
  const Run* const run = runs_.find(id.run);
  if (run == nullptr || run->steps == nullptr || id.step >= run->step_count()) return ReportUse::over;
  const StepState& state = run->steps[id.step];
  const Item* const item = state.visits == report.visit ? state.touched(id.item) : nullptr;
  if (item == nullptr) return ReportUse::over;
  if (item->status == ItemStatus::succeeded) return ReportUse::known;
  if (run->has_ended() || run->cancel_requested || is_final(state.status)) return ReportUse::over;
  const Outside* const outside = run->outside_of(id.step, id.item);
  const bool is_running = item->status == ItemStatus::running;
  const bool is_outside = outside != nullptr && outside->run == RunId{};
  if (item->token == id.token && (is_running || is_outside)) return is_running ? ReportUse::early : ReportUse::judge;
  if (!is_running && !is_outside && item->status != ItemStatus::waiting) return ReportUse::over;
  if (report.only_own) return ReportUse::over;
  return report.success ? ReportUse::judge : ReportUse::known;
}

bool Core::reported(const AttemptId& id, const event::PayloadView& output, Time now) {
  Run* const run = runs_.find(id.run);
  const bool is_there = run != nullptr && run->live && run->steps != nullptr && id.step < run->step_count();
  if (!is_there || run->has_ended() || run->cancel_requested) return false;
  const Item* const item = run->steps[id.step].touched(id.item);
  if (item == nullptr) return false;
  if (item->status == ItemStatus::running || item->status == ItemStatus::outside) {
    const AttemptId open{id.run, id.step, id.item, item->token};
    if (item->status == ItemStatus::running) effects_.cancels.push_back(open);  // what it does is done already
    return succeeded(open, output, now);
  }
  if (item->status != ItemStatus::waiting || is_final(run->steps[id.step].status)) return false;
  Record record{
      .type = EventType::completed, .step = id.step, .item = id.item, .attempt = item->attempt, .payload = output};
  complete(*run, record, now);
  refill(*run, id.step);
  settle(*run, now);
  return true;
}

void Core::fire_step(Run& run, std::uint32_t step, Time now) {
  const StepPlan& plan = run.step_plan(step);
  if (!is_allowed(run)) return;  // allow() finds it again
  if (plan.kind == StepKind::call || run.steps[step].status == StepStatus::preparing) {
    index_step(run, step, now);
    return;
  }
  if (run.steps[step].status != StepStatus::active || run.steps[step].next > 0) return;
  if (run.steps[step].due > now || run.paused_at != 0 || run.cancel_requested) return;
  if (plan.kind == StepKind::wait) {
    Record record{.type = EventType::completed, .step = step};
    complete(run, record, now);
  } else {
    const Failure failure{.type = "TimeoutError",
                          .message = "no signal \"" + run.signal_of(step) + "\" came in time",
                          .failure_class = FailureClass::transient,
                          .kind = FailureKind::timeout};
    Record record{.type = EventType::failed,
                  .step = step,
                  .reason = StopReason::deadline,
                  .failure_class = FailureClass::transient,
                  .failure = &failure};
    emit(run, record, now);
  }
  settle(run, now);
}

// ---- what operators ask for ----------------------------------------

Core::Answer Core::cancel(Run& run, std::string_view why, Time now, const event::RequestView& asked) {
  if (run.has_ended())
    return refuse("the run has ended (" + std::string{name_of(run.status)} + "): there is nothing to cancel");
  if (run.cancel_requested) return {};
  request_cancel(run, why, StopReason::canceled, now, asked);
  settle(run, now);
  return {};
}

void Core::request_cancel(Run& run, std::string_view why, StopReason reason, Time now,
                          const event::RequestView& asked) {
  if (run.function != nullptr) return cancel_function(run, why, reason, now, asked);
  Record record{.type = EventType::cancel_requested, .reason = reason, .text = why, .request = asked};
  emit(run, record, now);
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    call_off(run, step);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> waiting;
    run.steps[step].for_each_item([&](std::uint32_t index, Item& item) {
      if (item.status == ItemStatus::waiting) waiting.emplace_back(index, item.attempt);
    });
    for (const auto& [index, attempt] : waiting) {
      Record interrupted{.type = EventType::interrupted, .step = step, .item = index, .attempt = attempt};
      emit(run, interrupted, now);
    }
  }
}

// Asks whatever works for this step to stop, wherever it is.
void Core::call_off(Run& run, std::uint32_t step) {
  cancel_preparation(run, step);
  run.steps[step].for_each_item([&](std::uint32_t index, Item& item) {
    const AttemptId id{run.number, step, index, item.token};
    if (item.status == ItemStatus::running || item.status == ItemStatus::reserved) effects_.cancels.push_back(id);
    if (item.status == ItemStatus::outside) effects_.recalls.push_back({id, run.outside_of(step, index)->run});
  });
}

// What is asked of the executor is answered no more; whoever still wants to know asks again.
void Core::cancel_preparation(Run& run, std::uint32_t step) {
  StepState& state = run.steps[step];
  if (!run.step_plan(step).prepares || state.status != StepStatus::preparing || !state.queued) return;
  effects_.cancels.push_back({run.number, step, 0, 0});
  state.queued = false;
  REPRISE_CHECK(run.preparing > 0, run.number);
  --run.preparing;
}

Core::Answer Core::pause(Run& run, Time now, const event::RequestView& asked) {
  if (run.has_ended())
    return refuse("the run has ended (" + std::string{name_of(run.status)} + "): there is nothing to pause");
  if (run.cancel_requested) return refuse("the run is being cancelled");
  if (run.paused_at != 0) return {};
  Record record{.type = EventType::paused, .request = asked};
  emit(run, record, now);
  for (std::uint32_t step = 0; run.reserved > 0 && step < run.step_count(); ++step) take_back(run, step, now);
  return {};
}

Core::Answer Core::resume(Run& run, Time now, const event::RequestView& asked) {
  if (run.status == RunStatus::canceled) {
    if (run.function != nullptr) return refuse("a function that was cancelled has undone what it did: submit it again");
    Record record{.type = EventType::reopened, .resumes = true, .request = asked};
    emit(run, record, now);
    for (std::uint32_t step = 0; step < run.step_count(); ++step) {
      if (run.steps[step].circuit_open) skip_waiting_items(run, step, now);
    }
    settle(run, now);
    return {};
  }
  if (run.has_ended())
    return refuse("the run has ended (" + std::string{name_of(run.status)} + "); retry_failed tries again what failed");
  if (run.paused_at == 0) return {};
  Record record{.type = EventType::resumed, .request = asked};
  emit(run, record, now);
  settle(run, now);
  return {};
}

Core::Answer Core::signal(Run& run, std::string_view name, const event::PayloadView& payload, Time now,
                          const event::RequestView& asked) {
  constexpr std::size_t signals_max = 1024;
  if (run.has_ended()) return refuse("the run has ended (" + std::string{name_of(run.status)} + ")");
  if (run.extra != nullptr && run.extra->signals.size() >= signals_max) {
    return std::unexpected{Error{ErrorCode::full, "1,024 signals wait in this run already"}};
  }
  Record record{.type = EventType::signaled, .text = name, .payload = payload, .request = asked};
  emit(run, record, now);
  settle(run, now);
  return {};
}

namespace {

bool is_chosen(const Core::Choice& choice, std::uint32_t step, std::uint32_t item) {
  if (!choice.several.steps.empty()) return choice.several.has(step, item);
  return (!choice.step || *choice.step == step) && (!choice.item || *choice.item == item);
}

}  // namespace

Core::Answer Core::retry_failed(Run& run, const Choice& choice, Time now, const event::RequestView& asked) {
  const bool is_done = choice.step && !choice.item && run.steps[*choice.step].status == StepStatus::succeeded;
  std::uint64_t failed = 0;
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    run.steps[step].for_each_item([&](std::uint32_t index, Item& item) {
      failed += item.status == ItemStatus::failed && is_chosen(choice, step, index) ? 1 : 0;
    });
  }
  if (!run.has_ended()) return refuse("the run has not ended yet");
  if (run.function != nullptr) return refuse("a function that has failed has undone what it did: submit it again");
  const bool runs_again = failed == 0 && is_done && run.step_plan(*choice.step).runs_again;
  if (failed == 0 && !runs_again && run.status == RunStatus::canceled)
    return refuse("the run was cancelled, nothing in it has failed: resume goes on with it");
  if (failed == 0 && !runs_again) {
    const bool is_everything = !choice.step && choice.several.steps.empty();
    return refuse(is_everything ? "nothing in this run has failed" : "nothing there has failed");
  }
  const std::string several = to_text(choice.several, [](std::uint32_t step) { return std::to_string(step); });
  Record record{.type = EventType::reopened,
                .only_this = choice.only,
                .items = choice.item ? *choice.item + 1 : 0,
                .from_step = choice.step ? *choice.step + 1 : 0,
                .text = several,
                .request = asked};
  emit(run, record, now);
  const bool is_open = runs_again && run.step_plan(*choice.step).runs_finally;  // those run again in any case
  runs_again && !is_open ? run_again(run, *choice.step, *choice.step, choice.only, now) : mark_blocked(run, now);
  settle(run, now);
  return {};
}

Core::Answer Core::drop(Run& run, const Choice& choice, Time now, const event::RequestView& asked) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> letters;
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    run.steps[step].for_each_item([&](std::uint32_t index, const Item& item) {
      if (item.dead_letter && is_chosen(choice, step, index)) letters.emplace_back(step, index);
    });
  }
  if (letters.empty()) return std::unexpected{Error{ErrorCode::not_found, "there is no such dead letter"}};
  for (const auto& [step, index] : letters) {
    Record record{.type = EventType::dropped, .step = step, .item = index, .request = asked};
    emit(run, record, now);
  }
  return {};
}

// ---- what follows ----------------------------------------

void Core::deliver_signals(Run& run, Time now) {
  if (run.extra == nullptr || run.extra->signals.empty() || run.paused_at != 0 || run.cancel_requested) return;
  std::vector<std::uint32_t> waiting;
  run.for_each_open_step([&](std::uint32_t step) {
    const bool waits = run.waits_for_signal(step) && run.steps[step].status == StepStatus::active;
    if (waits) waiting.push_back(step);
  });
  for (const std::uint32_t step : waiting) {
    const auto found = std::ranges::find(run.extra->signals, run.signal_of(step), &Signal::name);
    if (found == run.extra->signals.end()) continue;
    const Payload payload = found->payload;
    Record record{.type = EventType::completed, .step = step, .payload = payload.view()};
    complete(run, record, now);
  }
}

RunStatus status_of_steps(const Run& run, bool with_finally) {
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    const StepPlan& plan = run.step_plan(step);
    if (plan.runs_finally && !with_finally) continue;
    const StepStatus status = run.steps[step].status;
    if (status == StepStatus::unreachable || (status == StepStatus::failed && plan.fails_run()))
      return RunStatus::failed;
  }
  return RunStatus::succeeded;
}

namespace {

// Has this step failed in a way that going back must not undo: by its breaker, or with work that may be done already?
bool is_terminated(const Run& run, std::uint32_t step) {
  if (run.steps[step].circuit_open) return true;
  bool is_unclear = false;
  run.steps[step].for_each_item([&](std::uint32_t, const Item& item) {
    is_unclear |=
        item.status == ItemStatus::failed && item.trouble != nullptr && item.trouble->reason == StopReason::unclear;
  });
  return is_unclear;
}

// Is nothing left but the steps that run in any case, and have they not begun?
bool is_time_for_finally(const Run& run) {
  const Plan& plan = *run.plan->plan;
  if (plan.finally_steps == 0 || run.open_steps != plan.finally_steps || run.cancel_requested) return false;
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    if (plan.steps[step].runs_finally && run.steps[step].status != StepStatus::pending) return false;
  }
  return true;
}

}  // namespace

// Draws the conclusions of what has just been applied, until there are none left.
void Core::settle(Run& run, Time now) {
  if (run.has_ended()) return;
  deliver_signals(run, now);
  if (run.function != nullptr) return settle_function(run, now);
  while (!run.finished.empty()) {
    const std::uint32_t step = run.finished.back();
    run.finished.pop_back();
    if (run.steps[step].status == StepStatus::failed) settle_failed_step(run, step, now);
    deliver_signals(run, now);
  }
  if (is_time_for_finally(run)) {
    Record finishing{.type = EventType::finishing, .status = status_of_steps(run, false)};
    emit(run, finishing, now);
    return settle(run, now);  // a signal that one of them waits for may be here already
  }
  Record ended{.type = EventType::ended};
  if (run.open_steps == 0) {
    ended.status = status_of_steps(run, true);
    for (std::uint32_t step = 0; step < run.step_count(); ++step) {
      const bool went_back = run.step_plan(step).on_failure == OnFailure::revisit && !is_terminated(run, step);
      if (went_back && run.steps[step].status == StepStatus::failed) ended.reason = StopReason::max_visits;
    }
    ++(ended.status == RunStatus::succeeded ? counters_.succeeded : counters_.failed);
  } else if (run.cancel_requested && run.taken() == 0) {
    ended.status = RunStatus::canceled;
    ended.reason = run.reason;
    ++counters_.canceled;
  } else {
    return;
  }
  emit(run, ended, now);
  const bool may_have_parent = run.plan->plan->is_document || (run.facts != nullptr && run.facts->parent);
  if (may_have_parent) effects_.ended.push_back(run.number);
}

void Core::settle_failed_step(Run& run, std::uint32_t step, Time now) {
  const StepPlan& plan = run.step_plan(step);
  switch (plan.on_failure) {
    case OnFailure::proceed:
      return;
    case OnFailure::skip:
      return mark_dependants(run, step, EventType::skipped, now);
    case OnFailure::fail:
    case OnFailure::dead_letter:  // more of them than it tolerates
      return mark_dependants(run, step, EventType::unreachable, now);
    case OnFailure::revisit:
      break;
  }
  if (run.cancel_requested || !may_revisit(run, step)) {
    return mark_dependants(run, step, EventType::unreachable, now);
  }
  for (const std::uint32_t again : steps_from(*run.plan->plan, plan.revisit)) call_off(run, again);
  Record record{.type = EventType::revisited, .step = plan.revisit, .from_step = step};
  emit(run, record, now);
  refill(run, plan.revisit);
  mark_blocked(run, now);
}

// Some of the steps that are pending again may need one that has failed for good, or that was skipped.
void Core::mark_blocked(Run& run, Time now) {
  for (std::uint32_t other = 0; other < run.step_count(); ++other) {
    const bool is_settled = std::ranges::find(run.finished, other) == run.finished.end();
    const StepStatus status = run.steps[other].status;
    if (status == StepStatus::skipped) {
      mark_dependants(run, other, EventType::skipped, now);
    } else if (status == StepStatus::failed && is_settled && !lets_go_on(run, other)) {
      const bool skips = run.step_plan(other).on_failure == OnFailure::skip;
      mark_dependants(run, other, skips ? EventType::skipped : EventType::unreachable, now);
    }
  }
}

bool Core::may_revisit(const Run& run, std::uint32_t step) const {
  if (is_terminated(run, step)) return false;
  return std::ranges::all_of(steps_from(*run.plan->plan, run.step_plan(step).revisit), [&](std::uint32_t again) {
    return run.own_visits(again) < run.step_plan(again).max_visits && !run.steps[again].circuit_open;
  });
}

void Core::mark_dependants(Run& run, std::uint32_t step, EventType type, Time now) {
  for (const std::uint32_t dependant : steps_from(*run.plan->plan, step)) {
    if (run.steps[dependant].status != StepStatus::pending) continue;
    Record record{.type = type, .step = dependant};
    emit(run, record, now);
  }
}

// ---- recovery ----------------------------------------

namespace {

// Does the record speak of a step and an item that exist?
bool fits(const Run& run, const Record& record) {
  if (run.steps == nullptr || record.step >= run.step_count()) return false;
  const Operation* const operation = run.operation(record.step);
  // One that has ended says nothing more: its end is counted once.
  if (operation != nullptr && operation->ended_at != 0 && record.type != EventType::dropped) return false;
  const StepState& state = run.steps[record.step];
  return record.item == 0 || (state.map != nullptr && record.item < state.items);
}

}  // namespace

bool Core::restore(Run& run, std::string_view state) {
  return decode_state(
      state, [this](std::uint32_t number) { return plan(number); }, facts_, run);
}

bool Core::replay(Run& run, const Record& record) {
  const bool is_first = record.type == EventType::submitted;
  if (is_first ? plan(record.plan) == nullptr : !fits(run, record) && !adds_step(run, record)) return false;
  apply(run, record);
  run.finished.clear();
  return true;
}

bool Core::replay(Run& run, std::string_view chunk, std::uint64_t first_sequence) {
  event::ChunkReader reader{chunk, first_sequence};
  Record record;
  bool fresh = false;
  const std::uint32_t before = run.sequence;
  const Time time_before = run.last_time;
  while (reader.next(record)) {
    if (record.sequence <= run.sequence) continue;  // the image has it already
    if (record.sequence != run.sequence + 1) return false;
    const bool is_first = record.type == EventType::submitted;
    if (is_first != (run.sequence == 0) || (is_first && plan(record.plan) == nullptr)) return false;
    if (!is_first && !fits(run, record) && !adds_step(run, record)) return false;
    if (run.events.empty()) {
      event::put_chunk_header(run.events, is_first ? record.time : time_before);
      run.events_first = before + 1;
      if (is_first) run.last_time = record.time;
    }
    run.events.append(reader.raw());
    apply(run, record);
    if (is_first && !record.facts.empty() && run.facts == nullptr) return false;
    if (!record.policies.empty() && !run.has_item_policies(record.step)) return false;
    run.finished.clear();
    fresh = true;
  }
  if (fresh) {
    run.framed = run.events.size();
    run.framed_sequence = run.sequence;
    run.framed_time = run.last_time;
  }
  return reader.ok();
}

void Core::adopt(Run& run, Time now, Time back_since) {
  run.live = true;
  run.running = 0;
  run.outside = 0;
  run.reserved = 0;
  if (run.has_ended()) return;
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    const StepState& state = run.steps[step];
    run.running += state.running;
    run.reserved += state.reserved;
    queues_[run.queue_of(step)].taken += state.taken();
    counters_.running += state.running;
    counters_.reserved += state.reserved;
  }
  if (run.extra != nullptr) {
    for (const auto& [place, outside] : run.extra->outside) {
      ++run.outside;
      leave_place(run, place.first);
    }
  }
  if (run.taken() > run.outside) {
    lose_running_attempts(run, now);
  } else if (back_since > run.last_time && run.paused_at == 0 && run.sequence > 1) {  // something of it had happened
    Record recovered{.type = EventType::recovered};
    emit(run, recovered, back_since);
  }
  index_run(run, now);
  // Its timer would come a turn too late: nothing starts after the deadline.
  if (!run.has_ended() && !run.cancel_requested && run.paused_at == 0 && deadline_of(run) <= now) {
    request_cancel(run, "deadline", StopReason::deadline, now);
  }
  settle(run, now);
  if (!run.has_ended()) announce(run);
}

void Core::lose_running_attempts(Run& run, Time now) {
  Record recovered{.type = EventType::recovered};
  emit(run, recovered, now);
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    std::vector<std::pair<std::uint32_t, bool>> lost;  // and whether it was only reserved
    run.steps[step].for_each_item([&](std::uint32_t index, Item& item) {
      const bool was_reserved = item.status == ItemStatus::reserved;
      if (item.status == ItemStatus::running || was_reserved) lost.emplace_back(index, was_reserved);
    });
    for (const auto& [index, was_reserved] : lost)
      fail_attempt(run, step, index, lost_attempt(was_reserved), AttemptEnd::lost, now);
  }
}

}  // namespace reprise::core
