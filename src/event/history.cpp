#include "event/history.hpp"

#include <limits>

#include "base/hex.hpp"

namespace reprise::event {
namespace {

WallTime wall_time(Time time) noexcept { return WallTime{Duration{time}}; }

// A wall clock may be set back between two events: then no time has passed.
Duration elapsed(Time from, Time to) noexcept {
  if (to <= from) return Duration{0};
  const std::uint64_t distance = static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
  constexpr auto longest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return Duration{static_cast<std::int64_t>(distance < longest ? distance : longest)};
}

// Events of the whole run carry step 0 in their record, which is also the number of the first step.
bool concerns_a_step(EventType type) noexcept {
  switch (type) {
    case EventType::prepared:
    case EventType::started:
    case EventType::completed:
    case EventType::failed:
    case EventType::retrying:
    case EventType::interrupted:
    case EventType::skipped:
    case EventType::unreachable:
    case EventType::fallback:
    case EventType::rework:
    case EventType::dead_lettered:
    case EventType::circuit_opened:
    case EventType::progress:
    case EventType::revisited:
    case EventType::dropped:
    case EventType::handed_over:
    case EventType::handed_back:
    case EventType::extended:
      return true;
    default:
      return false;  // of the run, or of a type from the future
  }
}

void set_output(Event& event, const PayloadView& payload) {
  event.output = payload.hashed ? base::hexadecimal(payload.bytes) : std::string{payload.bytes};
  event.output_size = payload.size;
}

// With the class it was judged to have, where the handler said nothing.
Failure judged_failure(const Record& record) {
  Failure failure = record.failure != nullptr ? *record.failure : Failure{};
  if (!failure.failure_class) failure.failure_class = record.failure_class;
  return failure;
}

void set_waiting(Event& event, const Record& record) {
  event.attempt = record.attempt > 0 ? record.attempt - 1 : 0;
  event.next_attempt = record.attempt;
  event.delay = Duration{record.delay};
  event.range = {Duration{record.nominal}, Duration{record.delay_min}, Duration{record.delay_max}};
  event.floored = record.floored;
  event.rule = record.rule;
  event.due = wall_time(record.due);
}

}  // namespace

History::History(RunId run, std::vector<std::string> step_names) : run_{run}, steps_{std::move(step_names)} {}

Event History::add(const Record& record) {
  Event event{.type = record.type, .sequence = record.sequence, .time = wall_time(record.time), .run = run_};
  if (concerns_a_step(record.type)) {
    event.step = record.step < steps_.size() ? steps_[record.step] : "#" + std::to_string(record.step);
    event.item = record.item;
    event.attempt = record.attempt;
  }
  switch (record.type) {
    case EventType::submitted:
      created_ = record.time;
      event.due = wall_time(record.due);
      event.text = record.text;
      set_output(event, record.payload);
      break;
    case EventType::prepared:
      event.items = record.items;
      break;
    case EventType::started:
      add_started(event, record);
      break;
    case EventType::completed:
      event.text = record.text;
      set_output(event, record.payload);
      end_item(event, record);
      break;
    case EventType::failed:
      add_failed(event, record);
      break;
    case EventType::retrying:
      set_waiting(event, record);
      add_retrying(event, record);
      break;
    case EventType::progress:
      event.text = record.text;
      break;
    case EventType::signaled:
      event.text = record.text;
      set_output(event, record.payload);
      break;
    case EventType::cancel_requested:
      event.text = record.text;
      event.reason = record.reason;
      break;
    case EventType::reopened:
      items_.clear();  // they begin with attempt 1 again
      if (record.from_step > 0 && record.from_step <= steps_.size()) event.text = steps_[record.from_step - 1];
      break;
    case EventType::fallback:
      event.text = record.stage == 1 ? "fallback" : "on_failure";
      break;
    case EventType::finishing:
      event.status = record.status;
      break;
    case EventType::handed_over:
      if (record.other != RunId{}) event.text = to_string(record.other);
      event.due = wall_time(record.due);
      break;
    case EventType::extended:
      event.due = wall_time(record.due);
      break;
    case EventType::ended:
      event.status = record.status;
      event.reason = record.reason;
      if (created_ != 0) event.total_elapsed = elapsed(created_, record.time);  // 0: joined in the middle
      break;
    default:
      break;
  }
  return event;
}

void History::add_started(Event& event, const Record& record) {
  event.is_retry = record.attempt > 1;
  const auto [place, is_new] = items_.try_emplace({record.step, record.item});
  Item& item = place->second;
  // Who joins in the middle does not know when it began.
  if (is_new || !event.is_retry) item = Item{.created = event.is_retry ? 0 : record.time, .failure = {}, .delay = 0};
  if (item.failure == nullptr) return;
  event.failure = *item.failure;
  event.delay = Duration{item.delay};
}

void History::add_failed(Event& event, const Record& record) {
  if (record.precondition) event.attempt = 0;
  event.failure = judged_failure(record);
  event.will_retry = record.will_retry;
  event.precondition = record.precondition;
  event.lost = record.lost;
  event.reason = record.reason;
  event.rule = record.rule;
  if (!record.will_retry) return end_item(event, record);
  Item& item = items_.try_emplace({record.step, record.item}).first->second;
  item.failure = std::make_unique<Failure>(*event.failure);
  item.delay = 0;
}

void History::add_retrying(Event& event, const Record& record) {
  const auto found = items_.find({record.step, record.item});
  if (found == items_.end()) return;
  found->second.delay = record.delay;
  if (found->second.failure != nullptr) event.failure = *found->second.failure;
}

void History::end_item(Event& event, const Record& record) {
  event.total_attempts = event.attempt;
  const auto found = items_.find({record.step, record.item});
  if (found == items_.end()) return;
  if (found->second.created != 0) event.total_elapsed = elapsed(found->second.created, record.time);
  items_.erase(found);
}

}  // namespace reprise::event
