// Durable functions in the loop: what they are told, and that what they decide at once is recorded with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "event/codec.hpp"
#include "runtime/ids.hpp"
#include "runtime/loop.hpp"
#include "runtime/plan_book.hpp"
#include "store/memory_store.hpp"
#include "support/core_driver.hpp"

namespace reprise::runtime {
namespace {

using namespace std::chrono_literals;
using event::OperationKind;

struct Handlers final : exec::Executor {
  void start(std::vector<exec::Job>& begun) override {
    for (exec::Job& job : begun) jobs.push_back(std::move(job));
    begun.clear();
  }
  void cancel(const exec::AttemptId&) override {}
  std::size_t capacity(std::uint32_t) override { return 100; }

  std::deque<exec::Job> jobs;
};

// A function whose code the test is.
struct Functions final : exec::Executor {
  void start(std::vector<exec::Job>& begun) override { EXPECT_TRUE(begun.empty()) << "functions get no jobs"; }
  void cancel(const exec::AttemptId&) override {}
  std::size_t capacity(std::uint32_t) override { return 100; }
  bool decides(std::uint32_t) override { return true; }
  void decide(std::vector<exec::News>& news, std::vector<exec::Decided>& decided) override {
    for (exec::News& one : news) {
      exec::Decided answer{.id = one.id};
      if (later) {
        told.push_back(std::move(one));
        continue;
      }
      code(one, answer);
      told.push_back(std::move(one));
      decided.push_back(std::move(answer));
    }
  }
  void forget(const exec::AttemptId&) override { ++forgotten; }

  std::function<void(const exec::News&, exec::Decided&)> code;
  std::vector<exec::News> told;
  bool later = false;
  int forgotten = 0;
};

struct Accepted final : SubmitReply {
  void done(std::expected<void, Error> answer) override { EXPECT_TRUE(answer); }
};
struct Done final : Reply {
  void done(std::expected<void, Error> answer) override { EXPECT_TRUE(answer); }
};

exec::Command calls(std::string path, std::string name, OperationKind kind = OperationKind::call) {
  return {.kind = kind, .path = std::move(path), .name = std::move(name), .place = "here.cpp:1", .payload = event::Payload::of("input")};
}

// Calls "work" as often as it is told, one after the other, and returns.
void call_in_turn(const exec::News& news, exec::Decided& decided, std::size_t times) {
  const auto has_ended = [](const exec::RecordedOperation& told) { return told.end != exec::RecordedOperation::End::open; };
  const auto begun = static_cast<std::size_t>(news.operations.empty() ? 0 : std::stoul(news.operations.back().path) + 1);
  if (!std::ranges::all_of(news.operations, has_ended)) return;
  if (begun == times) {
    decided.end = exec::Succeeded{event::Payload::of("done"), {}};
  } else {
    decided.commands.push_back(calls(std::to_string(begun), "work"));
  }
}

class RuntimeFunctions : public ::testing::Test {
 protected:
  RuntimeFunctions() {
    functions_.code = [](const exec::News& news, exec::Decided& decided) { call_in_turn(news, decided, 3); };
    EXPECT_TRUE(book_.add_handler("work", {}));
    queue_ = *book_.add_function("checkout", 1);
    open();
  }

  void open(Duration park_after = 10s) {
    loop_ = std::make_unique<Loop>(*store_, Executors{&handlers_},
                                   LoopSettings{.park_after = park_after,
                                                .plan_of_command = [this](const exec::Command& command) {
                                                  return book_.plan_of_command(command);
                                                }},
                                   1, now_);
    EXPECT_TRUE(loop_->recover({}, now_));
    loop_->handle(OpenQueue{"work", {.executor = 0}, 0}, now_);
    loop_->handle(AddExecutor{&functions_}, now_);
    loop_->handle(OpenQueue{queue_, {.executor = 1}, 0}, now_);
  }

  // One turn, and what became of it durable. How many commits that took.
  int step() {
    int commits = 0;
    loop_->turn(now_);
    while (const ReadRequest* const request = loop_->begin_read(Reading::look_ups, now_)) {
      loop_->end_read(Reading::look_ups, perform(*store_, *request), now_);
      loop_->turn(now_);
    }
    loop_->build(now_);
    while (const auto writing = loop_->begin_write(now_)) {
      loop_->end_write(write_commit(*store_, *writing->commit, writing->verify), now_);
      ++commits;
    }
    return commits;
  }
  RunId submit() {
    auto reply = std::make_shared<Accepted>();
    reply->runs.emplace_back().plan = book_.plan_for({.handler = "checkout"})->plan;
    loop_->handle(Submit{reply}, now_);
    return reply->runs.front().id;
  }
  void end_job(std::string output) {
    ASSERT_FALSE(handlers_.jobs.empty());
    const exec::Job job = std::move(handlers_.jobs.front());
    handlers_.jobs.pop_front();
    loop_->handle(Ended{{job.id, exec::Succeeded{event::Payload::of(std::move(output)), {}}}, {}}, now_);
  }
  core::Run& run_of(const RunId& id) { return *loop_->core().find(number_in(id)); }

  Time now_ = testing_support::start_of_time;
  std::unique_ptr<store::Store> store_ = store::make_memory_store(1);
  Handlers handlers_;
  Functions functions_;
  PlanBook book_{{}, {}};
  std::string queue_;
  std::unique_ptr<Loop> loop_;
};

TEST_F(RuntimeFunctions, an_end_and_what_follows_from_it_share_a_commit) {
  const RunId run = submit();
  EXPECT_EQ(step(), 1) << "submitted, the function's start, its first call, and the start of that";
  for (int call = 0; call < 2; ++call) {
    ASSERT_EQ(handlers_.jobs.size(), 1U);
    EXPECT_EQ(handlers_.jobs.front().input.bytes, "input");
    EXPECT_EQ(handlers_.jobs.front().context->operation, std::to_string(call));
    end_job("output");
    EXPECT_EQ(step(), 1);
  }
  end_job("last");
  loop_->turn(now_);
  EXPECT_EQ(core::outcome_of(run_of(run)).status, RunStatus::succeeded);
  EXPECT_EQ(core::outcome_of(run_of(run)).output, "done");
}

TEST_F(RuntimeFunctions, a_result_is_told_once) {
  submit();
  step();
  end_job("first");
  step();
  end_job("second");
  step();
  ASSERT_EQ(functions_.told.size(), 3U);
  EXPECT_TRUE(functions_.told[0].begins);
  EXPECT_FALSE(functions_.told[2].begins);
  ASSERT_EQ(functions_.told[2].operations.size(), 1U);
  EXPECT_EQ(functions_.told[2].operations[0].output.bytes, "second");
}

TEST_F(RuntimeFunctions, after_a_restart_it_is_told_everything_and_nothing_is_lost) {
  const RunId run = submit();
  step();
  end_job("first");
  step();
  handlers_.jobs.clear();
  functions_.told.clear();
  open();
  step();
  ASSERT_FALSE(functions_.told.empty());
  EXPECT_TRUE(functions_.told[0].begins);
  const auto& operations = functions_.told[0].operations;
  ASSERT_EQ(operations.size(), 2U);
  EXPECT_EQ(operations[0].place, "here.cpp:1");
  EXPECT_EQ(std::ranges::count(operations, "first", [](const auto& told) { return told.output.bytes; }), 1);
  EXPECT_EQ(run_of(run).steps[0].touched(0)->attempt, 1U) << "it has suspended itself, and is no loss";
  EXPECT_EQ(loop_->stats().running, 1U) << "its call is made again; itself takes no place";
}

TEST_F(RuntimeFunctions, one_that_needs_longer_answers_later) {
  functions_.later = true;
  const RunId run = submit();
  step();
  EXPECT_EQ(run_of(run).steps[0].touched(0)->status, core::ItemStatus::running);
  loop_->handle(exec::Decided{.id = functions_.told[0].id, .commands = {calls("0", "work")}}, now_);
  step();
  EXPECT_EQ(handlers_.jobs.size(), 1U);
  EXPECT_EQ(run_of(run).steps[0].touched(0)->status, core::ItemStatus::outside);
}

TEST_F(RuntimeFunctions, what_it_does_not_have_any_more_it_is_told_again) {
  submit();
  step();
  functions_.code = [&](const exec::News& news, exec::Decided& decided) {
    decided.is_unknown = !news.begins;
    if (news.begins) call_in_turn(news, decided, 1);
  };
  end_job("only");
  step();
  EXPECT_EQ(loop_->stats().succeeded, 1U);
}

TEST_F(RuntimeFunctions, an_unknown_handler_holds_the_run_until_it_is_there) {
  functions_.code = [](const exec::News& news, exec::Decided& decided) {
    if (news.operations.empty()) decided.commands.push_back(calls("0", "wrok"));
  };
  open(Duration::max());  // it stays in memory, to be looked at
  const RunId run = submit();
  step();
  EXPECT_EQ(run_of(run).status, RunStatus::paused);
  EXPECT_EQ(run_of(run).function->divergence, "here.cpp:1: there is no handler named \"wrok\"; did you mean \"work\"?");
  EXPECT_EQ(functions_.forgotten, 1);
  ASSERT_TRUE(book_.add_handler("wrok", {}));
  loop_->handle(OpenQueue{"wrok", {.executor = 0}, 0}, now_);
  loop_->handle(Operate{Operation::resume, run, {}, {}, {}, std::make_shared<Done>()}, now_);
  step();
  EXPECT_EQ(handlers_.jobs.size(), 1U);
}

TEST_F(RuntimeFunctions, one_that_nobody_knows_yet_stays_until_its_queue_is_open) {
  functions_.code = [&](const exec::News& news, exec::Decided& decided) {
    if (news.operations.empty()) {
      exec::Command sleep = calls("0", "", OperationKind::sleep);
      sleep.due = now_ + Duration{1s}.count();
      decided.commands.push_back(std::move(sleep));
    } else if (news.operations[0].end == exec::RecordedOperation::End::succeeded) {
      decided.end = exec::Succeeded{};
    }
  };
  submit();
  step();
  now_ += Duration{2s}.count();  // the sleep is over before anybody has come back
  loop_ = std::make_unique<Loop>(*store_, Executors{&handlers_}, LoopSettings{}, 1, now_);
  EXPECT_TRUE(loop_->recover({}, now_));
  while (step() > 0) {
  }
  EXPECT_EQ(loop_->stats().resident, 1U);
  loop_->handle(AddExecutor{&functions_}, now_);
  loop_->handle(OpenQueue{queue_, {.executor = 1}, 0}, now_);
  while (step() > 0) {
  }
  EXPECT_EQ(loop_->stats().succeeded, 1U);
}

TEST_F(RuntimeFunctions, one_that_sleeps_leaves_memory_and_comes_back_in_time) {
  functions_.code = [&](const exec::News& news, exec::Decided& decided) {
    if (news.operations.empty()) {
      exec::Command sleep = calls("0", "", OperationKind::sleep);
      sleep.due = now_ + Duration{1h}.count();
      decided.commands.push_back(std::move(sleep));
    } else if (news.operations[0].end == exec::RecordedOperation::End::succeeded) {
      decided.end = exec::Succeeded{};
    }
  };
  functions_.told.clear();
  submit();
  step();
  EXPECT_EQ(loop_->stats().resident, 0U);
  EXPECT_EQ(functions_.forgotten, 1) << "its executor lets it go, too";
  now_ += Duration{1h}.count();
  while (step() > 0) {
  }
  EXPECT_EQ(loop_->stats().succeeded, 1U);
}

}  // namespace
}  // namespace reprise::runtime
