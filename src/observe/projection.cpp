#include "observe/projection.hpp"

#include <algorithm>
#include <ranges>

#include "observe/words.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {

using core::ItemStatus;
using core::StepStatus;

namespace {

constexpr std::size_t stories_of_step_min = 10;  // are kept, whatever others have
constexpr std::size_t notes_max = 10'000;        // the first ones

Duration sum_of(Duration left, Duration right) {
  right = std::max(right, Duration{0});
  return left > Duration::max() - right ? Duration::max() : left + right;
}

// All others may change many items: those of a step, or of several.
bool concerns_one_item(EventType type) {
  switch (type) {
    case EventType::reserved:
    case EventType::started:
    case EventType::completed:
    case EventType::failed:
    case EventType::retrying:
    case EventType::interrupted:
    case EventType::fallback:
    case EventType::rework:
    case EventType::dead_lettered:
    case EventType::dropped:
    case EventType::circuit_opened:
    case EventType::circuit_half_opened:
    case EventType::circuit_closed:
    case EventType::progress:
    case EventType::handed_over:
    case EventType::handed_back:
    case EventType::extended:
    case EventType::signaled:
      return true;
    default:
      return false;
  }
}

bool concerns_one_step(EventType type) {
  return type == EventType::prepared || type == EventType::skipped || type == EventType::unreachable;
}

AttemptEnd end_of(const Event& failed) {
  if (failed.lost) return AttemptEnd::lost;
  return failed.reason == StopReason::canceled ? AttemptEnd::canceled : AttemptEnd::failed;
}

// Its beginning, or the hash of a large one: nobody is shown more, and there may be very many.
void set_output(AttemptStory& attempt, const Event& completed) {
  constexpr std::size_t bytes_max = 512;
  const bool is_hash = completed.output_size > completed.output.size();
  attempt.output = completed.output.substr(0, bytes_max);
  attempt.output_size = is_hash ? completed.output_size : attempt.output.size();
}

// Or of all items of a step.
bool is_of_whole_run(const Event& event) {
  switch (event.type) {
    case EventType::circuit_opened:
      return event.due != WallTime{};
    case EventType::circuit_half_opened:
    case EventType::circuit_closed:
    case EventType::recovered:
    case EventType::cancel_requested:
    case EventType::paused:
    case EventType::resumed:
    case EventType::reopened:
    case EventType::revisited:
    case EventType::ended:
      return true;
    default:
      return false;
  }
}

}  // namespace

const AttemptStory* WorkStory::last_failed() const {
  const auto found = std::ranges::find_if(attempts | std::views::reverse,
                                          [](const AttemptStory& attempt) { return attempt.failed != nullptr; });
  return found == attempts.rend() ? nullptr : &*found;
}

RunProjection::RunProjection(std::shared_ptr<const core::Plan> plan, StoryLimits limits)
    : plan_{std::move(plan)},
      limits_{limits},
      core_{std::make_unique<core::Core>(0, 0)},
      run_{&core_->add(1)},
      counts_(plan_->steps.size()),
      totals_(plan_->steps.size()),
      kept_of_steps_(plan_->steps.size()) {
  for (const core::StepPlan& step : plan_->steps)
    step_numbers_.emplace(*step.name, static_cast<std::uint32_t>(step_numbers_.size()));
  core_->add_plan(0, plan_);
  core_->replay(*run_, event::Record{.type = EventType::submitted});  // until the first event comes: nothing has begun
}

std::optional<std::uint32_t> RunProjection::step_number(std::string_view name) const {
  const auto found = step_numbers_.find(name);
  return found == step_numbers_.end() ? std::nullopt : std::optional{found->second};
}

bool RunProjection::has_items(std::uint32_t step) const {
  return plan_->steps[step].for_each || run_->steps[step].map != nullptr;
}

ItemStatus RunProjection::status_of(std::uint32_t step, std::uint32_t item) const {
  const core::Item* const found = item_of(step, item);
  if (found == nullptr || found->status == ItemStatus::reserved) return ItemStatus::untouched;  // nothing has begun
  return found->status;
}

bool RunProjection::is_under_way(std::uint32_t step) const {
  const core::StepState& state = run_->steps[step];
  if (state.status != StepStatus::active) return false;
  const bool has_begun = state.next > 0 && state.one.status != ItemStatus::reserved;
  return has_begun || state.map != nullptr || plan_->steps[step].kind != core::StepKind::call;
}

std::uint32_t RunProjection::kept_out(std::uint32_t step) const {
  const core::StepState& state = run_->steps[step];
  return state.circuit_open && core::is_final(state.status)
             ? state.items - state.succeeded - state.failed - state.canceled
             : 0;
}

bool RunProjection::is_kept_out(std::uint32_t step, std::uint32_t item) const {
  return kept_out(step) > 0 && status_of(step, item) == ItemStatus::untouched;
}

const WorkStory* RunProjection::story_of(std::uint32_t step, std::uint32_t item) const {
  const auto found = stories_.find({step, item});
  return found == stories_.end() ? nullptr : &found->second;
}

// ---- states ----------------------------------------

void RunProjection::apply(const Event& event) {
  const auto record = event::record_of(event, step_numbers_);
  if (!record) return;
  if (!concerns_one_item(event.type)) {
    core_->replay(*run_, *record);
    if (concerns_one_step(event.type)) return count_again(record->step);
    for (std::uint32_t step = 0; step < counts_.size(); ++step) count_again(step);
    return;
  }
  const auto standing = [&]() -> Counts {
    const core::Item* const item = item_of(record->step, record->item);
    if (item == nullptr) return {};
    return {.waiting = item->status == ItemStatus::waiting ? 1U : 0U, .dead_letters = item->dead_letter ? 1U : 0U};
  };
  const Counts before = standing();
  core_->replay(*run_, *record);
  const Counts after = standing();
  Counts& counts = counts_[record->step];
  counts.waiting += after.waiting - before.waiting;
  counts.dead_letters += after.dead_letters - before.dead_letters;
}

void RunProjection::count_again(std::uint32_t step) {
  counts_[step] = {};
  run_->steps[step].for_each_item([&](std::uint32_t, const core::Item& item) {
    counts_[step].waiting += item.status == ItemStatus::waiting ? 1 : 0;
    counts_[step].dead_letters += item.dead_letter ? 1 : 0;
  });
}

// ---- all of the run ----------------------------------------

void RunProjection::add(const Event& event) {
  note(event);
  if (event.type == EventType::reopened) {
    tell_reopened(event);
  } else if (const auto step = step_number(event.step); !step) {
    apply(event);
  } else if (event.type == EventType::revisited) {
    tell_revisited(event, *step);
  } else {
    apply(event);
    if (is_wanted(*step, event.item)) tell(event, *step);
    if (!concerns_one_item(event.type) && !concerns_one_step(event.type)) begin_anew(event);
  }
  last_time_ = event.time;
}

void RunProjection::stop_telling() { is_telling_ = false; }

void RunProjection::note(const Event& event) {
  if (!is_of_whole_run(event)) return;
  if (notes_.size() < notes_max) notes_.push_back(event);
  recoveries_ += event.type == EventType::recovered ? 1 : 0;
  if (event.type == EventType::cancel_requested)
    cancel_words_ = asker_words(event.request) + (event.text.empty() ? "" : ": " + text::safe_to_show(event.text));
  if (event.type == EventType::reopened) cancel_words_.clear();
  if (standstills_.size() >= notes_max) return;
  const auto pause = std::ranges::find_if(standstills_, [](const Standstill& one) { return !one.to; });
  switch (event.type) {
    case EventType::paused:
      standstills_.push_back({.kind = Standstill::Kind::paused, .from = event.time});
      break;
    case EventType::resumed:
    case EventType::cancel_requested:
    case EventType::ended:
      if (pause != standstills_.end()) pause->to = event.time;
      break;
    case EventType::recovered:
      standstills_.push_back({.kind = Standstill::Kind::gone, .from = last_time_, .to = event.time});
      break;
    case EventType::reopened:
      standstills_.push_back({.kind = Standstill::Kind::over, .from = last_time_, .to = event.time});
      break;
    default:
      break;
  }
}

// ---- stories ----------------------------------------

bool RunProjection::is_wanted(std::uint32_t step, std::uint32_t item) const {
  return !limits_.only || (limits_.only->step == step && limits_.only->item.value_or(item) == item);
}

void RunProjection::tell(const Event& event, std::uint32_t step) {
  if (event.type == EventType::reserved) return;  // nothing has begun
  totals_[step].last_event = event.time;
  switch (event.type) {
    case EventType::started:
      return tell_started(event, step);
    case EventType::completed:
      return tell_completed(event, step);
    case EventType::failed:
      return tell_failed(event, step);
    case EventType::retrying:
      return tell_retrying(event, step);
    case EventType::interrupted:
      return tell_interrupted(event, step);
    case EventType::skipped:
      if (event.attempt > 0) tell_skipped(event, step);
      return;
    case EventType::fallback:
      ++totals_[step].fallbacks;
      if (AttemptStory* const last = last_of(stories_[{step, event.item}])) last->next_way = way_of(step, event.item);
      return;
    case EventType::dropped:
      stories_[{step, event.item}].was_dropped = true;
      return;
    default:
      return;
  }
}

void RunProjection::tell_started(const Event& event, std::uint32_t step) {
  StepTotals& totals = totals_[step];
  ++totals.attempts;
  if (!totals.first_started) totals.first_started = event.time;
  WorkStory& story = stories_[{step, event.item}];
  ++story.started;
  AttemptStory* const last = last_of(story);
  const core::Item* const item = item_of(step, event.item);
  const bool begins = item != nullptr && !item->has_begun_before();
  if (!story.began || begins) story.began = event.time;
  story.skipped.reset();
  end_wait(story, step, event.time);
  story.wait_left = Duration{0};
  if (last != nullptr) {
    last->is_followed = true;
    if (!last->ended) last->ended = event.time;
    if (last->retrying != nullptr && !last->wait_ended) last->wait_ended = event.time;
  }
  AttemptStory* const attempt = add_attempt(story);
  if (attempt == nullptr) return;
  attempt->number = event.attempt;
  attempt->way = way_of(step, event.item);
  attempt->began = event.time;
}

void RunProjection::tell_completed(const Event& event, std::uint32_t step) {
  const auto found = stories_.try_emplace({step, event.item}).first;
  WorkStory& story = found->second;
  end_wait(story, step, event.time);
  totals_[step].rescued += story.has_failed ? 1 : 0;
  totals_[step].succeeded_after_retry += story.was_retried ? 1 : 0;
  totals_[step].helpful_retries += story.waits_since;
  story.total_elapsed = event.total_elapsed;
  AttemptStory* attempt = last_of(story);
  if (attempt == nullptr || attempt->end != AttemptEnd::none) {  // a wait or a signal has no attempts
    attempt = add_attempt(story);
    if (attempt != nullptr) attempt->number = event.attempt;
    if (attempt != nullptr && story.started == 0) attempt->began = WallTime{Duration{run_->steps[step].activated}};
  }
  if (attempt != nullptr) {
    attempt->end = AttemptEnd::succeeded;
    attempt->ended = event.time;
    if (limits_.keeps_unharmed) set_output(*attempt, event);
  }
  if (is_to_be_kept(story)) return;
  forget(step, story);
  stories_.erase(found);
}

void RunProjection::tell_failed(const Event& event, std::uint32_t step) {
  totals_[step].lost += event.lost ? 1 : 0;
  WorkStory& story = stories_[{step, event.item}];
  const bool was_begun = event.attempt > 0 && !story.waits_from;
  end_wait(story, step, event.time);
  if (!was_begun && story.waits_since > 0 && event.reason == StopReason::deadline) take_back_retry(story, step);
  story.has_failed = true;
  ++story.failures;
  if (!event.will_retry) story.total_elapsed = event.total_elapsed;
  if (!make_room(step, story)) {
    story.attempts.clear();
    return;
  }
  AttemptStory* attempt = last_of(story);
  if (attempt == nullptr || attempt->end != AttemptEnd::none) {  // before it could begin
    if (attempt != nullptr && attempt->retrying != nullptr && !attempt->wait_ended) attempt->wait_ended = event.time;
    attempt = add_attempt(story);
  }
  if (attempt == nullptr) return;
  attempt->number = event.attempt;
  attempt->way = way_of(step, event.item);
  attempt->ended = event.time;
  attempt->end = end_of(event);
  attempt->failed = std::make_unique<const Event>(event);
  const core::Item* const item = item_of(step, event.item);
  if (item != nullptr && item->trouble != nullptr) attempt->waited_before = Duration{item->trouble->waited};
  if (run_->cancel_requested) attempt->cancel_reason = run_->reason;
}

void RunProjection::tell_retrying(const Event& event, std::uint32_t step) {
  StepTotals& totals = totals_[step];
  ++totals.retries;
  WorkStory& story = stories_[{step, event.item}];
  story.waits_from = event.time;
  story.wait_left = event.delay;
  ++story.waits;
  ++story.waits_since;
  totals.retried += story.was_retried ? 0 : 1;
  story.was_retried = true;
  if (AttemptStory* const last = last_of(story); last != nullptr && last->failed != nullptr)
    last->retrying = std::make_unique<const Event>(event);
}

void RunProjection::tell_interrupted(const Event& event, std::uint32_t step) {
  WorkStory& story = stories_[{step, event.item}];
  end_wait(story, step, event.time);
  AttemptStory* const last = last_of(story);
  if (last == nullptr) return;
  if (last->end == AttemptEnd::none) {
    story.was_interrupted = true;
    last->end = AttemptEnd::interrupted;
    last->ended = event.time;
  } else if (last->retrying != nullptr && !last->wait_ended) {
    last->wait_ended = event.time;
    last->is_wait_interrupted = true;
  }
}

void RunProjection::tell_skipped(const Event& event, std::uint32_t step) {
  WorkStory& story = stories_[{step, event.item}];
  story.skipped = event.time;
  const bool was_planned = story.wait_left > Duration{0} || story.waits_from;
  end_wait(story, step, event.time);
  story.wait_left = Duration{0};
  if (was_planned) take_back_retry(story, step);
  AttemptStory* const last = last_of(story);
  if (last != nullptr && last->retrying != nullptr && !last->wait_ended) last->wait_ended = event.time;
}

// As much of it as is over: no more than was planned, for the engine may have been gone meanwhile.
void RunProjection::end_wait(WorkStory& story, std::uint32_t step, WallTime time) {
  if (!story.waits_from) return;
  const Duration passed = std::clamp(time - *story.waits_from, Duration{0}, std::max(story.wait_left, Duration{0}));
  totals_[step].waited = sum_of(totals_[step].waited, passed);
  story.wait_left -= passed;
  story.waits_from.reset();
}

// The attempt after the wait did not come.
void RunProjection::take_back_retry(WorkStory& story, std::uint32_t step) {
  --totals_[step].retries;
  --story.waits;
  if (--story.waits_since > 0) return;
  --totals_[step].retried;
  story.was_retried = false;
}

void RunProjection::tell_reopened(const Event& event) {
  std::vector<Place> failed;
  for (const auto& [place, story] : stories_) {
    if (status_of(place.first, place.second) == ItemStatus::failed) failed.push_back(place);
  }
  apply(event);
  for (const Place& place : failed) {
    if (status_of(place.first, place.second) == ItemStatus::failed) continue;
    if (AttemptStory* const last = last_of(stories_[place])) last->asked_again = event.time;
  }
  for (auto& [place, story] : stories_) {
    const bool goes_on_waiting =
        story.wait_left > Duration{0} && status_of(place.first, place.second) == ItemStatus::waiting;
    if (goes_on_waiting) story.waits_from = event.time;
  }
  begin_anew(event);
}

void RunProjection::tell_revisited(const Event& event, std::uint32_t target) {
  for (auto& [place, story] : stories_) {
    const core::StepPlan& plan = plan_->steps[place.first];
    const bool goes_back = plan.on_failure == OnFailure::revisit && plan.revisit == target;
    if (!goes_back || status_of(place.first, place.second) != ItemStatus::failed) continue;
    if (AttemptStory* const last = last_of(story)) last->went_back = event.step;
  }
  apply(event);
  totals_[target].last_event = event.time;
  begin_anew(event);
}

// Of what is untouched again: it has not failed, and nothing of it is under way.
void RunProjection::begin_anew(const Event& event) {
  for (auto at = stories_.begin(); at != stories_.end();) {
    const auto [step, item] = at->first;
    WorkStory& story = at->second;
    if (status_of(step, item) != ItemStatus::untouched) {
      ++at;
      continue;
    }
    end_wait(story, step, event.time);
    story.has_failed = story.was_retried = story.was_dropped = false;
    story.waits_since = 0;
    story.skipped.reset();
    if (AttemptStory* const last = last_of(story); last != nullptr && last->end == AttemptEnd::none) {
      last->end = AttemptEnd::interrupted;
      last->ended = event.time;
    }
    if (!is_to_be_kept(story)) forget(step, story);
    at = is_to_be_kept(story) ? std::next(at) : stories_.erase(at);
  }
}

// ---- how much of them is kept ----------------------------------------

// The attempt that later events speak of; nullptr: it is not kept.
AttemptStory* RunProjection::last_of(WorkStory& story) {
  return story.attempts.empty() || story.is_cut ? nullptr : &story.attempts.back();
}

std::string RunProjection::way_of(std::uint32_t step, std::uint32_t item) const {
  const core::Item* const found = item_of(step, item);
  if (found == nullptr || found->stage == core::stage::main) return "";
  return found->stage == core::stage::fallback ? "fallback" : "on_failure";
}

AttemptStory* RunProjection::add_attempt(WorkStory& story) {
  story.is_cut = story.is_cut || !is_telling_;
  if (story.is_cut) return nullptr;
  // The last that failed stays beside the one that is under way.
  const std::size_t others_max = story.is_short ? 1 : limits_.attempts_max;
  if (story.attempts.size() > others_max)
    story.attempts.erase(story.attempts.begin(), story.attempts.end() - static_cast<std::ptrdiff_t>(others_max));
  return &story.attempts.emplace_back();
}

// For work that has failed. False: there are too many, and of this one nothing is kept but that it failed.
bool RunProjection::make_room(std::uint32_t step, WorkStory& story) {
  if (story.is_kept) return true;
  Kept& of_step = kept_of_steps_[step];
  if (kept_.all >= limits_.stories_max && of_step.all >= stories_of_step_min) return false;
  ++kept_.all;
  ++of_step.all;
  story.is_kept = true;
  story.is_short = kept_.long_ones >= limits_.long_stories_max && of_step.long_ones >= stories_of_step_min;
  kept_.long_ones += story.is_short ? 0 : 1;
  of_step.long_ones += story.is_short ? 0 : 1;
  return true;
}

// Also after it has succeeded, or when it is to begin once more?
bool RunProjection::is_to_be_kept(const WorkStory& story) const {
  if (story.attempts.empty()) return false;
  const bool had_trouble = story.failures > 0 || story.was_interrupted;
  return limits_.keeps_unharmed || (limits_.keeps_recovered && had_trouble);
}

void RunProjection::forget(std::uint32_t step, WorkStory& story) {
  if (!story.is_kept) return;
  Kept& of_step = kept_of_steps_[step];
  --kept_.all;
  --of_step.all;
  kept_.long_ones -= story.is_short ? 0 : 1;
  of_step.long_ones -= story.is_short ? 0 : 1;
  story.is_kept = false;
}

}  // namespace reprise::observe
