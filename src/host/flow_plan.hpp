// What a document means to the core: its steps as a plan.
//
// Thread safety: pure functions.
#pragma once

#include "core/plan.hpp"
#include "flow/flow.hpp"

namespace reprise::host {

inline constexpr std::uint32_t default_max_parallel =
    16;  // attempts of one run at a time, when the document says nothing

core::Plan plan_of(const flow::FlowDocument& flow);

}  // namespace reprise::host
