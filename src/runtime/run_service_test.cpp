// What is asked of runs: each request is recorded with who and why, is answered once, and changes nothing when it comes again.
#include "runtime/run_service.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "env/who.hpp"
#include "runtime/engine_access.hpp"
#include "runtime/ids.hpp"
#include "support/run_program.hpp"

namespace reprise::runtime {
namespace {

using testing_support::TemporaryDirectory;
using namespace std::chrono_literals;

Requester ada(std::string why = {}) { return {new_request_id(1), "ada@host: reprise test", std::move(why)}; }

// ---- the door ----------------------------------------

struct Pending {
  RunRequest request;
  RunAnswered answered;
};

class RuntimeRunService : public ::testing::Test {
 protected:
  RunAnswered note() {
    return [this](std::expected<RunAnswer, Error> answer) { answers_.push_back(std::move(answer)); };
  }

  std::vector<Pending> performed_;
  std::vector<std::expected<RunAnswer, Error>> answers_;
  RunService service_{[this](RunRequest&& request, RunAnswered answered) {
    performed_.push_back({std::move(request), std::move(answered)});
  }};
};

TEST_F(RuntimeRunService, a_request_that_comes_again_gets_the_answer_of_the_first) {
  const RunRequest request{.asked = Asked::signal, .run = RunId{}, .text = "go", .by = ada()};
  service_.ask(request, note());
  service_.ask(request, note());
  ASSERT_EQ(performed_.size(), 1U) << "the second waits for the first";
  EXPECT_TRUE(answers_.empty());
  performed_[0].answered(RunAnswer{RunId{{7}}});
  ASSERT_EQ(answers_.size(), 2U);
  EXPECT_EQ(answers_[1].value().run, RunId{{7}});
  service_.ask(request, note());
  EXPECT_EQ(performed_.size(), 1U);
  EXPECT_EQ(answers_.at(2).value().run, RunId{{7}});
}

TEST_F(RuntimeRunService, what_was_refused_may_be_asked_again) {
  const RunRequest request{.asked = Asked::pause, .run = RunId{}, .by = ada()};
  service_.ask(request, note());
  performed_[0].answered(std::unexpected{Error{ErrorCode::invalid, "not now"}});
  service_.ask(request, note());
  EXPECT_EQ(performed_.size(), 2U);
}

TEST_F(RuntimeRunService, what_may_have_happened_is_not_done_again) {
  const RunRequest request{.asked = Asked::pause, .run = RunId{}, .by = ada()};
  service_.ask(request, note());
  performed_[0].answered(std::unexpected{Error{ErrorCode::store_full, "no room"}});
  service_.ask(request, note());
  EXPECT_EQ(performed_.size(), 1U);
  EXPECT_EQ(answers_.at(1).error().code, ErrorCode::store_full);
}

TEST_F(RuntimeRunService, an_id_belongs_to_one_request) {
  const RunRequest request{.asked = Asked::pause, .run = RunId{}, .by = ada()};
  service_.ask(request, note());
  RunRequest other = request;
  other.asked = Asked::cancel;
  service_.ask(other, note());
  ASSERT_EQ(answers_.size(), 1U);
  EXPECT_EQ(answers_[0].error().code, ErrorCode::invalid);
  EXPECT_EQ(performed_.size(), 1U);
}

TEST_F(RuntimeRunService, what_is_remembered_is_bounded) {
  const RunRequest first{.asked = Asked::pause, .run = RunId{}, .by = ada()};
  service_.ask(first, note());
  performed_[0].answered(RunAnswer{});
  for (std::size_t count = 0; count < RunService::remembered_max; ++count) {
    service_.ask({.asked = Asked::pause, .run = RunId{}, .by = ada()}, note());
    performed_.back().answered(RunAnswer{});
  }
  const std::size_t before = performed_.size();
  service_.ask(first, note());
  EXPECT_EQ(performed_.size(), before + 1) << "the oldest is forgotten";
}

// ---- over the socket ----------------------------------------

TEST(RuntimeRunRequest, what_is_written_to_the_socket_is_read_back) {
  const RunId run{{1, 2, 3}};
  for (const RunRequest& request : std::initializer_list<RunRequest>{
           {.asked = Asked::ping},
           {.asked = Asked::ping, .run = run},
           {.asked = Asked::cancel, .run = run, .by = ada("wrong day")},
           {.asked = Asked::pause, .run = run, .by = ada("maintenance")},
           {.asked = Asked::retry, .run = run, .choice = {.steps = {{"fetch", {{7, 7}}}}}, .by = ada()},
           {.asked = Asked::drop, .run = run, .choice = {.steps = {{"fetch", {{1, 1}, {20, 30}}}, {"load", {}}}, .only = true}, .by = ada()},
           {.asked = Asked::signal, .run = run, .text = "go", .payload = "{}", .by = ada()}}) {
    const auto read = run_request_in(control_request_of(request));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->asked, request.asked);
    EXPECT_EQ(read->run, request.run);
    EXPECT_EQ(read->text, request.text);
    EXPECT_EQ(read->payload, request.payload);
    EXPECT_EQ(read->choice, request.choice);
    EXPECT_EQ(read->by.id, request.by.id);
    EXPECT_EQ(read->by.by, request.by.by);
    EXPECT_EQ(read->by.why, request.by.why);
  }
}

TEST(RuntimeRunRequest, a_task_is_read_back) {
  const Task task{.handler = "charge",
                  .input = "order 17",
                  .key = "order-17",
                  .delay = 2s,
                  .priority = 7,
                  .deadline = 1h,
                  .labels = {{"a", "1"}, {"b", "2"}},
                  .queue = "slow",
                  .tenant = "acme",
                  .traceparent = "00-…",
                  .max_cost = Cost{5, 6}};
  const auto read = run_request_in(control_request_of({.asked = Asked::submit, .task = task}));
  ASSERT_TRUE(read && read->task);
  EXPECT_EQ(read->task->handler, task.handler);
  EXPECT_EQ(read->task->input, task.input);
  EXPECT_EQ(read->task->key, task.key);
  EXPECT_EQ(read->task->delay, task.delay);
  EXPECT_EQ(read->task->priority, task.priority);
  EXPECT_EQ(read->task->deadline, task.deadline);
  EXPECT_EQ(read->task->labels, task.labels);
  EXPECT_EQ(read->task->queue, task.queue);
  EXPECT_EQ(read->task->tenant, task.tenant);
  EXPECT_EQ(read->task->traceparent, task.traceparent);
  EXPECT_EQ(read->task->max_cost, task.max_cost);
}

// Versions before requests had ids: a cancel's reason is its text, and nobody is named.
TEST(RuntimeRunRequest, what_older_versions_ask_is_understood) {
  const auto cancel = run_request_in({.operation = "cancel", .run = to_string(RunId{}), .text = "wrong day"});
  ASSERT_TRUE(cancel);
  EXPECT_EQ(cancel->by.why, "wrong day");
  EXPECT_EQ(cancel->by.id, RunId{});
  EXPECT_EQ(control_request_of({.asked = Asked::cancel, .run = RunId{}, .by = ada("wrong day")}).text, "wrong day");
}

TEST(RuntimeRunRequest, what_makes_no_sense_is_refused) {
  const std::string run = to_string(RunId{});
  for (const ControlRequest& request :
       std::initializer_list<ControlRequest>{{.operation = "fly", .run = run},
                                             {.operation = "cancel"},
                                             {.operation = "cancel", .run = "0191"},
                                             {.operation = "retry", .run = run, .text = "a", .payload = "-1"},
                                             {.operation = "pause", .run = run, .request = "no uuid"},
                                             {.operation = "submit"}}) {
    const auto read = run_request_in(request);
    ASSERT_FALSE(read) << request.operation;
    EXPECT_EQ(read.error().code, ErrorCode::invalid);
  }
}

// ---- an engine ----------------------------------------

class RuntimeRunServiceEngine : public ::testing::Test {
 protected:
  void open() {
    ASSERT_TRUE(engine_.handle("wait", [](Work& work) -> std::expected<std::string, Failure> {
      while (!work.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
      return std::unexpected{Failure{.message = "stopped"}};
    }));
    ASSERT_TRUE(engine_.handle("fail", [](Work&) -> std::expected<std::string, Failure> {
      return std::unexpected{Failure{.message = "no", .permanent = true}};
    }));
    ASSERT_TRUE(engine_.flow({.name = "signal", .steps = {{.name = "go", .signal = "go"}}}));
  }

  std::expected<RunAnswer, Error> ask(RunRequest request) { return EngineAccess::perform(engine_, std::move(request)); }
  std::vector<Event> of_type(const RunId& run, EventType type) {
    std::vector<Event> events = engine_.events(run).value();
    std::erase_if(events, [&](const Event& event) { return event.type != type; });
    return events;
  }

  TemporaryDirectory folder_;
  std::string path_ = folder_.path() + "/runs.db";
  Engine engine_{{.store = "sqlite:" + path_, .threads = 2, .name = "the program"}};
};

TEST_F(RuntimeRunServiceEngine, events_have_who_asked_and_why) {
  open();
  const RunId run = engine_.submit({.handler = "wait"}).value();
  const Requester by = ada("maintenance");
  ASSERT_TRUE(ask({.asked = Asked::pause, .run = run, .by = by}));
  ASSERT_TRUE(engine_.resume(run, "done"));
  ASSERT_TRUE(engine_.cancel(run, "wrong day"));
  const ChangeRequest paused = of_type(run, EventType::paused).at(0).request.value();
  EXPECT_EQ(paused, (ChangeRequest{to_string(by.id), by.by, "maintenance"}));
  const ChangeRequest resumed = of_type(run, EventType::resumed).at(0).request.value();
  EXPECT_EQ(resumed.by, "the program");
  EXPECT_EQ(resumed.why, "done");
  const Event canceled = of_type(run, EventType::cancel_requested).at(0);
  EXPECT_EQ(canceled.text, "wrong day");
  EXPECT_EQ(canceled.request.value().why, "wrong day");
  EXPECT_EQ(canceled.request->by, "the program");
  EXPECT_NE(canceled.request->id, resumed.id);
  EXPECT_NE(to_json(canceled).find(R"("why":"wrong day","stop_reason":"canceled","by":"the program","request":")"),
            std::string::npos)
      << to_json(canceled);
}

TEST_F(RuntimeRunServiceEngine, retries_and_signals_have_it_too) {
  open();
  const RunId failed = engine_.submit({.handler = "fail"}).value();
  ASSERT_TRUE(engine_.wait(failed, 60s));
  ASSERT_TRUE(engine_.retry_failed(failed, "the bank is back"));
  EXPECT_EQ(of_type(failed, EventType::reopened).at(0).request.value().why, "the bank is back");
  const RunId waiting = engine_.submit({.flow = "signal"}).value();
  ASSERT_TRUE(engine_.signal(waiting, "go", std::string(10'000, 'x')));
  const Event signaled = of_type(waiting, EventType::signaled).at(0);
  EXPECT_EQ(signaled.request.value().by, "the program");
  EXPECT_EQ(signaled.output_size, 10'000U);
}

TEST_F(RuntimeRunServiceEngine, a_signal_with_the_same_id_comes_once) {
  open();
  const RunId run = engine_.submit({.handler = "wait"}).value();
  const RunRequest request{.asked = Asked::signal, .run = run, .text = "go", .payload = "1", .by = ada()};
  for (int count = 0; count < 3; ++count) ASSERT_TRUE(ask(request));
  EXPECT_EQ(of_type(run, EventType::signaled).size(), 1U);
}

TEST_F(RuntimeRunServiceEngine, work_is_submitted_and_the_same_request_submits_it_once) {
  open();
  const RunRequest request{
      .asked = Asked::submit, .by = ada(), .task = Task{.handler = "wait", .labels = {{"team", "a"}}}};
  const auto first = ask(request);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(ask(request).value(), *first);
  EXPECT_EQ(engine_.info(first->run)->attributes.labels, (Labels{{"team", "a"}}));
  const auto unknown = ask({.asked = Asked::submit, .by = ada(), .task = Task{.handler = "wiat"}});
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid);
  EXPECT_NE(unknown.error().message.find("did you mean \"wait\""), std::string::npos);
}

TEST_F(RuntimeRunServiceEngine, a_program_takes_work_from_other_processes_through_its_socket) {
  open();
  const auto answer = ask_owner(
      path_, control_request_of(
                 {.asked = Asked::submit, .by = ada(), .task = Task{.handler = "wait", .key = "k", .tenant = "acme"}}));
  ASSERT_TRUE(answer && *answer) << (answer ? answer->error().message : "nobody listens");
  const auto run = run_id_from((*answer)->run);
  ASSERT_TRUE(run);
  EXPECT_EQ(engine_.info(*run)->key, "k");
  EXPECT_EQ(engine_.info(*run)->attributes.tenant, "acme");
  ASSERT_TRUE(ask_owner(path_, control_request_of({.asked = Asked::cancel, .run = *run, .by = ada("enough")})).value());
  EXPECT_EQ(of_type(*run, EventType::cancel_requested).at(0).request.value().by, "ada@host: reprise test");
  const auto refused = ask_owner(path_, control_request_of({.asked = Asked::pause, .run = *run, .by = ada()}));
  EXPECT_EQ(refused.value().error().code, ErrorCode::invalid);
}

TEST_F(RuntimeRunServiceEngine, answers_come_without_waiting_and_once_the_engine_has_stopped) {
  open();
  const RunId run = engine_.submit({.handler = "wait"}).value();
  std::atomic<int> answers = 0;
  constexpr int asked = 50;
  for (int count = 0; count < asked; ++count) {
    EngineAccess::perform(engine_, {.asked = Asked::signal, .run = run, .text = "s", .by = ada()},
                          [&](const std::expected<RunAnswer, Error>&) { ++answers; });
  }
  engine_.stop(0s);
  EXPECT_EQ(answers, asked) << "each is answered before the engine has stopped";
  EngineAccess::perform(engine_, {.asked = Asked::pause, .run = run, .by = ada()},
                        [&](const std::expected<RunAnswer, Error>& answer) {
                          EXPECT_EQ(answer.error().code, ErrorCode::stopped);
                          ++answers;
                        });
  EXPECT_EQ(answers, asked + 1);
}

TEST(RuntimeRunServiceAsker, without_a_name_of_its_own_a_program_is_called_as_its_file) {
  Engine engine{EngineSettings{}};
  ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
  const RunId run = engine.submit({.handler = "echo", .delay = 24h}).value();
  ASSERT_TRUE(engine.pause(run));
  EXPECT_EQ(engine.events(run)->back().request.value().by, program_name());
}

}  // namespace
}  // namespace reprise::runtime
