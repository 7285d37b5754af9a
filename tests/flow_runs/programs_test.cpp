// Runs of a C++ program, seen and steered from another process while the program lives, and when it does not.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stdexcept>

#include <reprise/engine.hpp>

#include "flow_runs/flow_run.hpp"

namespace reprise::testing_support {
namespace {

class FlowRunsPrograms : public ::testing::Test {
 protected:
  // An engine as a program has it, with a handler that fails until it is told otherwise and one that waits for a signal of the test.
  std::unique_ptr<Engine> program() {
    std::filesystem::create_directories(folder_.path_of(".reprise"));
    auto engine = std::make_unique<Engine>(EngineSettings{.store = "sqlite:" + folder_.path_of(".reprise/reprise.db")});
    EXPECT_TRUE(engine->handle("charge",
                               [this]() -> std::string {
                                 if (!may_succeed_) throw std::runtime_error{"the card was refused"};
                                 return "charged";
                               },
                               {.retry = Policy{.max_attempts = 1}}));
    EXPECT_TRUE(engine->handle("wait", [](Work& work) {
      std::mutex mutex;
      std::unique_lock lock{mutex};
      std::condition_variable_any().wait(lock, work.stop_token(), [] { return false; });
      throw std::runtime_error{"stopped"};
    }));
    return engine;
  }

  RunId submit(Engine& engine, std::string handler) {
    const auto run = engine.submit({.handler = std::move(handler)});
    EXPECT_TRUE(run) << (run ? "" : run.error().message);
    return run.value_or(RunId{});
  }

  FlowFolder folder_;
  std::atomic<bool> may_succeed_ = false;
};

TEST_F(FlowRunsPrograms, a_run_that_its_program_works_on_is_not_called_interrupted_and_can_be_cancelled) {
  const auto engine = program();
  const RunId run = submit(*engine, "wait");
  const Outcome listed = folder_.reprise({"runs"});
  EXPECT_NE(listed.out.find("running"), std::string::npos) << listed.out << listed.err;
  EXPECT_EQ(folder_.reprise({"cancel", to_string(run)}).exit_code, 0);
  EXPECT_EQ(engine->wait(run)->status, RunStatus::canceled);
}

TEST_F(FlowRunsPrograms, retry_and_resume_are_asked_of_the_program_that_has_the_handlers) {
  const auto engine = program();
  const RunId run = submit(*engine, "charge");
  EXPECT_EQ(engine->wait(run)->status, RunStatus::failed);
  may_succeed_ = true;
  const Outcome retried = folder_.reprise({"retry", to_string(run)});
  EXPECT_EQ(retried.exit_code, 0) << retried.err;
  EXPECT_EQ(engine->wait(run)->output, "charged");

  const RunId paused = submit(*engine, "wait");
  EXPECT_EQ(folder_.reprise({"pause", to_string(paused)}).exit_code, 0);
  EXPECT_EQ(engine->info(paused)->status, RunStatus::paused);
  const Outcome resumed = folder_.reprise({"resume", to_string(paused)});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(engine->info(paused)->status, RunStatus::running);
}

TEST_F(FlowRunsPrograms, what_only_the_program_can_run_is_refused_with_the_reason_while_it_is_away) {
  RunId run;
  {
    const auto engine = program();
    run = submit(*engine, "charge");
    EXPECT_EQ(engine->wait(run)->status, RunStatus::failed);
  }
  const Outcome refused = folder_.reprise({"retry", to_string(run)});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("is work of a C++ program (charge)"), std::string::npos) << refused.err;
  const auto engine = program();
  EXPECT_EQ(engine->info(run)->status, RunStatus::failed) << "nothing has changed";
}

TEST_F(FlowRunsPrograms, a_command_beside_a_program_gets_a_shard_of_its_own) {
  const auto engine = program();
  const RunId run = submit(*engine, "wait");
  EXPECT_EQ(folder_.reprise({"exec", "--", "true"}).exit_code, 0);
  EXPECT_EQ(engine->info(run)->status, RunStatus::running);
}

TEST_F(FlowRunsPrograms, a_run_of_a_document_is_refused_by_a_program_that_owns_its_shard) {
  EXPECT_EQ(folder_.run("steps: [{id: a, run: exit 64}]").exit_code, 1);
  const std::string run = folder_.last_run();
  const auto engine = program();
  const Outcome refused = folder_.reprise({"retry", run});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("stop the program first"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace reprise::testing_support
