// What the parts of the flow reader share: the document at hand, what was read so far, and the small readers of texts and values.
//
// Internal to src/flow. reader.cpp reads the document's own keys and calls the others; graph.cpp and names.cpp check what only the whole
// document can show. Every reader reports its mistakes and goes on, so that one pass finds all of them.
// Thread safety: none; one Reading belongs to one call of read_flow().
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reprise/dialect.hpp>

#include "flow/flow.hpp"
#include "text/fields.hpp"

namespace reprise::flow {

inline constexpr std::size_t steps_max = 10'000;  // of one document; more work than that is items, not steps
inline constexpr std::size_t entries_max = 1000;  // parameters, variables, secrets, policies
inline constexpr std::size_t agents_max = 100;    // each is looked for in every step
inline constexpr std::size_t no_step = SIZE_MAX;
inline constexpr std::int64_t parallel_max = 1'000'000;

// Which names an expression may use where it stands, besides params, env, secrets and run.
struct VisibleNames {
  bool steps = false;
  bool item = false;     // item and index
  bool attempt = false;  // attempt and last_error
  bool prompt = false;
  bool run_status = false;
};

// An expression's names, to be looked up when the whole document is known.
struct Use {
  const text::Node* node;
  std::vector<Reference> references;
  VisibleNames visible;
  std::size_t step;        // index of the draft, or no_step
  bool has_places = true;  // the offsets of the references are offsets of the node's text
};

struct Agent {
  std::string name;
  Command command;  // without its prompt
  std::string type;
  std::optional<Duration> timeout;
};

// A step and where its parts stand, for the messages of later checks.
struct StepDraft {
  Step step;
  const text::Node* node = nullptr;
  const text::Node* id_node = nullptr;
  std::vector<const text::Node*> needs_nodes;
  const text::Node* goto_node = nullptr;
  const text::Node* timeout_node = nullptr;
  const text::Node* policy_node = nullptr;  // where the step's own policy stands
  bool is_final = false;                    // under `finally`
};

struct PolicyChoice {
  Policy policy;
  Dialect dialect = Dialect::native;
  std::string source;
  std::uint32_t line = 0;
  bool is_off = false;  // rh_agents: enabled: false
};

// The policies that stand above the steps.
struct PolicyBook {
  NamedPolicies named;
  std::map<std::string, PolicyChoice, std::less<>> by_type;  // as actor_type_of() names them
  std::vector<const text::Node*> rh_types;                   // keys of retry_config_by_actor_type
  std::optional<PolicyChoice> run;
};

// A policy to be reviewed once the document is known to be valid.
struct Review {
  Policy policy;
  Dialect dialect;
  const text::Node* node;
};

struct Reading {
  const text::Document& document;
  text::Report& report;
  FlowDocument flow = {};
  std::vector<StepDraft> drafts = {};
  std::vector<Agent> agents = {};
  PolicyBook policies = {};
  std::vector<Review> reviews = {};
  std::vector<Use> uses = {};
  std::vector<const text::Node*> goal_nodes = {};
  std::optional<Dialect> written_dialect = {};  // `dialect:`, or what the top-level keys leave no doubt about
  Duration stall_timeout{0};
  std::uint32_t max_visits = 10;
  std::optional<std::uint32_t> worker_lost_max = {};
  std::optional<CircuitBreakerRule> circuit_breaker = {};
  const text::Node* deadline_node = nullptr;
  VisibleNames visible = {};   // of the expressions that are read now
  std::size_t step = no_step;  // the step that is read now
  bool map_names = false;      // prodigy: map.results stands for steps.map.results

  text::DurationGrammar duration_grammar() const noexcept {
    return written_dialect == Dialect::wave ? text::DurationGrammar::go : text::DurationGrammar::native;
  }
};

// Changes what expressions may see for as long as it lives.
class VisibleNamesGuard {
 public:
  VisibleNamesGuard(Reading& reading, VisibleNames visible) : reading_{reading}, before_{reading.visible} {
    reading.visible = visible;
  }
  VisibleNamesGuard(const VisibleNamesGuard&) = delete;
  VisibleNamesGuard& operator=(const VisibleNamesGuard&) = delete;
  ~VisibleNamesGuard() { reading_.visible = before_; }

 private:
  Reading& reading_;
  VisibleNames before_;
};

// ---- texts and values (reader_values.cpp)

using NamedTemplates = std::vector<std::pair<std::string, Template>>;

SourcePlace place_of(const text::Node& node) noexcept;
std::string quoted(std::string_view text);

// `did you mean "list"?`, or what there is to choose from.
std::string suggestion(std::string_view word, const std::vector<std::string_view>& known);

// A mistake inside a scalar, at a byte of its text.
void error_inside(const text::Node& node, std::size_t offset, std::string message, std::string help, Reading& reading);

bool is_identifier(std::string_view text) noexcept;  // [A-Za-z_][A-Za-z0-9_]*
bool is_step_id(std::string_view text) noexcept;     // [A-Za-z0-9_.-]+

std::optional<Template> read_template(const text::Field& field, Reading& reading);         // text that is not empty
std::optional<Template> read_scalar_template(const text::Field& field, Reading& reading);  // any scalar but null
std::optional<Expression> read_condition(const text::Field& field, Reading& reading);
JsonTemplate read_json_template(const text::Node& node, Reading& reading);
std::optional<Json> read_json(const text::Field& field, Reading& reading);  // without expressions
std::optional<std::string> read_plain_text(const text::Field& field, std::string_view what, Reading& reading);
std::optional<Duration> read_positive_duration(const text::Field& field, Reading& reading);
NamedTemplates read_env(const text::Field& field, Reading& reading);
std::optional<CircuitBreakerRule> read_circuit_breaker(const text::Field& field, Reading& reading);
void read_description(text::Fields& fields, Reading& reading);

// ---- commands (reader_commands.cpp, reader_http.cpp)

void read_agents(const text::Field& field, Reading& reading);
const Agent* find_agent(std::string_view name, const Reading& reading) noexcept;
void use_agent(const Agent& agent, const text::Field& prompt, Command& command, Reading& reading);

// The verb fields of a map: run, argv, http and the agents. The others are the caller's.
std::vector<text::Field> find_command_verbs(text::Fields& fields, const Reading& reading);
std::optional<Command> read_command_verb(const text::Field& verb, Reading& reading);
// shell and stdin, beside the verb.
void read_command_setting(text::Fields& fields, const text::Node& map, Command& command, Reading& reading);

// Exactly one verb, in a map that may have other keys; `name` is the key the map stands under.
std::optional<Command> read_one_command(text::Fields& fields, const text::Node& map, std::string_view name,
                                        Reading& reading);
// A map that holds a command and nothing else.
std::optional<Command> read_command_map(const text::Field& field, Reading& reading);
std::optional<HttpCall> read_http(const text::Field& field, Reading& reading);

// ---- policies (reader_policy.cpp)

void read_named_policies(const text::Field& field, Reading& reading);
void read_defaults(const text::Field& field, Reading& reading);
void read_rh_defaults(text::Fields& fields, Reading& reading);     // default_retry_config, retry_config_by_actor_type
void read_azolla_default(text::Fields& fields, Reading& reading);  // retry_policy
void check_actor_types(
    Reading& reading);  // once all steps are known: is each type of retry_config_by_actor_type one of theirs?
std::string read_actor_type(const text::Field& field,
                            Reading& reading);  // as actor_type_of() names it; empty: a mistake
std::shared_ptr<TypeTree> read_types(const text::Field& field, Reading& reading);

// The step's own policy, or the most specific one above it.
void read_step_policy(text::Fields& fields, StepDraft& draft, bool type_is_written, Reading& reading);
std::optional<Policy> read_policy_node(const text::Field& field, Dialect dialect, Reading& reading);
void review_policies(Reading& reading);

// ---- steps (reader_steps.cpp, reader_step_parts.cpp, reader_prodigy.cpp)

void read_steps(const text::Field& field, bool is_final, Reading& reading);
ItemSource read_for_each(const text::Field& field, Reading& reading);
void read_on_failure(const text::Field& field, StepDraft& draft, Reading& reading);
void read_checks(text::Fields& fields, Step& step, Reading& reading);  // require, check, fix, fallback
void read_tolerate(const text::Field& field, Step& step, Reading& reading);
void read_wait(const text::Field& field, Step& step, Reading& reading);
void read_mapreduce(text::Fields& fields, Reading& reading);
void add_claude(Reading& reading);  // the verb that Prodigy documents have without declaring it

// ---- what only the whole document shows (graph.cpp, names.cpp)

void check_graph(Reading& reading);
void check_names(Reading& reading);

// Who comes before whom, through `needs`. Steps are indices of the drafts.
class Ancestors {
 public:
  explicit Ancestors(const std::vector<StepDraft>& drafts);
  bool comes_before(std::size_t earlier, std::size_t later) const noexcept;  // directly or not

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace reprise::flow
