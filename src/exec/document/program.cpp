#include "exec/document/program.hpp"

#include <unistd.h>

#include <filesystem>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <reprise/dialect.hpp>

#include "flow/reader.hpp"

namespace reprise::exec {
namespace {

using flow::Json;

std::string text_at(const boost::json::object& object, std::string_view key) {
  const Json* const value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string{value->get_string()} : std::string{};
}

std::expected<flow::Flow, std::string> exec_flow(const RunInput& input) {
  auto policy = read_policy(input.retry, Dialect::native, "retry");
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
  step.policy_source = "the command line";
  flow::Flow flow;
  flow.name = "exec";
  flow.steps.push_back(std::move(step));
  return flow;
}

std::string path_of(const flow::Secret& secret, const std::string& directory) {
  return secret.file.starts_with('/') ? secret.file : directory + "/" + secret.file;
}

std::expected<std::string, std::string> secret_value(const flow::Secret& secret, const std::string& directory,
                                                     const ReadFile& read) {
  if (!secret.env.empty()) {
    const char* const value = std::getenv(secret.env.c_str());
    if (value == nullptr)
      return std::unexpected{"secret \"" + secret.name + "\": the environment has no " + secret.env};
    return std::string{value};
  }
  auto value = read(path_of(secret, directory), secret_file_bytes_max);
  if (!value) return std::unexpected{"secret \"" + secret.name + "\": " + value.error().message};
  while (value->ends_with('\n') || value->ends_with('\r')) value->pop_back();
  return *std::move(value);
}

std::expected<void, std::string> load_secrets(Program& program, const ReadFile& read) {
  boost::json::object values;
  std::vector<std::string> masked;
  for (const flow::Secret& secret : program.flow.secrets) {
    auto value = secret_value(secret, program.input.directory, read);
    if (!value) return std::unexpected{value.error()};
    if (!value->empty()) masked.push_back(*value);
    values[secret.name] = *value;
  }
  program.secrets = std::move(values);
  if (!masked.empty()) program.secret_values = std::make_shared<const std::vector<std::string>>(std::move(masked));
  return {};
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
  if (!input.is_exec()) {
    object["document"] = input.text;
    object["params"] = input.params;
    return flow::to_text(object);
  }
  boost::json::array argv;
  for (const std::string& argument : input.argv) argv.emplace_back(argument);
  object["argv"] = std::move(argv);
  object["retry"] = input.retry;
  if (!input.stdin_file.empty()) object["stdin"] = input.stdin_file;
  if (input.kept_stdin) object["stdin_content"] = to_text(*input.kept_stdin);
  return flow::to_text(object);
}

std::string kept_stdin_path(const std::string& store_folder, const RunInput& input) {
  if (input.stdin_file.empty() || store_folder.empty()) return input.stdin_file;
  const std::filesystem::path name = std::filesystem::path{input.stdin_file}.filename();
  return (std::filesystem::path{store_folder} / stdin_folder / name).string();
}

std::expected<RunInput, std::string> decode_run_input(std::string_view json) {
  const auto value = flow::parse_json(json);
  if (!value || !flow::is_map(*value)) return std::unexpected{"its input is not that of a flow"};
  const boost::json::object& object = value->get_object();
  RunInput input;
  input.file = text_at(object, "file");
  input.text = text_at(object, "document");
  input.directory = text_at(object, "directory");
  input.retry = text_at(object, "retry");
  input.stdin_file = text_at(object, "stdin");
  input.kept_stdin = kept_file_from(text_at(object, "stdin_content"));
  if (const Json* params = object.if_contains("params")) input.params = *params;
  if (const Json* depth = object.if_contains("depth"); depth != nullptr && depth->is_int64())
    input.depth = static_cast<std::uint32_t>(depth->get_int64());
  if (const Json* argv = object.if_contains("argv"); argv != nullptr && argv->is_array()) {
    for (const Json& argument : argv->get_array()) input.argv.push_back(flow::to_plain(argument));
  }
  if (input.text.empty() && input.argv.empty()) return std::unexpected{"its input is not that of a flow"};
  return input;
}

FileContent without_files(const std::string& /*path*/, std::size_t /*bytes_max*/) { return std::string{}; }

std::vector<std::string> secret_files(const Program& program) {
  std::vector<std::string> files;
  for (const flow::Secret& secret : program.flow.secrets) {
    if (secret.env.empty()) files.push_back(path_of(secret, program.input.directory));
  }
  return files;
}

std::expected<std::shared_ptr<const Program>, std::string> load_program(RunInput input, const ReadFile& read_secret) {
  auto program = std::make_shared<Program>();
  program->input = std::move(input);
  program->params = boost::json::object{};
  if (program->input.is_exec()) {
    auto flow = exec_flow(program->input);
    if (!flow) return std::unexpected{flow.error()};
    program->flow = *std::move(flow);
  } else {
    auto read = flow::read_flow(program->input.text, program->input.file);
    if (!read) return std::unexpected{render(read.error())};
    program->flow = std::move(read->flow);
    auto params = flow::bind_params(program->flow, program->input.params);
    if (!params) return std::unexpected{joined(params.error())};
    program->params = *std::move(params);
  }
  if (auto loaded = load_secrets(*program, read_secret); !loaded) return std::unexpected{loaded.error()};
  program->env = our_environment();
  for (const auto& [name, value] : program->env.get_object())
    program->inherited.push_back(std::string{name} + "=" + flow::to_plain(value));
  for (const flow::Step& step : program->flow.steps) program->steps[step.id] = &step;
  for (const flow::Step& step : program->flow.finally) program->steps[step.id] = &step;
  return program;
}

}  // namespace reprise::exec
