// What runs again because something it needs was tried again with success, or because somebody asked for it.
#include "core/core.hpp"

namespace reprise::core {

using event::Record;

bool has_begun(const StepState& state) noexcept {
  return state.status == StepStatus::preparing || state.status == StepStatus::active ||
         state.status == StepStatus::succeeded || state.status == StepStatus::failed;
}

// A step that has ended, and that somebody has tried again, has a result that it had not: whatever was made of the old one is made again.
// Steps that need it have begun in no other case.
void Core::complete(Run& run, Record& completed, Time now) {
  const std::uint32_t step = completed.step;
  std::vector<std::uint32_t> stale;
  for (const std::uint32_t dependant : run.step_plan(step).dependants) {
    const StepPlan& plan = run.step_plan(dependant);
    if (has_begun(run.steps[dependant]) && plan.runs_again && !plan.runs_finally) stale.push_back(dependant);
  }
  if (run.step_extra(step).keeps_dependants) stale.clear();
  emit(run, completed, now);
  turn_circuit(run, step, now);
  for (const std::uint32_t dependant : stale) {
    if (has_begun(run.steps[dependant])) run_again(run, dependant, step, false, now);  // it may need another of them
  }
}

// The step, and what needs it unless it is to run alone: with all its visits, and without the circuits that had opened.
void Core::run_again(Run& run, std::uint32_t step, std::uint32_t because_of, bool only, Time now) {
  if (only) {
    call_off(run, step);
  } else {
    for (const std::uint32_t again : steps_from(*run.plan->plan, step)) call_off(run, again);
  }
  Record record{.type = EventType::revisited, .step = step, .on_request = true, .only_this = only, .from_step = because_of};
  emit(run, record, now);
  refill(run, step);
  mark_blocked(run, now);
}

}  // namespace reprise::core
