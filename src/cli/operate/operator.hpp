// What other processes ask of this one while it owns a shard and runs documents, through its control socket.
//
// Most of it is the engine's (runtime/run_service.hpp). What is resumed or retried is run here, if this machine has what it needs, until this
// process has done its own work; then the process that asked takes the shard and continues.
// Thread safety: one call at a time, from any thread; the host must outlive it.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <utility>

#include <reprise/engine.hpp>

#include "exec/document/relocation.hpp"
#include "host/flow_host.hpp"
#include "runtime/engine_access.hpp"
#include "runtime/run_reader.hpp"

namespace reprise::cli {

class Operator {
 public:
  explicit Operator(host::FlowHost& host) : host_{host} {}

  void operator()(runtime::RunRequest&& request, runtime::RunAnswered answered);

 private:
  std::expected<void, Error> check_can_run(const RunId& run) const;

  host::FlowHost& host_;
};

// What failed in the run is ready once more, and goes on. The host must outlive the answer.
void retry_here(host::FlowHost& host, runtime::RunRequest&& request, runtime::RunAnswered answered);

// What this machine or this environment lacks, so that the run would fail for good at once.
struct Obstacle {
  int exit_code = 0;
  std::string message;  // with its line end
};
// `moved`: where the folder of the run is now.
std::optional<Obstacle> obstacle_here(const runtime::RunView& view, const std::optional<exec::Relocation>& moved = {});

}  // namespace reprise::cli
