// Durable functions: what they are told, and what becomes of what they decide.
//
// Their executor is asked within the turn, before anything is recorded: it is told what has ended, and answers what begins. So
// `completed` and the `called` that follows from it share a commit, and with them the `started` of the next attempt. A function that
// needs longer answers later; nothing waits for it. Results are told once, by a cursor (FunctionState::told), and all of them again only
// when the executor makes the function anew: after a restart, or when it had to let it go.
#include <utility>

#include "runtime/ids.hpp"
#include "runtime/loop.hpp"

namespace reprise::runtime {
namespace {

constexpr int rounds_max = 64;  // of telling and deciding in one turn

exec::RecordedOperation recorded(const core::Operation& operation, std::uint32_t step, bool begins) {
  using End = exec::RecordedOperation::End;
  exec::RecordedOperation told;
  told.step = step;
  told.kind = operation.kind;
  told.path = operation.path;
  if (begins) {
    told.name = operation.name;
    told.place = operation.place;
  }
  told.called = operation.called;
  told.ended = operation.ended;
  if (operation.ended_at == 0) return told;
  const core::Item& item = operation.state.one;
  told.attempts = item.attempt;
  told.end = operation.state.status == core::StepStatus::succeeded ? End::succeeded
             : operation.state.status == core::StepStatus::failed  ? End::failed
                                                                   : End::dismissed;
  if (item.output != nullptr) told.output = *item.output;
  if (told.end == End::failed && item.trouble != nullptr) {
    told.failure = item.trouble->failure;
    told.reason = item.trouble->reason;
  }
  return told;
}

bool is_at_work(const core::Item* own) {
  return own != nullptr && (own->status == core::ItemStatus::running || own->status == core::ItemStatus::outside);
}

}  // namespace

// They get no jobs: what they are to do follows from what they are told.
void Loop::take_function_starts() {
  std::erase_if(core_.effects().starts, [&](const core::Start& start) {
    if (start.run->function == nullptr || start.id.step != 0) return false;
    start.run->function->has_begun = false;
    core_.announce(*start.run);
    return true;
  });
}

// After a queue was opened: those that nobody had when they were loaded.
void Loop::announce_functions() {
  core_.for_each_run([&](core::Run& run) {
    if (run.plan != nullptr && run.function != nullptr && run.live && !run.function->has_begun) core_.announce(run);
  });
}

// True: there is more to tell.
bool Loop::advance_functions(Time now) {
  std::vector<std::vector<exec::News>> news;
  std::vector<exec::Decided> decided;
  for (int round = 0; !core_.effects().functions.empty(); ++round) {
    if (round == rounds_max) return true;
    news.assign(executors_.size(), {});
    for (const std::uint64_t number : std::exchange(core_.effects().functions, {})) {
      core::Run* const run = core_.find(number);
      if (run == nullptr || !run->live || run->function == nullptr) continue;
      run->function->is_due = false;
      const core::Item* const own = run->steps[0].touched(0);
      if (run->has_ended() || run->paused_at != 0 || !is_at_work(own)) continue;
      const core::HandlerAddress& address = core_.address_of(*run, 0);
      if (!executors_[address.executor]->decides(address.handler)) continue;  // its queue is not open yet
      news[address.executor].push_back(news_of(*run, *own));
      ++run->function->deciding;
    }
    for (std::size_t executor = 0; executor < news.size(); ++executor) {
      if (!news[executor].empty()) executors_[executor]->decide(news[executor], decided);
    }
    for (exec::Decided& answer : std::exchange(decided, {})) take(std::move(answer), now);
    if (starting_ && core_.has_ready()) start_ready(now);
  }
  return false;
}

exec::News Loop::news_of(core::Run& run, const core::Item& own) {
  core::FunctionState& function = *run.function;
  exec::News news;
  news.id = {run.number, 0, 0, own.token};
  news.run_id = id(run.number, run.created);
  news.handler = core_.address_of(run, 0).handler;
  news.canceling = function.canceling;
  if (!std::exchange(function.has_begun, true)) {
    function.told = 0;
    news.begins = true;
    news.began = own.first_started;
    news.input = readable(run.input);
    news.published = readable(function.published);
    for (const auto& [path, turn] : function.loops) news.turns.push_back({path, turn.turn, readable(turn.state)});
    for (auto step = static_cast<std::uint32_t>(run.planned_steps()); step < run.step_count(); ++step) {
      const core::Operation& operation = *run.operation(step);
      const bool is_told_by_its_end = operation.ended_at != 0 && operation.kind != event::OperationKind::mark;
      if (!operation.path.empty() && !is_told_by_its_end) news.operations.push_back(recorded(operation, step, true));
    }
  }
  for (; function.told < function.ended.size(); ++function.told) {
    const std::uint32_t step = function.ended[function.told];
    auto& told = news.operations.emplace_back(recorded(*run.operation(step), step, news.begins));
    told.output = readable(told.output);
  }
  return news;
}

// Its bytes themselves, while the store does not have them yet.
Payload Loop::readable(const Payload& payload) const {
  if (!payload.hashed) return payload;
  const auto found = unwritten_.find(payload.bytes);
  return found == unwritten_.end() ? payload : Payload::of(found->second.body);
}

void Loop::take(exec::Decided&& decided, Time now) {
  core::Run* const run = core_.find(decided.id.run);
  if (run == nullptr || run->function == nullptr) return;
  core::FunctionState& function = *run->function;
  if (function.deciding > 0) --function.deciding;
  const core::Item* const own = run->steps[0].touched(0);
  if (!run->live || run->has_ended() || !is_at_work(own) || own->token != decided.id.token) return;
  if (decided.is_unknown) {
    function.has_begun = false;
    return core_.announce(*run);
  }
  // What is held decides nothing: it is made anew when it goes on.
  bool is_held = run->paused_at != 0;
  for (exec::Command& command : decided.commands) is_held = is_held || !perform(*run, command, now);
  if (!decided.divergence.empty() && !is_held) {
    core_.diverged(*run, decided.divergence, now);
    is_held = true;
  }
  if (is_held) {
    function.has_begun = false;
    executors_[core_.address_of(*run, 0).executor]->forget(decided.id);
  } else if (decided.end) {
    return take(Ended{{decided.id, std::move(*decided.end)}, std::move(decided.body)}, now);
  }
  if (run->steps[0].touched(0)->status == core::ItemStatus::running) core_.handed_over(decided.id, {.returns = true}, now);
}

// False: it cannot be done, and the run is held.
bool Loop::perform(core::Run& run, exec::Command& command, Time now) {
  using What = exec::Command::What;
  if (command.payload.hashed) put_payload(run.number, command.payload, std::move(command.body));
  switch (command.what) {
    case What::continued:
      core_.continued(run, command.path, command.turn, command.payload.view(), now);
      return true;
    case What::publish:
      core_.published(run, command.payload.view(), now);
      return true;
    case What::dismiss:
      for (const std::uint32_t step : run.function->open) {
        if (run.operation(step)->path != command.path) continue;
        core_.dismiss(run, step, now);
        break;
      }
      return true;
    case What::begin:
      break;
  }
  const auto plan = settings_.plan_of_command(command);
  if (!plan) {
    core_.diverged(run, command.place + ": " + plan.error().message, now);
    return false;
  }
  core_.called(run,
               {.kind = command.kind,
                .plan = plan_of(**plan),
                .path = command.path,
                .name = command.name,
                .place = command.place,
                .input = command.payload.view(),
                .due = command.due,
                .shielded = command.shielded},
               now);
  // It has not heard of the cancel when it began this.
  const auto step = static_cast<std::uint32_t>(run.step_count() - 1);
  if (run.function->canceling && !command.shielded && command.kind != event::OperationKind::undo) core_.dismiss(run, step, now);
  return true;
}

}  // namespace reprise::runtime
