#include "observe/live/plain_printer.hpp"

#include <map>

#include "observe/words.hpp"
#include "text/duration.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {
namespace {

std::string ended_words(const Event& event) {
  std::string words = "run " + std::string{name_of(event.status)};
  if (event.total_elapsed > Duration{0}) words += " after " + text::rough_duration(event.total_elapsed);
  if (event.reason != StopReason::none) words += ": " + std::string{reason_words(event.reason)};
  return words;
}

std::string cancel_words(const Event& event) {
  std::string words = "cancelling the run";
  if (event.reason == StopReason::deadline) words += ": its deadline has passed";
  if (!event.text.empty() && event.reason != StopReason::deadline) words += ": " + text::safe_to_show(event.text);
  return words;
}

std::string submitted_words(const Event& event) {
  std::string words = "run " + to_string(event.run) + " submitted";
  if (!event.text.empty()) words += " with key " + text::safe_to_show(event.text);
  if (event.due > event.time) words += ", to begin at " + date_and_time(event.due);
  return words;
}

}  // namespace

StepLookup steps_of(const core::Plan& plan, bool has_given_items) {
  std::map<std::string, PrintedStep, std::less<>> steps;
  for (const core::StepPlan& step : plan.steps)
    steps.emplace(*step.name, PrintedStep{step.policy.max_attempts, step.for_each});
  if (has_given_items) steps.at(*plan.steps.front().name).has_items = true;
  return [steps = std::move(steps)](std::string_view name) {
    const auto found = steps.find(name);
    return found == steps.end() ? PrintedStep{} : found->second;
  };
}

std::string PlainPrinter::attempt(const Event& event, std::uint64_t number) const {
  return numbered_attempt(number, steps_(event.step).max_attempts,
                          {event.used_attempts, event.interrupted_attempts, event.lost_attempts});
}

std::string PlainPrinter::retrying(const Event& event) const {
  const std::string wait = event.delay.count() > 0 ? "retry in " + text::rough_duration(event.delay) : "retry at once";
  if (!event.failure) return wait;
  if (event.lost) return attempt(event, event.attempt) + " was lost: " + what_failed(*event.failure) + "; " + wait;
  return attempt(event, event.attempt) + " failed: " + what_failed(*event.failure) + " (" +
         class_words(*event.failure) + "); " + wait + (event.floored ? " as the other side asked" : "");
}

std::string PlainPrinter::failed(const Event& event) const {
  if (event.will_retry && event.reason == StopReason::none) return "";  // `retrying` follows, and says it all
  const Failure failure = event.failure.value_or(Failure{});
  std::string words = event.precondition ? "not begun, its precondition failed"
                                         : (event.attempt > 0 ? attempt(event, event.attempt) + " failed" : "failed");
  words += ": " + what_failed(failure) + " (" + class_words(failure) + "); ";
  if (event.precondition) return words + "given up";
  return words + (event.will_retry ? "no further attempt of this kind: " : "given up: ") +
         std::string{reason_words(event.reason)};
}

std::string PlainPrinter::words(const Event& event) const {
  switch (event.type) {
    case EventType::submitted:
      return submitted_words(event);
    case EventType::prepared:
      return counted(event.items, "item");
    case EventType::started:
      return attempt(event, event.attempt) + " started";
    case EventType::completed:
      if (event.total_attempts == 0) return "done";
      return "done after " + counted(event.total_attempts, "attempt") +
             (event.total_elapsed > Duration{0} ? " in " + text::rough_duration(event.total_elapsed) : "");
    case EventType::failed:
      return failed(event);
    case EventType::retrying:
      return retrying(event);
    case EventType::recovered:
      return "the engine had died; attempts that were running are lost";
    case EventType::interrupted:
      return "interrupted";
    case EventType::skipped:
      return event.attempt > 0 ? "skipped: " + std::string{reason_words(event.reason)} : "skipped";
    case EventType::unreachable:
      return "cannot be reached: a step it needs has failed";
    case EventType::fallback:
      return "trying its " + (event.text.empty() ? std::string{"fallback"} : text::safe_to_show(event.text));
    case EventType::rework:
      return "the next attempt is told what was wrong";
    case EventType::dead_lettered:
      return "kept as a dead letter";
    case EventType::dropped:
      return "dead letter dropped";
    case EventType::circuit_opened:
      return event.due == WallTime{} ? "circuit breaker opened: the same failure came too often"
                                     : "circuit opened: too many of its items failed in a row; none begins for " +
                                           text::rough_duration(event.due - event.time);
    case EventType::circuit_half_opened:
      return "circuit half open: the next items try whether it may close";
    case EventType::circuit_closed:
      return "circuit closed: they have succeeded, and the others begin";
    case EventType::progress:
      return text::safe_to_show(event.text);
    case EventType::cancel_requested:
      return cancel_words(event);
    case EventType::paused:
      return "run paused";
    case EventType::resumed:
      return "run resumed";
    case EventType::signaled:
      return "signal " + text::safe_to_show(event.text) + " came";
    case EventType::revisited:
      return event.on_request ? "runs again: it was asked for, or what it needs has a new result"
                              : "going back to this step";
    case EventType::reopened:
      if (event.resumes) return "resuming what was stopped";
      return "going on with what had failed or was stopped" +
             (event.text.empty() ? "" : " in " + text::safe_to_show(event.text));
    case EventType::finishing:
      return "all steps are over; those that run in any case begin";
    case EventType::handed_over:
      return event.text.empty() ? "its end comes from outside" : "runs as " + text::safe_to_show(event.text);
    case EventType::handed_back:
      return "checking the result";
    case EventType::reserved:
      return "";  // nothing has begun
    case EventType::extended:
      return "the engine did not run when the time was over; it gets more";
    case EventType::called:
      return event.operation.empty() ? "its undo begins" : text::safe_to_show(event.operation) + " begun";
    case EventType::continued:
      return "its loop begins another turn";
    case EventType::diverged:
      return "held: its code and its log do not agree" + (event.text.empty() ? "" : ": " + text::safe_to_show(event.text));
    case EventType::published:
      return "says how it stands";
    case EventType::dismissed:
      return "nobody waits for it any more";
    case EventType::ended:
      return ended_words(event);
  }
  return "something this version does not know (event type " + std::to_string(static_cast<int>(event.type)) + ")";
}

std::string PlainPrinter::line(const Event& event) const {
  const std::string told = words(event);
  if (told.empty()) return "";
  const bool is_of_step = event.type == EventType::prepared ||
                          (event.type == EventType::skipped && event.attempt == 0) ||
                          event.type == EventType::unreachable || event.type == EventType::revisited ||
                          event.type == EventType::circuit_half_opened || event.type == EventType::circuit_closed ||
                          (event.type == EventType::circuit_opened && event.due != WallTime{});
  std::string line = clock_time(event.time) + " ";
  if (event.step.empty()) return line + told;
  const bool is_item = !is_of_step && steps_(event.step).has_items;
  const std::string label = is_item && labels_ ? labels_(event.step, event.item) : "";
  return line + labelled(work_name(text::safe_to_show(event.step), event.item, is_item), label) + " " + told;
}

}  // namespace reprise::observe
