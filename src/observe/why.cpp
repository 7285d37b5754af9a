#include "observe/why.hpp"

#include <array>

#include "observe/why_remedies.hpp"
#include "observe/why_words.hpp"
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

std::string ending_of(const Event& event, const Explanation& item) {
  const Judgement& last = item.judgements.back();
  const std::string& way = last.next_way.empty() ? last.way : last.next_way;
  switch (event.type) {
    case EventType::completed:
      return attempt_words(event.total_attempts, way) + " succeeded, " + text::rough_duration(event.total_elapsed) +
             " after the first one began.";
    case EventType::started:
      return attempt_words(event.attempt, way) + " is running since " + moment(event.time) + ".";
    case EventType::retrying:
      return "It waits until " + moment(event.due) + ".";
    case EventType::interrupted:
      return last.retrying && !last.is_wait_over
                 ? "It was waiting for attempt " + std::to_string(last.retrying->next_attempt) +
                       " when the run was stopped, and goes on when that is resumed."
                 : "It was interrupted, and goes on when the run is resumed.";
    case EventType::dead_lettered:
      return failed_for_good(last.failed) + " and is kept as a dead letter.";
    case EventType::dropped:
      return failed_for_good(last.failed) + ", and its dead letter was dropped.";
    default:
      return "";
  }
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
    : plan_{std::move(plan)}, wanted_{wanted}, source_{source} {
  for (std::uint32_t step = 0; step < plan_->steps.size(); ++step)
    step_numbers_.emplace(*plan_->steps[step].name, step);
}

void Explainer::reopen(const Event& event) {
  for (auto& [place, item] : items_) {
    const bool is_meant = event.text.empty() || event.text == *plan_->steps[place.first].name;
    if (item.state != WorkState::failed || !is_meant) continue;
    item.judgements.back().asked_again = event.time;
    item.state = WorkState::waiting;
    item.is_dead_letter = false;
    item.ending.clear();
  }
}

void Explainer::go_back(const Event& event, std::uint32_t step) {
  about_the_run_.push_back("The run went back to " + text::safe_to_show(event.step) + " at " + moment(event.time) +
                           ", as on_failure says.");
  for (auto& [place, item] : items_) {
    const core::StepPlan& plan = plan_->steps[place.first];
    const bool is_meant = plan.on_failure == OnFailure::revisit && plan.revisit == step;
    if (item.state != WorkState::failed || !is_meant) continue;
    item.judgements.back().went_back = event.step;
    item.state = WorkState::waiting;
    item.ending.clear();
  }
}

void Explainer::add_of_run(const Event& event) {
  const std::string at = " at " + moment(event.time);
  switch (event.type) {
    case EventType::recovered:
      about_the_run_.push_back("The engine had died and was started again" + at +
                               "; attempts that were running count as lost.");
      return;
    case EventType::cancel_requested:
      cancel_reason_ = event.reason;
      if (event.reason == StopReason::deadline) {
        about_the_run_.push_back(
            "The deadline of the run" +
            (plan_->deadline > 0 ? ", " + text::format_duration(Duration{plan_->deadline}) + "," : "") + " passed" +
            at + ".");
      } else {
        about_the_run_.push_back("The run was cancelled" + at +
                                 (event.text.empty() ? "." : ": " + text::safe_to_show(event.text) + "."));
      }
      return;
    case EventType::reopened:
      reopen(event);
      about_the_run_.push_back("What had failed" + (event.text.empty() ? "" : " in " + text::safe_to_show(event.text)) +
                               " was tried again, because somebody asked" + at + ".");
      return;
    case EventType::ended:
      was_visited_enough_ = event.reason == StopReason::max_visits;
      if (was_visited_enough_)
        about_the_run_.push_back("The run ended" + at + " because a step was visited as often as max_visits allows.");
      return;
    default:
      return;
  }
}

void Explainer::add_failed(const Event& event, std::uint32_t step) {
  Explanation& item =
      items_.try_emplace({step, event.item}, Explanation{.step = step, .item = event.item}).first->second;
  Judgement judgement{.failed = event};
  if (!item.judgements.empty()) {
    const Judgement& before = item.judgements.back();
    const bool begins_anew = before.asked_again.has_value() || !before.went_back.empty();
    judgement.way = begins_anew ? "" : before.next_way;
    judgement.waited_before =
        begins_anew ? Duration{0} : before.waited_before + (before.retrying ? before.retrying->delay : Duration{0});
  }
  item.attempts = event.attempt;
  item.judgements.push_back(std::move(judgement));
  item.ending.clear();
  if (event.will_retry) {
    item.state = WorkState::waiting;
  } else if (event.reason == StopReason::canceled) {
    item.state = WorkState::canceled;
    item.ending = "It was stopped with the run, and goes on when that is resumed.";
  } else {
    item.state = WorkState::failed;
    item.ending = failed_for_good(event) + ".";
  }
}

void Explainer::add_later(const Event& event, Explanation& item) const {
  Judgement& last = item.judgements.back();
  switch (event.type) {
    case EventType::retrying:
      last.retrying = event;
      break;
    case EventType::started:
      item.state = WorkState::running;
      item.attempts = event.attempt;
      last.is_wait_over = true;
      break;
    case EventType::completed:
      item.state = WorkState::succeeded;
      item.attempts = event.total_attempts;
      break;
    case EventType::interrupted:
      item.state = WorkState::waiting;
      break;
    case EventType::fallback:
      item.state = WorkState::waiting;
      last.next_way = event.text.empty() ? "fallback" : event.text;
      break;
    case EventType::dead_lettered:
      item.is_dead_letter = true;
      break;
    case EventType::dropped:
      item.is_dead_letter = false;
      break;
    default:
      break;
  }
  if (std::string ending = ending_of(event, item); !ending.empty()) item.ending = std::move(ending);
}

void Explainer::add(const Event& event) {
  const auto step = step_numbers_.find(event.step);
  if (step == step_numbers_.end()) return add_of_run(event);
  if (event.type == EventType::revisited) go_back(event, step->second);
  if (wanted_ && (wanted_->step != step->second || wanted_->item.value_or(event.item) != event.item)) return;
  if (event.type == EventType::failed) return add_failed(event, step->second);
  const auto found = items_.find({step->second, event.item});
  if (found != items_.end()) add_later(event, found->second);
}

std::vector<Explanation> Explainer::explanations() && {
  std::vector<Explanation> all;
  for (auto& [place, item] : items_) {
    Explanation& told = all.emplace_back(std::move(item));
    const JudgementContext context{*plan_, plan_->steps[told.step], source_, cancel_reason_, was_visited_enough_};
    const Judgement* before = nullptr;
    for (Judgement& judgement : told.judgements) {
      judgement.sentences = sentences_of(context, judgement, before);
      before = &judgement;
    }
    const bool is_over = told.state == WorkState::failed || told.state == WorkState::canceled;
    if (is_over) told.remedies = remedies_of(context, told.judgements.back());
  }
  return all;
}

}  // namespace reprise::observe
