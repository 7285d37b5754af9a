// Values and files that come from outside, in real runs: numbers keep their spelling, values their place in a URL, documents cannot speak to
// the terminal, and a file that does not answer stops nothing but its own step.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <csignal>

#include "flow_runs/flow_run.hpp"
#include "support/scripted_server.hpp"
#include "text/utf8.hpp"

namespace reprise::testing_support {
namespace {

// ---- numbers ----------------------------------------

constexpr const char* spellings[] = {"1.10", "0.10", "1e2",   "1234567890123456789012", "100.0", "-0", "010",
                                     "+1",   ".5",   "1e-400"};

TEST(TroubleValue, WhatSetAndInputGiveArrivesAsItWasSpelled) {
  for (const char* spelling : spellings) {
    FlowFolder folder;
    const std::string set = std::string{"v="} + spelling;
    const Outcome outcome =
        folder.run("{params: {v: null}, steps: [{id: a, run: 'printf %s ${params.v}'}]}", {"--set", set});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), spelling);
  }
  FlowFolder folder;
  folder.run("{params: {v: null}, steps: [{id: a, argv: [printf, '%s', '${params.v}']}]}",
             {"--input", R"({"v":[1.10,{"w":1e2},12345678901234567890123]})"});
  EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), R"([1.10,{"w":1e2},12345678901234567890123])");
}

TEST(TroubleValue, WhatADocumentSpellsArrivesAsItWasSpelled) {
  FlowFolder folder;
  const Outcome outcome = folder.run(R"(
params: {price: 1.10, big: 1234567890123456789012, code: 010, list: [010, 0.10, 1e2]}
steps:
  - {id: scalars, argv: [printf, '%s %s %s', '${params.price}', '${params.big}', '${params.code}']}
  - {id: list, argv: [printf, '%s', '${params.list}']}
  - {id: items, for_each: [010, 0.10, 1e2], argv: [printf, '%s', '${item}']}
  - {id: computed, argv: [printf, '%s %s %s', '${params.price + 1}', '${params.price == 1.1}', '${params.list[2] * 1}']}
)");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "scalars"), "output"), "1.10 1234567890123456789012 010");
  EXPECT_EQ(text_of(folder.last("completed", "list"), "output"), R"(["010",0.10,1e2])");
  EXPECT_EQ(text_of(folder.last("completed", "items[0]"), "output"), "010");
  EXPECT_EQ(text_of(folder.last("completed", "items[1]"), "output"), "0.10");
  EXPECT_EQ(text_of(folder.last("completed", "items[2]"), "output"), "1e2");
  EXPECT_EQ(text_of(folder.last("completed", "computed"), "output"), "2.1 true 100.0");
}

TEST(TroubleValue, ItemsOutputsAndSubFlowsPassNumbersOnAsTheyAre) {
  FlowFolder folder;
  folder.write("items.json", R"({"rows":[{"v":1.10},{"v":1e2},{"v":12345678901234567890123}]})");
  folder.write("inner.yaml", "{params: {v: null}, steps: [{id: say, argv: [printf, '%s', '${params.v}']}]}");
  const Outcome outcome = folder.run(R"(
steps:
  - {id: file, for_each: {file: items.json, path: '$.rows[*]'}, argv: [printf, '%s', '${item.v}']}
  - {id: json, run: 'echo ''{"v": 0.10, "w": [1e2]}''', output: json}
  - {id: next, needs: json, argv: [printf, '%s %s', '${steps.json.output.v}', '${steps.json.output}']}
  - {id: sub, needs: json, flow: inner.yaml, params: {v: '${steps.json.output.v}'}}
)");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(text_of(folder.last("completed", "file[0]"), "output"), "1.10");
  EXPECT_EQ(text_of(folder.last("completed", "file[1]"), "output"), "1e2");
  EXPECT_EQ(text_of(folder.last("completed", "file[2]"), "output"), "12345678901234567890123");
  EXPECT_EQ(text_of(folder.last("completed", "next"), "output"), R"(0.10 {"v":0.10,"w":[1e2]})");
  EXPECT_EQ(text_of(folder.last("completed", "sub"), "output"), "0.10");
}

TEST(TroubleValue, ARunThatIsResumedHasTheSameNumbers) {
  FlowFolder folder;
  const std::string flow = folder.flow(
      "{params: {v: null}, steps: [{id: wait, signal: go}, {id: say, needs: wait, argv: [printf, '%s', "
      "'${params.v}']}]}");
  auto running = folder.start({"run", flow, "--set", "v=1.10"});
  ASSERT_TRUE(folder.wait_for_event("submitted"));
  running->signal(SIGKILL);
  running->join();
  ASSERT_EQ(folder.reprise({"signal", "@last", "go"}).exit_code, 0);
  const Outcome resumed = folder.reprise({"resume", "@last"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(text_of(folder.last("completed", "say"), "output"), "1.10");
}

// ---- URLs ----------------------------------------

TEST(TroubleValue, AValueStaysInItsPlaceInAUrlOrIsRefused) {
  ScriptedServer server;
  server.on("/v1/").answer(200, "deleted everything");
  server.on("/v1/orders/a%20b").answer(200, "deleted one");
  FlowFolder folder;
  const std::string document =
      "{params: {id: {type: text}}, steps: [{id: delete, retry: none, http: {method: DELETE, url: '" +
      server.url("/v1/orders/") + "${params.id}'}}]}";
  for (const char* id : {".", "..", "../x", "x/.."}) {
    const Outcome outcome = folder.run(document, {"--set", std::string{"id="} + id});
    EXPECT_EQ(outcome.exit_code, 1) << id;
    EXPECT_NE(outcome.err.find("${params.id} would make . or .. a segment"), std::string::npos) << outcome.err;
  }
  EXPECT_TRUE(server.requests().empty()) << server.requests().front().target;
  EXPECT_EQ(folder.run(document, {"--set", "id=a b"}).exit_code, 0);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(TroubleValue, AValueBehindThePortDoesNotChooseAnotherHost) {
  ScriptedServer other;
  other.on("/x").answer(200, "stolen");
  FlowFolder folder;
  const std::string other_place = other.url("/x").substr(std::string_view{"http://"}.size());
  const Outcome outcome = folder.run(
      "{params: {path: {type: text}}, steps: [{id: get, retry: none, http: {url: "
      "'http://127.0.0.1:9${params.path}'}}]}",
      {"--set", "path=@" + other_place});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("${params.path} stands in the host of the URL"), std::string::npos) << outcome.err;
  EXPECT_TRUE(other.requests().empty());
}

// ---- the terminal ----------------------------------------

// As it reaches a terminal; line ends and tabs are welcome.
void expect_harmless(const std::string& text, std::string_view what) {
  EXPECT_EQ(text, text::lines_safe_to_show(text)) << what;
}

TEST(TroubleValue, NoDocumentSpeaksToTheTerminal) {
  FlowFolder folder;
  const std::string bad = R"(\e]0;owned\a\e[2J\x9b31m\u202e\u2066)";  // YAML escapes
  const char* const documents[] = {
      // valid: everything that validate and --dry-run tell about; BAD stands for the escapes
      R"(name: "nBAD"
params: {p: "BAD"}
agents: {ask: {run: "llm BAD ${prompt}"}}
steps:
  - {id: a, run: "echo BAD", if: "'BAD' == 'x'", on_failure: {run: "BAD"}}
  - {id: b, argv: ["BAD"], for_each: ["BAD"], require: {run: "BAD"}, check: {run: "BAD", schema: "BAD"}, fix: {run: "BAD"}}
  - {id: c, http: {url: "http://h/BAD"}, fallback: {run: "BAD"}, retry: {max_attempts: 2, never_on: ["/\e\x9b\u202e/"]}}
  - {id: d, flow: "BAD"}
  - {id: e, for_each: {file: "BAD"}, ask: "BAD"}
  - {id: f, for_each: {command: "BAD"}, run: x}
)",
      // mistakes that quote the document
      "steps: [{id: \"BAD\", run: x}]",
      "steps: [{id: a, \"BAD\": x}]",
      "steps: [{id: a, run: x, needs: \"BAD\"}]",
      "steps: [{id: a, run: \"${params.BAD}\"}]",
      "steps: [{id: a, run: x, retry: {policy: \"BAD\"}}]",
      "params: {\"BAD\": {type: \"BAD\"}}\nsteps: [{id: a, run: x}]",
      "params: {\"BAD\": {required: true}}\nsteps: [{id: a, run: x}]",
      "steps: [{id: a, call: \"BAD\"}]",
      // raw bytes in the line that a mistake shows
      "steps: [{id: a, run: x, y: '\xC2\x9B"
      "31m \xE2\x80\xAE'}]",
      "steps: [{id: a, run: x}]  # \x1b[2J\n",
  };
  for (std::string document : documents) {
    for (std::size_t at = document.find("BAD"); at != std::string::npos; at = document.find("BAD", at + bad.size()))
      document.replace(at, 3, bad);
    const std::string flow = folder.write("e\x1b[31m\xC2\x9B.yaml", document);
    for (const auto& arguments : {std::vector<std::string>{"validate", flow},
                                  {"run", flow, "--dry-run"},
                                  {"run", flow, "--dry-run", "--set", "x\x1b=\x1b"},
                                  {"validate", flow, "--format", "json"},
                                  {"run", flow, "--dry-run", "--format", "json"},
                                  {"policy", "check", flow},
                                  {"policy", "show", flow}}) {
      const Outcome outcome = folder.reprise(arguments);
      expect_harmless(outcome.out, arguments[0] + " out: " + document);
      expect_harmless(outcome.err, arguments[0] + " err: " + document);
      if (document.starts_with("name:") && arguments.size() == 2) {
        EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      }
    }
  }
}

TEST(TroubleValue, NoPolicySpeaksToTheTerminal) {
  FlowFolder folder;
  const std::string bad = R"(\e]0;owned\a\e[2J\x9b31m\u202e)";
  for (const std::string& policy : {"retry_if: {error_types: [\"" + bad + "\"]}", "\"" + bad + "\": 1",
                                    "max_attempts: \"" + bad + "\"", "retry_on: [\"" + bad + "\"]"}) {
    const std::string file = folder.write("p\x1b[31m.yaml", policy);
    for (const char* const command : {"check", "show", "schedule"}) {
      const Outcome outcome = folder.reprise({"policy", command, file});
      expect_harmless(outcome.out, policy);
      expect_harmless(outcome.err, policy);
    }
  }
}

// ---- files that do not answer ----------------------------------------

class SilentFile : public testing::Test {
 protected:
  SilentFile() { EXPECT_EQ(mkfifo(folder_.path_of("silent").c_str(), 0600), 0); }

  // The step `bad` fails because of the file, at once; the step `good` beside it is done.
  void expect_only_its_own_step_fails(const std::string& bad_step) {
    const Outcome outcome = folder_.run("steps:\n  - {id: good, run: 'echo fine'}\n  - " + bad_step);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_NE(outcome.err.find("silent: it is a pipe, and a document can name regular files only"), std::string::npos)
        << outcome.err;
    EXPECT_EQ(text_of(folder_.last("completed", "good"), "output"), "fine");
    EXPECT_EQ(folder_.count("failed", "bad"), 1U) << "a retry cannot help";
  }
  FlowFolder folder_;
};

TEST_F(SilentFile, AsAListOfItems) { expect_only_its_own_step_fails("{id: bad, for_each: {file: silent}, run: x}"); }
TEST_F(SilentFile, AsTheSchemaOfAnOutput) {
  expect_only_its_own_step_fails("{id: bad, run: 'echo {}', check: {schema: silent}}");
}
TEST_F(SilentFile, AsTheSchemaOfAnAnswer) {
  ScriptedServer server;
  server.on("/").answer(200, "{}");
  expect_only_its_own_step_fails("{id: bad, http: {url: '" + server.url("/") + "', expect: {schema: silent}}}");
}
TEST_F(SilentFile, AsASubFlow) { expect_only_its_own_step_fails("{id: bad, flow: silent}"); }

TEST_F(SilentFile, AsASecretStartsNothing) {
  const Outcome outcome = folder_.run("{secrets: {s: {file: silent}}, steps: [{id: a, run: 'touch ran'}]}");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("it is a pipe"), std::string::npos) << outcome.err;
  EXPECT_FALSE(folder_.exists("ran"));
}

TEST_F(SilentFile, WhatTheCommandLineNamesMayBeAPipe) {
  const Outcome outcome = folder_.reprise({"run", "/dev/stdin"}, "steps: [{id: a, run: 'echo fine'}]");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

TEST(TroubleValue, SecretsOfFilesAreReadBesideTheSteps) {
  FlowFolder folder;
  folder.write("token", "s3cret-token\n");
  folder.write("inner.yaml",
               "{secrets: {t: {file: token}}, steps: [{id: say, run: 'test ${secrets.t} = s3cret-token'}]}");
  const Outcome outcome = folder.run(R"(
secrets: {t: {file: token}}
steps:
  - {id: items, for_each: ['${secrets.t}'], run: 'test ${item} = s3cret-token'}
  - {id: one, run: 'test ${secrets.t} = s3cret-token'}
  - {id: sub, flow: inner.yaml}
)");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

}  // namespace
}  // namespace reprise::testing_support
