#include "observe/report/failure_groups.hpp"

#include <algorithm>
#include <map>

namespace reprise::observe {

std::vector<FailureGroup> failure_groups(std::span<const FailedPiece> failures) {
  std::map<std::string, std::size_t, std::less<>> known;
  std::vector<FailureGroup> groups;
  for (const FailedPiece& failure : failures) {
    const TroubledItem& item = *failure.trouble;
    const auto [found, is_new] = known.emplace(failure.fingerprint, groups.size());
    if (is_new) {
      groups.push_back({.fingerprint = failure.fingerprint,
                        .step = item.step,
                        .first = item.time,
                        .last = item.time,
                        .sample = item});
    }
    FailureGroup& group = groups[found->second];
    ++group.count;
    group.dead_letters += item.dead_letter ? 1 : 0;
    group.first = std::min(group.first, item.time);
    group.last = std::max(group.last, item.time);
    group.items.push_back(item.item);
    group.labels.push_back(item.label);
  }
  std::ranges::stable_sort(groups, std::greater<>{}, &FailureGroup::count);
  return groups;
}

}  // namespace reprise::observe
