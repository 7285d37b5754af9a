#include "runtime/run_service.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace reprise::runtime {
namespace {

constexpr std::array<std::pair<std::string_view, Asked>, 8> operations{{{"ping", Asked::ping},
                                                                        {"cancel", Asked::cancel},
                                                                        {"pause", Asked::pause},
                                                                        {"resume", Asked::resume},
                                                                        {"retry", Asked::retry},
                                                                        {"drop", Asked::drop},
                                                                        {"signal", Asked::signal},
                                                                        {"remove", Asked::remove}}};

std::unexpected<Error> refused(std::string message) {
  return std::unexpected{Error{ErrorCode::invalid, std::move(message)}};
}

std::optional<Asked> asked_by(std::string_view operation) {
  for (const auto& [name, asked] : operations)
    if (name == operation) return asked;
  return std::nullopt;
}

// The line that `text` begins with; `text` is then what follows.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::expected<WorkChoice, Error> choice_in(const ControlRequest& request) {
  WorkChoice choice;
  std::string_view names = request.text;
  std::string_view lists = request.payload;
  while (!names.empty()) {
    StepItems& step = choice.steps.emplace_back(StepItems{std::string{take_line(names)}});
    const std::string_view list = take_line(lists);
    if (list.empty()) continue;
    auto items = core::item_ranges_in(list);
    if (!items) return refused("these are not numbers of items");
    step.items = *std::move(items);
  }
  return choice;
}

}  // namespace

std::expected<RunRequest, Error> run_request_in(const ControlRequest& request) {
  const auto asked = asked_by(request.operation);
  if (!asked) return refused("unknown operation \"" + request.operation + "\"");
  RunRequest wanted{.asked = *asked};
  if (*asked == Asked::ping && request.run.empty()) return wanted;
  wanted.run = run_id_from(request.run);
  if (!wanted.run) return refused("this is not the id of a run");
  if (*asked == Asked::retry || *asked == Asked::drop) {
    auto choice = choice_in(request);
    if (!choice) return std::unexpected{std::move(choice.error())};
    wanted.choice = *std::move(choice);
  } else {
    wanted.text = request.text;
    wanted.payload = request.payload;
  }
  return wanted;
}

ControlRequest request_for(std::string operation, const RunId& run, const WorkChoice& choice) {
  ControlRequest request{std::move(operation), to_string(run)};
  for (const StepItems& step : choice.steps) {
    const std::string_view between = request.text.empty() ? "" : "\n";
    request.text.append(between).append(step.step);
    request.payload.append(between).append(core::to_text(step.items));
  }
  return request;
}

}  // namespace reprise::runtime
