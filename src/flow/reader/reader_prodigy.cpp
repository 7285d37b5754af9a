// Prodigy's `mode: mapreduce`: setup, map and reduce, read as steps (docs/reference/dialects.md).
//
// setup and reduce become the steps setup-1, setup-2 …, map, reduce-1 …, one after the other. `claude:` runs `claude -p PROMPT` unless the
// document has an agent of that name; `shell:` is a line for sh. `map.results`, `.outputs`, `.successful`, `.failed` and `.total` are the
// map's results. reader_prodigy_policy.cpp reads what is said about failures.
#include <algorithm>

#include "flow/reader/reading_prodigy.hpp"
#include "policy/dialect/dialects.hpp"
#include "text/nearest.hpp"
#include "text/scalar.hpp"

namespace reprise::flow {

using text::Field;
using text::Node;
using text::NodeType;

namespace {

std::string filter_hint(const Node&) {
  return "this is not supported: a filter may stand in json_path, such as $.items[?@.price < 10]";
}
std::string commit_hint(const Node&) {
  return "this is not supported: nothing is committed here; check the commit in a shell command";
}
std::string capture_hint(const Node&) { return "the output is kept anyway"; }
std::string map_timeout_hint(const Node&) { return "write agent_timeout_secs under map"; }

std::vector<Field> find_verbs(text::Fields& fields, const Reading& reading) {
  std::vector<Field> verbs;
  if (const auto field = fields.find("shell")) verbs.push_back(*field);
  for (const Agent& agent : reading.agents) {
    if (const auto field = fields.find(agent.name)) verbs.push_back(*field);
  }
  return verbs;
}

}  // namespace

std::optional<Command> read_template_command(text::Fields& fields, const Node& map, bool may_recover,
                                             Reading& reading) {
  const std::vector<Field> verbs = find_verbs(fields, reading);
  if (verbs.size() != 1) {
    std::vector<std::string_view> words{"shell"};
    for (const Agent& agent : reading.agents) words.push_back(agent.name);
    reading.report.error(map, "a command has exactly one of " + text::join_words(words) + ", found " +
                                  (verbs.empty() ? "none" : std::to_string(verbs.size())));
    return std::nullopt;
  }
  Command command;
  if (verbs.front().key == "shell") {
    command.shell = read_template(verbs.front(), reading).value_or(Template{});
    command.verb = "shell";
    command.place = place_of(*verbs.front().node);
  } else {
    use_agent(*find_agent(verbs.front().key, reading), verbs.front(), command, reading);
  }
  if (!may_recover) return command;
  if (const auto field = fields.find("on_failure")) {
    text::Fields inside{*field->node, "on_failure", reading.report};
    if (inside.is_map()) {
      if (auto recovery = read_template_command(inside, *field->node, false, reading))
        command.on_failure = std::make_shared<const Command>(*std::move(recovery));
      inside.finish(
          {{"max_attempts", not_supported}, {"fail_workflow", not_supported}, {"commit_required", commit_hint}});
    }
  }
  return command;
}

std::string not_supported(const Node&) { return "this is not supported"; }

// `timeout: 300` and `timeout: 5m` both occur.
std::optional<Duration> read_timeout(const Field& field, Reading& reading) {
  if (field.node->type == NodeType::string)
    return text::read_duration(field, text::DurationGrammar::humantime, reading.report);
  return text::read_decimal_duration(field, std::int64_t{1'000'000'000}, "seconds", reading.report);
}

namespace {

std::vector<const Node*> commands_of(const Field& field, Reading& reading) {
  const Node* list = field.node;
  if (list->type == NodeType::mapping) {
    text::Fields fields{*list, field.key, reading.report};
    const auto commands = fields.find("commands");
    fields.finish({{"timeout", not_supported}, {"capture_outputs", capture_hint}});
    if (!commands) {
      reading.report.error(*list, std::string{field.key} + ": commands is missing", "write a list of commands");
      return {};
    }
    list = commands->node;
  }
  const auto items = text::read_list({field.key, list}, "commands", reading.report, steps_max);
  return items.value_or(std::vector<const Node*>{});
}

StepDraft& add_draft(const Node& node, std::string id, std::string_view after, Reading& reading) {
  StepDraft& draft = reading.drafts.emplace_back();
  draft.node = &node;
  draft.id_node = &node;
  draft.step.id = std::move(id);
  draft.step.place = place_of(node);
  draft.step.max_visits = reading.max_visits;
  draft.step.stall_timeout = reading.stall_timeout;
  draft.step.circuit_breaker = reading.circuit_breaker;
  if (!after.empty()) draft.step.needs.emplace_back(after);
  reading.step = reading.drafts.size() - 1;
  return draft;
}

void set_type(Step& step, const Reading& reading) {
  const Agent* agent = step.commands.empty() ? nullptr : find_agent(step.commands.front().verb, reading);
  if (agent != nullptr && !agent->type.empty()) step.type = agent->type;
}

void limit_attempts(Step& step) {
  const bool shorter = step.timeout && (!step.policy.attempt_timeout || *step.timeout < *step.policy.attempt_timeout);
  if (shorter) step.policy.attempt_timeout = step.timeout;
}

// setup, reduce: each command is a step. Returns the id of the last one.
std::string read_phase(const Field& field, std::string after, Reading& reading) {
  const VisibleNamesGuard guard{reading, {.steps = true, .attempt = true}};
  std::size_t number = 0;
  for (const Node* node : commands_of(field, reading)) {
    if (reading.report.is_full()) break;
    text::Fields fields{*node, "a command", reading.report};
    if (!fields.is_map()) continue;
    std::string id = std::string{field.key} + "-" + std::to_string(++number);
    StepDraft& draft = add_draft(*node, id, after, reading);
    if (auto command = read_template_command(fields, *node, true, reading))
      draft.step.commands.push_back(*std::move(command));
    set_type(draft.step, reading);
    read_step_policy(fields, draft, false, reading);
    if (const auto timeout = fields.find("timeout")) draft.step.timeout = read_timeout(*timeout, reading);
    limit_attempts(draft.step);
    fields.finish({{"commit_required", commit_hint},
                   {"capture_output", capture_hint},
                   {"capture", capture_hint},
                   {"when", not_supported}});
    after = std::move(id);
  }
  reading.step = no_step;
  return after;
}

void read_agent_template(const Field& field, Step& step, Reading& reading) {
  const VisibleNamesGuard guard{reading, {.steps = true, .item = true, .attempt = true}};
  for (const Node* node : commands_of(field, reading)) {
    if (reading.report.is_full()) return;
    text::Fields fields{*node, "a command", reading.report};
    if (!fields.is_map()) continue;
    auto command = read_template_command(fields, *node, true, reading);
    if (const auto timeout = fields.find("timeout"); timeout && command) command->timeout = read_timeout(*timeout, reading);
    if (const auto retry = fields.find("retry_config")) {
      if (auto policy = read_policy_node(*retry, Dialect::prodigy, reading))
        step.command_policies.push_back({.command = static_cast<std::uint32_t>(step.commands.size() + 1),
                                         .line = retry->node->place.line,
                                         .policy = *std::move(policy)});
    }
    if (command) step.commands.push_back(*std::move(command));
    fields.finish({{"commit_required", commit_hint},
                   {"capture_output", capture_hint},
                   {"capture", capture_hint},
                   {"when", not_supported}});
  }
  step.keeps_outputs = step.commands.size() > 1;
  if (step.commands.empty() && !reading.report.has_errors())
    reading.report.error(*field.node, "agent_template: there is no command in it");
}

void read_input(text::Fields& fields, const Node& map, Step& step, Reading& reading) {
  const VisibleNamesGuard guard{reading, {.steps = true}};
  ItemSource& source = step.for_each.emplace();
  source.kind = ItemSource::Kind::file;
  if (const auto input = fields.find("input")) {
    source.file = read_template(*input, reading).value_or(Template{});
  } else {
    reading.report.error(map, "map: input is missing", "such as input: items.json");
  }
  if (const auto path = fields.find("json_path")) {
    const auto text = read_plain_text(*path, "a JSONPath such as $.items[*]", reading);
    auto parsed = text ? json::JsonPath::parse(*text) : std::unexpected(json::JsonPathMistake{});
    if (parsed) {
      source.path = *std::move(parsed);
    } else if (text) {
      error_inside(*path->node, parsed.error().offset, "json_path: " + parsed.error().message,
                   "a JSONPath (RFC 9535), such as $.items[*]", reading);
    }
  }
}

void finish_map(text::Fields& fields) {
  fields.finish({{"filter", filter_hint},
                 {"sort_by", not_supported},
                 {"max_items", not_supported},
                 {"offset", not_supported},
                 {"distinct", not_supported},
                 {"retry_config", [](const Node&) { return std::string{"write it under error_policy"}; }},
                 {"timeout", map_timeout_hint}});
}

// The whole map phase; `shared` is the error_policy at the top of the document.
void read_map(const Field& field, const std::optional<Field>& shared, std::string_view after, Reading& reading) {
  text::Fields fields{*field.node, "map", reading.report};
  if (!fields.is_map()) return;
  StepDraft& draft = add_draft(*field.node, "map", after, reading);
  Step& step = draft.step;
  step.policy = dialect::default_policy(Dialect::prodigy);
  step.policy_source = "default of prodigy";
  step.dialect = Dialect::prodigy;
  step.on_failure = OnFailure::dead_letter;
  step.tolerate_any = true;
  read_input(fields, *field.node, step, reading);
  if (const auto commands = fields.find("agent_template")) {
    read_agent_template(*commands, step, reading);
  } else {
    reading.report.error(*field.node, "map: agent_template is missing",
                         "such as agent_template: [{shell: \"./process ${item.id}\"}]");
  }
  set_type(step, reading);
  if (const auto number = fields.find("max_parallel")) {
    if (const auto value = text::read_whole(*number, {1, parallel_max}, reading.report))
      step.max_parallel = static_cast<std::uint32_t>(*value);
  }
  read_map_policies(fields, shared, draft, reading);
  finish_map(fields);
  reading.step = no_step;
}

}  // namespace

void add_claude(Reading& reading) {
  Agent agent{.name = "claude", .command = {}, .type = "agent", .timeout = {}};
  agent.command.kind = Command::Kind::argv;
  agent.command.verb = "claude";
  agent.command.argv = {Template{"claude"}, Template{"-p"}, parse_template("${prompt}").value_or(Template{})};
  reading.agents.push_back(std::move(agent));
}

void read_mapreduce(text::Fields& fields, Reading& reading) {
  const auto shared = fields.find("error_policy");
  const auto setup = fields.find("setup");
  const auto map = fields.find("map");
  const auto reduce = fields.find("reduce");
  std::string after;
  if (setup) after = read_phase(*setup, after, reading);
  if (!map) {
    reading.report.error(reading.document.root(), "mode: mapreduce needs map",
                         "map: {input: items.json, json_path: \"$.items[*]\", agent_template: […]}");
    return;
  }
  read_map(*map, shared, after, reading);
  if (!reduce) return;
  reading.map_names = true;
  read_phase(*reduce, "map", reading);
  reading.map_names = false;
}

}  // namespace reprise::flow
