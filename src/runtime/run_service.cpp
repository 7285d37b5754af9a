#include "runtime/run_service.hpp"

#include <array>
#include <charconv>
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

std::expected<WorkChoice, Error> choice_in(const ControlRequest& request) {
  WorkChoice choice{.step = request.text};
  std::string_view number = request.payload;
  choice.only = number.ends_with('!');
  if (choice.only) number.remove_suffix(1);
  if (number.empty()) return choice;
  std::uint32_t item = 0;
  const char* const end = number.data() + number.size();
  const auto [stop, mistake] = std::from_chars(number.data(), end, item);
  if (mistake != std::errc{} || stop != end) return refused("this is not the number of an item");
  choice.item = item;
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
  return {std::move(operation), to_string(run), choice.step, (choice.item ? std::to_string(*choice.item) : "") + (choice.only ? "!" : "")};
}

}  // namespace reprise::runtime
