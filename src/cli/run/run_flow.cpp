// reprise run: a flow from its document to its end, or (with --dry-run) only what would happen.
#include <filesystem>

#include <fmt/format.h>
#include <boost/json/object.hpp>
#include <reprise/dialect.hpp>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/run/attributes.hpp"
#include "cli/run/flow_words.hpp"
#include "cli/run/run_commands.hpp"
#include "cli/run/same_run.hpp"
#include "cli/run/this_machine.hpp"
#include "cli/run/watching.hpp"
#include "cli/store_option.hpp"
#include "exec/document/program.hpp"
#include "exec/secrets/mask.hpp"
#include "flow/reader/reader.hpp"
#include "host/flow_plan.hpp"
#include "text/utf8.hpp"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

std::expected<json::Json, int> given_input(const std::string& option) {
  if (option.empty()) return json::Json(boost::json::object{});
  std::string text = option;
  if (option.starts_with('@')) {
    auto file = read_input(option.substr(1));
    if (!file) return std::unexpected{file.error()};
    text = std::move(file->text);
  }
  auto value = json::parse_json(text);
  if (!value) return std::unexpected{usage_error("--input is not JSON: " + value.error())};
  if (!json::is_map(*value)) return std::unexpected{usage_error("--input must be a JSON object: {\"name\": value, …}")};
  return *std::move(value);
}

std::expected<json::Json, int> given_params(const RunFlowOptions& options, const flow::FlowDocument& flow) {
  auto params = given_input(options.input);
  if (!params) return params;
  const auto refused = [&](std::string why) {
    return std::unexpected{usage_error(exec::masked(exec::secrets_in_environment(flow), std::move(why)))};
  };
  for (const std::string& setting : options.set) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0)
      return std::unexpected{usage_error(fmt::format("--set expects key=value, found {}", setting))};
    if (!text::is_utf8(setting)) return std::unexpected{usage_error("--set: the value is not UTF-8 text")};
    const std::string key = setting.substr(0, equals);
    auto value = flow::param_from_text(flow, key, setting.substr(equals + 1));
    if (!value) return refused(value.error());
    params->get_object()[key] = *std::move(value);
  }
  if (auto bound = flow::bind_params(flow, *params); !bound) {
    std::string all;
    for (const std::string& mistake : bound.error()) all += (all.empty() ? "" : "\nreprise: ") + mistake;
    return refused(std::move(all));
  }
  return params;
}

std::string folder_of(const std::string& file) {
  std::error_code problem;
  const fs::path folder = file == "-" ? fs::current_path(problem) : fs::absolute(file, problem).parent_path();
  return folder.lexically_normal().string();
}

int refuse_calls(const flow::FlowDocument& flow, const std::string& name) {
  for (const flow::Step& step : flow.steps) {
    if (step.verb != flow::Verb::call) continue;
    print_error(fmt::format(
        "{}:{}:{}: error: `call: {}` names a C++ handler; only a program that embeds the engine has those\n", name,
        step.place.line, step.place.column, step.call));
    return exit_invalid;
  }
  return exit_done;
}

}  // namespace

int run_flow(const RunFlowOptions& options) {
  const auto file = read_input(options.file);
  if (!file) return file.error();
  auto read = flow::read_flow(file->text, file->name);
  if (!read) {
    print_error(render(read.error()));
    return exit_invalid;
  }
  const flow::FlowDocument& flow = read->flow;
  if (options.watch.progress != ProgressMode::quiet)
    print_error(render(read->warnings) + render(exec::warnings_about_secrets(flow, file->name)));
  auto params = given_params(options, flow);
  if (!params) return params.error();
  if (options.dry_run) {
    if (options.watch.progress != ProgressMode::quiet)
      print_error(render(missing_here(flow, file->name, Severity::warning)));
    print(options.watch.json ? plan_json(flow) : plan_in_words(flow));
    return exit_done;
  }
  const auto attributes = attributes_here(options.labels);
  if (!attributes) return usage_error(attributes.error());
  if (const int refused = refuse_calls(flow, file->name); refused != exit_done) return refused;
  if (const auto missing = missing_here(flow, file->name, Severity::error); !missing.empty()) {
    print_error(render(missing));
    return exit_invalid;
  }
  exec::RunInput input;
  input.file = file->name;
  input.text = file->text;
  input.directory = folder_of(options.file);
  if (!text::is_utf8(input.directory))
    return usage_error("the folder of the document has a name that is not UTF-8 text, and could not be found again");
  input.params = *std::move(params);
  // Before signals are taken: a file that hangs can be interrupted.
  const auto program = exec::load_program(std::move(input), std::move(read->flow));
  if (!program) return usage_error(program.error());

  auto session = RunSession::open(options.watch);
  if (!session) return session.error();
  const auto run = (*session)->submit(*program, options.id, *attributes);
  if (!run) return run.error();
  if (const auto same = input_of_same_run(**session, *run, options.id, exec::recorded_input(**program), exit_invalid);
      !same)
    return same.error();
  const auto before = (*session)->go_on(*run);
  if (!before) return show_error(before.error());
  return (*session)->follow_and_report(*run, std::make_shared<const core::Plan>(host::plan_of((*program)->flow)),
                                       options.id.empty() ? 0 : *before);
}

}  // namespace reprise::cli
