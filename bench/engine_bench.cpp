// The durable engine at work: W1 to W5, each with full durability (SQLite, WAL, synchronous=FULL), beside the raw limit in the same run.
//
// W1 durable steps: workflows of 10 steps that do nothing; a step's result is durable before the next begins.
// W2 tasks: accepted per second (durable acknowledgement), and from submit to recorded result.
// W3 flaky tasks: each fails twice, waits 100 ms each time, and succeeds. W4: a million tasks due in an hour. W5: kill -9 in the middle of W1.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <reprise/engine.hpp>

#include "plain_sqlite.hpp"
#include "report.hpp"
#include "timing.hpp"
#include "workplace.hpp"

namespace reprise::bench {
namespace {

using namespace std::chrono_literals;

void wait_until_ended(const Engine& engine, std::uint64_t runs) {
  for (;;) {
    const EngineStats stats = engine.stats();
    if (stats.succeeded + stats.failed + stats.canceled >= runs && stats.running == 0) return;
    std::this_thread::sleep_for(1ms);
  }
}

constexpr int steps = 10;

void add_ten_steps(Engine& engine, std::atomic<std::uint64_t>& finished) {
  expect(engine.handle("step", [] {}));
  expect(engine.handle("last", [&finished] { finished.fetch_add(1, std::memory_order_relaxed); }));
  Flow flow{.name = "ten"};
  for (int step = 0; step < steps; ++step) {
    FlowStep next{.name = "s" + std::to_string(step), .handler = step + 1 < steps ? "step" : "last"};
    if (step > 0) next.needs = {"s" + std::to_string(step - 1)};
    flow.steps.push_back(std::move(next));
  }
  expect(engine.flow(std::move(flow)));
}

// Keeps `in_flight` workflows going until `workflows` have been submitted.
void feed_workflows(Engine& engine, const std::atomic<std::uint64_t>& finished, std::uint64_t workflows,
                    std::uint64_t in_flight) {
  for (std::uint64_t submitted = 0; submitted < workflows;) {
    const std::uint64_t open = submitted - finished.load(std::memory_order_relaxed);
    if (open + in_flight / 8 > in_flight) {
      std::this_thread::sleep_for(50us);
      continue;
    }
    const std::uint64_t batch = std::min(in_flight - open, workflows - submitted);
    expect(engine.submit_all(std::vector<Task>(batch, Task{.flow = "ten"})));
    submitted += batch;
  }
}

void measure_w1(Report& report) {
  constexpr std::uint64_t workflows = 100'000;
  Folder folder;
  Engine engine{{.store = folder.store(), .threads = 2}};
  std::atomic<std::uint64_t> finished{0};
  add_ten_steps(engine, finished);
  feed_workflows(engine, finished, 5'000, 1024);  // warm up
  wait_until_ended(engine, 5'000);
  const EngineStats before = engine.stats();
  finished = 0;
  const auto start = Clock::now();
  feed_workflows(engine, finished, workflows, 1024);
  wait_until_ended(engine, 5'000 + workflows);
  const double rate = static_cast<double>(workflows) * steps / seconds_since(start);
  const EngineStats after = engine.stats();
  const double steps_a_commit =
      static_cast<double>(workflows) * steps / static_cast<double>(after.commits - before.commits);
  const double bytes_a_step =
      static_cast<double>(after.committed_bytes - before.committed_bytes) / (static_cast<double>(workflows) * steps);
  engine.stop();
  const PlainSqlite plain = run_plain_sqlite(folder.path(), static_cast<std::size_t>(bytes_a_step),
                                             static_cast<std::size_t>(steps_a_commit), 2);
  report.add("w1_steps_per_s", rate, "1/s");
  report.add("w1_steps_per_commit", steps_a_commit, "");
  report.add("w1_bytes_per_step", bytes_a_step, "B");
  report.add("w1_plain_sqlite_rows_per_s", plain.rows_per_s, "1/s");
  report.add("w1_vs_sqlite", rate / plain.rows_per_s, "");
}

void measure_w1_alone(Report& report) {
  Folder folder;
  Engine engine{{.store = folder.store(), .threads = 2}};
  std::atomic<std::uint64_t> finished{0};
  add_ten_steps(engine, finished);
  std::vector<double> spans;
  for (int round = 0; round < 500; ++round) {
    const RunId run = expect(engine.submit({.flow = "ten"}));
    const auto start = Clock::now();
    expect(engine.wait(run));
    spans.push_back(seconds_since(start) / steps);
  }
  engine.stop();
  const PlainSqlite plain = run_plain_sqlite(folder.path(), 64, 1, 1);
  const double step = median(std::move(spans));
  report.add("w1_step_p50_us", step * 1e6, "us");
  report.add("w1_commit_p50_us", plain.commit_p50_s * 1e6, "us");
  report.add("w1_step_p50_vs_commit", step / plain.commit_p50_s, "");
}

// `callers` threads submit `batch` tasks at a time, `tasks` in all. Returns the seconds it took.
double submit_from(Engine& engine, unsigned callers, std::uint64_t tasks, std::uint64_t batch, const Task& task) {
  std::atomic<std::uint64_t> next{0};
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (unsigned caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&] {
      while (next.fetch_add(batch) < tasks) {
        if (batch == 1) {
          expect(engine.submit(task));
        } else {
          expect(engine.submit_all(std::vector<Task>(batch, task)));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return seconds_since(start);
}

// Accepting alone: the only thread is held by one task, so nothing else is done meanwhile.
double accepted_per_s(unsigned callers, std::uint64_t tasks, std::uint64_t batch) {
  Folder folder;
  std::latch gate{1};
  Engine engine{{.store = folder.store(), .threads = 1}};
  expect(engine.handle("held", [&gate] { gate.wait(); }, {.concurrency = 1}));
  expect(engine.submit({.handler = "held"}));
  const double seconds = submit_from(engine, callers, tasks, batch, {.handler = "held"});
  gate.count_down();
  engine.stop(0s);
  return static_cast<double>(tasks) / seconds;
}

void measure_w2(Report& report) {
  report.add("w2_accepted_per_s", accepted_per_s(4, 400'000, 500), "1/s");
  report.add("w2_accepted_single_per_s", accepted_per_s(64, 200'000, 1), "1/s");

  constexpr std::uint64_t tasks = 400'000;
  Folder folder;
  Engine engine{{.store = folder.store(), .threads = 2}};
  expect(engine.handle("nothing", [] {}));
  const auto start = Clock::now();
  submit_from(engine, 2, tasks, 500, {.handler = "nothing"});
  wait_until_ended(engine, tasks);
  report.add("w2_done_per_s", static_cast<double>(tasks) / seconds_since(start), "1/s");
}

// Handlers with places of their own: between an end and the next start of the same place stands a commit, unless it was made ahead.
void measure_concurrency(Report& report) {
  constexpr std::uint64_t tasks = 20'000;
  Folder folder;
  Engine engine{{.store = folder.store(), .threads = 2}};
  expect(engine.handle("nothing", [] {}, {.concurrency = 2}));
  const auto start = Clock::now();
  submit_from(engine, 2, tasks, 500, {.handler = "nothing"});
  wait_until_ended(engine, tasks);
  const double seconds = seconds_since(start);
  report.add("tasks_concurrency2_per_s", static_cast<double>(tasks) / seconds, "1/s");
  report.add("tasks_concurrency2_commits_per_task", static_cast<double>(engine.stats().commits) / tasks, "");
}

// Remembers when each task failed last, and how much later than 100 ms after it the next attempt began.
class Slips {
 public:
  explicit Slips(std::size_t tasks) : failed_(tasks), slips_(2 * tasks) {}

  void began(std::size_t task) {
    const auto gap = Clock::now() - failed_[task];
    slips_[next_.fetch_add(1, std::memory_order_relaxed)] =
        std::chrono::duration<double, std::milli>(gap - 100ms).count();
  }
  void failed(std::size_t task) { failed_[task] = Clock::now(); }

  double percentile(double part) {
    slips_.resize(next_.load());
    std::ranges::sort(slips_);
    return slips_[static_cast<std::size_t>(static_cast<double>(slips_.size() - 1) * part)];
  }

 private:
  std::vector<Clock::time_point> failed_;
  std::vector<double> slips_;
  std::atomic<std::size_t> next_{0};
};

// Submits `tasks`, at most `per_s` a second (0 = as fast as they are taken), and waits until all have succeeded.
double run_flaky(std::uint64_t tasks, double per_s, Slips& slips) {
  Folder folder;
  Engine engine{{.store = folder.store(), .threads = 2}};
  const Policy policy{.max_attempts = 3, .backoff = Backoff::constant, .initial = 100ms, .jitter = Jitter::none};
  expect(engine.handle("flaky",
                       [&](Work& work) -> std::expected<void, Failure> {
                         const std::size_t task = std::stoul(std::string{work.input()});
                         if (work.is_retry()) slips.began(task);
                         if (work.attempt() == 3) return {};
                         slips.failed(task);
                         return std::unexpected{Failure{.type = "TimeoutError", .message = "no answer"}};
                       },
                       {.retry = policy}));
  const auto start = Clock::now();
  constexpr std::uint64_t batch = 500;
  for (std::uint64_t first = 0; first < tasks; first += batch) {
    std::vector<Task> some;
    for (std::uint64_t task = first; task < std::min(tasks, first + batch); ++task) {
      some.push_back({.handler = "flaky", .input = std::to_string(task)});
    }
    expect(engine.submit_all(std::move(some)));
    if (per_s > 0)
      std::this_thread::sleep_until(start + std::chrono::duration<double>(static_cast<double>(first + batch) / per_s));
  }
  wait_until_ended(engine, tasks);
  return seconds_since(start);
}

void measure_w3(Report& report) {
  constexpr std::uint64_t tasks = 100'000;
  Slips at_full_speed{tasks};
  report.add("w3_attempts_per_s", 3.0 * tasks / run_flaky(tasks, 0, at_full_speed), "1/s");
  report.add("w3_earliest_ms", at_full_speed.percentile(0), "ms");
  constexpr std::uint64_t paced_tasks = 50'000;  // 10,000 a second with two retries each: 20,000 due a second
  Slips paced{paced_tasks};
  run_flaky(paced_tasks, 10'000, paced);
  report.add("w3_slip_p50_ms", paced.percentile(0.5), "ms");
  report.add("w3_slip_p99_ms", paced.percentile(0.99), "ms");
}

void measure_w4(Report& report) {
  const char* const wanted = std::getenv("REPRISE_BENCH_W4_TASKS");
  const std::uint64_t tasks = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1'000'000;
  Folder folder;
  Engine engine{{.store = folder.store(), .threads = 2}};
  expect(engine.handle("later", [] {}));
  submit_from(engine, 2, 2'000, 500, {.handler = "later", .delay = 1h});  // what is needed once is there
  const std::size_t before = resident_bytes();
  const double seconds = submit_from(engine, 2, tasks, 500, {.handler = "later", .delay = 1h});
  const std::size_t after = resident_bytes();
  report.add("w4_scheduled_per_s", static_cast<double>(tasks) / seconds, "1/s");
  report.add("w4_bytes_each", after > before ? static_cast<double>(after - before) / static_cast<double>(tasks) : 0,
             "B");
}

// ---- W5 ----------------------------------------

// What the child was told before it was killed; in memory that outlives it.
struct Told {
  static constexpr std::size_t runs_max = 2'000'000;
  std::atomic<std::uint64_t> count{0};
  RunId runs[runs_max];
};

template <class F>
void run_and_kill(const Told& told, std::uint64_t until_told, F&& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  while (told.count.load() < until_told) std::this_thread::sleep_for(1ms);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
}

Told& shared_memory() {
  void* const memory = mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(1);
  return *new (memory) Told;
}

void remember(Told& told, const std::vector<RunId>& runs) {
  std::uint64_t at = told.count.load();
  for (const RunId& run : runs) told.runs[at++] = run;
  told.count.store(at);
}

// A step that had a recorded result and was started again.
bool was_repeated(const std::vector<Event>& events) {
  std::vector<std::string> completed;
  for (const Event& event : events) {
    if (event.type == EventType::completed) completed.push_back(event.step);
    if (event.type == EventType::started && std::ranges::find(completed, event.step) != completed.end()) return true;
  }
  return false;
}

void measure_w5_crash(Report& report) {
  Folder folder;
  Told& told = shared_memory();
  run_and_kill(told, 50'000, [&] {
    Engine engine{{.store = folder.store(), .threads = 2}};
    std::atomic<std::uint64_t> finished{0};
    add_ten_steps(engine, finished);
    for (;;) {
      if (told.count.load() - finished.load() < 1024)
        remember(told, expect(engine.submit_all(std::vector<Task>(128, Task{.flow = "ten"}))));
    }
  });
  const auto start = Clock::now();
  Engine engine{{.store = folder.store(), .threads = 2}};
  std::atomic<std::uint64_t> finished{0};
  add_ten_steps(engine, finished);
  std::uint64_t lost = 0;
  std::uint64_t repeated = 0;
  const std::uint64_t runs = told.count.load();
  while (engine.stats().loading || engine.stats().open > 0) std::this_thread::sleep_for(1ms);
  report.add("w5_done_s", seconds_since(start), "s");
  for (std::uint64_t index = 0; index < runs; ++index) {
    const auto outcome = engine.result(told.runs[index]);
    if (!outcome || outcome->status != RunStatus::succeeded) ++lost;
    if (index % 16 != 0 && index + 4096 < runs) continue;  // all that were open at the kill, and a sample of the others
    if (const auto events = engine.events(told.runs[index]); !events || was_repeated(*events)) ++repeated;
  }
  report.add("w5_lost", static_cast<double>(lost), "");
  report.add("w5_repeated", static_cast<double>(repeated), "");
}

void measure_w5_million(Report& report) {
  constexpr std::uint64_t tasks = 1'000'000;
  Folder folder;
  Told& told = shared_memory();
  run_and_kill(told, tasks, [&] {
    std::latch gate{1};
    Engine engine{{.store = folder.store(), .threads = 1}};
    expect(engine.handle("held", [&gate] { gate.wait(); }, {.concurrency = 1}));
    for (;;) {
      remember(told, expect(engine.submit_all(std::vector<Task>(500, Task{.handler = "held"}))));
      remember(told, expect(engine.submit_all(std::vector<Task>(500, Task{.handler = "held", .delay = 1h}))));
    }
  });
  std::atomic<double> first{0};
  const auto start = Clock::now();
  Engine engine{{.store = folder.store(), .threads = 1}};
  report.add("w5_opened_s", seconds_since(start), "s");
  expect(engine.handle("held", [&] {
    if (first == 0) first = seconds_since(start);
  }));
  while (first == 0) std::this_thread::sleep_for(1ms);
  while (engine.stats().loading) std::this_thread::sleep_for(1ms);
  report.add("w5_loaded_s", seconds_since(start), "s");
  report.add("w5_first_work_s", first, "s");
  engine.stop(0s);
}

}  // namespace

void run_engine_suite(Report& report) {
  const char* const only = std::getenv("REPRISE_BENCH_ONLY");  // such as w1, when one of them is being worked on
  const auto wanted = [&](std::string_view name) { return only == nullptr || name == only; };
  if (wanted("w1")) measure_w1(report);
  if (wanted("w1")) measure_w1_alone(report);
  if (wanted("w2")) measure_w2(report);
  if (wanted("concurrency")) measure_concurrency(report);
  if (wanted("w3")) measure_w3(report);
  if (wanted("w4")) measure_w4(report);
  if (wanted("w5")) measure_w5_crash(report);
  if (wanted("w5")) measure_w5_million(report);
}

}  // namespace reprise::bench
