// Argyll's document, run by the real command against a server of our own: only the handler's word counts, now or by webhook.
#include <gtest/gtest.h>

#include <algorithm>

#include "flow_runs/flow_run.hpp"
#include "support/loopback.hpp"
#include "support/scripted_server.hpp"

namespace reprise {
namespace {

using testing_support::Events;
using testing_support::flag_of;
using testing_support::FlowFolder;
using testing_support::has;
using testing_support::number_of;
using testing_support::object_of;
using testing_support::of_type;
using testing_support::Outcome;
using testing_support::RecordedRequest;
using testing_support::ScriptedServer;
using testing_support::story_of;
using testing_support::text_of;

// One step "work" that asks the server, with this work_config and more keys if wanted.
std::string step_for(const ScriptedServer& server, std::string_view work_config,
                     std::string_view http = "method: POST") {
  return "steps:\n  - {id: work, http: {url: '" + server.url("/work") + "', " + std::string{http} +
         "}, work_config: {" + std::string{work_config} + "}}\n";
}

// ---- its own word ----

TEST(FlowRunsArgyll, not_completed_is_tried_again_and_success_is_the_end) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work")
      .answer(200, R"({"success": false, "error": "still busy"})")
      .then(500, R"({"success": false, "error": "still busy"})")
      .then(503, R"({"success": true, "output": {"answer": 42}})");
  const Outcome outcome = folder.run(step_for(server, "max_retries: 5, backoff: 10, max_backoff: 15"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;  // success is success, whatever the status says
  EXPECT_EQ(server.requests().size(), 3U);
  const Events events = folder.events();
  const Events waits = of_type(events, "retrying");
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(number_of(waits[0], "delay_ms"), 10);
  EXPECT_EQ(number_of(waits[1], "delay_ms"), 15);
  EXPECT_EQ(text_of(folder.last("completed", "work"), "output"), R"({"answer":42})");
  EXPECT_EQ(text_of(object_of(folder.first("failed"), "error"), "message"), "still busy");
  const std::vector<RecordedRequest> requests = server.requests();
  EXPECT_EQ(requests[0].header("idempotency-key"), requests[2].header("idempotency-key"));
  EXPECT_EQ(requests[2].header("x-reprise-attempt"), "3");
}

TEST(FlowRunsArgyll, permanent_stops_at_once) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work").answer(200, R"({"success": false, "error": "never", "permanent": true})");
  EXPECT_EQ(folder.run(step_for(server, "max_retries: 5, backoff: 1")).exit_code, 1);
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(text_of(folder.last("failed"), "stop_reason"), "permanent");
  EXPECT_TRUE(flag_of(object_of(folder.last("failed"), "error"), "permanent"));
}

TEST(FlowRunsArgyll, without_a_verdict_nothing_is_tried_again) {
  ScriptedServer server;
  server.on("/unavailable").answer(503, "sorry");
  server.on("/fine").answer(200, "all is well");
  server.on("/gone").hang_up();
  server.on("/json").answer(429, testing_support::HeaderLines{{"Retry-After", "1"}}, R"({"success": "false"})");
  for (const char* const path : {"/unavailable", "/fine", "/gone", "/json"}) {
    FlowFolder folder;
    const std::size_t before = server.requests().size();
    const Outcome outcome = folder.run("steps: [{id: work, http: {url: '" + server.url(path) +
                                       "'}, work_config: {max_retries: -1, backoff: 1}}]");
    EXPECT_EQ(outcome.exit_code, 1) << path;
    EXPECT_EQ(server.requests().size() - before, 1U) << path;
    EXPECT_EQ(text_of(folder.last("failed"), "stop_reason"), "no_verdict") << path;
    EXPECT_NE(folder.why("work").find("no_verdict"), std::string::npos) << folder.why("work");
  }
}

TEST(FlowRunsArgyll, max_retries_counts_retries_and_is_none_unless_said) {
  for (const auto& [config, requests] : std::vector<std::pair<std::string, std::size_t>>{
           {"max_retries: 2, backoff: 1", 3}, {"max_retries: 0", 1}, {"backoff: 1", 1}}) {
    FlowFolder folder;
    ScriptedServer server;
    server.on("/work").answer(200, R"({"success": false, "error": "busy"})");
    EXPECT_EQ(folder.run(step_for(server, config)).exit_code, 1) << config;
    EXPECT_EQ(server.requests().size(), requests) << config;
    EXPECT_EQ(text_of(folder.last("failed"), "stop_reason"), "attempts") << config;
  }
}

TEST(FlowRunsArgyll, a_commands_word_is_json_on_its_standard_output) {
  FlowFolder folder;
  folder.program("work.sh",
                 R"sh(if [ "$REPRISE_ATTEMPT" -lt 3 ]; then echo '{"success": false, "error": "not yet"}'; exit 0; fi
echo '{"success": true, "output": "done"}'; exit 7)sh");
  const Outcome outcome = folder.run("steps: [{id: work, run: ./work.sh, work_config: {max_retries: 5, backoff: 1}}]");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(folder.count("started"), 3U);
  EXPECT_EQ(text_of(folder.last("completed"), "output"), "done");
}

TEST(FlowRunsArgyll, the_last_line_that_is_a_verdict_counts) {
  FlowFolder folder;
  folder.program("work.sh", R"sh(echo '{"success": true, "output": "too early"}'; echo '{"rows": 3}'
if [ "$REPRISE_ATTEMPT" -lt 2 ]; then echo '{"success": false, "error": "no"}'; echo "bye"; exit 0; fi
echo starting; echo '{"success": true, "output": {"rows": 4}}'; echo '["done"]')sh");
  const Outcome outcome = folder.run("steps: [{id: work, run: ./work.sh, work_config: {max_retries: 1, backoff: 1}}]");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(object_of(folder.first("failed"), "error"), "message"), "no");
  EXPECT_EQ(text_of(folder.last("completed"), "output"), R"({"rows":4})");
}

TEST(FlowRunsArgyll, a_command_that_says_nothing_has_no_verdict) {
  for (const char* const command : {"true", "echo done", "echo '[true]'", "echo '{\"success\": \"yes\"}'"}) {
    FlowFolder folder;
    folder.program("work.sh", command);
    EXPECT_EQ(folder.run("steps: [{id: work, run: ./work.sh, work_config: {max_retries: -1, backoff: 1}}]").exit_code,
              1)
        << command;
    EXPECT_EQ(folder.count("started"), 1U) << command;
    EXPECT_EQ(text_of(folder.last("failed"), "stop_reason"), "no_verdict") << command;
  }
}

TEST(FlowRunsArgyll, retry_after_is_a_floor_beside_not_completed) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work")
      .answer(200, testing_support::HeaderLines{{"Retry-After", "1"}}, R"({"success": false, "error": "busy"})")
      .then(200, R"({"success": true})");
  EXPECT_EQ(folder.run(step_for(server, "max_retries: 3, backoff: 20")).exit_code, 0);
  EXPECT_EQ(number_of(folder.first("retrying"), "delay_ms"), 1000);
  EXPECT_TRUE(flag_of(folder.first("retrying"), "floored"));
}

TEST(FlowRunsArgyll, why_speaks_of_the_handlers_verdict) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work")
      .answer(200, R"({"success": false, "error": "busy"})")
      .then(200, R"({"success": false, "error": "never", "permanent": true})");
  EXPECT_EQ(folder.run(step_for(server, "max_retries: 3, backoff: 1")).exit_code, 1);
  const std::string why = folder.why("work");
  EXPECT_NE(why.find("The handler's verdict: not completed."), std::string::npos) << why;
  EXPECT_NE(why.find("Tried again: the handler reported \"not completed\""), std::string::npos) << why;
  EXPECT_NE(why.find("the handler reported \"permanent\": true"), std::string::npos) << why;
  EXPECT_EQ(why.find("transient"), std::string::npos) << why;
  EXPECT_EQ(text_of(folder.first("retrying"), "reason"), "not_completed");
}

TEST(FlowRunsArgyll, why_names_max_retries_and_what_was_missing) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work").answer(200, R"({"success": false, "error": "busy"})");
  EXPECT_EQ(folder.run(step_for(server, "max_retries: 1, backoff: 1")).exit_code, 1);
  EXPECT_NE(folder.why("work").find("max_retries: 2 or more, under work_config of step work"), std::string::npos)
      << folder.why("work");
  server.on("/work").answer(503, "sorry");
  EXPECT_EQ(folder.run(step_for(server, "max_retries: 1, backoff: 1")).exit_code, 1);
  const std::string why = folder.why("work");
  EXPECT_NE(why.find("The handler gave no verdict"), std::string::npos) << why;
  EXPECT_EQ(why.find("transient"), std::string::npos) << why;
}

// ---- asynchronous work ----

// Whatever a worker would post: gives the status of the answer.
int post(const std::string& url, const std::string& token, const std::string& body) {
  const std::string status_line = testing_support::post(url, "Authorization: Bearer " + token, body);
  return status_line.size() > 12 ? std::stoi(status_line.substr(9, 3)) : 0;
}

int report(const RecordedRequest& request, const std::string& body) {
  return post(request.header("x-reprise-webhook-url"), request.header("x-reprise-webhook-token"), body);
}

TEST(FlowRunsArgyll, a_webhook_brings_the_end_of_what_was_accepted) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work").answer(202, "accepted");
  const auto running =
      folder.start({"run", folder.flow(step_for(server, "max_retries: 3, backoff: 1", "method: POST, async: true"))});
  ASSERT_TRUE(server.wait_for_requests(1));
  EXPECT_EQ(report(server.requests()[0], R"({"success": false, "error": "the worker fell"})"), 202);
  ASSERT_TRUE(server.wait_for_requests(2));
  EXPECT_NE(server.requests()[0].header("x-reprise-webhook-token"),
            server.requests()[1].header("x-reprise-webhook-token"));
  EXPECT_EQ(report(server.requests()[1], R"({"success": true, "output": {"rows": 3}})"), 202);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(story_of(folder.events(), "work"),
            (std::vector<std::string>{"started work#1", "handed_over work#1", "failed work#1", "retrying work#1",
                                      "started work#2", "handed_over work#2", "completed work#2"}));
  EXPECT_EQ(text_of(object_of(folder.first("failed"), "error"), "message"), "the worker fell");
  EXPECT_EQ(text_of(folder.last("completed"), "output"), R"({"rows":3})");
}

TEST(FlowRunsArgyll, a_wrong_token_changes_nothing_and_a_repetition_is_harmless) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work").answer(202, "accepted");
  const std::string document = step_for(server, "max_retries: 3, backoff: 1", "method: POST, async: true") +
                               "  - {id: hold, needs: work, signal: go}\n";
  const auto running = folder.start({"run", folder.flow(document)});
  ASSERT_TRUE(server.wait_for_requests(1));
  const RecordedRequest request = server.requests()[0];
  const std::string url = request.header("x-reprise-webhook-url");
  const std::string token = request.header("x-reprise-webhook-token");
  const int refused = post(url, std::string(token.size(), 'a'), R"({"success": false, "error": "forged"})");
  EXPECT_TRUE(refused == 401 || refused == 403) << refused;
  EXPECT_EQ(post(url + "x", token, R"({"success": false, "error": "elsewhere"})") / 100, 4);
  EXPECT_EQ(report(request, R"({"success": true, "output": "first"})"), 202);
  EXPECT_EQ(report(request, R"({"success": true, "output": "second"})"), 202);
  EXPECT_EQ(report(request, R"({"success": false, "error": "third"})"), 202);
  ASSERT_TRUE(folder.wait_for_event("completed", "work"));
  EXPECT_EQ(report(request, R"({"success": false, "error": "much later"})"), 202);
  ASSERT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.last("completed", "work"), "output"), "first");
  EXPECT_EQ(folder.count("failed"), 0U);
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_TRUE(folder.files_with(token, ".reprise").empty());  // who can read the store cannot end the work
}

TEST(FlowRunsArgyll, a_report_may_come_before_the_request_was_answered) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work").when_released().answer(202, "accepted");
  const auto running =
      folder.start({"run", folder.flow(step_for(server, "max_retries: 1, backoff: 1", "method: POST, async: true"))});
  ASSERT_TRUE(server.wait_for_requests(1));
  EXPECT_EQ(report(server.requests()[0], R"({"success": true, "output": "early"})"), 202);
  server.release();
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.last("completed"), "output"), "early");
}

TEST(FlowRunsArgyll, a_report_after_the_timeout_is_too_late) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work").answer(202, "accepted");
  const auto running = folder.start(
      {"run", folder.flow("steps:\n  - {id: work, http: {method: POST, url: '" + server.url("/work") +
                          "', async: true}, timeout: 300ms, on_failure: continue, work_config: {max_retries: 3}}\n"
                          "  - {id: hold, needs: work, signal: go}\n")});
  ASSERT_TRUE(folder.wait_for_event("failed", "work"));
  const int late = report(server.requests()[0], R"({"success": true, "output": "late"})");
  EXPECT_TRUE(late == 200 || late / 100 == 4) << late;
  ASSERT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(folder.count("completed", "work"), 0U);
  EXPECT_EQ(text_of(folder.last("failed", "work"), "stop_reason"), "no_verdict");
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(FlowRunsArgyll, work_that_is_refused_is_not_waited_for) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work").answer(503, R"({"success": false, "error": "full"})").then(500, "no");
  EXPECT_EQ(folder.run(step_for(server, "max_retries: 3, backoff: 1", "method: POST, async: true")).exit_code, 1);
  EXPECT_EQ(server.requests().size(), 2U);  // its word was heard once, and then there was none
  EXPECT_EQ(text_of(folder.last("failed"), "stop_reason"), "no_verdict");
}

TEST(FlowRunsArgyll, a_verdict_in_the_answer_to_an_async_request_is_the_end) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work")
      .answer(202, testing_support::HeaderLines{{"Retry-After", "1"}}, R"({"success": false, "error": "full"})")
      .then(202, R"({"success": true, "output": "done at once"})");
  EXPECT_EQ(folder.run(step_for(server, "max_retries: 3, backoff: 1", "method: POST, async: true")).exit_code, 0);
  EXPECT_EQ(number_of(folder.first("retrying"), "delay_ms"), 1000);
  EXPECT_EQ(text_of(folder.last("completed"), "output"), "done at once");
}

TEST(FlowRunsArgyll, a_wait_without_end_is_warned_about) {
  FlowFolder folder;
  const auto warned = [&](std::string_view http, std::string_view more) {
    return folder
        .reprise({"validate", folder.flow("steps: [{id: work, http: {url: 'http://localhost/', " + std::string{http} +
                                          "}, " + std::string{more} + "}]")})
        .err;
  };
  EXPECT_NE(warned("async: true", "retry: none").find("async and has no timeout"), std::string::npos);
  EXPECT_NE(warned("method: POST", "work_config: {}").find("has no timeout"), std::string::npos);
  EXPECT_EQ(warned("async: true", "timeout: 1h").find("has no timeout"), std::string::npos);
  EXPECT_EQ(warned("method: POST", "retry: none").find("has no timeout"), std::string::npos);
}

// ---- goals, items ----

TEST(FlowRunsArgyll, a_goal_that_failed_fails_the_flow_whatever_it_says) {
  for (const char* const rule : {"continue", "skip"}) {
    FlowFolder folder;
    const Outcome outcome = folder.run(std::string{"goals: [work]\nsteps:\n  - {id: aside, run: 'exit 1', retry: none, "
                                                   "on_failure: continue}\n  - {id: work, needs: aside, run: "
                                                   "'exit 1', retry: none, on_failure: "} +
                                       rule + "}\n");
    EXPECT_EQ(outcome.exit_code, 1) << rule;
    EXPECT_EQ(text_of(folder.show(), "status"), "failed") << rule;
  }
}

TEST(FlowRunsArgyll, a_failure_makes_goals_unreachable_and_fails_the_flow) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
dialect: argyll
goals: [last]
steps:
  - {id: first, run: "echo '{\"success\": false, \"error\": \"no\", \"permanent\": true}'", work_config: {max_retries: 4}}
  - {id: middle, needs: first, run: echo middle >> ran.txt}
  - {id: last, needs: middle, run: echo last >> ran.txt}
  - {id: aside, run: echo aside >> ran.txt}
)");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_FALSE(folder.exists("ran.txt"));  // aside is needed by no goal
  EXPECT_EQ(folder.count("unreachable"), 2U);
  EXPECT_EQ(text_of(folder.step("last"), "state"), "unreachable");
  EXPECT_EQ(text_of(folder.step("middle"), "state"), "unreachable");
  EXPECT_NE(folder.reprise({"show", "@last"}).out.find("unreachable"), std::string::npos);
}

TEST(FlowRunsArgyll, one_item_that_fails_for_good_fails_the_step) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/1").answer(200, R"({"success": true})");
  server.on("/2").answer(200, R"({"success": false, "error": "no", "permanent": true})");
  server.on("/3").answer(200, R"({"success": false, "error": "wait"})").then(200, R"({"success": true})");
  const Outcome outcome =
      folder.run("dialect: argyll\nsteps:\n  - {id: work, for_each: [1, 2, 3], http: {url: '" + server.url("/") +
                 "${item}'}, work_config: {max_retries: 2, backoff: 1, parallelism: 3}}\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(text_of(folder.step("work"), "state"), "failed");
  EXPECT_EQ(text_of(folder.last("failed", "work[1]"), "stop_reason"), "permanent");
  EXPECT_EQ(folder.count("completed", "work[0]"), 1U);
}

std::size_t most_at_once(const Events& events) {
  std::size_t running = 0;
  std::size_t most = 0;
  for (const auto& event : events) {
    const std::string type = text_of(event, "type");
    if (type == "started") most = std::max(most, ++running);
    if (type == "completed" || type == "failed") --running;
  }
  return most;
}

TEST(FlowRunsArgyll, parallelism_bounds_the_items_at_work) {
  for (const auto& [config, expected] :
       std::vector<std::pair<std::string, std::size_t>>{{"parallelism: 3", 3}, {"max_retries: 0", 1}}) {
    FlowFolder folder;
    folder.program("work.sh", R"(sleep 0.05; echo '{"success": true}')");
    const Outcome outcome = folder.run(
        "steps:\n  - {id: work, for_each: [1, 2, 3, 4, 5, 6], run: './work.sh', work_config: {" + config + "}}\n");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(most_at_once(folder.events()), expected) << config;
    EXPECT_EQ(folder.count("completed"), 6U);
  }
}

}  // namespace
}  // namespace reprise
