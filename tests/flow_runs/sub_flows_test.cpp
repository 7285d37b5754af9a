// Flows inside of flows, as runs of their own: any number at a time, stopped and timed with the attempt they work for, and found again
// after kill -9.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "flow_runs/flow_run.hpp"

namespace reprise::testing_support {
namespace {

// Says that it has begun, and ends when the file `go` is there.
constexpr std::string_view waits_for_go =
    "params: {n: 0}\n"
    "steps:\n"
    "  - id: x\n"
    "    run: 'touch began.${params.n}; until test -e go; do sleep 0.02; done; echo done ${params.n}'\n"
    "    retry: {max_attempts: 3, initial: 1ms}\n";

std::vector<boost::json::object> runs_of(const FlowFolder& folder, std::string_view flow) {
  std::vector<boost::json::object> runs;
  const std::string lines = folder.reprise({"runs", "--flow", std::string{flow}, "--format", "json"}).out;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at);
    runs.push_back(boost::json::parse(lines.substr(at, end - at)).as_object());
    at = end == std::string::npos ? end : end + 1;
  }
  return runs;
}

std::string only_run_of(const FlowFolder& folder, std::string_view flow) {
  const auto runs = runs_of(folder, flow);
  EXPECT_EQ(runs.size(), 1U) << flow;
  return runs.empty() ? "" : text_of(runs[0], "run");
}

std::string status_of(const FlowFolder& folder, std::string_view run) { return text_of(folder.show(run), "status"); }

TEST(SubFlows, MoreThanThereIsRoomForAttempts) {
  FlowFolder folder;
  folder.write("inner.yaml", "steps: [{id: x, run: 'true'}]");
  std::string items;
  for (int item = 0; item < 520; ++item) items += (item == 0 ? "" : ",") + std::to_string(item);
  const Outcome outcome = folder.run("runtime: {max_parallel: 2000}\nsteps:\n  - {id: m, for_each: [" + items +
                                     "], max_parallel: 2000, flow: inner.yaml}\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(number_of(folder.step("m"), "attempts"), 520);
}

TEST(SubFlows, ThreeDeepEachKnowsItsParent) {
  FlowFolder folder;
  folder.write("inner.yaml", "steps: [{id: x, run: echo deep}]");
  folder.write("middle.yaml", "steps: [{id: y, flow: inner.yaml}]");
  folder.write("outer.yaml", "steps: [{id: z, flow: middle.yaml}]");
  const Outcome outcome = folder.run("steps: [{id: top, flow: outer.yaml}]");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "top"), "output"), "deep");
  std::string parent = folder.last_run();
  for (const char* flow : {"outer", "middle", "inner"}) {
    const std::string child = only_run_of(folder, flow);
    EXPECT_EQ(text_of(folder.show(child), "parent"), parent) << flow;
    parent = child;
  }
  EXPECT_EQ(text_of(folder.last("handed_over", "top"), "to_run"), only_run_of(folder, "outer"));
  EXPECT_FALSE(has(folder.show(), "parent"));
}

TEST(SubFlows, KilledInTheMiddleTheyGoOnAndNoAttemptIsLost) {
  FlowFolder folder;
  folder.write("inner.yaml", waits_for_go);
  folder.write("middle.yaml", "params: {n: 0}\nsteps: [{id: y, flow: inner.yaml, params: {n: '${params.n}'}}]\n");
  const auto running = folder.start(
      {"run", folder.flow("steps:\n  - {id: m, for_each: [1, 2, 3], flow: middle.yaml, params: {n: '${item}'}}\n"
                          "  - {id: after, needs: m, run: echo after}\n")});
  for (const char* file : {"began.1", "began.2", "began.3"}) ASSERT_TRUE(folder.wait_for_file(file));
  running->signal(SIGKILL);
  EXPECT_EQ(running->join(), 128 + SIGKILL);
  folder.write("go", "");
  const Outcome resumed = folder.reprise({"resume", "@last"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(status_of(folder, folder.last_run()), "succeeded");
  EXPECT_EQ(folder.count("started", "m"), 3U) << "one attempt each";
  EXPECT_EQ(folder.count("failed", "m"), 0U);
  EXPECT_EQ(folder.count("recovered"), 1U) << "it was waiting when the engine died";
  EXPECT_EQ(text_of(folder.last("completed", "m[2]"), "output"), "done 3");
  EXPECT_EQ(runs_of(folder, "middle").size(), 3U) << "no second child";
  EXPECT_EQ(runs_of(folder, "inner").size(), 3U);
  for (const auto& inner : runs_of(folder, "inner"))
    EXPECT_EQ(of_type(folder.events(text_of(inner, "run")), "failed", "x").size(), 1U) << "the command was lost";
}

TEST(SubFlows, ACancelReachesThem) {
  FlowFolder folder;
  folder.write("inner.yaml", waits_for_go);
  folder.write("middle.yaml", "steps: [{id: y, flow: inner.yaml}]");
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, flow: middle.yaml}]")});
  ASSERT_TRUE(folder.wait_for_file("began.0"));
  EXPECT_EQ(folder.reprise({"cancel", "@last"}).exit_code, 0);
  running->join();
  EXPECT_EQ(status_of(folder, folder.last_run()), "canceled");
  for (const char* flow : {"middle", "inner"}) EXPECT_EQ(status_of(folder, only_run_of(folder, flow)), "canceled");
}

TEST(SubFlows, ACancelReachesThemWhenNobodyWorksOnThem) {
  FlowFolder folder;
  folder.write("inner.yaml", waits_for_go);
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, flow: inner.yaml}]")});
  ASSERT_TRUE(folder.wait_for_file("began.0"));
  running->signal(SIGKILL);
  running->join();
  EXPECT_EQ(folder.reprise({"cancel", "@last"}).exit_code, 0);
  EXPECT_EQ(status_of(folder, folder.last_run()), "canceled");
  EXPECT_EQ(status_of(folder, only_run_of(folder, "inner")), "canceled");
  folder.write("go", "");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), "done 0");
  EXPECT_EQ(status_of(folder, only_run_of(folder, "inner")), "succeeded") << "the same child";
}

TEST(SubFlows, OneThatIsCancelledByItselfCancelsTheFlowAroundIt) {
  FlowFolder folder;
  folder.write("inner.yaml", waits_for_go);
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, flow: inner.yaml}]")});
  ASSERT_TRUE(folder.wait_for_file("began.0"));
  EXPECT_EQ(folder.reprise({"cancel", only_run_of(folder, "inner")}).exit_code, 0);
  running->join();
  EXPECT_EQ(status_of(folder, folder.last_run()), "canceled");
  EXPECT_EQ(text_of(object_of(folder.last("failed", "a"), "error"), "class"), "canceled");
}

TEST(SubFlows, InterruptedAndResumedItIsTheSameOne) {
  FlowFolder folder;
  folder.write("inner.yaml", waits_for_go);
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, flow: inner.yaml}]")});
  ASSERT_TRUE(folder.wait_for_file("began.0"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);
  folder.write("go", "");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), "done 0");
  EXPECT_EQ(runs_of(folder, "inner").size(), 1U);
}

TEST(SubFlows, TheirTimeIsThatOfTheAttempt) {
  FlowFolder folder;
  folder.write("inner.yaml", "steps: [{id: x, run: 'echo $REPRISE_ATTEMPT >> tries; test -e go || exec sleep 60'}]");
  const Outcome outcome = folder.run(R"(
classify: [{when: TimeoutError, class: contract_failure}]
steps:
  - {id: a, flow: inner.yaml, timeout: 300ms, retry: {max_attempts: 2, initial: 1ms, jitter: none}}
)");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const auto error = object_of(folder.last("failed", "a"), "error");
  EXPECT_EQ(text_of(error, "message"), "timed out after 300ms");
  EXPECT_EQ(text_of(error, "class"), "contract_failure") << "the document's own rules say what it is";
  EXPECT_EQ(folder.count("started", "a"), 2U);
  EXPECT_EQ(status_of(folder, only_run_of(folder, "inner")), "canceled") << "it is stopped, and not only forgotten";
}

TEST(SubFlows, AnAttemptAfterOneThatTookTooLongGoesOnWithTheSameFlow) {
  FlowFolder folder;
  folder.write("inner.yaml", "steps: [{id: x, run: 'echo try >> tries; test $(wc -l < tries) = 2 || exec sleep 60'}]");
  const Outcome outcome = folder.run(R"(
steps:
  - {id: a, flow: inner.yaml, timeout: 2s, retry: {max_attempts: 2, initial: 1ms, jitter: none}}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(status_of(folder, only_run_of(folder, "inner")), "succeeded");
}

TEST(SubFlows, WhatFailedInThereIsTriedAgainWithTheNextAttempt) {
  FlowFolder folder;
  folder.write("inner.yaml", R"(
steps:
  - {id: first, run: echo first >> done.txt}
  - {id: x, needs: first, retry: none, run: 'echo try >> tries; test $(wc -l < tries) = 3 || exit 75; echo third'}
)");
  const Outcome outcome =
      folder.run("steps: [{id: a, flow: inner.yaml, retry: {max_attempts: 3, initial: 1ms, jitter: none}}]");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), "third");
  EXPECT_EQ(folder.count("started", "a"), 3U);
  EXPECT_EQ(folder.lines("done.txt").size(), 1U) << "what was done in there is not done again";
  EXPECT_EQ(runs_of(folder, "inner").size(), 1U);
}

TEST(SubFlows, APauseLetsThemEndAndStartsNothingNew) {
  FlowFolder folder;
  folder.write("inner.yaml", waits_for_go);
  const auto running = folder.start(
      {"run", folder.flow("steps: [{id: a, flow: inner.yaml}, {id: b, needs: a, run: 'echo ${steps.a.output}'}]")});
  ASSERT_TRUE(folder.wait_for_file("began.0"));
  EXPECT_EQ(folder.reprise({"pause", "@last"}).exit_code, 0);
  folder.write("go", "");
  ASSERT_TRUE(folder.wait_for_event("completed", "a"));
  EXPECT_EQ(folder.count("started", "b"), 0U);
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  EXPECT_EQ(running->join(), 0);
  EXPECT_EQ(text_of(folder.last("completed", "b"), "output"), "done 0");
}

TEST(SubFlows, TheDeadlineOfTheFlowAroundThemEndsThem) {
  FlowFolder folder;
  folder.write("inner.yaml", waits_for_go);
  const Outcome outcome = folder.run("runtime: {deadline: 400ms}\nsteps: [{id: a, flow: inner.yaml}]");
  EXPECT_NE(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(status_of(folder, folder.last_run()), "canceled");
  EXPECT_EQ(text_of(folder.last("ended"), "stop_reason"), "deadline");
  EXPECT_EQ(status_of(folder, only_run_of(folder, "inner")), "canceled");
}

TEST(SubFlows, WhatFollowsTheirFailureIsWhatTheStepSays) {
  FlowFolder folder;
  folder.write("inner.yaml", "steps: [{id: x, retry: none, run: 'echo inner trouble >&2; exit 64'}]");
  const Outcome outcome = folder.run(R"(
steps:
  - {id: skipped, flow: inner.yaml, retry: none, on_failure: continue}
  - {id: handled, flow: inner.yaml, retry: none, on_failure: {run: "echo handled ${last_error.message} > handled.txt"}}
  - {id: letter, for_each: [1, 2], flow: inner.yaml, retry: none, on_failure: dead_letter, tolerate: 2}
)");
  EXPECT_EQ(text_of(folder.step("skipped"), "state"), "failed");
  EXPECT_NE(folder.read("handled.txt").find("the flow failed: "), std::string::npos) << outcome.err;
  EXPECT_EQ(folder.count("dead_lettered", "letter"), 2U) << outcome.err;
}

TEST(SubFlows, TheirResultIsCheckedByTheAttemptThatAskedForIt) {
  FlowFolder folder;
  folder.write("inner.yaml", R"(
params: {n: 0}
steps: [{id: x, run: 'echo try.${params.n} >> tries; echo "{\"n\": $(grep -c try.${params.n} tries)}"'}]
)");
  folder.write("two.json", R"({"properties": {"n": {"const": 1}}})");
  const Outcome outcome = folder.run(R"(
steps:
  - id: a
    for_each: [1, 2]
    flow: inner.yaml
    params: {n: "${item}"}
    require: {run: echo require >> order.txt}
    check: {schema: two.json, run: "echo check >> order.txt; test -e fixed || { touch fixed; exit 1; }"}
    max_parallel: 1
    retry: {max_attempts: 2, initial: 1ms, jitter: none}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err << folder.why();
  const std::vector<std::string> order = folder.lines("order.txt");
  EXPECT_EQ(order, (std::vector<std::string>{"require", "check", "require", "check", "check"}));
  EXPECT_EQ(text_of(object_of(folder.last("failed", "a"), "error"), "class"), "contract_failure");
  EXPECT_EQ(folder.count("handed_back", "a"), 3U);
  EXPECT_EQ(folder.count("started", "a"), 3U);
  EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), "{\"n\": 1}");
}

TEST(SubFlows, ALargeResultIsStillThereWhenTheSubFlowIsNot) {
  FlowFolder folder;
  folder.write("inner.yaml", "steps: [{id: x, run: 'head -c 100000 /dev/zero | tr \"\\\\0\" x'}]");
  const auto running = folder.start({"run", folder.flow(R"(
steps:
  - {id: a, flow: inner.yaml}
  - {id: b, needs: a, signal: go}
  - {id: c, needs: b, run: "printf %s ${steps.a.output} | wc -c"}
)")});
  ASSERT_TRUE(folder.wait_for_event("completed", "a"));
  running->signal(SIGKILL);
  running->join();
  EXPECT_EQ(folder.reprise({"rm", only_run_of(folder, "inner")}).exit_code, 0);
  EXPECT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  const Outcome resumed = folder.reprise({"resume", "@last"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(text_of(folder.last("completed", "c"), "output"), "100000");
}

}  // namespace
}  // namespace reprise::testing_support
