#include "observe/why/why_text.hpp"

#include <map>

#include "observe/words.hpp"

namespace reprise::observe {
namespace {

constexpr std::size_t last_attempts = 2;  // of a long history

std::string decision_in_words(const RetryDecision& decision) {
  std::string text;
  for (std::size_t at = 0; at < decision.sentences.size(); ++at)
    text += (at == 0 ? "  " : "    ") + decision.sentences[at] + "\n";
  return text;
}

}  // namespace

std::string item_in_words(const Explanation& item, std::string_view name) {
  std::string text = std::string{name} + ": " + std::string{name_of(item.state)} + "\n";
  const std::size_t count = item.decisions.size();
  const bool is_long = count > attempts_shown_max;
  for (std::size_t at = 0; at < count; ++at) {
    const std::size_t left_out_from = attempts_shown_max - last_attempts - 1;
    if (is_long && at == left_out_from) {
      at = count - last_attempts;
      text += "  Attempts " + std::to_string(item.decisions[left_out_from].failed.attempt) + " to " +
              std::to_string(item.decisions[at - 1].failed.attempt) +
              " failed as well (--format json has them all).\n";
    }
    text += decision_in_words(item.decisions[at]);
  }
  if (count > 0 && item.decisions.back().failed.failure) {
    for (const std::string& line : evidence_lines(*item.decisions.back().failed.failure))
      text += "    " + line + "\n";
  }
  if (!item.ending.empty()) text += "  " + item.ending + "\n";
  if (!item.remedies.empty()) text += "  For another outcome:\n";
  for (const std::string& remedy : item.remedies) text += "    - " + remedy + "\n";
  return text;
}

ItemsToShow items_to_show(const std::vector<Explanation>& items) {
  ItemsToShow chosen;
  for (const bool for_good : {true, false}) {
    std::map<std::uint32_t, std::size_t> shown_of;
    std::map<std::uint32_t, ItemsLeftOut> left_out;
    for (std::size_t at = 0; at < items.size(); ++at) {
      const Explanation& item = items[at];
      if ((item.state == WorkState::failed) != for_good) continue;
      if (chosen.shown.size() < items_shown_max && shown_of[item.step] < items_shown_of_step_max) {
        ++shown_of[item.step];
        chosen.shown.push_back(at);
        continue;
      }
      ++left_out.try_emplace(item.step, ItemsLeftOut{item.step, item.item, 0, for_good}).first->second.count;
    }
    for (const auto& [step, rest] : left_out) chosen.left_out.push_back(rest);
  }
  return chosen;
}

}  // namespace reprise::observe
