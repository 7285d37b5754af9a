// A run told by events with a clock of its own: for tests of what people see.
//
//   ToldRun run{{{.name = "fetch", .for_each = true}}};
//   run.later(2s);
//   view.add(run.started("fetch", 57));
#pragma once

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <reprise/event.hpp>

#include "core/plan.hpp"
#include "observe/styled.hpp"

namespace reprise::testing_support {

struct ToldStep {
  std::string name = {};
  bool for_each = false;
  std::vector<std::uint32_t> needs = {};
  core::StepKind kind = core::StepKind::call;
  OnFailure on_failure = OnFailure::fail;
};

class ToldRun {
 public:
  explicit ToldRun(std::initializer_list<ToldStep> steps) {
    auto plan = std::make_shared<core::Plan>();
    plan->name = "nightly";
    for (const ToldStep& told : steps) {
      core::StepPlan step;
      step.name = std::make_shared<const std::string>(told.name);
      step.for_each = told.for_each;
      step.needs = told.needs;
      step.kind = told.kind;
      step.signal = told.kind == core::StepKind::signal ? "approval" : "";
      step.on_failure = told.on_failure;
      step.tolerate = told.on_failure == OnFailure::fail ? 0 : UINT32_MAX;
      step.policy.max_attempts = 3;
      plan->steps.push_back(std::move(step));
    }
    plan->connect();
    plan_ = std::move(plan);
  }

  std::shared_ptr<const core::Plan> plan() const { return plan_; }
  WallTime now() const { return now_; }
  void later(Duration duration) { now_ += duration; }

  Event event(EventType type, std::string step = {}, std::uint32_t item = 0, std::uint64_t attempt = 0) {
    return {.type = type,
            .sequence = ++sequence_,
            .time = now_,
            .run = id,
            .step = std::move(step),
            .item = item,
            .attempt = attempt};
  }
  Event submitted() { return event(EventType::submitted); }
  Event prepared(std::string step, std::uint32_t items) {
    Event told = event(EventType::prepared, std::move(step));
    told.items = items;
    return told;
  }
  Event started(std::string step, std::uint32_t item = 0, std::uint64_t attempt = 1) {
    return event(EventType::started, std::move(step), item, attempt);
  }
  Event completed(std::string step, std::uint32_t item = 0, std::uint64_t attempts = 1, Duration elapsed = {}) {
    Event told = event(EventType::completed, std::move(step), item, attempts);
    told.total_attempts = attempts;
    told.total_elapsed = elapsed;
    return told;
  }
  Event failed(std::string step, std::uint32_t item, std::uint64_t attempt, Failure failure,
               StopReason reason = StopReason::none) {
    Event told = event(EventType::failed, std::move(step), item, attempt);
    told.failure = std::move(failure);
    told.reason = reason;
    told.will_retry = reason == StopReason::none;
    return told;
  }
  Event retrying(std::string step, std::uint32_t item, std::uint64_t attempt, Failure failure, Duration delay,
                 bool floored = false) {
    Event told = event(EventType::retrying, std::move(step), item, attempt);
    told.failure = std::move(failure);
    told.delay = delay;
    told.due = now_ + delay;
    told.floored = floored;
    return told;
  }
  Event ended(RunStatus status) {
    Event told = event(EventType::ended);
    told.status = status;
    return told;
  }

  const RunId id{.bytes = {1}};

 private:
  std::shared_ptr<const core::Plan> plan_;
  std::uint64_t sequence_ = 0;
  WallTime now_{std::chrono::sys_days{std::chrono::year{2026} / 11 / 15} + std::chrono::hours{12}};
};

inline Failure exit_failure(std::int32_t code, std::string message) {
  return {.message = std::move(message), .failure_class = FailureClass::transient, .exit_code = code};
}
inline Failure throttled_failure() {
  return {.failure_class = FailureClass::transient, .kind = FailureKind::throttled, .http_status = 429};
}

// What is shown, without colours.
inline std::string text_of(const std::vector<observe::StyledLine>& lines) {
  std::string text;
  for (const observe::StyledLine& line : lines) text += without_styles(line) + "\n";
  return text;
}

}  // namespace reprise::testing_support
