#include "observe/why/why.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "observe/why/why_remedies.hpp"
#include "observe/why/why_words.hpp"
#include "observe/words.hpp"
#include "text/duration.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {
namespace {

std::string attempt_words(std::uint64_t attempt, const std::string& way) {
  return "Attempt " + std::to_string(attempt) + (way.empty() ? "" : ", " + way_words(way) + ",");
}

std::string failed_for_good(const Event& failed) {
  if (failed.precondition) return "It failed for good before its first attempt";
  if (failed.attempt == 0) return "It failed for good";
  return "It failed for good after " + counted(failed.attempt, "attempt");
}

WorkState state_of(core::ItemStatus status) {
  switch (status) {
    case core::ItemStatus::running:
    case core::ItemStatus::outside:
      return WorkState::running;
    case core::ItemStatus::succeeded:
      return WorkState::succeeded;
    case core::ItemStatus::failed:
      return WorkState::failed;
    case core::ItemStatus::canceled:
      return WorkState::canceled;
    case core::ItemStatus::waiting:
    case core::ItemStatus::untouched:  // the run went back, and will come here again
    case core::ItemStatus::reserved:
      break;
  }
  return WorkState::waiting;
}

std::string success_words(const AttemptStory& last, const WorkStory& story) {
  return attempt_words(last.number, last.way) + " succeeded, " + text::rough_duration(story.total_elapsed) +
         " after the first one began.";
}

std::string failure_words(const Event& failed, const WorkStory& story, bool is_dead_letter) {
  const std::string what = failed_for_good(failed);
  if (is_dead_letter) return what + " and is kept as a dead letter.";
  return what + (story.was_dropped ? ", and its dead letter was dropped." : ".");
}

std::string skipped_words(const WorkStory& story, bool is_dead_letter) {
  return "It was skipped at " + moment(*story.skipped) + ": " + std::string{circuit_open_words} +
         ", so nothing of its step was tried any more" + (is_dead_letter ? "; it is kept as a dead letter." : ".");
}

// What came of an attempt that the end of the run, or of the engine, cut short.
std::string interruption_words(const AttemptStory& last) {
  if (last.end == AttemptEnd::canceled) return "It was stopped with the run, and goes on when that is resumed.";
  return last.is_wait_interrupted ? "It was waiting for attempt " + std::to_string(last.retrying->next_attempt) +
                                        " when the run was stopped, and goes on when that is resumed."
                                  : "It was interrupted, and goes on when the run is resumed.";
}

std::string waiting_words(const AttemptStory& last, const core::Item* item) {
  if (last.end == AttemptEnd::interrupted) return interruption_words(last);
  const bool waits_for_retry = last.retrying != nullptr && !last.asked_again && last.next_way.empty();
  return waits_for_retry && item != nullptr ? "It waits until " + moment(WallTime{Duration{item->due}}) + "." : "";
}

// What came of it, in one sentence; empty when what was decided last says it.
std::string ending_of(const WorkStory& story, const core::Item* item, WorkState state) {
  const AttemptStory& last = story.attempts.back();
  switch (state) {
    case WorkState::succeeded:
      return success_words(last, story);
    case WorkState::running:
      return attempt_words(last.number, last.way) + " is running since " + moment(last.began.value_or(WallTime{})) +
             ".";
    case WorkState::failed:
      if (story.skipped) return skipped_words(story, item != nullptr && item->dead_letter);
      return last.failed != nullptr ? failure_words(*last.failed, story, item != nullptr && item->dead_letter) : "";
    case WorkState::canceled:
      return interruption_words(last);
    case WorkState::waiting:
      break;
  }
  return waiting_words(last, item);
}

StoryLimits stories_of(const std::optional<WantedWork>& wanted) {
  StoryLimits limits = whole_stories;
  limits.only = wanted;
  return limits;
}

bool was_visited_enough(const RunProjection& run) {
  return run.run().has_ended() && run.run().reason == StopReason::max_visits;
}

std::string why_words(const Event& event) {
  return event.request && !event.request->why.empty() ? ": " + text::safe_to_show(event.request->why) : "";
}

// After 5 failed items in a row the circuit of map opened
std::string circuit_words(const Event& event, const core::Plan& plan) {
  const auto step = std::ranges::find_if(plan.steps, [&](const core::StepPlan& each) { return *each.name == event.step; });
  const std::uint32_t failures = step != plan.steps.end() ? step->item_breaker.failures : 0;
  return "After " + counted(failures, "failed item") + " in a row, or one that tried, the circuit of " +
         text::safe_to_show(event.step) + " opened";
}

std::string note_words(const Event& event, const core::Plan& plan) {
  const std::string at = " at " + moment(event.time);
  switch (event.type) {
    case EventType::recovered:
      return "The engine had died and was started again" + at + "; attempts that were running count as lost.";
    case EventType::cancel_requested:
      if (event.reason == StopReason::deadline)
        return "The deadline of the run" +
               (plan.deadline > 0 ? ", " + text::format_duration(Duration{plan.deadline}) + "," : "") + " passed" + at +
               ".";
      return "The run was cancelled" + at + asker_words(event.request) + (event.text.empty() ? "." : ": " + text::safe_to_show(event.text) + ".");
    case EventType::reopened:
      if (event.resumes) return "The run was resumed" + at + asker_words(event.request) + why_words(event) + ".";
      return "What had failed" + (event.text.empty() ? "" : " in " + text::safe_to_show(event.text)) +
             " was tried again, because somebody asked" + at + asker_words(event.request) + why_words(event) + ".";
    case EventType::paused:
      return "The run was paused" + at + asker_words(event.request) + why_words(event) + ".";
    case EventType::resumed:
      return "The run was resumed" + at + asker_words(event.request) + why_words(event) + ".";
    case EventType::circuit_opened:
      return circuit_words(event, plan) + at + ": nothing of it begins before " + moment(event.due) + ".";
    case EventType::circuit_half_opened:
      return "That time was over for " + text::safe_to_show(event.step) + at + ": the next items tried whether it may go on.";
    case EventType::circuit_closed:
      return "They succeeded, and the circuit of " + text::safe_to_show(event.step) + " closed" + at + ".";
    case EventType::revisited:
      if (event.on_request)
        return text::safe_to_show(event.step) + " ran again" + at + ": it was asked for, or what it needs has a new result.";
      return "The run went back to " + text::safe_to_show(event.step) + at + ", as on_failure says.";
    case EventType::ended:
      return event.reason == StopReason::max_visits
                 ? "The run ended" + at + " because a step was visited as often as max_visits allows."
                 : "";
    default:
      return "";
  }
}

}  // namespace

RetryDecision retry_decision_of(const AttemptStory& attempt) {
  RetryDecision decision{.failed = *attempt.failed,
                         .retrying = {},
                         .is_wait_over = attempt.is_followed,
                         .way = attempt.way,
                         .next_way = attempt.next_way,
                         .waited_before = attempt.waited_before,
                         .cancel_reason = attempt.cancel_reason,
                         .asked_again = attempt.asked_again,
                         .went_back = attempt.went_back};
  decision.is_wait_in_vain = attempt.wait_ended && !attempt.is_followed && !attempt.is_wait_interrupted;
  if (attempt.retrying != nullptr) decision.retrying = *attempt.retrying;
  return decision;
}

namespace {

RetryDecision interruption_of(const AttemptStory& attempt) {
  RetryDecision decision{.way = attempt.way};
  decision.failed.type = EventType::interrupted;
  decision.failed.time = attempt.ended.value_or(WallTime{});
  decision.failed.attempt = attempt.number;
  decision.failed.will_retry = true;
  decision.is_wait_over = attempt.is_followed;
  decision.is_interruption = true;
  return decision;
}

}  // namespace

std::string_view name_of(WorkState state) noexcept {
  constexpr std::array<std::string_view, 5> names{"waiting", "running", "succeeded", "failed", "canceled"};
  return names[static_cast<std::size_t>(state)];
}

std::string_view level_words(PolicyLevel level) noexcept {
  switch (level) {
    case PolicyLevel::work_item:
      return "given with the task";
    case PolicyLevel::step:
      return "the step's own";
    case PolicyLevel::actor_type:
      return "for its actor type";
    case PolicyLevel::run:
      return "the default of the run";
    case PolicyLevel::built_in:
      break;
  }
  return "built in";
}

Explainer::Explainer(std::shared_ptr<const core::Plan> plan, std::optional<WantedWork> wanted, WorkSource source)
    : plan_{plan}, source_{source}, run_{std::move(plan), stories_of(wanted)} {}

std::vector<std::string> Explainer::about_the_run() const {
  std::vector<std::string> sentences;
  for (const Event& event : run_.notes()) {
    if (std::string words = note_words(event, *plan_); !words.empty()) sentences.push_back(std::move(words));
  }
  return sentences;
}

Explanation Explainer::explained(const Place& place, const WorkStory& story) const {
  const auto [step, number] = place;
  const core::Item* const item = run_.item_of(step, number);
  Explanation told{.step = step, .item = number, .state = state_of(run_.status_of(step, number))};
  told.attempts = story.attempts.back().number;
  told.is_dead_letter = item != nullptr && item->dead_letter;
  told.ending = ending_of(story, item, told.state);
  for (const AttemptStory& attempt : story.attempts) {
    if (attempt.failed != nullptr) told.decisions.push_back(retry_decision_of(attempt));
    if (attempt.failed == nullptr && attempt.end == AttemptEnd::interrupted)
      told.decisions.push_back(interruption_of(attempt));
  }
  const core::StepPlan plan = core::step_of_item(plan_->steps[step], number);
  std::map<std::uint32_t, core::StepPlan> of_commands;
  const auto plan_of = [&](const RetryDecision& decision) -> const core::StepPlan& {
    const std::uint32_t command = failure_of(decision).command;
    if (plan.policy_of_command(command) == nullptr) return plan;
    return of_commands.try_emplace(command, core::step_of_command(plan, command)).first->second;
  };
  const auto context_of = [&](const RetryDecision& decision) {
    return DecisionContext{*plan_, plan_of(decision), source_, decision.cancel_reason, was_visited_enough(run_)};
  };
  const RetryDecision* before = nullptr;
  for (RetryDecision& decision : told.decisions) {
    decision.sentences = sentences_of(context_of(decision), decision, before);
    if (!decision.is_interruption) before = &decision;
  }
  told.has_failed = before != nullptr;
  const bool is_over = told.state == WorkState::failed || told.state == WorkState::canceled;
  if (is_over && before != nullptr && !before->failed.will_retry) told.remedies = remedies_of(context_of(*before), *before);
  return told;
}

std::vector<Explanation> Explainer::explanations() const {
  std::vector<Explanation> all;
  for (const auto& [place, story] : run_.stories()) {
    if (story.last_failed() != nullptr || story.was_interrupted) all.push_back(explained(place, story));
  }
  return all;
}

}  // namespace reprise::observe
