// Wave's document as a whole: every key of it in one flow, run with failures, killed inside an attempt and in a wait, interrupted and resumed.
// What is expected is what its page says (docs/rows/wave.md); where that is silent, docs/reference.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "flow_runs/flow_run.hpp"
#include "support/scripted_server.hpp"

namespace reprise::testing_support {
namespace {

std::vector<double> delays_of(const Events& events, std::string_view step) {
  std::vector<double> delays;
  for (const auto& event : of_type(events, "retrying", step)) delays.push_back(number_of(event, "delay_ms"));
  return delays;
}

const boost::json::object& error_of(const boost::json::object& event) { return object_of(event, "error"); }

// Each call of a step is one line in its file, whatever became of the attempt: `calls NAME` is the number of this one.
constexpr const char* calls = R"(echo call >> "$1.calls"; wc -l < "$1.calls" | tr -d ' ')";

// A transient failure, a call to be killed in, another failure whose wait is to be killed in, calls to be interrupted in until `go` is there.
constexpr const char* fetch = R"(case $(calls fetch) in
1|3) echo 'API 429: too many requests' >&2; exit 1;;
2) touch fetch.first; exec sleep 600;;
*) [ -e go ] || { touch fetch.second; exec sleep 600; };;
esac
echo fetched)";

// A test run in which another test fails each time.
constexpr const char* implement = R"(n=$(calls implement)
[ "$n" -lt 5 ] || { echo ok; exit 0; }
printf -- '--- FAIL: TestPart%s (0.00s)\nFAIL\nFAIL\texample.org/part\t0.003s\n' "$n"; exit 1)";

// A result of the wrong shape, and the right one for who reads what was wrong.
constexpr const char* analyze = R"(calls analyze > /dev/null
case "$REPRISE_LAST_ERROR" in *"expected an integer"*) echo '{"risk": 3}';; *) echo '{"risk": "high"}';; esac)";

constexpr const char* document = R"(
dialect: wave
runtime:
  circuit_breaker:
    limit: 3
    tracked_classes: [deterministic, contract_failure, test_failure]
  stall_timeout: 1800s
  max_visits: 4
steps:
  - id: fetch
    run: fetch
    retry:
      policy: aggressive        # 5 attempts, fast backoff
  - id: implement
    needs: fetch
    run: implement
    kind: test
    fix: {run: 'echo ${last_error.failing} >> fixes.txt'}
    retry:
      policy: standard          # 3 attempts, balanced
      max_attempts: 5           # override: more attempts than default
      base_delay: 10ms
      max_delay: 30ms
  - id: analyze
    needs: implement
    run: analyze
    output: json
    check: {schema: risk.json}
    retry:
      policy: patient           # 3 attempts, slow backoff
      base_delay: 5ms
      backoff: linear
  - id: summarize
    needs: analyze
    run: 'calls summarize > /dev/null; echo "Context window exceeded" >&2; exit 1'
    fallback: {run: echo a shorter summary}
    retry: {policy: standard, base_delay: 1ms, factor: 3}
  - id: publish
    needs: summarize
    run: 'calls publish > /dev/null; echo "Invalid API key" >&2; exit 1'
    retry: {policy: aggressive}
    on_failure: continue
  - id: announce
    needs: publish
    run: 'calls announce > /dev/null; echo "service unavailable" >&2; exit 1'
    retry: {policy: none}
    on_failure: continue
)";

class WholeWave : public ::testing::Test {
 protected:
  WholeWave() {
    folder_.program("calls", calls);
    folder_.program("fetch", fetch);
    folder_.program("implement", implement);
    folder_.program("analyze", analyze);
    folder_.write("risk.json", R"({"type": "object", "properties": {"risk": {"type": "integer"}}})");
  }

  std::size_t calls_of(std::string_view step) const { return folder_.lines(std::string{step} + ".calls").size(); }

  FlowFolder folder_;
};

TEST_F(WholeWave, EveryKeyOfItsDocumentThroughKillsAndInterrupts) {
  auto running = folder_.start({"run", folder_.flow(document)});
  ASSERT_TRUE(folder_.wait_for_file("fetch.first"));
  running->signal(SIGKILL);  // inside an attempt
  running->join();

  running = folder_.start({"resume", "@last"});
  ASSERT_TRUE(folder_.wait_for_event("retrying", "fetch", 3));  // the second is that of the loss
  running->signal(SIGKILL);                                     // in a wait, or just behind it
  running->join();
  std::filesystem::remove(folder_.path_of("fetch.second"));

  running = folder_.start({"resume", "@last"});
  ASSERT_TRUE(folder_.wait_for_file("fetch.second"));
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);

  folder_.write("go", "");
  const Outcome outcome = folder_.reprise({"resume", "@last"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Events events = folder_.events();
  EXPECT_EQ(text_of(folder_.last("ended"), "status"), "succeeded");

  // aggressive: 5 attempts, 200 ms, doubled; what was lost and interrupted costs none and has no wait of the policy
  EXPECT_GE(calls_of("fetch"), 5U);
  std::vector<double> waited = delays_of(events, "fetch");
  std::erase(waited, 0);
  EXPECT_EQ(std::vector<double>(waited.begin(), waited.begin() + 2), (std::vector<double>{200, 400}));
  EXPECT_EQ(text_of(error_of(folder_.first("failed", "fetch")), "class"), "transient");
  EXPECT_EQ(text_of(error_of(folder_.first("failed", "fetch")), "kind"), "throttled");
  // standard with more attempts: other tests each time do not open the breaker; the fix was told which
  EXPECT_EQ(calls_of("implement"), 5U);
  EXPECT_EQ(delays_of(events, "implement"), (std::vector<double>{10, 20, 30, 30}));
  EXPECT_EQ(folder_.lines("fixes.txt").size(), 4U);
  EXPECT_NE(folder_.read("fixes.txt").find("TestPart4"), std::string::npos);
  EXPECT_EQ(of_type(events, "circuit_opened").size(), 0U);
  // contract_failure: rework
  EXPECT_EQ(calls_of("analyze"), 2U);
  EXPECT_EQ(of_type(events, "rework", "analyze").size(), 1U);
  EXPECT_EQ(delays_of(events, "analyze"), (std::vector<double>{5}));
  // budget_exhausted: the fallback; deterministic: no retry; none: one attempt
  EXPECT_EQ(calls_of("summarize"), 1U);
  EXPECT_EQ(text_of(error_of(folder_.first("failed", "summarize")), "class"), "budget_exhausted");
  EXPECT_EQ(text_of(folder_.last("completed", "summarize"), "output"), "a shorter summary");
  EXPECT_EQ(calls_of("publish"), 1U);
  EXPECT_EQ(text_of(folder_.last("failed", "publish"), "stop_reason"), "permanent");
  EXPECT_EQ(calls_of("announce"), 1U);
  EXPECT_EQ(text_of(folder_.last("failed", "announce"), "stop_reason"), "attempts");

  const std::string why = folder_.why();
  for (const char* words : {"API 429", "TestPart4", "expected an integer", "Context window", "Invalid API key"})
    EXPECT_NE(why.find(words), std::string::npos) << words << "\n" << why;
}

TEST_F(WholeWave, ItsOwnExampleAsItStandsThereWithVerbs) {
  const Outcome outcome = folder_.run(R"(
dialect: wave
steps:
  - id: fetch
    run: test $(calls fetch) = 3
    retry:
      policy: aggressive        # 5 attempts, fast backoff

  - id: implement
    run: test $(calls implement) = 2
    retry:
      policy: standard          # 3 attempts, balanced
      max_attempts: 5           # override: more attempts than default

  - id: analyze
    run: calls analyze
    retry:
      policy: patient           # 3 attempts, slow backoff
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(delays_of(folder_.events(), "fetch"), (std::vector<double>{200, 400}));
  EXPECT_EQ(delays_of(folder_.events(), "implement"), (std::vector<double>{1000}));
  const std::string plan = folder_.reprise({"run", "--dry-run", folder_.path_of("flow.yaml")}).out;
  for (const char* words : {"runs at most 5 times", "runs at most 3 times", "watchdog   stopped after 30m"})
    EXPECT_NE(plan.find(words), std::string::npos) << words << "\n" << plan;
}

TEST_F(WholeWave, TheSameFailureEndsTheStepAlsoAcrossAKill) {
  folder_.program("suite", R"(n=$(calls suite); printf -- '--- FAIL: TestOne (0.0%ss)\nFAIL\n' "$n"; exit 1)");
  auto running = folder_.start({"run", folder_.flow(R"(
dialect: wave
runtime:
  circuit_breaker:
    limit: 3
    tracked_classes: [deterministic, contract_failure, test_failure]
steps:
  - {id: suite, kind: test, run: suite, retry: {policy: patient, max_attempts: 8, base_delay: 300ms, factor: 1}}
)")});
  ASSERT_TRUE(folder_.wait_for_event("retrying", "suite", 2));
  running->signal(SIGKILL);
  running->join();
  EXPECT_EQ(folder_.reprise({"resume", "@last"}).exit_code, 1);
  EXPECT_GE(calls_of("suite"), 3U);
  EXPECT_EQ(folder_.count("circuit_opened", "suite"), 1U);
  EXPECT_EQ(text_of(folder_.last("failed", "suite"), "stop_reason"), "circuit_open");
  EXPECT_NE(folder_.why("suite").find("circuit"), std::string::npos) << folder_.why("suite");
}

TEST_F(WholeWave, TheWatchdogStopsASilentRequestAndLeavesOneThatBringsBytes) {
  ScriptedServer server;
  server.on("/silent").never_answer().then(200, "at last");
  server.on("/half").send_then_stall("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").then(200, "whole");
  server.on("/slow").drip("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n0123456789012345678901234567890123456789");
  const Outcome outcome = folder_.run(R"(
dialect: wave
runtime:
  stall_timeout: 700ms
steps:
  - {id: silent, http: {url: ")" + server.url("/silent") +
                                      R"("}, retry: {max_attempts: 2, base_delay: 1ms}}
  - {id: half, http: {url: ")" + server.url("/half") +
                                      R"("}, retry: {max_attempts: 2, base_delay: 1ms}}
  - {id: slow, http: {url: ")" + server.url("/slow") +
                                      R"("}}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* step : {"silent", "half"}) {
    const auto error = error_of(folder_.first("failed", step));
    EXPECT_EQ(text_of(error, "kind"), "stalled") << step;
    EXPECT_EQ(text_of(error, "class"), "transient") << step;
    EXPECT_NE(text_of(error, "message").find("stalled: nothing came from 127.0.0.1:"), std::string::npos)
        << text_of(error, "message");
  }
  EXPECT_EQ(folder_.count("failed", "slow"), 0U) << "a byte every 20 ms, longer than the limit altogether";
}

TEST_F(WholeWave, ADryRunShowsWatchdogBreakerVisitsAndHandlers) {
  const std::string file = folder_.flow(R"(
dialect: wave
runtime: {circuit_breaker: {limit: 2, tracked_classes: [test_failure]}, stall_timeout: 10m}
steps:
  - {id: build, run: make}
  - {id: suite, needs: build, kind: test, run: make test, fix: {run: ./fix.sh}, fallback: {run: ./cheap.sh}, on_failure: {goto: build}, max_visits: 3}
)");
  const std::string plan = folder_.reprise({"run", "--dry-run", file}).out;
  for (const char* words :
       {"watchdog   stopped after 10m without progress",
        "breaker    stops the step when the same failure comes 2 times (test_failure)", "visits     at most 10",
        "visits     at most 3", "fix        run: ./fix.sh", "fallback   run: ./cheap.sh", "on failure goto build"})
    EXPECT_NE(plan.find(words), std::string::npos) << words << "\n" << plan;
  const std::string json = folder_.reprise({"run", "--dry-run", file, "--format", "json"}).out;
  for (const char* words :
       {R"("stall_timeout_ms":600000)", R"("circuit_breaker":{"limit":2,"tracked_classes":["test_failure"]})",
        R"("max_visits":3)", R"("fix":"run: ./fix.sh")"})
    EXPECT_NE(json.find(words), std::string::npos) << words << "\n" << json;
}

}  // namespace
}  // namespace reprise::testing_support
