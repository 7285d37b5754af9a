// From what has happened to a commit, and from a durable commit to its effects.
#include <algorithm>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/check.hpp"
#include "event/codec.hpp"
#include "exec/function/list.hpp"
#include "runtime/ids.hpp"
#include "runtime/loop.hpp"

namespace reprise::runtime {
namespace {

constexpr std::size_t batches_max = 2;
constexpr std::size_t spare_bytes_max = 4U << 20U;  // what was larger gives its memory back
constexpr std::size_t large_run = 1U << 20U;        // bytes of memory
constexpr std::size_t notice_max = 1U << 20U;       // bytes of old events that a watcher gets with the first new ones
constexpr std::int64_t due_soon = 50'000'000;       // 50 ms: too soon to leave memory for, even when it is short
constexpr Duration first_retry = std::chrono::milliseconds{50};
constexpr Duration longest_retry = std::chrono::seconds{2};

// Trouble that goes away when space, rights or the disk come back. The rest does not: the store is another one, or broken.
bool may_pass(ErrorCode code) {
  return code != ErrorCode::store_gone && code != ErrorCode::store_damaged && code != ErrorCode::store_newer &&
         code != ErrorCode::fenced && code != ErrorCode::store_behind;
}

// Callers were told of what is missing: going on would give its run numbers, and so its ids, to others.
Error behind(std::uint64_t last, std::uint64_t acknowledged) {
  return {ErrorCode::store_behind, "The store has forgotten " + std::to_string(acknowledged - last) +
                                       " commits: its last one is " + std::to_string(last) + ", and commit " +
                                       std::to_string(acknowledged) +
                                       " was acknowledged. Was an older copy put in its place?"};
}

Time sooner(Time left, Time right) {
  if (left == 0) return right;
  return right == 0 ? left : std::min(left, right);
}

// Keeps the memory for the next time, unless it is large. (An assignment of {} would keep that too, and glibc keeps what one thread has
// freed from the others: a million items would take it twice.)
void empty(std::string& bytes) {
  bytes.clear();
  if (bytes.capacity() <= spare_bytes_max) return;
  std::string{}.swap(bytes);
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace

void Batch::clear() {
  commit.clear();
  empty(commit.bytes);
  for (Orders& order : orders) {
    order.jobs.clear();
    order.cancels.clear();
    order.take_backs.clear();
  }
  settled.clear();
  prepares.clear();
  answers.clear();
  leaving.clear();
  notices.clear();
  earliest_due = INT64_MAX;
}

store::Result<bool> is_written(store::Store& store, const store::Commit& commit) {
  if (auto opened = store.reopen(); !opened) return std::unexpected{opened.error()};
  const auto last = store.last_commit();
  if (!last) return std::unexpected{last.error()};
  if (*last + 1 < commit.id) return std::unexpected{behind(*last, commit.id - 1)};
  return *last >= commit.id;
}

store::Result<void> write_commit(store::Store& store, const store::Commit& commit, bool verify) {
  if (verify) {
    const auto is_there = is_written(store, commit);
    if (!is_there) return std::unexpected{is_there.error()};
    if (*is_there) return {};
  }
  return store.append(commit);
}

// ---- building ----------------------------------------

Batch& Loop::new_batch() {
  if (spare_.empty()) {
    outstanding_.push_back(std::make_unique<Batch>());
  } else {
    outstanding_.push_back(std::move(spare_.back()));
    spare_.pop_back();
  }
  return *outstanding_.back();
}

void Loop::build(Time now) {
  if (outstanding_.size() >= batches_max || !has_news()) return;
  if (!settle_children(now)) return;
  core::Effects& effects = core_.effects();
  const bool nothing_to_write = effects.touched.empty() && filling_.removals.empty() && filling_.plans.empty();
  Batch& batch = new_batch();
  batch.answers.swap(answers_);
  add_orders(batch);
  batch.prepares.swap(effects.prepares);
  if (nothing_to_write) {
    if (outstanding_.size() == 1) {
      release(batch, now);
      return;
    }
    batch.commit.id = 0;  // nothing to write: it only waits for the one before it
    return;
  }
  batch.commit.bytes.swap(filling_.bytes);
  batch.commit.keys.swap(filling_.keys);
  batch.commit.payloads.swap(filling_.payloads);
  batch.commit.plans.swap(filling_.plans);
  batch.commit.removals.swap(filling_.removals);
  batch.commit.id = next_commit_++;

  std::string& frame = frame_;
  frame.clear();
  event::put_frame_header(frame);
  for (core::Run* const run : effects.touched) write_run(*run, batch, now);
  effects.touched.clear();
  shorten_journal(batch);
  if (!batch.commit.images.empty()) put_imaged_runs(batch);
  batch.commit.frame = batch.commit.put(frame);
  journal_.add_frame(batch.commit.id, frame.size());
}

void Loop::write_run(core::Run& run, Batch& batch, Time now) {
  run.touched = false;
  if (observer_ != nullptr && observer_->is_watching() && run.sequence > run.framed_sequence) add_notice(run, batch);
  if (run.has_ended()) {
    write_image(run, batch, 0);
    batch.leaving.push_back(run.number);
    run.leaving_with = batch.commit.id;
    if (run.counted) --open_;
    run.counted = false;
    answer_ended(run, batch);
  } else if (const std::optional<Time> due = park_until(run, now)) {
    write_image(run, batch, *due);
    batch.leaving.push_back(run.number);
    run.leaving_with = batch.commit.id;
    batch.earliest_due = std::min(batch.earliest_due, *due);
    next_due_ = next_due_ ? std::min(*next_due_, *due) : *due;
    parked_meanwhile_ = std::min(parked_meanwhile_, *due);
  } else {
    write_part(run, batch);
  }
  account(run);
}

// With the events before the new ones, if this is the first that the observer hears of this run: they tell what is being retried.
void Loop::add_notice(const core::Run& run, Batch& batch) {
  const std::uint64_t new_first = run.framed_sequence + 1;
  Batch::Notice& notice = batch.notices.emplace_back(
      Batch::Notice{run.number, run.plan->plan.get(), run.created, run.events_first, new_first, {}});
  if (run.events.size() <= notice_max && !observer_->knows(id(run.number, run.created))) {
    notice.chunk = run.events;
    return;
  }
  notice.chunk_first = new_first;
  event::put_chunk_header(notice.chunk, run.framed_time);
  notice.chunk.append(run.events, run.framed);
}

// When this run should be loaded again, if it is to leave memory.
std::optional<Time> Loop::park_until(const core::Run& run, Time now) const {
  if (!run.live) return std::max({now, parked_after() + 1, run.due});
  const std::optional<Time> due = core_.idle_until(run);
  if (!due) return std::nullopt;
  const std::uint32_t own = run.function != nullptr ? 1 : 0;  // it is told of everything it waits for
  if (run.outside > own && !memory_is_short()) return std::nullopt;  // nobody knows how soon a sub-flow ends
  const std::int64_t horizon = memory_is_short() ? due_soon : settings_.park_after.count();
  if (*due - now <= horizon || *due <= parked_after()) return std::nullopt;
  return *due;
}

void Loop::write_image(core::Run& run, Batch& batch, Time due) {
  store::Commit& commit = batch.commit;
  store::Image& image = commit.images.emplace_back();
  image.run = run.number;
  image.status = run.status;
  image.plan = run.plan->number;
  image.created = run.created;
  image.ended = run.ended;
  image.due = due;
  image.first_sequence = run.events_first;
  // An item takes less than half as much here as in memory. Grown piece by piece, a large image would be there twice for a moment.
  if (run.accounted > large_run) commit.bytes.reserve(commit.bytes.size() + run.accounted / 2 + run.events.size());
  const std::size_t start = commit.bytes.size();
  core::encode_state(run, commit.bytes);
  image.state = {start, commit.bytes.size() - start};
  image.events = commit.put(run.events);
  image.key = commit.put(run.key);
  empty(run.events);
  run.framed = 0;
  run.framed_sequence = run.sequence;
  run.oldest_commit = 0;
  run.has_row = true;
}

void Loop::write_part(core::Run& run, Batch& batch) {
  if (run.framed == run.events.size()) return;
  event::put_frame_part(frame_, run.number, run.framed_sequence + 1, run.framed_time,
                        std::string_view{run.events}.substr(run.framed));
  run.framed = run.events.size();
  run.framed_sequence = run.sequence;
  run.framed_time = run.last_time;
  if (run.oldest_commit != 0) return;
  run.oldest_commit = batch.commit.id;
  journal_.add_run(run.number, batch.commit.id);
}

// The runs that have an image in this commit, so that recovery need not ask the store for each.
void Loop::put_imaged_runs(Batch& batch) {
  std::string list;
  std::uint64_t previous = 0;
  for (const store::Image& image : batch.commit.images) {
    event::put_signed(list, static_cast<std::int64_t>(image.run - previous));
    previous = image.run;
  }
  event::put_frame_part(frame_, 0, batch.commit.images.size(), 0, list);
}

void Loop::shorten_journal(Batch& batch) {
  std::size_t images = 0;
  for (; journal_.oldest() != nullptr; journal_.drop_oldest()) {
    core::Run* const run = core_.find(journal_.oldest()->run);
    if (run == nullptr || run->oldest_commit != journal_.oldest()->oldest_commit) continue;  // it needs no frame now
    if (!journal_.is_too_long() || images == settings_.images_to_shorten) break;
    write_image(*run, batch, 0);
    ++images;
  }
  batch.commit.cut = journal_.cut().value_or(0);
}

void Loop::account(core::Run& run) {
  const std::size_t bytes = core::bytes_of(run);
  resident_bytes_ += bytes - run.accounted;
  run.accounted = bytes;
  const std::size_t waiting = run.outside > 0 ? bytes : 0;
  waiting_bytes_ += waiting - run.accounted_waiting;
  run.accounted_waiting = waiting;
}

void Loop::forget(core::Run& run) {
  if (run.function != nullptr && run.function->has_begun)
    executors_[core_.address_of(run, 0).executor]->forget({.run = run.number});
  resident_bytes_ -= run.accounted;
  waiting_bytes_ -= run.accounted_waiting;
  core_.forget(run);
}

void Loop::answer_ended(core::Run& run, Batch& batch) {
  const auto [first, last] = waiting_for_end_.equal_range(run.number);
  for (auto at = first; at != last; ++at) {
    describe(run, *at->second);
    batch.answers.push_back({std::move(at->second), {}});
  }
  waiting_for_end_.erase(first, last);
}

// What the executors are to do when the batch is durable.
void Loop::add_orders(Batch& batch) {
  core::Effects& effects = core_.effects();
  batch.orders.resize(executors_.size());
  for (const core::Start& start : effects.starts)
    batch.orders[core_.address_of(*start.run, start.id.step).executor].jobs.push_back(job_of(start));
  const auto orders_for = [&](const event::AttemptId& id) -> Batch::Orders& {
    const core::Run* const run = core_.find(id.run);
    REPRISE_CHECK(run != nullptr, id.run);  // what was cancelled is recorded with this batch
    return batch.orders[core_.address_of(*run, id.step).executor];
  };
  for (const event::AttemptId& cancel : effects.cancels) orders_for(cancel).cancels.push_back(cancel);
  for (const event::AttemptId& reserved : effects.take_backs) orders_for(reserved).take_backs.push_back(reserved);
  batch.settled.swap(effects.settled);
  effects.starts.clear();
  effects.cancels.clear();
  effects.take_backs.clear();
}

exec::Job Loop::job_of(const core::Start& start) {
  const core::Run& run = *start.run;
  const core::StepPlan& plan = run.step_plan(start.id.step);
  const core::StepState& state = run.steps[start.id.step];
  exec::Job job;
  job.id = start.id;
  job.attempt = start.attempt;
  job.handler = core_.address_of(run, start.id.step).handler;
  job.run_id = id(run.number, run.created);
  job.step = plan.name;
  job.input_is_list = state.map != nullptr;
  const core::Operation* const operation = run.operation(start.id.step);
  job.input = state.map != nullptr && plan.for_each ? state.map->list : operation != nullptr ? operation->input : run.input;
  const Policy& policy = run.policy(start.id.step, start.id.item);
  job.timeout = policy.attempt_timeout.value_or(Duration{0});
  job.limits = {.handler = core_.limit_of(run, start.id.step),
                .step = plan.max_parallel,
                .run = run.plan->plan->max_parallel,
                .waits = start.reserved};
  if (run.deadline() > 0) job.deadline = core::deadline_of(run);
  if (run.has_visits_that_go_on()) job.visit = state.visits;
  const core::Item* const item = state.touched(start.id.item);  // nullptr: its step was sent back in the meantime
  if (item != nullptr) {
    job.used_attempts = item->used_attempts();
    job.is_first = !item->has_begun_before();
  }
  if (policy.max_elapsed) {
    const Time own = core::own_deadline_of(run, start.id.step, start.id.item);
    if (own != INT64_MAX) job.deadline = sooner(job.deadline, own);
  }
  add_context(job, run);
  if (start.brought == nullptr) return job;
  auto context = std::make_shared<exec::JobContext>(job.context != nullptr ? *job.context : exec::JobContext{});
  context->brought = start.brought;
  job.context = std::move(context);
  if (item == nullptr || item->due == 0) return job;
  job.timeout = Duration{0};  // it has begun long ago
  job.deadline = sooner(job.deadline, item->due);
  return job;
}

void Loop::add_context(exec::Job& job, const core::Run& run) {
  const core::Item* const item = run.steps[job.id.step].touched(job.id.item);
  const Failure* const failed = item != nullptr ? item->last_failure() : nullptr;
  const bool is_document = run.plan->plan->is_document;
  auto outputs = outputs_.outputs_for(run, job.id.step);
  const core::Operation* const operation = run.operation(job.id.step);
  if (failed == nullptr && outputs == nullptr && !is_document && operation == nullptr) return;  // the common case: nothing to carry
  auto context = std::make_shared<exec::JobContext>();
  if (failed != nullptr) context->last_failure = *failed;
  context->outputs = std::move(outputs);
  if (operation != nullptr) context->operation = operation->path;
  context->by_first_rules = run.plan->plan->has_first_rules();
  context->stage = item != nullptr ? item->stage : core::stage::main;
  context->visit = run.steps[job.id.step].visits;
  if (is_document) context->run_input = outputs_.input_of(run);
  if (run.step_plan(job.id.step).runs_finally) context->run_status = name_of(core::status_of_steps(run, false));
  job.context = std::move(context);
}

// ---- writing and releasing ----------------------------------------

std::optional<Loop::Writing> Loop::begin_write(Time now) {
  if (writing_ || outstanding_.empty()) return std::nullopt;
  if (trouble_ && now < retry_at_) return std::nullopt;
  writing_ = true;
  return Writing{&outstanding_.front()->commit, trouble_.has_value()};
}

void Loop::end_write(store::Result<void> result, Time now) {
  writing_ = false;
  if (!result) {
    // Nobody knows whether it happened. Whoever waits is told so, and it is tried until the answer is known.
    trouble_ = result.error();
    is_spoiled_ = true;
    if (!may_pass(trouble_->code)) return give_up(result.error());
    retry_delay_ = std::clamp(retry_delay_ * 2, first_retry, longest_retry);
    retry_at_ = now + retry_delay_.count();
    Error told = *trouble_;
    told.message +=
        " (not recorded yet; the engine keeps trying, so it may still happen: submit again with the same key to be "
        "sure)";
    tell_trouble(told);
    refuse_finds(told);
    return try_waiting_again(now);  // they are told, too
  }
  trouble_.reset();
  retry_delay_ = Duration{0};
  ++committed_;
  committed_bytes_ += outstanding_.front()->commit.bytes.size();
  release(*outstanding_.front(), now);
  // What had nothing to write was only waiting for its turn.
  while (!outstanding_.empty() && outstanding_.front()->commit.id == 0) release(*outstanding_.front(), now);
}

// Nothing will be recorded any more, and so nothing new begins: effects wait for their commits.
void Loop::give_up(const Error& error) {
  trouble_ = error;
  retry_at_ = INT64_MAX;
  abandon_replies(error);
}

// The first of the outstanding batches is durable.
void Loop::release(Batch& batch, Time now) {
  const auto at = std::ranges::find(outstanding_, &batch, &std::unique_ptr<Batch>::get);
  std::unique_ptr<Batch> owned = std::move(*at);
  outstanding_.erase(at);
  const std::uint64_t commit = batch.commit.id;
  for (std::size_t executor = 0; executor < batch.orders.size(); ++executor) {
    Batch::Orders& orders = batch.orders[executor];
    if (!orders.jobs.empty()) executors_[executor]->start(orders.jobs);
    for (const event::AttemptId& cancel : orders.cancels) executors_[executor]->cancel(cancel);
    for (const event::AttemptId& reserved : orders.take_backs) executors_[executor]->take_back(reserved);
  }
  // Last, because they let the next ones begin.
  for (const event::AttemptId& attempt : batch.settled) {
    for (exec::Executor* const executor : executors_) executor->settled(attempt);
  }
  for (Batch::Answer& waiting : batch.answers) waiting.reply->done(std::move(waiting.answer));
  for (const Batch::Notice& notice : batch.notices) {
    observer_->published(id(notice.run, notice.created), *notice.plan, notice.chunk_first, notice.new_first,
                         notice.chunk);
  }
  young_keys_.written(commit);
  std::erase_if(unwritten_, [&](const auto& payload) { return payload.second.commit <= commit; });
  removed(batch.commit.removals);
  let_go(batch);
  for (const core::Prepare& prepare : batch.prepares) this->prepare(prepare, now);
  if (spare_.size() < batches_max) {
    owned->clear();
    spare_.push_back(std::move(owned));
  }
}

void Loop::let_go(Batch& batch) {
  for (const std::uint64_t number : batch.leaving) {
    core::Run* const run = core_.find(number);
    if (run == nullptr || run->leaving_with != batch.commit.id) continue;  // touched again in the meantime
    left_memory(*run);
    forget(*run);
  }
}

void Loop::prepare(const core::Prepare& prepare, Time now) {
  const core::Run* const run = core_.find(prepare.run);
  if (run == nullptr || !run->step_plan(prepare.step).prepares) return count_items(prepare, now);
  auto context = std::make_shared<exec::JobContext>();
  context->outputs = outputs_.outputs_for(*run, prepare.step);
  context->run_input = outputs_.input_of(*run);
  if (run->step_plan(prepare.step).runs_finally) context->run_status = name_of(core::status_of_steps(*run, false));
  executors_[core_.address_of(*run, prepare.step).executor]->prepare({.id = {run->number, prepare.step, 0, 0},
                                                                      .run_id = id(run->number, run->created),
                                                                      .step = run->step_plan(prepare.step).name,
                                                                      .context = std::move(context)});
}

void Loop::count_items(const core::Prepare& prepare, Time now) {
  std::optional<std::uint32_t> items;
  if (!prepare.list.hashed) {
    items = exec::list_size(prepare.list.bytes);
  } else {
    const auto* const stored = look_ups_.list_size(prepare.list.bytes);
    if (stored == nullptr || !*stored) {
      uncounted_.push_back(prepare);
      if (stored != nullptr) reading_failed(stored->error(), now);
      return;
    }
    items = **stored;
  }
  if (items) return core_.prepared(prepare.run, prepare.step, *items, prepare.list.view(), now);
  core_.prepare_failed(prepare.run, prepare.step,
                       {.type = "ValueError",
                        .message = "the output that for_each names is not a list: make it with encode_list()",
                        .failure_class = FailureClass::deterministic,
                        .kind = FailureKind::invalid_input},
                       now);
}

}  // namespace reprise::runtime
