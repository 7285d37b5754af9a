// Flow documents: whatever the text, the reader ends with a flow that can be planned, or with mistakes that have a place.
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>

#include <reprise/diagnostic.hpp>

#include "flow/reader/reader.hpp"
#include "require.hpp"

namespace {

using reprise::flow::FlowDocument;
using reprise::flow::Step;
using reprise::fuzz::require;

void check_step(const Step& step) {
  require(!step.id.empty(), "every step has an id");
  require(!step.policy_source.empty(), "every step says where its policy comes from", step.id);
  require(step.verb != reprise::flow::Verb::commands || !step.commands.empty(), "every step does something", step.id);
  require(step.max_visits >= 1, "a step may be visited", step.id);
  require(!step.timeout || *step.timeout > reprise::Duration{0}, "a timeout leaves time", step.id);
  require(step.on_failure != reprise::OnFailure::revisit || !step.goto_step.empty(), "goto names a step", step.id);
}

void check_flow(const FlowDocument& flow) {
  require(!flow.name.empty() && !flow.steps.empty(), "a flow has a name and steps");
  std::unordered_set<std::string> done;
  for (const Step* step : reprise::flow::planned_steps(flow)) {
    for (const std::string& need : step->needs)
      require(done.contains(need), "what a step needs comes before it", step->id);
    for (const std::string& read : step->reads)
      require(done.contains(read), "what a step reads comes before it", step->id);
    require(done.insert(step->id).second, "every step is planned once", step->id);
  }
  for (const Step& step : flow.steps) check_step(step);
  for (const Step& step : flow.finally) check_step(step);
  require(!flow.goals.empty() || done.size() == flow.steps.size(), "without goals every step is planned");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto read = reprise::flow::read_flow(std::string(reinterpret_cast<const char*>(data), size), "fuzz.yaml");
  if (!read) {
    require(!read.error().empty(), "a refusal has a reason");
    for (const reprise::Diagnostic& mistake : read.error())
      require(mistake.line >= 1 && mistake.column >= 1, "a mistake has a place");
    reprise::render(read.error());
    return 0;
  }
  check_flow(read->flow);
  reprise::render(read->warnings);
  const auto bound = reprise::flow::bind_params(read->flow, nullptr);
  require(bound.has_value() || !bound.error().empty(), "parameters are bound, or it is said why not");
  return 0;
}
