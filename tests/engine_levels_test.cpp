// Which policy a handler of a C++ program gets, and by whose words its errors are judged: at once, and after the store was opened again.
#include <reprise/engine.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "support/run_program.hpp"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using Result = std::expected<std::string, Failure>;

Policy quick(std::uint64_t attempts) {
  return {.max_attempts = attempts, .backoff = Backoff::constant, .initial = 1ms, .jitter = Jitter::none};
}

Policy from(Dialect dialect, std::string text) {
  auto read = read_policy(std::move(text), dialect);
  EXPECT_TRUE(read.has_value());
  return read ? read->policy : Policy{};
}

Result fails_with(const char* type) { return std::unexpected{Failure{.type = type, .message = "x"}}; }

std::uint64_t attempts_of(Engine& engine, Task task) {
  const auto run = engine.submit(std::move(task));
  EXPECT_TRUE(run) << (run ? "" : run.error().message);
  const auto outcome = engine.wait(*run, 60s);
  return outcome ? outcome->attempts : 0;
}

TEST(EngineLevels, a_policy_may_be_given_for_a_type_in_any_of_its_words) {
  Engine engine{{.threads = 2,
                 .retry = quick(2),
                 .retry_by_type = {{"LLM_CALL", quick(4)}, {"agent", policy::none}, {"mine", quick(3)}}}};
  const auto work = [] { return fails_with("TimeoutError"); };
  ASSERT_TRUE(engine.handle("ask", work, {.type = "llm"}));
  ASSERT_TRUE(engine.handle("plan", work, {.type = "agent_call"}));
  ASSERT_TRUE(engine.handle("own", work, {.type = "mine"}));
  ASSERT_TRUE(engine.handle("tool", work));
  ASSERT_TRUE(engine.handle("said", work, {.type = "llm_call", .retry = quick(5)}));
  EXPECT_EQ(attempts_of(engine, {.handler = "ask"}), 4U);
  EXPECT_EQ(attempts_of(engine, {.handler = "plan"}), 1U);
  EXPECT_EQ(attempts_of(engine, {.handler = "own"}), 3U);
  EXPECT_EQ(attempts_of(engine, {.handler = "tool"}), 2U);  // of no listed type: the engine's
  EXPECT_EQ(attempts_of(engine, {.handler = "said"}), 5U);
  EXPECT_EQ(attempts_of(engine, {.handler = "said", .retry = quick(6)}), 6U);
  EXPECT_EQ(engine.effective_policy("ask")->level, PolicyLevel::actor_type);
  EXPECT_EQ(engine.effective_policy("ask")->policy, quick(4));
  EXPECT_EQ(engine.effective_policy("tool")->level, PolicyLevel::run);
  EXPECT_EQ(engine.effective_policy("said")->level, PolicyLevel::step);
  EXPECT_EQ(engine.effective_policy("nobody").error().code, ErrorCode::invalid);
}

TEST(EngineLevels, two_words_for_one_type_are_refused) {
  const auto opened = Engine::open({.retry_by_type = {{"tool", quick(1)}, {"tool_call", quick(2)}}});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("the same actor type"), std::string::npos) << opened.error().message;
}

TEST(EngineLevels, handlers_may_ask_for_what_is_built_into_rh_agents) {
  Engine engine{{.threads = 2, .built_ins = Dialect::rh_agents}};
  for (const char* type : {"tool", "llm_call", "agent", "human"})
    ASSERT_TRUE(engine.handle(type, [] { return fails_with("RuntimeError"); }, {.type = type}));
  for (const char* type : {"tool", "llm_call", "agent", "human"})
    EXPECT_EQ(attempts_of(engine, {.handler = type}), 1U) << type;
  EXPECT_EQ(engine.effective_policy("tool")->policy.max_attempts, 3U);
  EXPECT_EQ(engine.effective_policy("tool")->policy, built_in_policy(Dialect::rh_agents, "tool_call"));
  EXPECT_EQ(engine.effective_policy("human")->policy.max_attempts, 1U);
}

TEST(EngineLevels, events_tell_the_actor_type) {
  Engine engine{{.threads = 1}};
  ASSERT_TRUE(engine.handle("ask", [] { return fails_with("TimeoutError"); }, {.type = "LLM_CALL", .retry = quick(2)}));
  const auto run = engine.submit({.handler = "ask"});
  ASSERT_TRUE(run);
  static_cast<void>(engine.wait(*run, 60s));
  const auto events = engine.events(*run);
  ASSERT_TRUE(events);
  for (const Event& event : *events) {
    if (event.attempt == 0) continue;
    EXPECT_EQ(event.actor_type, "llm");
    EXPECT_EQ(event.is_retry, event.attempt > 1);
  }
}

// ---- error types ----

class EngineTypes : public ::testing::Test {
 protected:
  EngineTypes() { types_.add("APIError", "ConnectionError"); }

  // Submits work that waits, stops, and lets it go on in another engine: the types hold there too.
  std::uint64_t attempts_after_restart(const EngineSettings& settings, const Task& task,
                                       const HandlerOptions& options) {
    RunId run;
    {
      Engine engine{settings};
      EXPECT_TRUE(engine.handle(
          "work", [] { return fails_with("APIError"); }, options));
      Task later = task;
      later.delay = 200ms;
      const auto submitted = engine.submit(later);
      EXPECT_TRUE(submitted);
      if (submitted) run = *submitted;
    }
    EngineSettings again = settings;
    Engine engine{again};
    EXPECT_TRUE(engine.handle(
        "work", [] { return fails_with("APIError"); }, options));
    const auto outcome = engine.wait(run, 60s);
    return outcome ? outcome->attempts : 0;
  }
  EngineSettings stored() const { return {.store = "sqlite:" + folder_.path() + "/runs.db", .threads = 1}; }

  TypeTree types_;
  Policy rh_ = from(Dialect::rh_agents, "{initial_delay: 0.001}");

 private:
  testing_support::TemporaryDirectory folder_;
};

TEST_F(EngineTypes, of_the_engine_hold_at_once_and_after_a_restart) {
  EngineSettings settings = stored();
  settings.types = &types_;
  {
    Engine engine{settings};
    ASSERT_TRUE(engine.handle("work", [] { return fails_with("APIError"); }, {.retry = rh_}));
    EXPECT_EQ(attempts_of(engine, {.handler = "work"}), 3U);
    EXPECT_EQ(attempts_of(engine, {.handler = "work", .retry = rh_}), 3U);
  }
  EXPECT_EQ(attempts_after_restart(settings, {.handler = "work"}, {.retry = rh_}), 3U);
}

TEST_F(EngineTypes, of_a_policy_hold_at_once_and_after_a_restart) {
  rh_.types = &types_;
  {
    Engine engine{stored()};
    ASSERT_TRUE(engine.handle("work", [] { return fails_with("APIError"); }, {.retry = rh_}));
    EXPECT_EQ(attempts_of(engine, {.handler = "work"}), 3U);
    EXPECT_EQ(attempts_of(engine, {.handler = "work", .retry = rh_}), 3U);
  }
  EXPECT_EQ(attempts_after_restart(stored(), {.handler = "work"}, {.retry = rh_}), 3U);
  EXPECT_EQ(attempts_after_restart(stored(), {.handler = "work", .retry = rh_}, {.retry = policy::none}), 3U);
}

TEST_F(EngineTypes, without_them_the_type_is_not_listed) {
  Engine engine{stored()};
  ASSERT_TRUE(engine.handle("work", [] { return fails_with("APIError"); }, {.retry = rh_}));
  EXPECT_EQ(attempts_of(engine, {.handler = "work"}), 1U);
}

// ---- Azolla ----

TEST(EngineAzolla, its_clock_starts_when_a_delayed_task_is_created) {
  Engine engine{{.threads = 1}};
  ASSERT_TRUE(engine.handle("work", [] { return fails_with("ValueError"); }));
  const Policy policy =
      from(Dialect::azolla, R"({"stop": {"max_delay": 2}, "wait": {"strategy": "fixed", "delay": 1.9}})");
  // 0.3 s of delay and 1.9 s of waiting are more than 2 s; counted from the due time they would not be.
  const auto run = engine.submit({.handler = "work", .delay = 300ms, .retry = policy});
  ASSERT_TRUE(run);
  const auto outcome = engine.wait(*run, 60s);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->attempts, 1U);
  EXPECT_EQ(outcome->reason, StopReason::deadline);
  const auto never = engine.submit({.handler = "work", .delay = 2s, .retry = policy});
  ASSERT_FALSE(never);
  EXPECT_NE(never.error().message.find("stop.max_delay"), std::string::npos) << never.error().message;
}

TEST(EngineAzolla, a_failure_has_the_class_that_it_has_in_a_flow) {
  Engine engine{{.threads = 1}};
  ASSERT_TRUE(engine.handle(
      "work", [] { return fails_with("ValueError"); },
      {.retry = from(Dialect::azolla, R"({"stop": {"max_attempts": 2}, "wait": {"strategy": "fixed", "delay": 0}})")}));
  const auto run = engine.submit({.handler = "work"});
  ASSERT_TRUE(run);
  static_cast<void>(engine.wait(*run, 60s));
  const auto events = engine.events(*run);
  ASSERT_TRUE(events);
  std::size_t failed = 0;
  for (const Event& event : *events) {
    if (event.type != EventType::failed) continue;
    ++failed;
    EXPECT_EQ(event.failure->failure_class, FailureClass::deterministic);
  }
  EXPECT_EQ(failed, 2U);
}

}  // namespace
}  // namespace reprise
