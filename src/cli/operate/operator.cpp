#include "cli/operate/operator.hpp"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/run/this_machine.hpp"
#include "exec/document/program.hpp"
#include "runtime/live_reader.hpp"

namespace reprise::cli {
namespace {

std::unexpected<Error> refused(ErrorCode code, std::string message) {
  return std::unexpected{Error{code, std::move(message)}};
}

}  // namespace

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
void retry_here(host::FlowHost& host, runtime::RunRequest&& request, runtime::RunAnswered answered) {
  const RunId run = *request.run;
  runtime::EngineAccess::perform(
      host.engine(), std::move(request),
      [&host, run, answered = std::move(answered)](const std::expected<runtime::RunAnswer, Error>& again) {
        if (again) host.allow(run);
        answered(again);
      });
}

// With the environment of this process, which is the one that would run it.
std::expected<void, Error> Operator::check_can_run(const RunId& run) const {
  const auto view = runtime::LiveReader{host_.engine()}.run(run);
  if (!view) return std::unexpected{view.error()};
  if (!*view) return {};  // the engine says that it is not there
  const auto obstacle = obstacle_here(**view);
  if (!obstacle) return {};
  return refused(ErrorCode::invalid,
                 fmt::format("process {}, which owns the run's shard, cannot run it: {}", getpid(), obstacle->message));
}

void Operator::operator()(runtime::RunRequest&& request, runtime::RunAnswered answered) {
  using runtime::Asked;
  const bool runs_something = request.asked == Asked::resume || request.asked == Asked::retry;
  if (!runs_something) return runtime::EngineAccess::perform(host_.engine(), std::move(request), std::move(answered));
  if (auto can = check_can_run(*request.run); !can) return answered(std::unexpected{can.error()});
  if (request.asked == Asked::retry) return retry_here(host_, std::move(request), std::move(answered));
  if (request.by.by.empty()) request.by.by = "another process";  // of an older version
  const auto before = host_.go_on(*request.run, std::move(request.by));
  if (!before) return answered(std::unexpected{before.error()});
  answered(runtime::RunAnswer{});
}

}  // namespace reprise::cli
