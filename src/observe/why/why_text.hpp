// How the answer of why is laid out: an item as lines, long histories shortened, and which of many items are worth showing.
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "observe/why/why.hpp"

namespace reprise::observe {

inline constexpr std::size_t attempts_shown_max = 8;       // of one item; more: the first and the last ones
inline constexpr std::size_t items_shown_of_step_max = 3;  // of those that failed for good, and of the others
inline constexpr std::size_t items_shown_max = 12;

// One item with its attempts, what came of it, and what would have to change.
std::string item_in_words(const Explanation& item, std::string_view name);

// What is left out of one step.
struct ItemsLeftOut {
  std::uint32_t step = 0;
  std::uint32_t first = 0;  // item
  std::size_t count = 0;
  bool for_good = false;  // they failed for good; else they had trouble
};
struct ItemsToShow {
  std::vector<std::size_t> shown;  // in the order to show them: what failed for good first
  std::vector<ItemsLeftOut> left_out;
};
ItemsToShow items_to_show(const std::vector<Explanation>& items);

}  // namespace reprise::observe
