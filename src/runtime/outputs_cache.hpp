// What the steps that a step reads have returned, and the inputs of documents, as jobs carry them: made once for all items of a step.
//
// Thread safety: none; it belongs to a loop. What it gives is shared with executors and never changes.
#pragma once

#include <cstdint>
#include <memory>
#include <tuple>

#include "base/recently_used.hpp"
#include "core/state.hpp"
#include "exec/executor.hpp"

namespace reprise::runtime {

class OutputsCache {
 public:
  // nullptr = those steps have returned nothing.
  std::shared_ptr<const exec::StepOutputs> outputs_for(const core::Run& run, std::uint32_t step);
  std::shared_ptr<const event::Payload> input_of(const core::Run& run);

 private:
  static constexpr std::size_t remembered_max = 64;
  using OutputsKey = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // run, step, visit

  base::RecentlyUsed<OutputsKey, std::shared_ptr<const exec::StepOutputs>> outputs_{remembered_max};
  base::RecentlyUsed<std::uint64_t, std::shared_ptr<const event::Payload>> inputs_{remembered_max};
};

}  // namespace reprise::runtime
