// One step after the other: the verb, the keys around it, and words of other tools that people try here.
#include <algorithm>

#include "flow/reader/reading.hpp"
#include "text/nearest.hpp"
#include "text/scalar.hpp"

namespace reprise::flow {
namespace {

using text::Field;
using text::Node;
using text::NodeType;

constexpr std::int64_t visits_max = 1'000'000;

template <const char* Words>
std::string say(const Node&) {
  return Words;
}
constexpr char use_id[] = "write id";
constexpr char use_needs[] = "write needs";
constexpr char use_run[] = "write run for a line of the shell, argv for a list of arguments";
constexpr char use_shell[] = "write run for the line; shell beside it names the program that reads it";
constexpr char use_no_uses[] =
    "there are no actions to install: write run, argv, http or a verb of your own under agents";
constexpr char use_with[] = "write the values into run, argv or http; params goes with flow";
constexpr char use_for_each[] = "write for_each; the element is ${item}";
constexpr char use_if[] = "write if";
constexpr char use_continue[] = "write on_failure: continue";
constexpr char use_timeout[] = "write timeout with a unit, such as timeout: 10m";
constexpr char use_max_parallel[] = "write max_parallel";
constexpr char use_finally[] = "write the step under finally, beside steps";
constexpr char use_env[] = "write env";
constexpr char use_directory[] = "write directory";
constexpr char use_http[] = "write http: {url: …}";
constexpr char use_wait[] = "write wait: 10s";
constexpr char use_signal[] = "write signal: NAME; the step waits until it comes";
constexpr char use_flow[] = "write flow: FILE";
constexpr char use_on_failure[] = "write on_failure: fail, skip, continue, dead_letter, {goto: step} or {run: …}";
constexpr char use_output[] = "write output: text, json or lines; later steps read ${steps.ID.output}";
constexpr char use_retry[] = "write retry: {initial: …}";
constexpr char use_tolerate[] = "write tolerate: 5% or a count";

std::string retries_hint(const Node& value) {
  const auto retries = text::whole_number(value.text);
  if (!retries || *retries < 0 || *retries >= UINT32_MAX)
    return "write retry: {max_attempts: …}, which counts the first run too";
  return "write retry: {max_attempts: " + std::to_string(*retries + 1) + "} (the first run counts)";
}

std::string timeout_minutes_hint(const Node& value) {
  return text::whole_number(value.text) ? "write timeout: " + value.text + "m" : say<use_timeout>(value);
}

std::string timeout_seconds_hint(const Node& value) {
  return text::whole_number(value.text) ? "write timeout: " + value.text + "s" : say<use_timeout>(value);
}

std::string attempts_hint(const Node& value) {
  return text::whole_number(value.text) ? "write retry: {max_attempts: " + value.text + "}"
                                        : "write retry: {max_attempts: …}";
}

void finish_step(text::Fields& fields) {
  fields.finish({{"name", say<use_id>},
                 {"depends_on", say<use_needs>},
                 {"depends", say<use_needs>},
                 {"dependsOn", say<use_needs>},
                 {"dependencies", say<use_needs>},
                 {"after", say<use_needs>},
                 {"requires", say<use_needs>},
                 {"script", say<use_run>},
                 {"cmd", say<use_run>},
                 {"command", say<use_run>},
                 {"commands", say<use_run>},
                 {"shell", say<use_shell>},
                 {"bash", say<use_run>},
                 {"exec", say<use_run>},
                 {"uses", say<use_no_uses>},
                 {"image", say<use_no_uses>},
                 {"with", say<use_with>},
                 {"args", say<use_with>},
                 {"inputs", say<use_with>},
                 {"matrix", say<use_for_each>},
                 {"strategy", say<use_for_each>},
                 {"with_items", say<use_for_each>},
                 {"loop", say<use_for_each>},
                 {"foreach", say<use_for_each>},
                 {"forEach", say<use_for_each>},
                 {"items", say<use_for_each>},
                 {"when", say<use_if>},
                 {"condition", say<use_if>},
                 {"continue-on-error", say<use_continue>},
                 {"continue_on_error", say<use_continue>},
                 {"allow_failure", say<use_continue>},
                 {"ignore_errors", say<use_continue>},
                 {"continue_on_failure", say<use_continue>},
                 {"timeout-minutes", timeout_minutes_hint},
                 {"timeout_minutes", timeout_minutes_hint},
                 {"timeout_secs", timeout_seconds_hint},
                 {"timeout_seconds", timeout_seconds_hint},
                 {"parallelism", say<use_max_parallel>},
                 {"max-parallel", say<use_max_parallel>},
                 {"concurrency", say<use_max_parallel>},
                 {"parallel", say<use_max_parallel>},
                 {"always", say<use_finally>},
                 {"post", say<use_finally>},
                 {"finally", say<use_finally>},
                 {"after_script", say<use_finally>},
                 {"vars", say<use_env>},
                 {"variables", say<use_env>},
                 {"environment", say<use_env>},
                 {"working-directory", say<use_directory>},
                 {"working_directory", say<use_directory>},
                 {"workdir", say<use_directory>},
                 {"cwd", say<use_directory>},
                 {"chdir", say<use_directory>},
                 {"url", say<use_http>},
                 {"uri", say<use_http>},
                 {"sleep", say<use_wait>},
                 {"delay", say<use_wait>},
                 {"pause", say<use_wait>},
                 {"approval", say<use_signal>},
                 {"event", say<use_signal>},
                 {"workflow", say<use_flow>},
                 {"include", say<use_flow>},
                 {"on_error", say<use_on_failure>},
                 {"onError", say<use_on_failure>},
                 {"catch", say<use_on_failure>},
                 {"rescue", say<use_on_failure>},
                 {"outputs", say<use_output>},
                 {"register", say<use_output>},
                 {"capture_output", say<use_output>},
                 {"backoff", say<use_retry>},
                 {"max_failures", say<use_tolerate>},
                 {"retries", retries_hint},
                 {"max_retries", retries_hint},
                 {"retry_count", retries_hint},
                 {"max_attempts", attempts_hint},
                 {"attempts", attempts_hint}});
}

void read_id(text::Fields& fields, StepDraft& draft, Reading& reading) {
  const auto field = fields.find("id");
  if (!field) {
    if (draft.node->find("name") != nullptr) return;  // its hint says it all
    reading.report.error(*draft.node, "a step needs an id", "such as id: fetch; others refer to it by this name");
    return;
  }
  draft.id_node = field->node;
  if (field->node->is_scalar() && is_step_id(field->node->text) && field->node->type != NodeType::null) {
    draft.step.id = field->node->text;
  } else {
    reading.report.error(*field->node,
                         "id: expected letters, digits, _, . and -, found " + text::describe(*field->node));
  }
}

void read_needs(const Field& field, StepDraft& draft, Reading& reading) {
  const Node& node = *field.node;
  const std::vector<const Node*> names = node.type == NodeType::sequence ? node.items : std::vector{&node};
  if (names.size() > steps_max)
    return reading.report.error(node, "needs: more than " + std::to_string(steps_max) + " steps");
  for (const Node* name : names) {
    if (!name->is_scalar() || !is_step_id(name->text) || name->type == NodeType::null) {
      reading.report.error(*name, "needs: expected the id of a step, found " + text::describe(*name),
                           "such as needs: [fetch]");
      continue;
    }
    if (std::ranges::find(draft.step.needs, name->text) != draft.step.needs.end()) {
      reading.report.error(*name, "needs: " + quoted(name->text) + " is named twice", "keep one of them");
      continue;
    }
    draft.step.needs.push_back(name->text);
    draft.needs_nodes.push_back(name);
  }
}

// Keys that mean nothing for what a step does are mistakes: whoever wrote them expects something of them.
void refuse_without_effect(const Node& step, std::string_view verb, std::initializer_list<std::string_view> keys,
                           Reading& reading) {
  for (const auto& [key, value] : step.members) {
    if (std::ranges::find(keys, key->text) != keys.end()) {
      reading.report.error(*key, quoted(key->text) + " means nothing for a step with " + std::string{verb},
                           "remove it");
    }
  }
}

void refuse_keys_of_other_verbs(const StepDraft& draft, Reading& reading) {
  const Node& node = *draft.node;
  switch (draft.step.verb) {
    case Verb::wait:
      refuse_without_effect(node, "wait", {"timeout", "on_failure", "output"}, reading);
      [[fallthrough]];
    case Verb::signal:
      refuse_without_effect(node, draft.step.verb == Verb::wait ? "wait" : "signal",
                            {"for_each", "max_parallel", "tolerate", "retry", "retry_policy", "retry_config",
                             "work_config", "require", "check", "fix", "fallback", "kind", "type", "env", "directory",
                             "stall_timeout", "circuit_breaker", "effect"},
                            reading);
      break;
    case Verb::flow:
      refuse_without_effect(node, "flow", {"env", "directory", "output", "kind", "stall_timeout", "fix", "effect"},
                            reading);
      break;
    case Verb::call:
      refuse_without_effect(node, "call", {"env", "directory", "stall_timeout"}, reading);
      break;
    case Verb::commands:
      break;
  }
  if (draft.step.verb != Verb::flow) refuse_without_effect(node, "another verb than flow", {"params"}, reading);
  if (draft.step.verb != Verb::commands)
    refuse_without_effect(node, "another verb than run or argv", {"stdin"}, reading);
  if (node.find("for_each") == nullptr)
    refuse_without_effect(node, "no for_each", {"max_parallel", "tolerate", "label"}, reading);
}

void read_flow_verb(const Field& field, text::Fields& fields, Step& step, Reading& reading) {
  step.verb = Verb::flow;
  step.flow.file = read_template(field, reading).value_or(Template{});
  const auto params = fields.find("params");
  if (!params) return;
  const text::Fields map{*params->node, "params", reading.report};
  for (const auto& [key, value] : params->node->members)
    step.flow.params.emplace_back(key->text, read_json_template(*value, reading));
}

void read_verb(const Field& verb, text::Fields& fields, StepDraft& draft, Reading& reading) {
  Step& step = draft.step;
  if (verb.key == "wait") {
    step.verb = Verb::wait;
    read_wait(verb, step, reading);
  } else if (verb.key == "signal" || verb.key == "call") {
    step.verb = verb.key == "call" ? Verb::call : Verb::signal;
    std::string& name = verb.key == "call" ? step.call : step.signal;
    name = read_plain_text(verb, verb.key == "call" ? "the name of a handler" : "the name of a signal", reading)
               .value_or("");
  } else if (verb.key == "flow") {
    read_flow_verb(verb, fields, step, reading);
  } else if (auto command = read_command_verb(verb, reading)) {
    read_command_setting(fields, *draft.node, *command, reading);
    step.commands.push_back(*std::move(command));
  }
}

void read_verbs(text::Fields& fields, StepDraft& draft, Reading& reading) {
  std::vector<Field> verbs = find_command_verbs(fields, reading);
  for (const char* word : {"wait", "signal", "flow", "call"}) {
    if (const auto field = fields.find(word)) verbs.push_back(*field);
  }
  fields.find("params");
  if (verbs.size() == 1) return read_verb(verbs.front(), fields, draft, reading);
  std::vector<std::string_view> words{"run", "argv", "http", "wait", "signal", "flow", "call"};
  for (const Agent& agent : reading.agents) words.push_back(agent.name);
  std::string help = "exactly one of " + text::join_words(words);
  if (verbs.empty()) {
    const bool said_otherwise = std::ranges::any_of(draft.node->members, [](const Node::Member& member) {
      constexpr std::string_view verbs_elsewhere[] = {"script", "cmd",   "command",  "commands", "shell",    "bash",
                                                      "exec",   "uses",  "image",    "url",      "uri",      "sleep",
                                                      "delay",  "pause", "approval", "event",    "workflow", "include"};
      return std::ranges::find(verbs_elsewhere, member.key->text) != std::end(verbs_elsewhere);
    });
    if (!said_otherwise)
      reading.report.error(*draft.node, "a step that does nothing", std::move(help));  // else the key's hint says it
    return;
  }
  reading.report.error(
      *verbs[1].node,
      std::string{verbs[1].key} + ": " + std::string{verbs[0].key} + " is given too, and a step does one thing",
      std::move(help));
}

void read_limits(text::Fields& fields, StepDraft& draft, Reading& reading) {
  Step& step = draft.step;
  step.max_visits = reading.max_visits;
  step.stall_timeout = reading.stall_timeout;
  step.circuit_breaker = reading.circuit_breaker;
  if (const auto field = fields.find("max_visits")) {
    if (const auto visits = text::read_whole(*field, {1, visits_max}, reading.report))
      step.max_visits = static_cast<std::uint32_t>(*visits);
  }
  if (const auto field = fields.find("stall_timeout"))
    step.stall_timeout = text::read_duration(*field, reading.duration_grammar(), reading.report).value_or(Duration{0});
  if (const auto field = fields.find("circuit_breaker")) {
    if (auto rule = read_circuit_breaker(*field, reading)) step.circuit_breaker = std::move(rule);
  }
  if (const auto field = fields.find("effect")) {
    if (const auto word = text::read_word(*field, {"keyed", "idempotent", "at_most_once"}, reading.report))
      step.effect = effect_named(*word).value_or(Effect::keyed);
  }
  if (const auto field = fields.find("timeout")) {
    step.timeout = read_positive_duration(*field, reading);
    draft.timeout_node = field->node;
  }
}

void read_items(text::Fields& fields, Step& step, Reading& reading) {
  if (const auto field = fields.find("for_each")) {
    const VisibleNamesGuard guard{reading, {.steps = true, .run_status = reading.visible.run_status}};
    step.for_each = read_for_each(*field, reading);
  }
  if (const auto field = fields.find("max_parallel")) {
    if (const auto number = text::read_whole(*field, {1, parallel_max}, reading.report))
      step.max_parallel = static_cast<std::uint32_t>(*number);
  }
  if (const auto field = fields.find("tolerate")) read_tolerate(*field, step, reading);
  if (const auto field = fields.find("label")) {
    const VisibleNamesGuard guard{reading, {.item = true}};
    step.label = read_template(*field, reading);
  }
}

void read_late(const Field& field, Step& step, Reading& reading) {
  step.refuses_late = text::read_word(field, {"refuse"}, reading.report).has_value();
  const bool is_async = step.commands.size() == 1 && step.commands.front().kind == Command::Kind::http &&
                        step.commands.front().http.is_async;
  if (!is_async)
    reading.report.error(*field.node, "late: only reports of asynchronous work can come late",
                         "write it beside http: {…, async: true}, or remove it");
}

void read_small_keys(text::Fields& fields, StepDraft& draft, Reading& reading) {
  Step& step = draft.step;
  if (const auto field = fields.find("kind"))
    step.is_test = text::read_word(*field, {"test"}, reading.report).has_value();
  if (const auto field = fields.find("output")) {
    const auto form = text::read_word(*field, {"text", "json", "lines"}, reading.report);
    if (form == "json") step.output = OutputForm::json;
    if (form == "lines") step.output = OutputForm::lines;
  }
  if (const auto field = fields.find("late")) read_late(*field, step, reading);
  if (const auto field = fields.find("env")) step.env = read_env(*field, reading);
  if (const auto field = fields.find("directory"))
    step.directory = read_plain_text(*field, "a folder, relative to the document", reading).value_or("");
  read_description(fields, reading);
}

// A type of its own chooses the policy; an agent's type is as good as one that is written on the step.
bool read_type(text::Fields& fields, Step& step, Reading& reading) {
  if (const auto field = fields.find("type")) {
    if (std::string type = read_actor_type(*field, reading); !type.empty()) step.type = std::move(type);
    return true;
  }
  const Agent* agent = step.commands.empty() ? nullptr : find_agent(step.commands.front().verb, reading);
  if (agent == nullptr || agent->type.empty()) return false;
  step.type = agent->type;
  return true;
}

void settle_timeouts(Step& step) {
  if (!step.commands.empty() && step.commands.front().timeout) {  // an agent's is the step's unless it has its own
    if (!step.timeout) step.timeout = step.commands.front().timeout;
    step.commands.front().timeout.reset();
  }
  const bool shorter = step.timeout && (!step.policy.attempt_timeout || *step.timeout < *step.policy.attempt_timeout);
  if (shorter && step.verb != Verb::signal) step.policy.attempt_timeout = step.timeout;
}

void settle_parallelism(StepDraft& draft, Reading& reading) {
  Step& step = draft.step;
  if (step.dialect == Dialect::argyll && step.for_each) {
    const Node* written = draft.policy_node != nullptr ? draft.policy_node->find("parallelism") : nullptr;
    if (step.max_parallel != 0 && written != nullptr) {
      reading.report.error(*written, "parallelism: max_parallel is given too, and they mean the same",
                           "keep one of them");
    } else if (step.max_parallel == 0) {
      step.max_parallel = step.policy.parallelism;
    }
  } else if (step.for_each && step.max_parallel > 1 && draft.policy_node != nullptr &&
             step.policy.jitter == Jitter::none) {
    Policy reviewed = step.policy;  // so that the review sees the fan-out
    reviewed.parallelism = step.max_parallel;
    const bool reviewed_last = !reading.reviews.empty() && reading.reviews.back().node == draft.policy_node;
    if (reviewed_last) reading.reviews.back().policy = std::move(reviewed);
  }
}

void read_step(const Node& node, bool is_final, Reading& reading) {
  StepDraft& draft = reading.drafts.emplace_back();
  Step& step = draft.step;
  draft.node = &node;
  draft.is_final = is_final;
  step.place = place_of(node);
  text::Fields fields{node, "a step", reading.report};
  if (!fields.is_map()) return;
  reading.step = reading.drafts.size() - 1;
  const VisibleNamesGuard guard{
      reading, {.steps = true, .item = node.find("for_each") != nullptr, .attempt = true, .run_status = is_final}};
  read_id(fields, draft, reading);
  if (const auto field = fields.find("needs")) read_needs(*field, draft, reading);
  if (const auto field = fields.find("if")) {
    const VisibleNamesGuard once{reading, {.steps = true, .run_status = is_final}};
    step.condition = read_condition(*field, reading);
  }
  read_items(fields, step, reading);
  read_verbs(fields, draft, reading);
  const bool type_is_written = read_type(fields, step, reading);
  read_limits(fields, draft, reading);
  const bool has_attempts = step.verb != Verb::wait && step.verb != Verb::signal;
  if (has_attempts) {
    read_step_policy(fields, draft, type_is_written, reading);
  } else {
    for (const char* key : {"retry", "retry_policy", "retry_config", "work_config"}) fields.find(key);  // refused below
    step.policy = policy::none;
    step.policy_source = "it has no attempts";
  }
  settle_timeouts(step);
  settle_parallelism(draft, reading);
  read_checks(fields, step, reading);
  if (const auto field = fields.find("on_failure")) read_on_failure(*field, draft, reading);
  step.tolerate_any = step.on_failure == OnFailure::dead_letter && node.find("tolerate") == nullptr;
  read_small_keys(fields, draft, reading);
  refuse_keys_of_other_verbs(draft, reading);
  finish_step(fields);
  reading.step = no_step;
}

}  // namespace

void read_steps(const Field& field, bool is_final, Reading& reading) {
  if (field.node->type == NodeType::mapping) {
    reading.report.error(*field.node, std::string{field.key} + ": expected a list of steps, found a map",
                         "write - id: NAME before each step, instead of NAME:");
    return;
  }
  const auto items = text::read_list(field, "steps", reading.report, steps_max);
  for (const Node* item : items.value_or(std::vector<const Node*>{})) {
    if (reading.report.is_full()) return;
    read_step(*item, is_final, reading);
  }
  if (items && items->empty() && !is_final)
    reading.report.error(*field.node, "steps: the list is empty", "a flow has at least one step");
}

}  // namespace reprise::flow
