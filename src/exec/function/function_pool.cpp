#include "exec/function/function_pool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/saturating_time.hpp"
#include "exec/function/alarm.hpp"
#include "exec/function/function_work.hpp"
#include "exec/function/worker_slot.hpp"
#include "exec/place_keeper.hpp"

// The way of a job: start() puts a batch into the queue and wakes one thread; threads claim jobs from the first batch one by one, without
// a lock between them; each answers its own call. The watchdog sleeps until the first call is over its time, and answers for the lost.
//
// Locks: the pool's mutex_ before a slot's. No lock is held while a handler, the sink's ended() or a stop callback runs.

namespace reprise::exec {
namespace {

using TimePoint = Env::TimePoint;
using Result = std::expected<std::string, Failure>;

constexpr Duration begin_soon = std::chrono::milliseconds{2};  // what capacity() promises
constexpr Duration worth_waking =
    std::chrono::microseconds{100};  // less work than this for each thread is not worth another one
constexpr std::size_t prefetch_max = 4096;
constexpr std::uint32_t charge_min = 500;  // nanoseconds
constexpr std::uint32_t sample_max =
    16'000'000;                        // so that one call that hung is forgotten after some twenty that did not
constexpr int spin_rounds_max = 4000;  // for clocks that stand still

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// 90s, 1.5s, 20ms.
std::string seconds_text(Duration span) {
  const bool small = span < std::chrono::seconds{1};
  char text[32];
  const double value = std::chrono::duration<double>{span}.count() * (small ? 1000 : 1);
  const int length = std::snprintf(text, sizeof text, "%.6g%s", value, small ? "ms" : "s");
  return {text, static_cast<std::size_t>(length)};
}

Failure timed_out(Duration allowed) {
  return {.type = "TimeoutError",
          .message = allowed > Duration{0} ? "timed out after " + seconds_text(allowed)
                                           : "its deadline was over before it began",
          .failure_class = FailureClass::transient,
          .kind = FailureKind::timeout};
}

Failure canceled(std::string_view message) {
  return {.type = "CanceledError", .message = std::string{message}, .failure_class = FailureClass::canceled};
}

Failure no_such_handler(std::uint32_t number) {
  return {.type = "LookupError",
          .message = "there is no handler with the number " + std::to_string(number),
          .failure_class = class_of(FailureKind::not_found),
          .kind = FailureKind::not_found};
}

Failure failure_for(Asked asked, Duration allowed) {
  return asked == Asked::cancel ? canceled("canceled while it ran") : timed_out(allowed);
}

AttemptEnd end_for(Asked asked) {
  if (asked == Asked::timeout) return AttemptEnd::timed_out;
  return asked == Asked::deadline ? AttemptEnd::deadline : AttemptEnd::failed;
}

// Whatever happens in there, a result comes out. Twice, because the destructor of what was thrown may throw too; and not returned from
// inside, because g++ 12 would not destroy it then.
Result call(const Handler& handler, Work& work) noexcept {
  std::optional<Result> result;
  try {
    try {
      result.emplace(handler(work));
    } catch (...) {
      result.emplace(std::unexpect, to_failure(std::current_exception()));
    }
  } catch (...) {
    if (!result) result.emplace(std::unexpect, Failure{.type = "Exception"});
  }
  return *std::move(result);
}

void learn(std::atomic<std::uint32_t>& average_ns, Duration sample) noexcept {
  const auto now = static_cast<std::uint32_t>(std::clamp<Duration::rep>(sample.count(), 1, sample_max));
  const std::uint32_t before = average_ns.load(std::memory_order_relaxed);
  const std::uint32_t after = before == 0 ? now : before - before / 8 + now / 8;
  average_ns.store(std::max(after, 1U), std::memory_order_relaxed);
}

// 0: it has no samples, or is too slow to wait in a queue of two milliseconds.
std::uint32_t charge_for(const NamedHandler& handler) noexcept {
  const std::uint32_t average = handler.average_ns->load(std::memory_order_relaxed);
  return average == 0 || average > begin_soon.count() ? 0 : std::max(average, charge_min);
}

// What a job holds is given back when it has ended and not when its batch has.
void let_go(Job& job) noexcept {
  job.input.bytes = {};
  job.context.reset();
  job.step.reset();
}

}  // namespace

class FunctionPool::State : public std::enable_shared_from_this<State> {
 public:
  State(FunctionPoolSettings settings, Sink& sink)
      : settings_{std::move(settings)},
        env_{settings_.env != nullptr ? *settings_.env : system_env()},
        sink_{sink},
        payloads_{std::move(settings_.load)},
        alarm_{env_} {
    settings_.threads = std::max(settings_.threads, 1U);
    usable_.store(settings_.threads);
    idle_.store(settings_.threads);
  }

  std::uint32_t add_handler(std::string name, Handler handler);
  void start(std::vector<Job>&& jobs);
  void cancel(const AttemptId& id);
  void take_back(const AttemptId& id);
  void take_back_all();
  void settled(const AttemptId& id);
  std::size_t capacity(std::uint32_t handler);
  std::size_t ahead(std::uint32_t handler, std::uint32_t places);
  Stopped stop(Duration patience);

 private:
  void start_watchdog();
  // ---- Coming in ----
  void keep_those_that_wait(std::vector<Job>& jobs);
  std::shared_ptr<JobBatch> make_batch(std::vector<Job>&& jobs);
  void enqueue(std::shared_ptr<JobBatch> batch);  // under mutex_
  void give_back(const std::vector<AttemptId>& ids);
  void pass_places_on(const AttemptId& id, bool is_busy);
  // ---- Load ----
  void charge_all(JobBatch& batch);
  void make_room(std::uint32_t charge);  // before the answer: whoever hears it may ask for capacity() at once
  void finish();                         // after it
  bool is_idle() const noexcept { return unanswered_.load() == 0; }
  void notice_slow_calls();
  std::shared_ptr<const HandlerTable> handlers();

  // ---- Threads; all under mutex_ ----
  unsigned creatable() const noexcept;
  void update_counts() noexcept;
  bool wake_one();
  void wake_soon();
  bool create_thread();
  void call_rescue(TimePoint now);
  std::shared_ptr<JobBatch> first_batch();

  // ---- A thread's life ----
  void work(const std::shared_ptr<WorkerSlot>& slot);
  std::shared_ptr<JobBatch> next_batch(WorkerSlot& slot);
  void spin(std::unique_lock<std::mutex>& lock);
  bool run(JobBatch& batch, WorkerSlot& slot);
  bool run_job(JobBatch& batch, WorkerSlot& slot, Job& job, TimePoint& now);
  Result call_in_time(const Handler& handler, WorkerSlot& slot, const Job& job);
  void answer(Job& job, const WorkerSlot::Left& left, Result&& result);
  void get_help(const JobBatch& batch, std::uint32_t handler, TimePoint now);
  void end_of_lost_thread();

  // ---- The watchdog ----
  void watch();
  TimePoint look_at_calls(TimePoint now);
  TimePoint rescue(TimePoint now);
  void lose(std::size_t slot);
  void answer_for(const GivenUp& call);

  std::vector<AttemptId> take_back_waiting();
  void join_threads();

  FunctionPoolSettings settings_;
  Env& env_;
  Sink& sink_;
  Payloads payloads_;

  std::mutex handlers_mutex_;
  std::shared_ptr<const HandlerTable> handlers_ = std::make_shared<const HandlerTable>();

  // What was accepted and not answered: jobs that need a thread of their own, and the expected time of the others.
  std::atomic<std::int64_t> slow_ = 0;
  std::atomic<std::int64_t> fast_ns_ = 0;
  std::atomic<std::int64_t> unanswered_ = 0;
  std::atomic<unsigned> usable_ = 0;  // threads there are or could be
  std::atomic<unsigned> idle_ = 0;    // of them asleep or not yet created
  TimePoint noticed_{};               // when notice_slow_calls() last looked

  std::mutex mutex_;
  std::deque<std::shared_ptr<JobBatch>> queue_;
  std::vector<std::shared_ptr<WorkerSlot>> slots_;
  std::vector<WorkerSlot*> sleepers_;  // the last to fall asleep is the first to be woken: its caches are warm
  bool spinning_ = false;
  bool spinner_has_work_ = false;
  unsigned lost_ = 0;  // given up and not yet returned
  bool warned_lost_ = false;
  bool warned_no_thread_ = false;
  std::vector<AttemptId> interrupted_;
  std::atomic<std::uint64_t> arrivals_ = 0;
  PlaceKeeper places_;
  bool begins_no_more_ = false;  // what waits for a place

  std::atomic<bool> stopping_ = false;
  std::stop_source idle_source_;  // for a wait that has an end
  std::condition_variable idle_wake_;

  Alarm alarm_;
  std::atomic<bool> rescue_ = false;  // a thread works alone on what may be too much for it
  bool rescued_ = false;
  bool quit_ = false;
  std::thread watchdog_;
};

// ---- Load ----------------------------------------

std::shared_ptr<const HandlerTable> FunctionPool::State::handlers() {
  const std::lock_guard lock{handlers_mutex_};
  return handlers_;
}

// With the first handler: an engine without functions needs none.
void FunctionPool::State::start_watchdog() {
  const std::lock_guard lock{mutex_};
  if (!quit_ && !watchdog_.joinable()) watchdog_ = std::thread{[this] { watch(); }};
}

std::uint32_t FunctionPool::State::add_handler(std::string name, Handler handler) {
  start_watchdog();
  const std::lock_guard lock{handlers_mutex_};
  auto table = std::make_shared<HandlerTable>(*handlers_);
  const auto known = std::ranges::find(*table, name, &NamedHandler::name);
  const auto number = static_cast<std::uint32_t>(known - table->begin());
  if (known != table->end()) {
    known->call = std::move(handler);
  } else {
    table->push_back({std::move(name), std::move(handler), std::make_shared<std::atomic<std::uint32_t>>(0)});
  }
  handlers_ = std::move(table);
  return number;
}

void FunctionPool::State::charge_all(JobBatch& batch) {
  std::int64_t slow = 0;
  std::int64_t fast = 0;
  for (std::size_t index = 0; index < batch.jobs.size(); ++index) {
    const std::uint32_t handler = batch.jobs[index].handler;
    const std::uint32_t charge = handler < batch.handlers->size() ? charge_for((*batch.handlers)[handler]) : charge_min;
    batch.places[index].charge = charge;
    if (charge == 0) ++slow;
    fast += charge;
  }
  slow_.fetch_add(slow);
  fast_ns_.fetch_add(fast);
}

void FunctionPool::State::make_room(std::uint32_t charge) {
  if (charge == 0) {
    slow_.fetch_sub(1);
  } else {
    fast_ns_.fetch_sub(charge);
  }
}

void FunctionPool::State::finish() {
  if (unanswered_.fetch_sub(1) != 1 || !stopping_.load()) return;
  idle_source_.request_stop();
  const std::lock_guard lock{mutex_};
  idle_wake_.notify_all();
}

std::size_t FunctionPool::State::capacity(std::uint32_t handler) {
  notice_slow_calls();
  const std::int64_t free =
      std::int64_t{usable_.load(std::memory_order_relaxed)} - slow_.load(std::memory_order_relaxed);
  if (free <= 0) return 0;
  const std::shared_ptr<const HandlerTable> table = handlers();
  const std::uint32_t charge = handler < table->size() ? charge_for((*table)[handler]) : 0;
  if (charge == 0) return static_cast<std::size_t>(free);
  const std::int64_t budget = begin_soon.count() * free - fast_ns_.load(std::memory_order_relaxed);
  return std::min(prefetch_max, static_cast<std::size_t>(std::max(budget, std::int64_t{0}) / charge));
}

// What is fast enough to wait for a thread may wait for a place, too: as many as begin within the same time.
std::size_t FunctionPool::State::ahead(std::uint32_t handler, std::uint32_t places) {
  const std::shared_ptr<const HandlerTable> table = handlers();
  const std::uint32_t charge = handler < table->size() ? charge_for((*table)[handler]) : 0;
  if (charge == 0) return 0;
  return std::min(prefetch_max, static_cast<std::size_t>(begin_soon.count()) * places / charge);
}

// A handler that is fast on the average may still hang, and its thread is not free then. Looked at when somebody wants to know, and not
// more often than it can change.
void FunctionPool::State::notice_slow_calls() {
  if (fast_ns_.load(std::memory_order_relaxed) == 0) return;
  const TimePoint now = env_.now();
  if (now - noticed_ < begin_soon / 2) return;
  noticed_ = now;
  const std::lock_guard lock{mutex_};
  for (const std::shared_ptr<WorkerSlot>& slot : slots_) {
    slot->recharge(now - begin_soon, [&](std::uint32_t charge) {
      slow_.fetch_add(1);
      fast_ns_.fetch_sub(charge);
    });
  }
}

// ---- Coming in ----------------------------------------

void FunctionPool::State::start(std::vector<Job>&& jobs) {
  if (jobs.empty()) return;
  unanswered_.fetch_add(static_cast<std::int64_t>(jobs.size()));
  keep_those_that_wait(jobs);
  if (jobs.empty()) return;
  const auto batch = make_batch(std::move(jobs));
  {
    const std::lock_guard lock{mutex_};
    if (!stopping_.load()) return enqueue(batch);
  }
  for (std::size_t index = 0; index < batch->jobs.size(); ++index) {
    make_room(batch->places[index].charge);
    give_back({batch->jobs[index].id});  // not a failure: it goes on when the store is opened again
  }
}

// They do not stay in `jobs`.
void FunctionPool::State::keep_those_that_wait(std::vector<Job>& jobs) {
  if (std::ranges::none_of(jobs, [](const Job& job) { return job.limits.any(); })) return;
  std::vector<AttemptId> returned;
  {
    const std::lock_guard lock{mutex_};
    const bool begins_no_more = begins_no_more_ || stopping_.load();
    std::erase_if(jobs, [&](Job& job) {
      if (!job.limits.waits || !begins_no_more) return !places_.enter(job);
      returned.push_back(job.id);
      return true;
    });
  }
  give_back(returned);
}

std::shared_ptr<JobBatch> FunctionPool::State::make_batch(std::vector<Job>&& jobs) {
  auto batch = std::make_shared<JobBatch>(std::move(jobs), handlers());
  charge_all(*batch);
  return batch;
}

void FunctionPool::State::enqueue(std::shared_ptr<JobBatch> batch) {
  queue_.push_back(std::move(batch));
  arrivals_.fetch_add(1);
  if (spinning_ && !spinner_has_work_) {
    spinner_has_work_ = true;
  } else {
    wake_soon();
  }
}

void FunctionPool::State::give_back(const std::vector<AttemptId>& ids) {
  for (const AttemptId& id : ids) {
    sink_.ended({id, Returned{}});
    finish();
  }
}

void FunctionPool::State::take_back(const AttemptId& id) {
  {
    const std::lock_guard lock{mutex_};
    if (!places_.take_back(id)) return;
  }
  give_back({id});
}

void FunctionPool::State::take_back_all() {
  std::vector<AttemptId> taken;
  {
    const std::lock_guard lock{mutex_};
    begins_no_more_ = true;
    taken = places_.take_back_all();
  }
  give_back(taken);
}

// The next ones go to the end of the queue, so that a handler with much to do does not keep others from the thread; mostly it is empty, and
// this thread is the one that takes them.
void FunctionPool::State::pass_places_on(const AttemptId& id, bool is_busy) {
  const std::lock_guard lock{mutex_};
  if (stopping_.load()) return;  // what waits is taken back
  std::vector<Job> begun = places_.leave(id);
  if (begun.empty()) return;
  const bool needs_others = is_busy || begun.size() > 1 || first_batch() != nullptr;
  queue_.push_back(make_batch(std::move(begun)));
  arrivals_.fetch_add(1);
  if (needs_others) wake_soon();
}

void FunctionPool::State::settled(const AttemptId& id) {
  const std::lock_guard lock{mutex_};
  if (stopping_.load()) return;
  if (std::vector<Job> begun = places_.leave(id); !begun.empty()) enqueue(make_batch(std::move(begun)));
}

void FunctionPool::State::cancel(const AttemptId& id) {
  take_back(id);
  std::unique_lock lock{mutex_};
  for (const std::shared_ptr<JobBatch>& batch : queue_) {
    for (std::size_t index = batch->next.load(); index < batch->jobs.size(); ++index) {
      if (batch->jobs[index].id != id || batch->places[index].taken.exchange(true)) continue;
      const std::uint32_t charge = batch->places[index].charge;  // the batch may be gone without the lock
      lock.unlock();
      make_room(charge);
      sink_.ended({id, Returned{}});
      return finish();
    }
  }
  if (std::ranges::any_of(slots_, [&](const auto& slot) { return slot->ask(id, Asked::cancel); })) alarm_.ring();
}

// ---- Threads ----------------------------------------

unsigned FunctionPool::State::creatable() const noexcept {
  const auto there = static_cast<unsigned>(slots_.size());
  const unsigned usable = usable_.load(std::memory_order_relaxed);
  return usable > there ? usable - there : 0;
}

void FunctionPool::State::update_counts() noexcept {
  const unsigned missing = lost_ > settings_.max_abandoned ? lost_ - settings_.max_abandoned : 0;
  usable_.store(settings_.threads - std::min(missing, settings_.threads));
  idle_.store(static_cast<unsigned>(sleepers_.size()) + creatable());
}

// False: the system gives us no thread.
bool FunctionPool::State::wake_one() {
  bool done = true;
  if (!sleepers_.empty()) {
    WorkerSlot& slot = *sleepers_.back();
    sleepers_.pop_back();
    slot.awake = true;
    slot.wake.notify_one();
  } else if (creatable() > 0 && !quit_) {  // a call that was given up in the stop may still ask for help
    done = create_thread();
  }
  update_counts();
  return done;
}

void FunctionPool::State::wake_soon() {
  if (!wake_one()) call_rescue(env_.now());
}

void FunctionPool::State::call_rescue(TimePoint now) {
  rescue_.store(true);
  alarm_.ring_by(base::later(now, begin_soon));
}

bool FunctionPool::State::create_thread() {
  const auto slot = std::make_shared<WorkerSlot>();
  try {
    slots_.reserve(slots_.size() + 1);
    slot->thread = std::thread{[state = shared_from_this(), slot] { state->work(slot); }};
    slots_.push_back(slot);
    return true;
  } catch (const std::system_error& error) {
    if (!std::exchange(warned_no_thread_, true)) env_.warn(std::string{"no thread for handlers: "} + error.what());
    return false;
  }
}

std::shared_ptr<JobBatch> FunctionPool::State::first_batch() {
  while (!queue_.empty() && queue_.front()->left() == 0) queue_.pop_front();
  return queue_.empty() ? nullptr : queue_.front();
}

// ---- A thread's life ----------------------------------------

void FunctionPool::State::work(const std::shared_ptr<WorkerSlot>& slot) {
  while (const std::shared_ptr<JobBatch> batch = next_batch(*slot)) {
    if (!run(*batch, *slot)) return end_of_lost_thread();
  }
}

std::shared_ptr<JobBatch> FunctionPool::State::next_batch(WorkerSlot& slot) {
  std::unique_lock lock{mutex_};
  bool may_spin = settings_.spin > Duration{0};
  while (true) {
    if (std::shared_ptr<JobBatch> batch = first_batch()) return batch;
    if (stopping_.load()) return nullptr;
    if (may_spin && !spinning_) {
      may_spin = false;
      spin(lock);
      continue;
    }
    slot.awake = false;
    sleepers_.push_back(&slot);
    update_counts();
    slot.wake.wait(lock, [&] { return slot.awake; });
  }
}

void FunctionPool::State::spin(std::unique_lock<std::mutex>& lock) {
  spinning_ = true;
  spinner_has_work_ = false;
  const std::uint64_t seen = arrivals_.load();
  lock.unlock();
  const TimePoint end = base::later(env_.now(), settings_.spin);
  for (int round = 0; round < spin_rounds_max && arrivals_.load(std::memory_order_relaxed) == seen; ++round) {
    relax();
    if (round % 16 != 15) continue;
    if (env_.now() >= end) break;
    std::this_thread::yield();  // on a busy machine this may be the very processor that the next job would come from
  }
  lock.lock();
  spinning_ = false;
}

// False: the thread was given up and must touch nothing any more.
bool FunctionPool::State::run(JobBatch& batch, WorkerSlot& slot) {
  TimePoint now = env_.now();
  bool alone = true;
  while (Job* const job = slot.claim(batch, now)) {
    if (job->limits.waits) sink_.began(job->id);
    if (std::exchange(alone, false)) get_help(batch, job->handler, now);
    if (!run_job(batch, slot, *job, now)) return false;
  }
  return true;
}

bool FunctionPool::State::run_job(JobBatch& batch, WorkerSlot& slot, Job& job, TimePoint& now) {
  const bool known = job.handler < batch.handlers->size();
  Result result = known ? call_in_time((*batch.handlers)[job.handler].call, slot, job)
                        : Result{std::unexpect, no_such_handler(job.handler)};
  const std::optional<WorkerSlot::Left> left = slot.leave();
  if (!left) return false;
  const TimePoint began = std::exchange(now, env_.now());
  if (known) learn(*(*batch.handlers)[job.handler].average_ns, now - began);
  const bool succeeded = result.has_value();
  answer(job, *left, std::move(result));
  if (succeeded && job.limits.any()) pass_places_on(job.id, batch.left() > 0);
  return true;
}

Result FunctionPool::State::call_in_time(const Handler& handler, WorkerSlot& slot, const Job& job) {
  const bool has_deadline = job.deadline != 0 && settings_.wall_clock;
  if (job.timeout > Duration{0} || has_deadline) {
    const TimePoint began = env_.now();
    TimePoint due = job.timeout > Duration{0} ? base::later(began, job.timeout) : TimePoint::max();
    Asked when_due = Asked::timeout;
    if (has_deadline) {
      const TimePoint deadline = base::later(began, Duration{job.deadline - settings_.wall_clock()});
      if (deadline <= due) when_due = Asked::deadline;
      due = std::min(due, deadline);
    }
    // Over before it begins: it is asked at once, so that its end is told like any other that was cut.
    if (due <= began) {
      slot.ask(job.id, Asked::deadline);
      return std::unexpected{timed_out(Duration{0})};
    }
    slot.limit(began, due, when_due);
    alarm_.ring_by(due);
  }
  FunctionWork work{job, slot, payloads_, env_, sink_};
  return call(handler, work);
}

void FunctionPool::State::answer(Job& job, const WorkerSlot::Left& left, Result&& result) {
  const AttemptId id = job.id;
  let_go(job);
  make_room(left.charge);
  if (result) {
    const std::uint64_t size = result->size();
    sink_.ended({id, Succeeded{.output = {.bytes = *std::move(result), .size = size}}});
  } else if (left.asked == Asked::nothing) {
    sink_.ended(failed(id, std::move(result).error()));
  } else if (left.asked == Asked::stop) {
    const std::lock_guard lock{mutex_};
    interrupted_.push_back(id);
  } else {
    Failure failure = failure_for(left.asked, left.allowed);
    failure.details = "it returned " + result.error().type + ": " + result.error().message;
    sink_.ended(failed(id, std::move(failure), false, end_for(left.asked)));
  }
  finish();
}

// Wakes another thread, which does the same, as long as there is enough to do for one more. For a few fast calls that would cost more
// than it gains; should one of them hang, the watchdog comes to the rescue of those behind it.
void FunctionPool::State::get_help(const JobBatch& batch, std::uint32_t handler, TimePoint now) {
  const unsigned idle = idle_.load(std::memory_order_relaxed);
  const std::size_t left = batch.left();
  if (idle == 0 || left == 0) return;
  const std::uint32_t charge = handler < batch.handlers->size() ? charge_for((*batch.handlers)[handler]) : charge_min;
  const std::uint64_t threads = settings_.threads - std::min(idle, settings_.threads) + 1;
  if (charge == 0 || left * charge / threads > static_cast<std::uint64_t>(worth_waking.count())) {
    const std::lock_guard lock{mutex_};
    return wake_soon();
  }
  call_rescue(now);
}

void FunctionPool::State::end_of_lost_thread() {
  const std::lock_guard lock{mutex_};
  --lost_;
  const unsigned usable_before = usable_.load();
  update_counts();
  if (stopping_.load()) return;
  if (first_batch() != nullptr) wake_soon();
  if (usable_.load() > usable_before) sink_.room_changed();
}

// ---- The watchdog ----------------------------------------

void FunctionPool::State::watch() {
  while (true) {
    alarm_.listen();
    {
      const std::lock_guard lock{mutex_};
      if (quit_) return;
    }
    const TimePoint now = env_.now();
    alarm_.wait_until(std::min(look_at_calls(now), rescue(now)));
  }
}

TimePoint FunctionPool::State::look_at_calls(TimePoint now) {
  TimePoint next = Alarm::never;
  std::vector<std::stop_source> to_stop;
  std::vector<GivenUp> given_up;
  {
    const std::lock_guard lock{mutex_};
    for (std::size_t index = slots_.size(); index-- > 0;) {
      WorkerSlot::Look look = slots_[index]->look(now, settings_.grace);
      next = std::min(next, look.next);
      if (look.stop) to_stop.push_back(*std::move(look.stop));
      if (!look.given_up) continue;
      given_up.push_back(*look.given_up);
      lose(index);
    }
  }
  for (std::stop_source& source : to_stop) source.request_stop();
  for (const GivenUp& call : given_up) answer_for(call);
  return next;
}

void FunctionPool::State::lose(std::size_t slot) {
  slots_[slot]->thread.detach();
  slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(slot));
  ++lost_;
  update_counts();
  if (lost_ > settings_.max_abandoned && !std::exchange(warned_lost_, true)) {
    env_.warn("more than " + std::to_string(settings_.max_abandoned) +
              " handlers have not returned after they were asked to stop; their threads are not replaced any more");
  }
  if (first_batch() != nullptr) wake_soon();
}

void FunctionPool::State::answer_for(const GivenUp& call) {
  make_room(call.charge);
  if (call.asked == Asked::stop) {
    const std::lock_guard lock{mutex_};
    interrupted_.push_back(call.id);
  } else {
    Failure failure = failure_for(call.asked, call.allowed);
    failure.details = "it did not return in the grace of " + seconds_text(settings_.grace);
    sink_.ended(failed(call.id, std::move(failure), false, end_for(call.asked)));
  }
  finish();
}

// Jobs that wait although threads sleep: another thread, every two milliseconds. It looks once more after the last time, so that under a
// steady load nobody has to wake the watchdog.
TimePoint FunctionPool::State::rescue(TimePoint now) {
  const bool wanted = rescue_.exchange(false);
  const bool again = std::exchange(rescued_, wanted);
  if (!wanted && !again) return Alarm::never;
  const std::lock_guard lock{mutex_};
  if (wanted && idle_.load() > 0 && first_batch() != nullptr) {
    rescue_.store(true);
    wake_one();
  }
  return base::later(now, begin_soon);
}

// ---- The end ----------------------------------------

FunctionPool::Stopped FunctionPool::State::stop(Duration patience) {
  Stopped stopped;
  {
    const std::lock_guard lock{mutex_};
    if (stopping_.exchange(true)) return stopped;
    while (!sleepers_.empty()) wake_one();
  }
  stopped.not_begun = take_back_waiting();
  if (!is_idle() && patience > Duration{0})
    env_.wait_until(base::later(env_.now(), patience), idle_source_.get_token());
  {
    std::unique_lock lock{mutex_};
    stopped.by_themselves = is_idle();
    for (const std::shared_ptr<WorkerSlot>& slot : slots_) slot->ask_any(Asked::stop);
    alarm_.ring();
    idle_wake_.wait(lock, [&] { return is_idle(); });
    stopped.interrupted = std::move(interrupted_);
  }
  join_threads();
  payloads_.close();
  return stopped;
}

std::vector<AttemptId> FunctionPool::State::take_back_waiting() {
  std::vector<AttemptId> taken;
  std::vector<AttemptId> waited;
  std::vector<std::uint32_t> charges;
  {
    const std::lock_guard lock{mutex_};
    for (const std::shared_ptr<JobBatch>& batch : queue_) {
      for (std::size_t index = batch->next.load(); index < batch->jobs.size(); ++index) {
        if (batch->places[index].taken.exchange(true)) continue;
        taken.push_back(batch->jobs[index].id);
        charges.push_back(batch->places[index].charge);
      }
    }
    queue_.clear();
    waited = places_.take_back_all();
  }
  for (const AttemptId& id : waited) {
    taken.push_back(id);
    finish();
  }
  for (const std::uint32_t charge : charges) {
    make_room(charge);
    finish();
  }
  return taken;
}

void FunctionPool::State::join_threads() {
  std::vector<std::shared_ptr<WorkerSlot>> slots;
  std::thread watchdog;
  {
    const std::lock_guard lock{mutex_};
    quit_ = true;
    slots.swap(slots_);
    watchdog.swap(watchdog_);
  }
  alarm_.ring();
  if (watchdog.joinable()) watchdog.join();
  for (const std::shared_ptr<WorkerSlot>& slot : slots) slot->thread.join();
}

// ---- The pool ----------------------------------------

FunctionPool::FunctionPool(FunctionPoolSettings settings, Sink& sink)
    : state_{std::make_shared<State>(std::move(settings), sink)} {}

FunctionPool::~FunctionPool() { state_->stop(Duration{0}); }

std::uint32_t FunctionPool::add_handler(std::string name, Handler handler) {
  return state_->add_handler(std::move(name), std::move(handler));
}

void FunctionPool::start(std::vector<Job>& jobs) {
  state_->start(std::move(jobs));
  jobs.clear();
}

void FunctionPool::cancel(const AttemptId& id) { state_->cancel(id); }
void FunctionPool::take_back(const AttemptId& id) { state_->take_back(id); }
void FunctionPool::take_back_all() { state_->take_back_all(); }
void FunctionPool::settled(const AttemptId& id) { state_->settled(id); }
std::size_t FunctionPool::capacity(std::uint32_t handler) { return state_->capacity(handler); }
std::size_t FunctionPool::ahead(std::uint32_t handler, std::uint32_t places) { return state_->ahead(handler, places); }
FunctionPool::Stopped FunctionPool::stop(Duration patience) { return state_->stop(patience); }

}  // namespace reprise::exec
