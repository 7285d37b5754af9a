// Several executors under one loop: each has room of its own, and hears of its own attempts only. And what each kind of end leads to.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "event/codec.hpp"
#include "runtime/ids.hpp"
#include "runtime/loop.hpp"
#include "store/memory_store.hpp"
#include "support/core_driver.hpp"

namespace reprise::runtime {
namespace {

using namespace std::chrono_literals;
using testing_support::call;
using testing_support::steady;

struct Executor final : exec::Executor {
  void start(std::vector<exec::Job>& begun) override {
    for (exec::Job& job : begun) jobs.push_back(std::move(job));
    begun.clear();
  }
  void cancel(const exec::AttemptId& id) override { cancels.push_back(id); }
  std::size_t capacity(std::uint32_t) override { return room > jobs.size() ? room - jobs.size() : 0; }

  std::size_t room = 2;
  std::deque<exec::Job> jobs;
  std::vector<exec::AttemptId> cancels;
};

struct Accepted final : SubmitReply {
  void done(std::expected<void, Error> answer) override { EXPECT_TRUE(answer); }
};
struct Done final : Reply {
  void done(std::expected<void, Error> answer) override { EXPECT_TRUE(answer); }
};

class RuntimeExecutors : public ::testing::Test {
 protected:
  RuntimeExecutors() {
    EXPECT_TRUE(loop_.recover({}, now_));
    loop_.handle(OpenQueue{"near", {.executor = 0, .handler = 7}, 0}, now_);
    loop_.handle(OpenQueue{"far", {.executor = 1, .handler = 3}, 0}, now_);
  }

  // One turn, and what became of it durable.
  void step() {
    loop_.turn(now_);
    loop_.build(now_);
    while (const auto writing = loop_.begin_write(now_))
      loop_.end_write(write_commit(*store_, *writing->commit, writing->verify), now_);
  }
  RunId submit(const std::string& handler) {
    core::Plan plan = testing_support::flow({call("only", {}, steady(3, 1s))});
    plan.steps.front().handler = handler;
    BookedPlan& booked = plans_.emplace_back();
    booked.number = static_cast<std::uint32_t>(plans_.size() - 1);
    booked.body = core::encode_plan(plan);
    booked.plan = std::make_shared<const core::Plan>(std::move(plan));
    auto reply = std::make_shared<Accepted>();
    reply->runs.emplace_back().plan = &booked;
    loop_.handle(Submit{reply}, now_);
    return reply->runs.front().id;
  }
  exec::Job take_job(Executor& executor) {
    exec::Job job = std::move(executor.jobs.front());
    executor.jobs.pop_front();
    return job;
  }
  void end(const exec::Job& job, exec::End with) { loop_.handle(Ended{{job.id, std::move(with)}, {}}, now_); }
  // The attempt that follows when nothing else happens for so long; 0 = none.
  std::uint32_t next_attempt_after(Duration span) {
    now_ += span.count();
    step();
    return near_.jobs.empty() ? 0 : take_job(near_).attempt;
  }
  std::vector<std::string> events_of(const RunId& run) {
    return testing_support::names_of(*loop_.core().find(number_in(run)));
  }

  Time now_ = testing_support::start_of_time;
  std::unique_ptr<store::Store> store_ = store::make_memory_store(1);
  Executor near_;
  Executor far_;
  std::deque<BookedPlan> plans_;
  Loop loop_{*store_, {&near_, &far_}, {}, 1, now_};
};

TEST_F(RuntimeExecutors, the_work_of_one_takes_no_room_of_another) {
  for (int task = 0; task < 3; ++task) {
    submit("near");
    submit("far");
  }
  step();
  EXPECT_EQ(near_.jobs.size(), 2U);
  EXPECT_EQ(far_.jobs.size(), 2U) << "all in one turn";
  EXPECT_EQ(near_.jobs.front().handler, 7U);
  EXPECT_EQ(far_.jobs.front().handler, 3U);
}

TEST_F(RuntimeExecutors, what_is_promised_to_one_is_not_taken_from_another) {
  submit("near");
  submit("near");
  loop_.turn(now_);
  loop_.build(now_);  // and not written yet
  submit("far");
  submit("far");
  loop_.turn(now_);
  EXPECT_EQ(loop_.stats().running, 4U);
}

TEST_F(RuntimeExecutors, only_the_one_that_has_an_attempt_is_asked_to_stop_it) {
  const RunId run = submit("far");
  step();
  loop_.handle(Operate{Operation::cancel, run, "enough", {}, {}, std::make_shared<Done>()}, now_);
  step();
  EXPECT_TRUE(near_.cancels.empty());
  EXPECT_EQ(far_.cancels, std::vector{far_.jobs.front().id});
}

TEST_F(RuntimeExecutors, room_that_comes_later_is_taken) {
  near_.room = 0;
  submit("near");
  step();
  EXPECT_TRUE(near_.jobs.empty());
  near_.room = 1;
  loop_.handle(RoomChanged{}, now_);
  step();
  EXPECT_EQ(near_.jobs.size(), 1U);
}

// ---- ends ----------------------------------------

TEST_F(RuntimeExecutors, an_attempt_that_is_returned_begins_again_at_once) {
  submit("near");
  step();
  end(take_job(near_), exec::Returned{});
  EXPECT_EQ(next_attempt_after(0s), 2U);
}

TEST_F(RuntimeExecutors, a_lost_attempt_is_made_again) {
  const RunId run = submit("near");
  step();
  end(take_job(near_), exec::Lost{});
  now_ += Duration{1s}.count();
  step();
  ASSERT_FALSE(near_.jobs.empty());
  const std::vector<std::string> events = events_of(run);
  EXPECT_EQ(events[2], "failed");
  EXPECT_EQ(events.back(), "started");
}

TEST_F(RuntimeExecutors, a_suspended_attempt_takes_no_place_and_is_not_lost_by_a_restart) {
  const RunId run = submit("near");
  step();
  const exec::Job job = take_job(near_);
  end(job, exec::Suspended{});
  EXPECT_EQ(loop_.stats().running, 0U);
  step();
  Loop next{*store_, {&near_, &far_}, {}, 2, now_};
  ASSERT_TRUE(next.recover({}, now_));
  next.handle(OpenQueue{"near", {.executor = 0, .handler = 7}, 0}, now_);
  next.turn(now_);
  EXPECT_EQ(testing_support::names_of(*next.core().find(number_in(run))).back(), "handed_over");
  next.handle(Ended{{job.id, exec::Succeeded{.output = Payload::of("done")}}, {}}, now_);
  EXPECT_TRUE(next.core().find(number_in(run))->has_ended()) << "its end comes from outside";
}

}  // namespace
}  // namespace reprise::runtime
