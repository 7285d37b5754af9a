// Our own documents, run by the real command: what a step does when it gives up, fallbacks, fixes, rework, items and conditions.
#include <gtest/gtest.h>

#include "flow_runs/flow_run.hpp"

namespace reprise {
namespace {

using testing_support::Events;
using testing_support::FlowFolder;
using testing_support::number_of;
using testing_support::object_of;
using testing_support::of_type;
using testing_support::Outcome;
using testing_support::story_of;
using testing_support::text_of;

using Lines = std::vector<std::string>;

// ---- other ways to the goal ----

TEST(FlowRunsNative, an_exhausted_budget_goes_to_the_fallback_at_once) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: ask
    run: "echo 'the prompt is too long' >&2; exit 1"
    retry: {max_attempts: 5, initial: 1ms}
    fallback: {run: "echo cheap answer, because ${last_error.class}"}
  - {id: use, needs: ask, run: "echo used ${steps.ask.output}"}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(story_of(folder.events(), "ask"),
            (Lines{"started ask#1", "failed ask#1", "fallback ask#2", "started ask#2", "completed ask#2"}));
  EXPECT_EQ(text_of(folder.last("completed", "use"), "output"), "used cheap answer, because budget_exhausted");
  EXPECT_EQ(number_of(folder.step("ask"), "fallbacks"), 1);
  EXPECT_NE(folder.why("ask").find("fallback"), std::string::npos) << folder.why("ask");
}

TEST(FlowRunsNative, a_fallback_for_budgets_does_not_serve_other_failures) {
  FlowFolder folder;
  EXPECT_EQ(folder.run("steps: [{id: a, run: exit 1, retry: none, fallback: {run: echo cheap > cheap.txt}}]").exit_code,
            1);
  EXPECT_FALSE(folder.exists("cheap.txt"));
  EXPECT_EQ(folder.count("fallback"), 0U);
}

TEST(FlowRunsNative, a_fallback_for_whatever_gave_up_comes_last) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps: [{id: a, run: "echo try >> tries.txt; exit 1", retry: {max_attempts: 3, initial: 1ms}, fallback: {run: echo plan b, when: gave_up}}]
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("tries.txt").size(), 3U);
  EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), "plan b");
}

TEST(FlowRunsNative, a_fallback_that_fails_fails_the_step) {
  FlowFolder folder;
  EXPECT_EQ(folder.run("steps: [{id: a, run: exit 1, retry: none, fallback: {run: exit 9, when: gave_up}}]").exit_code,
            1);
  EXPECT_EQ(number_of(object_of(folder.last("failed", "a"), "error"), "exit_code"), 9);
}

TEST(FlowRunsNative, tests_that_fail_are_fixed_before_each_retry) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: suite
    kind: test
    run: "echo test >> order.txt; test $(grep -c fix order.txt) -ge 2 || { echo one assertion is wrong >&2; exit 1; }"
    fix: {run: "echo fix $REPRISE_LAST_ERROR >> order.txt"}
    retry: {max_attempts: 5, initial: 1ms}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("order.txt"), (Lines{"test", "fix exit 1: one assertion is wrong", "test",
                                              "fix exit 1: one assertion is wrong", "test"}));
}

TEST(FlowRunsNative, other_failures_are_not_fixed) {
  FlowFolder folder;
  folder.run(
      "steps: [{id: a, run: exit 75, kind: test, fix: {run: echo fix > fix.txt}, retry: {max_attempts: 2, initial: "
      "1ms}}]");
  EXPECT_EQ(folder.count("started"), 2U);
  EXPECT_FALSE(folder.exists("fix.txt"));
}

TEST(FlowRunsNative, an_answer_of_the_wrong_shape_is_reworked_with_the_mistake_in_hand) {
  FlowFolder folder;
  folder.write("answer.json",
               R"({"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}})");
  folder.program("answer.sh", R"sh(echo "$REPRISE_LAST_ERROR" >> told.txt
if [ -z "$REPRISE_LAST_ERROR" ]; then echo '{"total": "seven"}'; else echo '{"total": 7}'; fi)sh");
  const Outcome outcome = folder.run(R"(
steps:
  - {id: count, run: ./answer.sh, output: json, check: {schema: answer.json}, retry: {max_attempts: 3, initial: 1ms}}
  - {id: use, needs: count, run: "echo ${steps.count.output.total + 1}"}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(story_of(folder.events(), "count"), (Lines{"started count#1", "failed count#1", "retrying count#1",
                                                       "rework count#2", "started count#2", "completed count#2"}));
  EXPECT_EQ(text_of(object_of(folder.last("failed"), "error"), "class"), "contract_failure");
  ASSERT_EQ(folder.lines("told.txt").size(), 2U);
  EXPECT_NE(folder.lines("told.txt")[1].find("answer.json"), std::string::npos) << folder.read("told.txt");
  EXPECT_NE(folder.lines("told.txt")[1].find("total"), std::string::npos) << folder.read("told.txt");
  EXPECT_EQ(text_of(folder.last("completed", "use"), "output"), "8");
}

// ---- on_failure ----

struct AfterFailure {
  const char* rule;
  int exit_code;
  const char* state_of_next;
};

TEST(FlowRunsNative, on_failure_says_what_becomes_of_the_steps_that_need_it) {
  for (const AfterFailure& expected :
       {AfterFailure{"fail", 1, "unreachable"}, AfterFailure{"skip", 0, "skipped"},
        AfterFailure{"continue", 0, "succeeded"}, AfterFailure{"dead_letter", 0, "succeeded"},
        AfterFailure{"{run: 'true'}", 0, "succeeded"}, AfterFailure{"{run: 'false'}", 1, "unreachable"}}) {
    FlowFolder folder;
    const Outcome outcome =
        folder.run("steps:\n  - {id: a, run: exit 1, retry: none, on_failure: " + std::string{expected.rule} +
                   "}\n  - {id: next, needs: a, run: 'true'}\n  - {id: other, run: 'true'}\n");
    EXPECT_EQ(outcome.exit_code, expected.exit_code) << expected.rule << outcome.err;
    EXPECT_EQ(text_of(folder.step("next"), "state"), expected.state_of_next) << expected.rule;
    EXPECT_EQ(text_of(folder.step("other"), "state"), "succeeded") << expected.rule;
    EXPECT_EQ(folder.count("dead_lettered"), std::string_view{expected.rule} == "dead_letter" ? 1U : 0U);
  }
}

TEST(FlowRunsNative, the_command_of_on_failure_is_told_what_failed) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: clean
    run: "echo it is stuck >&2; exit 3"
    retry: none
    on_failure: {run: "echo ${last_error.type} ${last_error.message} ${last_error.exit_code}; echo \"$REPRISE_LAST_ERROR\""}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "clean"), "output"),
            "ExitError exit 3: it is stuck 3\nexit 3: it is stuck");
}

TEST(FlowRunsNative, goto_goes_back_and_runs_everything_between_again) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - {id: fetch, run: echo fetch >> order.txt}
  - {id: shape, needs: fetch, run: echo shape >> order.txt}
  - {id: check, needs: shape, run: "test $(grep -c fetch order.txt) = 2", retry: none, on_failure: {goto: fetch}, max_visits: 3}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.lines("order.txt"), (Lines{"fetch", "shape", "fetch", "shape"}));
  EXPECT_EQ(folder.count("revisited"), 1U);
}

// ---- items, conditions ----

TEST(FlowRunsNative, so_many_failed_items_are_tolerated_and_not_one_more) {
  for (const auto& [tolerate, exit_code] :
       std::vector<std::pair<std::string, int>>{{"3", 0}, {"30%", 0}, {"2", 1}, {"29%", 1}, {"0", 1}}) {
    FlowFolder folder;
    const Outcome outcome = folder.run(
        "steps: [{id: a, for_each: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], run: 'test ${item} -gt 3', retry: none, "
        "tolerate: " +
        tolerate + "}]");
    EXPECT_EQ(outcome.exit_code, exit_code) << tolerate << outcome.err;
  }
}

TEST(FlowRunsNative, items_come_from_a_file_a_command_an_expression_or_the_document) {
  FlowFolder folder;
  folder.write("items.json",
               R"({"items": [{"id": "a", "price": 5}, {"id": "b", "price": 15}, {"id": "c", "price": 9}]})");
  folder.write("lines.txt", "one\ntwo words\n\nthree\n");
  folder.write("items.jsonl", "{\"n\": 1}\n{\"n\": 2}\n");
  const Outcome outcome = folder.run(R"(
steps:
  - {id: by_file, for_each: {file: items.json, path: "$.items[?@.price < 10]"}, run: "echo ${item.id}-${index}"}
  - {id: by_lines, for_each: {file: lines.txt}, argv: [echo, "<${item}>"]}
  - {id: by_jsonl, for_each: {file: items.jsonl}, run: "echo ${item.n * 10}"}
  - {id: by_command, for_each: {command: "printf 'x\\ny z\\n'"}, argv: [echo, "${item}"]}
  - {id: list, run: "echo '{\"all\": [3, 1, 2]}'", output: json}
  - {id: by_value, needs: list, for_each: "${steps.list.output.all}", run: "echo got ${item}"}
  - {id: written, for_each: [red, {name: green}], argv: [echo, "${item}"]}
  - {id: none, for_each: [], run: echo never > never.txt}
  - id: sum
    needs: [by_file, by_lines, by_jsonl, by_command, by_value, written, none]
    argv: [echo, "${steps.by_file.results}", "${steps.by_lines.results}", "${steps.by_jsonl.results}", "${steps.by_command.results}",
           "${steps.by_value.results}", "${steps.none.total}"]
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "sum"), "output"),
            R"(["a-0","c-1"] ["<one>","<two words>","<three>"] ["10","20"] ["x","y z"] ["got 3","got 1","got 2"] 0)");
  EXPECT_EQ(text_of(folder.last("completed", "written[1]"), "output"), R"({"name":"green"})");
  EXPECT_EQ(text_of(folder.step("none"), "state"), "succeeded");
  EXPECT_FALSE(folder.exists("never.txt"));
}

TEST(FlowRunsNative, if_skips_a_step_and_those_that_need_it_see_it) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
params: {full: {type: boolean, default: false}}
steps:
  - {id: list, for_each: [1, 2, 3], run: "test ${item} != 2", retry: none, on_failure: continue}
  - {id: report, needs: list, if: "${steps.list.succeeded > 1}", run: "echo ${steps.list.succeeded} ok, ${steps.list.failed} not"}
  - {id: never, needs: list, if: steps.list.failed > 1 or params.full, run: "echo too many"}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "report"), "output"), "2 ok, 1 not");
  EXPECT_EQ(text_of(folder.step("never"), "state"), "skipped");
  EXPECT_EQ(folder.run(folder.read("flow.yaml"), {"--set", "full=true"}).exit_code, 0);
  EXPECT_EQ(text_of(folder.step("never"), "state"), "succeeded");
}

TEST(FlowRunsNative, finally_runs_in_any_case_and_knows_how_it_went) {
  for (const auto& [command, exit_code, status] :
       std::vector<std::tuple<std::string, int, std::string>>{{"'true'", 0, "succeeded"}, {"exit 1", 1, "failed"}}) {
    FlowFolder folder;
    const Outcome outcome =
        folder.run("steps:\n  - {id: a, run: " + command + ", retry: none}\n  - {id: b, needs: a, run: 'true'}\n" +
                   "finally:\n  - {id: tell, run: 'echo ${run.status} > told.txt'}\n");
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_EQ(folder.read("told.txt"), status + "\n");
  }
}

TEST(FlowRunsNative, outputs_are_text_lines_or_json) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - {id: text, run: "printf 'a\\nb\\n\\n'"}
  - {id: lines, run: "printf 'a b\\nc\\n'", output: lines}
  - {id: json, run: "echo '{\"deep\": {\"list\": [1, {\"x\": null}]}}'", output: json}
  - {id: bad, run: echo not json, output: json, retry: none, on_failure: continue}
  - {id: use, needs: [text, lines, json, bad], argv: [printf, "%s|", "${steps.text.output}", "${length(steps.lines.output)}",
     "${steps.lines.output[0]}", "${steps.json.output.deep.list[0]}", "${steps.json.output.deep.list[1]}", "${steps.bad.status}"]}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "use"), "output"), "a\nb|2|a b|1|{\"x\":null}|failed|");
  EXPECT_EQ(text_of(object_of(folder.last("failed", "bad"), "error"), "class"), "contract_failure");
}

TEST(FlowRunsNative, rules_of_the_document_are_asked_before_the_built_in_ones) {
  FlowFolder folder;
  folder.run(R"(
classify:
  - {when: "exit:3", class: deterministic}
  - {when: "/quota exceeded/", class: budget_exhausted}
  - {when: "exit:64", class: transient}
steps:
  - {id: three, run: exit 3, retry: &quick {max_attempts: 2, initial: 1ms}, on_failure: continue}
  - {id: quota, run: "echo quota exceeded >&2; exit 1", retry: *quick, fallback: {run: echo free of charge}}
  - {id: usage, run: exit 64, retry: *quick, on_failure: continue}
)");
  const Events events = folder.events();
  EXPECT_EQ(of_type(events, "started", "three").size(), 1U);
  EXPECT_EQ(of_type(events, "started", "usage").size(), 2U);
  EXPECT_EQ(text_of(folder.last("completed", "quota"), "output"), "free of charge");
  EXPECT_NE(folder.why("three").find("exit:3"), std::string::npos) << folder.why("three");
}

}  // namespace
}  // namespace reprise
