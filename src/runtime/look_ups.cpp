#include "runtime/look_ups.hpp"

#include "base/check.hpp"

namespace reprise::runtime {

void LookUps::put_wanted(ReadRequest& request) {
  REPRISE_CHECK(!is_under_way_, 0);
  request.runs = rows_.take_wanted();
  request.keys = owners_.take_wanted();
  request.lists = lists_.take_wanted();
  changed_.clear();
  is_under_way_ = true;
}

void LookUps::take(const ReadRequest& request, ReadAnswer& answer, bool anew) {
  is_under_way_ = false;
  const auto put = [&](auto& table, const auto& key, auto&& told, bool is_outdated) {
    if (is_outdated || (anew && !told)) return table.want(key);
    table.put(key, std::move(told));
  };
  for (std::size_t index = 0; index < request.runs.size(); ++index)
    put(rows_, request.runs[index], answer.runs[index], has_changed(request.runs[index]));
  for (std::size_t index = 0; index < request.keys.size(); ++index) {
    const auto& told = answer.keys[index];
    const std::optional<std::uint64_t> run = told && *told ? std::optional{(*told)->run} : std::nullopt;
    const bool is_outdated = run && has_changed(*run);
    if (run && !is_outdated) keys_of_.emplace(*run, request.keys[index]);
    put(owners_, request.keys[index], answer.keys[index], is_outdated);
  }
  for (std::size_t index = 0; index < request.lists.size(); ++index)
    put(lists_, request.lists[index], answer.lists[index], false);
}

void LookUps::changed(std::uint64_t run) {
  if (is_under_way_) changed_.insert(run);
  rows_.forget(run);
  if (keys_of_.empty()) return;
  const auto [first, last] = keys_of_.equal_range(run);
  for (auto at = first; at != last; ++at) owners_.forget(at->second);
  keys_of_.erase(first, last);
}

void LookUps::end_round(bool somebody_waits) {
  rows_.forget_unused(round_, !somebody_waits);
  owners_.forget_unused(round_, !somebody_waits);
  lists_.forget_unused(round_, !somebody_waits);
  std::erase_if(keys_of_, [&](const auto& entry) { return !owners_.has(entry.second); });
  ++round_;
}

}  // namespace reprise::runtime
