#include "runtime/flow_host.hpp"

#include <utility>

#include "runtime/engine_access.hpp"
#include "runtime/flow_plan.hpp"

namespace reprise::runtime {

std::expected<std::unique_ptr<FlowHost>, Error> FlowHost::open(FlowHostSettings settings) {
  std::unique_ptr<FlowHost> host{new FlowHost};
  exec::DocumentSettings documents;
  documents.store_folder = settings.store_folder;
  documents.grace = settings.grace;
  documents.stderr_through = settings.stderr_through;
  documents.files = std::move(settings.files);
  documents.sub_flows = host.get();
  auto engine = EngineAccess::open(
      {.store = settings.store, .threads = 1},
      [&](exec::Sink& sink, exec::PayloadLoader load) -> std::unique_ptr<exec::Executor> {
        auto executor = std::make_unique<exec::DocumentExecutor>(documents, sink, std::move(load));
        host->executor_ = executor.get();
        return executor;
      },
      std::move(settings.shard));
  if (!engine) return std::unexpected{engine.error()};
  host->engine_ = std::make_unique<Engine>(*std::move(engine));
  return host;
}

FlowHost::~FlowHost() {
  if (engine_ != nullptr) engine_->stop(Duration{0});
  waiters_.clear();  // nobody waits for a stopped engine
}

std::expected<RunId, Error> FlowHost::submit(const exec::RunInput& input, const std::string& key,
                                             const exec::ReadFile& read) {
  const auto program = exec::load_program(input, read);
  if (!program) return std::unexpected{Error{ErrorCode::invalid, program.error()}};
  return EngineAccess::submit(*engine_, plan_of((*program)->flow),
                              {.input = exec::encode(exec::recorded_input(**program)), .key = key});
}

std::expected<RunId, Error> FlowHost::submit(std::shared_ptr<const exec::Program> program, const std::string& key) {
  std::string input = exec::encode(exec::recorded_input(*program));
  core::Plan plan = plan_of(program->flow);
  executor_->hand_on(input, std::move(program));
  return EngineAccess::submit(*engine_, std::move(plan), {.input = std::move(input), .key = key});
}

void FlowHost::allow(const RunId& run) { EngineAccess::allow(*engine_, run); }

std::expected<std::uint64_t, Error> FlowHost::go_on(const RunId& run) {
  const auto before = EngineAccess::last_sequence(*engine_, run);
  if (!before) return before;
  allow(run);
  const auto info = engine_->info(run);
  if (!info) return std::unexpected{info.error()};
  if (info->status == RunStatus::paused || info->status == RunStatus::canceled) {
    if (auto resumed = engine_->resume(run); !resumed) return std::unexpected{resumed.error()};
  }
  return before;
}

void FlowHost::kill_all() { executor_->kill_all(); }

// ---- flows inside of flows ----------------------------------------

void FlowHost::start(const std::string& key, exec::RunInput input, Done done) {
  const std::lock_guard lock{mutex_};
  std::erase_if(waiters_,
                [](const Waiter& waiter) { return waiter.is_over.load(); });  // or a long map would keep them all
  Waiter& waiter = waiters_.emplace_back();
  waiter.thread = std::jthread{[this, &waiter, key, input = std::move(input), done = std::move(done)] {
    auto outcome = run_sub_flow(key, input);
    {
      const std::lock_guard ended{mutex_};
      sub_flows_.erase(key);
    }
    done(std::move(outcome));
    waiter.is_over.store(true);
  }};
}

std::expected<RunOutcome, Error> FlowHost::run_sub_flow(const std::string& key, const exec::RunInput& input) {
  // Its own files are read when it begins, where one that hangs can be given up. Secrets of the flows around it are known.
  const auto run = submit(input, key, exec::without_files);
  if (!run) return std::unexpected{run.error()};
  {
    const std::lock_guard lock{mutex_};
    sub_flows_[key] = *run;
  }
  if (auto going = go_on(*run); !going) return std::unexpected{going.error()};
  const auto before = engine_->info(*run);
  if (before && before->status == RunStatus::failed) {
    // An attempt after a failed one: what failed in there is tried again.
    if (auto again = engine_->retry_failed(*run); !again) return std::unexpected{again.error()};
  }
  return engine_->wait(*run);
}

void FlowHost::cancel(const std::string& key) {
  std::optional<RunId> run;
  {
    const std::lock_guard lock{mutex_};
    if (const auto found = sub_flows_.find(key); found != sub_flows_.end()) run = found->second;
  }
  if (run) static_cast<void>(engine_->cancel(*run, "the flow it belongs to was cancelled"));
}

}  // namespace reprise::runtime
