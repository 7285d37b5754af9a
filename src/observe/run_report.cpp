#include "observe/run_report.hpp"

#include <algorithm>
#include <limits>

#include "core/core.hpp"

namespace reprise::observe {

using core::ItemStatus;
using core::StepStatus;

namespace {

constexpr std::size_t tries_of_item_max = 12;
constexpr std::size_t items_with_tries_max = 100;
constexpr std::size_t items_of_step_min = 10;  // have details and tries, whatever others have

std::uint32_t* count_of(StepReport& step, ItemStatus status) {
  switch (status) {
    case ItemStatus::waiting:
      return &step.waiting;
    case ItemStatus::running:
    case ItemStatus::outside:
      return &step.running;
    case ItemStatus::succeeded:
      return &step.succeeded;
    case ItemStatus::failed:
      return &step.failed;
    case ItemStatus::canceled:
      return &step.canceled;
    case ItemStatus::untouched:
      break;
  }
  return nullptr;
}

Duration sum_of(Duration left, Duration right) {
  right = std::max(right, Duration{0});
  return left > Duration::max() - right ? Duration::max() : left + right;
}

bool is_doomed(const core::StepPlan& plan, const StepReport& step) {
  const std::uint64_t share = std::uint64_t{step.items} * plan.tolerate_millionths / 1'000'000;
  return step.failed > std::max<std::uint64_t>(plan.tolerate, share);
}

}  // namespace

std::uint64_t RunReport::sum(std::uint64_t StepReport::*member) const {
  std::uint64_t total = 0;
  for (const StepReport& step : steps) total += step.*member;
  return total;
}

Duration RunReport::waited() const {
  Duration total{0};
  for (const StepReport& step : steps) total = sum_of(total, step.waited);
  return total;
}

std::uint64_t RunReport::failed() const {
  std::uint64_t total = 0;
  for (const StepReport& step : steps) total += step.failed;
  return total;
}

RunReporter::RunReporter(std::shared_ptr<const core::Plan> plan, std::uint32_t first_step_items,
                         std::size_t details_max)
    : plan_{std::move(plan)}, details_max_{details_max}, kept_of_steps_(plan_->steps.size()) {
  for (const core::StepPlan& step : plan_->steps) {
    step_numbers_.emplace(*step.name, static_cast<std::uint32_t>(report_.steps.size()));
    report_.steps.push_back({.name = *step.name, .has_items = step.for_each});
  }
  if (first_step_items == 0) return;
  report_.steps.front().has_items = true;
  report_.steps.front().items = first_step_items;
}

void RunReporter::move(std::uint32_t step, Item& item, ItemStatus to) {
  if (std::uint32_t* const before = count_of(report_.steps[step], item.status)) --*before;
  if (std::uint32_t* const after = count_of(report_.steps[step], to)) ++*after;
  item.status = to;
  if (item.details) item.details->status = to;
}

void RunReporter::add(const Event& event) {
  if (const auto step = step_numbers_.find(event.step); step != step_numbers_.end())
    return add_of_step(event, step->second);
  switch (event.type) {
    case EventType::submitted:
      report_.created = event.time;
      return;
    case EventType::recovered:
      ++report_.recoveries;
      return;
    case EventType::cancel_requested:
      is_canceling_ = true;
      report_.reason = event.reason;
      report_.status = RunStatus::running;
      return;
    case EventType::paused:
      report_.status = RunStatus::paused;
      return;
    case EventType::resumed:
      report_.status = RunStatus::running;
      return;
    case EventType::reopened:
      return add_reopened(event);
    case EventType::ended:
      report_.status = event.status;
      report_.reason = event.reason;
      report_.ended = event.time;
      return;
    default:
      return;
  }
}

void RunReporter::add_of_step(const Event& event, std::uint32_t number) {
  StepReport& step = report_.steps[number];
  step.last_event = event.time;
  switch (event.type) {
    case EventType::prepared:
      if (step.has_items) step.items = event.items;
      step.status = StepStatus::active;
      return;
    case EventType::started:
      step.status = StepStatus::active;
      if (!step.first_started) step.first_started = event.time;
      ++step.attempts;
      return add_started(event, number);
    case EventType::completed:
      return add_completed(event, number);
    case EventType::failed:
      return add_failed(event, number);
    case EventType::retrying:
      return add_retrying(event, number);
    case EventType::fallback:
      ++step.fallbacks;
      return move(number, items_[{number, event.item}], ItemStatus::waiting);
    case EventType::interrupted:
      return move(number, items_[{number, event.item}], is_canceling_ ? ItemStatus::canceled : ItemStatus::waiting);
    case EventType::skipped:
      step.status = StepStatus::skipped;
      return;
    case EventType::unreachable:
      step.status = StepStatus::unreachable;
      return;
    case EventType::dead_lettered:
      return mark_dead_letter(event, number, true);
    case EventType::dropped:
      return mark_dead_letter(event, number, false);
    case EventType::revisited:
      for (const std::uint32_t again : core::steps_from(*plan_, number)) forget_items(again);
      return;
    default:
      return;
  }
}

void RunReporter::add_started(const Event& event, std::uint32_t number) {
  Item& item = items_[{number, event.item}];
  if (item.began == WallTime{} || event.attempt == 1) item.began = event.time;
  item.started = event.time;
  if (event.attempt == 1 && item.details) forget_tries(item);  // it begins anew, because somebody asked
  move(number, item, ItemStatus::running);
}

void RunReporter::add_failed(const Event& event, std::uint32_t number) {
  StepReport& step = report_.steps[number];
  step.status = StepStatus::active;
  step.lost += event.lost ? 1 : 0;
  Item& item = items_[{number, event.item}];
  item.has_failed = true;
  Kept& of_step = kept_of_steps_[number];
  if (!item.details && (kept_.details < details_max_ || of_step.details < items_of_step_min)) {
    item.details = std::make_unique<TroubledItem>(TroubledItem{.step = number, .item = event.item});
    ++kept_.details;
    ++of_step.details;
  }
  if (item.details) {
    item.details->began = item.began;
    item.details->attempts = event.attempt;
    item.details->failure = event.failure.value_or(Failure{});
    item.details->reason = event.reason;
    item.details->time = event.time;
    remember_try(event, item);
  }
  const bool is_canceled = event.reason == StopReason::canceled;
  move(number, item,
       event.will_retry ? ItemStatus::waiting : (is_canceled ? ItemStatus::canceled : ItemStatus::failed));
}

void RunReporter::remember_try(const Event& event, const Item& item) {
  std::vector<FailedAttempt>& tries = item.details->tries;
  Kept& of_step = kept_of_steps_[item.details->step];
  if (tries.empty()) {
    if (kept_.tries >= items_with_tries_max && of_step.tries >= items_of_step_min) return;
    ++kept_.tries;
    ++of_step.tries;
  }
  if (tries.size() == tries_of_item_max) tries.erase(tries.begin());
  const bool has_begun = !event.precondition && item.started != WallTime{};
  tries.push_back({.attempt = event.attempt,
                   .failure = item.details->failure,
                   .took = has_begun ? event.time - item.started : Duration{0}});
}

void RunReporter::add_retrying(const Event& event, std::uint32_t number) {
  StepReport& step = report_.steps[number];
  ++step.retries;
  step.waited = sum_of(step.waited, event.delay);
  Item& item = items_[{number, event.item}];
  step.retried += item.was_retried ? 0 : 1;
  item.was_retried = true;
  move(number, item, ItemStatus::waiting);
  if (!item.details) return;
  if (!item.details->tries.empty()) {
    item.details->tries.back().wait = event.delay;
    item.details->tries.back().floored = event.floored;
  }
  item.details->waited = sum_of(item.details->waited, event.delay);
  item.details->due = event.due;
  item.details->time = event.time;
}

void RunReporter::add_completed(const Event& event, std::uint32_t number) {
  StepReport& step = report_.steps[number];
  step.status = StepStatus::active;
  const auto found = items_.find({number, event.item});
  if (found == items_.end()) {  // a wait or a signal has no attempts
    ++step.succeeded;
    return;
  }
  Item& item = found->second;
  step.rescued += item.has_failed ? 1 : 0;
  step.succeeded_after_retry += item.was_retried ? 1 : 0;
  let_go(item);
  move(number, item, ItemStatus::succeeded);
  items_.erase(found);
}

void RunReporter::mark_dead_letter(const Event& event, std::uint32_t number, bool is_one) {
  Item& item = items_[{number, event.item}];
  if (item.dead_letter == is_one) return;
  item.dead_letter = is_one;
  StepReport& step = report_.steps[number];
  is_one ? ++step.dead_letters : --step.dead_letters;
  if (item.details) item.details->dead_letter = is_one;
}

void RunReporter::forget_tries(Item& item) {
  if (item.details->tries.empty()) return;
  --kept_.tries;
  --kept_of_steps_[item.details->step].tries;
  item.details->tries.clear();
}

// Its details are not wanted any more; others may have some instead.
void RunReporter::let_go(Item& item) {
  if (!item.details) return;
  forget_tries(item);
  --kept_.details;
  --kept_of_steps_[item.details->step].details;
  item.details.reset();
}

void RunReporter::forget_items(std::uint32_t number) {
  const auto first = items_.lower_bound({number, 0});
  const auto last = items_.upper_bound({number, std::numeric_limits<std::uint32_t>::max()});
  for (auto at = first; at != last; ++at) let_go(at->second);
  items_.erase(first, last);
  StepReport& step = report_.steps[number];
  step.status = StepStatus::pending;
  step.running = step.waiting = step.succeeded = step.failed = step.canceled = step.dead_letters = 0;
  if (plan_->steps[number].for_each) step.items = 1;
}

// An event names the step that is tried again, not the item: which one it is shows when it starts.
void RunReporter::add_reopened(const Event& event) {
  report_.status = RunStatus::running;
  report_.reason = StopReason::none;
  report_.ended.reset();
  is_canceling_ = false;
  for (std::uint32_t number = 0; number < report_.steps.size(); ++number) {
    StepStatus& status = report_.steps[number].status;
    if (plan_->steps[number].runs_finally) {
      forget_items(number);
    } else if (status == StepStatus::skipped || status == StepStatus::unreachable) {
      status = StepStatus::pending;
    }
  }
  for (auto at = items_.begin(); at != items_.end();) {
    Item& item = at->second;
    const bool is_again =
        item.status == ItemStatus::canceled || (item.status == ItemStatus::failed && event.text.empty());
    const bool has_attempts = plan_->steps[at->first.first].verb == core::Verb::call;
    if (!is_again) {
      ++at;
      continue;
    }
    if (item.dead_letter) --report_.steps[at->first.first].dead_letters;
    item.dead_letter = false;
    if (item.details) item.details->dead_letter = false;
    move(at->first.first, item, has_attempts ? ItemStatus::waiting : ItemStatus::untouched);
    if (!has_attempts) let_go(item);
    at = has_attempts ? std::next(at) : items_.erase(at);
  }
}

// As the engine decides it (core/apply.cpp): over when nothing runs and nothing is left, or more has failed than is tolerated.
StepStatus RunReporter::status_of(std::uint32_t number) const {
  const StepReport& step = report_.steps[number];
  if (step.status != StepStatus::active || step.running > 0 || step.canceled > 0) return step.status;
  if (is_doomed(plan_->steps[number], step)) return StepStatus::failed;
  return step.succeeded + step.failed >= step.items ? StepStatus::succeeded : StepStatus::active;
}

std::optional<std::uint32_t> RunReporter::step_number(std::string_view name) const {
  const auto found = step_numbers_.find(name);
  return found == step_numbers_.end() ? std::nullopt : std::optional{found->second};
}

const TroubledItem* RunReporter::trouble_of(std::uint32_t step, std::uint32_t item) const {
  const auto found = items_.find({step, item});
  return found == items_.end() ? nullptr : found->second.details.get();
}

RunReport RunReporter::overview() const {
  RunReport report = report_;
  for (std::uint32_t number = 0; number < report.steps.size(); ++number)
    report.steps[number].status = status_of(number);
  return report;
}

RunReport RunReporter::report() const {
  RunReport report = overview();
  for (const auto& [place, item] : items_) {
    if (item.status == ItemStatus::failed && item.was_retried) ++report.steps[place.first].failed_after_retries;
    if (!item.has_failed) continue;
    if (item.details) {
      report.troubled.push_back(*item.details);
    } else if (item.status == ItemStatus::failed) {
      ++report.without_details;
    }
  }
  return report;
}

}  // namespace reprise::observe
