#include "runtime/parentage.hpp"

#include <charconv>

namespace reprise::runtime {

std::optional<ParentPlace> parent_in_key(std::string_view key) {
  const std::size_t step_at = key.find('/');
  const std::size_t item_at = key.rfind('/');
  if (step_at == std::string_view::npos || item_at == step_at) return std::nullopt;
  const auto run = run_id_from(key.substr(0, step_at));
  if (!run) return std::nullopt;
  ParentPlace place{.run = *run, .step_name = std::string{key.substr(step_at + 1, item_at - step_at - 1)}};
  const std::string_view item = key.substr(item_at + 1);
  const auto [end, mistake] = std::from_chars(item.data(), item.data() + item.size(), place.item);
  if (mistake != std::errc{} || end != item.data() + item.size()) return std::nullopt;
  return place;
}

std::optional<ParentPlace> parent_of(const core::Run& child) {
  if (child.facts == nullptr || !child.facts->parent) return parent_in_key(child.key);
  const core::Parent& parent = *child.facts->parent;
  return ParentPlace{.run = parent.run, .step = parent.step, .item = parent.item};
}

std::uint32_t step_in(const core::Run& parent, const ParentPlace& place) {
  if (place.step) return *place.step;
  std::uint32_t step = 0;
  while (step < parent.step_count() && *parent.step_plan(step).name != place.step_name) ++step;
  return step;
}

}  // namespace reprise::runtime
