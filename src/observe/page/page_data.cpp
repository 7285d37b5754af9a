#include "observe/page/page_data.hpp"
#include "event/evidence.hpp"

#include <algorithm>
#include <array>

#include <reprise/dialect.hpp>

#include "observe/why/why_words.hpp"
#include "observe/words.hpp"
#include "text/place.hpp"
#include "text/utf8.hpp"
#include "text/value.hpp"

namespace reprise::observe {
namespace {

using text::Value;

constexpr std::size_t output_characters_max = 100;
constexpr std::size_t name_characters_max = 200;
constexpr std::string_view text_left_out = "(left out: this page has more text than it may hold)";

// Bits of a failed event.
constexpr std::int64_t will_retry = 1;
constexpr std::int64_t was_lost = 2;
constexpr std::int64_t was_precondition = 4;
constexpr std::int64_t was_canceled = 8;

Value whole(std::uint64_t number) { return Value::Number{std::to_string(number)}; }
Value word(std::string_view name) { return Value{std::string{name}}; }

std::int64_t microseconds(Duration duration) { return std::chrono::floor<std::chrono::microseconds>(duration).count(); }
std::int64_t microseconds(WallTime time) { return microseconds(time.time_since_epoch()); }
Value time_value(const std::optional<WallTime>& time) { return time ? Value{microseconds(*time)} : Value{}; }

// Of a large result only its hash is recorded here, which tells nobody anything.
std::string output_words(const std::string& output, std::uint64_t size) {
  return size > output.size() ? counted(size, "byte") : text::shorten(output, output_characters_max);
}

StoryLimits every_story() {
  StoryLimits limits = whole_stories;
  limits.keeps_unharmed = true;
  return limits;
}

// As the page draws it: what is done after trouble, or kept as a dead letter, is still done or failed for the engine.
std::string_view shown_state(const RunProjection& run, const Place& place, const WorkStory& story) {
  const core::Item* const item = run.item_of(place.first, place.second);
  switch (run.status_of(place.first, place.second)) {
    case core::ItemStatus::succeeded:
      return story.has_failed ? "rescued" : "succeeded";
    case core::ItemStatus::failed:
      return item->dead_letter ? "dead" : "failed";
    case core::ItemStatus::running:
    case core::ItemStatus::outside:
      return "running";
    case core::ItemStatus::waiting:
      return "waiting";
    case core::ItemStatus::canceled:
      return "canceled";
    case core::ItemStatus::untouched:
    case core::ItemStatus::reserved:
      break;
  }
  return "untouched";
}

std::string_view shown_end(AttemptEnd end) {
  switch (end) {
    case AttemptEnd::succeeded:
      return "succeeded";
    case AttemptEnd::failed:
      return "failed";
    case AttemptEnd::lost:
      return "lost";
    case AttemptEnd::interrupted:
    case AttemptEnd::canceled:
      return "canceled";
    case AttemptEnd::none:
      break;
  }
  return "running";
}

std::string_view kind_of(const AttemptStory& attempt) {
  if (!attempt.began) return "refusal";
  return attempt.number == 0 && attempt.end == AttemptEnd::succeeded ? "hold" : "attempt";
}

std::string quoted(std::string_view word) { return "\"" + std::string{word} + "\""; }

std::string status_words(const runtime::RunView& view) {
  const RunStatus status = view.info.status;
  const StopReason reason = status == RunStatus::succeeded ? StopReason::none : view.outcome.reason;
  return std::string{name_of(status)} + (reason == StopReason::none ? "" : ": " + std::string{reason_words(reason)});
}

Value step_value(const StepReport& report, const runtime::StepView& view, const core::StepPlan& plan) {
  Value value = Value::map();
  value.set("name", text::shorten(report.name, name_characters_max));
  value.set("state", word(core::name_of(view.status)));
  value.set("has_items", view.has_items);
  value.set("finally", plan.runs_finally);
  value.set("calls", plan.kind == core::StepKind::call);
  for (const auto& [name, count] :
       std::initializer_list<std::pair<const char*, std::uint64_t>>{{"items", view.items},
                                                                    {"done", report.succeeded},
                                                                    {"failed", report.failed},
                                                                    {"running", report.running},
                                                                    {"waiting", report.waiting},
                                                                    {"canceled", report.canceled},
                                                                    {"dead_letters", report.dead_letters},
                                                                    {"attempts", report.attempts},
                                                                    {"retries", report.retries},
                                                                    {"rescued", report.rescued},
                                                                    {"lost", report.lost},
                                                                    {"fallbacks", report.fallbacks},
                                                                    {"kept_out", report.kept_out}}) {
    value.set(name, whole(count));
  }
  value.set("waited", Value{microseconds(report.waited)});
  value.set("first", time_value(report.first_started));
  value.set("last", time_value(report.last_event));
  value.set("max_attempts", plan.policy.max_attempts ? whole(*plan.policy.max_attempts) : Value{});
  value.set("policy", explain(plan.policy));
  value.set("policy_from", word(level_words(plan.level)));
  Value needs = Value::list();
  for (const std::uint32_t need : plan.needs) needs.add(whole(need));
  value.set("needs", std::move(needs));
  return value;
}

// All that is kept of what the attempt left behind: a page has room.
std::string left_behind(const Failure& failure) {
  const event::FailureEvidence evidence = event::evidence_in(failure);
  if (evidence.empty()) return "";
  std::string text = event::in_full({}, evidence);
  text.erase(0, text.find_first_not_of('\n'));
  return text::lines_safe_to_show(text);
}

}  // namespace

PageData::PageData(const runtime::RunView& view, const PageAbout& about, PageLimits limits)
    : view_{view},
      about_{about},
      limits_{limits},
      reporter_{view.plan, every_story()},
      printer_{steps_of(*view.plan, view.given_items() > 0)},
      last_us_{microseconds(view.info.created)} {}

void PageData::add_number(std::int64_t number) { rows_ += "," + std::to_string(number); }

std::uint64_t PageData::text_number(std::string_view text) {
  if (const auto found = text_numbers_.find(std::string{text}); found != text_numbers_.end()) return found->second;
  const bool has_room = text_bytes_ + text.size() <= limits_.text_bytes_max;
  const auto [place, is_new] =
      text_numbers_.try_emplace(std::string{has_room ? text : text_left_out}, text_numbers_.size());
  if (is_new) {
    text_bytes_ += text.size();
    texts_ += (texts_.empty() ? "" : ",") + text::json_string(place->first);
  }
  return place->second;
}

void PageData::add_text(std::string_view text) { add_number(static_cast<std::int64_t>(text_number(text))); }

void PageData::add(const Event& event) {
  reporter_.add(event);
  if (event.type == EventType::reserved) return;  // nothing has begun
  if (events_ == limits_.events_max) {
    ++left_out_;
    reporter_.projection().stop_telling();
    return;
  }
  const auto step = reporter_.projection().step_number(event.step);
  const std::int64_t now_us = microseconds(event.time);
  rows_ += (events_++ == 0 ? "[" : ",[") + std::to_string(static_cast<int>(event.type));
  add_number(now_us - last_us_);
  last_us_ = now_us;
  add_number(step ? std::int64_t{*step} + 1 : 0);
  add_number(event.item);
  add_number(static_cast<std::int64_t>(event.attempt));
  add_row(event, step.value_or(0));
  rows_ += "]";
}

// What follows the common fields.
void PageData::add_row(const Event& event, std::uint32_t step) {
  switch (event.type) {
    case EventType::started:
      return;
    case EventType::completed:
      add_number(static_cast<std::int64_t>(event.total_attempts));
      add_number(microseconds(event.total_elapsed));
      return add_text(output_words(event.output, event.output_size));
    case EventType::failed:
      return add_failed(event, step);
    case EventType::retrying:
      add_number(static_cast<std::int64_t>(event.next_attempt));
      add_number(microseconds(event.delay));
      return add_text(wait_reason(view_.plan->steps[step].policy, event));
    default:
      return add_text(printer_.words(event));
  }
}

void PageData::add_failed(const Event& event, std::uint32_t step) {
  const Failure failure = event.failure.value_or(Failure{});
  add_number((event.will_retry ? will_retry : 0) + (event.lost ? was_lost : 0) +
             (event.precondition ? was_precondition : 0) + (event.reason == StopReason::canceled ? was_canceled : 0));
  add_text(what_failed(failure));
  add_text(class_words(failure));
  add_text(classification_sentence(failure));
  const WorkStory* const story = reporter_.projection().story_of(step, event.item);
  const bool is_told = story != nullptr && !story->is_cut && !story->attempts.empty();
  add_text(decision_of(is_told ? retry_decision_of(story->attempts.back()) : RetryDecision{.failed = event}, step));
  if (failure.retry_after) add_number(microseconds(*failure.retry_after));
}

std::string PageData::decision_of(const RetryDecision& decision, std::uint32_t step) const {
  return decision_sentence({.plan = *view_.plan,
                            .step = view_.plan->steps[step],
                            .source = WorkSource::document,
                            .cancel_reason = decision.cancel_reason,
                            .was_visited_enough = false},
                           decision);
}

// ---- work ----------------------------------------

std::string PageData::since_created(const std::optional<WallTime>& time) const {
  return time ? std::to_string(microseconds(*time) - microseconds(view_.info.created)) : "null";
}

std::string PageData::attempt_segment(const AttemptStory& attempt, std::uint32_t step) {
  std::string row = "[" + quoted(kind_of(attempt)) + "," + quoted(shown_end(attempt.end)) + "," +
                    since_created(attempt.began ? attempt.began : attempt.ended) + "," + since_created(attempt.ended) +
                    "," + std::to_string(attempt.number) + "," + quoted(attempt.way);
  const auto add = [&](const std::string& text) { row += "," + std::to_string(text_number(text)); };
  if (attempt.failed != nullptr) {
    const Failure failure = attempt.failed->failure.value_or(Failure{});
    add(what_failed(failure));
    add(classification_sentence(failure));
    add(decision_of(retry_decision_of(attempt), step));
    row += "," + (failure.retry_after ? std::to_string(microseconds(*failure.retry_after)) : "null");
    if (const std::string left = left_behind(failure); !left.empty()) add(left);
  } else if (attempt.end == AttemptEnd::succeeded) {
    add(output_words(attempt.output, attempt.output_size));
  }
  return row + "]";
}

std::string PageData::wait_segment(const AttemptStory& attempt, std::uint32_t step) {
  const Event& retrying = *attempt.retrying;
  return "[\"wait\",\"waiting\"," + since_created(retrying.time) + "," + since_created(attempt.wait_ended) + "," +
         std::to_string(retrying.next_attempt) + "," + quoted(attempt.way) + "," +
         std::to_string(microseconds(retrying.delay)) + "," +
         std::to_string(text_number(wait_reason(view_.plan->steps[step].policy, retrying))) + "," +
         (attempt.is_wait_interrupted ? "true]" : "false]");
}

// As a refusal: it was not begun any more.
std::string PageData::skipped_segment(WallTime time) {
  const auto number = [&](const std::string& text) { return "," + std::to_string(text_number(text)); };
  return "[\"refusal\",\"failed\"," + since_created(time) + "," + since_created(time) + ",0,\"\"" +
         number("skipped: " + std::string{circuit_open_words}) + number("") +
         number("Nothing of the step is tried any more.") + ",null]";
}

std::string PageData::segments_of(const WorkStory& story, std::uint32_t step) {
  std::string list;
  for (const AttemptStory& attempt : story.attempts) {
    list += (list.empty() ? "" : ",") + attempt_segment(attempt, step);
    if (attempt.retrying != nullptr) list += "," + wait_segment(attempt, step);
  }
  if (story.skipped) list += "," + skipped_segment(*story.skipped);
  return list;
}

std::string PageData::works() {
  std::string list;
  const RunProjection& run = reporter_.projection();
  for (const auto& [place, story] : run.stories()) {
    if (story.attempts.empty()) continue;
    list += (list.empty() ? "[" : ",\n[") + std::to_string(place.first) + "," + std::to_string(place.second) + "," +
            quoted(shown_state(run, place, story)) + "," + std::to_string(story.started) + "," +
            std::to_string(story.failures) + "," + std::to_string(story.waits) + ",[" +
            segments_of(story, place.first) + "]]";
  }
  return list;
}

std::string PageData::standstills() const {
  constexpr std::array<std::string_view, 3> kinds{"pause", "gone", "over"};
  std::string list;
  for (const Standstill& one : reporter_.projection().standstills()) {
    list += (list.empty() ? "[" : ",[") + quoted(kinds[static_cast<std::size_t>(one.kind)]) + "," +
            since_created(one.from) + "," + since_created(one.to) + "]";
  }
  return list;
}

std::string PageData::head(const RunReport& report) const {
  const RunInfo& info = view_.info;
  Value value = Value::map();
  value.set("run", to_string(info.id));
  value.set("flow", text::shorten(info.name, name_characters_max));
  value.set("status", word(name_of(info.status)));
  value.set("status_words", status_words(view_));
  value.set("is_open", is_open(info.status));
  value.set("is_left_alone", about_.is_left_alone);
  value.set("created", time_value(info.created));
  value.set("ended", time_value(info.ended));
  value.set("now", time_value(about_.now));
  if (!info.key.empty()) value.set("key", text::shorten(info.key, name_characters_max));
  value.set("attempts", whole(report.attempts()));
  value.set("recoveries", whole(report.recoveries));
  value.set("retries", whole(report.retries()));
  value.set("work_retried", whole(report.sum(&StepReport::retried)));
  value.set("succeeded_after", whole(report.sum(&StepReport::succeeded_after_retry)));
  value.set("failed_after", whole(report.sum(&StepReport::failed_after_retries)));
  value.set("waited", Value{microseconds(report.waited())});
  value.set("events_left_out", whole(left_out_));
  return text::to_json(value);
}

std::string PageData::steps(const RunReport& report) const {
  Value list = Value::list();
  for (std::size_t step = 0; step < report.steps.size(); ++step)
    list.add(step_value(report.steps[step], view_.steps[step], view_.plan->steps[step]));
  return text::to_json(list);
}

std::string PageData::json() && {
  Value types = Value::list();  // by their numbers
  for (int type = 0; type <= static_cast<int>(EventType::reserved); ++type)
    types.add(type == 0 ? Value{""} : word(name_of(static_cast<EventType>(type))));
  const RunReport report = reporter_.report();
  const std::string all_works = works();  // adds to the texts
  return "{\"head\":" + head(report) + ",\n\"steps\":" + steps(report) + ",\n\"types\":" + text::to_json(types) +
         ",\n\"works\":[" + all_works + "],\n\"standstills\":[" + standstills() + "],\n\"texts\":[" + texts_ +
         "],\n\"events\":[" + rows_ + "]}";
}

}  // namespace reprise::observe
