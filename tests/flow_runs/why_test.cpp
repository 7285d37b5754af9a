// `reprise why` through the real command: the whole answer, with times, waits and ids replaced by what they stand for.
#include <gtest/gtest.h>

#include <regex>

#include "flow_runs/flow_run.hpp"

namespace reprise::testing_support {
namespace {

std::string without_chance(std::string text, const std::string& run) {
  for (std::size_t at = text.find(run); at != std::string::npos; at = text.find(run))
    text.replace(at, run.size(), "RUN");
  text = std::regex_replace(text, std::regex{R"([0-9-]+T[0-9:.]+Z)"}, "TIME");
  text = std::regex_replace(text, std::regex{R"((after|waited) [0-9.]+(us|ms|s)\b)"}, "$1 SOME");
  return std::regex_replace(text, std::regex{R"([0-9.]+(us|ms|s) after)"}, "SOME after");
}

TEST(FlowRunsWhy, tells_the_whole_story_of_a_run) {
  FlowFolder folder;
  folder.write("night.yaml", R"(
classify: [{when: "exit:3", class: deterministic}]
defaults: {retry: {max_attempts: 2, initial: 1ms}}
steps:
  - {id: flaky, run: "echo busy >&2; test $REPRISE_ATTEMPT = 2"}
  - {id: broken, run: "echo nothing there >&2; exit 3"}
  - {id: report, needs: [flaky, broken], run: "true"}
)");
  EXPECT_EQ(folder.reprise({"run", "night.yaml"}).exit_code, 1);
  EXPECT_EQ(without_chance(folder.why(), folder.last_run()),
            R"(Run RUN of night failed after SOME: broken failed; not reached: report.

broken: failed
  Attempt 1 failed at TIME: exit 3: nothing there.
    It is deterministic, by the rule: rule 1: exit:3.
    Given up (permanent): deterministic failures are not retried unless only_on names them.
  It failed for good after 1 attempt.
  For another outcome:
    - if it may go away by itself, give it the class transient in classify, rule 1: exit:3; then begin a new run: reprise run night.yaml
    - fix the cause and give it all its attempts again: reprise retry RUN --step broken
  Its policy (the default of the run):
    runs at most 2 times, that is 1 retry
    waits 1ms, anywhere between 0 and that
    gives up on failures that another attempt cannot mend (deterministic, budget_exhausted)

flaky: succeeded
  Attempt 1 failed at TIME: exit 1: busy.
    It is transient, by the rule: exit 1.
    Tried again: transient failures are retried; max_attempts 2 leaves 1.
    It waited SOME before attempt 2, drawn from 0s to 1ms (exponential backoff, nominal 1ms, jitter full).
  Attempt 2 succeeded, SOME after the first one began.
  Its policy (the default of the run):
    runs at most 2 times, that is 1 retry
    waits 1ms, anywhere between 0 and that
    gives up on failures that another attempt cannot mend (deterministic, budget_exhausted)
)");
  EXPECT_EQ(folder.why("report"), "report was never tried: a step that it needs has failed.\n");
}

TEST(FlowRunsWhy, stays_short_when_many_items_fail) {
  FlowFolder folder;
  folder.write("many.yaml", R"(
steps:
  - id: fetch
    for_each: {command: {run: "seq 0 199"}}
    run: "exit 9"
    retry: none
    tolerate: 100%
)");
  EXPECT_EQ(folder.reprise({"run", "many.yaml"}).exit_code, 0);
  const std::string item = R"(
  Attempt 1 failed at TIME: exit 9.
    It is transient, by the rule: exit 9.
    Given up (attempts): that was attempt 1 of max_attempts 1.
  It failed for good after 1 attempt.
)";
  EXPECT_EQ(without_chance(folder.why(), folder.last_run()),
            "Run RUN of many succeeded after SOME.\n\nfetch[0]: failed" + item + "\nfetch[1]: failed" + item +
                "\nfetch[2]: failed" + item + R"(  For another outcome:
    - allow more attempts: max_attempts: 2 or more, under retry of step fetch; then begin a new run: reprise run many.yaml
    - fix the cause and give them all their attempts again: reprise retry RUN --step fetch
  Their policy (the step's own):
    runs once and is never retried

and 197 more of fetch failed for good; ask for one: reprise why RUN 'fetch[3]'
)");
  const std::string one = without_chance(folder.why("fetch[57]"), folder.last_run());
  EXPECT_TRUE(one.starts_with("fetch[57]: failed" + item)) << one;
  EXPECT_NE(one.find("reprise retry RUN --step fetch --item 57\n"), std::string::npos) << one;
}

}  // namespace
}  // namespace reprise::testing_support
