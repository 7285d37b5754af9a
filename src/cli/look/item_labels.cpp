#include "cli/look/item_labels.hpp"

#include "flow/item_label.hpp"

namespace reprise::cli {

std::string ItemLabels::of(std::string_view step, std::uint32_t item) {
  if (program_ == nullptr) return {};
  const auto found = program_->steps.find(step);
  if (found == program_->steps.end() || !found->second->for_each) return {};
  auto known = known_.find(step);
  if (known == known_.end()) {
    const std::vector<std::string> items = items_(step);
    if (items.empty()) return {};  // they are not known yet
    std::vector<std::string> labels;
    for (std::uint32_t index = 0; index < items.size(); ++index) {
      const auto value = json::parse_json(items[index]);
      std::string label = value ? flow::item_label(*found->second, *value, index, program_->params) : std::string{};
      if (label == std::to_string(index)) label.clear();  // fetch[3] 3 says nothing more
      labels.push_back(std::move(label));
    }
    known = known_.emplace(std::string{step}, std::move(labels)).first;
  }
  return item < known->second.size() ? known->second[item] : std::string{};
}

void ItemLabels::label(observe::RunReport& report) {
  for (observe::TroubledItem& item : report.troubled) item.label = of(report.steps[item.step].name, item.item);
}

std::shared_ptr<const exec::Program> document_of_run(std::string_view recorded_input) {
  auto input = exec::decode_run_input(recorded_input);
  if (!input || input->is_exec()) return nullptr;
  auto program = exec::load_program(*std::move(input), exec::without_files);
  return program ? *std::move(program) : nullptr;
}

}  // namespace reprise::cli
