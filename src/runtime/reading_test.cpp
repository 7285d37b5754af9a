// Readings of the loop: who waits for them, in which order, and what an answer is worth that is older than what has happened meanwhile.
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
#include "store/memory_store.hpp"
#include "support/core_driver.hpp"

namespace reprise::runtime {
namespace {

using namespace std::chrono_literals;
using testing_support::call;
using testing_support::steady;

struct NoRoom final : exec::Executor {
  void start(std::vector<exec::Job>&) override {}
  void cancel(const exec::AttemptId&) override {}
  std::size_t capacity(std::uint32_t) override { return 0; }
};

template <class Base>
struct Told final : Base {
  void done(std::expected<void, Error> told) override {
    EXPECT_FALSE(answer) << "told twice";
    answer = std::move(told);
  }
  bool is_good() const { return answer && *answer; }
  std::optional<ErrorCode> refusal() const {
    return answer && !*answer ? std::optional{answer->error().code} : std::nullopt;
  }

  std::optional<std::expected<void, Error>> answer;
};
using Submitted = std::shared_ptr<Told<SubmitReply>>;
using Operated = std::shared_ptr<Told<Reply>>;

// Memory is so short that every run leaves it as soon as its submit is recorded.
class RuntimeReading : public ::testing::Test {
 protected:
  RuntimeReading() { boot({}); }

  void boot(LoopSettings settings) {
    settings.memory = 1;
    loop_ = std::make_unique<Loop>(*store_, Executors{&executor_}, settings, 1, now_);
    ASSERT_TRUE(loop_->recover({}, now_));
    loop_->handle(OpenQueue{"work", {}, 0}, now_);
    settle();
  }

  // ---- one thing at a time ----
  const ReadRequest* begin(Reading kind = Reading::look_ups) { return loop_->begin_read(kind, now_); }
  void end(ReadAnswer&& answer, Reading kind = Reading::look_ups) {
    loop_->end_read(kind, std::move(answer), now_);
    loop_->turn(now_);
  }
  ReadAnswer read(const ReadRequest* request) { return perform(*store_, *request); }
  void write() {
    loop_->turn(now_);
    loop_->build(now_);
    while (const auto writing = loop_->begin_write(now_))
      loop_->end_write(write_commit(*store_, *writing->commit, false), now_);
  }
  // Everything that can be read and written.
  void settle() {
    for (int round = 0; round < 8; ++round) {
      write();
      for (const Reading kind : readings) {
        if (const auto* const request = begin(kind)) end(read(request), kind);
      }
    }
  }

  // ---- who asks ----
  const BookedPlan* plan() {
    if (!plans_.empty()) return &plans_.front();
    core::Plan plan = testing_support::flow({call("only", {}, steady(2, 1s))});
    BookedPlan& booked = plans_.emplace_back();
    booked.body = core::encode_plan(plan);
    booked.plan = std::make_shared<const core::Plan>(std::move(plan));
    return &booked;
  }
  Submitted submit(const std::vector<std::string>& keys) {
    auto reply = std::make_shared<Told<SubmitReply>>();
    for (const std::string& key : keys) {
      NewRun& run = reply->runs.emplace_back();
      run.plan = plan();
      run.key = key;
      run.delay = 1h;
    }
    loop_->handle(Submit{reply}, now_);
    return reply;
  }
  // Of a run that is not in memory.
  RunId stored_run(const std::string& key = {}) {
    const Submitted reply = submit({key});
    settle();
    EXPECT_TRUE(reply->is_good());
    const RunId run = reply->runs.front().id;
    EXPECT_EQ(loop_->core().find(number_in(run)), nullptr);
    return run;
  }
  Operated operate(Operation operation, const RunId& run) {
    auto reply = std::make_shared<Told<Reply>>();
    loop_->handle(Operate{operation, run, "why", {}, {}, reply}, now_);
    return reply;
  }
  std::shared_ptr<Told<AskReply>> ask(const RunId& run, Question question = Question::now) {
    auto reply = std::make_shared<Told<AskReply>>();
    loop_->handle(Ask{question, run, reply}, now_);
    return reply;
  }
  std::shared_ptr<Told<FindReply>> find() {
    auto reply = std::make_shared<Told<FindReply>>();
    loop_->handle(Find{reply}, now_);
    return reply;
  }

  Time now_ = testing_support::start_of_time;
  std::unique_ptr<store::Store> store_ = store::make_memory_store(1);
  NoRoom executor_;
  std::deque<BookedPlan> plans_;
  std::unique_ptr<Loop> loop_;
};

TEST_F(RuntimeReading, what_is_in_memory_is_answered_without_it) {
  loop_.reset();
  plans_.clear();
  store_ = store::make_memory_store(1);
  loop_ = std::make_unique<Loop>(*store_, Executors{&executor_}, LoopSettings{.park_after = 24h}, 1, now_);
  ASSERT_TRUE(loop_->recover({}, now_));
  settle();
  const Submitted submitted = submit({""});
  write();
  ASSERT_TRUE(submitted->is_good());
  const auto asked = ask(submitted->runs.front().id);
  EXPECT_EQ(begin(), nullptr);
  write();
  EXPECT_TRUE(asked->is_good());
}

TEST_F(RuntimeReading, the_keys_of_a_batch_and_the_runs_that_others_ask_for_are_one_request) {
  const RunId run = stored_run("old");
  const Submitted submitted = submit({"old", "new", "newer"});
  const auto asked = ask(run);
  const ReadRequest* const request = begin();
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->keys.size(), 3U);
  EXPECT_EQ(request->runs.size(), 1U);
  EXPECT_EQ(begin(), nullptr) << "one at a time";
  EXPECT_TRUE(loop_->waits_for_store());
  end(read(request));
  write();
  ASSERT_TRUE(submitted->is_good());
  EXPECT_TRUE(asked->is_good());
  EXPECT_EQ(submitted->runs[0].id, run);
  EXPECT_NE(submitted->runs[1].id, submitted->runs[2].id);
}

TEST_F(RuntimeReading, a_key_that_is_submitted_twice_while_it_is_looked_up_makes_one_run) {
  const Submitted first = submit({"once"});
  const ReadRequest* const request = begin();
  const Submitted second = submit({"once"});
  end(read(request));
  settle();
  ASSERT_TRUE(first->is_good() && second->is_good());
  EXPECT_EQ(first->runs.front().id, second->runs.front().id);
  EXPECT_EQ(loop_->stats().accepted, 1U);
}

TEST_F(RuntimeReading, a_key_that_nobody_had_when_it_was_read_may_have_a_run_by_now) {
  const Submitted first = submit({"a"});
  ReadAnswer answer = read(begin());
  const Submitted second = submit({"a", "b"});  // waits for "b", too
  end(std::move(answer));
  const ReadRequest* const other = begin();
  ASSERT_NE(other, nullptr);
  write();
  write();  // "a" is durable, and its run has left memory
  end(read(other));
  settle();
  ASSERT_TRUE(first->is_good() && second->is_good());
  EXPECT_EQ(first->runs.front().id, second->runs.front().id);
}

TEST_F(RuntimeReading, inputs_for_one_run_keep_their_order) {
  const RunId run = stored_run();
  const Operated paused = operate(Operation::pause, run);
  const ReadRequest* const request = begin();
  const Operated resumed = operate(Operation::resume, run);
  const auto asked = ask(run);
  EXPECT_FALSE(paused->answer || resumed->answer || asked->answer);
  end(read(request));
  settle();
  EXPECT_TRUE(paused->is_good() && resumed->is_good());
  ASSERT_TRUE(asked->is_good());
  EXPECT_EQ(asked->info.status, RunStatus::running);
}

TEST_F(RuntimeReading, what_was_read_of_a_run_that_has_changed_since_is_read_again) {
  const RunId run = stored_run();
  const Operated canceled = operate(Operation::cancel, run);
  const ReadRequest* const request = begin();
  ReadAnswer first = read(request);
  const RunId other = stored_run();  // recorded while that is on its way
  end(std::move(first));
  const auto waiting = ask(run, Question::ended);  // it is in memory ...
  const auto other_asked = ask(other);
  const ReadRequest* const second = begin();
  ASSERT_NE(second, nullptr);
  write();
  EXPECT_TRUE(canceled->is_good());
  EXPECT_TRUE(waiting->is_good());
  EXPECT_EQ(loop_->core().find(number_in(run)), nullptr) << "... and not any more";
  end(read(second));
  settle();
  EXPECT_TRUE(other_asked->is_good());
}

TEST_F(RuntimeReading, an_end_that_was_recorded_while_its_run_was_read_is_told) {
  const RunId run = stored_run();
  const RunId other = stored_run();
  const Operated canceled = operate(Operation::cancel, run);
  end(read(begin()));  // it is in memory, and its end is decided
  const auto asked = ask(other);
  const ReadRequest* const request = begin();
  ASSERT_NE(request, nullptr);
  ReadAnswer old = read(request);
  old.runs.front() = *store_->read_run(number_in(other));
  write();
  ASSERT_TRUE(canceled->is_good());
  const auto waiting = ask(run, Question::ended);  // not in memory: the next request
  end(std::move(old));
  settle();
  EXPECT_TRUE(asked->is_good());
  EXPECT_TRUE(waiting->is_good());
}

TEST_F(RuntimeReading, a_run_that_is_removed_while_it_is_asked_for_is_not_found) {
  const RunId run = stored_run("its key");
  const Operated canceled = operate(Operation::cancel, run);
  settle();
  ASSERT_TRUE(canceled->is_good());
  const Operated removed = operate(Operation::remove, run);
  end(read(begin()));
  write();  // on its way
  const auto asked = ask(run);
  const Submitted submitted = submit({"its key"});
  settle();
  EXPECT_TRUE(removed->is_good());
  EXPECT_EQ(asked->refusal(), ErrorCode::not_found);
  ASSERT_TRUE(submitted->is_good());
  EXPECT_NE(submitted->runs.front().id, run);
}

TEST_F(RuntimeReading, an_answer_about_a_run_that_is_removed_before_it_comes_is_not_believed) {
  const RunId run = stored_run("its key");
  ASSERT_NE(operate(Operation::cancel, run), nullptr);
  settle();
  const Operated removed = operate(Operation::remove, run);
  end(read(begin()));  // decided, and not written yet
  const Submitted submitted = submit({"a new one", "its key"});
  const ReadRequest* const request = begin();
  ASSERT_NE(request, nullptr);
  ReadAnswer old = read(request);
  write();
  ASSERT_TRUE(removed->is_good());
  end(std::move(old));
  settle();
  ASSERT_TRUE(submitted->is_good());
  EXPECT_NE(submitted->runs[1].id, run) << "that is gone";
}

TEST_F(RuntimeReading, a_list_has_what_left_memory_while_it_was_read) {
  loop_->handle(OpenQueue{"work", {}, 0}, now_);
  const auto asked = find();
  const ReadRequest* const request = begin(Reading::listings);
  ASSERT_NE(request, nullptr);
  ReadAnswer old = read(request);
  const RunId run = stored_run();
  end(std::move(old), Reading::listings);
  settle();
  ASSERT_TRUE(asked->is_good());
  ASSERT_EQ(asked->found.runs.size(), 1U);
  EXPECT_EQ(asked->found.runs.front().id, run);
}

TEST_F(RuntimeReading, retention_spares_what_was_reopened_while_it_looked) {
  loop_.reset();
  boot({.keep_count = 0});
  const RunId run = stored_run();
  const Operated canceled = operate(Operation::cancel, run);
  end(read(begin()));
  write();
  ASSERT_TRUE(canceled->is_good());
  now_ += Duration{2s}.count();
  const ReadRequest* const request = begin(Reading::listings);
  ASSERT_TRUE(request != nullptr && request->expired);
  ReadAnswer old = read(request);
  ASSERT_EQ(**old.expired, std::vector{number_in(run)});
  operate(Operation::resume, run);
  const Operated paused = operate(Operation::pause, run);
  end(read(begin()));
  write();
  ASSERT_TRUE(paused->is_good());
  ASSERT_EQ(loop_->core().find(number_in(run)), nullptr);
  end(std::move(old), Reading::listings);
  settle();
  const auto asked = ask(run);
  settle();
  EXPECT_TRUE(asked->is_good());
}

TEST_F(RuntimeReading, look_ups_do_not_wait_for_a_list) {
  const RunId run = stored_run();
  const auto listed = find();
  ASSERT_NE(begin(Reading::listings), nullptr);
  const auto asked = ask(run);
  end(read(begin()));
  write();
  EXPECT_TRUE(asked->is_good());
  EXPECT_FALSE(listed->answer);
}

TEST_F(RuntimeReading, more_inputs_than_may_wait_are_refused) {
  const RunId run = stored_run();
  loop_.reset();
  boot({.waiting_max = 2});
  const auto first = ask(run);
  const auto second = ask(run);
  const auto third = ask(run);
  EXPECT_EQ(third->refusal(), ErrorCode::full);
  EXPECT_FALSE(first->answer || second->answer);
  settle();
  EXPECT_TRUE(first->is_good() && second->is_good());
}

TEST_F(RuntimeReading, whoever_waits_for_the_store_is_told_that_the_engine_has_stopped) {
  const RunId run = stored_run();
  const auto asked = ask(run);
  const Submitted submitted = submit({"key"});
  const auto listed = find();
  const ReadRequest* const look_ups = begin();
  const ReadRequest* const listings = begin(Reading::listings);
  const auto next = find();
  loop_->abandon_replies({ErrorCode::stopped, "the engine has stopped"});
  for (const auto& refusal : {asked->refusal(), submitted->refusal(), listed->refusal(), next->refusal()})
    EXPECT_EQ(refusal, ErrorCode::stopped);
  end(read(look_ups));  // for nobody
  end(read(listings), Reading::listings);
}

TEST_F(RuntimeReading, whoever_waits_is_told_of_trouble_with_writing) {
  const RunId run = stored_run();
  const Operated paused = operate(Operation::pause, run);
  const auto listed = find();
  const ReadRequest* const request = begin();
  submit({""});
  loop_->turn(now_);
  loop_->build(now_);
  ASSERT_TRUE(loop_->begin_write(now_));
  loop_->end_write(std::unexpected{Error{ErrorCode::store_full, "no space left"}}, now_);
  EXPECT_EQ(paused->refusal(), ErrorCode::store_full);
  EXPECT_EQ(listed->refusal(), ErrorCode::store_full);
  end(read(request));
  EXPECT_EQ(begin(), nullptr) << "not before it can be written again";
}

TEST_F(RuntimeReading, what_cannot_be_read_is_told_and_read_again_for_the_next_one) {
  const RunId run = stored_run();
  const auto asked = ask(run);
  const ReadRequest* request = begin();
  ReadAnswer answer;
  answer.runs.push_back(std::unexpected{Error{ErrorCode::store_unavailable, "not now"}});
  ASSERT_EQ(request->runs.size(), 1U);
  end(std::move(answer));
  write();
  EXPECT_EQ(asked->refusal(), ErrorCode::store_unavailable);
  const auto again = ask(run);
  request = begin();
  ASSERT_NE(request, nullptr);
  end(read(request));
  write();
  EXPECT_TRUE(again->is_good());
}

store::StoredRun row_of(std::uint64_t run) {
  store::StoredRun row;
  row.run = run;
  return row;
}

TEST(RuntimeLookUps, are_forgotten_when_nobody_looks_at_them_any_more) {
  LookUps look_ups;
  EXPECT_EQ(look_ups.row(7), nullptr);
  ReadRequest request;
  look_ups.put_wanted(request);
  EXPECT_EQ(request.runs, std::vector<std::uint64_t>{7});
  ReadAnswer answer;
  answer.runs.push_back(row_of(7));
  look_ups.take(request, answer, false);
  ASSERT_NE(look_ups.row(7), nullptr);
  look_ups.end_round(true);
  EXPECT_EQ(look_ups.size(), 1U);
  look_ups.end_round(true);
  EXPECT_EQ(look_ups.size(), 0U);
}

TEST(RuntimeLookUps, an_answer_about_a_run_that_has_changed_is_asked_for_again) {
  LookUps look_ups;
  EXPECT_EQ(look_ups.row(7), nullptr);
  EXPECT_EQ(look_ups.owner("key"), nullptr);
  ReadRequest request;
  look_ups.put_wanted(request);
  look_ups.changed(7);
  ReadAnswer answer;
  answer.runs.push_back(row_of(7));
  answer.keys.push_back(KeyOwner{.run = 7});
  look_ups.take(request, answer, false);
  EXPECT_EQ(look_ups.row(7), nullptr);
  EXPECT_EQ(look_ups.owner("key"), nullptr);
  ReadRequest again;
  look_ups.put_wanted(again);
  EXPECT_EQ(again.runs, std::vector<std::uint64_t>{7});
  EXPECT_EQ(again.keys, std::vector<std::string>{"key"});
  ReadAnswer second;
  second.runs.push_back(row_of(7));
  second.keys.push_back(KeyOwner{.run = 7});
  look_ups.take(again, second, false);
  EXPECT_NE(look_ups.row(7), nullptr);
  look_ups.changed(7);  // known by now
  EXPECT_EQ(look_ups.row(7), nullptr);
  EXPECT_EQ(look_ups.owner("key"), nullptr);
}

}  // namespace
}  // namespace reprise::runtime
