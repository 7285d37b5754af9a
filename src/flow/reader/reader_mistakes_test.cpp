// Flow documents that are wrong: what is said about each mistake, and where.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "flow/reader/reader.hpp"

namespace reprise::flow {
namespace {

struct Mistake {
  const char* document;
  const char* place;  // line:column
  const char* message;
  const char* help;  // how it begins; a list of allowed keys may follow
};

std::string place_in_words(const Diagnostic& diagnostic) {
  return std::to_string(diagnostic.line) + ":" + std::to_string(diagnostic.column);
}

const Mistake mistakes[] = {
    {"steps: [{id: a, run: x, retries: 3}]", "1:25", "unknown key \"retries\" in a step",
     "write retry: {max_attempts: 4} (the first run counts)"},
    {"steps: [{id: a, run: x, depends_on: [b]}]", "1:25", "unknown key \"depends_on\" in a step", "write needs"},
    {"steps: [{id: a, run: x, dependsOn: b}]", "1:25", "unknown key \"dependsOn\" in a step", "write needs"},
    {"steps: [{id: a, script: ls}]", "1:17", "unknown key \"script\" in a step",
     "write run for a line of the shell, argv for a list of arguments"},
    {"steps: [{name: a, run: ls}]", "1:10", "unknown key \"name\" in a step", "write id"},
    {"steps: [{id: a, run: ls, when: always}]", "1:26", "unknown key \"when\" in a step", "write if"},
    {"steps: [{id: a, run: ls, timeout-minutes: 5}]", "1:26", "unknown key \"timeout-minutes\" in a step",
     "write timeout: 5m"},
    {"steps: [{id: a, run: ls, matrix: {os: [a]}}]", "1:26", "unknown key \"matrix\" in a step",
     "write for_each; the element is ${item}"},
    {"steps: [{id: a, run: ls, continue-on-error: true}]", "1:26", "unknown key \"continue-on-error\" in a step",
     "write on_failure: continue"},
    {"steps: [{id: a, run: ls, allow_failure: true}]", "1:26", "unknown key \"allow_failure\" in a step",
     "write on_failure: continue"},
    {"steps: [{id: a, uses: actions/checkout}]", "1:17", "unknown key \"uses\" in a step",
     "there are no actions to install: write run, argv, http or a verb of your own under agents"},
    {"jobs: {a: {run: ls}}", "1:1", "unknown key \"jobs\"", "write steps, a list with an id for each"},
    {"variables: {A: 1}\nsteps: [{id: a, run: ls}]", "1:1", "unknown key \"variables\"",
     "write params for what a run is given, env for variables of the commands"},
    {"steps: [{id: a, run: ls}]\nalways: [{id: b, run: ls}]", "2:1", "unknown key \"always\"", "write finally"},
    {"steps: [{id: a, run: ls, timeuot: 3s}]", "1:26", "unknown key \"timeuot\" in a step", "did you mean timeout?"},
    {"version: 2\nsteps: [{id: a, run: ls}]", "1:10", "version: expected 1, found 2",
     "this is the only version there is"},
    {"steps: [{id: a, run: ls}, {id: a, run: ls}]", "1:32", "the step \"a\" is there already, on line 1",
     "take another id"},
    {"steps: [{id: fetch, run: ls}, {id: b, needs: [fetsh], run: ls}]", "1:47", "needs: there is no step \"fetsh\"",
     "did you mean fetch?"},
    {"steps:\n  - {id: a, needs: c, run: ls}\n  - {id: b, needs: a, run: ls}\n  - {id: c, needs: b, run: ls}", "2:20",
     "steps need each other in a circle: a (line 2) → c (line 4) → b (line 3) → a",
     "remove one of the needs; to go back after a failure write on_failure: {goto: step}"},
    {"steps: [{id: a, needs: a, run: ls}]", "1:24", "needs: the step \"a\" needs itself", "remove it"},
    {"steps: [{id: a, run: ls, on_failure: {goto: b}}, {id: b, run: ls}]", "1:45",
     "goto: \"b\" does not come before \"a\"",
     "it is possible to go back to the step itself or to one it needs, directly or not"},
    {"steps: [{id: report, run: ls}]\ngoals: [repotr]", "2:9", "goals: there is no step \"repotr\"",
     "did you mean report?"},
    {"steps: [{id: a, run: ls}]\nfinally: [{id: b, needs: a, run: ls}]", "2:26", "needs: \"a\" is not under finally",
     "steps under finally run after all the others anyway"},
    {"params: {date: today}\nsteps:\n  - id: a\n    run: ./list.sh ${params.dat}", "4:22",
     "there is no parameter \"dat\"", "did you mean date?"},
    {"steps:\n  - id: a\n    run: |\n      echo one\n      echo ${item.id}", "5:14", "item is not known here",
     "only a step with for_each has it"},
    {"steps: [{id: list, run: ls}, {id: b, run: \"echo ${steps.list.output}\"}]", "1:51",
     "\"b\" does not wait for the step \"list\"", "add list to needs of b"},
    {"steps: [{id: list, run: ls}, {id: b, needs: list, run: \"echo ${steps.list.outptu}\"}]", "1:64",
     "a step has no \"outptu\"", "did you mean output?"},
    {"steps: [{id: a, run: \"echo ${steps.lst.output}\"}]", "1:30", "there is no step \"lst\"", "there is a"},
    {"steps: [{id: a, run: \"echo ${run.status}\"}]", "1:30", "run.status is known under finally only",
     "move the step there"},
    {"steps: [{id: a, run: \"echo ${HOME}\"}]", "1:30", "there is no name \"HOME\"",
     "write env.HOME, or $HOME for a variable of the shell"},
    {"steps: [{id: a, run: \"total=1; echo ${total}\"}]", "1:39", "there is no name \"total\"",
     "a variable of the shell is written $total or $${total}"},
    {"params: {date: x}\nsteps: [{id: a, run: \"echo ${date}\"}]", "2:30", "there is no name \"date\"",
     "write params.date"},
    {"steps: [{id: a, run: \"echo ${prompt}\"}]", "1:30", "prompt is not known here", "only an agent has it"},
    {"secrets: {TOKEN: {env: T}}\nsteps: [{id: a, run: \"echo ${secrets.TOKN}\"}]", "2:30",
     "there is no secret \"TOKN\"", "did you mean TOKEN?"},
    {"steps: [{id: a, if: \"${item > 3}\", for_each: [1], run: ls}]", "1:24", "item is not known here",
     "if and for_each itself are looked at once for the whole step"},
    {"steps: [{id: a, run: \"echo ${1 +}\"}]", "1:33",
     "in an expression: expected a path, a value or a function, found the end",
     "a ${ that is meant for the shell is written $${"},
    {"steps: [{id: a, for_each: {file: i.json, path: \"$.[\"}, run: ls}]", "1:51",
     "path: expected a name or * after ., found [", "a JSONPath (RFC 9535), such as $.items[*]"},
    {"steps: [{id: a, run: ls, retry: 3}]", "1:33", "retry: expected the name of a policy or a map, found 3",
     "write {max_attempts: 3}, which counts the first run too"},
    {"steps: [{id: a, run: ls, retry: {policy: agressive}}]", "1:42",
     "policy: expected none, standard, aggressive or patient, found \"agressive\" (text)", "did you mean aggressive?"},
    {"policies: {a: b, b: {policy: a}}\nsteps: [{id: a, run: ls}]", "1:12",
     "policies build on each other in a circle: a (line 1) → b (line 1) → a",
     "one of them must start from none, standard, aggressive or patient"},
    {"steps: [{id: a, run: ls, retry: none, retry_config: {attempts: 3}}]", "1:53",
     "retry_config: retry is given too: a step has one policy, in one dialect", "keep one of them"},
    {"steps: [{id: a, run: ls, retry_config: {max_attempts: 3}}]", "1:40",
     "retry_config: this may be rh_agents' or prodigy's, and they differ",
     "write dialect: rh_agents or dialect: prodigy at the top of the document"},
    {"steps: [{id: a, run: ls, retry_config: {enabled: true, attempts: 3}}]", "1:56",
     "retry_config: \"enabled\" is rh_agents' and \"attempts\" is prodigy's: two dialects in one policy",
     "keep to one; dialect: rh_agents or dialect: prodigy at the top decides"},
    {"steps: [{id: a}]", "1:9", "a step that does nothing",
     "exactly one of run, argv, http, wait, signal, flow or call"},
    {"steps: [{id: a, run: ls, argv: [ls]}]", "1:32", "argv: run is given too, and a step does one thing",
     "exactly one of run, argv, http, wait, signal, flow or call"},
    {"steps: [{id: a, wait: 3s, retry: standard}]", "1:27", "\"retry\" means nothing for a step with wait",
     "remove it"},
    {"steps: [{id: a, wait: 2026-11-16}]", "1:23", "wait: \"2026-11-16\" is not a time",
     "such as 2026-11-16T03:00:00Z, with its zone"},
    {"steps: [{id: a, http: \"https://example.org\"}]", "1:23",
     "http: expected a map, found \"https://example.org\" (text)", "write {url: \"https://example.org\"}"},
    {"steps: [{id: a, http: {url: example.org, method: post}}]", "1:29",
     "url: expected http:// or https://, found \"example.org\" (text)", "write https://example.org"},
    {"steps: [{id: a, run: ls, fix: ./fix.sh}]", "1:31", "fix: expected a command, found \"./fix.sh\" (text)",
     "write {run: …} for the shell, {argv: […]} without it"},
    {"steps: [{id: a, run: ls, on_failure: ./clean.sh}]", "1:38",
     "on_failure: expected fail, skip, continue, dead_letter or a map, found \"./clean.sh\" (text)",
     "write {run: …} to run a command, {goto: step} to go back"},
    {"steps: [{id: a, run: ls, on_failure: contniue}]", "1:38",
     "on_failure: expected fail, skip, continue or dead_letter, found \"contniue\" (text)", "did you mean continue?"},
    {"agents: {run: {run: ls}}\nsteps: [{id: a, run: ls}]", "1:10", "\"run\" cannot be the name of an agent",
     "steps use this word for something else"},
    {"params: {n: {type: integer, default: many}}\nsteps: [{id: a, run: ls}]", "1:38",
     "default: parameter \"n\" must be a whole number, found \"many\"", ""},
    {"secrets: {T: abc}\nsteps: [{id: a, run: ls}]", "1:14", "secrets: a secret does not stand in the document",
     "write {env: VARIABLE} or {file: PATH}"},
    {"types: {A: B, B: A}\nsteps: [{id: a, run: ls}]", "1:9", "types: \"A\" is its own ancestor",
     "give it a parent outside of the circle"},
    {"mode: mapreduce\nmap: {input: i.json, filter: \"x > 3\", agent_template: [{shell: ls}]}", "2:22",
     "unknown key \"filter\" in map",
     "this is not supported: a filter may stand in json_path, such as $.items[?@.price < 10]"},
    {"mode: mapreduce\nmap: {input: i.json, agent_template: [{shell: ls, commit_required: true}]}", "2:51",
     "unknown key \"commit_required\" in a command",
     "this is not supported: nothing is committed here; check the commit in a shell command"},
    {"mode: mapreduce\nmap: {input: i.json, agent_template: [{shell: ls}]}\nreduce: [{shell: \"echo ${map.outcome}\"}]",
     "3:18", "a step has no \"outcome\"", "did you mean outcomes?"},
    {"dialect: wave\nmode: mapreduce\nmap: {input: i.json, agent_template: [{shell: ls}]}", "2:7",
     "mode: mapreduce is prodigy's, and dialect says wave", "keep one of them"},
    {"dialect: wave\nsteps: [{id: a, run: ls, retry: {policy: standard, initial: 1s}}]", "2:52",
     "unknown key \"initial\"", ""},
};

TEST(FlowMistakes, AreNamedWithTheirPlaceAndTheirRemedy) {
  for (const Mistake& mistake : mistakes) {
    const auto read = read_flow(mistake.document, "wrong.yaml");
    ASSERT_FALSE(read.has_value()) << mistake.document;
    const Diagnostic& first = read.error().front();
    EXPECT_EQ(first.severity, Severity::error);
    EXPECT_EQ(first.file, "wrong.yaml");
    EXPECT_EQ(place_in_words(first), mistake.place) << mistake.document;
    EXPECT_EQ(first.message, mistake.message) << mistake.document;
    EXPECT_TRUE(first.help.starts_with(mistake.help)) << mistake.document << "\n" << first.help;
    EXPECT_FALSE(first.source_line.empty()) << mistake.document;
  }
}

TEST(FlowMistakes, AllAreFoundInOnePass) {
  const auto read = read_flow(R"yaml(version: 2
params: {limt: 3}
steps:
  - id: a
    run: echo ${params.limit} ${HOME}
    retries: 3
  - id: b
    needs: [a, x]
    run: |
      echo one
      echo ${steps.c.output}
  - id: c
    http: {url: api.example.org, metod: POST}
  - id: d
    run: x
    retry: {policy: agressive, max_attempts: 0}
    timeout: 5
goals: [cc]
)yaml",
                              "many.yaml");
  ASSERT_FALSE(read.has_value());
  std::vector<std::string> places;
  for (const Diagnostic& each : read.error()) places.push_back(place_in_words(each));
  EXPECT_EQ(places, (std::vector<std::string>{"1:10", "5:17", "5:33", "6:5", "8:16", "11:14", "13:17", "13:34", "16:21",
                                              "16:46", "17:14", "18:9"}))
      << render(read.error());
}

TEST(FlowMistakes, PlacesInsideQuotedAndFoldedTexts) {
  const auto place = [](const std::string& document) {
    const auto read = read_flow(document, "p.yaml");
    return read ? "none" : place_in_words(read.error().front());
  };
  EXPECT_EQ(place("steps:\n  - id: a\n    run: \"é ${nope}\""), "3:15");
  EXPECT_EQ(place("steps:\n  - id: a\n    run: 'x ${nope}'"), "3:15");
  EXPECT_EQ(place("steps:\n  - id: a\n    run: >\n      x\n      ${nope}"),
            "3:10");  // folded: the lines are not those of the text
  EXPECT_EQ(place("steps:\n  - id: a\n    run: \"x \\t ${nope}\""),
            "3:10");  // an escape: the text is not that of the line
  EXPECT_EQ(place("steps: [{id: nope, run: \"${nope}\"}]"), "1:28");
}

TEST(FlowMistakes, WarningsDoNotRefuse) {
  const auto warned = [](const std::string& document) {
    const auto read = read_flow(document, "w.yaml");
    EXPECT_TRUE(read.has_value()) << (read ? "" : render(read.error()));
    return read && !read->warnings.empty() ? read->warnings.front().message : "nothing";
  };
  EXPECT_EQ(warned("runtime: {deadline: 1m}\nsteps: [{id: a, run: x, timeout: 1h}]"),
            "timeout: it is not shorter than the deadline of the run, 1m");
  EXPECT_EQ(warned("steps: [{id: a, run: x, retry: {max_attempts: unlimited}}]"),
            "unlimited attempts and no deadline: work that cannot succeed is retried for ever");
  EXPECT_EQ(
      warned("dialect: wave\nsteps: [{id: a, run: x, for_each: [1], max_parallel: 4, retry: {policy: standard}}]"),
      "no jitter on a fan-out: 4 work items that fail together come back together");
  EXPECT_EQ(warned("agents: {x: {argv: [ls]}}\nsteps: [{id: a, x: hello}]"),
            "the agent never sees what a step tells it");
}

TEST(FlowMistakes, AHundredAreEnough) {
  std::string text = "steps:\n";
  for (int at = 0; at < 500; ++at) text += "  - {id: s" + std::to_string(at) + ", run: \"echo ${nope}\"}\n";
  const auto read = read_flow(text, "many.yaml");
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().size(), 100U);
}

TEST(FlowMistakes, TooManyStepsAreRefused) {
  std::string text = "steps:\n";
  for (int at = 0; at < 10'001; ++at) text += "  - {id: s" + std::to_string(at) + ", run: x}\n";
  EXPECT_FALSE(read_flow(text, "many.yaml").has_value());
}

}  // namespace
}  // namespace reprise::flow
