// An engine that runs documents, flows inside of flows included: what `reprise run`, `exec` and `resume` work with.
//
// Runs of documents that are in the store already do not go on by themselves: go_on() lets one.
// Thread safety: any thread. Destroying it stops the engine; what runs then is interrupted and goes on when it is resumed.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>

#include <reprise/engine.hpp>

#include "exec/document/document_executor.hpp"
#include "exec/document/program.hpp"
#include "runtime/inputs.hpp"
#include "store/store.hpp"

namespace reprise::host {

struct FlowHostSettings {
  std::string store = "memory:";
  std::unique_ptr<reprise::store::Store> shard = nullptr;  // the store, if it is open already
  std::string store_folder = {};                           // where logs go; empty = nowhere
  // Who asks for what is asked of this host without a name. Called when it is needed: to look a user's name up takes time.
  std::function<std::string()> name = {};
  bool stderr_through = false;
  bool stdout_through = false;
  Duration grace = std::chrono::seconds{5};
  exec::FileReaderSettings files = {};         // how files that documents name are read
  std::optional<exec::Relocation> moved = {};  // see exec::DocumentSettings
  exec::CallbackSettings callbacks = {};       // with an address that is given, nobody else may listen there
};

class FlowHost final : private exec::SubFlows {
 public:
  static std::expected<std::unique_ptr<FlowHost>, Error> open(FlowHostSettings settings);
  ~FlowHost() override;

  Engine& engine() noexcept { return *engine_; }

  // The error is `invalid` with the document's mistakes when it cannot be run.
  // Its own secrets are read by `read`, which may block; what holds one is recorded without it.
  std::expected<RunId, Error> submit(const exec::RunInput& input, const std::string& key = {},
                                     const exec::ReadFile& read = exec::read_regular_file);
  // One that was loaded with its secrets; it is not read again to be run.
  std::expected<RunId, Error> submit(std::shared_ptr<const exec::Program> program, const std::string& key = {},
                                     RunAttributes attributes = {});
  // A run that was there before: an interrupted one goes on, a paused or cancelled one is resumed. What has ended stays as it is.
  // Gives the sequence of the last event before.
  std::expected<std::uint64_t, Error> go_on(const RunId& run, runtime::Requester by = {});
  void allow(const RunId& run);  // the same without resuming

  void kill_all();  // every command that runs is killed at once

 private:
  FlowHost() = default;
  std::expected<void, Error> hand_over(exec::HandedOver over, const exec::RunInput& input) override;

  std::function<std::string()> name_;
  exec::DocumentExecutor* executor_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

}  // namespace reprise::host
