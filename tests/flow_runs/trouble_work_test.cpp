// Bad input and bad work: files that are wrong or missing, commands and servers that hang, flood, lie or go away.
#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"
#include "support/loopback.hpp"
#include "support/sanitizers.hpp"
#include "support/scripted_server.hpp"

namespace reprise::testing_support {
namespace {

#if defined(REPRISE_ADDRESS_SANITIZER) || defined(REPRISE_THREAD_SANITIZER)
constexpr std::uint64_t memory_max_mib = 2000;  // sanitizers keep what was freed, and more
#else
constexpr std::uint64_t memory_max_mib = 200;
#endif

const boost::json::object& error_of(const boost::json::object& event) { return object_of(event, "error"); }

// ---- documents ----------------------------------------

TEST(TroubleInput, AWrongFileStartsNothing) {
  FlowFolder folder;
  struct Wrong {
    const char* document;
    int exit_code;
    const char* says;
  };
  const Wrong wrongs[] = {
      {"steps: [{id: a, run: touch ran, retires: 3}]", 3, "retires"},
      {"steps: [{id: a, run: touch ran}, {id: a, run: touch ran}]", 3, "a"},
      {"steps: [{id: a, run: touch ran}, {id: b, needs: c, run: touch ran}]", 3, "c"},
      {"steps: [{id: a, run: touch ran, needs: b}, {id: b, needs: a, run: touch ran}]", 3, "needs"},
      {"steps: [{id: a, run: 'touch ran ${steps.nope.output}'}]", 3, "nope"},
      {"steps: [{id: a, run: touch ran, argv: [touch, ran]}]", 3, "argv"},
      {"steps: [{id: a, run: touch ran", 3, "flow.yaml:1"},
      {"steps: []", 3, "steps"},
      {"", 3, "flow.yaml"},
      {"\xff\xfe\x00 binary", 3, "flow.yaml"},
      {"steps: [{id: a, call: handler}, {id: b, run: touch ran}]", 3, "handler"},
      {"{params: {x: {required: true}}, steps: [{id: a, run: touch ran}]}", 2, "x"},
      {"{params: {x: {type: integer, default: 1}}, steps: [{id: a, run: touch ran}]}", 2, "x"},
  };
  for (const Wrong& wrong : wrongs) {
    const std::vector<std::string> more = std::string_view{wrong.document}.find("integer") != std::string_view::npos
                                              ? std::vector<std::string>{"--set", "x=many"}
                                              : std::vector<std::string>{};
    const Outcome outcome = folder.run(wrong.document, more);
    EXPECT_EQ(outcome.exit_code, wrong.exit_code) << wrong.document << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(wrong.says), std::string::npos) << wrong.document << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_FALSE(folder.exists("ran"));
  EXPECT_FALSE(folder.exists(".reprise"));
}

TEST(TroubleInput, BadArgumentsStartNothing) {
  FlowFolder folder;
  folder.flow("{params: {x: 1}, steps: [{id: a, run: touch ran}]}");
  std::filesystem::create_directory(folder.path_of("directory"));
  const std::vector<std::vector<std::string>> mistakes{
      {"run"},
      {"run", "missing.yaml"},
      {"run", "directory"},
      {"run", "flow.yaml", "--input", "{"},
      {"run", "flow.yaml", "--input", "[1]"},
      {"run", "flow.yaml", "--input", "@missing.json"},
      {"run", "flow.yaml", "--set", "x"},
      {"run", "flow.yaml", "--set", "y=1"},
      {"run", "flow.yaml", "--progress", "loud"},
      {"run", "flow.yaml", "--format", "xml"},
      {"run", "flow.yaml", "more.yaml"},
  };
  for (const auto& mistake : mistakes) {
    const Outcome outcome = folder.reprise(mistake);
    EXPECT_EQ(outcome.exit_code, 2) << mistake.back() << ": " << outcome.err;
    EXPECT_NE(outcome.err, "") << mistake.back();
  }
  EXPECT_FALSE(folder.exists("ran"));
  EXPECT_FALSE(folder.exists(".reprise"));
}

TEST(TroubleInput, AMissingSecretStartsNothing) {
  FlowFolder folder;
  const Outcome outcome = folder.run("{secrets: {KEY: {env: NO_SUCH_VARIABLE}}, steps: [{id: a, run: touch ran}]}");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("NO_SUCH_VARIABLE"), std::string::npos) << outcome.err;
  EXPECT_FALSE(folder.exists("ran"));
  EXPECT_FALSE(folder.exists(".reprise"));
}

TEST(TroubleInput, FilesThatCannotBeRead) {
  FlowFolder folder;
  folder.write("broken.json", "{\"items\": [1, 2");
  folder.write("object.json", "{\"items\": 3}");
  std::filesystem::create_directory(folder.path_of("directory.json"));
  struct Case {
    const char* step;
    const char* says;
  };
  const Case cases[] = {
      {"for_each: {file: missing.json}, run: touch ran", "missing.json"},
      {"for_each: {file: broken.json, path: '$.items[*]'}, run: touch ran", "broken.json"},
      {"for_each: {file: object.json}, run: touch ran", "not a list"},
      {"for_each: {file: directory.json}, run: touch ran", "directory.json"},
      {"for_each: {command: exit 4}, run: touch ran", "exit 4"},
      {"run: echo 1, check: {schema: missing.json}", "missing.json"},
      {"run: echo 1, check: {schema: broken.json}", "broken.json"},
      {"argv: [no-such-program]", "no-such-program"},
      {"argv: [./broken.json]", "not executable"},
      {"run: touch ran, directory: nowhere", "nowhere"},
      {"flow: missing.yaml", "missing.yaml"},
  };
  for (const Case& tested : cases) {
    const Outcome outcome = folder.run(std::string{"steps: [{id: a, "} + tested.step + "}]");
    EXPECT_EQ(outcome.exit_code, 1) << tested.step << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(tested.says), std::string::npos) << tested.step << "\n" << outcome.err;
    EXPECT_LE(folder.count("started"), 1U) << "trying again cannot help: " << tested.step;
  }
  EXPECT_FALSE(folder.exists("ran"));
}

// To root nothing is forbidden; but the beginning of a process's memory can be opened and not be read by anybody.
TEST(TroubleInput, AFileThatCannotBeRead) {
  FlowFolder folder;
  folder.write("items.json", "[1]");
  std::filesystem::permissions(folder.path_of("items.json"), std::filesystem::perms::none);
  const std::string file = ::geteuid() == 0 ? "/proc/self/mem" : "items.json";
  const Outcome outcome = folder.run("steps: [{id: a, for_each: {file: " + file + "}, run: touch ran}]");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("cannot read"), std::string::npos) << outcome.err;
}

// ---- commands ----------------------------------------

TEST(TroubleCommand, HangsAndIgnoresTerm) {
  FlowFolder folder;
  folder.program("hang.sh", "trap '' TERM INT HUP; (trap '' TERM; sleep 1000) & while :; do sleep 1000; done");
  const Outcome outcome = folder.run("steps: [{id: a, argv: [hang.sh], timeout: 200ms, retry: none}]");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(text_of(error_of(folder.last("failed", "a")), "kind"), "timeout");
  EXPECT_EQ(leftovers_in(folder.path()), "");
}

// The output stays in the log; the memory of reprise does not grow with it.
TEST(TroubleCommand, WritesAGigabyte) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
steps:
  - {id: flood, run: head -c 1000000000 /dev/zero}
  - {id: line, run: "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end"}
  - {id: hold, needs: [flood, line], signal: go})")});
  ASSERT_TRUE(eventually([&] { return folder.count("completed") == 2; }));
  const pid_t pid = reprise_in(folder.path());
  ASSERT_NE(pid, 0);
  EXPECT_GT(peak_memory_mib(pid), 0U);
  EXPECT_LT(peak_memory_mib(pid), memory_max_mib);
  EXPECT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  EXPECT_EQ(running->join(), 0);
  EXPECT_EQ(std::filesystem::file_size(folder.path_of(".reprise/logs/" + folder.last_run() + "/flood/0.1.log")),
            1'000'000'000U);
}

// Whole output was asked for: there is a limit, and it is said.
TEST(TroubleCommand, WritesMoreJsonThanFits) {
  FlowFolder folder;
  const Outcome outcome = folder.run("steps: [{id: a, run: head -c 400000000 /dev/zero, output: json}]");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(folder.count("started"), 1U);
}

TEST(TroubleCommand, ForksAndExits) {
  FlowFolder folder;
  const Outcome outcome =
      folder.run("steps: [{id: a, run: 'sleep 1000 & echo forked'}, {id: b, needs: a, run: 'echo ${steps.a.output}'}]");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "b"), "output"), "forked");
  EXPECT_EQ(leftovers_in(folder.path()), "");
}

TEST(TroubleCommand, ClosesEverything) {
  FlowFolder folder;
  const Outcome outcome =
      folder.run("steps: [{id: a, run: 'exec 0<&- 1>&- 2>&-; sleep 0.2; touch ran; exit 5', retry: none}]");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(folder.exists("ran"));
  EXPECT_EQ(number_of(error_of(folder.last("failed", "a")), "exit_code"), 5);
}

TEST(TroubleCommand, KillsItself) {
  FlowFolder folder;
  const Outcome outcome =
      folder.run("steps: [{id: a, run: 'kill -9 $$', retry: {max_attempts: 2, backoff: constant, initial: 1ms}}]");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(folder.count("failed"), 2U);
  EXPECT_EQ(text_of(error_of(folder.last("failed")), "signal"), "SIGKILL");
}

// The parent of a command is reprise: killing it is the worst a command can do.
TEST(TroubleCommand, KillsReprise) {
  FlowFolder folder;
  folder.flow("steps: [{id: a, run: 'echo x >> ran; test -e done || { touch done; kill -9 $PPID; sleep 1000; }'}]");
  EXPECT_EQ(folder.reprise({"run", "flow.yaml"}).exit_code, 128 + SIGKILL);
  EXPECT_EQ(leftovers_in(folder.path()), "");
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  EXPECT_EQ(folder.read("ran"), "x\nx\n");
}

// ---- servers ----------------------------------------

struct ServerTrouble {
  const char* name;
  void (*script)(Script&);
  const char* kind;  // what the failure is called; "" = whatever
};

class TroubleHttp : public ::testing::TestWithParam<ServerTrouble> {};

TEST_P(TroubleHttp, IsAFailureWithAName) {
  ScriptedServer server;
  GetParam().script(server.on("/bad"));
  FlowFolder folder;
  const Outcome outcome = folder.run("steps: [{id: a, http: {url: '" + server.url("/bad") +
                                     "'}, timeout: 2s, retry: {max_attempts: 2, backoff: constant, initial: 1ms}}]");
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  const boost::json::object failed = folder.last("failed", "a");
  EXPECT_NE(text_of(error_of(failed), "message"), "") << boost::json::serialize(failed);
  const std::string kind = text_of(error_of(failed), "kind");
  EXPECT_EQ(*GetParam().kind == '\0' ? "" : kind, GetParam().kind) << boost::json::serialize(failed);
}

INSTANTIATE_TEST_SUITE_P(
    TroubleServers, TroubleHttp,
    ::testing::Values(ServerTrouble{"NeverAnswers", [](Script& script) { script.never_answer(); }, "timeout"},
                      ServerTrouble{"Garbage", [](Script& script) { script.send("\x01\x02garbage\r\n\r\n\xff"); }, ""},
                      ServerTrouble{"HangsUp", [](Script& script) { script.hang_up(); }, ""},
                      ServerTrouble{"Resets", [](Script& script) { script.reset(); }, ""},
                      ServerTrouble{"CutsOff", [](Script& script) { script.cut_off(1000, 10); }, ""},
                      ServerTrouble{"Stalls",
                                    [](Script& script) {
                                      script.send_then_stall("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
                                    },
                                    "timeout"}),
    [](const auto& tested) { return tested.param.name; });

TEST(TroubleServers, NobodyListens) {
  FlowFolder folder;
  const Outcome outcome = folder.run("steps: [{id: a, http: {url: 'http://127.0.0.1:" + std::to_string(closed_port()) +
                                     "/'}, retry: {max_attempts: 2, backoff: constant, initial: 1ms}}]");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(folder.count("started"), 2U) << "it may come up again";
}

TEST(TroubleServers, SendsAGigabyte) {
  ScriptedServer server;
  server.on("/sized").generate(1'000'000'000);
  server.on("/endless").generate_endlessly();
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(R"(
steps:
  - {id: sized, http: {url: ')" + server.url("/sized") + R"('}, retry: none, on_failure: continue}
  - {id: endless, http: {url: ')" + server.url("/endless") +
                                                        R"('}, retry: none, on_failure: continue}
  - {id: hold, needs: [sized, endless], signal: go})")});
  ASSERT_TRUE(folder.wait_for_event("failed", {}, 2));
  const pid_t pid = reprise_in(folder.path());
  ASSERT_NE(pid, 0);
  EXPECT_GT(peak_memory_mib(pid), 0U);
  EXPECT_LT(peak_memory_mib(pid), memory_max_mib);
  EXPECT_NE(text_of(error_of(folder.last("failed", "endless")), "message").find("larger"), std::string::npos);
  EXPECT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  running->join();
}

// ---- webhooks ----------------------------------------

// The status line of the answer.
std::string report(const std::string& url, const std::string& token, const std::string& body) {
  return post(url, "X-Reprise-Webhook-Token: " + token, body);
}

const std::string webhook_url = "x-reprise-webhook-url";
const std::string webhook_token = "x-reprise-webhook-token";

std::string async_flow(const ScriptedServer& server, const std::string& more) {
  return "steps: [{id: a, http: {method: POST, url: '" + server.url("/work") + "', async: true}, " + more +
         "}, {id: hold, signal: go}]";
}

TEST(TroubleWebhook, WrongTokensTwiceAndNonsense) {
  ScriptedServer server;
  server.on("/work").answer(202);
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(async_flow(server, "retry: none"))});
  ASSERT_TRUE(server.wait_for_requests(1));
  const RecordedRequest request = server.requests().front();
  const std::string url = request.header(webhook_url);
  const std::string token = request.header(webhook_token);
  const std::string done = R"({"success": true, "output": {"n": 1}})";
  EXPECT_EQ(report(url, std::string(token.size(), 'x'), done), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(report(url + "00", token + "00", done), "HTTP/1.1 403 Forbidden");
  EXPECT_EQ(report(url, token, "nonsense"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(report(url, token, R"({"success": "yes"})"), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(folder.count("completed"), 0U);
  EXPECT_EQ(report(url, token, done), "HTTP/1.1 202 Accepted");
  EXPECT_EQ(folder.count("completed", "a"), 1U) << "it is recorded when it is thanked for";
  EXPECT_EQ(report(url, token, R"({"success": false, "error": "second thoughts"})"), "HTTP/1.1 202 Accepted");
  EXPECT_EQ(report(url, token, done), "HTTP/1.1 202 Accepted");
  folder.reprise({"signal", "@last", "go"});
  EXPECT_EQ(running->join(), 0);
  EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), R"({"n":1})");
  EXPECT_EQ(server.requests().size(), 1U);
  EXPECT_TRUE(folder.files_with(token, ".reprise").empty()) << "tokens are not stored";
}

TEST(TroubleWebhook, ComesBeforeTheAnswer) {
  ScriptedServer server;
  server.on("/work").when_released().answer(202);
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(async_flow(server, "retry: none"))});
  ASSERT_TRUE(server.wait_for_requests(1));
  const RecordedRequest request = server.requests().front();
  EXPECT_EQ(
      report(request.header(webhook_url), request.header(webhook_token), R"({"success": true, "output": "early"})"),
      "HTTP/1.1 202 Accepted");
  server.release();
  ASSERT_TRUE(folder.wait_for_event("completed", "a"));
  EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), "early");
  folder.reprise({"signal", "@last", "go"});
  EXPECT_EQ(running->join(), 0);
}

TEST(TroubleWebhook, ComesLateAndIsRefused) {
  ScriptedServer server;
  server.on("/work").answer(202);
  FlowFolder folder;
  const auto running =
      folder.start({"run", folder.flow(async_flow(server,
                                                  "late: refuse, timeout: 1s, on_failure: continue, "
                                                  "retry: {max_attempts: 2, backoff: constant, initial: 1ms}"))});
  ASSERT_TRUE(folder.wait_for_event("failed", "a"));
  ASSERT_TRUE(server.wait_for_requests(2));
  const RecordedRequest first = server.requests()[0];
  const RecordedRequest second = server.requests()[1];
  EXPECT_EQ(text_of(error_of(folder.last("failed", "a")), "kind"), "timeout");
  EXPECT_NE(first.header(webhook_token), second.header(webhook_token)) << "each attempt has its own";
  EXPECT_EQ(report(first.header(webhook_url), first.header(webhook_token), R"({"success": true})"),
            "HTTP/1.1 410 Gone");
  EXPECT_EQ(report(second.header(webhook_url), first.header(webhook_token), R"({"success": true})"),
            "HTTP/1.1 403 Forbidden");
  ASSERT_TRUE(folder.wait_for_event("failed", "a", 2));
  EXPECT_EQ(folder.count("completed", "a"), 0U);
  folder.reprise({"signal", "@last", "go"});
  running->join();
}

}  // namespace
}  // namespace reprise::testing_support
