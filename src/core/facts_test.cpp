// Facts of a run: its own deadline and policy instead of the plan's, in every life of the run.
#include "core/facts.hpp"

#include <gtest/gtest.h>

#include "event/facts.hpp"
#include "support/core_driver.hpp"

namespace reprise::core {
namespace {

using namespace std::chrono_literals;
using namespace testing_support;

const Failure timeout{.type = "TimeoutError", .message = "no answer", .kind = FailureKind::timeout};

TEST(CoreFacts, what_is_written_is_read_back) {
  RunFacts facts;
  facts.deadline = Duration{3s}.count();
  facts.policy = std::make_shared<const Policy>(policy::patient);
  const std::string bytes = encode_facts(facts);
  FactsDecoder decoder;
  const auto read = decoder.read(bytes);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->deadline, facts.deadline);
  EXPECT_EQ(*read->policy, policy::patient);
  EXPECT_EQ(read->bytes, bytes);
  EXPECT_EQ(decoder.read(bytes)->policy, read->policy) << "equal policies are kept once";
  EXPECT_EQ(encode_facts({}), "");
}

TEST(CoreFacts, a_fact_of_a_newer_version_is_kept) {
  RunFacts facts;
  facts.deadline = 5;
  std::string bytes = encode_facts(facts);
  event::put_fact(bytes, static_cast<event::FactTag>(4711), "from the future");
  const auto read = FactsDecoder{}.read(bytes);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->deadline, 5);
  EXPECT_EQ(read->bytes, bytes);
}

TEST(CoreFacts, what_cannot_be_read_is_refused) {
  EXPECT_EQ(FactsDecoder{}.read("\x01"), nullptr);
  std::string bytes;
  event::put_fact(bytes, event::FactTag::policy, "\x63 a policy of version 99");
  EXPECT_EQ(FactsDecoder{}.read(bytes), nullptr);
  bytes.clear();
  event::put_fact(bytes, event::FactTag::deadline, std::string_view{"\0", 1});
  EXPECT_EQ(FactsDecoder{}.read(bytes), nullptr) << "0 is said by saying nothing";
}

TEST(CoreFacts, a_run_goes_by_its_own_deadline) {
  CoreDriver driver;
  Plan plan = task(steady(100, 3s));
  plan.deadline = Duration{1h}.count();
  const NumberedPlan* const shared = driver.add(plan);
  auto& short_one = driver.submit(shared, {.facts = {.deadline = Duration{10s}.count()}});
  auto& plain = driver.submit(shared);
  for (const Start& start : driver.take_starts()) driver.fail(start.id, timeout);
  driver.advance(10s);
  EXPECT_EQ(outcome_of(short_one).reason, StopReason::deadline);
  EXPECT_FALSE(plain.has_ended());
  EXPECT_EQ(deadline_of(plain), plain.created + Duration{1h}.count());
}

TEST(CoreFacts, a_run_keeps_its_own_deadline_and_policy_over_a_restart) {
  CoreDriver driver;
  RunFacts facts;
  facts.deadline = Duration{20s}.count();
  facts.policy = std::make_shared<const Policy>(steady(2, 1s));
  auto* run = &driver.submit(driver.add(task(steady(100, 3s))), {.facts = facts});
  driver.expect_replays(*run);
  run = &driver.reload(*run);
  driver.core.adopt(*run, driver.now);
  ASSERT_NE(run->facts, nullptr);
  EXPECT_EQ(run->deadline(), facts.deadline);
  EXPECT_EQ(run->policy(0, 0), *facts.policy);
  EXPECT_EQ(own_plan(*run)->deadline, facts.deadline);
  EXPECT_EQ(own_plan(*run)->steps[0].policy, *facts.policy);
  EXPECT_EQ(own_plan(*run)->steps[0].level, PolicyLevel::work_item);
  driver.fail(driver.start_one(), timeout);
  driver.advance(1s);
  driver.fail(driver.start_one(), timeout);
  EXPECT_EQ(outcome_of(*run).reason, StopReason::attempts);
  EXPECT_EQ(outcome_of(*run).attempts, 2U);
}

TEST(CoreFacts, facts_that_cannot_be_read_stop_a_replay) {
  CoreDriver driver;
  const NumberedPlan* const plan = driver.add(task(policy::standard));
  std::string chunk;
  event::put_chunk_header(chunk, 1);
  event::put_event(chunk, {.type = EventType::submitted, .time = 1, .plan = plan->number, .facts = "\x01"}, 1);
  auto& run = driver.core.add(77);
  EXPECT_FALSE(driver.core.replay(run, chunk, 1));
  driver.core.forget(run);
}

// Millions of runs have none.
static_assert(sizeof(std::unique_ptr<const RunFacts>) == sizeof(void*));

}  // namespace
}  // namespace reprise::core
