// Policies that single items of a step bring along (flow documents: `retry_config: ${item.retry}`), as its `prepared` event has them.
//
// Items with equal policies share one. The stored form: how many policies, each as encode_policy() writes it, and then runs of items
// (length, 1 + number of the policy; 0 = they have none).
// Thread safety: immutable once made.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/policy.hpp>

namespace reprise::core {

class FactsDecoder;

inline constexpr std::size_t item_policies_max =
    100'000;  // items of a step that may have one: it stands in the run's state

struct ItemPolicies {
  std::vector<std::shared_ptr<const Policy>> policies = {};
  std::vector<std::uint32_t> of_item = {};  // 1 + index into `policies`; 0 = none
  std::string bytes = {};                   // as stored

  const Policy* of(std::uint32_t item) const noexcept {  // nullptr: the step's is its policy
    const std::uint32_t number = item < of_item.size() ? of_item[item] : 0;
    return number > 0 ? policies[number - 1].get() : nullptr;
  }
};

// Empty when no item has one.
std::string encode_item_policies(std::span<const std::optional<Policy>> policies);
// `types`: the error types of the plan; nullptr = the decoder's. nullptr: damaged, or from a version that knows more.
std::shared_ptr<const ItemPolicies> read_item_policies(std::string_view bytes, FactsDecoder& decoder,
                                                       const TypeTree* types);

}  // namespace reprise::core
