// What a run has for itself, and who asked for what: recorded by the real command, and told by the commands that look.
#include <gtest/gtest.h>

#include <csignal>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

namespace reprise::testing_support {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

constexpr std::string_view waits_for_go = "steps: [{id: go, signal: go}]";

TEST(FlowRunsLabels, RunsAndExecRecordThemAndRunsFindsThem) {
  FlowFolder folder;
  ASSERT_EQ(folder.run("steps: [{id: a, run: 'true'}]", {"--label", "team=a", "--label", "note=two words"}).exit_code,
            0);
  const std::string flow = folder.last_run();
  ASSERT_EQ(folder.reprise({"exec", "--label", "team=b", "--", "true"}).exit_code, 0);
  const std::string exec = folder.last_run();
  const Outcome a = folder.reprise({"runs", "label:team=a", "--format", "json"});
  EXPECT_TRUE(contains(a.out, flow) && !contains(a.out, exec)) << a.out << a.err;
  EXPECT_TRUE(contains(a.out, R"("origin":"cli","labels":{"note":"two words","team":"a"})")) << a.out;
  const Outcome words = folder.reprise({"runs", "label:\"note=two words\""});
  EXPECT_TRUE(contains(words.out, flow) && !contains(words.out, exec)) << words.out << words.err;
  EXPECT_TRUE(contains(folder.reprise({"show", flow}).out, "label     team=a\n"));
  EXPECT_TRUE(has(object_of(folder.show(exec), "labels"), "team"));
  EXPECT_EQ(text_of(object_of(folder.first("submitted"), "labels"), "team"), "b");
}

TEST(FlowRunsLabels, MistakesStartNothing) {
  FlowFolder folder;
  const Outcome run = folder.run("steps: [{id: a, run: touch ran}]", {"--label", "team"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.err, "--label expects NAME=VALUE, found team")) << run.err;
  EXPECT_EQ(folder.reprise({"exec", "--label", "two words=x", "--", "touch", "ran"}).exit_code, 125);
  EXPECT_FALSE(folder.exists("ran"));
}

TEST(FlowRunsLabels, TheTraceOfTheCallerIsRecordedIfItIsOne) {
  FlowFolder folder;
  folder.set("TRACEPARENT", "nonsense");
  ASSERT_EQ(folder.reprise({"exec", "--", "true"}).exit_code, 0);
  EXPECT_FALSE(has(folder.first("submitted"), "traceparent"));
  folder.set("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  ASSERT_EQ(folder.reprise({"exec", "--", "true"}).exit_code, 0);
  EXPECT_EQ(text_of(folder.first("submitted"), "traceparent"),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
}

TEST(FlowRunsRequests, WhoAskedTheOwnerAndWhyIsRecordedAndTold) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(waits_for_go)});
  ASSERT_TRUE(folder.wait_for_event("submitted"));
  ASSERT_EQ(folder.reprise({"pause", "@last", "--why", "maintenance"}).exit_code, 0);
  const auto paused = folder.last("paused");
  EXPECT_TRUE(contains(text_of(paused, "by"), ": reprise pause")) << text_of(paused, "by");
  EXPECT_EQ(text_of(paused, "why"), "maintenance");
  EXPECT_EQ(text_of(paused, "request").size(), 36U);
  EXPECT_TRUE(contains(folder.reprise({"show", "@last"}).out, "(reprise pause), "));
  EXPECT_EQ(text_of(object_of(folder.show(), "asked"), "why"), "maintenance");
  EXPECT_TRUE(contains(folder.reprise({"events", "@last"}).out, "(reprise pause): maintenance\n"));
  ASSERT_EQ(folder.reprise({"resume", "@last", "--why", "done"}).exit_code, 0);
  EXPECT_EQ(text_of(folder.last("resumed"), "why"), "done");
  EXPECT_TRUE(contains(folder.why(), "(reprise resume): done.")) << folder.why();
  EXPECT_FALSE(has(folder.show(), "asked") && text_of(object_of(folder.show(), "asked"), "what") == "paused");
  ASSERT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  EXPECT_TRUE(contains(text_of(folder.last("signaled"), "by"), ": reprise signal"));
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
}

TEST(FlowRunsRequests, WhoOwnsTheShardForAMomentRecordsItToo) {
  FlowFolder folder;
  ASSERT_EQ(folder.run("steps: [{id: a, run: exit 1, retry: {policy: none}, on_failure: dead_letter}]").exit_code, 0);
  ASSERT_EQ(folder.reprise({"dead-letters", "drop", "@last", "a", "--why", "known"}).exit_code, 0);
  EXPECT_EQ(text_of(folder.last("dropped"), "why"), "known");
  EXPECT_TRUE(contains(text_of(folder.last("dropped"), "by"), ": reprise dead-letters drop"));
  ASSERT_EQ(folder.run("steps: [{id: a, run: exit 1, retry: {policy: none}}]").exit_code, 1);
  EXPECT_EQ(folder.reprise({"retry", "@last", "--why", "once more"}).exit_code, 1);
  EXPECT_EQ(text_of(folder.last("reopened"), "why"), "once more");
  EXPECT_TRUE(contains(text_of(folder.last("reopened"), "by"), ": reprise retry"));
}

TEST(FlowRunsRequests, CtrlCIsAskedForByTheCommandItself) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(waits_for_go)});
  ASSERT_TRUE(folder.wait_for_event("submitted"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);
  EXPECT_TRUE(contains(text_of(folder.last("cancel_requested"), "by"), ": reprise run"));
  EXPECT_EQ(text_of(folder.last("cancel_requested"), "why"), "interrupted by SIGINT");
}

}  // namespace
}  // namespace reprise::testing_support
