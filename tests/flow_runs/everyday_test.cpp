// What people do around a run: choosing some of many failures, commands of several lines, large values, results without the failed ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>

#include "flow_runs/flow_run.hpp"

namespace reprise::testing_support {
namespace {

constexpr const char* push = R"(
steps:
  - id: push
    for_each: [a, b, c, d, e]
    run: test -f ok || exit ${index + 3}
    retry: {policy: none}
    tolerate: 100%
    on_failure: dead_letter
)";

class FlowRunsLetters : public testing::Test {
 protected:
  void SetUp() override { EXPECT_EQ(folder.run(push, {"--progress", "quiet"}).exit_code, 0); }
  std::vector<std::string> left() const {
    std::vector<std::string> places;
    for (const auto& letter :
         folder.shell("\"$0\" dead-letters list @last --format json").out | std::views::split('\n')) {
      const std::string_view line{letter.begin(), letter.end()};
      if (!line.empty()) places.push_back(text_of(boost::json::parse(line).as_object(), "item"));
    }
    return places;
  }
  FlowFolder folder;
};

TEST_F(FlowRunsLetters, retry_takes_several_items_and_ranges_in_one_event) {
  folder.write("ok", "");
  const Outcome outcome = folder.reprise({"retry", "@last", "--step", "push", "--item", "0", "--item", "2-3"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(left(), (std::vector<std::string>{"1", "4"}));
  EXPECT_EQ(folder.count("reopened"), 1U);
  EXPECT_EQ(text_of(folder.first("reopened"), "only"), "0[0,2-3]");
  EXPECT_EQ(number_of(folder.step("push"), "dead_letters"), 2);  // those that were healed are none any more
  EXPECT_EQ(folder.reprise({"replay", "@last"}).exit_code, 0);
}

TEST_F(FlowRunsLetters, retry_where_takes_what_the_filter_finds) {
  folder.write("ok", "");
  EXPECT_EQ(folder.reprise({"retry", "@last", "--where", "exit:4-5 step:push", "--where", "item:1-9"}).exit_code, 0);
  EXPECT_EQ(left(), (std::vector<std::string>{"0", "3", "4"}));
  const Outcome none = folder.reprise({"retry", "@last", "--where", "http:503"});
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_NE(none.err.find("no failed work matches"), std::string::npos) << none.err;
  const Outcome wrong = folder.reprise({"retry", "@last", "--where", "exti:3"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("exit"), std::string::npos) << wrong.err;
}

TEST_F(FlowRunsLetters, drop_never_takes_more_than_was_said) {
  EXPECT_EQ(folder.reprise({"dead-letters", "drop", "@last"}).exit_code, 2);
  const Outcome whole = folder.reprise({"dead-letters", "drop", "@last", "push"});
  EXPECT_EQ(whole.exit_code, 2);
  EXPECT_NE(whole.err.find("--all"), std::string::npos) << whole.err;
  const Outcome unsure = folder.reprise({"dead-letters", "drop", "@last", "push", "--all"});
  EXPECT_EQ(unsure.exit_code, 2);
  EXPECT_NE(unsure.err.find("drops 5 dead letters for good. Add --yes"), std::string::npos) << unsure.err;
  EXPECT_EQ(left().size(), 5U);
  EXPECT_EQ(folder.reprise({"dead-letters", "drop", "@last", "push[7]"}).exit_code, 4);

  EXPECT_EQ(folder.reprise({"dead-letters", "drop", "@last", "push[1,3-4]", "--yes"}).exit_code, 0);
  EXPECT_EQ(left(), (std::vector<std::string>{"0", "2"}));
  EXPECT_EQ(folder.reprise({"dead-letters", "drop", "@last", "push[1]"}).exit_code, 4);
  EXPECT_EQ(folder.reprise({"dead-letters", "drop", "@last", "exit:3"}).exit_code, 0);
  EXPECT_EQ(folder.reprise({"dead-letters", "drop", "@last", "push", "--all"}).exit_code, 0);  // one needs no question
  EXPECT_EQ(left(), std::vector<std::string>{});
}

TEST_F(FlowRunsLetters, retry_of_dead_letters_takes_places_and_filters) {
  folder.write("ok", "");
  EXPECT_EQ(folder.reprise({"dead-letters", "retry", "@last", "push"}).exit_code, 2);
  EXPECT_EQ(folder.reprise({"dead-letters", "retry", "@last", "push[0]", "push[2-3]", "exit:3,5"}).exit_code, 0);
  EXPECT_EQ(left(), (std::vector<std::string>{"1", "3", "4"}));
  EXPECT_EQ(folder.reprise({"dead-letters", "retry", "@last", "push", "--all"}).exit_code, 0);
  EXPECT_EQ(left(), std::vector<std::string>{});
}

// ---- the shell's habits ----------------------------------------

TEST(FlowRunsSeveralLines, stop_at_the_first_that_fails) {
  const FlowFolder folder;
  EXPECT_EQ(folder.run("steps:\n  - id: a\n    retry: none\n    run: |\n      false\n      touch done\n").exit_code, 1);
  EXPECT_FALSE(folder.exists("done"));
  EXPECT_EQ(folder.run("steps: [{id: a, retry: none, run: \"false; touch one_line\"}]").exit_code, 0);
  EXPECT_TRUE(folder.exists("one_line"));
}

TEST(FlowRunsShell, is_chosen_by_the_step_and_reads_the_script_from_a_file) {
  const FlowFolder folder;
  const Outcome outcome = folder.run(R"(
params: {who: "it's", list: [1, two]}
steps:
  - id: py
    shell: python3
    run: |
      import os
      open('py.txt', 'w').write(${params.who} + str(len(${params.list})))
  - id: sh
    shell: [bash, -euo, pipefail, "{}", extra]
    run: |
      set -o | grep -q 'pipefail.*on'
      echo ${params.who} "$1" > sh.txt
  - id: broken
    shell: bash -euo pipefail
    retry: none
    on_failure: continue
    run: |
      false | true
      touch never
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.read("py.txt"), "it's2");
  EXPECT_EQ(folder.read("sh.txt"), "it's extra\n");
  EXPECT_FALSE(folder.exists("never"));
  EXPECT_EQ(folder.shell("find .reprise -name '*.script'").out, "");
}

TEST(FlowRunsStdin, is_text_as_it_is_and_values_as_json_of_any_size) {
  const FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - {id: make, for_each: {command: "seq 1 3"}, run: "head -c 60000 /dev/zero | tr '\\0' x"}
  - {id: count, needs: [make], stdin: "${steps.make.results}", run: "wc -c > count.txt"}
  - {id: text, stdin: "a\nb\n", argv: [sh, -c, "cat > text.txt"]}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(std::stoul(folder.read("count.txt")), 3U * 60'002U + 4U);
  EXPECT_EQ(folder.read("text.txt"), "a\nb\n");
  EXPECT_EQ(folder.shell("find .reprise -name '*.stdin'").out, "");
}

TEST(FlowRunsArguments, that_are_too_long_are_the_documents_mistake) {
  const FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - {id: make, run: "head -c 200000 /dev/zero | tr '\\0' x"}
  - {id: use, needs: [make], argv: [echo, "${steps.make.output}"]}
)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(folder.count("started", "use"), 1U);
  EXPECT_EQ(text_of(object_of(folder.last("failed", "use"), "error"), "class"), "deterministic");
}

TEST(FlowRunsResults, have_only_those_that_succeeded_and_outcomes_tell_of_all) {
  const FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - id: m
    for_each: [{id: x, n: 1}, {id: y, n: 2}, {id: z, n: 3}]
    run: "test ${item.n} != 2 && echo r${item.n}"
    retry: none
    on_failure: dead_letter
  - {id: a, needs: [m], run: "printf '%s|' ${words(steps.m.results)} > words.txt; echo ${steps.m.results} > results.txt"}
  - {id: b, needs: [m], argv: [sh, -c, 'printf "%s|" "$@" > argv.txt', sh, "${words(steps.m.results)}", end]}
  - {id: c, needs: [m], stdin: "${steps.m.outcomes}", run: "cat > outcomes.json"}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.read("words.txt"), "r1|r3|");
  EXPECT_EQ(folder.read("argv.txt"), "r1|r3|end|");
  EXPECT_EQ(folder.read("results.txt"), "[\"r1\",\"r3\"]\n");
  const auto outcomes = boost::json::parse(folder.read("outcomes.json")).as_array();
  ASSERT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(text_of(outcomes[0].as_object(), "status") + text_of(outcomes[0].as_object(), "label"), "succeededx");
  EXPECT_EQ(text_of(outcomes[0].as_object(), "result"), "r1");
  EXPECT_EQ(text_of(outcomes[1].as_object(), "status") + text_of(outcomes[1].as_object(), "label"), "failedy");
  EXPECT_TRUE(has(object_of(outcomes[1].as_object(), "failure"), "class"));
  EXPECT_EQ(number_of(object_of(outcomes[1].as_object(), "item"), "n"), 2);
}

// ---- exec ----------------------------------------

TEST(FlowRunsExec, a_constant_wait_that_was_named_is_that_wait) {
  const FlowFolder folder;
  folder.reprise({"exec", "--max-attempts", "2", "--backoff", "constant:20ms", "--", "false"});
  EXPECT_EQ(number_of(folder.first("retrying"), "delay_ms"), 20);
  folder.reprise({"exec", "--max-attempts", "2", "--backoff", "constant:20ms", "--jitter", "full", "--", "false"});
  EXPECT_EQ(number_of(folder.first("retrying"), "min_ms"), 0);
}

TEST(FlowRunsExec, retries_are_told_as_attempts) {
  const FlowFolder folder;
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"--retries", "5"}, {"--retries=5"}, {"--retry", "5"}}) {
    std::vector<std::string> arguments{"exec"};
    arguments.insert(arguments.end(), words.begin(), words.end());
    arguments.insert(arguments.end(), {"--", "true"});
    const Outcome outcome = folder.reprise(arguments);
    EXPECT_EQ(outcome.exit_code, 125);
    EXPECT_NE(outcome.err.find("--max-attempts 6"), std::string::npos) << outcome.err;
  }
}

TEST(FlowRunsExec, tells_a_failure_once_in_at_most_five_lines) {
  const FlowFolder folder;
  const Outcome outcome =
      folder.reprise({"exec", "--backoff", "constant:1ms", "--progress", "plain", "--", "sh", "-c", "exit 7"});
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 5) << outcome.err;
  const Outcome quiet =
      folder.reprise({"exec", "--backoff", "constant:1ms", "--progress", "quiet", "--", "sh", "-c", "exit 7"});
  EXPECT_EQ(quiet.err, "reprise: failed: command exhausted all 3 attempts: exit 7\n");
}

TEST(FlowRunsExec, stream_shows_each_attempts_output_and_final_only_that_of_the_last) {
  const FlowFolder folder;
  const std::vector<std::string> work{
      "--backoff", "constant:1ms", "--", "sh", "-c", "echo try $REPRISE_ATTEMPT; test $REPRISE_ATTEMPT = 2"};
  std::vector<std::string> stream{"exec", "--stdout", "stream"};
  std::vector<std::string> last{"exec"};
  stream.insert(stream.end(), work.begin(), work.end());
  last.insert(last.end(), work.begin(), work.end());
  EXPECT_EQ(folder.reprise(stream).out, "try 1\ntry 2\n");
  EXPECT_EQ(folder.reprise(last).out, "try 2\n");
  // The same key finds the run that has ended: nothing was streamed here, so its result is given.
  stream.insert(stream.begin() + 1, {"--id", "k"});
  EXPECT_EQ(folder.reprise(stream).out, "try 1\ntry 2\n");
  EXPECT_EQ(folder.reprise(stream).out, "try 2\n");
}

// ---- map ----------------------------------------

TEST(FlowRunsMap, runs_the_command_for_each_line_and_passes_results_on) {
  const FlowFolder folder;
  const Outcome outcome =
      folder.shell("printf 'a b\\n\\nc'\"'\"'d\\r\\n$(x)\\n' | \"$0\" map -j1 -- printf '%s|%s|${y}\\n' '{#}' '<{}>'");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "1|<a b>|${y}\n2|<c'd>|${y}\n3|<$(x)>|${y}\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(folder.shell("seq 3 | \"$0\" map -j1 -- echo n").out, "n 1\nn 2\nn 3\n");  // appended when it is absent
  EXPECT_EQ(folder.shell("printf 'x\\ny\\0z\\0' | \"$0\" map -j1 -0 -- printf '[%s]\\n'").out, "[x\ny]\n[z]\n");
  EXPECT_EQ(folder.shell("\"$0\" map -- false </dev/null").exit_code, 0);
}

TEST(FlowRunsExec, a_stream_that_nobody_takes_ends_the_command) {
  const FlowFolder folder;
  const Outcome full = folder.shell("\"$0\" exec --stdout stream -- echo hi >/dev/full");
  EXPECT_EQ(full.exit_code, 125);
  EXPECT_NE(full.err.find("cannot write to standard output: No space left on device"), std::string::npos) << full.err;
  const Outcome closed = folder.shell("{ \"$0\" exec --stdout stream -- yes; echo $? >code; } | head -1");
  EXPECT_EQ(closed.out, "y\n");
  EXPECT_EQ(folder.lines("code"), std::vector<std::string>{"141"});
}

TEST(FlowRunsMap, the_same_key_after_an_interrupt_gives_every_result) {
  FlowFolder folder;
  folder.write("in", "1\n2\n3\n");
  folder.program("work.sh", "touch began.$1; until [ $1 = 1 ] || [ -e go ]; do sleep 0.02; done; echo done $1");
  const std::vector<std::string> command{"map",    "-j1",  "--id", "k", "--file", folder.path_of("in"), "--",
                                         "./work.sh"};
  const auto running = folder.start(command);
  ASSERT_TRUE(folder.wait_for_file("began.2"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);
  folder.write("go", "");
  for (int again = 0; again < 2; ++again) {
    const Outcome whole = folder.reprise(command);
    EXPECT_EQ(whole.exit_code, 0) << whole.err;
    EXPECT_EQ(whole.out, "done 1\ndone 2\ndone 3\n");
  }
}

TEST(FlowRunsMap, reads_json_and_fields) {
  const FlowFolder folder;
  folder.write("in.jsonl", "{\"id\": 7, \"at\": {\"city\": \"ulm\"}}\n{\"id\": 8, \"at\": {\"city\": null}}\n");
  EXPECT_EQ(
      folder.reprise({"map", "-j1", "--file", folder.path_of("in.jsonl"), "--", "echo", "{.id}:{.at.city}:{.}"}).out,
      "7:ulm:{.}\n8::{.}\n");
  EXPECT_EQ(folder.reprise({"map", "-j1", "--json", "--", "echo", "{}"}, "[1, \"two\", {\"a\": 1}]").out,
            "1\ntwo\n{\"a\":1}\n");
  const Outcome wrong = folder.reprise({"map", "--json", "--", "echo"}, "{\"a\": 1}\nnot json\n");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find("item 2 of the input is not JSON"), std::string::npos) << wrong.err;
}

TEST(FlowRunsMap, retries_fails_with_1_and_can_be_retried) {
  const FlowFolder folder;
  folder.program("work.sh", "echo $1 >> tried; test -f ok || test $1 != 2; echo done $1");
  const Outcome outcome =
      folder.shell("seq 3 | \"$0\" map -j2 --max-attempts 2 --backoff constant:1ms -- sh -ec '. ./work.sh' sh");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(std::ranges::count(folder.lines("tried"), "2"), 2);
  EXPECT_NE(outcome.err.find("reprise failures "), std::string::npos) << outcome.err;
  folder.write("ok", "");
  EXPECT_EQ(folder.reprise({"retry", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.lines("tried").size(), 5U);
  const Outcome quiet = folder.shell("seq 3 | \"$0\" map --max-attempts 1 --progress quiet -- test 2 !=");
  EXPECT_EQ(quiet.exit_code, 1);
  EXPECT_EQ(quiet.err, "reprise: 1 of 3 items failed for good\n");
}

TEST(FlowRunsMap, output_of_any_size_comes_whole_and_in_one_piece) {
  const FlowFolder folder;
  const Outcome outcome =
      folder.shell("printf 'a\\nb\\n' | \"$0\" map -j2 -- sh -c 'head -c 300000 /dev/zero | tr \"\\0\" $1' sh");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.size(), 600'002U);
  EXPECT_NE(outcome.out.find(std::string(300'000, 'a') + "\n"), std::string::npos);
  EXPECT_NE(outcome.out.find(std::string(300'000, 'b') + "\n"), std::string::npos);
}

TEST(FlowRunsMap, the_policy_is_checked_as_for_exec_and_the_key_finds_the_run) {
  const FlowFolder folder;
  EXPECT_EQ(folder.reprise({"map", "--retries", "2", "--", "true"}, "x\n").exit_code, 2);
  EXPECT_EQ(folder.reprise({"map", "--backoff", "sideways", "--", "true"}, "x\n").exit_code, 2);
  folder.write("p.json", R"({"stop": {"max_attempts": 2}})");
  EXPECT_EQ(
      folder.reprise({"map", "--policy", folder.path_of("p.json"), "--from", "azolla", "--", "false"}, "x\n").exit_code,
      2);
  folder.write("p.json", R"({"max_attempts": 2, "initial": "1ms"})");
  EXPECT_EQ(folder.reprise({"map", "--policy", folder.path_of("p.json"), "--", "false"}, "x\n").exit_code, 1);
  EXPECT_EQ(folder.count("started"), 2U);
  EXPECT_EQ(folder.reprise({"map", "--id", "k", "--", "echo"}, "x\n").out, "x\n");
  EXPECT_EQ(folder.reprise({"map", "--id", "k", "--", "echo"}, "y\n").exit_code, 3);  // other items are other work
}

// ---- failures and output ----------------------------------------

constexpr const char* two_causes = R"(
steps:
  - id: fetch
    for_each: [{name: ulm, n: 1}, {name: bonn, n: 2}, {name: kiel, n: 2}, {name: trier, n: 0}]
    label: city ${item.name}
    run: |
      echo "asking for ${item.name}"
      test ${item.n} != 1 || { echo "disk full" >&2; exit 3; }
      test ${item.n} != 2 || { echo "connection reset" >&2; exit 4; }
    retry: none
    on_failure: dead_letter
)";

TEST(FlowRunsFailures, are_grouped_by_cause_with_labels_and_commands_that_work) {
  const FlowFolder folder;
  folder.run(two_causes);
  const Outcome outcome = folder.reprise({"failures"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("3 failed for 2 causes\n\n2 × fetch: exit 4: connection reset (transient"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("  items: 1 city bonn, 2 city kiel\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1 × fetch: exit 3: disk full"), std::string::npos) << outcome.out;
  EXPECT_EQ(folder.reprise({"failures", "label:KIEL"}).out.find("2 × fetch"), std::string::npos);
  // The commands of the first group, as they stand there.
  const std::size_t at = outcome.out.find("drop:  reprise ");
  const std::string drop = outcome.out.substr(at + 15, outcome.out.find('\n', at) - at - 15);
  EXPECT_EQ(folder.shell("\"$0\" " + drop + " --yes").exit_code, 0);
  EXPECT_EQ(number_of(folder.step("fetch"), "dead_letters"), 1);
}

TEST(FlowRunsOutput, comes_line_by_line_with_step_item_and_label) {
  const FlowFolder folder;
  const Outcome outcome = folder.run(two_causes, {"--output-logs", "--progress", "quiet"});
  EXPECT_NE(outcome.err.find("fetch[0] city ulm | asking for ulm\n"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("fetch[0] city ulm | disk full\n"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("fetch[3] city trier | asking for trier\n"), std::string::npos) << outcome.err;
  const Outcome followed = folder.reprise({"logs", "@last", "fetch[2]", "--follow"});  // it has ended: all of it
  EXPECT_EQ(followed.exit_code, 0) << followed.err;
  EXPECT_EQ(followed.out, "fetch[2] city kiel | asking for kiel\nfetch[2] city kiel | connection reset\n");
}

TEST(FlowRunsOutput, is_followed_while_the_run_goes_on) {
  const FlowFolder folder;
  auto running = folder.start(
      {"run", folder.flow("steps: [{id: a, run: 'echo one; while test ! -e go; do sleep 0.01; done; echo two'}]")});
  ASSERT_TRUE(folder.wait_for_event("started", "a"));
  auto follower = std::make_unique<Child>(
      std::vector<std::string>{"/usr/bin/env", "-C", folder.path(), REPRISE_COMMAND, "logs", "@last", "-f"});
  ASSERT_TRUE(follower->wait_for("a | one", std::chrono::seconds{60})) << follower->said();
  folder.write("go", "");
  EXPECT_EQ(running->join(), 0);
  EXPECT_TRUE(follower->wait_for("a | two", std::chrono::seconds{60})) << follower->said();
  EXPECT_EQ(follower->join(), 0);
}

}  // namespace
}  // namespace reprise::testing_support
