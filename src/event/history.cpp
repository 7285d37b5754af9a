#include "event/history.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/hex.hpp"
#include "event/attributes.hpp"

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
    case EventType::circuit_half_opened:
    case EventType::circuit_closed:
    case EventType::progress:
    case EventType::revisited:
    case EventType::dropped:
    case EventType::handed_over:
    case EventType::handed_back:
    case EventType::extended:
    case EventType::reserved:
    case EventType::called:
    case EventType::dismissed:
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

void set_request(Event& event, const RequestView& request) {
  RunId id;  // the same kind of number
  if (request.id.size() != id.bytes.size()) return;
  std::ranges::copy(request.id, id.bytes.begin());
  event.request = ChangeRequest{to_string(id), std::string{request.by}, std::string{request.why}};
}

Time time_of(WallTime time) noexcept { return time.time_since_epoch().count(); }

}  // namespace

std::optional<Record> record_of(const Event& event, const StepNumbers& steps) {
  Record record{.type = event.type, .sequence = event.sequence, .time = time_of(event.time)};
  if (concerns_a_step(event.type)) {
    const auto step = steps.find(event.step);
    if (step == steps.end()) return std::nullopt;
    record.step = step->second;
    record.item = event.item;
    record.attempt = static_cast<std::uint32_t>(event.type == EventType::retrying ? event.next_attempt : event.attempt);
  }
  record.will_retry = event.will_retry;
  record.lost = event.lost;
  record.precondition = event.precondition;
  record.cut = event.cut;
  record.withdrawn = event.withdrawn;
  record.resumes = event.resumes;
  record.on_request = event.on_request;
  record.only_this = event.only_this;
  record.reason = event.reason;
  record.rule = event.rule;
  record.status = event.status;
  record.delay = event.delay.count();
  record.due = time_of(event.due);
  record.items = event.items;
  if (event.type == EventType::failed && event.failure) {
    record.failure = &*event.failure;
    record.failure_class = event.failure->failure_class.value_or(FailureClass::transient);
  }
  if (event.type == EventType::fallback) record.stage = event.text == "on_failure" ? 2 : 1;
  if (event.type == EventType::signaled) record.text = event.text;
  if (event.type == EventType::handed_over) record.other = run_id_from(event.text).value_or(RunId{});
  if (event.type == EventType::reopened) {
    const auto only = steps.find(event.text);
    record.from_step = only != steps.end() ? only->second + 1 : 0;
    record.items = event.only_item ? *event.only_item + 1 : 0;
    record.text = event.only;
  }
  return record;
}

EventHistory::EventHistory(RunId run, std::vector<StepLabel> steps) : run_{run}, steps_{std::move(steps)} {}

// A step that the run got while it lives: what it is called is known from now on.
void EventHistory::add_called(Event& event, const Record& record) {
  if (record.path.empty()) return;  // an undo of before
  if (steps_.size() <= record.step) steps_.resize(record.step + 1);
  steps_[record.step] = {std::string{record.text} + " (" + std::string{record.path} + ')'};
  event.step = steps_[record.step].name;
  event.text = record.path;
  event.operation = name_of(record.operation);
  event.place = record.place;
  event.due = wall_time(record.due);
  set_output(event, record.payload);
}

Event EventHistory::add(const Record& record) {
  Event event{.type = record.type, .sequence = record.sequence, .time = wall_time(record.time), .run = run_};
  if (concerns_a_step(record.type)) {
    const bool is_known = record.step < steps_.size() && !steps_[record.step].name.empty();
    event.step = is_known ? steps_[record.step].name : "#" + std::to_string(record.step);
    if (is_known) event.actor_type = steps_[record.step].actor_type;
    event.item = record.item;
    event.attempt = record.attempt;
  }
  if (record.type == EventType::retrying) set_waiting(event, record);
  event.is_retry = is_retry(record, event.attempt);
  set_request(event, record.request);
  switch (record.type) {
    case EventType::submitted:
      created_ = record.time;
      event.due = wall_time(record.due);
      event.text = record.text;
      event.items = record.items;
      set_output(event, record.payload);
      if (auto said = read_attributes(record.facts); said != RunAttributes{}) event.attributes = std::move(said);
      break;
    case EventType::prepared:
      event.items = record.items;
      break;
    case EventType::reserved:
      add_reserved(event, record);
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
      add_retrying(event, record);
      break;
    case EventType::interrupted:
      add_interrupted(event, record);
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
      if (event.request) event.request->why = event.text;
      break;
    case EventType::skipped:
      event.reason = record.reason;
      if (record.attempt > 0) end_item(event, record);
      break;
    case EventType::reopened:
      for (std::uint32_t step = 0; step < steps_.size(); ++step) {
        if (steps_[step].runs_finally) forget_items(step);  // they begin anew, after what goes on
      }
      event.resumes = record.resumes;
      event.only_this = record.only_this;
      if (record.from_step > 0 && record.from_step <= steps_.size()) event.text = steps_[record.from_step - 1].name;
      if (record.items > 0) event.only_item = record.items - 1;
      event.only = record.text;
      break;
    case EventType::revisited:
      record.only_this ? forget_items(record.step) : forget_visit(record.step);
      event.on_request = record.on_request;
      event.only_this = record.only_this;
      break;
    case EventType::circuit_opened:
      if (record.due != 0) event.due = wall_time(record.due);
      break;
    case EventType::fallback:
      event.text = record.stage == 1 ? "fallback" : "on_failure";
      break;
    case EventType::finishing:
      event.status = record.status;
      break;
    case EventType::called:
      add_called(event, record);
      break;
    case EventType::continued:
      event.text = record.path;
      event.items = record.items;
      set_output(event, record.payload);
      break;
    case EventType::published:
      set_output(event, record.payload);
      break;
    case EventType::diverged:
      event.text = record.text;
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

void EventHistory::forget_items(std::uint32_t step) {
  items_.erase(items_.lower_bound({step, 0}), items_.lower_bound({step + 1, 0}));
}

// The step begins anew, and with it all that cannot be done before it.
void EventHistory::forget_visit(std::uint32_t step) {
  std::vector<bool> reached(steps_.size(), false);
  std::vector<std::uint32_t> open{step};
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (at >= steps_.size() || reached[at]) continue;
    reached[at] = true;
    forget_items(at);
    std::ranges::copy(steps_[at].dependants, std::back_inserter(open));
  }
}

namespace {

template <class Item>
void set_counts(Event& event, const Item& item) {
  const std::uint64_t others = item.earlier + item.lost + item.interrupted;
  if (item.created == 0 || others == 0) return;  // joined in the middle, or every one counts
  event.used_attempts = item.attempt > others ? item.attempt - others : 0;
  event.lost_attempts = item.lost;
  event.interrupted_attempts = item.interrupted;
}

}  // namespace

// Attempts from before somebody asked to try it again are not those of this time.
bool EventHistory::is_retry(const Record& record, std::uint64_t attempt) const {
  const auto known = items_.find({record.step, record.item});
  return attempt > 1 + (known != items_.end() ? known->second.earlier : 0);
}

void EventHistory::add_reserved(Event& event, const Record& record) {
  event.withdrawn = record.withdrawn;
  if (record.withdrawn) {
    items_.erase({record.step, record.item});
    return;
  }
  Item item;
  item.created = record.time;  // until it is known when it began
  item.attempt = record.attempt;
  item.runs = true;
  item.is_reserved = true;
  items_.insert_or_assign({record.step, record.item}, std::move(item));
}

void EventHistory::add_started(Event& event, const Record& record) {
  const auto [place, is_new] = items_.try_emplace({record.step, record.item});
  Item& item = place->second;
  if (std::exchange(item.is_reserved, false)) item.created = record.time;  // of the one before, if it was lost
  if (is_new || record.attempt <= 1) {
    // Who joins in the middle does not know when it began.
    const bool is_known = created_ != 0 || record.attempt <= 1;
    item = Item{};
    item.created = is_known ? record.time : 0;
    item.earlier = is_known && record.attempt > 0 ? record.attempt - 1 : 0;
  }
  item.attempt = record.attempt;
  item.runs = true;
  event.is_retry = record.attempt > item.earlier + 1;
  set_counts(event, item);
  if (item.failure == nullptr) return;
  event.failure = *item.failure;
  event.delay = Duration{item.delay};
}

void EventHistory::add_failed(Event& event, const Record& record) {
  if (record.precondition) event.attempt = 0;
  event.failure = judged_failure(record);
  event.will_retry = record.will_retry;
  event.precondition = record.precondition;
  event.lost = record.lost;
  event.cut = record.cut;
  event.reason = record.reason;
  event.rule = record.rule;
  const bool is_stopped = record.reason == StopReason::canceled;
  if (const auto found = items_.find({record.step, record.item}); found != items_.end() && found->second.runs) {
    Item& item = found->second;
    item.runs = false;
    item.lost += record.lost ? 1 : 0;
    item.interrupted += !record.lost && is_stopped ? 1 : 0;
  }
  if (!record.will_retry && !is_stopped) return end_item(event, record);
  Item& item = items_.try_emplace({record.step, record.item}).first->second;
  set_counts(event, item);
  if (is_stopped) {  // it may be resumed
    event.total_attempts = item.attempt;
    if (item.created != 0) event.total_elapsed = elapsed(item.created, record.time);
    return;
  }
  item.loss = record.lost ? std::make_unique<Failure>(*event.failure) : nullptr;
  if (record.lost && item.has_failed_itself) return;
  item.failure = std::make_unique<Failure>(*event.failure);
  item.has_failed_itself = !record.lost;
  item.failure->evidence.clear();  // told once, with the attempt that left it
  item.failure->evidence_size = 0;
  item.delay = 0;
}

void EventHistory::add_retrying(Event& event, const Record& record) {
  const auto found = items_.find({record.step, record.item});
  if (found == items_.end()) return;
  Item& item = found->second;
  event.lost = item.loss != nullptr;
  // What was waited for its own failure is told again, unless there is another wait to tell of.
  if (!event.lost || !item.has_failed_itself || record.delay > 0) item.delay = record.delay;
  set_counts(event, item);
  const Failure* const failure = event.lost ? item.loss.get() : item.failure.get();
  if (failure != nullptr) event.failure = *failure;
}

void EventHistory::add_interrupted(Event& event, const Record& record) {
  if (record.failure != nullptr) event.failure = *record.failure;
  const auto found = items_.find({record.step, record.item});
  if (found == items_.end()) return;
  Item& item = found->second;
  if (std::exchange(item.runs, false)) ++item.interrupted;
  set_counts(event, item);
}

void EventHistory::end_item(Event& event, const Record& record) {
  event.total_attempts = event.attempt;
  const auto found = items_.find({record.step, record.item});
  if (found == items_.end()) return;
  const Item& item = found->second;
  event.total_attempts = std::max(event.total_attempts, item.attempt);
  set_counts(event, item);
  if (item.created != 0) event.total_elapsed = elapsed(item.created, record.time);
  items_.erase(found);
}

}  // namespace reprise::event
