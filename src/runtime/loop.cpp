// What the loop does with each input, and with time.
#include "runtime/loop.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "base/check.hpp"
#include "base/hex.hpp"
#include "base/overloaded.hpp"
#include "event/evidence.hpp"
#include "runtime/ids.hpp"
#include "runtime/stored_runs.hpp"

namespace reprise::runtime {
namespace {

std::unexpected<Error> not_found(const RunId& run) {
  return std::unexpected{Error{ErrorCode::not_found, "there is no run " + to_string(run) + " in this store"}};
}

}  // namespace

Loop::Loop(store::Store& store, Executors executors, const LoopSettings& settings, std::uint64_t seed, Time now)
    : store_{store},
      executors_{std::move(executors)},
      settings_{settings},
      core_{now, seed},
      secret_{store.secret()},
      slot_{store.slot()},
      journal_{settings.journal_max},
      retention_{
          {.keep_ended = settings.keep_ended, .keep_count = settings.keep_count, .at_once = settings.removals_a_turn}} {
}

RunId Loop::id(std::uint64_t number, Time created) const noexcept { return id_of(secret_, number, created, slot_); }

void Loop::handle(Input&& input, Time now) {
  const auto take_it = [&](auto& kind) {
    if constexpr (std::is_void_v<decltype(take(std::move(kind), now))>) {
      take(std::move(kind), now);
      return true;
    } else {
      return take(std::move(kind), now);
    }
  };
  if (must_wait_behind_others(input) || !std::visit(take_it, input)) put_aside(std::move(input));
}

bool Loop::turn(Time now) {
  if (tries_again_ && now >= read_again_) try_waiting_again(now);
  if (!uncounted_.empty() && now >= read_again_) {
    for (const core::Prepare& prepare : std::exchange(uncounted_, {})) count_items(prepare, now);
  }
  retry_hand_overs(now);
  bool more = now >= timers_held_until_ && core_.due(now, settings_.timers_a_turn);
  settle_children(now);  // what becomes ready by it may start now
  if (starting_ && core_.has_ready()) more |= start_ready(now);
  more |= advance_functions(now);
  if (has_children_to_settle() && settle_children(now)) more |= starting_ && core_.has_ready();
  if (std::exchange(was_told_, false))
    look_ups_.end_round(!waiting_.empty() || !hand_overs_.empty() || is_held_back_ || !uncounted_.empty());
  return more;
}

// True: there is more that could start at once.
bool Loop::start_ready(Time now) {
  const std::vector<std::size_t> promised = promised_jobs();
  const std::size_t starts_before = core_.effects().starts.size();
  const std::uint64_t events_before = core_.counters().events;
  core_.dispatch(
      [&](const core::HandlerAddress& address) {
        const std::size_t room = executors_[address.executor]->capacity(address.handler);
        return room > promised[address.executor] ? room - promised[address.executor] : 0;
      },
      settings_.starts_a_turn, now,
      [&](const core::HandlerAddress& address, std::uint32_t places) {
        return executors_[address.executor]->ahead(address.handler, places);
      });
  take_function_starts();
  // What was given up because its time was over may have made something ready in a queue that had been looked at already.
  const std::size_t started = core_.effects().starts.size() - starts_before;
  const bool gave_up = core_.counters().events - events_before > started;
  return core_.has_ready() && (gave_up || started >= settings_.starts_a_turn);
}

// Attempts that are recorded but not yet handed over will need their threads too: how many, for each executor.
std::vector<std::size_t> Loop::promised_jobs() const {
  std::vector<std::size_t> promised(executors_.size(), 0);
  for (const core::Start& start : core_.effects().starts)
    promised[core_.address_of(*start.run, start.id.step).executor] += start.reserved ? 0 : 1;
  for (const auto& batch : outstanding_) {
    for (std::size_t executor = 0; executor < batch->orders.size(); ++executor)
      promised[executor] += static_cast<std::size_t>(
          std::ranges::count_if(batch->orders[executor].jobs, [](const exec::Job& job) { return !job.limits.waits; }));
  }
  return promised;
}

bool Loop::has_news() const noexcept {
  const core::Effects& effects = core_.effects();
  return !effects.touched.empty() || !answers_.empty() || !filling_.removals.empty() || !filling_.plans.empty() ||
         !effects.prepares.empty() || !effects.cancels.empty() || !effects.take_backs.empty() ||
         !effects.settled.empty();
}

bool Loop::has_news_now() const noexcept { return outstanding_.empty() && has_news() && !is_held_back_; }

std::optional<Time> Loop::next_wakeup() const {
  std::optional<Time> next = core_.next_due();
  if (next) next = std::max(*next, timers_held_until_);
  const auto consider = [&](Time time) { next = next ? std::min(*next, time) : time; };
  // While a commit is on its way, its end is what to wait for.
  const bool may_look_up = !trouble_ && !looking_up_.is_reading;  // or the answer is what to wait for
  if (may_look_up && next_due_ && has_room_to_load() && outstanding_.empty()) {
    consider(std::max(*next_due_ - settings_.park_after.count() / 2, read_again_));
  }
  if (may_look_up && (loading_ || !uncounted_.empty() || !hand_overs_.empty() || is_held_back_ || tries_again_))
    consider(read_again_);
  if (trouble_ && !writing_ && retry_at_ != INT64_MAX) consider(retry_at_);
  if (retention_.next() && !trouble_ && !listing_.is_reading && outstanding_.empty()) consider(*retention_.next());
  return next;
}

// ---- attempts ----------------------------------------

void Loop::take(Ended&& ended, Time now) {
  const event::AttemptId& id = ended.outcome.id;
  if (!judging_.empty() && take_judged(ended, now)) return;
  if (!early_.empty() && take_early(ended.outcome, now)) return;
  const auto take_end = base::Overloaded{
      [&](exec::Succeeded& end) {
        if (core_.succeeded(id, end.output.view(), now, end.whole_output) && end.output.hashed)
          put_payload(id.run, end.output, std::move(ended.body));
      },
      [&](exec::Failed& end) {
        if (core_.failed(id, *end.failure, end.precondition, now, end.by))
          put_evidence(id.run, *end.failure, std::move(ended.body));
      },
      [&](exec::Interrupted&) { core_.interrupted(id, now); },
      [&](exec::Lost&) { core_.lost(id, now); },
      [&](exec::Returned&) { core_.interrupted(id, now, false); },
      [&](exec::Suspended&) { core_.handed_over(id, {.returns = true}, now); },
  };
  std::visit(take_end, ended.outcome.end);
  // One that was handed over keeps its places until what works for it has ended, which the core tells.
  const bool keeps_places = std::holds_alternative<exec::Suspended>(ended.outcome.end);
  if (!std::holds_alternative<exec::Succeeded>(ended.outcome.end) && !keeps_places)
    core_.effects().settled.push_back(id);
}

void Loop::stop_starting() {
  if (!std::exchange(starting_, false)) return;
  for (exec::Executor* const executor : executors_) executor->take_back_all();
}

void Loop::take(exec::Progress&& progress, Time now) { core_.progressed(progress.id, progress.text, now); }

void Loop::take(Begins&& begins, Time now) {
  exec::Prepared& prepared = begins.prepared;
  if (prepared.skip) return core_.condition_is_false(prepared.id.run, prepared.id.step, now);
  if (prepared.failure != nullptr) {
    put_evidence(prepared.id.run, *prepared.failure, std::move(begins.body));
    return core_.prepare_failed(prepared.id.run, prepared.id.step, *prepared.failure, now);
  }
  if (prepared.list.hashed) put_payload(prepared.id.run, prepared.list, std::move(begins.body));
  core_.prepared(prepared.id.run, prepared.id.step, prepared.items, prepared.list.view(), now, prepared.policies);
}

void Loop::take(OpenQueue&& queue, Time) {
  REPRISE_CHECK(queue.address.executor < executors_.size(), 0);
  core_.open_queue(queue.handler, queue.address, queue.limit);
  announce_functions();
}

void Loop::put_payload(std::uint64_t run, const Payload& payload, std::string body) {
  if (const core::Run* const function = core_.find(run); !body.empty() && function != nullptr && function->function != nullptr)
    unwritten_.insert_or_assign(payload.bytes, Unwritten{next_commit_, body});
  store::NewPayload row;
  // Not left to put(), or a large payload would take twice its size.
  filling_.bytes.reserve(filling_.bytes.size() + payload.bytes.size() + body.size());
  row.hash = filling_.put(payload.bytes);
  row.body = filling_.put(body);
  row.run = run;
  filling_.payloads.push_back(row);
}

// Without a body the store has the bytes already, and another run needs them too.
void Loop::put_evidence(std::uint64_t run, const Failure& failure, std::string body) {
  if (!event::is_kept_apart(failure)) return;
  const auto hash = base::bytes_of_hexadecimal(failure.evidence);
  if (hash) put_payload(run, {.bytes = *hash, .size = failure.evidence_size, .hashed = true}, std::move(body));
}

// ---- submitting ----------------------------------------

bool Loop::take(Submit&& submit, Time now) {
  std::expected<void, Error> answer = admit(submit.reply->runs.size());
  // All keys are looked up before anything is accepted: all of them, or none.
  std::vector<std::optional<RunId>> known;
  bool is_missing = false;
  for (const NewRun& run : submit.reply->runs) {
    if (!answer) break;
    const auto looked = id_of_key(run.key);
    if (!looked) {
      is_missing = true;
    } else if (!*looked) {
      answer = std::unexpected{looked->error()};
    } else {
      known.push_back(**looked);
    }
  }
  if (answer && is_missing) return false;
  for (std::size_t index = 0; answer && index < known.size(); ++index)
    accept(submit.reply->runs[index], known[index], now);
  answer_later(std::move(submit.reply), std::move(answer));
  return true;
}

std::expected<void, Error> Loop::admit(std::size_t runs) const {
  if (trouble_) return std::unexpected{*trouble_};
  if (!starting_) return std::unexpected{Error{ErrorCode::stopped, "the engine is stopping and takes no new work"}};
  if (open_ + runs > settings_.max_open) {
    return std::unexpected{Error{ErrorCode::full, "there are " + std::to_string(open_) +
                                                      " open runs, and max_open is " +
                                                      std::to_string(settings_.max_open) + ": try again later"}};
  }
  if (next_run_ + runs > run_number_max) {
    return std::unexpected{Error{ErrorCode::full, "the store has used up its run numbers"}};
  }
  return {};
}

// `known` is the run that has its key already.
void Loop::accept(NewRun& run, const std::optional<RunId>& known, Time now) {
  if (known) {
    run.id = *known;
    return;
  }
  if (const auto twin = young_keys_.find(run.key); twin && !retention_.is_removing(*twin)) {
    run.id = id(*twin, core_.find(*twin)->created);  // an earlier one of the same batch
    return;
  }
  const std::uint64_t number = next_run_++;
  const Time due =
      run.delay.count() > 0 ? (run.delay.count() > INT64_MAX - now ? INT64_MAX : now + run.delay.count()) : 0;
  core::Run& accepted = core_.submit({.run = number,
                                      .plan = plan_of(*run.plan),
                                      .input = run.input.view(),
                                      .items = run.items,
                                      .key = run.key,
                                      .due = due,
                                      .priority = run.priority,
                                      .facts = std::move(run.facts),
                                      .asleep = memory_is_short()},
                                     now);
  ++open_;
  accepted.counted = true;
  run.id = id(number, now);
  if (run.input.hashed) put_payload(number, run.input, std::move(run.body));
  if (!run.key.empty()) {
    filling_.keys.push_back({filling_.put(run.key), number});
    young_keys_.add(run.key, number, next_commit_);
    look_ups_.key_given(run.key);
  }
}

const core::NumberedPlan* Loop::plan_of(const BookedPlan& booked) {
  if (stored_plans_.size() <= booked.number) stored_plans_.resize(booked.number + 1, false);
  if (!stored_plans_[booked.number]) {
    stored_plans_[booked.number] = true;
    store::NewPlan row;
    row.number = booked.number;
    row.name = filling_.put(booked.plan->name);
    row.body = filling_.put(booked.body);
    filling_.plans.push_back(row);
  }
  const core::NumberedPlan* const known = core_.plan(booked.number);
  return known != nullptr ? known : core_.add_plan(booked.number, booked.plan);
}

// ---- operating ----------------------------------------

namespace {

// What the operator named, as numbers.
std::expected<core::ChosenStep, Error> step_of(const core::Run& run, const StepItems& wanted) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t step = 0; step < run.step_count(); ++step) {
    if (*run.step_plan(step).name == wanted.step) found = step;
  }
  if (!found) return std::unexpected{Error{ErrorCode::not_found, "the run has no step \"" + wanted.step + "\""}};
  const std::uint32_t items = run.steps[*found].items;
  if (std::ranges::any_of(wanted.items, [&](const core::ItemRange& range) { return range.to >= items; })) {
    return std::unexpected{Error{ErrorCode::not_found, "step \"" + wanted.step + "\" has " + std::to_string(items) +
                                                           " items, and their numbers begin with 0"}};
  }
  return core::ChosenStep{*found, wanted.items};
}

std::expected<core::Core::Choice, Error> choice_of(const core::Run& run, const WorkChoice& wanted) {
  core::Core::Choice choice{.only = wanted.only};
  for (const StepItems& each : wanted.steps) {
    auto step = step_of(run, each);
    if (!step) return std::unexpected{std::move(step.error())};
    choice.several.steps.push_back(*std::move(step));
  }
  const auto& steps = choice.several.steps;
  if (steps.size() != 1) return choice;
  const auto& items = steps.front().items;
  const bool is_one = items.empty() || (items.size() == 1 && items.front().from == items.front().to);
  if (!is_one) return choice;
  choice.step = steps.front().step;
  if (!items.empty()) choice.item = items.front().from;
  choice.several = {};
  return choice;
}

}  // namespace

bool Loop::take(Operate&& operate, Time now) {
  if (trouble_) {
    operate.reply->done(std::unexpected{*trouble_});
    return true;
  }
  if (operate.operation == Operation::remove) {
    auto answer = remove(operate);
    if (answer) answer_later(std::move(operate.reply), *std::move(answer));
    return answer.has_value();
  }
  const auto looked = load(operate.run);
  if (!looked) return false;
  const auto& found = *looked;
  std::expected<void, Error> answer;
  if (!found) {
    answer = std::unexpected{found.error()};
  } else if (found->run == nullptr) {
    answer = not_found(operate.run);
  } else {
    core::Run& run = *found->run;
    if (!run.live) adopt(run, now);
    answer = operate_on(run, operate, now);
    count_if_open(run);
    unload(*found);
  }
  answer_later(std::move(operate.reply), std::move(answer));
  return true;
}

// It may have been reopened.
void Loop::count_if_open(core::Run& run) {
  if (run.has_ended() || run.counted) return;
  ++open_;
  run.counted = true;
}

std::expected<void, Error> Loop::operate_on(core::Run& run, Operate& operate, Time now) {
  const event::RequestView asked = operate.asked.view();
  switch (operate.operation) {
    case Operation::cancel:
      return core_.cancel(run, operate.text, now, asked);
    case Operation::pause:
      return core_.pause(run, now, asked);
    case Operation::resume:
      return core_.resume(run, now, asked);
    case Operation::retry_failed:
    case Operation::drop: {
      const auto choice = choice_of(run, operate.choice);
      if (!choice) return std::unexpected{choice.error()};
      return operate.operation == Operation::drop ? core_.drop(run, *choice, now, asked)
                                                  : core_.retry_failed(run, *choice, now, asked);
    }
    case Operation::signal: {
      auto answer = core_.signal(run, operate.text, operate.payload.view(), now, asked);
      if (answer && operate.payload.hashed) put_payload(run.number, operate.payload, std::move(operate.body));
      return answer;
    }
    case Operation::remove:
      break;
  }
  return {};
}

// std::nullopt: its row has to be read first.
std::optional<std::expected<void, Error>> Loop::remove(const Operate& operate) {
  const std::uint64_t number = number_in(operate.run);
  if (retention_.is_removing(number)) return not_found(operate.run);
  bool ended = false;
  if (const core::Run* const run = core_.find(number); run != nullptr && id(number, run->created) == operate.run) {
    ended = run->has_ended() && !run->touched;
  } else {
    const auto* const row = look_ups_.row(number);
    if (row == nullptr) return std::nullopt;
    if (!*row) return std::unexpected{row->error()};
    if (!**row || id(number, (**row)->created) != operate.run) return not_found(operate.run);
    ended = !is_open((**row)->status);
  }
  if (!ended) return std::unexpected{Error{ErrorCode::invalid, "the run has not ended: cancel it first"}};
  filling_.removals.push_back(number);
  retention_.remove(number);
  return std::expected<void, Error>{};
}

// ---- asking ----------------------------------------

void Loop::describe(const core::Run& run, AskReply& reply) const {
  reply.number = run.number;
  reply.plan = run.plan->number;
  reply.sequence = run.sequence;
  reply.info = info_of(run, {secret_, slot_});
  reply.outcome = core::outcome_of(run);
  const Payload* const output = core::output_of(run);
  if (output != nullptr && output->hashed) reply.large_output = *output;
  if (run.function != nullptr && run.function->published.size > 0) reply.published = run.function->published;
}

bool Loop::take(Ask&& ask, Time) {
  if (trouble_) {
    ask.reply->done(std::unexpected{*trouble_});
    return true;
  }
  const auto looked = load(ask.run);
  if (!looked) return false;
  const auto& found = *looked;
  if (!found || found->run == nullptr) {
    answer_later(std::move(ask.reply), found ? not_found(ask.run) : std::unexpected{found.error()});
    return true;
  }
  core::Run& run = *found->run;
  if (ask.question == Question::ended && !run.has_ended()) {
    // Whoever has given up waiting holds its reply no longer: one that only we hold is for nobody.
    const auto [first, last] = waiting_for_end_.equal_range(run.number);
    for (auto at = first; at != last;) at = at->second.use_count() == 1 ? waiting_for_end_.erase(at) : std::next(at);
    waiting_for_end_.emplace(run.number, std::move(ask.reply));
    unload(*found);
    return true;
  }
  describe(run, *ask.reply);
  ask.reply->may_go_on = core_.is_allowed(run);
  if (ask.question == Question::state) core::encode_state(run, ask.reply->state);
  if (ask.question == Question::past || ask.question == Question::state) {
    ask.reply->events = run.events;
    ask.reply->events_first = run.events.empty() ? run.sequence + 1 : run.events_first;
  }
  unload(*found);
  answer_later(std::move(ask.reply), {});
  return true;
}

void Loop::answer_later(std::shared_ptr<Reply> reply, std::expected<void, Error> answer) {
  if (trouble_) return reply->done(answer ? std::unexpected{*trouble_} : std::move(answer));
  answers_.push_back({std::move(reply), std::move(answer)});
}

void Loop::tell_trouble(const Error& error) {
  for (const auto& batch : outstanding_) {
    for (Batch::Answer& waiting : batch->answers) waiting.reply->done(std::unexpected{error});
    batch->answers.clear();
  }
  for (Batch::Answer& waiting : answers_) waiting.reply->done(std::unexpected{error});
  answers_.clear();
}

void Loop::abandon_replies(const Error& error) {
  tell_trouble(error);
  answer_reports(exec::ReportTaken::not_now);
  for (auto& [run, reply] : waiting_for_end_) reply->done(std::unexpected{error});
  waiting_for_end_.clear();
  for (Input& input : std::exchange(waiting_, {})) refuse(input, error);
  waiting_runs_.clear();
  refuse_finds(error);
}

EngineStats Loop::stats() const {
  const core::Counters& counters = core_.counters();
  return {.open = open_,
          .resident = core_.resident(),
          .resident_bytes = resident_bytes_,
          .ready = counters.ready,
          .running = counters.running,
          .waiting = core_.timers(),
          .accepted = counters.accepted,
          .succeeded = counters.succeeded,
          .failed = counters.failed,
          .canceled = counters.canceled,
          .attempts = counters.attempts,
          .retries = counters.retries,
          .late = counters.late,
          .commits = committed_,
          .committed_bytes = committed_bytes_,
          .events = counters.events,
          .loading = loading_,
          .trouble = trouble_        ? trouble_->message
                     : read_trouble_ ? read_trouble_->message
                                     : ""};
}

}  // namespace reprise::runtime
