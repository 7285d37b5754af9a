#include "exec/document/program.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <reprise/dialect.hpp>

#include "exec/secrets/mask.hpp"
#include "exec/secrets/sealing.hpp"
#include "flow/reader/reader.hpp"

namespace reprise::exec {
namespace {

using json::Json;

std::string text_at(const boost::json::object& object, std::string_view key) {
  const Json* const value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string{value->get_string()} : std::string{};
}

std::expected<flow::FlowDocument, std::string> exec_flow(const RunInput& input) {
  auto policy = read_policy(input.retry, input.retry_dialect, "retry");
  if (!policy) return std::unexpected{render(policy.error())};
  flow::Command command;
  command.kind = flow::Command::Kind::argv;
  command.verb = "argv";
  for (const std::string& argument : input.argv) command.argv.emplace_back(argument);
  flow::Step step;
  step.id = exec_step;
  step.commands.push_back(std::move(command));
  step.policy = policy->policy;
  step.level = PolicyLevel::work_item;
  step.dialect = input.retry_dialect;
  step.timeout = input.timeout;
  step.policy_source = "the command line";
  flow::FlowDocument flow;
  flow.name = "exec";
  flow.steps.push_back(std::move(step));
  return flow;
}

// ---- secrets ----------------------------------------

std::expected<std::string, std::string> secret_value(const flow::Secret& secret, const ReadFile& read) {
  if (!secret.env.empty()) {
    const char* const value = std::getenv(secret.env.c_str());
    if (value == nullptr)
      return std::unexpected{"secret \"" + secret.name + "\": the environment has no " + secret.env};
    return std::string{value};
  }
  auto value = read(secret.file, secret_file_bytes_max);
  if (!value) return std::unexpected{"secret \"" + secret.name + "\": " + value.error().message};
  while (value->ends_with('\n') || value->ends_with('\r')) value->pop_back();
  return *std::move(value);
}

std::string value_in_environment(const flow::Secret& secret) {
  const char* const value = secret.env.empty() ? nullptr : std::getenv(secret.env.c_str());
  return value != nullptr ? value : "";
}

std::shared_ptr<const SecretTable> table_of(const std::vector<std::string>& values) {
  auto table = std::make_shared<const SecretTable>(values);
  return table->is_empty() ? nullptr : table;
}

// The values of all secrets that the program knows by now; none of them is read twice.
std::expected<void, std::string> read_secrets(Program& program, const ReadFile& read) {
  std::vector<std::string>& values = program.secret_values;
  while (values.size() < program.secret_sources.size()) {
    auto value = secret_value(program.secret_sources[values.size()], read);
    if (!value) return std::unexpected{value.error()};
    values.push_back(*std::move(value));
  }
  program.secret_table = table_of(values);
  return {};
}

std::expected<void, std::string> load_own_secrets(Program& program, const ReadFile& read) {
  std::vector<std::size_t> places;
  for (flow::Secret secret : program.flow.secrets) {
    if (!secret.file.empty() && !secret.file.starts_with('/'))
      secret.file = program.input.directory + "/" + secret.file;
    const auto same = [&](const flow::Secret& known) { return known.env == secret.env && known.file == secret.file; };
    const auto known = std::ranges::find_if(program.secret_sources, same);
    places.push_back(static_cast<std::size_t>(known - program.secret_sources.begin()));
    if (known == program.secret_sources.end()) program.secret_sources.push_back(std::move(secret));
  }
  if (auto known = read_secrets(program, read); !known) return known;
  boost::json::object by_name;
  for (std::size_t index = 0; index < places.size(); ++index)
    by_name[program.flow.secrets[index].name] = program.secret_values[places[index]];
  program.secrets = std::move(by_name);
  return {};
}

// Puts the fields back that were stored without their secrets.
std::expected<void, std::string> unseal(Program& program) {
  RunInput& input = program.input;
  if (input.sealed.empty()) return {};
  const auto text = unsealed(program.secret_table.get(), input.sealed);
  if (!text) return std::unexpected{"its input cannot be read: " + text.error()};
  const auto fields = json::parse_json(*text);
  if (!fields || !fields->is_object()) return std::unexpected{"its input cannot be read: a secret broke its form"};
  for (const auto& [name, value] : fields->get_object()) {
    if (name == "params") input.params = value;
    if (name == "file") input.file = json::to_plain(value);
    if (name == "directory") input.directory = json::to_plain(value);
    if (name == "document") input.text = json::to_plain(value);
  }
  input.sealed.clear();
  return {};
}

void relocate(RunInput& input) {
  if (!input.moved) return;
  const auto& [from, to] = *input.moved;
  const bool is_below =
      input.directory.starts_with(from) &&
      (input.directory.size() == from.size() || from.ends_with('/') || input.directory[from.size()] == '/');
  if (is_below) input.directory = to + input.directory.substr(from.size());
}

boost::json::array encoded(const std::vector<flow::Secret>& secrets) {
  boost::json::array list;
  for (const flow::Secret& secret : secrets) {
    boost::json::object entry;
    entry["name"] = secret.name;
    entry[secret.env.empty() ? "file" : "env"] = secret.env.empty() ? secret.file : secret.env;
    list.push_back(std::move(entry));
  }
  return list;
}

std::vector<flow::Secret> decoded_secrets(const Json* list) {
  std::vector<flow::Secret> secrets;
  if (list == nullptr || !list->is_array()) return secrets;
  for (const Json& entry : list->get_array()) {
    if (!entry.is_object()) continue;
    const boost::json::object& fields = entry.get_object();
    secrets.push_back(
        {.name = text_at(fields, "name"), .env = text_at(fields, "env"), .file = text_at(fields, "file")});
  }
  return secrets;
}

boost::json::object our_environment() {
  boost::json::object env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && equals > 0) env[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return env;
}

std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "\n") + sentence;
  return text;
}

}  // namespace

std::string encode(const RunInput& input) {
  boost::json::object object;
  object["file"] = input.file;
  object["directory"] = input.directory;
  if (input.depth > 0) object["depth"] = input.depth;
  if (!input.secrets.empty()) object["secrets"] = encoded(input.secrets);
  if (!input.sealed.empty()) object["sealed"] = input.sealed;
  if (!input.is_exec()) {
    if (input.rules > 0) object["rules"] = input.rules;
    object["document"] = input.text;
    object["params"] = input.params;
    return json::to_text(object);
  }
  boost::json::array argv;
  for (const std::string& argument : input.argv) argv.emplace_back(argument);
  object["argv"] = std::move(argv);
  object["retry"] = input.retry;
  if (input.retry_dialect != Dialect::native) object["dialect"] = name_of(input.retry_dialect);
  if (input.timeout) object["timeout_ns"] = input.timeout->count();
  if (!input.stdin_file.empty()) object["stdin"] = input.stdin_file;
  if (input.kept_stdin) object["stdin_content"] = to_text(*input.kept_stdin);
  return json::to_text(object);
}

std::string kept_stdin_path(const std::string& store_folder, const RunInput& input) {
  if (input.stdin_file.empty() || store_folder.empty()) return input.stdin_file;
  const std::filesystem::path name = std::filesystem::path{input.stdin_file}.filename();
  return (std::filesystem::path{store_folder} / stdin_folder / name).string();
}

std::expected<RunInput, std::string> decode_run_input(std::string_view json) {
  const auto value = json::parse_json(json);
  if (!value || !json::is_map(*value)) return std::unexpected{"its input is not that of a flow"};
  const boost::json::object& object = value->get_object();
  RunInput input;
  input.file = text_at(object, "file");
  input.text = text_at(object, "document");
  input.directory = text_at(object, "directory");
  input.retry = text_at(object, "retry");
  input.retry_dialect = dialect_named(text_at(object, "dialect")).value_or(Dialect::native);
  if (const Json* timeout = object.if_contains("timeout_ns"); timeout != nullptr && timeout->is_int64())
    input.timeout = Duration{timeout->get_int64()};
  input.stdin_file = text_at(object, "stdin");
  input.kept_stdin = kept_file_from(text_at(object, "stdin_content"));
  input.sealed = text_at(object, "sealed");
  input.secrets = decoded_secrets(object.if_contains("secrets"));
  if (const Json* params = object.if_contains("params")) input.params = *params;
  if (const Json* depth = object.if_contains("depth"); depth != nullptr && depth->is_int64())
    input.depth = static_cast<std::uint32_t>(depth->get_int64());
  const Json* const rules = object.if_contains("rules");
  input.rules = rules != nullptr && rules->is_int64() ? static_cast<std::uint32_t>(rules->get_int64()) : 0;
  if (const Json* argv = object.if_contains("argv"); argv != nullptr && argv->is_array()) {
    for (const Json& argument : argv->get_array()) input.argv.push_back(json::to_plain(argument));
  }
  if (input.text.empty() && input.argv.empty()) return std::unexpected{"its input is not that of a flow"};
  return input;
}

FileContent without_files(const std::string& /*path*/, std::size_t /*bytes_max*/) { return std::string{}; }

namespace {

std::expected<flow::FlowDocument, std::string> flow_of(const Program& program) {
  if (program.input.is_exec()) return exec_flow(program.input);
  // A flow is called after its file, and what it is called is recorded.
  auto read = flow::read_flow(program.input.text, masked(program.secret_table, program.input.file));
  if (!read) return std::unexpected{render(read.error())};
  return std::move(read->flow);
}

// Document, parameters and secrets, from its input. The error may hold secrets.
std::expected<void, std::string> fill(Program& program, std::optional<flow::FlowDocument> known,
                                      const ReadFile& read_secret) {
  if (auto read = read_secrets(program, read_secret); !read) return read;
  if (auto opened = unseal(program); !opened) return opened;
  relocate(program.input);
  auto flow = known ? std::expected<flow::FlowDocument, std::string>{*std::move(known)} : flow_of(program);
  if (!flow) return std::unexpected{std::move(flow).error()};
  program.flow = *std::move(flow);
  if (program.input.is_exec()) return {};
  if (auto loaded = load_own_secrets(program, read_secret); !loaded) return loaded;
  auto params = flow::bind_params(program.flow, program.input.params);
  if (!params) return std::unexpected{joined(params.error())};
  program.params = *std::move(params);
  return {};
}

std::expected<std::shared_ptr<const Program>, std::string> loaded(RunInput input,
                                                                  std::optional<flow::FlowDocument> known,
                                                                  const ReadFile& read) {
  auto program = std::make_shared<Program>();
  program->input = std::move(input);
  program->params = boost::json::object{};
  program->secret_sources = program->input.secrets;
  program->secret_values = std::move(program->input.secret_values);
  if (auto filled = fill(*program, std::move(known), read); !filled)
    return std::unexpected{masked(program->secret_table, std::move(filled).error())};
  program->env = our_environment();
  for (const auto& [name, value] : program->env.get_object())
    program->inherited.push_back(std::string{name} + "=" + json::to_plain(value));
  for (auto* const steps : {&program->flow.steps, &program->flow.finally}) {
    for (flow::Step& step : *steps) {
      step.exit_is_verdict = program->input.rules == 0;
      program->steps[step.id] = &step;
    }
  }
  return program;
}

}  // namespace

std::expected<std::shared_ptr<const Program>, std::string> load_program(RunInput input, const ReadFile& read) {
  return loaded(std::move(input), std::nullopt, read);
}

std::expected<std::shared_ptr<const Program>, std::string> load_program(RunInput input, flow::FlowDocument flow,
                                                                        const ReadFile& read) {
  return loaded(std::move(input), std::move(flow), read);
}

RunInput recorded_input(const Program& program) {
  RunInput input = program.input;
  const auto& table = program.secret_table;
  if (table == nullptr) return input;
  boost::json::object fields;
  const auto has_secret = [&](std::string_view name, const Json& value) {
    const std::string text = json::to_text(value);
    const bool has = sealed(*table, text) != text;
    if (has) fields[name] = value;
    return has;
  };
  if (has_secret("file", Json(input.file))) input.file = masked(table, std::move(input.file));
  if (has_secret("directory", Json(input.directory))) input.directory = masked(table, std::move(input.directory));
  if (has_secret("document", Json(input.text))) input.text = masked(table, std::move(input.text));
  if (has_secret("params", input.params)) input.params = Json(masked(table, json::to_text(input.params)));
  if (fields.empty()) return input;
  input.sealed = sealed(*table, json::to_text(fields));
  input.secrets = program.secret_sources;
  return input;
}

std::shared_ptr<const SecretTable> secrets_in_environment(const flow::FlowDocument& flow) {
  std::vector<std::string> values;
  for (const flow::Secret& secret : flow.secrets) values.push_back(value_in_environment(secret));
  return table_of(values);
}

std::vector<Diagnostic> warnings_about_secrets(const flow::FlowDocument& flow, std::string_view file) {
  std::vector<Diagnostic> warnings;
  for (const flow::Secret& secret : flow.secrets) {
    const std::string value = value_in_environment(secret);
    if (value.empty() || value.size() >= short_secret_bytes) continue;
    warnings.push_back({.severity = Severity::warning,
                        .file = std::string{file},
                        .line = secret.place.line,
                        .column = secret.place.column,
                        .message = "secret \"" + secret.name + "\" is shorter than " +
                                   std::to_string(short_secret_bytes) +
                                   " characters: *** will also replace text that only looks like it, in results too",
                        .help = "use a longer one"});
  }
  return warnings;
}

}  // namespace reprise::exec
