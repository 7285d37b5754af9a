// Handlers with types: what they are given and give back, and what happens to an input they cannot read.
#include <reprise/engine.hpp>

#include <gtest/gtest.h>

namespace store_front {

struct Order {
  std::string id;
  std::int64_t cents = 0;
};
REPRISE_FIELDS(Order, id, cents)

struct Receipt {
  std::string order;
  std::vector<std::int64_t> parts;
};
REPRISE_FIELDS(Receipt, order, parts)

}  // namespace store_front

namespace reprise {
namespace {

constexpr Call<store_front::Receipt(const store_front::Order&)> charge{"charge"};
constexpr Call<void(int)> count{"count"};
constexpr Call<int()> answer{"answer"};

RunOutcome outcome_of(Engine& engine, const std::expected<RunId, Error>& run) {
  EXPECT_TRUE(run) << (run ? "" : run.error().message);
  const auto outcome = engine.wait(run.value_or(RunId{}));
  EXPECT_TRUE(outcome);
  return outcome.value_or(RunOutcome{});
}

TEST(TypedHandlers, ValuesGoInAndComeOut) {
  Engine engine{EngineSettings{}};
  int counted = 0;
  ASSERT_TRUE(engine.handle(charge, [](const store_front::Order& order) {
    return store_front::Receipt{order.id, {order.cents}};
  }));
  ASSERT_TRUE(engine.handle(count,
                            [&](Work& work, int number) {
                              if (!work.is_retry()) throw std::runtime_error{"not yet"};
                              counted = number;
                            },
                            {.retry = Policy{.initial = Duration{0}}}));
  ASSERT_TRUE(engine.handle(answer, []() -> std::expected<int, Failure> { return 42; }));
  EXPECT_EQ(outcome_of(engine, engine.submit(charge, {.id = "A", .cents = 5})).output, R"({"order":"A","parts":[5]})");
  EXPECT_EQ(outcome_of(engine, engine.submit(count, 7, {.key = "once"})).status, RunStatus::succeeded);
  EXPECT_EQ(outcome_of(engine, engine.submit(count, 8, {.key = "once"})).status, RunStatus::succeeded);
  EXPECT_EQ(counted, 7) << "the second one found the first by its key";
  EXPECT_EQ(outcome_of(engine, engine.submit(answer)).output, "42");
}

TEST(TypedHandlers, AnInputThatCannotBeReadFailsForGood) {
  Engine engine{EngineSettings{}};
  ASSERT_TRUE(engine.handle(charge, [](const store_front::Order&) { return store_front::Receipt{}; }));
  const RunOutcome outcome = outcome_of(engine, engine.submit({.handler = "charge", .input = "{\"id\":7}"}));
  EXPECT_EQ(outcome.status, RunStatus::failed);
  EXPECT_EQ(outcome.failure.kind, FailureKind::invalid_input);
  EXPECT_EQ(outcome.failure.message, "the input cannot be read: expected a string (byte 6)");
  EXPECT_EQ(outcome.attempts, 1U);
}

TEST(TypedHandlers, AFailureIsAFailure) {
  Engine engine{EngineSettings{}};
  ASSERT_TRUE(engine.handle(answer, []() -> std::expected<int, Failure> {
    return std::unexpected{Failure{.type = "Broke", .message = "no", .permanent = true}};
  }));
  EXPECT_EQ(outcome_of(engine, engine.submit(answer)).failure.type, "Broke");
}

}  // namespace
}  // namespace reprise
