// Whose work a run does: which attempt of which run waits for its end.
//
// Since version 2 of the store a sub-flow's `submitted` event says so. One from before is known by its key, which was made of the parent's id,
// the step and the item: this is the one place that still reads it.
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <reprise/event.hpp>

#include "core/state.hpp"

namespace reprise::runtime {

struct ParentPlace {
  RunId run = {};
  std::optional<std::uint32_t> step = {};  // std::nullopt: only its name is known
  std::string step_name = {};
  std::uint32_t item = 0;
};

std::optional<ParentPlace> parent_of(const core::Run& child);
// The number of the step; that of no step if the parent has none like it.
std::uint32_t step_in(const core::Run& parent, const ParentPlace& place);

// By the shape of the key alone: the work item's idempotency key (exec/document/attempt_run.cpp). Anybody may choose such a key.
std::optional<ParentPlace> parent_in_key(std::string_view key);

}  // namespace reprise::runtime
