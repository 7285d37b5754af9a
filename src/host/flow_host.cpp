#include "host/flow_host.hpp"

#include <utility>

#include "host/flow_plan.hpp"
#include "runtime/engine_access.hpp"

namespace reprise::host {

std::expected<std::unique_ptr<FlowHost>, Error> FlowHost::open(FlowHostSettings settings) {
  std::unique_ptr<FlowHost> host{new FlowHost};
  exec::DocumentSettings documents;
  documents.store_folder = settings.store_folder;
  documents.grace = settings.grace;
  documents.stderr_through = settings.stderr_through;
  documents.stdout_through = settings.stdout_through;
  documents.files = std::move(settings.files);
  documents.moved = std::move(settings.moved);
  const bool listens_at_once = settings.callbacks.listen.has_value();
  documents.callbacks = std::move(settings.callbacks);
  documents.sub_flows = host.get();
  auto engine = runtime::EngineAccess::open(
      {.store = settings.store, .threads = 1},
      [&](exec::Sink& sink, exec::PayloadLoader load) -> std::unique_ptr<exec::Executor> {
        auto executor = std::make_unique<exec::DocumentExecutor>(documents, sink, std::move(load));
        host->executor_ = executor.get();
        return executor;
      },
      std::move(settings.shard));
  if (!engine) return std::unexpected{engine.error()};
  host->name_ = std::move(settings.name);
  host->engine_ = std::make_unique<Engine>(*std::move(engine));
  if (listens_at_once) {
    if (auto listening = host->executor_->listen(); !listening)
      return std::unexpected{Error{ErrorCode::invalid, listening.error()}};
  }
  return host;
}

FlowHost::~FlowHost() {
  if (engine_ != nullptr) engine_->stop(Duration{0});
}

std::expected<RunId, Error> FlowHost::submit(const exec::RunInput& input, const std::string& key,
                                             const exec::ReadFile& read) {
  const auto program = exec::load_program(input, read);
  if (!program) return std::unexpected{Error{ErrorCode::invalid, program.error()}};
  return runtime::EngineAccess::submit(*engine_, plan_of((*program)->flow),
                                       {.input = exec::encode(exec::recorded_input(**program)), .key = key});
}

std::expected<RunId, Error> FlowHost::submit(std::shared_ptr<const exec::Program> program, const std::string& key,
                                             RunAttributes attributes) {
  std::string input = exec::encode(exec::recorded_input(*program));
  core::Plan plan = plan_of(program->flow);
  executor_->hand_on(input, std::move(program));
  return runtime::EngineAccess::submit(*engine_, std::move(plan), {.input = std::move(input), .key = key},
                                       std::move(attributes));
}

void FlowHost::allow(const RunId& run) { runtime::EngineAccess::allow(*engine_, run, false); }

std::expected<std::uint64_t, Error> FlowHost::go_on(const RunId& run, runtime::Requester by) {
  const auto before = runtime::EngineAccess::last_sequence(*engine_, run);
  if (!before) return before;
  runtime::EngineAccess::allow(*engine_, run, true);
  const auto info = engine_->info(run);
  if (!info) return std::unexpected{info.error()};
  if (info->status == RunStatus::paused || info->status == RunStatus::canceled) {
    if (by.by.empty() && name_) by.by = name_();
    const auto resumed = runtime::EngineAccess::perform(
        *engine_, {.asked = runtime::Asked::resume, .run = run, .by = std::move(by)});
    if (!resumed) return std::unexpected{resumed.error()};
  }
  return before;
}

void FlowHost::kill_all() { executor_->kill_all(); }

// ---- flows inside of flows ----------------------------------------

std::expected<void, Error> FlowHost::hand_over(exec::HandedOver over, const exec::RunInput& input) {
  // Its own files are read when it begins, where one that hangs can be given up. Secrets of the flows around it are known.
  const auto program = exec::load_program(input, exec::without_files);
  if (!program) return std::unexpected{Error{ErrorCode::invalid, program.error()}};
  return runtime::EngineAccess::hand_over(*engine_, std::move(over), plan_of((*program)->flow),
                                          exec::encode(exec::recorded_input(**program)));
}

}  // namespace reprise::host
