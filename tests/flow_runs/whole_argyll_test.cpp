// Argyll's page "Retries and Backoff" as one document with every key it has, run by the real command: what happens, when, and how it is told.
// docs/rows/argyll.md has its sentences one by one.
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

constexpr char not_completed[] = R"({"success": false, "error": "still busy"})";
constexpr char completed[] = R"({"success": true, "output": "done"})";

std::vector<double> delays_of(const Events& events, std::string_view step) {
  std::vector<double> delays;
  for (const auto& event : of_type(events, "retrying", step)) delays.push_back(number_of(event, "delay_ms"));
  return delays;
}

bool has_words(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

std::string report(const RecordedRequest& request, const std::string& body) {
  return post(request.header("x-reprise-webhook-url"), "X-Worker: 1", body);
}

TEST(WholeArgyll, EveryKeyOfItsDocument) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/reserve").answer(200, not_completed).then(503, not_completed).then(500, completed);
  server.on("/pack/a").answer(200, completed);
  server.on("/pack/b")
      .answer(200, not_completed)
      .then(200, not_completed)
      .then(200, not_completed)
      .then(200, completed);
  server.on("/pack/c").answer(200, not_completed).then(200, completed);
  server.on("/label").answer(202);
  server.on("/ship").answer(200, completed);
  const std::string post_to = "http: {method: POST, url: '" + server.url("/");
  const auto running = folder.start(
      {"run", folder.flow(
                  "dialect: argyll\nname: order\ngoals: [ship]\nsteps:\n"
                  "  - {id: reserve, timeout: 1m, " +
                  post_to +
                  "reserve'}, "
                  "work_config: {max_retries: 3, backoff: 15, max_backoff: 1000, backoff_type: fixed}}\n"
                  "  - {id: pack, needs: reserve, timeout: 1m, for_each: [a, b, c], " +
                  post_to +
                  "pack/${item}'}, "
                  "work_config: {max_retries: 3, backoff: 10, max_backoff: 25, backoff_type: linear, parallelism: 2}}\n"
                  "  - {id: label, needs: pack, timeout: 1h, " +
                  post_to +
                  "label', async: true}, "
                  "work_config: {max_retries: -1, backoff: 10, max_backoff: 30, backoff_type: exponential}}\n"
                  "  - {id: ship, needs: label, timeout: 1m, " +
                  post_to + "ship'}, work_config: {max_retries: 0}}\n")});
  for (std::size_t attempt = 0; attempt < 5; ++attempt) {  // eight requests come before it
    ASSERT_TRUE(server.wait_for_requests(11 + attempt));
    EXPECT_EQ(report(server.requests().back(), attempt < 4 ? not_completed : completed), "HTTP/1.1 202 Accepted");
  }
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");

  const Events events = folder.events();
  EXPECT_EQ(delays_of(events, "reserve"), (std::vector<double>{15, 15}));
  EXPECT_EQ(delays_of(events, "pack[0]"), (std::vector<double>{}));
  EXPECT_EQ(delays_of(events, "pack[1]"), (std::vector<double>{10, 20, 25}));
  EXPECT_EQ(delays_of(events, "pack[2]"), (std::vector<double>{10}));
  EXPECT_EQ(delays_of(events, "label"), (std::vector<double>{10, 20, 30, 30}));
  EXPECT_EQ(of_type(events, "completed").size(), 6U);
  EXPECT_EQ(
      story_of(events, "reserve"),
      (std::vector<std::string>{"started reserve#1", "failed reserve#1", "retrying reserve#1", "started reserve#2",
                                "failed reserve#2", "retrying reserve#2", "started reserve#3", "completed reserve#3"}));
  const auto retrying = of_type(events, "retrying", "reserve")[0];
  EXPECT_EQ(text_of(retrying, "reason"), "not_completed");
  const auto started = of_type(events, "started", "reserve")[1];
  EXPECT_EQ(text_of(object_of(started, "original_error"), "message"), "still busy");
  EXPECT_EQ(number_of(started, "retry_delay_ms"), 15);
  EXPECT_GE(text_of(started, "time"), text_of(retrying, "due_at")) << "never before its time";

  const std::string why = folder.why("reserve");
  EXPECT_TRUE(has_words(why, "The handler's verdict: not completed.")) << why;
  EXPECT_TRUE(has_words(why, "the handler reported \"not completed\"")) << why;
  EXPECT_TRUE(has_words(why, "15ms")) << why;
  EXPECT_FALSE(has_words(why, "transient")) << why;
}

TEST(WholeArgyll, AFailureAsideDoesNotFailTheFlow) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/aside").answer(200, R"({"success": false, "error": "no", "permanent": true})");
  server.on("/goal").answer(200, completed);
  const auto document = [&](const std::string& needs) {
    return "dialect: argyll\ngoals: [goal]\nsteps:\n  - {id: aside, timeout: 1m, http: {url: '" + server.url("/aside") +
           "'}, on_failure: continue, work_config: {max_retries: 2}}\n  - {id: goal, needs: aside, timeout: 1m, http: "
           "{url: '" +
           server.url("/goal") + "'}, work_config: {}" + needs + "}\n";
  };
  EXPECT_EQ(folder.run(document("")).exit_code, 0);
  EXPECT_EQ(text_of(folder.step("aside"), "state"), "failed");
  EXPECT_EQ(text_of(folder.last("failed", "aside"), "stop_reason"), "permanent");
}

// Killed in a wait, it waits on for the time that is left; killed while its worker is at it, it waits for the report; Ctrl-C and resume
// change nothing of either.
TEST(WholeArgyll, KilledAndInterruptedItGoesOnWhereItWas) {
  FlowFolder folder;
  ScriptedServer server;
  server.on("/work").answer(202);
  const std::string flow = folder.flow(
      "dialect: argyll\nsteps:\n  - {id: work, timeout: 1h, http: {method: POST, url: '" + server.url("/work") +
      "', async: true}, work_config: {max_retries: 2, backoff: 1500, backoff_type: fixed}}\n");
  const auto heard = [&](std::size_t request, const std::string& body) {
    return eventually([&] {
      try {
        return report(server.requests().at(request), body) == "HTTP/1.1 202 Accepted";
      } catch (const std::system_error&) {
        return false;  // nobody is there
      }
    });
  };
  auto running = folder.start({"run", flow});
  ASSERT_TRUE(folder.wait_for_event("handed_over", "work"));
  running->signal(SIGKILL);  // inside of an attempt
  EXPECT_EQ(running->join(), 128 + SIGKILL);

  running = folder.start({"resume", "@last"});
  ASSERT_TRUE(heard(0, not_completed));
  ASSERT_TRUE(folder.wait_for_event("retrying", "work"));
  running->signal(SIGKILL);  // in a wait
  EXPECT_EQ(running->join(), 128 + SIGKILL);

  running = folder.start({"resume", "@last"});
  ASSERT_TRUE(folder.wait_for_event("handed_over", "work", 2));
  ASSERT_TRUE(heard(1, not_completed));
  ASSERT_TRUE(folder.wait_for_event("retrying", "work", 2));
  running->signal(SIGINT);  // in a wait
  EXPECT_EQ(running->join(), 130);

  running = folder.start({"resume", "@last"});
  ASSERT_TRUE(folder.wait_for_event("handed_over", "work", 3));
  ASSERT_TRUE(heard(2, completed));
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");

  const Events events = folder.events();
  EXPECT_EQ(server.requests().size(), 3U) << "as many as max_retries allows, and nothing twice";
  EXPECT_EQ(of_type(events, "started", "work").size(), 3U);
  EXPECT_EQ(delays_of(events, "work"), (std::vector<double>{1500, 1500}));
  for (std::size_t retry = 0; retry < 2; ++retry)
    EXPECT_GE(text_of(of_type(events, "started", "work")[retry + 1], "time"),
              text_of(of_type(events, "retrying", "work")[retry], "due_at"));
  EXPECT_EQ(text_of(folder.last("completed"), "output"), "done");
  EXPECT_TRUE(has_words(folder.why("work"), "The handler's verdict: not completed.")) << folder.why("work");
}

}  // namespace
}  // namespace reprise::testing_support
