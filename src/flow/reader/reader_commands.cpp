// What is executed: a line for sh, an argument list, a request, or an agent of the document's own.
#include <algorithm>

#include "flow/reader/reading.hpp"
#include "text/nearest.hpp"

namespace reprise::flow {
namespace {

using text::Field;
using text::Node;
using text::NodeType;

std::optional<std::vector<Template>> read_argv(const Field& field, Reading& reading) {
  constexpr std::size_t arguments_max = 10'000;
  const auto items = text::read_list(field, "arguments", reading.report, arguments_max);
  if (!items) return std::nullopt;
  if (items->empty()) {
    reading.report.error(*field.node, std::string{field.key} + ": the list is empty", "its first entry is the program");
    return std::nullopt;
  }
  std::vector<Template> argv;
  for (const Node* item : *items) {
    if (auto argument = read_scalar_template({field.key, item}, reading)) argv.push_back(*std::move(argument));
  }
  return argv;
}

std::optional<Template> read_shell(const Field& field, Reading& reading) {
  if (field.node->type == NodeType::sequence) {
    reading.report.error(*field.node, std::string{field.key} + ": expected a line for the shell, found a list",
                         "write argv for a list of arguments, or several lines after run: |");
    return std::nullopt;
  }
  return read_template(field, reading);
}

// The part of an agent that is a command.
bool read_agent_command(text::Fields& fields, const Node& map, Command& command, Reading& reading) {
  const VisibleNamesGuard guard{reading, {.attempt = true, .prompt = true}};
  const auto argv = fields.find("argv");
  const auto run = fields.find("run");
  if (argv.has_value() == run.has_value()) {
    reading.report.error(map, argv ? "an agent has argv or run, not both" : "an agent needs argv or run",
                         "such as {argv: [claude, -p, \"${prompt}\"]}");
    return false;
  }
  if (argv) {
    command.kind = Command::Kind::argv;
    command.argv = read_argv(*argv, reading).value_or(std::vector<Template>{});
  } else {
    command.kind = Command::Kind::shell;
    command.shell = read_shell(*run, reading).value_or(Template{});
  }
  const Node& written = argv ? *argv->node : *run->node;
  const bool uses_prompt = std::ranges::any_of(reading.uses, [&](const Use& use) {
    const bool here = use.node == &written || std::ranges::find(written.items, use.node) != written.items.end();
    return here && std::ranges::any_of(use.references, [](const Reference& r) { return r.path.front() == "prompt"; });
  });
  if (!uses_prompt && !reading.report.has_errors())
    reading.report.warning(written, "the agent never sees what a step tells it", "use ${prompt} somewhere");
  if (const auto env = fields.find("env")) command.env = read_env(*env, reading);
  return true;
}

void read_agent(const Node& key, const Node& value, Reading& reading) {
  constexpr std::string_view taken[] = {"run",
                                        "argv",
                                        "http",
                                        "wait",
                                        "signal",
                                        "flow",
                                        "call",
                                        "id",
                                        "needs",
                                        "if",
                                        "for_each",
                                        "max_parallel",
                                        "tolerate",
                                        "retry",
                                        "retry_policy",
                                        "retry_config",
                                        "work_config",
                                        "timeout",
                                        "on_failure",
                                        "max_visits",
                                        "require",
                                        "check",
                                        "fix",
                                        "fallback",
                                        "kind",
                                        "type",
                                        "output",
                                        "env",
                                        "directory",
                                        "stall_timeout",
                                        "circuit_breaker",
                                        "effect",
                                        "description",
                                        "params",
                                        "when",
                                        "goto",
                                        "schema",
                                        "shell",
                                        "stdin",
                                        "label"};
  if (!is_step_id(key.text) || std::ranges::find(taken, key.text) != std::end(taken)) {
    reading.report.error(
        key, quoted(key.text) + " cannot be the name of an agent",
        is_step_id(key.text) ? "steps use this word for something else" : "letters, digits, _, . and -");
    return;
  }
  Agent agent{.name = key.text, .command = {}, .type = {}, .timeout = {}};
  text::Fields fields{value, "an agent", reading.report};
  if (!fields.is_map()) return;
  agent.command.verb = key.text;
  agent.command.place = place_of(key);
  read_agent_command(fields, value, agent.command, reading);
  if (const auto type = fields.find("type")) agent.type = read_actor_type(*type, reading);
  if (const auto timeout = fields.find("timeout")) agent.timeout = read_positive_duration(*timeout, reading);
  read_description(fields, reading);
  fields.finish({{"command", [](const Node&) { return std::string{"write run for the shell, argv for a list"}; }},
                 {"cmd", [](const Node&) { return std::string{"write run for the shell, argv for a list"}; }},
                 {"args", [](const Node&) { return std::string{"write them into argv"}; }}});
  reading.agents.push_back(std::move(agent));
}

std::string verbs_in_words(const Reading& reading) {
  std::vector<std::string_view> words{"run", "argv", "http"};
  for (const Agent& agent : reading.agents) words.push_back(agent.name);
  return text::join_words(words);
}

}  // namespace

void read_agents(const Field& field, Reading& reading) {
  text::Fields fields{*field.node, "agents", reading.report};
  if (field.node->members.size() > agents_max)
    return reading.report.error(*field.node, "agents: more than " + std::to_string(agents_max));
  for (const auto& [key, value] : field.node->members) {
    std::erase_if(reading.agents, [&](const Agent& agent) { return agent.name == key->text; });
    read_agent(*key, *value, reading);
  }
}

const Agent* find_agent(std::string_view name, const Reading& reading) noexcept {
  const auto found = std::ranges::find(reading.agents, name, &Agent::name);
  return found != reading.agents.end() ? &*found : nullptr;
}

void use_agent(const Agent& agent, const Field& prompt, Command& command, Reading& reading) {
  command = agent.command;
  command.place = place_of(*prompt.node);
  command.timeout = agent.timeout;
  command.prompt = read_template(prompt, reading);
}

std::vector<Field> find_command_verbs(text::Fields& fields, const Reading& reading) {
  std::vector<Field> verbs;
  for (const char* word : {"run", "argv", "http"}) {
    if (const auto field = fields.find(word)) verbs.push_back(*field);
  }
  for (const Agent& agent : reading.agents) {
    if (const auto field = fields.find(agent.name)) verbs.push_back(*field);
  }
  return verbs;
}

std::optional<Command> read_command_verb(const Field& verb, Reading& reading) {
  Command command;
  command.verb = verb.key;
  command.place = place_of(*verb.node);
  if (verb.key == "run") {
    auto shell = read_shell(verb, reading);
    if (!shell) return std::nullopt;
    command.shell = *std::move(shell);
  } else if (verb.key == "argv") {
    auto argv = read_argv(verb, reading);
    if (!argv) return std::nullopt;
    command.kind = Command::Kind::argv;
    command.argv = *std::move(argv);
  } else if (verb.key == "http") {
    auto http = read_http(verb, reading);
    if (!http) return std::nullopt;
    command.kind = Command::Kind::http;
    command.http = *std::move(http);
  } else if (const Agent* agent = find_agent(verb.key, reading)) {
    use_agent(*agent, verb, command, reading);
  }
  return command;
}

namespace {

// "bash -euo pipefail", or the same as a list.
std::vector<std::string> read_interpreter(const Field& field, Reading& reading) {
  std::vector<std::string> words;
  if (field.node->type == NodeType::sequence) {
    for (const Node* item : field.node->items)
      words.push_back(read_plain_text({field.key, item}, "a word of the command", reading).value_or(""));
  } else if (const auto text =
                 read_plain_text(field, "a program and its options, such as bash -euo pipefail", reading)) {
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t begin = text->find_first_not_of(' ', at);
      if (begin == std::string::npos) break;
      at = std::min(text->find(' ', begin), text->size());
      words.push_back(text->substr(begin, at - begin));
    }
  }
  if (words.empty() && !reading.report.has_errors())
    reading.report.error(*field.node, "shell: it names no program", "such as bash -euo pipefail, or python3");
  return words;
}

}  // namespace

void read_command_setting(text::Fields& fields, const Node& map, Command& command, Reading& reading) {
  if (map.find("run") != nullptr) {  // else its hint says what it is for
    if (const auto field = fields.find("shell")) command.interpreter = read_interpreter(*field, reading);
  }
  const auto input = fields.find("stdin");
  if (!input) return;
  if (command.kind == Command::Kind::http)
    return reading.report.error(*input->node, "stdin: a request has none", "write http: {…, body: …}");
  command.standard_input = read_json_template(*input->node, reading);
}

std::optional<Command> read_one_command(text::Fields& fields, const Node& map, std::string_view name,
                                        Reading& reading) {
  const std::vector<Field> verbs = find_command_verbs(fields, reading);
  if (verbs.size() == 1) {
    auto command = read_command_verb(verbs.front(), reading);
    if (command && command->kind == Command::Kind::http && command->http.is_async) {
      reading.report.error(*verbs.front().node,
                           std::string{name} + ": a request that is answered later is possible for a step only",
                           "remove async");
    }
    if (command) read_command_setting(fields, map, *command, reading);
    return command;
  }
  reading.report.error(map, std::string{name} + ": expected exactly one of " + verbs_in_words(reading) + ", found " +
                                (verbs.empty() ? "none" : std::to_string(verbs.size())));
  return std::nullopt;
}

std::optional<Command> read_command_map(const Field& field, Reading& reading) {
  if (field.node->type == NodeType::string) {
    reading.report.error(*field.node,
                         std::string{field.key} + ": expected a command, found " + text::describe(*field.node),
                         "write {run: …} for the shell, {argv: […]} without it");
    return std::nullopt;
  }
  text::Fields fields{*field.node, field.key, reading.report};
  if (!fields.is_map()) return std::nullopt;
  auto command = read_one_command(fields, *field.node, field.key, reading);
  fields.finish();
  return command;
}

}  // namespace reprise::flow
