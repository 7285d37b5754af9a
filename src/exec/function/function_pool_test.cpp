// FunctionPool: every job is answered exactly once, whatever its handler does. Time is moved by hand; nothing here measures it.
#include "exec/function/function_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <latch>
#include <map>
#include <mutex>
#include <semaphore>
#include <thread>

#include <reprise/random.hpp>

#include "exec/function/list.hpp"
#include "exec/function/worker_slot.hpp"
#include "support/outcomes.hpp"
#include "support/sanitizers.hpp"

namespace reprise::exec {
namespace {

using namespace std::chrono_literals;
using Result = std::expected<std::string, Failure>;
using Semaphore = std::counting_semaphore<>;
using testing_support::failure_of;
using testing_support::has_succeeded;
using testing_support::output_of;
using testing_support::was_interrupted;

// A clock that stands still until the test moves it, and that others really wait for.
class HandEnv final : public Env {
 public:
  TimePoint now() override {
    const std::lock_guard lock{mutex_};
    return now_;
  }
  bool wait_until(TimePoint due, const std::stop_token& stop) override {
    std::unique_lock lock{mutex_};
    moved_.wait(lock, stop, [&] { return now_ >= due; });
    return !stop.stop_requested();
  }
  std::uint64_t random_seed() override { return 1; }
  void warn(std::string_view message) noexcept override {
    const std::lock_guard lock{mutex_};
    warnings_.emplace_back(message);
  }

  void advance(Duration span) {
    const std::lock_guard lock{mutex_};
    now_ += span;
    moved_.notify_all();
  }
  std::vector<std::string> warnings() {
    const std::lock_guard lock{mutex_};
    return warnings_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any moved_;
  TimePoint now_{};
  std::vector<std::string> warnings_;
};

class Answers final : public Sink {
 public:
  void ended(Outcome&& outcome) override {
    const std::lock_guard lock{mutex_};
    outcomes_.push_back(std::move(outcome));
    changed_.notify_all();
  }
  void progressed(Progress&& progress) override {
    const std::lock_guard lock{mutex_};
    progress_.push_back(std::move(progress.text));
  }
  void began(const AttemptId& id) override {
    const std::lock_guard lock{mutex_};
    began_.push_back(id.run);
  }
  std::vector<std::uint64_t> began() {
    const std::lock_guard lock{mutex_};
    return began_;
  }

  void room_changed() override {
    const std::lock_guard lock{mutex_};
    ++room_changes_;
    changed_.notify_all();
  }
  void wait_for_room() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return room_changes_ > 0; });
  }

  // Waits for the answer of this run.
  const Outcome& of(std::uint64_t run) {
    std::unique_lock lock{mutex_};
    const Outcome* found = nullptr;
    changed_.wait(lock, [&] {
      for (const Outcome& outcome : outcomes_) {
        if (outcome.id.run == run) found = &outcome;
      }
      return found != nullptr;
    });
    return *found;
  }
  void wait_for(std::size_t count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return outcomes_.size() >= count; });
  }
  std::size_t count() {
    const std::lock_guard lock{mutex_};
    return outcomes_.size();
  }
  std::vector<std::string> progress() {
    const std::lock_guard lock{mutex_};
    return progress_;
  }
  std::map<std::uint64_t, int> count_by_run() {
    const std::lock_guard lock{mutex_};
    std::map<std::uint64_t, int> counts;
    for (const Outcome& outcome : outcomes_) ++counts[outcome.id.run];
    return counts;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Outcome> outcomes_;
  std::size_t room_changes_ = 0;
  std::vector<std::string> progress_;
  std::vector<std::uint64_t> began_;
};

Job job_of(std::uint64_t run, std::uint32_t handler, Duration timeout = 0ns) {
  Job job;
  job.id = {.run = run, .step = 1, .item = 0, .token = 1};
  job.handler = handler;
  job.step = std::make_shared<const std::string>("charge");
  job.timeout = timeout;
  return job;
}

void start(FunctionPool& pool, Job job) {
  std::vector<Job> jobs;
  jobs.push_back(std::move(job));
  pool.start(jobs);
  EXPECT_TRUE(jobs.empty());
}

Payload inline_payload(std::string bytes) {
  const std::uint64_t size = bytes.size();
  return {std::move(bytes), size, false};
}

void wait_for_stop(const std::stop_token& token) {
  Semaphore stopped{0};
  const std::stop_callback callback{token, [&] { stopped.release(); }};
  stopped.acquire();
}

// Its destructor tells that the last who knew of the handler is gone.
struct Farewell {
  explicit Farewell(Semaphore& gone) : gone_{gone} {}
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;
  ~Farewell() { gone_.release(); }
  Semaphore& gone_;
};

// A pool whose time stands still, and a handler for each way to behave.
struct ExecFunctionPool : testing::Test {
  FunctionPoolSettings settings(unsigned threads) {
    return {
        .threads = threads, .grace = 1s, .max_abandoned = 2, .env = &env, .wall_clock = [this] { return wall.load(); }};
  }
  FunctionPool& make(unsigned threads) {
    pool.emplace(settings(threads), answers);
    succeed = pool->add_handler("succeed", [](Work&) -> Result { return "done"; });
    const auto farewell = std::make_shared<Farewell>(gone);
    hang = pool->add_handler("hang", [this, farewell](Work&) -> Result {  // and does not care about stops
      began.release();
      release.acquire();
      return "too late";
    });
    obey = pool->add_handler("obey", [this](Work& work) -> Result {
      began.release();
      wait_for_stop(work.stop_token());
      EXPECT_EQ(work.remaining(), 0ns);
      return std::unexpected{Failure{.type = "Stopped", .message = "as you wish"}};
    });
    finish = pool->add_handler("finish", [this](Work& work) -> Result {
      began.release();
      wait_for_stop(work.stop_token());
      return "just in time";
    });
    return *pool;
  }

  void TearDown() override {  // lost threads use what is in here
    pool.reset();
    gone.acquire();
  }

  // A grace begins when the watchdog has seen that it should, whenever that is.
  void advance_until(std::size_t count) {
    while (answers.count() < count) {
      env.advance(1s);
      std::this_thread::yield();
    }
  }

  HandEnv env;
  std::atomic<Time> wall = 1'000'000'000;
  Answers answers;
  Semaphore began{0};
  Semaphore release{0};
  Semaphore gone{0};
  std::optional<FunctionPool> pool;
  std::uint32_t succeed = 0, hang = 0, obey = 0, finish = 0;
};

// ---- Results ----------------------------------------

TEST_F(ExecFunctionPool, a_result_is_an_answer) {
  make(2);
  const std::uint32_t large = pool->add_handler("large", [](Work&) -> Result { return std::string(100'000, 'x'); });
  const std::uint32_t fails =
      pool->add_handler("fails", [](Work&) -> Result { return std::unexpected{Failure{.type = "A", .exit_code = 7}}; });
  start(*pool, job_of(1, succeed));
  start(*pool, job_of(2, large));
  start(*pool, job_of(3, fails));
  EXPECT_TRUE(has_succeeded(answers.of(1)));
  EXPECT_EQ(output_of(answers.of(1)), inline_payload("done"));
  EXPECT_EQ(output_of(answers.of(2)), inline_payload(std::string(100'000, 'x'))) << "the bytes themselves";
  EXPECT_FALSE(has_succeeded(answers.of(3)));
  EXPECT_EQ(failure_of(answers.of(3)), (Failure{.type = "A", .exit_code = 7}));
  EXPECT_EQ(answers.of(3).id, (AttemptId{3, 1, 0, 1}));
}

struct Bomb {
  Bomb() = default;
  Bomb(const Bomb&) = default;
  ~Bomb() noexcept(false) {
    if (armed) throw std::runtime_error{"from a destructor"};
  }
  bool armed = true;
};

TEST_F(ExecFunctionPool, whatever_is_thrown_is_a_failure) {
  make(1);
  std::uint64_t run = 0;
  const auto thrown_by = [&](Handler handler) {
    const std::uint32_t number = pool->add_handler("throws", std::move(handler));
    start(*pool, job_of(++run, number));
    return failure_of(answers.of(run));
  };
  EXPECT_EQ(thrown_by([](Work&) -> Result { throw std::out_of_range{"far"}; }).type, "IndexError");
  EXPECT_EQ(thrown_by([](Work&) -> Result { throw 42; }).type, "Exception");
  EXPECT_EQ(thrown_by([](Work&) -> Result { throw Failure{.type = "Mine"}; }).type, "Mine");
#ifndef REPRISE_ADDRESS_SANITIZER  // which sees that the runtime forgets to free it
  EXPECT_EQ(thrown_by([](Work&) -> Result { throw Bomb{}; }).type, "Exception");
#endif
  EXPECT_EQ(thrown_by({}).type, "RuntimeError") << "a handler that is none";
  start(*pool, job_of(++run, succeed));
  EXPECT_TRUE(has_succeeded(answers.of(run))) << "the pool has survived all of it";
}

TEST_F(ExecFunctionPool, a_handler_that_is_not_there_is_not_found) {
  make(1);
  start(*pool, job_of(1, 4711));
  EXPECT_EQ(failure_of(answers.of(1)).kind, FailureKind::not_found);
  EXPECT_EQ(failure_of(answers.of(1)).failure_class, class_of(FailureKind::not_found));
}

TEST_F(ExecFunctionPool, a_name_keeps_its_number) {
  make(1);
  const std::uint32_t first = pool->add_handler("name", [](Work&) -> Result { return "old"; });
  const std::uint32_t other = pool->add_handler("other", [](Work&) -> Result { return "other"; });
  EXPECT_NE(first, other);
  EXPECT_EQ(pool->add_handler("name", [](Work&) -> Result { return "new"; }), first);
  start(*pool, job_of(1, first));
  EXPECT_EQ(output_of(answers.of(1)).bytes, "new");
}

// ---- What a handler sees ----------------------------------------

TEST_F(ExecFunctionPool, a_handler_sees_its_attempt) {
  make(1);
  const std::uint32_t look = pool->add_handler("look", [](Work& work) -> Result {
    EXPECT_EQ(work.attempt(), 3U);
    EXPECT_TRUE(work.is_retry());
    EXPECT_EQ(work.step(), "charge");
    EXPECT_EQ(work.item(), 5U);
    EXPECT_EQ(work.last_failure()->type, "Before");
    EXPECT_EQ(work.output_of("one"), "first");
    EXPECT_EQ(work.output_of("none"), "");
    EXPECT_EQ(decode_list(work.output_of("many")), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(work.output_of("many").data(), work.output_of("many").data()) << "made once";
    EXPECT_EQ(work.remaining(), 30s);
    EXPECT_FALSE(work.stop_token().stop_requested());
    EXPECT_TRUE(work.stop_token().stop_possible());
    EXPECT_EQ(work.input(), "the input");
    return std::string{work.idempotency_key()};
  });
  JobContext context;
  context.last_failure.type = "Before";
  context.outputs = std::make_shared<const StepOutputs>(StepOutputs{
      {"one", {inline_payload("first")}, false}, {"many", {inline_payload("a"), inline_payload("b")}, true}});
  Job job = job_of(1, look, 30s);
  job.id.item = 5;
  job.attempt = 3;
  job.input = inline_payload("the input");
  job.context = std::make_shared<const JobContext>(std::move(context));
  const RunId run_id = job.run_id;
  start(*pool, std::move(job));
  EXPECT_EQ(output_of(answers.of(1)).bytes, to_string(run_id) + "/charge/5");

  const std::uint32_t first = pool->add_handler("first", [](Work& work) -> Result {
    EXPECT_EQ(work.last_failure(), nullptr);
    EXPECT_EQ(work.remaining(), std::nullopt);
    return std::string{work.input()};
  });
  start(*pool, job_of(2, first));
  EXPECT_TRUE(has_succeeded(answers.of(2)));
}

TEST(ExecFunctionPoolPayloads, large_inputs_are_read_when_they_are_asked_for) {
  Answers answers;
  std::atomic<int> reads = 0;
  FunctionPool pool{{.threads = 2,
                     .load = [&](std::string_view hash) -> std::expected<std::string, Error> {
                       ++reads;
                       if (hash == "bad") return std::unexpected{Error{ErrorCode::store_damaged, "gone"}};
                       return "bytes of " + std::string{hash};
                     }},
                    answers};
  const std::uint32_t twice = pool.add_handler("twice", [](Work& work) -> Result {
    EXPECT_EQ(work.input().data(), work.input().data());
    return std::string{work.input()};
  });
  const std::uint32_t ignores = pool.add_handler("ignores", [](Work&) -> Result { return ""; });
  Job good = job_of(1, twice);
  good.input = {"hash", 9999, true};
  Job unread = job_of(2, ignores);
  unread.input = {"hash", 9999, true};
  Job bad = job_of(3, twice);
  bad.input = {"bad", 9999, true};
  start(pool, std::move(good));
  EXPECT_EQ(output_of(answers.of(1)).bytes, "bytes of hash");
  start(pool, std::move(unread));
  start(pool, std::move(bad));
  EXPECT_TRUE(has_succeeded(answers.of(2)));
  EXPECT_EQ(failure_of(answers.of(3)).message, "gone");
  EXPECT_EQ(reads, 2);
}

TEST(ExecFunctionPoolPayloads, the_items_of_a_list_read_it_once) {
  Answers answers;
  std::atomic<int> reads = 0;
  const std::vector<std::string> elements{"zero", "one", "two", "three"};
  FunctionPool pool{{.threads = 4,
                     .load = [&](std::string_view) -> std::expected<std::string, Error> {
                       ++reads;
                       return encode_list(elements);
                     }},
                    answers};
  const std::uint32_t echo = pool.add_handler("echo", [](Work& work) -> Result { return std::string{work.input()}; });
  std::vector<Job> jobs;
  for (std::uint32_t item = 0; item < 5; ++item) {
    jobs.push_back(job_of(item, echo));
    jobs.back().id.item = item;
    jobs.back().input_is_list = true;
    jobs.back().input = {"hash", 9999, true};
  }
  pool.start(jobs);
  for (std::uint32_t item = 0; item < 4; ++item) EXPECT_EQ(output_of(answers.of(item)).bytes, elements[item]);
  EXPECT_FALSE(has_succeeded(answers.of(4))) << "the list has no such element";
  EXPECT_EQ(reads, 1);

  Job small = job_of(9, echo);
  small.id.item = 2;
  small.input_is_list = true;
  small.input = inline_payload(encode_list(elements));
  start(pool, std::move(small));
  EXPECT_EQ(output_of(answers.of(9)).bytes, "two");
  EXPECT_EQ(reads, 1);
}

TEST_F(ExecFunctionPool, progress_is_bounded_in_time_and_size) {
  make(1);
  const std::uint32_t talk = pool->add_handler("talk", [this](Work& work) -> Result {
    work.progress("one");
    work.progress("too soon");
    env.advance(100ms);
    work.progress(std::string(1023, 'x') + "ä");
    return "";
  });
  start(*pool, job_of(1, talk));
  answers.wait_for(1);
  EXPECT_EQ(answers.progress(), (std::vector<std::string>{"one", std::string(1023, 'x')}));
}

// ---- Time ----------------------------------------

TEST_F(ExecFunctionPool, a_call_that_ignores_its_timeout_is_given_up_and_replaced) {
  make(1);
  start(*pool, job_of(1, hang, 5s));
  began.acquire();
  start(*pool, job_of(2, succeed));
  advance_until(2);
  const Outcome& first = answers.of(1);
  EXPECT_EQ(failure_of(first).type, "TimeoutError");
  EXPECT_EQ(failure_of(first).kind, FailureKind::timeout);
  EXPECT_EQ(failure_of(first).failure_class, FailureClass::transient);
  EXPECT_EQ(failure_of(first).message, "timed out after 5s");
  EXPECT_TRUE(has_succeeded(answers.of(2))) << "another thread has taken the place";
  release.release();
  start(*pool, job_of(3, succeed));
  EXPECT_TRUE(has_succeeded(answers.of(3)));
  EXPECT_EQ(answers.count(), 3U) << "what came too late was dropped";
}

TEST_F(ExecFunctionPool, in_the_grace_a_failure_is_a_timeout_and_a_success_a_success) {
  make(2);
  start(*pool, job_of(1, obey, 5s));
  start(*pool, job_of(2, finish, 5s));
  began.acquire();
  began.acquire();
  env.advance(5s);
  EXPECT_EQ(failure_of(answers.of(1)).type, "TimeoutError");
  EXPECT_EQ(failure_of(answers.of(1)).kind, FailureKind::timeout);
  EXPECT_EQ(failure_of(answers.of(1)).details, "it returned Stopped: as you wish");
  EXPECT_EQ(output_of(answers.of(2)).bytes, "just in time");
}

TEST_F(ExecFunctionPool, a_timeout_counts_from_when_the_call_begins) {
  make(1);
  start(*pool, job_of(1, hang));
  began.acquire();
  start(*pool, job_of(2, obey, 5s));
  env.advance(100s);
  release.release();
  began.acquire();
  EXPECT_EQ(answers.count(), 1U);
  env.advance(4s);
  EXPECT_EQ(answers.count(), 1U);
  env.advance(1s);
  EXPECT_EQ(failure_of(answers.of(2)).kind, FailureKind::timeout);
}

TEST_F(ExecFunctionPool, an_earlier_timeout_is_not_kept_waiting_by_a_later_one) {
  make(2);
  start(*pool, job_of(1, obey, 1000s));
  began.acquire();
  start(*pool, job_of(2, obey, 1s));
  began.acquire();
  env.advance(1s);
  EXPECT_EQ(failure_of(answers.of(2)).kind, FailureKind::timeout);
  EXPECT_EQ(answers.count(), 1U);
  env.advance(999s);
  EXPECT_EQ(failure_of(answers.of(1)).kind, FailureKind::timeout);
}

// The process was halted, and the call with it: it gets the time that is known to be missing, at most all of it, and once.
TEST(ExecSeat, a_call_that_was_halted_with_us_gets_its_time_again) {
  const Env::TimePoint start{};
  JobBatch batch{{job_of(1, 0, 5s)}, nullptr};
  WorkerSlot slot;
  ASSERT_NE(slot.claim(batch, start), nullptr);
  slot.limit(start, start + 5s, Asked::timeout);
  EXPECT_EQ(slot.look(start + 4s, 1s).next, start + 5s);
  EXPECT_EQ(slot.look(start + 1h, 1s).next, start + 1h + 5s);
  EXPECT_EQ(slot.look(start + 2h, 1s).next, start + 2h + 1s) << "asked to stop: the grace is next";
  const auto left = slot.leave();
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->asked, Asked::timeout);
}

TEST_F(ExecFunctionPool, a_deadline_of_the_wall_clock_cuts_too) {
  make(1);
  Job job = job_of(1, obey, 1h);
  job.deadline = wall + Duration{3s}.count();
  start(*pool, std::move(job));
  began.acquire();
  env.advance(3s);
  EXPECT_EQ(failure_of(answers.of(1)).message, "timed out after 3s");

  Job over = job_of(2, succeed);
  over.deadline = wall - 1;
  start(*pool, std::move(over));
  EXPECT_EQ(failure_of(answers.of(2)).kind, FailureKind::timeout) << "it is not even called";
}

TEST_F(ExecFunctionPool, too_many_lost_threads_leave_fewer_until_one_returns) {
  make(2);  // may lose two
  for (std::uint64_t run = 1; run <= 4; ++run) {
    start(*pool, job_of(run, hang, 1s));
    began.acquire();
    advance_until(run);
    EXPECT_EQ(failure_of(answers.of(run)).kind, FailureKind::timeout);
  }
  EXPECT_EQ(pool->capacity(succeed), 0U);
  EXPECT_EQ(env.warnings().size(), 1U);
  release.release(4);
  answers.wait_for_room();  // who has work for it need not ask again and again
  start(*pool, job_of(5, succeed));
  EXPECT_TRUE(has_succeeded(answers.of(5))) << "a thread that comes back makes room for another";
}

// ---- Cancelling ----------------------------------------

TEST_F(ExecFunctionPool, a_job_that_has_not_begun_is_canceled_at_once) {
  make(1);
  start(*pool, job_of(1, hang));
  began.acquire();
  start(*pool, job_of(2, succeed));
  pool->cancel(job_of(2, succeed).id);
  EXPECT_EQ(answers.count(), 1U);
  EXPECT_TRUE(std::holds_alternative<Returned>(answers.of(2).end)) << "it may be made again, whatever its effect";
  release.release();
  EXPECT_TRUE(has_succeeded(answers.of(1)));
  pool->cancel(job_of(1, hang).id);
  pool->cancel(job_of(77, hang).id);
  start(*pool, job_of(3, succeed));
  EXPECT_TRUE(has_succeeded(answers.of(3)));
  EXPECT_EQ(answers.count(), 3U);
}

TEST_F(ExecFunctionPool, a_running_call_is_asked_to_stop) {
  make(2);
  start(*pool, job_of(1, obey));
  start(*pool, job_of(2, finish));
  began.acquire();
  began.acquire();
  pool->cancel(job_of(1, obey).id);
  EXPECT_EQ(failure_of(answers.of(1)).failure_class, FailureClass::canceled);
  EXPECT_EQ(answers.count(), 1U);
  pool->cancel(job_of(2, finish).id);
  EXPECT_TRUE(has_succeeded(answers.of(2))) << "a success that comes in spite of it is one";
}

TEST_F(ExecFunctionPool, a_call_that_ignores_a_cancel_is_given_up) {
  make(1);
  start(*pool, job_of(1, hang));
  began.acquire();
  pool->cancel(job_of(1, hang).id);
  advance_until(1);
  EXPECT_EQ(failure_of(answers.of(1)).failure_class, FailureClass::canceled);
  release.release();
}

TEST_F(ExecFunctionPool, a_stop_does_not_reach_the_attempt_before_it) {
  make(1);
  std::stop_token kept;
  const std::uint32_t keep = pool->add_handler("keep", [&](Work& work) -> Result {
    kept = work.stop_token();
    return "";
  });
  start(*pool, job_of(1, keep));
  answers.wait_for(1);
  start(*pool, job_of(2, obey));
  began.acquire();
  pool->cancel(job_of(2, obey).id);
  answers.wait_for(2);
  EXPECT_FALSE(kept.stop_requested());
}

// ---- Threads ----------------------------------------

TEST_F(ExecFunctionPool, slow_calls_of_one_batch_run_at_the_same_time) {
  make(4);
  std::latch all{4};
  const std::uint32_t meet = pool->add_handler("meet", [&](Work&) -> Result {
    all.arrive_and_wait();
    return "";
  });
  std::vector<Job> jobs;
  for (std::uint64_t run = 0; run < 4; ++run) jobs.push_back(job_of(run, meet));
  pool->start(jobs);
  answers.wait_for(4);
}

TEST_F(ExecFunctionPool, slow_calls_of_many_batches_run_at_the_same_time) {
  make(4);
  for (std::uint64_t round = 0; round < 50; ++round) {
    std::latch all{4};
    const std::uint32_t meet = pool->add_handler("meet", [&](Work&) -> Result {
      all.arrive_and_wait();
      return "";
    });
    for (std::uint64_t run = 0; run < 4; ++run) start(*pool, job_of(run, meet));
    answers.wait_for((round + 1) * 4);
  }
}

// Time is real here: the rescue comes after two milliseconds, whenever that is.
TEST(ExecFunctionPoolThreads, a_fast_handler_that_hangs_does_not_hold_up_the_others_of_its_batch) {
  Answers answers;
  std::latch all{4};
  std::atomic<bool> meet = false;
  FunctionPool pool{{.threads = 4}, answers};
  const std::uint32_t handler = pool.add_handler("mostly fast", [&](Work&) -> Result {
    if (meet) all.arrive_and_wait();
    return "";
  });
  std::vector<Job> jobs;
  for (std::uint64_t run = 0; run < 1000; ++run) jobs.push_back(job_of(run, handler));
  pool.start(jobs);
  answers.wait_for(1000);
  meet = true;
  for (std::uint64_t run = 0; run < 4; ++run) jobs.push_back(job_of(run, handler));
  pool.start(jobs);
  answers.wait_for(1004);
}

TEST_F(ExecFunctionPool, capacity_is_what_would_begin_soon) {
  make(3);
  EXPECT_EQ(pool->capacity(succeed), 3U) << "nothing is known about it";
  EXPECT_EQ(pool->capacity(4711), 3U);
  start(*pool, job_of(1, hang));
  began.acquire();
  EXPECT_EQ(pool->capacity(succeed), 2U);
  release.release();
  answers.wait_for(1);

  const std::uint32_t slow = pool->add_handler("slow", [this](Work&) -> Result {
    env.advance(10ms);
    return "";
  });
  start(*pool, job_of(2, slow));
  answers.wait_for(2);  // or its time would count for the other one too
  start(*pool, job_of(3, succeed));
  answers.wait_for(3);
  pool->stop(1h);  // so that the last of them is not only answered but gone
  EXPECT_EQ(pool->capacity(slow), 3U) << "slow: one for each thread";
  EXPECT_EQ(pool->capacity(succeed), 4096U) << "fast: as many as two milliseconds hold";
}

TEST_F(ExecFunctionPool, a_fast_handler_that_hangs_takes_its_thread_out_of_the_capacity) {
  make(1);
  std::atomic<bool> hangs = false;
  const std::uint32_t mixed = pool->add_handler("mixed", [&](Work&) -> Result {
    if (hangs) {
      began.release();
      release.acquire();
    }
    return "";
  });
  start(*pool, job_of(1, mixed));
  answers.wait_for(1);
  hangs = true;
  start(*pool, job_of(2, mixed));
  began.acquire();
  EXPECT_GT(pool->capacity(mixed), 1000U);
  env.advance(10ms);
  EXPECT_EQ(pool->capacity(mixed), 0U);
  EXPECT_EQ(pool->capacity(succeed), 0U);
  release.release();
  answers.wait_for(2);
}

// ---- The end ----------------------------------------

TEST_F(ExecFunctionPool, stop_lets_calls_end_and_gives_back_what_has_not_begun) {
  make(1);
  start(*pool, job_of(1, hang));
  began.acquire();
  start(*pool, job_of(2, succeed));
  start(*pool, job_of(3, succeed));
  FunctionPool::Stopped stopped;
  std::thread stopper{[&] { stopped = pool->stop(1h); }};
  release.release();
  stopper.join();
  EXPECT_TRUE(has_succeeded(answers.of(1)));
  // The call may have ended, and others begun, before the stop.
  EXPECT_EQ(answers.count() + stopped.not_begun.size(), 3U);
  EXPECT_TRUE(stopped.interrupted.empty());
  EXPECT_TRUE(stopped.by_themselves);
  start(*pool, job_of(4, succeed));
  EXPECT_TRUE(std::holds_alternative<Returned>(answers.of(4).end));
}

TEST_F(ExecFunctionPool, stop_without_patience_asks_and_then_gives_up) {
  make(3);
  start(*pool, job_of(1, obey));
  start(*pool, job_of(2, finish));
  start(*pool, job_of(3, hang));
  for (int call = 0; call < 3; ++call) began.acquire();
  start(*pool, job_of(4, succeed));
  start(*pool, job_of(5, succeed));
  std::jthread clock{[&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (answers.count() > 0) env.advance(1s);  // only when the one that finishes has
      std::this_thread::yield();
    }
  }};
  const FunctionPool::Stopped stopped = pool->stop(0s);
  EXPECT_FALSE(stopped.by_themselves);
  EXPECT_EQ(stopped.not_begun.size(), 2U);
  EXPECT_TRUE(has_succeeded(answers.of(2)));
  EXPECT_EQ(answers.count(), 1U);
  EXPECT_EQ(stopped.interrupted.size(), 2U);
  release.release();
}

TEST(ExecFunctionPoolEnd, a_call_may_outlive_the_pool_and_all_it_knew) {
  Semaphore began{0};
  Semaphore release{0};
  Semaphore gone{0};
  {
    auto env = std::make_unique<HandEnv>();
    auto answers = std::make_unique<Answers>();
    auto store = std::make_unique<std::string>("from the store");
    auto pool = std::make_unique<FunctionPool>(
        FunctionPoolSettings{.threads = 1,
                             .grace = 0s,
                             .env = env.get(),
                             .load = [&](std::string_view) -> std::expected<std::string, Error> { return *store; }},
        *answers);
    const std::uint32_t handler =
        pool->add_handler("outlives", [&, farewell = std::make_shared<Farewell>(gone)](Work& work) -> Result {
          began.release();
          release.acquire();
          EXPECT_TRUE(work.stop_token().stop_requested());
          EXPECT_EQ(work.remaining(), 0ns);
          work.progress("nobody listens");
          EXPECT_EQ(work.attempt(), 1U);
          return std::string{work.input()};  // throws
        });
    Job job = job_of(1, handler, 1h);
    job.input = {"hash", 9999, true};
    start(*pool, std::move(job));
    began.acquire();
    pool.reset();
    EXPECT_EQ(answers->count(), 0U);
  }
  release.release();
  gone.acquire();
}

TEST(ExecFunctionPoolEnd, a_pool_that_never_worked_ends_too) {
  Answers answers;
  FunctionPool pool{{}, answers};
  EXPECT_TRUE(pool.stop(0s).by_themselves);
  EXPECT_TRUE(pool.stop(0s).by_themselves);
}

// ---- Everything at once ----------------------------------------

// Handlers that do whatever they like, cancels at any moment, timeouts of a millisecond, and a stop in the middle.
void run_chaos(std::uint64_t seed) {
  constexpr std::uint64_t jobs_max = 2000;
  Random random{seed};
  Answers answers;
  Semaphore gone{0};
  const auto open = std::make_shared<std::atomic<bool>>(false);  // lets go of those that hang
  std::optional<FunctionPool> pool;
  pool.emplace(FunctionPoolSettings{.threads = 1 + static_cast<unsigned>(random.next() % 6),
                                    .grace = std::chrono::microseconds{random.next() % 2000},
                                    .max_abandoned = 8,
                                    .spin = std::chrono::microseconds{random.next() % 30}},
               answers);
  const std::uint32_t handler =
      pool->add_handler("anything", [open, farewell = std::make_shared<Farewell>(gone)](Work& work) -> Result {
        switch (std::stoull(std::string{work.input()}) % 40) {
          case 0:
            throw std::runtime_error{"thrown"};
          case 1:
            throw 17;
          case 2:
            return std::unexpected{Failure{.type = "Returned"}};
          case 3:
            work.progress("still here");
            return "";
          case 4:
            while (!work.stop_token().stop_requested() && !*open) std::this_thread::yield();
            return "";
          case 5:
            while (!work.stop_token().stop_requested() && !*open) std::this_thread::yield();
            throw Failure{.type = "Stopped"};
          case 6:
            while (!*open) std::this_thread::yield();
            return "late";
          default:
            return "";
        }
      });
  std::uint64_t sent = 0;
  while (sent < jobs_max) {
    std::vector<Job> jobs;
    for (std::uint64_t count = random.next() % 30; count > 0; --count) {
      jobs.push_back(job_of(++sent, random.next() % 50 == 0 ? 99 : handler));
      const std::uint64_t kind = random.next();
      jobs.back().input = inline_payload(std::to_string(kind % 40 == 6 && kind % 1600 != 6 ? 7 : kind % 40));
      jobs.back().timeout = kind % 40 >= 4 && kind % 40 <= 6 ? Duration{1ms} : Duration{0};
      if (jobs.back().timeout != 0ns && random.next() % 8 == 0) jobs.back().timeout = 1us;
    }
    pool->start(jobs);
    for (std::uint64_t cancels = random.next() % 4; cancels > 0; --cancels) {
      pool->cancel(job_of(1 + random.next() % (sent + 1), handler).id);
    }
    if (pool->capacity(handler) == 0) std::this_thread::yield();
  }
  if (random.next() % 2 == 0) answers.wait_for(sent / 2);
  const FunctionPool::Stopped stopped = pool->stop(random.next() % 2 == 0 ? 0ms : 5ms);
  std::map<std::uint64_t, int> counts = answers.count_by_run();
  for (const AttemptId& id : stopped.not_begun) ++counts[id.run];
  for (const AttemptId& id : stopped.interrupted) ++counts[id.run];
  EXPECT_EQ(counts.size(), sent);
  for (const auto& [run, count] : counts) EXPECT_EQ(count, 1) << "run " << run;
  *open = true;
  pool.reset();
  gone.acquire();
}

TEST(ExecFunctionPoolChaos, every_job_is_answered_exactly_once) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    run_chaos(seed);
    if (testing::Test::HasFailure()) return;
  }
}

// ---- waiting for a place ----------------------------------------

Job reserved(std::uint64_t run, std::uint32_t handler, std::uint32_t places = 1) {
  Job job = job_of(run, handler);
  job.limits = {.handler = places, .waits = true};
  return job;
}

Job limited(std::uint64_t run, std::uint32_t handler, std::uint32_t places = 1) {
  Job job = reserved(run, handler, places);
  job.limits.waits = false;
  return job;
}

TEST_F(ExecFunctionPool, the_next_begins_when_one_has_succeeded) {
  FunctionPool& work = make(4);
  start(work, limited(1, hang));
  began.acquire();
  for (const std::uint64_t run : {2, 3}) start(work, reserved(run, hang));
  start(work, job_of(4, succeed));  // there are threads enough
  answers.of(4);
  EXPECT_TRUE(answers.began().empty());
  release.release();
  answers.of(1);
  began.acquire();
  EXPECT_EQ(answers.began(), std::vector<std::uint64_t>{2});
  release.release();
  began.acquire();
  EXPECT_EQ(answers.began(), (std::vector<std::uint64_t>{2, 3}));
  release.release();
  answers.wait_for(4);
}

TEST_F(ExecFunctionPool, a_failure_keeps_its_place_until_what_follows_is_recorded) {
  FunctionPool& work = make(2);
  const std::uint32_t fail =
      work.add_handler("fail", [](Work&) -> Result { return std::unexpected{Failure{.type = "Trouble"}}; });
  Job first = limited(1, fail);
  first.limits = {.run = 1};
  Job second = reserved(1, succeed);
  second.id.item = 1;
  second.limits = {.run = 1, .waits = true};
  const AttemptId id = first.id;
  start(work, std::move(first));
  answers.wait_for(1);
  start(work, std::move(second));
  start(work, job_of(4, succeed));
  answers.of(4);
  EXPECT_TRUE(answers.began().empty());
  work.settled(id);
  answers.wait_for(3);
  EXPECT_EQ(answers.began(), std::vector<std::uint64_t>{1});
}

TEST_F(ExecFunctionPool, what_waits_for_a_place_can_be_taken_back_and_what_has_begun_cannot) {
  FunctionPool& work = make(2);
  start(work, limited(1, hang));
  began.acquire();
  for (const std::uint64_t run : {2, 3, 4, 5}) start(work, reserved(run, succeed));  // another handler: its own places
  answers.wait_for(4);
  for (const std::uint64_t run : {6, 7, 8}) start(work, reserved(run, hang));
  work.take_back(job_of(1, hang).id);
  work.take_back(job_of(6, hang).id);
  EXPECT_TRUE(std::holds_alternative<Returned>(answers.of(6).end));
  work.cancel(job_of(7, hang).id);
  EXPECT_TRUE(std::holds_alternative<Returned>(answers.of(7).end));
  work.take_back_all();
  EXPECT_TRUE(std::holds_alternative<Returned>(answers.of(8).end));
  start(work, reserved(9, hang));
  EXPECT_TRUE(std::holds_alternative<Returned>(answers.of(9).end)) << "it would not begin any more";
  release.release();
  EXPECT_TRUE(has_succeeded(answers.of(1)));
}

TEST_F(ExecFunctionPool, a_stop_names_those_that_waited_for_a_place) {
  FunctionPool& work = make(2);
  start(work, limited(1, obey));
  began.acquire();
  start(work, reserved(2, obey));
  const FunctionPool::Stopped stopped = work.stop(0s);
  EXPECT_EQ(stopped.not_begun, std::vector{job_of(2, obey).id});
  EXPECT_EQ(stopped.interrupted, std::vector{job_of(1, obey).id});
}

TEST_F(ExecFunctionPool, only_fast_work_is_taken_ahead) {
  FunctionPool& work = make(2);
  EXPECT_EQ(work.ahead(succeed, 2), 0U) << "nothing is known of it";
  start(work, job_of(1, succeed));
  answers.wait_for(1);
  EXPECT_EQ(work.ahead(succeed, 1), 4000U) << "of half a microsecond each, in two milliseconds";
  EXPECT_EQ(work.ahead(succeed, 2), 4096U);
  EXPECT_EQ(work.ahead(hang, 2), 0U);
}

// Many threads, many jobs, few places: never more at once than there are, and every job is answered.
TEST_F(ExecFunctionPool, places_hold_under_load) {
  FunctionPool& work = make(8);
  constexpr std::uint64_t jobs = 5000;
  std::atomic<int> at_once = 0;
  std::atomic<bool> too_many = false;
  const std::uint32_t handler = work.add_handler("count", [&](Work&) -> Result {
    if (at_once.fetch_add(1) >= 3) too_many = true;
    std::this_thread::yield();
    at_once.fetch_sub(1);
    return "done";
  });
  for (std::uint64_t run = 1; run <= jobs; ++run)
    start(work, run <= 3 ? limited(run, handler, 3) : reserved(run, handler, 3));
  answers.wait_for(jobs);
  EXPECT_FALSE(too_many);
}

}  // namespace
}  // namespace reprise::exec
