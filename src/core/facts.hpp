// What a run was submitted with for itself: facts that differ from run to run, so that they do not make a plan each (event/facts.hpp).
//
// Thread safety: RunFacts are immutable once made; a decoder belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <reprise/policy.hpp>

#include "base/recently_used.hpp"
#include "core/plan.hpp"

namespace reprise::core {

struct RunFacts {
  std::int64_t deadline = 0;                  // from its creation; 0 = the plan's
  std::shared_ptr<const Policy> policy = {};  // of its only step; nullptr = the plan's
  std::string bytes = {};                     // as stored, with what a newer version has added
};

// The stored form, without those that say nothing (`bytes` is not looked at); empty when there is nothing to say.
std::string encode_facts(const RunFacts& facts);

// Reads stored facts. Runs with equal policies share one.
class FactsDecoder {
 public:
  FactsDecoder() = default;  // knows no patterns: a policy with /regex/ rules is refused
  FactsDecoder(PatternCompiler compile, const TypeTree* types) : compile_{std::move(compile)}, types_{types} {}

  // nullptr: damaged, or a policy that this version cannot read.
  std::unique_ptr<const RunFacts> read(std::string_view bytes);

 private:
  std::shared_ptr<const Policy> policy(std::string_view bytes);

  static constexpr std::size_t policies_max = 1024;  // remembered; a run keeps its own however many there are
  PatternCompiler compile_;
  const TypeTree* types_ = nullptr;
  base::RecentlyUsed<std::string, std::shared_ptr<const Policy>> policies_{policies_max};
};

}  // namespace reprise::core
