#include "core/chosen.hpp"

#include <algorithm>
#include <charconv>

namespace reprise::core {
namespace {

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, mistake] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (mistake != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<ChosenStep> step_in(std::string_view text) {
  const std::size_t open = text.find('[');
  const auto step = number_in(text.substr(0, open));
  if (!step) return std::nullopt;
  if (open == std::string_view::npos) return ChosenStep{*step};
  if (!text.ends_with(']')) return std::nullopt;
  auto items = item_ranges_in(text.substr(open + 1, text.size() - open - 2));
  if (!items) return std::nullopt;
  return ChosenStep{*step, *std::move(items)};
}

}  // namespace

bool Chosen::has(std::uint32_t step, std::uint32_t item) const noexcept {
  const auto is_meant = [&](const ChosenStep& each) {
    return each.step == step && (each.items.empty() || std::ranges::any_of(each.items, [&](const ItemRange& range) {
                                   return range.from <= item && item <= range.to;
                                 }));
  };
  return steps.empty() || std::ranges::any_of(steps, is_meant);
}

std::optional<std::vector<ItemRange>> item_ranges_in(std::string_view text) {
  std::vector<ItemRange> items;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    const std::size_t dash = word.find('-');
    const auto from = number_in(word.substr(0, dash));
    const auto to = dash == std::string_view::npos ? from : number_in(word.substr(dash + 1));
    if (!from || !to || *to < *from) return std::nullopt;
    items.push_back({*from, *to});
    if (comma == text.size()) return items;
    text.remove_prefix(comma + 1);
  }
}

std::string to_text(const std::vector<ItemRange>& items) {
  std::string text;
  for (const ItemRange& range : items) {
    text += (text.empty() ? "" : ",") + std::to_string(range.from);
    if (range.to > range.from) text += "-" + std::to_string(range.to);
  }
  return text;
}

std::vector<ItemRange> ranges_of(std::vector<std::uint32_t> items) {
  std::ranges::sort(items);
  std::vector<ItemRange> ranges;
  for (const std::uint32_t item : items) {
    if (!ranges.empty() && item - ranges.back().to <= 1) {
      ranges.back().to = item;
    } else {
      ranges.push_back({item, item});
    }
  }
  return ranges;
}

std::optional<Chosen> chosen_in(std::string_view text) {
  Chosen chosen;
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    auto step = step_in(text.substr(0, blank));
    if (!step) return std::nullopt;
    chosen.steps.push_back(*std::move(step));
    text.remove_prefix(std::min(blank + 1, text.size()));
  }
  if (chosen.steps.empty()) return std::nullopt;
  return chosen;
}

}  // namespace reprise::core
