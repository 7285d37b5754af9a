// Flows whose files stand on a mount that does not answer: the step that needs one waits or fails, everything else goes on.
#include "host/flow_host.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>

namespace reprise::host {
namespace {

using namespace std::chrono_literals;

constexpr Duration long_enough = 30s;  // a safety net: nothing here takes time

class FlowHostFiles : public testing::Test {
 protected:
  ~FlowHostFiles() override { revive(); }

  // Files in /dead answer once they are told to; all others are empty lists.
  void open(Duration patience) {
    exec::FileReaderSettings files{.patience = patience};
    files.read = [revived = revived_, began = began_](const std::string& path, std::size_t) -> exec::FileContent {
      if (!path.starts_with("/dead")) return "[]";
      if (!began->exchange(true)) began->notify_all();
      revived.wait();
      return "{}";
    };
    auto host = FlowHost::open({.files = std::move(files)});
    ASSERT_TRUE(host.has_value());
    host_ = *std::move(host);
  }
  void revive() {
    if (!std::exchange(is_revived_, true)) promise_.set_value();
  }
  void wait_for_the_read() const { began_->wait(false); }

  RunId start(std::string document) {
    const auto run = host_->submit(
        {.file = "flow.yaml", .text = std::move(document), .directory = "/tmp", .params = {}}, {}, exec::without_files);
    EXPECT_TRUE(run.has_value()) << (run ? "" : run.error().message);
    EXPECT_TRUE(host_->go_on(*run).has_value());
    return *run;
  }
  RunOutcome outcome_of(const RunId& run) {
    const auto outcome = host_->engine().wait(run, long_enough);
    EXPECT_TRUE(outcome.has_value()) << (outcome ? "" : outcome.error().message);
    return outcome.value_or(RunOutcome{});
  }

  std::promise<void> promise_;
  std::shared_future<void> revived_ = promise_.get_future().share();
  std::shared_ptr<std::atomic<bool>> began_ = std::make_shared<std::atomic<bool>>(false);
  bool is_revived_ = false;
  std::unique_ptr<FlowHost> host_;
};

constexpr const char* needs_a_dead_file[] = {
    "steps: [{id: a, for_each: {file: /dead/list}, run: 'true'}]",
    "steps: [{id: a, run: 'echo {}', check: {schema: /dead/schema}}]",
    "steps: [{id: a, flow: /dead/flow.yaml}]",
    "secrets: {s: {file: /dead/secret}}\nsteps: [{id: a, run: 'true'}]",
    "secrets: {s: {file: /dead/secret}}\nsteps: [{id: a, for_each: [1], run: 'true'}]",
};

TEST_F(FlowHostFiles, OtherRunsGoOnMeanwhileAndTheWaitingOneCanBeCanceled) {
  for (const char* const document : needs_a_dead_file) {
    began_->store(false);
    open(1h);
    const RunId waiting = start(document);
    wait_for_the_read();
    const RunId other =
        start("steps: [{id: a, run: 'echo fine'}, {id: b, needs: a, for_each: {file: /alive}, run: 'true'}]");
    EXPECT_EQ(outcome_of(other).status, RunStatus::succeeded) << document;
    EXPECT_TRUE(host_->engine().cancel(waiting).has_value());
    EXPECT_EQ(outcome_of(waiting).status, RunStatus::canceled) << document;
    host_.reset();  // and stopping does not wait for it either
  }
}

TEST_F(FlowHostFiles, StoppingDoesNotWaitForAFile) {
  for (const char* const document : needs_a_dead_file) {
    began_->store(false);
    open(1h);
    start(document);
    wait_for_the_read();
    host_.reset();
  }
}

TEST_F(FlowHostFiles, NoAnswerIsAFailureThatMayPass) {
  for (const char* const document : needs_a_dead_file) {
    open(20ms);
    const RunOutcome outcome = outcome_of(start(std::string{"defaults: {retry: none}\n"} + document));
    EXPECT_EQ(outcome.status, RunStatus::failed) << document;
    EXPECT_EQ(outcome.failure.failure_class, FailureClass::transient) << document;
    EXPECT_TRUE(outcome.failure.message.contains("/dead/") && outcome.failure.message.contains("no answer within 20ms"))
        << outcome.failure.message;
  }
}

}  // namespace
}  // namespace reprise::host
