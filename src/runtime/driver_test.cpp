// The driver: what those are told who do not want to wait for room in the inbox, and that nobody else waits while something is read.
#include "runtime/driver.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "store/memory_store.hpp"
#include "support/core_driver.hpp"
#include "support/forwarding_store.hpp"

namespace reprise::runtime {
namespace {

class NoWork final : public exec::Executor {
 public:
  std::size_t capacity(std::uint32_t) override { return 0; }
  void start(std::vector<exec::Job>&) override {}
  void cancel(const event::AttemptId&) override {}
};

struct Counted final : Reply {
  explicit Counted(std::atomic<int>& to) : count{to} {}
  void done(std::expected<void, Error>) override { ++count; }

  std::atomic<int>& count;
};

TEST(RuntimeDriver, a_full_inbox_is_said_at_once_to_who_does_not_wait) {
  const auto store = store::make_memory_store(1);
  NoWork executor;
  Loop loop{*store, {&executor}, {}, 1, 1000};
  ASSERT_TRUE(loop.recover({}, 1000));
  Driver driver{loop, *store, Clock{system_env(), 1000}, 2};
  std::atomic<int> answered = 0;
  const auto cancel = [&] {
    return Operate{Operation::cancel, RunId{}, "", {}, "", std::make_shared<Counted>(answered)};
  };

  EXPECT_TRUE(driver.try_push(cancel()));
  EXPECT_TRUE(driver.try_push(cancel()));
  const auto full = driver.try_push(cancel());
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::full);
  EXPECT_NE(full.error().message.find("max_inbox"), std::string::npos) << full.error().message;
  driver.push(cancel());  // what workers have to say always has room

  driver.start();  // from now on the inbox is emptied
  while (answered < 3) std::this_thread::yield();
  EXPECT_TRUE(driver.try_push(cancel()));
  driver.finish();
  EXPECT_EQ(answered, 4);
  EXPECT_EQ(driver.try_push(cancel()).error().code, ErrorCode::stopped);
}

// ---- reading ----------------------------------------

// Lists and keys are not answered before they may be.
class SlowStore final : public testing_support::ForwardingStore {
 public:
  SlowStore() : ForwardingStore{store::make_memory_store(1)} {}

  store::Result<std::vector<store::StoredRun>> find(const store::RunFilter& filter, std::uint64_t below,
                                                    std::size_t limit) override {
    is_finding = true;
    is_finding.notify_all();
    may_find.wait(false);
    return ForwardingStore::find(filter, below, limit);
  }
  store::Result<std::optional<std::uint64_t>> run_of_key(std::string_view key) override {
    ++keys;
    may_look_up.wait(false);
    return ForwardingStore::run_of_key(key);
  }

  std::atomic<bool> is_finding = false;
  std::atomic<bool> may_find = false;
  std::atomic<bool> may_look_up = true;
  std::atomic<int> keys = 0;
};

struct Submitted final : SubmitReply {
  void done(std::expected<void, Error> told) override {
    code = told ? ErrorCode{} : told.error().code;
    is_good = told.has_value();
    is_done = true;
    is_done.notify_all();
  }

  std::atomic<bool> is_done = false;
  std::atomic<bool> is_good = false;
  std::atomic<ErrorCode> code{};
};
struct Found final : FindReply {
  void done(std::expected<void, Error> told) override {
    is_good = told.has_value();
    is_done = true;
    is_done.notify_all();
  }

  std::atomic<bool> is_done = false;
  std::atomic<bool> is_good = false;
};

BookedPlan plan_of_one_step() {
  core::Plan plan = testing_support::flow({testing_support::call("only", {}, testing_support::steady(2, Duration{1}))});
  BookedPlan booked;
  booked.body = core::encode_plan(plan);
  booked.plan = std::make_shared<const core::Plan>(std::move(plan));
  return booked;
}

class RuntimeDriverReads : public ::testing::Test {
 protected:
  RuntimeDriverReads() {
    EXPECT_TRUE(loop_.recover({}, 1000));
    driver_.start();
  }
  std::shared_ptr<Submitted> submit(const std::string& key) {
    auto reply = std::make_shared<Submitted>();
    reply->runs.emplace_back().plan = &plan_;
    reply->runs.back().key = key;
    driver_.push(Submit{reply});
    return reply;
  }

  BookedPlan plan_ = plan_of_one_step();
  SlowStore store_;
  NoWork executor_;
  Loop loop_{store_, {&executor_}, {}, 1, 1000};
  Driver driver_{loop_, store_, Clock{system_env(), 1000}, 100};
};

TEST_F(RuntimeDriverReads, while_a_list_is_read_work_is_accepted_and_keys_are_looked_up) {
  const auto found = std::make_shared<Found>();
  driver_.push(Find{found});
  store_.is_finding.wait(false);
  const auto plain = submit("");
  plain->is_done.wait(false);
  const auto keyed = submit("key");
  keyed->is_done.wait(false);
  EXPECT_TRUE(plain->is_good && keyed->is_good);
  EXPECT_FALSE(found->is_done);
  store_.may_find = true;
  store_.may_find.notify_all();
  found->is_done.wait(false);
  ASSERT_TRUE(found->is_good);
  EXPECT_EQ(found->runs.size(), 2U);
}

TEST_F(RuntimeDriverReads, whoever_waits_for_a_key_gets_the_answer_before_the_engine_ends) {
  store_.may_look_up = false;
  const auto first = submit("key");
  while (store_.keys == 0) std::this_thread::yield();
  const auto second = submit("key");
  std::thread finisher{[this] { driver_.finish(); }};
  store_.may_look_up = true;
  store_.may_look_up.notify_all();
  finisher.join();
  EXPECT_TRUE(first->is_done && second->is_done);
  EXPECT_EQ(loop_.stats().accepted, 1U);
}

}  // namespace
}  // namespace reprise::runtime
