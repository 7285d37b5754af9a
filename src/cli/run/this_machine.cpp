#include "cli/run/this_machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "exec/http/http_features.hpp"

namespace reprise::cli {
namespace {

std::vector<Diagnostic> missing_http(const flow::FlowDocument& flow, const std::string& file, Severity severity) {
  if (!flow.first_request) return {};  // asking would load the library
  const exec::HttpFeatures http = exec::http_features();
  if (http.problem.empty()) return {};
  return {{.severity = severity,
           .file = file,
           .line = flow.first_request->line,
           .column = flow.first_request->column,
           .message = http.problem,
           .help = http.remedy}};
}

bool sets_path(const std::vector<std::pair<std::string, flow::Template>>& env) {
  return std::ranges::find(env, "PATH", &std::pair<std::string, flow::Template>::first) != env.end();
}

bool is_executable(const std::string& file) {
  std::error_code problem;
  return access(file.c_str(), X_OK) == 0 && !std::filesystem::is_directory(file, problem);
}

bool is_in_path(std::string_view program) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/bin:/usr/bin";
  for (;;) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string folder{end == 0 ? std::string_view{"."} : rest.substr(0, end)};
    if (is_executable(folder + "/" + std::string{program})) return true;
    if (end == rest.size()) return false;
    rest.remove_prefix(end + 1);
  }
}

// Which programs the agents of a flow run. What an expression names, and what a step may still make, is known when it is run.
class AgentPrograms {
 public:
  AgentPrograms(const flow::FlowDocument& flow, const std::string& file, Severity severity)
      : flow_{flow}, file_{file}, severity_{severity} {}

  std::vector<Diagnostic> missing() {
    if (sets_path(flow_.env)) return {};
    for (const auto* const steps : {&flow_.steps, &flow_.finally}) {
      for (const flow::Step& step : *steps) {
        if (!sets_path(step.env)) look_at(step);
      }
    }
    return std::move(missing_);
  }

 private:
  void look_at(const flow::Step& step) {
    for (const flow::Command& command : step.commands) look_at(command);
    for (const auto* const command : {&step.require, &step.check, &step.fix, &step.on_failure_command}) {
      if (*command) look_at(**command);
    }
    if (step.fallback) look_at(step.fallback->command);
  }

  void look_at(const flow::Command& command) {
    if (command.on_failure != nullptr) look_at(*command.on_failure);
    const bool is_agent = command.prompt && command.kind == flow::Command::Kind::argv && !command.argv.empty();
    if (!is_agent || sets_path(command.env) || !command.argv.front().references().empty()) return;
    const std::string program = command.argv.front().text();
    const bool is_relative = program.find('/') != std::string::npos && !program.starts_with('/');
    if (is_relative || !seen_.insert(program).second) return;
    if (program.starts_with('/') ? is_executable(program) : is_in_path(program)) return;
    missing_.push_back(
        {.severity = severity_,
         .file = file_,
         .line = command.place.line,
         .column = command.place.column,
         .message = fmt::format("{}: the program \"{}\" is not {}", command.verb, program,
                                program.starts_with('/') ? "there, or cannot be executed" : "in PATH"),
         .help = fmt::format("install it, or say what {0} runs: agents: {{{0}: {{argv: [PROGRAM, \"${{prompt}}\"]}}}}",
                             command.verb)});
  }

  const flow::FlowDocument& flow_;
  const std::string& file_;
  Severity severity_;
  std::set<std::string> seen_;
  std::vector<Diagnostic> missing_;
};

}  // namespace

std::vector<Diagnostic> missing_here(const flow::FlowDocument& flow, const std::string& file, Severity severity) {
  std::vector<Diagnostic> missing = missing_http(flow, file, severity);
  std::vector<Diagnostic> programs = AgentPrograms{flow, file, severity}.missing();
  missing.insert(missing.end(), programs.begin(), programs.end());
  return missing;
}

}  // namespace reprise::cli
