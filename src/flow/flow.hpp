// A flow as it is meant: what a document of any of the six dialects says, resolved and ready to be planned.
//
// Made by read_flow() (reader.hpp), which has checked everything that can be known before a run. Pure values; no I/O here.
// Thread safety: immutable once made, shared freely.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <reprise/classify.hpp>
#include <reprise/dialect.hpp>
#include <reprise/event.hpp>
#include <reprise/flow.hpp>
#include <reprise/policy.hpp>

#include "flow/expression/expression.hpp"
#include "json/json.hpp"
#include "json/jsonpath.hpp"

namespace reprise::flow {

// Where something stands in the document; for messages and `--dry-run`.
struct SourcePlace {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
};

// A JSON value whose strings may hold expressions: the body of a request, the parameters of a sub-flow.
struct JsonTemplate {
  struct Member;
  using List = std::vector<JsonTemplate>;
  using Map = std::vector<Member>;
  std::variant<Json, Template, List, Map> value;
};
struct JsonTemplate::Member {
  std::string key;
  JsonTemplate value;
};

struct HttpCall {
  std::string method = "GET";
  Template url;
  std::vector<std::pair<std::string, Template>> headers;
  std::optional<JsonTemplate> body;                               // text is sent as it is, everything else as JSON
  std::vector<std::pair<int, int>> expect_status = {{200, 299}};  // ranges
  std::string expect_schema;                                      // file, relative to the document; empty = none
  bool is_async = false;                                          // a 2xx means accepted; the webhook brings the result
};

// One thing that is executed: a line for sh, an argument list, or a request.
struct Command {
  enum class Kind : std::uint8_t { shell, argv, http } kind = Kind::shell;
  Template shell;
  std::vector<Template> argv;
  HttpCall http;
  std::string verb;                                   // as the document has it: run, argv, http, shell, claude …
  std::optional<Template> prompt;                     // of an agent: what `prompt` means in the templates above
  std::vector<std::pair<std::string, Template>> env;  // of an agent: after the document's, before the step's
  std::vector<std::string> interpreter;               // of shell: argv, {} or its end is the script's file; empty = sh
  std::optional<JsonTemplate> standard_input;         // text as it is, everything else as JSON
  std::optional<Duration> timeout;                    // of this command alone; the attempt's own limit counts as well
  std::shared_ptr<const Command>
      on_failure;  // prodigy: runs when this command fails; if it succeeds, the sequence goes on
  SourcePlace place;
};

// A list of commands that run one after the other: one attempt. Almost always exactly one.
using Commands = std::vector<Command>;

enum class OutputForm : std::uint8_t { text, json, lines };

struct ItemSource {
  enum class Kind : std::uint8_t { value, file, command } kind = Kind::value;
  JsonTemplate value;  // `${steps.list.output.items}`, or a list that is written out
  Template file;       // relative to the document: .json, .jsonl/.ndjson, or lines of text
  std::shared_ptr<const Command> command;
  std::optional<json::JsonPath>
      path;  // file, command: which nodes are the items; without it: the elements of the list, or the lines
};

enum class FallbackWhen : std::uint8_t { budget_exhausted, gave_up };
struct Fallback {
  Command command;
  FallbackWhen when = FallbackWhen::budget_exhausted;
};

struct Tolerance {
  std::uint32_t count = 0;
  double ratio = 0;  // 0.05 for 5%; the larger of both counts
};

struct SubFlow {
  Template file;  // relative to the document
  JsonTemplate::Map params;
};

// `retry_config: ${item.retry}`: each item brings its policy along. What is null has none, and gets the step's.
struct ItemPolicy {
  JsonTemplate value;
  Dialect dialect = Dialect::native;
  std::string key;  // as the document has it
};

// prodigy: after so many failed items in a row no further one begins for a while, and then a few try (core/item_breaker.cpp).
struct ItemBreaker {
  std::uint32_t failures = 5;
  std::uint32_t successes = 3;
  std::uint32_t probes = 3;
  Duration open_for = std::chrono::seconds{30};
};

// prodigy: what the failures of one of several commands are judged by; it alone is tried again.
struct CommandPolicy {
  std::uint32_t command = 0;  // from 1
  std::uint32_t line = 0;
  Policy policy;
};

enum class Verb : std::uint8_t { commands, wait, signal, flow, call };

struct Step {
  std::string id;
  SourcePlace place;
  Verb verb = Verb::commands;
  Commands commands;                   // commands
  std::optional<Duration> wait;        // wait: a duration …
  std::optional<WallTime> wait_until;  // … or a time
  std::string signal;                  // signal
  SubFlow flow;                        // flow
  std::string call;                    // call: the handler's name

  std::vector<std::string> needs;
  std::optional<Expression> condition;  // if
  std::optional<ItemSource> for_each;
  std::optional<Template> label;   // of an item, for people
  std::uint32_t max_parallel = 0;  // 0 = no limit of its own
  Tolerance tolerate;
  bool tolerate_any = false;  // dead_letter without `tolerate`: any number

  std::string type = "tool";  // actor type
  bool is_test = false;       // kind: test
  Policy policy;              // resolved
  PolicyLevel level = PolicyLevel::built_in;
  Dialect dialect = Dialect::native;  // of the policy
  std::string policy_source;  // in words: `step "fetch", line 31`, `defaults.by_type.tool, line 9`, `built-in for tool`
  std::uint32_t policy_line = 0;  // where it stands; 0 = nowhere
  std::optional<ItemPolicy> item_policy;
  bool retries_are_off = false;     // rh_agents: `enabled: false`, or an agent that nobody configured
  std::optional<Duration> timeout;  // each attempt; already in policy.attempt_timeout when it is shorter
  Duration stall_timeout{0};        // 0 = off
  Effect effect = Effect::keyed;
  bool needs_verdict = false;    // argyll: only the handler's own word counts
  bool exit_is_verdict = false;  // … and exit 0 is one: the rule of runs that were begun before 0.2

  bool refuses_late = false;  // async http: an earlier attempt's success does not count

  std::optional<Command> require;  // precondition
  std::string check_schema;        // postcondition: the output must match this schema file
  std::optional<Command> check;    // postcondition: a command that must succeed
  std::optional<Command> fix;
  std::optional<Fallback> fallback;

  OnFailure on_failure = OnFailure::fail;
  std::string goto_step;  // on_failure: {goto: …}
  std::optional<Command>
      on_failure_command;  // on_failure: {run: …}: what gave up is handed to it; if it succeeds, the item is done
  std::uint32_t max_visits = 10;
  std::optional<CircuitBreakerRule> circuit_breaker;
  std::optional<ItemBreaker> item_breaker;
  std::vector<CommandPolicy> command_policies;
  bool keeps_outputs = false;  // the result of an item is that of each of its commands

  OutputForm output = OutputForm::text;
  std::vector<std::pair<std::string, Template>> env;
  std::string directory;  // relative to the document; empty = the document's

  std::vector<std::string> reads;  // steps whose results its expressions use; all of them are done before it starts
};

struct Parameter {
  std::string name;
  enum class Type : std::uint8_t { any, text, integer, number, boolean, list, map } type = Type::any;
  std::optional<Json> value;  // the default; none = must be given
};

struct Secret {
  std::string name;
  std::string env;  // one of both
  std::string file;
  SourcePlace place = {};
};

struct FlowDocument {
  std::string name;
  Dialect dialect = Dialect::native;
  std::vector<Parameter> params;
  std::vector<std::pair<std::string, Template>> env;
  std::vector<Secret> secrets;
  std::vector<ClassifyRule> classify;
  std::vector<Step> steps;  // in the order of the document
  std::vector<Step> finally;
  std::vector<std::string> goals;  // empty = all steps
  std::uint32_t max_parallel = 0;  // 0 = the default
  std::optional<Duration> deadline;
  std::optional<SourcePlace> first_request;  // none = no command of it is an HTTP request
  std::shared_ptr<TypeTree> types;           // error types the document adds; may be nullptr
};

// The steps that will run: all, or what the goals need. In an order in which every step comes after those it needs.
std::vector<const Step*> planned_steps(const FlowDocument& flow);

}  // namespace reprise::flow
