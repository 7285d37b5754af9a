#include "runtime/run_service.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace reprise::runtime {
namespace {

constexpr std::array<std::pair<std::string_view, Asked>, 9> operations{{{"ping", Asked::ping},
                                                                        {"submit", Asked::submit},
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

bool has_choice(Asked asked) noexcept { return asked == Asked::retry || asked == Asked::drop; }

// The names of the steps stand in `text`, their items ("17,20-30") in `payload`, one line for each; behind these `!` when the steps that
// need them keep what they have.
std::string step_lines(const WorkChoice& choice) {
  std::string lines;
  for (const StepItems& step : choice.steps) lines += (lines.empty() ? "" : "\n") + step.step;
  return lines;
}

std::string item_lines(const WorkChoice& choice) {
  std::string lines;
  for (const StepItems& step : choice.steps)
    lines += (&step == &choice.steps.front() ? "" : "\n") + core::to_text(step.items);
  return lines + (choice.only ? "!" : "");
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
  choice.only = lists.ends_with('!');
  if (choice.only) lists.remove_suffix(1);
  while (!names.empty()) {
    StepItems& step = choice.steps.emplace_back(StepItems{std::string{take_line(names)}});
    const std::string_view list = take_line(lists);
    if (list.empty()) continue;
    auto items = core::item_ranges_in(list);
    if (!items) return refused("this is not the number of an item");
    step.items = *std::move(items);
  }
  return choice;
}

constexpr std::size_t by_max = 256;
constexpr std::size_t why_max = 1024;

// Who asks without an id is an older version, and without a name nobody knows who.
std::expected<Requester, Error> requester_in(const ControlRequest& request) {
  Requester by{.by = request.by.substr(0, by_max), .why = request.why.substr(0, why_max)};
  if (request.request.empty()) return by;
  const auto id = run_id_from(request.request);
  if (!id) return refused("this is not the id of a request: write a UUID");
  by.id = *id;
  return by;
}

Duration milliseconds(std::uint64_t count) {
  constexpr std::uint64_t longest = 100ULL * 365 * 24 * 3600 * 1000;
  return std::chrono::milliseconds{std::min(count, longest)};
}

Task task_of(const ControlTask& given) {
  Task task{.handler = given.handler, .flow = given.flow, .input = given.input, .items = given.items, .key = given.key};
  task.delay = milliseconds(given.delay_ms);
  task.priority = static_cast<std::uint8_t>(std::min<std::uint32_t>(given.priority, 255));
  if (given.deadline_ms) task.deadline = milliseconds(*given.deadline_ms);
  task.labels.assign(given.labels.begin(), given.labels.end());
  task.queue = given.queue;
  task.tenant = given.tenant;
  task.traceparent = given.traceparent;
  if (given.max_tokens > 0 || given.max_micros > 0) task.max_cost = Cost{given.max_tokens, given.max_micros};
  return task;
}

ControlTask control_task_of(const Task& task) {
  const auto count = [](Duration time) {
    return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
  };
  ControlTask given{.handler = task.handler,
                    .flow = task.flow,
                    .input = task.input,
                    .items = task.items,
                    .key = task.key,
                    .delay_ms = count(std::max(task.delay, Duration{0})),
                    .priority = task.priority,
                    .labels = {task.labels.begin(), task.labels.end()},
                    .queue = task.queue,
                    .tenant = task.tenant,
                    .traceparent = task.traceparent};
  if (task.deadline) given.deadline_ms = count(std::max(*task.deadline, Duration{0}));
  if (task.max_cost) {
    given.max_tokens = task.max_cost->tokens;
    given.max_micros = task.max_cost->micros;
  }
  return given;
}

}  // namespace

std::string_view name_of(Asked asked) noexcept {
  for (const auto& [name, each] : operations)
    if (each == asked) return name;
  return "";
}

std::expected<RunRequest, Error> run_request_in(const ControlRequest& request) {
  const auto asked = asked_by(request.operation);
  if (!asked) return refused("unknown operation \"" + request.operation + "\"");
  auto by = requester_in(request);
  if (!by) return std::unexpected{std::move(by.error())};
  RunRequest wanted{.asked = *asked, .by = *std::move(by)};
  if (*asked == Asked::submit) {
    if (!request.task) return refused("submit needs a task");
    wanted.task = task_of(*request.task);
    return wanted;
  }
  if (*asked == Asked::ping && request.run.empty()) return wanted;
  wanted.run = run_id_from(request.run);
  if (!wanted.run) return refused("this is not the id of a run");
  if (has_choice(*asked)) {
    auto choice = choice_in(request);
    if (!choice) return std::unexpected{std::move(choice.error())};
    wanted.choice = *std::move(choice);
    return wanted;
  }
  // Older versions know no other reason than that of a cancel, which is its text.
  if (*asked == Asked::cancel) {
    if (wanted.by.why.empty()) wanted.by.why = request.text.substr(0, why_max);
    return wanted;
  }
  wanted.text = request.text;
  wanted.payload = request.payload;
  return wanted;
}

ControlRequest control_request_of(const RunRequest& request) {
  ControlRequest line{
      .operation = std::string{name_of(request.asked)}, .text = request.text, .payload = request.payload};
  if (request.run) line.run = to_string(*request.run);
  if (request.asked == Asked::cancel) line.text = request.by.why;
  if (has_choice(request.asked)) {
    line.text = step_lines(request.choice);
    line.payload = item_lines(request.choice);
  }
  if (request.by.id != RunId{}) line.request = to_string(request.by.id);
  line.by = request.by.by;
  line.why = request.by.why;
  if (request.task) line.task = control_task_of(*request.task);
  return line;
}

ControlServer::Handler control_handler(std::function<void(RunRequest&&, RunAnswered)> ask) {
  return [ask = std::move(ask)](const ControlRequest& asked, ControlServer::Answered answered) {
    auto request = run_request_in(asked);
    if (!request) return answered(std::unexpected{std::move(request.error())});
    ask(*std::move(request), [answered = std::move(answered)](const std::expected<RunAnswer, Error>& answer) {
      if (!answer) return answered(std::unexpected{answer.error()});
      answered(ControlDone{answer->run != RunId{} ? to_string(answer->run) : ""});
    });
  };
}

std::expected<void, Error> done_or_error(const ControlAnswer& answer) {
  return answer ? std::expected<void, Error>{} : std::unexpected{answer.error()};
}

// ---- the door ----------------------------------------

namespace {

// Nothing was changed, so the same request may be made again.
bool is_refusal(const std::expected<RunAnswer, Error>& answer) {
  if (answer) return false;
  const ErrorCode code = answer.error().code;
  return code == ErrorCode::invalid || code == ErrorCode::not_found || code == ErrorCode::full ||
         code == ErrorCode::stopped;
}

}  // namespace

void RunService::ask(RunRequest request, RunAnswered answered) {
  if (request.asked == Asked::ping || request.by.id == RunId{})
    return perform_(std::move(request), std::move(answered));
  const RunId id = request.by.id;
  std::optional<std::expected<RunAnswer, Error>> known;
  {
    const std::lock_guard lock{mutex_};
    const auto [at, is_new] = known_.try_emplace(id, Known{request.asked, request.run, {}, {}});
    Known& entry = at->second;
    if (entry.asked != request.asked || entry.run != request.run) {
      known = refused("the id of this request belongs to another one; give each request an id of its own");
    } else if (!is_new && entry.answer) {
      known = entry.answer;
    } else {
      entry.waiting.push_back(std::move(answered));
      if (!is_new) return;
    }
  }
  if (known) return answered(*std::move(known));
  perform_(std::move(request), [this, id](const std::expected<RunAnswer, Error>& answer) { finish(id, answer); });
}

void RunService::finish(const RunId& request, const std::expected<RunAnswer, Error>& answer) {
  std::vector<RunAnswered> waiting;
  {
    const std::lock_guard lock{mutex_};
    const auto at = known_.find(request);
    if (at == known_.end()) return;
    waiting.swap(at->second.waiting);
    if (is_refusal(answer)) {
      known_.erase(at);
    } else {
      at->second.answer = answer;
      answered_.push_back(request);
      if (answered_.size() > remembered_max) {
        known_.erase(answered_.front());
        answered_.pop_front();
      }
    }
  }
  for (const RunAnswered& each : waiting) each(answer);
}

}  // namespace reprise::runtime
