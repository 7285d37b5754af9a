// Durable functions on a whole engine: what each operation does, what survives a restart, and what is held.
#include <reprise/function.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <mutex>
#include <thread>

namespace reprise {
namespace {

using namespace std::chrono_literals;

constexpr Call<int(int)> twice{"twice"};
constexpr Call<void(std::string)> undo{"undo"};
constexpr Call<std::string()> name{"name"};
constexpr Call<std::string(std::string)> function{"function"};

Policy at_once(std::uint64_t attempts) { return {.max_attempts = attempts, .initial = Duration{0}, .jitter = Jitter::none}; }

class Functions : public ::testing::Test {
 protected:
  Functions() { open(); }
  ~Functions() override {
    engine.reset();
    std::filesystem::remove_all(folder);
  }

  // The program again, as it would be after a restart: the same handlers.
  void open(FunctionSettings settings = {}) {
    engine.reset();
    engine = std::make_unique<Engine>(EngineSettings{.store = "sqlite:" + (folder / "runs.db").string(), .threads = 2, .park_after = park_after});
    EXPECT_TRUE(use_functions(*engine, settings));
    EXPECT_TRUE(engine->handle(twice, [this](Work& work, int number) {
      ++calls;
      note("twice " + std::to_string(number));
      key = work.idempotency_key();
      return 2 * number;
    }));
    EXPECT_TRUE(engine->handle(name, [this] { return ++calls, std::string{"Ada"}; }));
    EXPECT_TRUE(engine->handle(undo, [this](const std::string& what) { note("undo " + what); }));
  }
  template <class F>
  RunId submit(F body, FunctionOptions options = {}) {
    EXPECT_TRUE(engine->function(function, body, options));
    const auto run = engine->submit(function, "input");
    EXPECT_TRUE(run) << run.error().message;
    return run.value_or(RunId{});
  }
  RunOutcome wait(const RunId& run) {
    const auto outcome = engine->wait(run, 60s);
    EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().message);
    return outcome.value_or(RunOutcome{});
  }
  template <class F>
  RunOutcome outcome_of(F body) {
    return wait(submit(std::move(body)));
  }
  void wait_for(const std::function<bool()>& condition) {
    for (int round = 0; round < 6000 && !condition(); ++round) std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(condition());
  }
  // The function waits for something: it has said so in the log.
  void wait_for_operation(const RunId& run, const std::string& operation) {
    wait_for([&] {
      const auto events = engine->events(run);
      return events && std::ranges::any_of(*events, [&](const Event& event) { return event.operation == operation; });
    });
  }
  std::vector<std::string> noted() {
    const std::lock_guard lock{mutex};
    return notes;
  }
  void note(std::string what) {
    const std::lock_guard lock{mutex};
    notes.push_back(std::move(what));
  }
  RunStatus status_of(const RunId& run) { return engine->info(run)->status; }

  std::filesystem::path folder = [] {
    std::string path = (std::filesystem::temp_directory_path() / "functions-XXXXXX").string();
    return std::filesystem::path{::mkdtemp(path.data())};
  }();
  Duration park_after = 10s;
  std::atomic<int> calls = 0;
  std::string key;
  std::mutex mutex;
  std::vector<std::string> notes;
  std::unique_ptr<Engine> engine;
};

TEST_F(Functions, CallsHandlersOneAfterTheOther) {
  const RunId run = submit([](Context& ctx, const std::string& input) {
    const int number = ctx.call(twice, ctx.call(twice, 5));
    return input + std::to_string(number) + ctx.call(name);
  });
  EXPECT_EQ(wait(run).output, "input20Ada");
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(key, to_string(run) + "/1") << "the same for every attempt";
}

TEST_F(Functions, ACallThatFailsThrows) {
  ASSERT_TRUE(engine->handle(name, []() -> std::expected<std::string, Failure> {
    return std::unexpected{Failure{.type = "NoName", .message = "nobody", .permanent = true}};
  }));
  const RunOutcome outcome = outcome_of([](Context& ctx, const std::string&) {
    const auto tried = ctx.try_call(name);
    EXPECT_FALSE(tried);
    EXPECT_EQ(tried.error().failure.type, "NoName");
    EXPECT_EQ(tried.error().attempts, 1U);
    try {
      ctx.call(name);
    } catch (const std::exception& failed) {
      EXPECT_STREQ(failed.what(), "nobody");
    }
    return ctx.call(name);
  });
  EXPECT_EQ(outcome.status, RunStatus::failed);
  EXPECT_EQ(outcome.failure.type, "NoName") << "its failure is that of what it threw";
}

TEST_F(Functions, ACallsOwnPolicyHolds) {
  ASSERT_TRUE(engine->handle(name, [this](Work& work) {
    ++calls;
    if (work.attempt() < 4) throw std::runtime_error{"not yet"};
    return std::string{"at last"};
  }));
  EXPECT_EQ(outcome_of([](Context& ctx, const std::string&) { return ctx.call(name, {.retry = at_once(4)}); }).output, "at last");
  EXPECT_EQ(calls, 4);
}

TEST_F(Functions, SeveralAtOnceAndTheFirstOfThem) {
  std::promise<void> go;
  const auto allowed = go.get_future().share();
  ASSERT_TRUE(engine->handle(name, [allowed] { return allowed.wait(), std::string{"slow"}; }));
  const RunId run = submit([](Context& ctx, const std::string&) {
    auto slow = ctx.start(name);
    auto quick = ctx.start(twice, 4);
    auto never = ctx.timer(1h);
    std::string text = std::to_string(ctx.any(slow, quick, never));
    never.cancel();
    text += slow.done() ? "done" : "open";
    const auto [first, second] = ctx.all(slow, quick);
    return text + first + std::to_string(second);
  });
  wait_for([&] { return calls == 1; });
  go.set_value();
  EXPECT_EQ(wait(run).output, "1openslow8");
}

TEST_F(Functions, AClosureRunsOnceAndItsResultIsKept) {
  const RunId run = submit([this](Context& ctx, const std::string&) {
    const int drawn = ctx.run("draw", [this] { return ++calls, 7; });
    ctx.run("nothing", [this] { ++calls; });
    ctx.wait_signal("go");
    return std::to_string(drawn);
  });
  wait_for_operation(run, "signal");
  open();
  ASSERT_TRUE(engine->function(function, [this](Context& ctx, const std::string&) {
    const int drawn = ctx.run("draw", [this] { return ++calls, 8; });
    ctx.run("nothing", [this] { ++calls; });
    ctx.wait_signal("go");
    return std::to_string(drawn);
  }));
  ASSERT_TRUE(engine->signal(run, "go"));
  EXPECT_EQ(wait(run).output, "7");
  EXPECT_EQ(calls, 2);
}

TEST_F(Functions, AClosureIsRetried) {
  EXPECT_EQ(outcome_of([this](Context& ctx, const std::string&) {
              return ctx.run("flaky", [this] { return ++calls < 3 ? throw std::runtime_error{"no"} : std::string{"yes"}; },
                             {.retry = at_once(3)});
            }).output,
            "yes");
  EXPECT_EQ(calls, 3);
}

TEST_F(Functions, SignalsCarryValuesAndPatienceEnds) {
  const RunId run = submit([](Context& ctx, const std::string&) {
    const auto none = ctx.wait_signal<int>("number", 1ms);
    const auto some = ctx.wait_signal<int>("number");
    return std::string{none ? "some " : "none "} + std::to_string(some.value_or(0));
  });
  wait_for([&] { return std::ranges::count(*engine->events(run), "signal", &Event::operation) == 2; });
  ASSERT_TRUE(engine->signal(run, "number", "42"));
  EXPECT_EQ(wait(run).output, "none 42");
}

TEST_F(Functions, GoesOnWhereItWasAfterARestart) {
  const auto body = [](Context& ctx, const std::string& input) {
    const int number = ctx.call(twice, 3);
    const std::string id = ctx.uuid();
    ctx.sleep(1ms);
    const bool signaled = ctx.wait_signal("go");
    return input + std::to_string(ctx.call(twice, number)) + (signaled ? "!" : "?") + (id == ctx.uuid() ? "same" : "other");
  };
  const RunId run = submit(body);
  wait_for_operation(run, "signal");
  for (int restart = 0; restart < 3; ++restart) {
    open();
    ASSERT_TRUE(engine->function(function, body));
  }
  ASSERT_TRUE(engine->signal(run, "go"));
  EXPECT_EQ(wait(run).output, "input12!other");
  EXPECT_EQ(calls, 2) << "what was recorded does not run again";
}

TEST_F(Functions, LeavesMemoryAndComesBack) {
  park_after = 1ms;
  open();
  const RunId run = submit([](Context& ctx, const std::string&) {
    const int number = ctx.call(twice, 3);
    ctx.sleep(300ms);
    ctx.wait_signal("go", 1h);
    return std::to_string(number);
  });
  wait_for_operation(run, "signal");
  wait_for([&] { return engine->stats().resident == 0; });
  ASSERT_TRUE(engine->signal(run, "go"));
  EXPECT_EQ(wait(run).output, "6");
  EXPECT_EQ(calls, 1);
}

TEST_F(Functions, MoreOfThemThanThereIsMemoryForTakeTurns) {
  open({.memory = 256U << 10U});  // four stacks
  std::vector<RunId> runs;
  for (int count = 0; count < 40; ++count) {
    runs.push_back(submit([](Context& ctx, const std::string&) {
      const int number = ctx.call(twice, 21);
      ctx.wait_signal("go");
      return std::to_string(number);
    }));
  }
  for (const RunId& run : runs) wait_for_operation(run, "signal");
  for (const RunId& run : runs) ASSERT_TRUE(engine->signal(run, "go"));
  for (const RunId& run : runs) EXPECT_EQ(wait(run).output, "42");
  EXPECT_EQ(calls, 40);
}

TEST_F(Functions, WhatItHasDoneIsUndoneNewestFirst) {
  const RunOutcome outcome = outcome_of([](Context& ctx, const std::string&) -> std::string {
    ctx.call(twice, 1);
    ctx.on_failure(undo, "first");
    ctx.on_failure(undo, "second");
    throw std::runtime_error{"too late"};
  });
  EXPECT_EQ(outcome.status, RunStatus::failed);
  EXPECT_EQ(outcome.failure.message, "too late");
  EXPECT_EQ(noted(), (std::vector<std::string>{"twice 1", "undo second", "undo first"}));
}

TEST_F(Functions, ACancelUnwindsAndUndoes) {
  const RunId run = submit([this](Context& ctx, const std::string&) -> std::string {
    ctx.on_failure(undo, "it");
    try {
      ctx.wait_signal("never");
    } catch (const std::exception&) {
      note("caught");
    } catch (const Canceled&) {
      note(std::to_string(ctx.shielded([&] { return ctx.call(twice, 1); })));
      throw;
    }
    return "";
  });
  wait_for_operation(run, "signal");
  ASSERT_TRUE(engine->cancel(run, "enough"));
  const RunOutcome outcome = wait(run);
  EXPECT_EQ(outcome.status, RunStatus::canceled);
  EXPECT_EQ(noted(), (std::vector<std::string>{"twice 1", "2", "undo it"}));
}

TEST_F(Functions, ExceptionsOfTwoThatWaitInsideOfCatchStayApart) {
  const auto body = [](Context& ctx, const std::string&) -> std::string {
    const std::string own = ctx.uuid();
    try {
      throw std::runtime_error{own};
    } catch (const std::runtime_error& mine) {
      ctx.wait_signal("go");
      try {
        throw;
      } catch (const std::runtime_error& again) {
        return again.what() == own && mine.what() == own ? "mine" : "another's";
      }
    }
  };
  const RunId one = submit(body);
  const RunId other = submit(body);
  wait_for_operation(one, "signal");
  wait_for_operation(other, "signal");
  ASSERT_TRUE(engine->signal(one, "go"));
  ASSERT_TRUE(engine->signal(other, "go"));
  EXPECT_EQ(wait(one).output, "mine");
  EXPECT_EQ(wait(other).output, "mine");
}

TEST_F(Functions, BranchesRunBesideEachOther) {
  EXPECT_EQ(outcome_of([](Context& ctx, const std::string&) {
              int left = 0;
              int right = 0;
              ctx.parallel({}, [&](Context& own) { left = own.call(twice, own.call(twice, 1)); },
                           [&](Context& own) { right = own.call(twice, 10); });
              const std::vector<int> all = ctx.map(std::vector{1, 2, 3, 4, 5}, [](Context& own, int number) {
                return own.call(twice, number);
              }, {.max_parallel = 2});
              return std::to_string(left + right) + ':' + std::to_string(all[0]) + std::to_string(all[4]);
            }).output,
            "24:210");
  EXPECT_EQ(calls, 8);
}

TEST_F(Functions, WhatFailsInABranchIsThrownOrStandsInItsPlace) {
  const RunOutcome outcome = outcome_of([](Context& ctx, const std::string&) {
    const auto body = [](Context& own, int number) {
      if (number == 2) throw std::runtime_error{"not two"};
      return own.call(twice, number);
    };
    const auto tried = ctx.try_map(std::vector{1, 2, 3}, body, {.tolerate = 1});
    EXPECT_EQ(tried[1].error().failure.message, "not two");
    EXPECT_EQ(tried[2].value(), 6);
    ctx.map(std::vector{1, 2, 3}, body);
    return std::string{};
  });
  EXPECT_EQ(outcome.failure.message, "not two");
}

TEST_F(Functions, ALoopForgetsTheTurnsBefore) {
  const auto body = [](Context& ctx, const std::string&) {
    const int first = ctx.call(twice, 50);
    int sum = 0;
    ctx.loop(1, [&](int& turn) {
      sum = turn + ctx.call(twice, turn);
      if (turn == 20) ctx.wait_signal("go");
      return ++turn <= 40 ? Next::again : Next::done;
    });
    return std::to_string(first + sum);
  };
  const RunId run = submit(body);
  wait_for_operation(run, "signal");
  open();
  ASSERT_TRUE(engine->function(function, body));
  ASSERT_TRUE(engine->signal(run, "go"));
  EXPECT_EQ(wait(run).output, std::to_string(100 + 40 + 80));
  EXPECT_EQ(calls, 41);
}

TEST_F(Functions, SaysHowItStands) {
  const RunId run = submit([](Context& ctx, const std::string&) {
    ctx.publish(std::string{"before"});
    ctx.call(twice, 1);
    ctx.publish(std::string{"waiting"});
    ctx.wait_signal("go");
    return std::string{};
  });
  EXPECT_EQ(engine->state(run).value().value_or("nothing").empty(), false);
  wait_for_operation(run, "signal");
  EXPECT_EQ(engine->state(run).value(), "waiting");
}

TEST_F(Functions, LargeValuesGoInAndComeOut) {
  const std::string large(100'000, 'x');
  constexpr Call<std::string(std::string)> copy{"copy"};
  ASSERT_TRUE(engine->handle(copy, [](const std::string& text) { return text; }));
  const RunOutcome outcome = outcome_of([&](Context& ctx, const std::string&) { return ctx.call(copy, ctx.call(copy, large)); });
  EXPECT_EQ(outcome.output, large);
}

TEST_F(Functions, OneThatHasChangedIsHeldAndGoesOnWhenItIsRight) {
  const auto before = [](Context& ctx, const std::string&) {
    ctx.call(twice, 1);
    ctx.wait_signal("go");
    return std::string{"done"};
  };
  const RunId run = submit(before);
  wait_for_operation(run, "signal");
  open();
  ASSERT_TRUE(engine->function(function, [](Context& ctx, const std::string&) {
    ctx.call(name);
    ctx.wait_signal("go");
    return std::string{"done"};
  }));
  ASSERT_TRUE(engine->signal(run, "go"));  // it has left memory, and is replayed when there is something to tell it
  wait_for([&] { return status_of(run) == RunStatus::paused; });
  const auto events = engine->events(run);
  const auto diverged = std::ranges::find(*events, EventType::diverged, &Event::type);
  ASSERT_NE(diverged, events->end());
  EXPECT_NE(diverged->text.find("operation 0: the log has call \"twice\""), std::string::npos) << diverged->text;
  EXPECT_NE(diverged->text.find("functions_test.cpp:"), std::string::npos) << diverged->text;
  EXPECT_NE(diverged->text.find("now begins call \"name\""), std::string::npos) << diverged->text;
  ASSERT_TRUE(engine->function(function, before));
  ASSERT_TRUE(engine->resume(run));
  EXPECT_EQ(wait(run).output, "done");
}

TEST_F(Functions, OneThatLeavesSomethingOutIsHeld) {
  const RunId run = submit([](Context& ctx, const std::string&) {
    ctx.call(twice, 1);
    ctx.wait_signal("go");
    return std::string{};
  });
  wait_for_operation(run, "signal");
  open();
  ASSERT_TRUE(engine->function(function, [](Context& ctx, const std::string&) { return std::to_string(ctx.call(twice, 1)); }));
  ASSERT_TRUE(engine->signal(run, "go"));  // it has left memory, and is replayed when there is something to tell it
  wait_for([&] { return status_of(run) == RunStatus::paused; });
  const auto events = engine->events(run);
  const auto diverged = std::ranges::find(*events, EventType::diverged, &Event::type);
  EXPECT_NE(diverged->text.find("operation 1: the log has signal \"go\""), std::string::npos) << diverged->text;
}

TEST_F(Functions, AChangeIsForThoseThatHaveNotPassedIt) {
  const RunId old = submit([](Context& ctx, const std::string&) {
    ctx.call(twice, 1);
    ctx.wait_signal("go");
    return std::string{"old"};
  });
  wait_for_operation(old, "signal");
  open();
  const auto changed = [](Context& ctx, const std::string&) {
    const bool is_new = ctx.changed("greets");
    if (is_new) ctx.call(name);
    ctx.call(twice, 1);
    ctx.wait_signal("go");
    return std::string{is_new ? "new" : "old"};
  };
  const RunId young = submit(changed);
  wait_for_operation(young, "signal");
  open();
  ASSERT_TRUE(engine->function(function, changed));
  for (const RunId& run : {old, young}) ASSERT_TRUE(engine->signal(run, "go"));
  EXPECT_EQ(wait(old).output, "old");
  EXPECT_EQ(wait(young).output, "new");
}

TEST_F(Functions, ARunKeepsItsVersion) {
  const auto first = [](Context& ctx, const std::string&) { return ctx.wait_signal("go") ? std::string{"first"} : ""; };
  const RunId old = submit(first, {.version = 1});
  wait_for_operation(old, "signal");
  const RunId young = submit([](Context& ctx, const std::string&) { return ctx.call(name); }, {.version = 2});
  EXPECT_EQ(wait(young).output, "Ada");
  ASSERT_TRUE(engine->signal(old, "go"));
  EXPECT_EQ(wait(old).output, "first");
}

TEST_F(Functions, AnUnknownHandlerHoldsTheRun) {
  constexpr Call<int(int)> misspelt{"twcie"};
  const RunId run = submit([=](Context& ctx, const std::string&) { return std::to_string(ctx.call(misspelt, 1)); });
  wait_for([&] { return status_of(run) == RunStatus::paused; });
  const auto events = engine->events(run);
  const auto diverged = std::ranges::find(*events, EventType::diverged, &Event::type);
  ASSERT_NE(diverged, events->end());
  EXPECT_NE(diverged->text.find("did you mean \"twice\"?"), std::string::npos) << diverged->text;
}

}  // namespace
}  // namespace reprise
