// Attempts that go on as runs of their own, in the loop itself: what crosses what, what is in one commit, and who is found when it is not
// in memory.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/ids.hpp"
#include "runtime/loop.hpp"
#include "store/store.hpp"
#include "support/core_driver.hpp"
#include "support/forwarding_store.hpp"

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
  std::size_t capacity(std::uint32_t) override { return room; }

  std::size_t room = 100;

  std::deque<exec::Job> jobs;
  std::vector<exec::AttemptId> cancels;
};

// A store in memory that cannot be read for a while.
class MoodyStore final : public testing_support::ForwardingStore {
 public:
  MoodyStore() : ForwardingStore{*store::open_store("memory:")} {}

  store::Result<void> append(const store::Commit& commit) override {
    ++commits;
    return ForwardingStore::append(commit);
  }
  store::Result<std::optional<store::StoredRun>> read_run(std::uint64_t run) override {
    if (is_unreadable) return std::unexpected{Error{ErrorCode::store_unavailable, "not now"}};
    return ForwardingStore::read_run(run);
  }

  bool is_unreadable = false;
  std::uint64_t commits = 0;
};

struct Accepted final : SubmitReply {
  void done(std::expected<void, Error> answer) override { EXPECT_TRUE(answer); }
};
struct Done final : Reply {
  void done(std::expected<void, Error> answer) override { EXPECT_TRUE(answer); }
};

class Children : public ::testing::Test {
 protected:
  Children() { boot({}); }

  void boot(LoopSettings settings) {
    loop_ = std::make_unique<Loop>(store_, Executors{&executor_}, settings, 1, now_);
    EXPECT_TRUE(loop_->recover({}, now_));
    loop_->handle(OpenQueue{"work", {}, 0}, now_);
  }
  void reboot(LoopSettings settings = {}) {
    executor_.jobs.clear();
    boot(settings);
    step();
  }

  // True: something was.
  bool read() {
    bool is_told = false;
    while (const ReadRequest* const request = loop_->begin_read(Reading::look_ups, now_)) {
      loop_->end_read(Reading::look_ups, perform(store_, *request), now_);
      loop_->turn(now_);
      is_told = true;
    }
    return is_told;
  }
  void step() {
    while (loop_->turn(now_) || read()) {
    }
    for (int round = 0; round < 5; ++round) {
      loop_->build(now_);
      read();
      loop_->build(now_);
      while (const auto writing = loop_->begin_write(now_))
        loop_->end_write(write_commit(store_, *writing->commit, writing->verify), now_);
    }
  }

  const BookedPlan* document(const std::string& name) {
    core::Plan plan = testing_support::flow({call("only", {}, steady(2, 1s))});
    plan.name = name;
    plan.is_document = true;
    BookedPlan& booked = plans_.emplace_back();
    booked.number = static_cast<std::uint32_t>(plans_.size() - 1);
    booked.body = core::encode_plan(plan);
    booked.plan = std::make_shared<const core::Plan>(std::move(plan));
    return &booked;
  }

  // A parent whose attempt has begun, in its own commit.
  RunId begin_parent() {
    auto reply = std::make_shared<Accepted>();
    reply->runs.emplace_back().plan = document("parent");
    loop_->handle(Submit{reply}, now_);
    step();
    attempt_ = take_job();
    return reply->runs.front().id;
  }
  event::AttemptId take_job() {
    if (executor_.jobs.empty()) {
      ADD_FAILURE() << "no attempt was started";
      return {};
    }
    const event::AttemptId id = executor_.jobs.front().id;
    executor_.jobs.pop_front();
    return id;
  }
  void hand_over(Duration time_left = {}) {
    HandOver over{attempt_, {}};
    over.child.plan = document("child");
    over.child.key = "the child's";
    over.time_left = time_left;
    if (time_left > Duration{0}) over.overdue = std::make_unique<Failure>(Failure{.type = "TimeoutError"});
    loop_->handle(std::move(over), now_);
  }
  void cancel(const RunId& run) {
    loop_->handle(Operate{Operation::cancel, run, "enough", {}, {}, std::make_shared<Done>()}, now_);
  }
  void end(const event::AttemptId& id, std::string output) {
    loop_->handle(Ended{{id, exec::Succeeded{.output = Payload::of(std::move(output))}}, {}}, now_);
  }
  void fail(const event::AttemptId& id, FailureClass failure_class) {
    loop_->handle(Ended{exec::failed(id, {.message = "no", .failure_class = failure_class}), {}}, now_);
  }

  std::vector<store::StoredRun> stored() { return *store_.find({}, 0, 100); }
  RunStatus stored_status(std::uint64_t number) {
    const auto row = *store_.read_run(number);
    EXPECT_TRUE(row.has_value()) << "run " << number << " has no image";
    return row ? row->status : RunStatus::running;
  }

  Time now_ = testing_support::start_of_time;
  MoodyStore store_;
  Executor executor_;
  std::deque<BookedPlan> plans_;
  std::unique_ptr<Loop> loop_;
  event::AttemptId attempt_;
};

TEST_F(Children, TheChildAndTheHandingOverAreInOneCommitAndSoAreBothEnds) {
  const RunId parent = begin_parent();
  const std::uint64_t before = store_.commits;
  hand_over();
  step();
  EXPECT_EQ(store_.commits, before + 1);
  const core::Run* const child = loop_->core().find(2);
  ASSERT_NE(child, nullptr);
  EXPECT_EQ(child->facts->parent, (core::Parent{parent, 0, 0, attempt_.token}));
  const std::uint64_t then = store_.commits;
  end(take_job(), "done");
  step();
  EXPECT_EQ(store_.commits, then + 1);
  EXPECT_EQ(stored_status(1), RunStatus::succeeded);
  EXPECT_EQ(stored_status(2), RunStatus::succeeded);
}

TEST_F(Children, ACancelThatCrossesTheHandingOverMakesNoChild) {
  const RunId parent = begin_parent();
  cancel(parent);
  hand_over();
  step();
  EXPECT_EQ(stored().size(), 1U);
  EXPECT_EQ(stored_status(1), RunStatus::canceled);
}

TEST_F(Children, ACancelRightBehindTheHandingOverReachesTheChild) {
  const RunId parent = begin_parent();
  executor_.room = 0;
  hand_over();
  read();  // does it have a run already?
  cancel(parent);
  step();
  EXPECT_EQ(stored_status(2), RunStatus::canceled);
  EXPECT_EQ(stored_status(1), RunStatus::canceled);
  EXPECT_TRUE(executor_.jobs.empty());
}

TEST_F(Children, AnAttemptThatIsOverMakesNoChild) {
  begin_parent();
  fail(attempt_, FailureClass::transient);
  hand_over();
  step();
  EXPECT_EQ(loop_->core().find(2), nullptr);
}

TEST_F(Children, ARestartLosesTheChildsAttemptAndNotTheParents) {
  begin_parent();
  hand_over();
  step();
  reboot();
  const core::Run* const parent = loop_->core().find(1);
  ASSERT_NE(parent, nullptr);
  EXPECT_EQ(parent->steps[0].one.status, core::ItemStatus::outside);
  EXPECT_EQ(parent->steps[0].one.attempt, 1U);
  now_ += Duration{1s}.count();
  step();
  end(take_job(), "done");
  step();
  EXPECT_EQ(stored_status(1), RunStatus::succeeded);
}

TEST_F(Children, AParentThatIsNotInMemoryIsFound) {
  loop_.reset();
  boot({.memory = 1});
  begin_parent();
  hand_over();
  step();
  EXPECT_EQ(loop_->core().find(1), nullptr) << "memory is short, and it has nothing to do";
  ASSERT_TRUE(loop_->core().find(2) != nullptr || !executor_.jobs.empty() || loop_->next_wakeup());
  for (int round = 0; round < 5 && executor_.jobs.empty(); ++round) {
    now_ += Duration{1s}.count();
    step();
  }
  end(take_job(), "done");
  step();
  EXPECT_EQ(stored_status(1), RunStatus::succeeded);
}

TEST_F(Children, WhileTheParentCannotBeReadTheEndOfTheChildIsNotRecorded) {
  loop_.reset();
  boot({.memory = 1});
  begin_parent();
  hand_over();
  step();
  for (int round = 0; round < 5 && executor_.jobs.empty(); ++round) {
    now_ += Duration{1s}.count();
    step();
  }
  ASSERT_EQ(loop_->core().find(1), nullptr);
  const std::uint64_t before = store_.commits;
  store_.is_unreadable = true;
  end(take_job(), "done");
  step();
  EXPECT_EQ(store_.commits, before);
  EXPECT_FALSE(loop_->has_news_now()) << "or the driver would go round and round";
  ASSERT_TRUE(loop_->next_wakeup().has_value());
  store_.is_unreadable = false;
  now_ += Duration{1s}.count();
  step();
  EXPECT_EQ(store_.commits, before + 1) << "both ends";
  EXPECT_EQ(stored_status(1), RunStatus::succeeded);
  EXPECT_EQ(stored_status(2), RunStatus::succeeded);
}

TEST_F(Children, AChildThatIsStillBeingStoppedBeginsAgainForTheNextAttempt) {
  begin_parent();
  hand_over(5s);
  step();
  const event::AttemptId childs = take_job();
  now_ += Duration{5s}.count();
  step();
  EXPECT_EQ(executor_.cancels, std::vector{childs}) << "its time is over, and so the child is stopped";
  now_ += Duration{1s}.count();
  step();
  attempt_ = take_job();
  EXPECT_EQ(attempt_.run, 1U);
  hand_over(5s);  // the command of the child has not ended yet
  step();
  fail(childs, FailureClass::canceled);
  step();
  const event::AttemptId again = take_job();
  EXPECT_EQ(again.run, 2U);
  end(again, "done");
  step();
  EXPECT_EQ(stored_status(1), RunStatus::succeeded);
  EXPECT_EQ(stored().size(), 2U) << "the same child";
}

TEST_F(Children, WhatFailedInTheChildIsTriedAgainByTheNextAttempt) {
  begin_parent();
  hand_over();
  step();
  for (int attempt = 1; attempt <= 2; ++attempt) {
    fail(take_job(), FailureClass::transient);
    step();
    now_ += Duration{1s}.count();
    step();
  }
  attempt_ = take_job();
  EXPECT_EQ(attempt_.run, 1U);
  EXPECT_EQ(loop_->core().find(1)->steps[0].one.trouble->failure.message, "the flow failed: no");
  hand_over();
  step();
  end(take_job(), "done");
  step();
  EXPECT_EQ(stored_status(1), RunStatus::succeeded);
  EXPECT_EQ(stored().size(), 2U);
}

// ---- stores from before the parent was a fact of the run ----

TEST(Parentage, of_an_old_sub_flow_is_in_its_key) {
  const auto place = parent_in_key("01a1e508-c644-751e-9aaf-280000000001/load/all/17");
  ASSERT_TRUE(place);
  EXPECT_EQ(to_string(place->run), "01a1e508-c644-751e-9aaf-280000000001");
  EXPECT_EQ(place->step_name, "load/all");
  EXPECT_EQ(place->item, 17U);
  for (const char* key :
       {"", "nightly", "a/b/0", "01a1e508-c644-751e-9aaf-280000000001", "01a1e508-c644-751e-9aaf-280000000001/step",
        "01a1e508-c644-751e-9aaf-280000000001/step/", "01a1e508-c644-751e-9aaf-280000000001/step/1x",
        "01a1e508-c644-751e-9aaf-280000000001/step/99999999999"})
    EXPECT_FALSE(parent_in_key(key)) << key;
}

}  // namespace
}  // namespace reprise::runtime
