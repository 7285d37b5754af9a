// Our own documents and the world outside of them: requests, signals, waits, other flows, environments and secrets.
#include <gtest/gtest.h>

#include "flow_runs/flow_run.hpp"
#include "support/scripted_server.hpp"

namespace reprise {
namespace {

using testing_support::Events;
using testing_support::flag_of;
using testing_support::FlowFolder;
using testing_support::HeaderLines;
using testing_support::number_of;
using testing_support::object_of;
using testing_support::of_type;
using testing_support::Outcome;
using testing_support::ScriptedServer;
using testing_support::text_of;

// ---- requests ----

TEST(FlowRunsOutside, retry_after_is_honoured) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/busy").answer(503, HeaderLines{{"Retry-After", "1"}}).then(200, R"({"n": 7})");
  const Outcome outcome = folder.run(
      "steps:\n  - {id: ask, http: {url: '" + server.url("/busy") +
      "'}, retry: {max_attempts: 3, initial: 1ms}}\n  - {id: use, needs: ask, run: 'echo ${steps.ask.output.n}'}\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto retrying = folder.last("retrying", "ask");
  EXPECT_GE(number_of(retrying, "delay_ms"), 1000);
  EXPECT_TRUE(flag_of(retrying, "floored"));
  const auto error = object_of(folder.first("failed"), "error");
  EXPECT_EQ(text_of(error, "kind") + " " + text_of(error, "retry_after_ms"), "throttled 1000");
  EXPECT_EQ(text_of(folder.last("completed", "use"), "output"), "7");
  EXPECT_NE(folder.why("ask").find("503"), std::string::npos) << folder.why("ask");
}

TEST(FlowRunsOutside, statuses_are_classified) {
  ScriptedServer server;
  for (const int status : {400, 401, 404, 408, 429, 500, 302})
    server.on("/" + std::to_string(status)).answer(status, "x");
  FlowFolder folder;
  const Outcome outcome =
      folder.run("steps:\n  - {id: ask, for_each: [400, 401, 404, 408, 429, 500, 302], http: {url: '" +
                 server.url("/") + "${item}'}, retry: {max_attempts: 2, initial: 1ms}, tolerate: 100%}\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Events events = folder.events();
  std::string found;
  for (const char* const item : {"ask[0]", "ask[1]", "ask[2]", "ask[3]", "ask[4]", "ask[5]", "ask[6]"}) {
    const Events failed = of_type(events, "failed", item);
    ASSERT_FALSE(failed.empty()) << item;
    found += text_of(object_of(failed[0], "error"), "http_status") + " " + std::to_string(failed.size()) + " " +
             text_of(object_of(failed[0], "error"), "class") + " " + text_of(object_of(failed[0], "error"), "kind") +
             "\n";
  }
  EXPECT_EQ(found,
            "400 1 deterministic invalid_input\n401 1 deterministic auth\n404 1 deterministic not_found\n408 2 "
            "transient timeout\n"
            "429 2 transient throttled\n500 2 transient \n302 1 deterministic \n");
}

TEST(FlowRunsOutside, of_a_page_for_people_only_the_title_is_told) {
  ScriptedServer server;
  server.on("/page").answer(
      404, "\n<!DOCTYPE HTML>\n<HTML><head><Title>Error response</Title></head><body>much</body></html>");
  server.on("/bare").answer(404, "<html><body>much</body></html>");
  server.on("/text").answer(404, "no <title>such</title> order");
  FlowFolder folder;
  const Outcome outcome =
      folder.run("steps:\n  - {id: ask, for_each: [page, bare, text], retry: {policy: none}, http: {url: '" +
                     server.url("/") + "${item}'}}\n",
                 {"--progress", "plain"});
  EXPECT_EQ(text_of(object_of(folder.last("failed", "ask[0]"), "error"), "message"), "HTTP 404: Error response");
  EXPECT_EQ(text_of(object_of(folder.last("failed", "ask[1]"), "error"), "message"), "HTTP 404");
  EXPECT_EQ(text_of(object_of(folder.last("failed", "ask[2]"), "error"), "message"),
            "HTTP 404: no <title>such</title> order");
  EXPECT_NE(outcome.err.find("    | GET " + server.url("/page") + "\n"), std::string::npos)
      << "the summary begins with what was asked for: " << outcome.err;
}

TEST(FlowRunsOutside, rules_may_look_at_the_whole_message_however_short) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/").answer(409).then(200, "ok");
  const Outcome outcome =
      folder.run("classify: [{when: '/^HTTP 409$/', class: transient}]\nsteps:\n  - {id: ask, http: {url: '" +
                 server.url("/") + "'}, retry: {max_attempts: 2, initial: 1ms}}\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(FlowRunsOutside, an_answer_must_have_the_status_and_the_shape_that_was_asked_for) {
  FlowFolder folder;
  folder.write("answer.json", R"({"type": "object", "required": ["id"]})");
  ScriptedServer server;
  server.on("/shape").answer(200, R"({"name": "x"})").then(200, R"({"id": 1})");
  server.on("/status").answer(200, "{}").then(201, "{}");
  server.on("/odd").answer(404, "none");
  const Outcome outcome = folder.run(
      "steps:\n  - {id: shape, http: {url: '" + server.url("/shape") +
      "', expect: {schema: answer.json}}, retry: &q {max_attempts: 3, initial: 1ms}}\n  - {id: status, http: {url: '" +
      server.url("/status") + "', expect: {status: 201}}, retry: *q}\n  - {id: odd, http: {url: '" +
      server.url("/odd") + "', expect: {status: [2xx, 404]}}}\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(object_of(folder.last("failed", "shape"), "error"), "class"), "contract_failure");
  EXPECT_EQ(folder.count("rework", "shape"), 1U);
  EXPECT_EQ(text_of(object_of(folder.last("failed", "status"), "error"), "class"), "contract_failure");
  EXPECT_EQ(folder.count("started", "odd"), 1U);
  EXPECT_NE(folder.log("shape", 0, 1).find("HTTP 200"), std::string::npos) << folder.log("shape", 0, 1);
}

TEST(FlowRunsOutside, what_is_sent_is_what_the_document_says) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("*").answer(200, "ok");
  const Outcome outcome = folder.run(
      "params: {who: 'a b&c'}\nsteps:\n  - id: send\n    http:\n      method: POST\n      url: '" + server.url("/to/") +
      "${params.who}?x=1'\n      headers: {X-Who: '${params.who}'}\n      body: {who: '${params.who}', n: [1, "
      "'${attempt}']}\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_EQ(server.requests().size(), 1U);
  const auto request = server.requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/to/a%20b%26c?x=1");
  EXPECT_EQ(request.header("x-who"), "a b&c");
  EXPECT_EQ(request.header("content-type"), "application/json");
  EXPECT_EQ(boost::json::parse(request.body), boost::json::parse(R"({"who": "a b&c", "n": [1, 1]})")) << request.body;
}

// ---- waiting ----

TEST(FlowRunsOutside, a_signal_from_outside_lets_the_run_go_on) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
steps:
  - {id: approve, signal: approval}
  - {id: deploy, needs: approve, run: "echo by ${steps.approve.output.by}"}
)")});
  ASSERT_TRUE(folder.wait_for_event("submitted"));
  EXPECT_EQ(folder.reprise({"signal", "@last", "something-else"}).exit_code, 4);
  const Outcome signal = folder.reprise({"signal", "@last", "approval", R"({"by": "ann"})"});
  ASSERT_EQ(signal.exit_code, 0) << signal.err;
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.last("completed", "deploy"), "output"), "by ann");
  EXPECT_EQ(text_of(folder.last("signaled"), "name"), "approval");
}

TEST(FlowRunsOutside, a_signal_that_does_not_come_in_time_fails_its_step) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - {id: approve, signal: approval, timeout: 50ms, on_failure: skip}
  - {id: deploy, needs: approve, run: echo deployed > deployed.txt}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.step("deploy"), "state"), "skipped");
  EXPECT_EQ(text_of(object_of(folder.last("failed", "approve"), "error"), "kind"), "timeout");
}

TEST(FlowRunsOutside, a_wait_is_recorded_and_passes) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
steps:
  - {id: pause, wait: 30ms}
  - {id: past, wait: 2020-01-01T00:00:00Z}
  - {id: after, needs: [pause, past], run: echo after}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.step("pause"), "state"), "succeeded");
  EXPECT_EQ(folder.count("completed", "after"), 1U);
  EXPECT_GE(number_of(folder.last("ended"), "total_elapsed_ms"), 30);
}

// ---- other flows ----

TEST(FlowRunsOutside, a_flow_runs_another_with_parameters_and_gets_its_output) {
  FlowFolder folder;
  folder.write("parts/inner.yaml", R"(
params: {version: {type: text, required: true}, times: 1}
steps:
  - id: make
    run: "pwd > where.txt; test $REPRISE_ATTEMPT = 2 || exit 1; echo made ${params.version} ${params.times}x"
    retry: {max_attempts: 2, initial: 1ms}
)");
  const Outcome outcome = folder.run(R"(
steps:
  - {id: version, run: echo 1.2.3}
  - {id: inner, needs: version, flow: parts/inner.yaml, params: {version: "${steps.version.output}", times: "${1 + 1}"}}
  - {id: after, needs: inner, run: "echo and ${steps.inner.output}"}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(folder.exists("parts/where.txt"));
  const Outcome runs = folder.reprise({"runs", "--flow", "flow", "--format", "json"});
  const auto outer = boost::json::parse(runs.out).as_object();
  const Events events = folder.events(text_of(outer, "run"));
  const Events after = of_type(events, "completed", "after");
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(text_of(after[0], "output"), "and made 1.2.3 2x");
  EXPECT_EQ(of_type(events, "started", "inner").size(), 1U);  // its retries are the inner flow's own affair
  const auto inner =
      boost::json::parse(folder.reprise({"runs", "--flow", "inner", "--format", "json"}).out).as_object();
  EXPECT_EQ(number_of(folder.step("make", text_of(inner, "run")), "attempts"), 2);
}

TEST(FlowRunsOutside, a_flow_that_fails_fails_the_step_that_ran_it) {
  FlowFolder folder;
  folder.write("inner.yaml", "steps: [{id: broken, run: 'echo inner trouble >&2; exit 64'}]");
  const Outcome outcome = folder.run("steps: [{id: outer, flow: inner.yaml, retry: none}]");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("inner trouble"), std::string::npos) << outcome.err;
}

// ---- environments and secrets ----

TEST(FlowRunsOutside, the_nearest_environment_wins_and_every_attempt_knows_its_place) {
  FlowFolder folder;
  folder.set("FROM_OUTSIDE", "outside");
  folder.set("SHADOWED", "outside");
  const Outcome outcome = folder.run(R"(
env: {SHADOWED: document, LEVEL: document}
steps:
  - id: show
    for_each: [x, y]
    max_parallel: 1
    env: {LEVEL: "step ${item}"}
    run: "echo $FROM_OUTSIDE,$SHADOWED,$LEVEL,$REPRISE_STEP,$REPRISE_ITEM,$REPRISE_ATTEMPT,$REPRISE_MAX_ATTEMPTS,\
      $REPRISE_RUN_ID,$REPRISE_IDEMPOTENCY_KEY,${env.FROM_OUTSIDE}"
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string run = folder.last_run();
  EXPECT_EQ(text_of(folder.last("completed", "show[1]"), "output"),
            "outside,document,step y,show,1,1,3," + run + "," + run + "/show/1,outside");
}

TEST(FlowRunsOutside, secrets_are_given_to_the_work_and_to_nobody_else) {
  FlowFolder folder;
  const std::string token = "s3cr3t-Tok3n-0123456789";
  const std::string key = "file-k3y-9876543210";
  folder.set("API_TOKEN", token);
  folder.write("secret/key.txt", key + "\n");
  ScriptedServer server;
  server.on("/push").answer(500, "your token is " + token).then(200, "welcome " + token);
  const Outcome outcome = folder.run(
      "secrets: {TOKEN: {env: API_TOKEN}, KEY: {file: secret/key.txt}}\nsteps:\n  - id: push\n    http: {url: '" +
      server.url("/push") + "?t=${secrets.TOKEN}', headers: {Authorization: 'Bearer ${secrets.TOKEN}'}}\n" + R"(
    retry: {max_attempts: 2, initial: 1ms}
  - id: command
    env: {KEY: "${secrets.KEY}"}
    run: "echo \"key is $KEY\"; echo \"and $KEY\" >&2; echo \"$KEY\" >> seen.txt; test $REPRISE_ATTEMPT = 2"
    retry: {max_attempts: 2, initial: 1ms}
  - {id: echoed, needs: [push, command], run: "echo ${steps.push.output} ${secrets.TOKEN}"}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(server.requests()[0].header("authorization"), "Bearer " + token);
  for (const std::string& secret : {token, key}) {
    EXPECT_EQ(outcome.out.find(secret), std::string::npos);
    EXPECT_EQ(outcome.err.find(secret), std::string::npos) << outcome.err;
    EXPECT_EQ(folder.files_with(secret, ".reprise"), std::vector<std::string>{});
  }
  EXPECT_EQ(folder.read("seen.txt"), key + "\n" + key + "\n");
  const std::string log = folder.log("command", 0, 2);
  EXPECT_NE(log.find("key is "), std::string::npos) << log;
  EXPECT_EQ(folder.log("command", 0, 2).find(key), std::string::npos);
  for (const auto& event : folder.events()) {
    EXPECT_EQ(boost::json::serialize(event).find(key), std::string::npos);
    EXPECT_EQ(boost::json::serialize(event).find(token), std::string::npos);
  }
}

TEST(FlowRunsOutside, a_secret_that_is_not_there_is_an_error_before_anything_runs) {
  FlowFolder folder;
  const Outcome outcome = folder.run(
      "secrets: {TOKEN: {env: NOT_SET_ANYWHERE}}\nsteps: [{id: a, run: 'touch ran.txt; echo ${secrets.TOKEN}'}]");
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("NOT_SET_ANYWHERE"), std::string::npos) << outcome.err;
  EXPECT_FALSE(folder.exists("ran.txt"));
}

}  // namespace
}  // namespace reprise
