// What the executor of documents owes to those who give it work, whatever the moment.
#include "exec/document/document_executor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <new>
#include <semaphore>
#include <system_error>
#include <vector>

#include <boost/json/object.hpp>

#include "base/sha256.hpp"
#include "support/outcomes.hpp"

namespace reprise::exec {
namespace {

using testing_support::failure_of;
using testing_support::has_succeeded;

class Heard final : public Sink {
 public:
  void ended(Outcome&& outcome) override { outcomes.push_back(std::move(outcome)); }
  void progressed(Progress&&) override {}

  std::vector<Outcome> outcomes;
};

// A commit that was waiting for space may become durable after everything was told to end: its attempts have not begun.
TEST(ExecDocumentExecutor, WhatComesAfterItsEndIsReturnedAndHoldsNothingUp) {
  Heard heard;
  {
    DocumentExecutor executor{{}, heard, [](std::string_view) { return std::string{}; }};
    executor.shut_down();
    std::vector<Job> jobs(2);
    jobs[1].id.item = 1;
    executor.start(jobs);
    executor.prepare({});
    ASSERT_EQ(heard.outcomes.size(), 2U);
    EXPECT_TRUE(std::holds_alternative<Returned>(heard.outcomes[1].end));
    EXPECT_EQ(heard.outcomes[1].id.item, 1U);
  }
  EXPECT_EQ(heard.outcomes.size(), 2U);
}

// ---- what was read already ----

class Awaited final : public Sink {
 public:
  void ended(Outcome&& outcome) override { outcomes.at(outcome.id.step).set_value(std::move(outcome)); }
  void progressed(Progress&&) override {}
  void prepared(Prepared&& found) override { preparation.set_value(std::move(found)); }

  std::vector<std::promise<Outcome>> outcomes{2};
  std::promise<Prepared> preparation;
};

RunInput input_of(std::string document) {
  return {.file = "flow.yaml", .text = std::move(document), .directory = "/", .params = boost::json::object{}};
}

std::shared_ptr<const JobContext> context_with(Payload input) {
  JobContext context;
  context.run_input = std::make_shared<const Payload>(std::move(input));
  return std::make_shared<const JobContext>(std::move(context));
}

std::shared_ptr<const JobContext> context_of(std::string document) {
  return context_with(Payload::of(encode(input_of(std::move(document)))));
}

Job job_of(std::uint32_t step, std::string name, std::shared_ptr<const JobContext> context) {
  Job job;
  job.id.step = step;
  job.step = std::make_shared<const std::string>(std::move(name));
  job.context = std::move(context);
  return job;
}

TEST(ExecDocumentExecutor, AProgramThatWasHandedOnIsNotReadAgain) {
  Awaited sink;
  std::atomic<int> reads = 0;
  DocumentExecutor executor{{}, sink, [&](std::string_view) -> std::string {
                              ++reads;
                              throw std::bad_alloc{};
                            }};
  const auto program = load_program(input_of("steps: [{id: a, run: 'true'}]"));
  ASSERT_TRUE(program) << program.error();
  const std::string input = encode(recorded_input(**program));
  const auto context = context_with({.bytes = base::sha256(input), .size = input.size(), .hashed = true});
  executor.hand_on(input, *program);
  std::vector<Job> jobs;
  jobs.push_back(job_of(0, "a", context));
  executor.start(jobs);
  EXPECT_TRUE(has_succeeded(sink.outcomes[0].get_future().get()));
  EXPECT_EQ(reads, 0);
  jobs.push_back(job_of(1, "a", context));
  jobs.back().run_id.bytes.fill(1);
  executor.start(jobs);
  EXPECT_FALSE(has_succeeded(sink.outcomes[1].get_future().get())) << "it was for one run";
  EXPECT_EQ(reads, 1);
}

// The document of a resumed run is read beside the thread that serves all attempts.
TEST(ExecDocumentExecutor, ADocumentThatTakesLongToReadHoldsUpNoOtherAttempt) {
  Awaited sink;
  std::binary_semaphore is_being_read{0};
  std::binary_semaphore may_be_read{0};
  DocumentSettings settings;
  settings.load_program = [&](const RunInput& input, const ReadFile& read) {
    is_being_read.release();
    may_be_read.acquire();
    return load_program(input, read);
  };
  DocumentExecutor executor{settings, sink, [](std::string_view) { return std::string{}; }};
  std::vector<Job> jobs;
  jobs.push_back(job_of(0, "slow", context_of("steps: [{id: slow, run: 'true'}]")));
  executor.start(jobs);
  is_being_read.acquire();
  const auto program = load_program(input_of("steps: [{id: quick, run: 'true'}]"));
  ASSERT_TRUE(program) << program.error();
  const std::string input = encode(recorded_input(**program));
  executor.hand_on(input, *program);
  jobs.clear();
  jobs.push_back(job_of(1, "quick", context_with(Payload::of(input))));
  jobs.back().run_id.bytes.fill(1);
  executor.start(jobs);
  auto quick = sink.outcomes[1].get_future();
  const bool has_ended = quick.wait_for(std::chrono::seconds{60}) == std::future_status::ready;
  may_be_read.release();
  ASSERT_TRUE(has_ended) << "it waited for the other's document";
  EXPECT_TRUE(has_succeeded(quick.get()));
  EXPECT_TRUE(has_succeeded(sink.outcomes[0].get_future().get()));
}

// ---- what we throw ourselves ----

class NoThreads final : public SubFlows {
 public:
  std::expected<void, Error> hand_over(HandedOver, const RunInput&) override {
    throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again)};
  }
};

TEST(ExecDocumentExecutor, AThreadThatCannotBeMadeFailsItsAttemptAlone) {
  Awaited sink;
  NoThreads sub_flows;
  DocumentSettings settings{.sub_flows = &sub_flows};
  settings.files.read = [](const std::string&, std::size_t) -> FileContent { return "steps: [{id: b, run: 'true'}]"; };
  DocumentExecutor executor{settings, sink, [](std::string_view) { return std::string{}; }};
  const auto context = context_of("steps: [{id: inner, flow: inner.yaml}, {id: plain, run: 'true'}]");
  std::vector<Job> jobs;
  jobs.push_back(job_of(0, "inner", context));
  executor.start(jobs);
  const Outcome failed = sink.outcomes[0].get_future().get();
  ASSERT_TRUE(std::holds_alternative<Failed>(failed.end));
  EXPECT_EQ(failure_of(failed).type, "ResourceError");
  EXPECT_NE(failure_of(failed).message.find("Resource temporarily unavailable"), std::string::npos)
      << failure_of(failed).message;
  EXPECT_EQ(failure_of(failed).failure_class, FailureClass::transient);
  jobs.push_back(job_of(1, "plain", context));
  executor.start(jobs);
  EXPECT_TRUE(has_succeeded(sink.outcomes[1].get_future().get())) << "the executor lives";
}

TEST(ExecDocumentExecutor, MemoryThatIsNotThereFailsWhatNeededIt) {
  Awaited sink;
  DocumentSettings settings;
  settings.files.read = [](const std::string&, std::size_t) -> FileContent { throw std::bad_alloc{}; };
  DocumentExecutor executor{settings, sink, [](std::string_view) -> std::string { throw std::bad_alloc{}; }};
  Preparation preparation;
  preparation.step = std::make_shared<const std::string>("map");
  preparation.context = context_of("steps: [{id: map, for_each: {file: list}, run: 'true'}, {id: b, run: 'true'}]");
  executor.prepare(std::move(preparation));
  const Prepared prepared = sink.preparation.get_future().get();
  ASSERT_NE(prepared.failure, nullptr);
  EXPECT_NE(prepared.failure->message.find("bad_alloc"), std::string::npos) << prepared.failure->message;

  std::vector<Job> jobs;
  jobs.push_back(job_of(0, "b", context_with({.bytes = "a hash", .hashed = true})));
  jobs.back().run_id.bytes.fill(1);
  executor.start(jobs);
  const Outcome failed = sink.outcomes[0].get_future().get();
  ASSERT_TRUE(std::holds_alternative<Failed>(failed.end));
  EXPECT_EQ(failure_of(failed).type, "ResourceError");
}

}  // namespace
}  // namespace reprise::exec
