// What a run was submitted with for itself: facts that differ from run to run, so that they do not make a plan each (event/facts.hpp).
//
// Thread safety: RunFacts are immutable once made; a decoder belongs to one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <reprise/policy.hpp>

#include "base/recently_used.hpp"
#include "core/plan.hpp"

namespace reprise::core {

// The attempt whose work a run does: a sub-flow's.
struct Parent {
  RunId run = {};
  std::uint32_t step = 0;
  std::uint32_t item = 0;
  std::uint32_t token = 0;  // of the attempt that had it begun; a later one may have gone on with it

  bool operator==(const Parent&) const = default;
};

struct RunFacts {
  std::int64_t deadline = 0;                  // from its creation; 0 = the plan's
  std::shared_ptr<const Policy> policy = {};  // of its only step; nullptr = the plan's
  std::vector<std::pair<std::string, std::string>> types =
      {};                             // error types that the policy brings, each with its parent
  std::optional<Parent> parent = {};  // it works for another run
  std::string bytes = {};             // as stored, with what only people go by and what a newer version has added
};

// The stored form, without those that say nothing (`bytes` is not looked at); empty when there is nothing to say.
// `attributes`: event::encode_attributes(), which the core only keeps.
std::string encode_facts(const RunFacts& facts, std::string_view attributes = {});

// Reads stored facts. Runs with equal policies share one.
class FactsDecoder {
 public:
  FactsDecoder() = default;  // knows no patterns: a policy with /regex/ rules is refused
  FactsDecoder(PatternCompiler compile, const TypeTree* types) : compile_{std::move(compile)}, types_{types} {}

  // nullptr: damaged, or a policy that this version cannot read.
  std::unique_ptr<const RunFacts> read(std::string_view bytes);
  std::shared_ptr<const Policy> policy(std::string_view bytes);  // encode_policy()'s, alone

 private:
  std::shared_ptr<const Policy> policy(std::string_view bytes, std::string_view types);

  static constexpr std::size_t policies_max = 1024;  // remembered; a run keeps its own however many there are
  PatternCompiler compile_;
  const TypeTree* types_ = nullptr;
  base::RecentlyUsed<std::string, std::shared_ptr<const Policy>> policies_{policies_max};
};

}  // namespace reprise::core
