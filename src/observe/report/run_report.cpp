#include "observe/report/run_report.hpp"

#include <algorithm>

namespace reprise::observe {

using core::ItemStatus;

namespace {

Duration sum_of(Duration left, Duration right) {
  return left > Duration::max() - right ? Duration::max() : left + right;
}

WallTime wall_time(core::Time time) { return WallTime{Duration{time}}; }

Duration took(const AttemptStory& attempt) {
  return attempt.began && attempt.ended ? *attempt.ended - *attempt.began : Duration{0};
}

// Since it was last given all its attempts.
std::vector<FailedAttempt> tries_of(const WorkStory& story) {
  std::vector<FailedAttempt> tries;
  for (const AttemptStory& attempt : story.attempts) {
    if (attempt.failed == nullptr) continue;
    FailedAttempt& failed = tries.emplace_back(FailedAttempt{
        .attempt = attempt.number, .failure = attempt.failed->failure.value_or(Failure{}), .took = took(attempt)});
    if (attempt.retrying != nullptr) {
      failed.wait = attempt.retrying->delay;
      failed.floored = attempt.retrying->floored;
    }
    if (attempt.asked_again) tries.clear();
  }
  return tries;
}

TroubledItem troubled(const RunProjection& run, const Place& place, const WorkStory& story, const AttemptStory& last) {
  const core::Item* const item = run.item_of(place.first, place.second);
  TroubledItem trouble{.step = place.first,
                       .item = place.second,
                       .status = run.status_of(place.first, place.second),
                       .attempts = last.number,
                       .failure = last.failed->failure.value_or(Failure{}),
                       .reason = last.asked_again ? StopReason::none : last.failed->reason,
                       .time = last.retrying != nullptr ? last.retrying->time : last.failed->time,
                       .began = story.began.value_or(WallTime{})};
  if (story.skipped && trouble.status == ItemStatus::failed) {
    trouble.skipped = true;
    trouble.reason = StopReason::circuit_open;
    trouble.time = *story.skipped;
  }
  if (!story.is_short) trouble.tries = tries_of(story);
  if (item == nullptr) return trouble;
  trouble.dead_letter = item->dead_letter;
  if (trouble.status == ItemStatus::waiting) trouble.due = wall_time(item->due);
  if (item->trouble != nullptr) trouble.waited = Duration{item->trouble->waited};
  return trouble;
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

StepReport RunReporter::step(std::uint32_t number) const {
  const core::StepState& state = projection_.step(number);
  StepReport report;
  static_cast<StepTotals&>(report) = projection_.totals(number);
  report.name = *projection_.plan().steps[number].name;
  report.status = state.status;
  report.has_items = projection_.has_items(number);
  report.items = state.items;
  report.running = state.running;
  report.waiting = projection_.waiting(number);
  report.succeeded = state.succeeded;
  report.failed = state.failed;
  report.canceled = state.canceled;
  report.dead_letters = projection_.dead_letters(number);
  report.kept_out = projection_.kept_out(number);
  return report;
}

std::optional<TroubledItem> RunReporter::trouble_of(std::uint32_t step, std::uint32_t item) const {
  const WorkStory* const story = projection_.story_of(step, item);
  const AttemptStory* const last = story != nullptr && story->has_failed ? story->last_failed() : nullptr;
  return last != nullptr ? std::optional{troubled(projection_, {step, item}, *story, *last)} : std::nullopt;
}

RunReport RunReporter::overview() const {
  const core::Run& run = projection_.run();
  RunReport report{.status = run.status,
                   .reason = run.reason,
                   .cancel_words = projection_.cancel_words(),
                   .created = wall_time(run.created),
                   .steps = {},
                   .troubled = {},
                   .recoveries = projection_.recoveries()};
  if (run.ended != 0) report.ended = wall_time(run.ended);
  for (std::uint32_t number = 0; number < run.step_count(); ++number) report.steps.push_back(step(number));
  return report;
}

RunReport RunReporter::report() const {
  RunReport report = overview();
  for (const auto& [place, story] : projection_.stories()) {
    const bool is_failed = projection_.status_of(place.first, place.second) == ItemStatus::failed;
    if (is_failed && story.was_retried) ++report.steps[place.first].failed_after_retries;
    if (!story.has_failed || projection_.status_of(place.first, place.second) == ItemStatus::succeeded) continue;
    if (const AttemptStory* const last = story.last_failed()) {
      report.troubled.push_back(troubled(projection_, place, story, *last));
    } else if (is_failed) {
      ++report.without_details;
    }
  }
  return report;
}

}  // namespace reprise::observe
