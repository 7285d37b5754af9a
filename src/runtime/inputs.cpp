#include "runtime/inputs.hpp"

#include "base/overloaded.hpp"

namespace reprise::runtime {

const RunId* run_named_in(const Input& input) {
  return std::visit(
      base::Overloaded{[](const Operate& kind) { return &kind.run; }, [](const Ask& kind) { return &kind.run; },
                       [](const Allow& kind) { return &kind.run; },
                       [](const Reported& kind) { return &kind.report.run; },
                       [](const auto&) -> const RunId* { return nullptr; }},
      input);
}

}  // namespace reprise::runtime
