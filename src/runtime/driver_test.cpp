// The driver: what those are told who do not want to wait for room in the inbox, and that nobody else waits while something is read.
#include "runtime/driver.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <deque>
#include <filesystem>
#include <optional>
#include <thread>

#include "runtime/ids.hpp"
#include "store/memory_ledger.hpp"
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
  EXPECT_EQ(found->found.runs.size(), 2U);
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

// ---- many loops ----------------------------------------

// Begins everything and ends nothing.
class Beginner final : public exec::Executor {
 public:
  std::size_t capacity(std::uint32_t) override { return 100; }
  void start(std::vector<exec::Job>& jobs) override {
    begun += static_cast<int>(jobs.size());
    jobs.clear();
  }
  void cancel(const event::AttemptId&) override {}

  std::atomic<int> begun = 0;
};

struct Asked final : AskReply {
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

// Refuses to write from a moment on, as when the shard is another's by then.
class LosableStore final : public testing_support::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  store::Result<void> append(const store::Commit& commit) override {
    if (is_lost) return std::unexpected{Error{ErrorCode::fenced, "this shard has another owner"}};
    return ForwardingStore::append(commit);
  }
  std::atomic<bool> is_lost = false;
};

// A process with two shards and a loop for each.
class RuntimeDriverShards : public ::testing::Test {
 protected:
  struct Part {
    std::unique_ptr<store::Store> store;
    Beginner executor = {};
    BookedPlan plan = plan_of_one_step();
    std::optional<Loop> loop = {};
  };

  void open(std::unique_ptr<store::Store> first, std::unique_ptr<store::Store> second, store::Ledger* ledger) {
    std::vector<DrivenShard> shards;
    for (auto* const store : {&first, &second}) {
      Part& part = parts_.emplace_back(std::move(*store));
      part.loop.emplace(*part.store, Executors{&part.executor}, LoopSettings{}, 1, 1000);
      ASSERT_TRUE(part.loop->recover({}, 1000));
      part.loop->handle(OpenQueue{"work", {}, 0}, 1000);
      shards.push_back({&*part.loop, part.store.get()});
    }
    driver_.emplace(shards, Clock{system_env(), 1000}, 100'000, ledger);
    driver_->when_dropped([this](std::size_t shard) { dropped_.push_back(shard); });
    driver_->start();
  }
  void TearDown() override {
    if (driver_) driver_->finish();
    driver_.reset();
  }

  std::shared_ptr<Submitted> submit(std::size_t shard, const std::string& key = {}) {
    auto reply = std::make_shared<Submitted>();
    reply->runs.emplace_back().plan = &parts_[shard].plan;
    reply->runs.back().key = key;
    driver_->push(Submit{reply}, shard);
    return reply;
  }
  RunId run_in(std::size_t shard) {
    const auto reply = submit(shard);
    reply->is_done.wait(false);
    EXPECT_TRUE(reply->is_good);
    return reply->runs.front().id;
  }
  std::shared_ptr<Asked> ask(const RunId& run, Question question = Question::now) {
    auto reply = std::make_shared<Asked>();
    driver_->push(Ask{question, run, reply});
    return reply;
  }
  // Many callers at once in both: nobody waits for the other's.
  void work_in_both() {
    std::vector<std::shared_ptr<Submitted>> all;
    for (int round = 0; round < 200; ++round) {
      for (const std::size_t shard : {0U, 1U}) all.push_back(submit(shard, "key " + std::to_string(round % 50)));
    }
    for (const auto& reply : all) reply->is_done.wait(false);
    for (const auto& reply : all) EXPECT_TRUE(reply->is_good);
    for (const auto& shard : {0U, 1U}) {
      const RunId run = run_in(shard);
      EXPECT_EQ(slot_in(parts_[shard].store->secret(), run), shard);
      const auto asked = ask(run);  // it finds its way by the id
      asked->is_done.wait(false);
      EXPECT_TRUE(asked->is_good);
    }
    while (driver_->stats().open < 102) std::this_thread::yield();
    EXPECT_EQ(driver_->stats().accepted, 102U) << "the keys of each shard are its own";
    while (parts_[0].executor.begun < 51 || parts_[1].executor.begun < 51) std::this_thread::yield();
  }
  void lose_the_second(const std::function<void()>& lose) {
    const RunId kept = run_in(0);
    const RunId lost = run_in(1);
    const auto waiting = ask(lost, Question::ended);
    const auto asked = ask(lost);
    asked->is_done.wait(false);  // so the one before has been taken, too
    lose();
    const auto refused = submit(1);
    refused->is_done.wait(false);
    EXPECT_EQ(refused->code, ErrorCode::fenced);
    waiting->is_done.wait(false);
    EXPECT_EQ(waiting->code, ErrorCode::fenced);
    const auto later = submit(1);
    later->is_done.wait(false);
    EXPECT_EQ(later->code, ErrorCode::fenced);
    run_in(0);
    const auto still = ask(kept);
    still->is_done.wait(false);
    EXPECT_TRUE(still->is_good);
    EXPECT_FALSE(driver_->stats().trouble.empty());
    driver_->finish();
    EXPECT_EQ(dropped_, std::vector<std::size_t>{1});
    EXPECT_EQ(driver_->stats().open, 2U) << "of the one that is left";
  }

  std::deque<Part> parts_;
  std::optional<Driver> driver_;
  std::vector<std::size_t> dropped_;
};

TEST_F(RuntimeDriverShards, in_memory_work_side_by_side) {
  store::MemoryLedger ledger{7, {.shards_max = 2}};
  auto first = ledger.claim();
  auto second = ledger.claim();
  ASSERT_TRUE(first && second);
  open(std::move(first->store), std::move(second->store), &ledger);
  work_in_both();
  TearDown();
  parts_.clear();
}

TEST_F(RuntimeDriverShards, in_memory_one_is_fenced_and_the_other_goes_on) {
  store::MemoryLedger ledger{7, {.shards_max = 2}};
  auto first = ledger.claim();
  auto second = ledger.claim();
  ASSERT_TRUE(first && second);
  open(std::move(first->store), std::move(second->store), &ledger);
  lose_the_second([&] { ledger.lapse(1); });
  parts_.clear();
}

// Two files beside each other, both of this process.
class RuntimeDriverFolder : public RuntimeDriverShards {
 protected:
  RuntimeDriverFolder() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    first_ = std::move(ledger_->claim()->store);
    second_ = std::move(ledger_->claim()->store);
  }
  ~RuntimeDriverFolder() override {
    TearDown();
    parts_.clear();
    std::filesystem::remove_all(folder_);
  }

  std::string folder_ = testing::TempDir() + "reprise-driver-" + std::to_string(::getpid());
  std::unique_ptr<store::Ledger> ledger_ = *store::open_ledger("sqlite:" + folder_ + "/store.db");
  std::unique_ptr<store::Store> first_, second_;
};

TEST_F(RuntimeDriverFolder, both_work_and_what_they_have_is_there_afterwards) {
  open(std::move(first_), std::move(second_), ledger_.get());
  work_in_both();
  TearDown();
  parts_.clear();
  for (store::ShardView& shard : ledger_->look()) {
    ASSERT_TRUE(shard.view);
    for (int key = 0; key < 50; ++key) EXPECT_TRUE(*(*shard.view)->run_of_key("key " + std::to_string(key)));
  }
}

TEST_F(RuntimeDriverFolder, one_is_fenced_and_the_other_goes_on) {
  auto losable = std::make_unique<LosableStore>(std::move(second_));
  LosableStore& second = *losable;
  open(std::move(first_), std::move(losable), ledger_.get());
  lose_the_second([&] { second.is_lost = true; });
}

}  // namespace
}  // namespace reprise::runtime
