#include "cli/operate/operator.hpp"

#include <unistd.h>

#include <charconv>
#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/run/this_machine.hpp"
#include "exec/document/program.hpp"

namespace reprise::cli {
namespace {

std::unexpected<Error> refused(ErrorCode code, std::string message) {
  return std::unexpected{Error{code, std::move(message)}};
}

std::expected<runtime::WorkChoice, Error> choice_in(const runtime::ControlRequest& request) {
  runtime::WorkChoice choice{.step = request.text};
  if (request.payload.empty()) return choice;
  std::uint32_t item = 0;
  const char* const end = request.payload.data() + request.payload.size();
  const auto [stop, mistake] = std::from_chars(request.payload.data(), end, item);
  if (mistake != std::errc{} || stop != end) return refused(ErrorCode::invalid, "this is not the number of an item");
  choice.item = item;
  return choice;
}

}  // namespace

runtime::ControlRequest request_for(std::string operation, const RunId& run, const runtime::WorkChoice& choice) {
  return {std::move(operation), to_string(run), choice.step, choice.item ? std::to_string(*choice.item) : ""};
}

std::optional<Obstacle> obstacle_here(const runtime::RunView& view, const std::optional<exec::Relocation>& moved) {
  auto input = exec::decode_run_input(view.input);
  if (!input) return std::nullopt;  // that of a program
  input->moved = moved;
  const auto program = exec::load_program(*input);
  if (!program)
    return Obstacle{exit_usage, fmt::format("reprise: this run cannot be resumed here: {}\n", program.error())};
  std::error_code problem;
  if (const std::string& folder = (*program)->input.directory; !std::filesystem::is_directory(folder, problem)) {
    return Obstacle{exit_usage, fmt::format("reprise: the folder of this run, {}, is not there; if it was moved, say "
                                            "where it is now: reprise resume {} --directory DIR\n",
                                            folder, to_string(view.info.id))};
  }
  const auto missing = missing_here((*program)->flow, input->file, Severity::error);
  if (missing.empty()) return std::nullopt;
  return Obstacle{exit_invalid, render(missing)};
}

// Only once it is ready is it allowed: a run that cannot be retried must not go on because somebody has asked.
std::expected<void, Error> retry_here(host::FlowHost& host, const RunId& run, const runtime::WorkChoice& choice) {
  auto again = runtime::EngineAccess::retry_failed(host.engine(), run, choice);
  if (again) host.allow(run);
  return again;
}

// With the environment of this process, which is the one that would run it.
std::expected<void, Error> Operator::check_can_run(const RunId& run) const {
  auto snapshot = runtime::ShardSnapshot::open(shard_path_);
  if (!snapshot) return std::unexpected{snapshot.error()};
  const auto view = snapshot->run(run);
  if (!view) return std::unexpected{view.error()};
  if (!*view) return {};  // the engine says that it is not there
  const auto obstacle = obstacle_here(**view);
  if (!obstacle) return {};
  return refused(ErrorCode::invalid,
                 fmt::format("process {}, which owns the run's shard, cannot run it: {}", getpid(), obstacle->message));
}

std::expected<void, Error> Operator::operator()(const runtime::ControlRequest& request) {
  const std::string& operation = request.operation;
  if (operation == "ping" && request.run.empty()) return {};
  const auto run = run_id_from(request.run);
  if (!run) return refused(ErrorCode::invalid, "this is not the id of a run");
  Engine& engine = host_.engine();
  if (operation == "ping") {
    if (runtime::EngineAccess::works_on(engine, *run)) return {};
    return refused(ErrorCode::not_found, "nobody works on this run here");
  }
  if (operation == "cancel") return engine.cancel(*run, request.text);
  if (operation == "pause") return engine.pause(*run);
  if (operation == "signal") return engine.signal(*run, request.text, request.payload);
  if (operation == "remove") return engine.remove(*run);
  const bool runs_something = operation == "resume" || operation == "retry";
  if (!runs_something && operation != "drop")
    return refused(ErrorCode::invalid, "unknown operation \"" + operation + "\"");
  const auto choice = choice_in(request);
  if (!choice) return std::unexpected{choice.error()};
  if (operation == "drop") return runtime::EngineAccess::drop(engine, *run, *choice);
  if (auto can = check_can_run(*run); !can) return can;
  if (operation == "retry") return retry_here(host_, *run, *choice);
  const auto before = host_.go_on(*run);
  return before ? std::expected<void, Error>{} : std::unexpected{before.error()};
}

}  // namespace reprise::cli
