// The plan book: what a task or a flow means, every mistake in it, and which policy applies.
#include "runtime/plan_book.hpp"

#include <gtest/gtest.h>

namespace reprise::runtime {
namespace {

using namespace std::chrono_literals;

class RuntimePlanBook : public ::testing::Test {
 protected:
  RuntimePlanBook() {
    EXPECT_TRUE(book.add_handler("charge", {}));
    EXPECT_TRUE(book.add_handler("refund", {}));
  }

  // Everything that is wrong with the flow, as one text; empty: nothing.
  std::string mistakes(const Flow& flow) {
    const auto added = book.add_flow(flow);
    if (added) return "";
    EXPECT_EQ(added.error().code, ErrorCode::invalid);
    return added.error().message;
  }
  std::string step_mistakes(std::vector<FlowStep> steps) {
    return mistakes(Flow{.name = "flow", .steps = std::move(steps)});
  }

  // As a run of this task has it: with its own policy, if the task gave one.
  core::StepPlan step_of(const Task& task, std::size_t step = 0) {
    const auto booked = book.plan_for(task);
    EXPECT_TRUE(booked) << (booked ? "" : booked.error().message);
    core::StepPlan plan = booked->plan->plan->steps.at(step);
    if (booked->facts != nullptr && booked->facts->policy != nullptr) {
      plan.policy = *booked->facts->policy;
      plan.level = PolicyLevel::work_item;
    }
    return plan;
  }
  std::string refusal(const Task& task) {
    const auto booked = book.plan_for(task);
    EXPECT_FALSE(booked);
    if (booked) return "";
    EXPECT_EQ(booked.error().code, ErrorCode::invalid);
    return booked.error().message;
  }

  PlanBook book{{}, core::FactsDecoder{}};
};

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// ---- tasks ----------------------------------------

TEST_F(RuntimePlanBook, equal_tasks_share_one_plan) {
  const auto plain = book.plan_for({.handler = "charge"});
  ASSERT_TRUE(plain);
  const auto plan_of = [&](const Task& task) { return book.plan_for(task)->plan; };
  EXPECT_EQ(plain->plan, plan_of({.handler = "charge", .input = "x", .key = "k", .delay = 1s, .priority = 9}));
  EXPECT_EQ(plain->plan, plan_of({.handler = "charge", .items = {"a", "b"}}));
  EXPECT_EQ(plain->plan, book.plan(plain->plan->number));
  EXPECT_EQ(plain->facts, nullptr);
  EXPECT_NE(plain->plan, plan_of({.handler = "refund"}));
  EXPECT_EQ(book.plan(99), nullptr);
}

TEST_F(RuntimePlanBook, what_a_task_has_for_itself_makes_no_plan) {
  const auto plain = book.plan_for({.handler = "charge"});
  const auto own = book.plan_for({.handler = "charge", .retry = policy::patient, .deadline = 3s});
  ASSERT_TRUE(own);
  EXPECT_EQ(own->plan, plain->plan);
  ASSERT_NE(own->facts, nullptr);
  EXPECT_EQ(own->facts->deadline, Duration{3s}.count());
  EXPECT_EQ(*own->facts->policy, policy::patient);
  EXPECT_EQ(book.plan_for({.handler = "charge", .deadline = 0s})->facts->deadline, 1) << "0 would mean none";

  const auto same = book.plan_for({.handler = "charge", .retry = policy::patient});
  EXPECT_EQ(same->facts->policy, own->facts->policy) << "equal policies are kept once";
  EXPECT_EQ(same->facts->deadline, 0);
}

TEST_F(RuntimePlanBook, a_policy_that_could_not_be_read_again_is_refused) {
  Policy policy = policy::standard;
  policy.never_on = FailureRules{{.what = FailureRule::What::message, .text = "/x/"}};
  EXPECT_TRUE(has(refusal({.handler = "charge", .retry = policy}), "cannot be recorded"));
}

TEST_F(RuntimePlanBook, a_task_that_makes_no_sense_is_refused) {
  EXPECT_TRUE(has(refusal({}), "either a handler or a flow"));
  EXPECT_TRUE(has(refusal({.handler = "charge", .flow = "x"}), "either a handler or a flow"));
  EXPECT_TRUE(has(refusal({.handler = "charge", .input = "x", .items = {"a"}}), "either an input or items"));
  ASSERT_EQ(step_mistakes({{.name = "a", .handler = "charge"}}), "");
  EXPECT_TRUE(has(refusal({.flow = "flow", .items = {"a"}}), "one input"));
  EXPECT_TRUE(has(refusal({.flow = "flow", .retry = policy::none}), "policies"));
}

TEST_F(RuntimePlanBook, unknown_names_come_with_the_nearest) {
  EXPECT_EQ(refusal({.handler = "chrage"}), "there is no handler named \"chrage\"; did you mean \"charge\"?");
  EXPECT_EQ(refusal({.handler = "zzzzzzzz"}),
            "there is no handler named \"zzzzzzzz\"; known are \"charge\", \"refund\"");
  EXPECT_EQ(refusal({.flow = "flo"}), "there is no flow named \"flo\"; none has been given to the engine yet");
  ASSERT_EQ(step_mistakes({{.name = "a", .handler = "charge"}}), "");
  EXPECT_TRUE(has(refusal({.flow = "flo"}), "did you mean \"flow\"?"));
}

TEST_F(RuntimePlanBook, names_of_handlers_are_bounded) {
  EXPECT_FALSE(book.add_handler("", {}));
  EXPECT_TRUE(book.add_handler(std::string(200, 'x'), {}));
  EXPECT_FALSE(book.add_handler(std::string(201, 'x'), {}));
}

// ---- policies ----------------------------------------

TEST_F(RuntimePlanBook, the_most_specific_policy_wins_whole) {
  Policy of_flow = policy::aggressive;
  of_flow.attempt_timeout = 1h;
  ASSERT_TRUE(book.add_handler("own", {.retry = policy::patient}));
  ASSERT_TRUE(book.add_handler("talk", {.type = "llm"}));
  ASSERT_TRUE(book.add_handler("think", {.type = "agent"}));
  ASSERT_TRUE(book.add_handler("other", {.type = "mine"}));

  EXPECT_EQ(step_of({.handler = "charge"}).policy, policy::tool);
  EXPECT_EQ(step_of({.handler = "charge"}).level, PolicyLevel::built_in);
  EXPECT_EQ(step_of({.handler = "talk"}).policy, policy::llm);
  EXPECT_EQ(step_of({.handler = "think"}).policy, policy::agent);
  EXPECT_EQ(step_of({.handler = "other"}).policy, policy::standard);
  EXPECT_EQ(step_of({.handler = "own"}).policy, policy::patient);
  EXPECT_EQ(step_of({.handler = "own"}).level, PolicyLevel::step);
  EXPECT_EQ(step_of({.handler = "own", .retry = policy::none}).policy, policy::none);
  EXPECT_EQ(step_of({.handler = "own", .retry = policy::none}).level, PolicyLevel::work_item);

  ASSERT_EQ(mistakes(Flow{.name = "f",
                          .steps = {{.name = "plain", .handler = "charge"},
                                    {.name = "handler's", .handler = "own"},
                                    {.name = "step's", .handler = "own", .retry = policy::none}},
                          .retry = of_flow}),
            "");
  EXPECT_EQ(step_of({.flow = "f"}, 0).policy, of_flow);
  EXPECT_EQ(step_of({.flow = "f"}, 0).level, PolicyLevel::run);
  EXPECT_EQ(step_of({.flow = "f"}, 1).policy, policy::patient);
  EXPECT_EQ(step_of({.flow = "f"}, 2).policy, policy::none);
  EXPECT_EQ(step_of({.flow = "f"}, 2).level, PolicyLevel::step);
}

TEST(RuntimePlanBookDefault, the_engine_s_policy_stands_before_the_built_in_and_after_the_flow_s) {
  PlanBook book{{.retry = policy::aggressive}, core::FactsDecoder{}};
  ASSERT_TRUE(book.add_handler("charge", {}));
  ASSERT_TRUE(book.add_handler("own", {.retry = policy::patient}));
  EXPECT_EQ(book.plan_for({.handler = "charge"})->plan->plan->steps[0].policy, policy::aggressive);
  EXPECT_EQ(book.plan_for({.handler = "charge"})->plan->plan->steps[0].level, PolicyLevel::run);
  EXPECT_EQ(book.plan_for({.handler = "own"})->plan->plan->steps[0].policy, policy::patient);
  ASSERT_TRUE(book.add_flow({.name = "f", .steps = {{.name = "a", .handler = "charge"}}, .retry = policy::none}));
  EXPECT_EQ(book.plan_for({.flow = "f"})->plan->plan->steps[0].policy, policy::none);
}

TEST_F(RuntimePlanBook, the_shortest_timeout_wins) {
  Policy quick = policy::standard;
  quick.attempt_timeout = 2s;
  ASSERT_TRUE(book.add_handler("slow", {.timeout = 5s}));
  EXPECT_EQ(step_of({.handler = "slow"}).policy.attempt_timeout, 5s);
  EXPECT_EQ(step_of({.handler = "slow", .retry = quick}).policy.attempt_timeout, 2s);
  ASSERT_EQ(
      step_mistakes({{.name = "a", .handler = "slow", .timeout = 1s}, {.name = "b", .handler = "slow", .timeout = 9s}}),
      "");
  EXPECT_EQ(step_of({.flow = "flow"}, 0).policy.attempt_timeout, 1s);
  EXPECT_EQ(step_of({.flow = "flow"}, 1).policy.attempt_timeout, 5s);
}

TEST_F(RuntimePlanBook, runs_keep_the_plan_they_were_submitted_with) {
  const auto before = book.plan_for({.handler = "charge"});
  ASSERT_TRUE(book.add_handler("charge", {.retry = policy::none}));
  EXPECT_EQ(before->plan->plan->steps[0].policy, policy::tool);
  EXPECT_EQ(step_of({.handler = "charge"}).policy, policy::none);
}

// ---- flows ----------------------------------------

TEST_F(RuntimePlanBook, a_flow_becomes_a_plan) {
  const Flow flow{
      .name = "order",
      .steps = {{.name = "list", .handler = "charge"},
                {.name = "each",
                 .handler = "refund",
                 .needs = {"list"},
                 .for_each = "list",
                 .max_parallel = 3,
                 .tolerate = 2,
                 .on_failure = OnFailure::revisit,
                 .revisit = "list",
                 .max_visits = 4,
                 .circuit_breaker = CircuitBreakerRule{.limit = 5, .tracked = {FailureClass::test_failure}}},
                {.name = "pause", .needs = {"each"}, .wait = 1h},
                {.name = "ok", .needs = {"each"}, .signal = "approved", .timeout = 2h},
                {.name = "letters", .handler = "charge", .on_failure = OnFailure::dead_letter}},
      .deadline = 24h,
      .max_parallel = 7};
  ASSERT_EQ(mistakes(flow), "");
  const auto booked = book.plan_for({.flow = "order"});
  ASSERT_TRUE(booked);
  const core::Plan& plan = *booked->plan->plan;
  EXPECT_EQ(plan.name, "order");
  EXPECT_EQ(plan.deadline, Duration{24h}.count());
  EXPECT_EQ(plan.max_parallel, 7U);
  const core::StepPlan& each = plan.steps[1];
  EXPECT_EQ(each.needs, std::vector<std::uint32_t>{0});
  EXPECT_TRUE(each.for_each);
  EXPECT_EQ(each.list_step, 0U);
  EXPECT_EQ(each.max_parallel, 3U);
  EXPECT_EQ(each.tolerate, 2U);
  EXPECT_EQ(each.revisit, 0U);
  EXPECT_EQ(each.max_visits, 4U);
  EXPECT_EQ(each.breaker_limit, 5U);
  EXPECT_EQ(each.breaker_classes, 1U << static_cast<unsigned>(FailureClass::test_failure));
  EXPECT_EQ(each.dependants, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(plan.steps[2].kind, core::StepKind::wait);
  EXPECT_EQ(plan.steps[2].wait, Duration{1h}.count());
  EXPECT_EQ(plan.steps[3].kind, core::StepKind::signal);
  EXPECT_EQ(plan.steps[3].signal, "approved");
  EXPECT_EQ(plan.steps[3].wait, Duration{2h}.count());
  EXPECT_EQ(plan.steps[4].tolerate, UINT32_MAX);

  const auto urgent = book.plan_for({.flow = "order", .deadline = 1h});
  ASSERT_TRUE(urgent);
  EXPECT_EQ(urgent->plan, booked->plan);
  EXPECT_EQ(urgent->facts->deadline, Duration{1h}.count());
}

TEST_F(RuntimePlanBook, each_mistake_is_named) {
  EXPECT_TRUE(has(mistakes(Flow{.name = "", .steps = {{.name = "a", .handler = "charge"}}}), "name of a flow"));
  EXPECT_TRUE(has(step_mistakes({}), "at least one step"));
  EXPECT_TRUE(has(step_mistakes({{.handler = "charge"}}), "a step has a name"));
  EXPECT_TRUE(
      has(step_mistakes({{.name = "a", .handler = "charge"}, {.name = "a", .handler = "charge"}}), "same name"));
  EXPECT_TRUE(has(step_mistakes({{.name = "a"}}), "exactly one of handler, wait and signal"));
  EXPECT_TRUE(
      has(step_mistakes({{.name = "a", .handler = "charge", .wait = 1s}}), "exactly one of handler, wait and signal"));
  EXPECT_TRUE(has(step_mistakes({{.name = "a", .wait = -1s}}), "not negative"));
  EXPECT_TRUE(has(step_mistakes({{.name = "a", .handler = "chrage"}}),
                  "step \"a\": there is no handler named \"chrage\"; did you mean \"charge\"?"));
  EXPECT_TRUE(has(
      step_mistakes({{.name = "first", .handler = "charge"}, {.name = "b", .handler = "charge", .needs = {"frist"}}}),
      "step \"b\": there is no step named \"frist\"; did you mean \"first\"?"));
  EXPECT_TRUE(
      has(step_mistakes({{.name = "a", .handler = "charge"}, {.name = "b", .handler = "charge", .for_each = "a"}}),
          "for_each"));
  EXPECT_TRUE(has(
      step_mistakes({{.name = "a", .handler = "charge"}, {.name = "b", .needs = {"a"}, .wait = 1s, .for_each = "a"}}),
      "for_each"));
  EXPECT_TRUE(has(step_mistakes({{.name = "a", .handler = "charge", .on_failure = OnFailure::revisit}}), "revisit"));
  EXPECT_TRUE(has(step_mistakes({{.name = "a", .handler = "charge", .revisit = "a"}}), "revisit"));
  EXPECT_TRUE(has(step_mistakes({{.name = "a", .handler = "charge", .on_failure = OnFailure::revisit, .revisit = "z"}}),
                  "no step named \"z\""));
  EXPECT_TRUE(has(step_mistakes({{.name = "a", .handler = "charge", .max_visits = 0}}), "max_visits"));
  EXPECT_TRUE(
      has(step_mistakes({{.name = "a", .handler = "charge", .circuit_breaker = CircuitBreakerRule{.limit = 0}}}),
          "circuit breaker"));
}

TEST_F(RuntimePlanBook, circles_are_shown) {
  EXPECT_TRUE(has(step_mistakes({{.name = "a", .handler = "charge", .needs = {"a"}}}), "a -> a"));
  const std::string found = step_mistakes({{.name = "a", .handler = "charge"},
                                           {.name = "b", .handler = "charge", .needs = {"a", "d"}},
                                           {.name = "c", .handler = "charge", .needs = {"b"}},
                                           {.name = "d", .handler = "charge", .needs = {"c"}}});
  EXPECT_TRUE(has(found, "b -> d -> c -> b")) << found;
}

TEST_F(RuntimePlanBook, all_mistakes_are_told_in_one_go_and_nothing_is_kept) {
  const std::string found = mistakes(Flow{.name = "bad",
                                          .steps = {{.name = "a", .handler = "nobody", .max_visits = 0},
                                                    {.name = "b", .handler = "charge", .needs = {"aa", "b"}},
                                                    {.name = "b", .wait = -1s}}});
  for (const char* const part : {"\"nobody\"", "max_visits", "\"aa\"", "same name", "not negative", "b -> b"}) {
    EXPECT_TRUE(has(found, part)) << part << " is missing in\n" << found;
  }
  EXPECT_TRUE(has(refusal({.flow = "bad"}), "no flow named"));
}

TEST_F(RuntimePlanBook, a_flow_goes_back_only_to_steps_before_it) {
  EXPECT_NE(step_mistakes({{.name = "a", .handler = "charge"},
                           {.name = "b", .handler = "charge", .on_failure = OnFailure::revisit, .revisit = "a"}}),
            "");
  EXPECT_EQ(step_mistakes(
                {{.name = "a", .handler = "charge"},
                 {.name = "b", .handler = "charge", .needs = {"a"}},
                 {.name = "c", .handler = "charge", .needs = {"b"}, .on_failure = OnFailure::revisit, .revisit = "a"},
                 {.name = "d", .handler = "charge", .on_failure = OnFailure::revisit, .revisit = "d"}}),
            "");
}

// ---- coming back ----------------------------------------

TEST_F(RuntimePlanBook, plans_of_the_store_keep_their_numbers) {
  const auto charge = book.plan_for({.handler = "charge"});
  const auto refund = book.plan_for({.handler = "refund"});
  PlanBook next{{}, core::FactsDecoder{}};
  next.restore({*refund->plan, *charge->plan});
  ASSERT_TRUE(next.add_handler("new", {}));
  ASSERT_TRUE(next.add_handler("charge", {}));
  EXPECT_EQ(next.plan_for({.handler = "charge"})->plan->number, charge->plan->number);
  EXPECT_GT(next.plan_for({.handler = "new"})->plan->number, refund->plan->number);
  EXPECT_EQ(next.plan(refund->plan->number)->body, refund->plan->body);
}

}  // namespace
}  // namespace reprise::runtime
