// Which work items of a run an operator has chosen: items of one step or of several. As text it stands in the record: 0[17,20-30] 3.
//
// Thread safety: values; the functions need none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::core {

struct ItemRange {  // both included
  std::uint32_t from = 0;
  std::uint32_t to = 0;

  bool operator==(const ItemRange&) const = default;
};

struct ChosenStep {
  std::uint32_t step = 0;
  std::vector<ItemRange> items = {};  // empty = every item

  bool operator==(const ChosenStep&) const = default;
};

struct Chosen {
  std::vector<ChosenStep> steps = {};  // empty = everything

  bool has(std::uint32_t step, std::uint32_t item) const noexcept;
  bool operator==(const Chosen&) const = default;
};

// "17,20-30"; std::nullopt: it is not a list of items, or none.
std::optional<std::vector<ItemRange>> item_ranges_in(std::string_view text);
std::string to_text(const std::vector<ItemRange>& items);
// In order, without gaps in between: 3, 4, 5 and 9 are 3-5 and 9.
std::vector<ItemRange> ranges_of(std::vector<std::uint32_t> items);

// `name_of` gives what stands for a step; the record has its number.
template <class Name>
std::string to_text(const Chosen& chosen, Name name_of) {
  std::string text;
  for (const ChosenStep& each : chosen.steps) {
    text += (text.empty() ? "" : " ") + name_of(each.step);
    if (!each.items.empty()) text += "[" + to_text(each.items) + "]";
  }
  return text;
}
std::optional<Chosen> chosen_in(std::string_view text);  // with numbers of steps

}  // namespace reprise::core
