#include "flow/reader/reader.hpp"

#include <algorithm>

#include "flow/reader/reading.hpp"
#include "policy/dialect/dialects.hpp"
#include "policy/dialect/reading.hpp"
#include "text/document.hpp"

namespace reprise::flow {
namespace {

using text::Field;
using text::Node;
using text::NodeType;

template <const char* Words>
std::string say(const Node&) {
  return Words;
}
constexpr char use_steps[] = "write steps, a list with an id for each";
constexpr char use_params[] = "write params for what a run is given, env for variables of the commands";
constexpr char use_env[] = "write env";
constexpr char use_finally[] = "write finally";
constexpr char use_defaults[] = "write defaults: {retry: …} for all steps, or retry on a step";
constexpr char use_on_step[] = "it stands on a step";
constexpr char use_deadline[] = "write runtime: {deadline: …} for the run, timeout on a step for each attempt";
constexpr char use_parallel[] = "write runtime: {max_parallel: …}";
constexpr char use_runtime[] = "write it under runtime";
constexpr char use_name[] = "write name";
constexpr char use_no_trigger[] = "nothing starts a flow by itself: reprise run does";
constexpr char use_goals[] = "write goals";
constexpr char use_classify[] = "write classify";
constexpr char use_mode[] = "only documents with mode: mapreduce have it";

std::string stem_of(std::string_view name) {
  name = name.substr(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && dot > 0) name = name.substr(0, dot);
  return name.empty() || name == "-" ? "flow" : std::string{name};
}

void read_version(text::Fields& fields, Reading& reading) {
  const auto field = fields.find("version");
  if (field && (field->node->type != NodeType::integer || field->node->text != "1")) {
    reading.report.error(*field->node, "version: expected 1, found " + text::describe(*field->node),
                         "this is the only version there is");
  }
}

// `dialect:` decides; without it, keys that only one system has at the top of a document do.
void read_dialect(text::Fields& fields, Reading& reading) {
  if (const auto field = fields.find("dialect")) {
    std::vector<std::string_view> names;
    for (const Dialect dialect : all_dialects) names.push_back(name_of(dialect));
    if (const auto word = text::read_word(*field, names, reading.report))
      reading.written_dialect = dialect_named(*word);
  }
  if (const auto field = fields.find("mode")) {
    const bool is_mapreduce = text::read_word(*field, {"mapreduce"}, reading.report).has_value();
    if (is_mapreduce && reading.written_dialect.value_or(Dialect::prodigy) != Dialect::prodigy) {
      reading.report.error(
          *field->node,
          "mode: mapreduce is prodigy's, and dialect says " + std::string{name_of(*reading.written_dialect)},
          "keep one of them");
    }
    if (is_mapreduce) reading.written_dialect = Dialect::prodigy;
  }
  const bool rh_agents = fields.find("default_retry_config") || fields.find("retry_config_by_actor_type");
  if (rh_agents && !reading.written_dialect) reading.written_dialect = Dialect::rh_agents;
}

// ---- params, secrets

std::optional<Parameter::Type> read_param_type(const Field& field, Reading& reading) {
  constexpr std::pair<std::string_view, std::string_view> other_words[] = {
      {"string", "text"},  {"str", "text"},   {"int", "integer"}, {"float", "number"},
      {"bool", "boolean"}, {"array", "list"}, {"object", "map"},  {"dict", "map"}};
  constexpr std::string_view words[] = {"any", "text", "integer", "number", "boolean", "list", "map"};
  const auto other = std::ranges::find(other_words, field.node->text, [](const auto& pair) { return pair.first; });
  if (other != std::end(other_words)) {
    reading.report.error(*field.node, "type: there is no type " + quoted(field.node->text),
                         "write " + std::string{other->second});
    return std::nullopt;
  }
  const auto word = text::read_word(field, words, reading.report);
  if (!word) return std::nullopt;
  return static_cast<Parameter::Type>(std::ranges::find(words, *word) - std::begin(words));
}

void read_long_param(const Node& node, Parameter& parameter, Reading& reading) {
  text::Fields fields{node, "a parameter", reading.report};
  if (const auto type = fields.find("type"))
    parameter.type = read_param_type(*type, reading).value_or(Parameter::Type::any);
  const auto value = fields.find("default");
  if (value) parameter.value = read_json(*value, reading);
  if (const auto required = fields.find("required")) {
    const auto is_required = text::read_boolean(*required, reading.report);
    if (is_required == true && value) {
      reading.report.error(*required->node, "required: a parameter with a default need not be given",
                           "keep one of them");
    }
    if (is_required == false && !value) parameter.value = nullptr;
  }
  read_description(fields, reading);
  fields.finish({{"value", [](const Node&) { return std::string{"write default"}; }}});
  if (value && parameter.value && !parameter.value->is_null()) {
    FlowDocument alone;
    alone.params.push_back(parameter);
    boost::json::object given;
    given[parameter.name] = *parameter.value;
    const auto bound = bind_params(alone, given);
    if (!bound) reading.report.error(*value->node, "default: " + bound.error().front());
  }
}

void read_params(const Field& field, Reading& reading) {
  const text::Fields fields{*field.node, "params", reading.report};
  if (field.node->members.size() > entries_max)
    return reading.report.error(*field.node, "params: more than " + std::to_string(entries_max));
  for (const auto& [key, value] : field.node->members) {
    if (!is_identifier(key->text)) {
      reading.report.error(*key, "params: " + quoted(key->text) + " cannot be a name",
                           "letters, digits and _, not a digit first");
      continue;
    }
    Parameter parameter{.name = key->text, .value = {}};
    if (value->type == NodeType::mapping) {
      read_long_param(*value, parameter, reading);
    } else {
      parameter.value = read_json({key->text, value}, reading);
    }
    reading.flow.params.push_back(std::move(parameter));
  }
}

void read_secrets(const Field& field, Reading& reading) {
  const text::Fields fields{*field.node, "secrets", reading.report};
  if (field.node->members.size() > entries_max)
    return reading.report.error(*field.node, "secrets: more than " + std::to_string(entries_max));
  for (const auto& [key, value] : field.node->members) {
    if (!is_identifier(key->text)) {
      reading.report.error(*key, "secrets: " + quoted(key->text) + " cannot be a name",
                           "letters, digits and _, not a digit first");
      continue;
    }
    Secret secret{.name = key->text, .env = {}, .file = {}, .place = place_of(*key)};
    if (value->type != NodeType::mapping) {
      reading.report.error(*value, "secrets: a secret does not stand in the document",
                           "write {env: VARIABLE} or {file: PATH}");
    } else {
      text::Fields parts{*value, "a secret", reading.report};
      const auto env = parts.find("env");
      const auto file = parts.find("file");
      if (env.has_value() == file.has_value())
        reading.report.error(*value, "a secret comes from env or from file, exactly one of them",
                             "such as {env: API_TOKEN}");
      if (env) secret.env = read_plain_text(*env, "the name of a variable", reading).value_or("");
      if (file) secret.file = read_plain_text(*file, "a file", reading).value_or("");
      parts.finish();
    }
    reading.flow.secrets.push_back(std::move(secret));
  }
}

// ---- runtime, goals

void read_runtime(const Field& field, Reading& reading) {
  constexpr std::int64_t visits_max = 1'000'000;
  text::Fields fields{*field.node, "runtime", reading.report};
  if (const auto number = fields.find("max_parallel")) {
    if (const auto value = text::read_whole(*number, {1, parallel_max}, reading.report))
      reading.flow.max_parallel = static_cast<std::uint32_t>(*value);
  }
  if (const auto deadline = fields.find("deadline")) {
    reading.flow.deadline = read_positive_duration(*deadline, reading);
    reading.deadline_node = deadline->node;
  }
  if (const auto stall = fields.find("stall_timeout")) {
    reading.stall_timeout =
        text::read_duration(*stall, reading.duration_grammar(), reading.report).value_or(Duration{0});
  }
  if (const auto visits = fields.find("max_visits")) {
    if (const auto value = text::read_whole(*visits, {1, visits_max}, reading.report))
      reading.max_visits = static_cast<std::uint32_t>(*value);
  }
  if (const auto limits = fields.find("limits")) dialect::read_limits(*limits, reading.worker_lost_max, reading.report);
  if (const auto breaker = fields.find("circuit_breaker"))
    reading.circuit_breaker = read_circuit_breaker(*breaker, reading);
  if (fields.is_map()) {
    fields.finish({{"timeout", [](const Node&) { return std::string{"write deadline"}; }},
                   {"max_elapsed", [](const Node&) { return std::string{"write deadline"}; }},
                   {"parallelism", [](const Node&) { return std::string{"write max_parallel"}; }},
                   {"concurrency", [](const Node&) { return std::string{"write max_parallel"}; }},
                   {"max-parallel", [](const Node&) { return std::string{"write max_parallel"}; }}});
  }
}

void read_goals(const Field& field, Reading& reading) {
  const std::vector<const Node*> names =
      field.node->type == NodeType::sequence ? field.node->items : std::vector{field.node};
  for (const Node* name : names) {
    if (name->is_scalar() && is_step_id(name->text) && name->type != NodeType::null) {
      reading.flow.goals.push_back(name->text);
      reading.goal_nodes.push_back(name);
    } else {
      reading.report.error(*name, "goals: expected the id of a step, found " + text::describe(*name),
                           "such as goals: [report]");
    }
  }
  if (names.empty()) reading.report.error(*field.node, "goals: the list is empty", "leave goals out to run all steps");
}

// ---- the document

void read_head(text::Fields& fields, Reading& reading) {
  read_version(fields, reading);
  read_dialect(fields, reading);
  reading.flow.name = stem_of(reading.document.name());
  if (const auto field = fields.find("name")) {
    if (auto name = read_plain_text(*field, "a name", reading)) reading.flow.name = *std::move(name);
  }
  read_description(fields, reading);
  if (reading.written_dialect == Dialect::wave) {  // as Wave has it
    reading.stall_timeout = std::chrono::minutes{30};
    reading.circuit_breaker = CircuitBreakerRule{};
  }
  if (const auto field = fields.find("types")) reading.flow.types = read_types(*field, reading);
  if (const auto field = fields.find("params")) read_params(*field, reading);
  if (const auto field = fields.find("secrets")) read_secrets(*field, reading);
  if (const auto field = fields.find("env")) reading.flow.env = read_env(*field, reading);
  if (const auto field = fields.find("classify"))
    reading.flow.classify = dialect::read_classify_list(*field, reading.report);
  if (const auto field = fields.find("policies")) read_named_policies(*field, reading);
  if (const auto field = fields.find("defaults")) read_defaults(*field, reading);
  read_rh_defaults(fields, reading);
  read_azolla_default(fields, reading);
  if (const auto field = fields.find("runtime")) read_runtime(*field, reading);
}

void finish_document(text::Fields& fields) {
  fields.finish({{"jobs", say<use_steps>},
                 {"tasks", say<use_steps>},
                 {"stages", say<use_steps>},
                 {"workflow", say<use_steps>},
                 {"pipeline", say<use_steps>},
                 {"step", say<use_steps>},
                 {"vars", say<use_params>},
                 {"variables", say<use_params>},
                 {"inputs", say<use_params>},
                 {"parameters", say<use_params>},
                 {"environment", say<use_env>},
                 {"always", say<use_finally>},
                 {"post", say<use_finally>},
                 {"after_script", say<use_finally>},
                 {"cleanup", say<use_finally>},
                 {"retry", say<use_defaults>},
                 {"retries", say<use_defaults>},
                 {"retry_config", say<use_on_step>},
                 {"work_config", say<use_on_step>},
                 {"timeout", say<use_deadline>},
                 {"deadline", say<use_deadline>},
                 {"timeout-minutes", say<use_deadline>},
                 {"max_parallel", say<use_parallel>},
                 {"max-parallel", say<use_parallel>},
                 {"parallelism", say<use_parallel>},
                 {"concurrency", say<use_parallel>},
                 {"stall_timeout", say<use_runtime>},
                 {"circuit_breaker", say<use_runtime>},
                 {"max_visits", say<use_runtime>},
                 {"id", say<use_name>},
                 {"on", say<use_no_trigger>},
                 {"schedule", say<use_no_trigger>},
                 {"targets", say<use_goals>},
                 {"rules", say<use_classify>},
                 {"map", say<use_mode>},
                 {"reduce", say<use_mode>},
                 {"setup", say<use_mode>},
                 {"error_policy", say<use_mode>}});
}

void read_body(text::Fields& fields, Reading& reading) {
  const bool is_mapreduce = fields.find("mode").has_value();
  if (is_mapreduce) add_claude(reading);
  if (const auto field = fields.find("agents")) read_agents(*field, reading);
  const auto steps = fields.find("steps");
  const auto goals = fields.find("goals");
  if (is_mapreduce) {
    for (const auto& field : {steps, goals}) {
      if (field)
        reading.report.error(*field->node, std::string{field->key} +
                                               ": a document with mode: mapreduce has setup, map and reduce instead");
    }
    read_mapreduce(fields, reading);
  } else if (steps) {
    read_steps(*steps, false, reading);
    if (goals) read_goals(*goals, reading);
  }
  if (const auto field = fields.find("finally")) read_steps(*field, true, reading);
  finish_document(fields);
  if (!steps && !is_mapreduce && !reading.report.has_errors())
    reading.report.error(reading.document.root(), "the document has no steps",
                         "such as steps: [{id: hello, run: echo hello}]");
}

void warn_about_timeouts(Reading& reading) {
  if (!reading.flow.deadline) return;
  for (const StepDraft& draft : reading.drafts) {
    if (draft.timeout_node == nullptr || !draft.step.timeout || *draft.step.timeout < *reading.flow.deadline) continue;
    reading.report.warning(*draft.timeout_node, "timeout: it is not shorter than the deadline of the run, " +
                                                    text::format_duration(*reading.flow.deadline));
  }
}

// A request that nobody answers, or a report that never comes, would be waited for without end.
void warn_about_endless_waits(Reading& reading) {
  if (reading.flow.deadline) return;
  for (const StepDraft& draft : reading.drafts) {
    const Step& step = draft.step;
    const bool has_limit = step.timeout || step.policy.attempt_timeout || step.policy.max_elapsed;
    if (has_limit || step.commands.size() != 1 || step.commands.front().kind != Command::Kind::http) continue;
    if (step.commands.front().http.is_async) {
      reading.report.warning(*draft.node,
                             "step " + quoted(step.id) +
                                 " is async and has no timeout: a report that never comes is waited for without end",
                             "such as timeout: 1h");
    } else if (step.needs_verdict) {
      reading.report.warning(
          *draft.node,
          "step " + quoted(step.id) + " has no timeout: a handler that never answers is waited for without end",
          "such as timeout: 5m");
    }
  }
}

// What the document is called when nothing at its top says it: the one other system whose policies its steps use.
Dialect overall_dialect(const Reading& reading) {
  if (reading.written_dialect) return *reading.written_dialect;
  Dialect found = Dialect::native;
  for (const StepDraft& draft : reading.drafts) {
    if (draft.step.dialect == Dialect::native || draft.step.dialect == found) continue;
    if (found != Dialect::native) return Dialect::native;
    found = draft.step.dialect;
  }
  return found;
}

}  // namespace

std::expected<ReadFlow, std::vector<Diagnostic>> read_flow(std::string text, std::string name) {
  const auto document = text::read_document(std::move(text), std::move(name));
  if (!document) return std::unexpected(document.error());
  text::Report report{*document};
  Reading reading{.document = *document, .report = report};
  text::Fields fields{document->root(), "", report};
  if (!fields.is_map()) return std::unexpected(report.take());
  read_head(fields, reading);
  read_body(fields, reading);
  check_graph(reading);
  check_names(reading);
  check_actor_types(reading);
  if (report.has_errors()) return std::unexpected(report.take());
  warn_about_timeouts(reading);
  warn_about_endless_waits(reading);
  review_policies(reading);
  FlowDocument& flow = reading.flow;
  flow.dialect = overall_dialect(reading);
  for (StepDraft& draft : reading.drafts) {
    std::optional<std::uint32_t>& losses = draft.step.policy.worker_lost_max;
    if (!losses) losses = reading.worker_lost_max;  // a policy that says nothing of them has the document's limit
  }
  for (StepDraft& draft : reading.drafts) (draft.is_final ? flow.finally : flow.steps).push_back(std::move(draft.step));
  return ReadFlow{std::move(flow), report.take()};
}

}  // namespace reprise::flow
