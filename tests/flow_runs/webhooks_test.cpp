// Work that was accepted elsewhere and is reported by webhook: it takes no room while it waits, and neither kill -9 nor Ctrl-C nor a
// restart loses it or what is reported about it.
#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <system_error>
#include <vector>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"
#include "support/loopback.hpp"
#include "support/scripted_server.hpp"

namespace reprise::testing_support {
namespace {

// As a worker would: gives the status of the answer; 0 = nobody is there.
int report(const RecordedRequest& request, const std::string& body) {
  try {
    const std::string line = post(request.header("x-reprise-webhook-url"), "X-Worker: 1", body);
    return line.size() > 12 ? std::stoi(line.substr(9, 3)) : 0;
  } catch (const std::system_error&) {
    return 0;
  }
}

// One that honours connection errors and Retry-After.
int report_until_heard(const RecordedRequest& request, const std::string& body) {
  int status = 0;
  eventually([&] { return (status = report(request, body)) != 0 && status != 503; });
  return status;
}

constexpr char done[] = R"({"success": true, "output": "done"})";

std::string async_step(const ScriptedServer& server, const std::string& more, const std::string& id = "work") {
  return "  - {id: " + id + ", http: {method: POST, url: '" + server.url("/" + id) + "', async: true}, " + more + "}\n";
}

std::string base_of(const RecordedRequest& request) {
  const std::string url = request.header("x-reprise-webhook-url");
  return url.substr(0, url.rfind('/'));
}

class Webhooks : public testing::Test {
 protected:
  Webhooks() { server.on("*").answer(202, "accepted"); }

  std::unique_ptr<Child> start(const std::string& document, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", folder.flow(document)});
    return folder.start(more);
  }
  // Until so much has been accepted, and recorded so.
  bool wait_until_outside(std::size_t how_many) {
    return server.wait_for_requests(how_many) && folder.wait_for_event("handed_over", {}, how_many);
  }
  void kill(Child& running) {
    running.signal(SIGKILL);
    EXPECT_EQ(running.join(), 128 + SIGKILL);
  }

  FlowFolder folder;
  ScriptedServer server;
};

// ---- restart ----

TEST_F(Webhooks, AReportThatCameWhileTheEngineWasDownIsSentAgainAndOneAfterTheRestartCounts) {
  const auto running = start("steps:\n" + async_step(server, "work_config: {max_retries: 0}, timeout: 1h", "early") +
                             async_step(server, "work_config: {max_retries: 0}, timeout: 1h", "later"));
  ASSERT_TRUE(wait_until_outside(2));
  kill(*running);
  const std::vector<RecordedRequest> requests = server.requests();
  EXPECT_EQ(report(requests[0], done), 0) << "nobody is there";
  const auto resumed = folder.start({"resume", "@last"});
  EXPECT_EQ(report_until_heard(requests[0], done), 202);
  EXPECT_EQ(report_until_heard(requests[1], done), 202);
  EXPECT_EQ(resumed->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(server.requests().size(), 2U) << "nothing was asked for twice";
  for (const char* const step : {"early", "later"}) {
    EXPECT_EQ(story_of(folder.events(), step), (std::vector<std::string>{std::string{"started "} + step + "#1",
                                                                         std::string{"handed_over "} + step + "#1",
                                                                         std::string{"completed "} + step + "#1"}));
    EXPECT_EQ(text_of(folder.last("completed", step), "output"), "done");
  }
}

TEST_F(Webhooks, AFailureReportedAfterTheRestartIsRetriedFromTheSamePort) {
  const auto running = start("steps:\n" + async_step(server, "work_config: {max_retries: 2, backoff: 1}, timeout: 1h"));
  ASSERT_TRUE(wait_until_outside(1));
  kill(*running);
  const auto resumed = folder.start({"resume", "@last"});
  EXPECT_EQ(report_until_heard(server.requests()[0], R"({"success": false, "error": "no"})"), 202);
  ASSERT_TRUE(server.wait_for_requests(2));
  EXPECT_EQ(base_of(server.requests()[0]), base_of(server.requests()[1]));
  EXPECT_EQ(report_until_heard(server.requests()[1], done), 202);
  EXPECT_EQ(resumed->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(folder.count("started"), 2U);
}

TEST_F(Webhooks, TheTimeThatIsLeftGoesOnAfterARestart) {
  const auto running = start("steps:\n" + async_step(server, "retry: none, timeout: 2s"));
  ASSERT_TRUE(wait_until_outside(1));
  kill(*running);
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 1);
  EXPECT_EQ(text_of(object_of(folder.last("failed"), "error"), "kind"), "timeout");
  EXPECT_EQ(folder.count("started"), 1U);
}

TEST_F(Webhooks, OneOfASubFlowIsHeardAfterARestart) {
  folder.write("inner.yaml", "steps:\n" + async_step(server, "retry: none, timeout: 1h"));
  const auto running = start("steps: [{id: outer, flow: inner.yaml}]");
  ASSERT_TRUE(server.wait_for_requests(1));
  ASSERT_TRUE(eventually([&] {
    return folder.reprise({"runs", "--flow", "inner"}).out.find("running") != std::string::npos;
  }));
  ASSERT_TRUE(folder.wait_for_event("handed_over", "outer"));
  const std::string inner = text_of(folder.last("handed_over", "outer"), "to_run");
  ASSERT_TRUE(eventually([&] { return !of_type(folder.events(inner), "handed_over").empty(); }));
  kill(*running);
  const auto resumed = folder.start({"resume", "@last"});
  EXPECT_EQ(report_until_heard(server.requests()[0], done), 202);
  EXPECT_EQ(resumed->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.last("completed", "outer"), "output"), "done");
}

TEST_F(Webhooks, CtrlCStopsItAndTheEarlierAttemptsSuccessCountsAfterResume) {
  const auto running = start("steps:\n" + async_step(server, "work_config: {max_retries: 0}, timeout: 1h"));
  ASSERT_TRUE(wait_until_outside(1));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);
  const auto resumed = folder.start({"resume", "@last"});
  ASSERT_TRUE(server.wait_for_requests(2));  // an interrupted attempt is made again
  EXPECT_EQ(base_of(server.requests()[0]), base_of(server.requests()[1]));
  EXPECT_EQ(report_until_heard(server.requests()[0], done), 202);
  EXPECT_EQ(resumed->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.last("completed"), "output"), "done");
}

// ---- no room is taken ----

TEST_F(Webhooks, MoreWaitThanThereIsRoomForAttempts) {
  constexpr std::size_t items = 600;
  std::string list;
  for (std::size_t item = 0; item < items; ++item) list += (item == 0 ? "" : ",") + std::to_string(item);
  const auto running =
      start("runtime: {max_parallel: 1000}\nsteps:\n" +
            async_step(server, "for_each: [" + list + "], max_parallel: 1000, retry: none, timeout: 1h"));
  ASSERT_TRUE(server.wait_for_requests(items));  // 512 attempts have room at a time
  ASSERT_TRUE(folder.wait_for_event("handed_over", {}, items));
  for (const RecordedRequest& request : server.requests()) ASSERT_EQ(report(request, R"({"success": true})"), 202);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(number_of(folder.step("work"), "attempts"), items);
}

// ---- late, twice, early ----

TEST_F(Webhooks, ALateSuccessIsTakenWhileTheItemWaits) {
  const auto running = start(
      "steps:\n" + async_step(server, "timeout: 300ms, retry: {max_attempts: 3, backoff: constant, initial: 1h}"));
  ASSERT_TRUE(folder.wait_for_event("retrying", "work"));
  EXPECT_EQ(report(server.requests()[0], R"({"success": false, "error": "late"})"), 202) << "it changes nothing";
  EXPECT_EQ(report(server.requests()[0], done), 202);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.last("completed"), "output"), "done");
  EXPECT_EQ(folder.count("started"), 1U);
  EXPECT_EQ(text_of(folder.step("work"), "state"), "succeeded");
  EXPECT_NE(folder.why("work").find("succeeded"), std::string::npos) << folder.why("work");
}

TEST_F(Webhooks, ALateSuccessIsTakenWhileTheNextAttemptRuns) {
  server.on("/work").answer(202).when_released().answer(202);
  const auto running = start(
      "steps:\n" + async_step(server, "timeout: 500ms, retry: {max_attempts: 2, backoff: constant, initial: 1ms}"));
  ASSERT_TRUE(server.wait_for_requests(2));
  EXPECT_EQ(report(server.requests()[0], done), 202);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.last("completed"), "output"), "done");
  EXPECT_EQ(folder.count("failed"), 1U);
}

TEST_F(Webhooks, ALateSuccessIsRefusedIfTheStepSaysSo) {
  const auto running = start("steps:\n" + async_step(server,
                                                     "late: refuse, timeout: 300ms, on_failure: continue, retry: "
                                                     "{max_attempts: 2, backoff: constant, initial: 1h}"));
  ASSERT_TRUE(folder.wait_for_event("retrying", "work"));
  EXPECT_EQ(report(server.requests()[0], done), 410);
  EXPECT_EQ(folder.count("completed"), 0U);
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);
}

TEST_F(Webhooks, SecondThoughtsOfAnAttemptCountWhenTheWorkIsDoneAfterAll) {
  const auto running =
      start("steps:\n" + async_step(server, "work_config: {max_retries: 1, backoff: 3600000, max_backoff: 3600000}"));
  ASSERT_TRUE(wait_until_outside(1));
  EXPECT_EQ(report(server.requests()[0], R"({"success": false, "error": "no"})"), 202);
  EXPECT_EQ(report(server.requests()[0], done), 202);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(Webhooks, WhatWasReportedBeatsARequestThatFailedAfterwards) {
  server.on("/work").when_released().answer(500, "crashed after its report");
  const auto running = start("steps:\n" + async_step(server, "work_config: {max_retries: 0}, timeout: 1h"));
  ASSERT_TRUE(server.wait_for_requests(1));
  EXPECT_EQ(report(server.requests()[0], done), 202);
  server.release();
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.last("completed"), "output"), "done");
}

TEST_F(Webhooks, AnEarlierVisitOfAStepHasNothingToSay) {
  server.on("/work").answer(202);
  const auto running = start("steps:\n  - {id: prep, run: 'true'}\n" +
                             async_step(server, "needs: prep, on_failure: {goto: prep}, retry: none, timeout: 1h"));
  ASSERT_TRUE(wait_until_outside(1));
  EXPECT_EQ(report(server.requests()[0], R"({"success": false, "error": "again"})"), 202);
  ASSERT_TRUE(wait_until_outside(2));
  EXPECT_EQ(report(server.requests()[0], done), 202) << "thanked for, as every repetition";
  EXPECT_EQ(folder.count("completed", "work"), 0U);
  EXPECT_EQ(report(server.requests()[1], done), 202);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
}

// ---- with the rest of a step ----

TEST_F(Webhooks, WhatIsReportedIsChecked) {
  folder.program("check.sh", "test -e fixed");
  const auto running = start("steps:\n" + async_step(server,
                                                     "check: {run: ./check.sh}, timeout: 1h, "
                                                     "retry: {max_attempts: 2, initial: 1ms}"));
  ASSERT_TRUE(wait_until_outside(1));
  EXPECT_EQ(report(server.requests()[0], done), 202);
  ASSERT_TRUE(wait_until_outside(2));
  EXPECT_EQ(text_of(object_of(folder.first("failed"), "error"), "class"), "contract_failure");
  folder.write("fixed", "");
  EXPECT_EQ(report(server.requests()[1], done), 202);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
}

TEST_F(Webhooks, AReportCountsWhileTheRunIsPaused) {
  const auto running = start("steps:\n" + async_step(server, "retry: none, timeout: 1h") +
                             "  - {id: next, needs: work, run: echo next}\n");
  ASSERT_TRUE(wait_until_outside(1));
  ASSERT_EQ(folder.reprise({"pause", "@last"}).exit_code, 0);
  EXPECT_EQ(report(server.requests()[0], done), 202);
  EXPECT_EQ(folder.count("completed", "work"), 1U);
  EXPECT_EQ(folder.count("started", "next"), 0U);
  ASSERT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
}

TEST_F(Webhooks, ADeadLetterIsMadeAgainAndItsEarlierReportCountsThen) {
  const std::string document =
      "steps:\n" + async_step(server, "for_each: [1], on_failure: dead_letter, retry: none, timeout: 300ms");
  EXPECT_EQ(folder.run(document).exit_code, 1);  // none of its items succeeded
  EXPECT_EQ(folder.count("dead_lettered"), 1U);
  server.on("/work").when_released().answer(202);
  const auto again = folder.start({"dead-letters", "retry", "@last"});
  ASSERT_TRUE(server.wait_for_requests(2));
  EXPECT_EQ(report_until_heard(server.requests()[0], done), 202);
  EXPECT_EQ(again->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.last("completed"), "output"), "done");
}

// ---- where it is reported ----

TEST_F(Webhooks, TheAddressAndTheUrlCanBeChosen) {
  const std::string place = "127.0.0.1:" + std::to_string(closed_port());
  const auto running = start("steps:\n" + async_step(server, "retry: none, timeout: 1h"),
                             {"--callback-listen", place, "--callback-url", "https://ci.example.org/reprise/"});
  ASSERT_TRUE(wait_until_outside(1));
  RecordedRequest request = server.requests()[0];
  const std::string told = request.header("x-reprise-webhook-url");
  EXPECT_EQ(base_of(request), "https://ci.example.org/reprise/v1/callbacks");
  kill(*running);
  const auto resumed = folder.start({"resume", "@last"});  // both are remembered
  const std::string passed_on = "http://" + place + "/reprise/v1/callbacks" + told.substr(told.rfind('/'));
  std::string answer;
  ASSERT_TRUE(eventually([&] {
    try {
      answer = post(passed_on, "X-Forwarded-Host: ci.example.org", done);
    } catch (const std::system_error&) {
    }
    return !answer.empty();
  }));
  EXPECT_EQ(answer, "HTTP/1.1 202 Accepted");
  EXPECT_EQ(resumed->join(), 0) << folder.read("stderr.txt");
}

TEST_F(Webhooks, AnAddressThatCannotBeIsAMistakeBeforeAnythingBegins) {
  const std::string flow = folder.flow("steps: [{id: a, run: 'touch ran'}]");
  const auto refused = [&](const std::vector<std::string>& options, std::string_view words) {
    std::vector<std::string> line{"run", flow};
    line.insert(line.end(), options.begin(), options.end());
    const Outcome outcome = folder.reprise(line);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_NE(outcome.err.find(words), std::string::npos) << outcome.err;
  };
  refused({"--callback-listen", "here"}, "--callback-listen: \"here\" is no address");
  refused({"--callback-listen", "0.0.0.0:9000"}, "add --callback-url http://HOST:9000");
  refused({"--callback-url", "https://ci.example.org"}, "--callback-url needs --callback-listen");
  refused({"--callback-listen", "127.0.0.1:9000", "--callback-url", "ci.example.org"}, "--callback-url: ");
  refused({"--callback-listen", server.place()}, "cannot listen for webhooks on " + server.place());
  EXPECT_FALSE(folder.exists("ran"));
}

TEST_F(Webhooks, AnotherProcessOfTheStoreAsksToTryAgain) {
  const auto running = start("steps:\n" + async_step(server, "retry: none, timeout: 1h"));
  ASSERT_TRUE(wait_until_outside(1));
  const std::string first = folder.last_run();
  kill(*running);
  // On the port of the first, as one with --callback-listen would be.
  const std::string url = server.requests()[0].header("x-reprise-webhook-url");
  const std::string place = url.substr(7, url.find('/', 7) - 7);
  const auto other = folder.start({"run", folder.flow("steps: [{id: hold, signal: go}]"), "--callback-listen", place});
  ASSERT_TRUE(eventually([&] { return report(server.requests()[0], done) == 503; }));
  ASSERT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  EXPECT_EQ(other->join(), 0);
  const auto resumed = folder.start({"resume", first});
  EXPECT_EQ(report_until_heard(server.requests()[0], done), 202);
  EXPECT_EQ(resumed->join(), 0) << folder.read("stderr.txt");
}

}  // namespace
}  // namespace reprise::testing_support
