// The public engine on both stores: what callers are promised, from submit() to stop(), and after opening the store again.
//
// Waits are real and short; nothing here asserts how long something took, only that it did not happen too early.
#include <reprise/engine.hpp>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "support/run_program.hpp"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using Result = std::expected<std::string, Failure>;

const Failure unavailable{.type = "TimeoutError", .message = "no answer"};

Policy steady(std::uint64_t attempts, Duration delay) {
  return {.max_attempts = attempts, .backoff = Backoff::constant, .initial = delay, .jitter = Jitter::none};
}

// A door that handlers wait behind. Always open it before the engine goes away.
class Gate {
 public:
  void open() {
    const std::lock_guard lock{mutex_};
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock{mutex_};
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void await_arrivals(int count) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return arrived_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_ = 0;
  bool open_ = false;
};

class EngineApi : public ::testing::TestWithParam<bool> {
 protected:
  bool is_durable() const { return GetParam(); }
  std::string path() const { return folder_.path() + "/runs.db"; }
  EngineSettings settings() const { return {.store = is_durable() ? "sqlite:" + path() : "memory:", .threads = 4}; }
  Engine make(EngineSettings with) { return Engine{std::move(with)}; }
  Engine make() { return make(settings()); }
  int number_from(const char* query) const {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open_v2(path().c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    int number = -1;
    const auto read = [](void* out, int, char** values, char**) {
      *static_cast<int*>(out) = std::atoi(values[0]);
      return 0;
    };
    sqlite3_exec(database, query, read, &number, nullptr);
    sqlite3_close(database);
    return number;
  }

 private:
  testing_support::TemporaryDirectory folder_;
};

class EngineRestart : public EngineApi {};  // only where something stays

RunOutcome outcome(Engine& engine, const RunId& run) {
  const auto ended = engine.wait(run, 60s);
  EXPECT_TRUE(ended) << (ended ? "" : ended.error().message);
  return ended.value_or(RunOutcome{});
}

RunId submitted(Engine& engine, Task task) {
  const auto run = engine.submit(std::move(task));
  EXPECT_TRUE(run) << (run ? "" : run.error().message);
  return run.value_or(RunId{});
}

std::vector<Event> events_of(Engine& engine, const RunId& run) {
  const auto events = engine.events(run);
  EXPECT_TRUE(events) << (events ? "" : events.error().message);
  return events.value_or(std::vector<Event>{});
}

std::vector<std::string> names_of(const std::vector<Event>& events) {
  std::vector<std::string> names;
  for (const Event& event : events) names.emplace_back(name_of(event.type));
  return names;
}

template <class Condition>
void eventually(Condition&& holds) {
  while (!holds()) std::this_thread::sleep_for(1ms);  // ctest has a time limit for those that never do
}

#define EXPECT_CODE(call, wanted)                 \
  do {                                            \
    const auto answer = (call);                   \
    ASSERT_FALSE(answer.has_value());             \
    EXPECT_EQ(answer.error().code, wanted);       \
    EXPECT_FALSE(answer.error().message.empty()); \
  } while (false)

// ---- tasks ----------------------------------------

TEST_P(EngineApi, runs_a_task_and_keeps_its_result) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("double", [](std::string_view input) { return std::string{input} + std::string{input}; }));
  const RunId run = submitted(engine, {.handler = "double", .input = "ab", .key = "k"});
  const RunOutcome expected{.status = RunStatus::succeeded, .output = "abab", .attempts = 1};
  EXPECT_EQ(outcome(engine, run), expected);
  EXPECT_EQ(*engine.wait(run), expected);
  EXPECT_EQ(*engine.result(run), expected);
  const RunInfo info = *engine.info(run);
  EXPECT_EQ(info.id, run);
  EXPECT_EQ(info.name, "double");
  EXPECT_EQ(info.key, "k");
  EXPECT_EQ(info.status, RunStatus::succeeded);
  ASSERT_TRUE(info.ended);
  EXPECT_GE(*info.ended, info.created);
  EXPECT_EQ(names_of(events_of(engine, run)), (std::vector<std::string>{"submitted", "started", "completed", "ended"}));
}

TEST_P(EngineApi, handlers_take_and_give_many_things) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("nothing", [] {}));
  ASSERT_TRUE(engine.handle("text", [] { return "text"; }));
  ASSERT_TRUE(engine.handle("work", [](Work& work) { return std::string{work.step()}; }));
  ASSERT_TRUE(engine.handle("expected", [](std::string_view) -> std::expected<void, Failure> { return {}; }));
  ASSERT_TRUE(engine.handle("words",
                            []() -> std::expected<std::string, std::string> { return std::unexpected{"gone"}; },
                            {.retry = policy::none}));
  ASSERT_TRUE(
      engine.handle("throws", []() -> std::string { throw std::runtime_error{"thrown"}; }, {.retry = policy::none}));
  ASSERT_TRUE(engine.handle("throws 7", []() -> std::string { throw 7; }, {.retry = policy::none}));
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "nothing"})).output, "");
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "text"})).output, "text");
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "work"})).output, "work");
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "expected"})).status, RunStatus::succeeded);
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "words"})).failure.message, "gone");
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "throws"})).failure.message, "thrown");
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "throws 7"})).status, RunStatus::failed);
}

TEST_P(EngineApi, tries_again_and_tells_the_handler_what_happened) {
  Engine engine = make();
  std::set<std::string> keys;
  std::vector<std::uint64_t> attempts;
  ASSERT_TRUE(engine.handle("flaky",
                            [&](Work& work) -> Result {
                              keys.emplace(work.idempotency_key());
                              attempts.push_back(work.attempt());
                              EXPECT_EQ(work.is_retry(), work.attempt() > 1);
                              EXPECT_EQ(work.last_failure() != nullptr, work.is_retry());
                              if (work.is_retry()) {
                                EXPECT_EQ(work.last_failure()->message, "no answer");
                              }
                              if (work.attempt() < 3) return std::unexpected{unavailable};
                              return "done";
                            },
                            {.retry = steady(5, 5ms)}));
  const RunId run = submitted(engine, {.handler = "flaky"});
  EXPECT_EQ(outcome(engine, run), (RunOutcome{.status = RunStatus::succeeded, .output = "done", .attempts = 3}));
  EXPECT_EQ(attempts, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(keys.size(), 1U);
  WallTime due{};
  for (const Event& event : events_of(engine, run)) {
    if (event.type == EventType::retrying) due = event.due;
    if (event.type != EventType::started || !event.is_retry) continue;
    EXPECT_GE(event.time, due);
    EXPECT_EQ(event.delay, 5ms);
    EXPECT_EQ(event.failure->message, "no answer");
  }
}

TEST_P(EngineApi, gives_up_and_says_why) {
  Engine engine = make();
  ASSERT_TRUE(
      engine.handle("never", []() -> Result { return std::unexpected{unavailable}; }, {.retry = steady(3, 1ms)}));
  const RunOutcome ended = outcome(engine, submitted(engine, {.handler = "never"}));
  EXPECT_EQ(ended.status, RunStatus::failed);
  EXPECT_EQ(ended.reason, StopReason::attempts);
  EXPECT_EQ(ended.attempts, 3U);
  EXPECT_EQ(ended.failure.message, "no answer");
  const RunOutcome once = outcome(engine, submitted(engine, {.handler = "never", .retry = policy::none}));
  EXPECT_EQ(once.attempts, 1U);
}

TEST_P(EngineApi, an_attempt_that_takes_too_long_is_cut) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("slow",
                            [](Work& work) -> Result {
                              EXPECT_TRUE(work.remaining().has_value());
                              while (!work.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
                              return std::unexpected{unavailable};
                            },
                            {.retry = steady(2, 1ms), .timeout = 10ms}));
  const RunOutcome ended = outcome(engine, submitted(engine, {.handler = "slow"}));
  EXPECT_EQ(ended.status, RunStatus::failed);
  EXPECT_EQ(ended.attempts, 2U);
  EXPECT_EQ(ended.failure.kind, FailureKind::timeout);
}

TEST_P(EngineApi, a_handler_that_does_not_listen_holds_up_nobody) {
  EngineSettings with = settings();
  with.threads = 1;
  with.grace = 5ms;
  Gate gate;
  Engine engine = make(with);
  ASSERT_TRUE(engine.handle("deaf", [&] { gate.pass(); }, {.retry = policy::none, .timeout = 5ms}));
  ASSERT_TRUE(engine.handle("quick", [] {}));
  const RunId deaf = submitted(engine, {.handler = "deaf"});
  EXPECT_EQ(outcome(engine, deaf).failure.kind, FailureKind::timeout);
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "quick"})).status, RunStatus::succeeded);
  const std::vector<Event> before = events_of(engine, deaf);
  gate.open();
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "quick"})).status, RunStatus::succeeded);
  EXPECT_EQ(events_of(engine, deaf), before);  // its result came too late
}

TEST_P(EngineApi, a_thread_that_comes_back_takes_what_waits_although_nothing_else_happens) {
  EngineSettings with = settings();
  with.threads = 1;
  with.max_abandoned = 0;
  with.grace = 5ms;
  Gate gate;
  std::promise<void> called;
  Engine engine = make(with);
  ASSERT_TRUE(engine.handle("deaf", [&] { gate.pass(); }, {.retry = policy::none, .timeout = 5ms}));
  ASSERT_TRUE(engine.handle("quick", [&] { called.set_value(); }));
  EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "deaf"})).failure.kind, FailureKind::timeout);
  submitted(engine, {.handler = "quick"});
  while (engine.stats().ready != 1) std::this_thread::sleep_for(1ms);  // there is no thread for it
  gate.open();
  EXPECT_EQ(called.get_future().wait_for(20s), std::future_status::ready);
}

TEST_P(EngineApi, a_key_finds_the_same_run) {
  Engine engine = make();
  std::atomic<int> calls = 0;
  ASSERT_TRUE(engine.handle("once", [&] { ++calls; }));
  const RunId run = submitted(engine, {.handler = "once", .key = "order 17"});
  EXPECT_EQ(submitted(engine, {.handler = "once", .key = "order 17"}), run);
  outcome(engine, run);
  EXPECT_EQ(submitted(engine, {.handler = "once", .key = "order 17"}), run);
  EXPECT_NE(submitted(engine, {.handler = "once", .key = "order 18"}), run);
  EXPECT_NE(submitted(engine, {.handler = "once"}), submitted(engine, {.handler = "once"}));
  ASSERT_TRUE(engine.stop());
  EXPECT_EQ(calls, 4);
}

TEST_P(EngineApi, a_batch_is_taken_whole_or_not_at_all) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
  const auto refused = engine.submit_all({{.handler = "echo"}, {.handler = "ecko"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "task 2: there is no handler named \"ecko\"; did you mean \"echo\"?");
  EXPECT_TRUE(engine.find({})->runs.empty());
  const auto runs = engine.submit_all({{.handler = "echo", .input = "0", .key = "k"},
                                       {.handler = "echo", .input = "1"},
                                       {.handler = "echo", .input = "2", .key = "k"}});
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 3U);
  EXPECT_EQ((*runs)[0], (*runs)[2]);
  EXPECT_EQ(outcome(engine, (*runs)[0]).output, "0");
  EXPECT_EQ(outcome(engine, (*runs)[1]).output, "1");
  EXPECT_TRUE(engine.submit_all({})->empty());
}

TEST_P(EngineApi, what_makes_no_sense_is_refused_and_changes_nothing) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [] {}));
  EXPECT_CODE(engine.submit({}), ErrorCode::invalid);
  EXPECT_CODE(engine.submit({.handler = "echo", .flow = "echo"}), ErrorCode::invalid);
  EXPECT_CODE(engine.submit({.handler = "nobody"}), ErrorCode::invalid);
  EXPECT_CODE(engine.submit({.flow = "nothing"}), ErrorCode::invalid);
  EXPECT_CODE(engine.submit({.handler = "echo", .priority = 10}), ErrorCode::invalid);
  EXPECT_CODE(engine.submit({.handler = "echo", .delay = -1ns}), ErrorCode::invalid);
  EXPECT_CODE(engine.submit({.handler = "echo", .key = std::string(513, 'k')}), ErrorCode::invalid);
  EXPECT_CODE(engine.submit({.handler = "echo", .input = "x", .items = {"y"}}), ErrorCode::invalid);
  EXPECT_CODE(engine.handle("", [] {}), ErrorCode::invalid);
  EXPECT_CODE(engine.flow({.name = "f", .steps = {{.name = "a", .handler = "ecko"}}}), ErrorCode::invalid);
  EXPECT_CODE(engine.find({}, "no cursor"), ErrorCode::invalid);
  EXPECT_EQ(engine.stats().accepted, 0U);
  EXPECT_TRUE(engine.submit({.handler = "echo", .key = std::string(512, 'k'), .priority = 9}));
}

TEST_P(EngineApi, runs_that_are_not_there_are_not_found) {
  Engine engine = make();
  Engine other = Engine{{.store = "memory:"}};
  ASSERT_TRUE(engine.handle("echo", [] {}));
  ASSERT_TRUE(other.handle("echo", [] {}));
  submitted(engine, {.handler = "echo"});
  const RunId foreign = submitted(other, {.handler = "echo"});  // the same number, in another store
  for (const RunId& run : {foreign, RunId{}}) {
    EXPECT_CODE(engine.wait(run, 10s), ErrorCode::not_found);
    EXPECT_CODE(engine.result(run), ErrorCode::not_found);
    EXPECT_CODE(engine.info(run), ErrorCode::not_found);
    EXPECT_CODE(engine.events(run), ErrorCode::not_found);
    EXPECT_CODE(engine.cancel(run), ErrorCode::not_found);
    EXPECT_CODE(engine.remove(run), ErrorCode::not_found);
    EXPECT_CODE(engine.signal(run, "x"), ErrorCode::not_found);
  }
}

TEST_P(EngineApi, a_delay_is_waited) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [] {}));
  const RunId later = submitted(engine, {.handler = "echo", .delay = 1h});
  const RunId soon = submitted(engine, {.handler = "echo", .delay = 20ms});
  outcome(engine, soon);
  const std::vector<Event> events = events_of(engine, soon);
  EXPECT_EQ(events[0].due - events[0].time, 20ms);
  EXPECT_GE(events[1].time, events[0].due);
  EXPECT_EQ(engine.result(later)->status, RunStatus::running);
  EXPECT_EQ(engine.result(later)->attempts, 0U);
  EXPECT_CODE(engine.wait(later, 1ms), ErrorCode::timed_out);
}

TEST_P(EngineApi, what_is_urgent_goes_first) {
  EngineSettings with = settings();
  with.threads = 1;
  Gate gate;
  std::vector<std::string> order;
  Engine engine = make(with);
  ASSERT_TRUE(engine.handle("gate", [&] { gate.pass(); }));
  ASSERT_TRUE(engine.handle("note", [&](std::string_view input) { order.emplace_back(input); }));
  submitted(engine, {.handler = "gate"});
  gate.await_arrivals(1);
  const auto runs = engine.submit_all({{.handler = "note", .input = "c", .priority = 0},
                                       {.handler = "note", .input = "b1"},
                                       {.handler = "note", .input = "a", .priority = 9},
                                       {.handler = "note", .input = "b2"}});
  ASSERT_TRUE(runs);
  gate.open();
  for (const RunId& run : *runs) outcome(engine, run);
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b1", "b2", "c"}));
}

TEST_P(EngineApi, a_handler_has_at_most_its_concurrency) {
  Engine engine = make();
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  ASSERT_TRUE(engine.handle("alone",
                            [&] {
                              const int now = ++inside;
                              int seen = most;
                              while (now > seen && !most.compare_exchange_weak(seen, now)) {
                              }
                              std::this_thread::yield();
                              --inside;
                            },
                            {.concurrency = 2}));
  const auto runs = engine.submit_all(std::vector<Task>(100, Task{.handler = "alone"}));
  ASSERT_TRUE(runs);
  for (const RunId& run : *runs) outcome(engine, run);
  EXPECT_LE(most, 2);
}

TEST_P(EngineApi, items_are_worked_on_one_by_one) {
  Engine engine = make();
  std::mutex mutex;
  std::set<std::pair<std::uint32_t, std::string>> seen;
  ASSERT_TRUE(engine.handle("item",
                            [&](Work& work) -> Result {
                              const std::lock_guard lock{mutex};
                              if (work.item() == 1 && !work.is_retry()) return std::unexpected{unavailable};
                              seen.emplace(work.item(), work.input());
                              return std::string{work.input()};
                            },
                            {.retry = steady(2, 1ms)}));
  const RunId run = submitted(engine, {.handler = "item", .items = {"a", "", "c"}});
  EXPECT_EQ(outcome(engine, run).status, RunStatus::succeeded);
  EXPECT_EQ(seen, (std::set<std::pair<std::uint32_t, std::string>>{{0, "a"}, {1, ""}, {2, "c"}}));
}

// ---- flows ----------------------------------------

TEST_P(EngineApi, a_flow_hands_results_from_step_to_step) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("split", [](std::string_view input) {
    std::vector<std::string> letters;
    for (const char letter : input) letters.emplace_back(1, letter);
    return encode_list(letters);
  }));
  ASSERT_TRUE(engine.handle("twice", [](std::string_view input) { return std::string{input} + std::string{input}; }));
  ASSERT_TRUE(engine.handle("join", [](Work& work) -> Result {
    std::string all{work.input()};
    const auto parts = decode_list(work.output_of("each"));
    EXPECT_TRUE(parts);
    for (const std::string& part : *parts) all += "," + part;
    EXPECT_EQ(work.output_of("list"), "");  // it does not need that one
    EXPECT_EQ(work.output_of("nobody"), "");
    return all;
  }));
  ASSERT_TRUE(engine.flow(
      {.name = "letters",
       .steps = {{.name = "list", .handler = "split"},
                 {.name = "each", .handler = "twice", .needs = {"list"}, .for_each = "list", .max_parallel = 2},
                 {.name = "all", .handler = "join", .needs = {"each"}}}}));
  EXPECT_EQ(outcome(engine, submitted(engine, {.flow = "letters", .input = "abc"})).output, "abc,aa,bb,cc");
  EXPECT_EQ(outcome(engine, submitted(engine, {.flow = "letters", .input = ""})).output, "");
}

TEST_P(EngineApi, for_each_needs_a_list) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("text", [] { return "no list"; }));
  ASSERT_TRUE(engine.flow({.name = "f",
                           .steps = {{.name = "a", .handler = "text"},
                                     {.name = "b", .handler = "text", .needs = {"a"}, .for_each = "a"}}}));
  const RunOutcome ended = outcome(engine, submitted(engine, {.flow = "f"}));
  EXPECT_EQ(ended.status, RunStatus::failed);
  EXPECT_EQ(ended.failure.kind, FailureKind::invalid_input);
}

TEST_P(EngineApi, waits_and_signals_in_a_flow) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [](Work& work) { return std::string{work.output_of("approval")}; }));
  ASSERT_TRUE(engine.flow({.name = "approve",
                           .steps = {{.name = "pause", .wait = 5ms},
                                     {.name = "approval", .needs = {"pause"}, .signal = "approved"},
                                     {.name = "end", .handler = "echo", .needs = {"approval"}}}}));
  const RunId early = submitted(engine, {.flow = "approve"});
  ASSERT_TRUE(engine.signal(early, "approved", "by anna"));
  EXPECT_EQ(outcome(engine, early).output, "by anna");
  EXPECT_CODE(engine.signal(early, "approved"), ErrorCode::invalid);
  const RunId late = submitted(engine, {.flow = "approve"});
  EXPECT_CODE(engine.wait(late, 20ms), ErrorCode::timed_out);
  EXPECT_CODE(engine.signal(late, ""), ErrorCode::invalid);
  ASSERT_TRUE(engine.signal(late, "other"));
  ASSERT_TRUE(engine.signal(late, "approved", "by ben"));
  EXPECT_EQ(outcome(engine, late).output, "by ben");
}

TEST_P(EngineApi, large_payloads_arrive_whole) {
  const std::string large(100'000, 'x');
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
  ASSERT_TRUE(engine.handle("list", [&] {
    return encode_list(std::vector<std::string>{large + "1", "", large + "2"});
  }));
  ASSERT_TRUE(engine.handle("sizes", [](Work& work) {
    return std::to_string(work.output_of("s").size()) + " " +
           std::to_string(decode_list(work.output_of("each"))->at(2).size());
  }));
  for (int count = 0; count < 3; ++count) {
    EXPECT_EQ(outcome(engine, submitted(engine, {.handler = "echo", .input = large})).output, large);
  }
  ASSERT_TRUE(engine.flow({.name = "f",
                           .steps = {{.name = "list", .handler = "list"},
                                     {.name = "each", .handler = "echo", .needs = {"list"}, .for_each = "list"},
                                     {.name = "s", .signal = "go"},
                                     {.name = "end", .handler = "sizes", .needs = {"each", "s"}}}}));
  const RunId flow = submitted(engine, {.flow = "f"});
  ASSERT_TRUE(engine.signal(flow, "go", large));
  EXPECT_EQ(outcome(engine, flow).output, "100000 100001");
  const RunId exact = submitted(engine, {.handler = "echo", .input = std::string(4096, 'y')});
  EXPECT_EQ(outcome(engine, exact).output.size(), 4096U);
  const std::vector<Event> events = events_of(engine, exact);
  EXPECT_EQ(events[0].output.size(), 4096U);
  ASSERT_TRUE(engine.stop());
  if (!is_durable()) return;
  EXPECT_EQ(number_from("SELECT count(*) FROM payloads"), 4);  // `large` once, the list, and its two large elements
}

// ---- operating ----------------------------------------

TEST_P(EngineApi, cancel_stops_what_runs_and_what_waits) {
  Engine engine = make();
  std::latch running{1};
  ASSERT_TRUE(engine.handle("long", [&](Work& work) -> Result {
    running.count_down();
    while (!work.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
    return std::unexpected{unavailable};
  }));
  ASSERT_TRUE(
      engine.handle("fails", []() -> Result { return std::unexpected{unavailable}; }, {.retry = steady(9, 1h)}));
  const RunId run = submitted(engine, {.handler = "long"});
  running.wait();
  ASSERT_TRUE(engine.cancel(run, "enough"));
  EXPECT_EQ(outcome(engine, run).status, RunStatus::canceled);
  EXPECT_EQ(outcome(engine, run).reason, StopReason::canceled);
  const RunId waiting = submitted(engine, {.handler = "fails"});
  eventually([&] { return engine.stats().retries == 1; });
  ASSERT_TRUE(engine.cancel(waiting));
  EXPECT_EQ(outcome(engine, waiting).status, RunStatus::canceled);
  EXPECT_CODE(engine.cancel(waiting), ErrorCode::invalid);
  const std::vector<Event> events = events_of(engine, run);
  EXPECT_TRUE(std::ranges::any_of(events, [](const Event& event) { return event.text == "enough"; }));
}

TEST_P(EngineApi, a_cancelled_run_can_be_resumed) {
  Engine engine = make();
  std::atomic<int> calls = 0;
  ASSERT_TRUE(engine.handle("echo", [&] { ++calls; }));
  const RunId run = submitted(engine, {.handler = "echo", .delay = 1h});
  ASSERT_TRUE(engine.cancel(run));
  EXPECT_EQ(outcome(engine, run).status, RunStatus::canceled);
  ASSERT_TRUE(engine.resume(run));
  EXPECT_EQ(engine.info(run)->status, RunStatus::running);
  EXPECT_EQ(engine.info(run)->ended, std::nullopt);
  ASSERT_TRUE(engine.cancel(run));
  EXPECT_EQ(outcome(engine, run).status, RunStatus::canceled);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(engine.stats().open, 0U);
}

TEST_P(EngineApi, a_paused_run_starts_nothing_until_it_is_resumed) {
  Engine engine = make();
  Gate gate;
  ASSERT_TRUE(engine.handle("gate", [&] { gate.pass(); }));
  ASSERT_TRUE(engine.flow(
      {.name = "f", .steps = {{.name = "a", .handler = "gate"}, {.name = "b", .handler = "gate", .needs = {"a"}}}}));
  const RunId run = submitted(engine, {.flow = "f"});
  gate.await_arrivals(1);
  ASSERT_TRUE(engine.pause(run));
  gate.open();
  EXPECT_CODE(engine.wait(run, 20ms), ErrorCode::timed_out);
  EXPECT_EQ(engine.info(run)->status, RunStatus::paused);
  ASSERT_TRUE(engine.resume(run));
  EXPECT_EQ(outcome(engine, run).status, RunStatus::succeeded);
  EXPECT_CODE(engine.pause(run), ErrorCode::invalid);
  EXPECT_CODE(engine.resume(run), ErrorCode::invalid);
}

TEST_P(EngineApi, retry_failed_tries_again_what_failed) {
  Engine engine = make();
  std::atomic<bool> works = false;
  ASSERT_TRUE(engine.handle(
      "moody",
      [&](Work& work) -> Result { return works || work.item() == 1 ? Result{"ok"} : std::unexpected{unavailable}; },
      {.retry = steady(2, 1ms)}));
  const RunId run = submitted(engine, {.handler = "moody", .items = {"a", "b", "c"}});
  EXPECT_EQ(outcome(engine, run).status, RunStatus::failed);
  works = true;
  ASSERT_TRUE(engine.retry_failed(run));
  EXPECT_EQ(outcome(engine, run).status, RunStatus::succeeded);
  EXPECT_CODE(engine.retry_failed(run), ErrorCode::invalid);
}

TEST_P(EngineApi, remove_forgets_what_has_ended) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [] {}));
  const RunId open = submitted(engine, {.handler = "echo", .delay = 1h});
  EXPECT_CODE(engine.remove(open), ErrorCode::invalid);
  const RunId run = submitted(engine, {.handler = "echo", .key = "k"});
  outcome(engine, run);
  ASSERT_TRUE(engine.remove(run));
  EXPECT_CODE(engine.info(run), ErrorCode::not_found);
  EXPECT_CODE(engine.remove(run), ErrorCode::not_found);
  EXPECT_NE(submitted(engine, {.handler = "echo", .key = "k"}), run);
}

// ---- asking ----------------------------------------

TEST_P(EngineApi, find_pages_through_everything_once) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("good", [] {}));
  ASSERT_TRUE(engine.handle("bad", []() -> Result { return std::unexpected{unavailable}; }, {.retry = policy::none}));
  std::vector<RunId> all;
  for (int count = 0; count < 25; ++count) {
    all.push_back(submitted(
        engine, {.handler = count % 5 == 0 ? "bad" : "good", .delay = count % 7 == 0 ? Duration{1h} : Duration{0}}));
    if (count % 7 != 0) outcome(engine, all.back());
  }
  std::ranges::reverse(all);
  for (const std::size_t limit : {1UZ, 4UZ, 25UZ, 100UZ}) {
    std::vector<RunId> found;
    std::string cursor;
    do {
      const auto page = engine.find({.limit = limit}, cursor);
      ASSERT_TRUE(page);
      EXPECT_LE(page->runs.size(), limit);
      for (const RunInfo& info : page->runs) found.push_back(info.id);
      cursor = page->cursor;
    } while (!cursor.empty());
    EXPECT_EQ(found, all) << "by " << limit;
  }
  const auto count = [&](const RunQuery& query) {
    std::size_t found = 0;
    std::string cursor;
    do {
      const auto page = engine.find(query, cursor);
      found += page->runs.size();
      cursor = page->cursor;
    } while (!cursor.empty());
    return found;
  };
  EXPECT_EQ(count({.status = RunStatus::running}), 4U);             // 0, 7, 14, 21
  EXPECT_EQ(count({.status = RunStatus::failed, .limit = 2}), 4U);  // 5, 10, 15, 20
  EXPECT_EQ(count({.name = "bad", .limit = 3}), 5U);
  EXPECT_EQ(count({.name = "nobody"}), 0U);
  for (int more = 0; more < 5; ++more) submitted(engine, {.handler = "good", .delay = 5s});  // these stay in memory
  EXPECT_EQ(count({.status = RunStatus::running, .limit = 2}), 9U);
  EXPECT_EQ(count({.limit = 3}), 30U);
  const WallTime middle = engine.info(all[12])->created;
  EXPECT_EQ(count({.created_from = middle}) + count({.created_before = middle}), 30U);
}

TEST_P(EngineApi, a_subscriber_sees_a_run_from_its_first_event) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [](Work& work) { work.progress("here"); }));
  const RunId run = submitted(engine, {.handler = "echo"});
  outcome(engine, run);
  const std::vector<Event> all = events_of(engine, run);
  Events whole = engine.subscribe({.run = run});
  for (const Event& event : all) EXPECT_EQ(whole.next(10s), event);
  EXPECT_EQ(whole.next(1ms), std::nullopt);
  Events rest = engine.subscribe({.run = run, .after = 2});
  EXPECT_EQ(rest.next(10s), all[2]);
}

TEST_P(EngineApi, who_looks_writes_nothing) {
  Engine engine = make();
  Gate gate;
  ASSERT_TRUE(engine.handle("held", [&] { gate.pass(); }));
  const RunId run = submitted(engine, {.handler = "held"});
  gate.await_arrivals(1);
  const std::uint64_t before = engine.stats().commits;
  Events events = engine.subscribe({.run = run});
  EXPECT_EQ(events.next(10s)->type, EventType::submitted);
  EXPECT_EQ(events.next(10s)->type, EventType::started);
  EXPECT_EQ(names_of(events_of(engine, run)), (std::vector<std::string>{"submitted", "started"}));
  EXPECT_TRUE(engine.info(run));  // the counts are published when the loop has looked at everything before
  EXPECT_EQ(engine.stats().commits, before);
  gate.open();
  outcome(engine, run);
  for (const EventType type : {EventType::completed, EventType::ended}) EXPECT_EQ(events.next(10s)->type, type);
}

TEST_P(EngineApi, a_slow_subscriber_loses_the_oldest_and_is_told_how_many) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [] {}));
  Events events = engine.subscribe({.buffer = 10});
  const auto runs = engine.submit_all(std::vector<Task>(50, Task{.handler = "echo"}));
  ASSERT_TRUE(runs);
  for (const RunId& run : *runs) outcome(engine, run);
  ASSERT_TRUE(engine.stop());
  std::uint64_t read = 0;
  while (events.next(0s)) ++read;
  EXPECT_EQ(read, 10U);
  EXPECT_EQ(events.dropped(), 50U * 4 - 10);
}

TEST_P(EngineApi, a_subscriber_who_comes_in_the_middle_misses_nothing) {
  Engine engine = make();
  std::atomic<bool> enough = false;
  ASSERT_TRUE(engine.handle("busy", [&]() -> Result { return enough ? Result{""} : std::unexpected{unavailable}; },
                            {.retry = steady(1'000'000, 1ms)}));  // or its past would outgrow those who read it
  const RunId run = submitted(engine, {.handler = "busy"});
  std::uint64_t first_missing = 0;
  for (int times = 0; times < 50; ++times) {
    Events events = engine.subscribe({.run = run, .buffer = 1'000'000});
    for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
      const auto event = events.next(10s);
      ASSERT_TRUE(event);
      if (event->sequence != sequence && first_missing == 0) first_missing = sequence;
      if (first_missing != 0) break;
    }
  }
  enough = true;
  outcome(engine, run);
  EXPECT_EQ(first_missing, 0U);
}

TEST_P(EngineApi, a_watcher_of_a_long_run_sees_each_event_once_and_whole) {
  Engine engine = make();
  const Failure wordy{.type = "TimeoutError",
                      .message = std::string(3000, 'x')};  // 60 of them are more than a notice repeats
  ASSERT_TRUE(engine.handle(
      "long", [&](Work& work) -> Result { return work.attempt() > 60 ? Result{""} : std::unexpected{wordy}; },
      {.retry = steady(100, 0s)}));
  Events events = engine.subscribe({});
  const RunId run = submitted(engine, {.handler = "long"});
  outcome(engine, run);
  for (const Event& event : events_of(engine, run)) EXPECT_EQ(events.next(10s), event) << event.sequence;
}

// ---- limits ----------------------------------------

TEST_P(EngineApi, more_open_runs_than_allowed_are_refused) {
  EngineSettings with = settings();
  with.max_open = 2;
  Engine engine = make(with);
  ASSERT_TRUE(engine.handle("echo", [] {}));
  const RunId first = submitted(engine, {.handler = "echo", .delay = 1h});
  submitted(engine, {.handler = "echo", .delay = 1h});
  EXPECT_CODE(engine.submit({.handler = "echo"}), ErrorCode::full);
  ASSERT_TRUE(engine.cancel(first));
  outcome(engine, first);
  EXPECT_TRUE(engine.submit({.handler = "echo"}));
}

TEST_P(EngineApi, try_submit_is_submit_for_those_who_do_not_wait_for_room) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
  const auto run = engine.try_submit({.handler = "echo", .input = "in", .key = "k"});
  ASSERT_TRUE(run);
  EXPECT_EQ(outcome(engine, *run).output, "in");
  EXPECT_EQ(engine.try_submit({.handler = "echo", .key = "k"}), *run);
  EXPECT_EQ(engine.try_submit({.handler = "nobody"}).error().code, ErrorCode::invalid);
  ASSERT_TRUE(engine.stop());
  EXPECT_EQ(engine.try_submit({.handler = "echo"}).error().code, ErrorCode::stopped);
}

TEST_P(EngineApi, with_little_memory_everything_still_runs_once) {
  EngineSettings with = settings();
  with.memory = 64U << 10U;
  Engine engine = make(with);
  std::mutex mutex;
  std::multiset<std::string> seen;
  ASSERT_TRUE(engine.handle("note", [&](std::string_view input) {
    const std::lock_guard lock{mutex};
    seen.emplace(input.substr(0, 8));
  }));
  std::vector<RunId> runs;
  for (int batch = 0; batch < 10; ++batch) {
    std::vector<Task> tasks;
    for (int count = 0; count < 100; ++count) {
      std::string number = std::to_string(batch * 100 + count);
      number.insert(0, 8 - number.size(), '0');
      tasks.push_back(
          {.handler = "note", .input = number + std::string(1000, '.'), .delay = count % 3 == 0 ? 100ms : 0ms});
    }
    const auto accepted = engine.submit_all(std::move(tasks));
    ASSERT_TRUE(accepted);
    runs.insert(runs.end(), accepted->begin(), accepted->end());
  }
  for (const RunId& run : runs) EXPECT_EQ(outcome(engine, run).status, RunStatus::succeeded);
  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 1000U);
  EXPECT_EQ(engine.stats().open, 0U);
}

TEST_P(EngineApi, counts_what_it_does) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("good", [] {}));
  ASSERT_TRUE(engine.handle("bad", []() -> Result { return std::unexpected{unavailable}; }, {.retry = steady(3, 1ms)}));
  const RunId later = submitted(engine, {.handler = "good", .delay = 5s});
  outcome(engine, submitted(engine, {.handler = "good"}));
  outcome(engine, submitted(engine, {.handler = "bad"}));
  eventually([&] { return engine.stats().open == 1; });
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.accepted, 3U);
  EXPECT_EQ(stats.succeeded, 1U);
  EXPECT_EQ(stats.failed, 1U);
  EXPECT_EQ(stats.attempts, 4U);
  EXPECT_EQ(stats.retries, 2U);
  EXPECT_EQ(stats.waiting, 1U);
  EXPECT_EQ(stats.running, 0U);
  EXPECT_EQ(stats.trouble, "");
  EXPECT_GT(stats.commits, 0U);
  ASSERT_TRUE(engine.cancel(later));
  eventually([&] { return engine.stats().canceled == 1 && engine.stats().open == 0; });
}

// ---- stopping ----------------------------------------

TEST_P(EngineApi, stop_lets_what_runs_end) {
  Engine engine = make();
  Gate gate;
  ASSERT_TRUE(engine.handle("gate", [&] { gate.pass(); }));
  const RunId run = submitted(engine, {.handler = "gate"});
  gate.await_arrivals(1);
  std::thread opener{[&] { gate.open(); }};
  EXPECT_TRUE(engine.stop(60s));
  opener.join();
  EXPECT_TRUE(engine.stop());  // twice is once
  EXPECT_CODE(engine.submit({.handler = "gate"}), ErrorCode::stopped);
  EXPECT_CODE(engine.wait(run), ErrorCode::stopped);
  EXPECT_CODE(engine.cancel(run), ErrorCode::stopped);
}

TEST_P(EngineApi, stop_says_when_something_had_to_be_stopped) {
  Engine engine = make();
  std::latch running{1};
  ASSERT_TRUE(engine.handle("long", [&](Work& work) -> Result {
    running.count_down();
    while (!work.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
    return std::unexpected{unavailable};
  }));
  const RunId run = submitted(engine, {.handler = "long"});
  running.wait();
  std::thread waiter{[&] { EXPECT_CODE(engine.wait(run), ErrorCode::stopped); }};
  EXPECT_FALSE(engine.stop(1ms));
  waiter.join();
}

TEST_P(EngineApi, can_be_moved) {
  Engine engine = make();
  ASSERT_TRUE(engine.handle("echo", [] { return "x"; }));
  const RunId run = submitted(engine, {.handler = "echo"});
  Engine moved = std::move(engine);
  EXPECT_EQ(outcome(moved, run).output, "x");
}

// ---- opening again ----------------------------------------

TEST_P(EngineRestart, goes_on_where_it_was) {
  RunId done, failed, waiting, unfinished, delayed;
  WallTime due{};
  {
    Engine engine = make();
    std::latch running{1};
    ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
    ASSERT_TRUE(
        engine.handle("bad", []() -> Result { return std::unexpected{unavailable}; }, {.retry = steady(3, 300ms)}));
    ASSERT_TRUE(engine.handle("long", [&](Work& work) -> Result {
      running.count_down();
      while (!work.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
      return std::unexpected{unavailable};
    }));
    done = submitted(engine, {.handler = "echo", .input = std::string(10'000, 'x'), .key = "k"});
    outcome(engine, done);
    failed = submitted(engine, {.handler = "bad", .retry = policy::none});
    outcome(engine, failed);
    waiting = submitted(engine, {.handler = "bad"});
    eventually([&] { return engine.stats().retries >= 1; });
    delayed = submitted(engine, {.handler = "echo", .delay = 300ms});
    unfinished = submitted(engine, {.handler = "long"});
    running.wait();
    due = events_of(engine, waiting).back().due;
  }
  Engine engine = make();
  EXPECT_EQ(engine.result(done)->output.size(), 10'000U);
  EXPECT_EQ(engine.result(failed)->failure.message, "no answer");
  EXPECT_EQ(engine.result(unfinished)->status, RunStatus::running);  // nobody knows its handler yet
  ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
  ASSERT_TRUE(engine.handle("bad", [] { return "better"; }));
  ASSERT_TRUE(engine.handle("long", [] { return "quick"; }));
  EXPECT_EQ(submitted(engine, {.handler = "echo", .key = "k"}), done);
  EXPECT_EQ(outcome(engine, waiting), (RunOutcome{.status = RunStatus::succeeded, .output = "better", .attempts = 2}));
  EXPECT_EQ(outcome(engine, unfinished).output, "quick");
  EXPECT_EQ(outcome(engine, delayed).status, RunStatus::succeeded);
  const std::vector<Event> events = events_of(engine, waiting);
  EXPECT_EQ(names_of(events),
            (std::vector<std::string>{"submitted", "started", "failed", "retrying", "started", "completed", "ended"}));
  EXPECT_GE(events[4].time, due);
  EXPECT_EQ(engine.stats().open, 0U);
  EXPECT_EQ(engine.find({})->runs.size(), 5U);
}

TEST_P(EngineRestart, flows_and_their_signals_go_on) {
  RunId run, paused;
  {
    Engine engine = make();
    ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
    ASSERT_TRUE(engine.flow({.name = "f",
                             .steps = {{.name = "a", .handler = "echo"},
                                       {.name = "s", .needs = {"a"}, .signal = "go"},
                                       {.name = "b", .handler = "echo", .needs = {"s"}}}}));
    run = submitted(engine, {.flow = "f", .input = "in"});
    eventually([&] { return engine.stats().attempts == 1 && engine.stats().running == 0; });
    ASSERT_TRUE(engine.flow(
        {.name = "held", .steps = {{.name = "s", .signal = "go"}, {.name = "b", .handler = "echo", .needs = {"s"}}}}));
    paused = submitted(engine, {.flow = "held", .input = "p"});
    ASSERT_TRUE(engine.pause(paused));
    ASSERT_TRUE(engine.signal(paused, "go"));
  }
  Engine engine = make();
  std::atomic<int> calls = 0;
  ASSERT_TRUE(engine.handle("echo", [&](std::string_view input) {
    ++calls;
    return std::string{input};
  }));
  EXPECT_EQ(engine.info(paused)->status, RunStatus::paused);
  ASSERT_TRUE(engine.signal(run, "go"));
  EXPECT_EQ(outcome(engine, run).output, "in");
  EXPECT_EQ(calls, 1);  // a is not run again, and the paused one is not started
  ASSERT_TRUE(engine.resume(paused));
  EXPECT_EQ(outcome(engine, paused).output, "p");
}

// Or each would make a plan row for ever.
TEST_P(EngineRestart, tasks_with_deadlines_and_policies_of_their_own_share_one_plan) {
  constexpr int tasks = 200'000;
  RunId late, impatient;
  {
    Engine engine = make();
    ASSERT_TRUE(engine.handle("work", [] {}));
    std::vector<Task> batch;
    for (int task = 0; task < tasks; ++task) {
      batch.push_back({.handler = "work", .delay = 1h, .deadline = 2h + std::chrono::nanoseconds{task}});
      if (task % 2 == 0) batch.back().retry = steady(static_cast<std::uint64_t>(task) + 1, 1ms);
      if (batch.size() < 50'000) continue;
      ASSERT_TRUE(engine.submit_all(std::exchange(batch, {})));
    }
    late = submitted(engine, {.handler = "work", .delay = 100ms, .deadline = 1ms});
    impatient = submitted(engine, {.handler = "work", .delay = 100ms, .retry = steady(2, 1ms)});
  }
  EXPECT_EQ(number_from("SELECT count(*) FROM plans"), 1);
  Engine engine = make();
  std::atomic<int> attempts = 0;
  ASSERT_TRUE(engine.handle("work", [&]() -> Result {
    ++attempts;
    return std::unexpected{unavailable};
  }));
  const RunOutcome canceled = outcome(engine, late);
  EXPECT_EQ(canceled.status, RunStatus::canceled);
  EXPECT_EQ(canceled.reason, StopReason::deadline);
  EXPECT_EQ(outcome(engine, impatient).reason, StopReason::attempts);
  EXPECT_EQ(attempts, 2);
  eventually([&] { return engine.stats().open == std::uint64_t{tasks}; });
  EXPECT_EQ(number_from("SELECT count(*) FROM plans"), 1);
}

// Or each start would read what all starts before have written.
TEST_P(EngineRestart, many_short_lives_leave_a_short_journal) {
  for (int life = 0; life < 20; ++life) {
    Engine engine = make();
    ASSERT_TRUE(engine.handle("nothing", [] {}));
    const auto run = engine.submit({.handler = "nothing"});
    ASSERT_TRUE(run && engine.wait(*run));
  }
  EXPECT_EQ(number_from("SELECT count(*) FROM runs"), 20);
  EXPECT_LT(number_from("SELECT count(*) FROM frames"), 10);
}

TEST_P(EngineRestart, a_second_engine_is_refused) {
  Engine engine = make();
  const auto second = Engine::open(settings());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::store_locked);
  EXPECT_THROW(make(), EngineError);
}

INSTANTIATE_TEST_SUITE_P(Both, EngineApi, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "sqlite" : "memory"; });
INSTANTIATE_TEST_SUITE_P(Durable, EngineRestart, ::testing::Values(true), [](const auto&) { return "sqlite"; });

TEST(EngineOpen, a_store_nobody_knows_is_refused) {
  const testing_support::TemporaryDirectory folder;
  const std::string text = folder.write("text", "this is no database, and it is long enough to be taken for one");
  for (const std::string& store : {std::string{}, std::string{"redis:x"}, std::string{"sqlite:"}, "sqlite:" + text,
                                   "sqlite:" + text + "/runs.db"}) {
    EXPECT_FALSE(Engine::open({.store = store})) << store;
  }
}

}  // namespace
}  // namespace reprise
