// What may be asked of the runs of one shard from outside of the process that owns it, as values.
//
// The control socket carries a ControlRequest, which is text; this is what it means. Every engine answers it (EngineAccess::perform): that of a
// C++ program as well as the one under `reprise run`, which adds what only documents need (cli/operate/operator.hpp).
// Thread safety: none needed, these are values.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include <reprise/engine.hpp>

#include "core/chosen.hpp"
#include "runtime/control.hpp"

namespace reprise::runtime {

// Which work of a run.
struct StepItems {
  std::string step = {};
  std::vector<core::ItemRange> items = {};  // empty = all
};
struct WorkChoice {
  std::vector<StepItems> steps = {};  // empty = all
};

enum class Asked : std::uint8_t { ping, cancel, pause, resume, retry, drop, signal, remove };

struct RunRequest {
  Asked asked = Asked::ping;
  std::optional<RunId> run = {};  // only a ping may name none: somebody is here; with one: and works on it
  std::string text = {};          // cancel: why. signal: its name
  std::string payload = {};       // of a signal
  WorkChoice choice = {};         // retry, drop
};

// `invalid`: an unknown operation, no run, not the number of an item.
std::expected<RunRequest, Error> run_request_in(const ControlRequest& request);

// The names of the steps stand in `text`, their items ("17,20-30") in `payload`, one line for each.
ControlRequest request_for(std::string operation, const RunId& run, const WorkChoice& choice);

}  // namespace reprise::runtime
