#include "runtime/outputs_cache.hpp"

#include <algorithm>

namespace reprise::runtime {
namespace {

bool has_output(const core::Run& run, std::uint32_t step) {
  const core::StepState& state = run.steps[step];
  return run.plan->plan->is_document || state.map != nullptr || (state.next > 0 && state.one.output != nullptr);
}

exec::StepOutput output_of(const core::Run& run, std::uint32_t step) {
  const core::StepState& state = run.steps[step];
  exec::StepOutput output;
  output.step = *run.step_plan(step).name;
  output.is_list = state.map != nullptr;
  if (state.map != nullptr) output.items = state.map->list;
  for (std::uint32_t index = 0; index < state.items; ++index) {
    const core::Item* const done = state.touched(index);
    output.parts.push_back(done != nullptr && done->output != nullptr ? *done->output : event::Payload{});
    if (done != nullptr && done->status == core::ItemStatus::failed && done->trouble != nullptr)
      output.failures.push_back({index, done->trouble->failure});
  }
  output.status = core::name_of(state.status);
  output.succeeded = state.succeeded;
  output.failed = state.failed;
  return output;
}

}  // namespace

std::shared_ptr<const exec::StepOutputs> OutputsCache::outputs_for(const core::Run& run, std::uint32_t step) {
  const auto& needs = run.step_plan(step).reads;
  if (std::ranges::none_of(needs, [&](std::uint32_t need) { return has_output(run, need); })) return nullptr;
  const bool is_shared = run.steps[step].map != nullptr;
  const OutputsKey key{run.number, step, run.steps[step].visits};
  if (is_shared) {
    if (const auto* const known = outputs_.find(key); known != nullptr) return *known;
  }
  auto outputs = std::make_shared<exec::StepOutputs>();
  for (const std::uint32_t need : needs) outputs->push_back(output_of(run, need));
  if (is_shared) outputs_.put(key, outputs);
  return outputs;
}

std::shared_ptr<const event::Payload> OutputsCache::input_of(const core::Run& run) {
  if (const auto* const known = inputs_.find(run.number); known != nullptr) return *known;
  return inputs_.put(run.number, std::make_shared<const event::Payload>(run.input));
}

}  // namespace reprise::runtime
