#include "observe/live_view.hpp"

#include <algorithm>
#include <tuple>

#include "observe/ending.hpp"
#include "observe/words.hpp"
#include "text/display.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {

using core::StepStatus;

namespace {

constexpr std::size_t waits_kept_max = 1'000;
constexpr std::size_t waits_shown_max = 5;
constexpr std::uint32_t failures_in_full_max = 2;   // of the items of one step, while it goes on
constexpr std::uint32_t failures_in_short_max = 8;  // after those
constexpr std::size_t name_columns_max = 24;
constexpr std::size_t bar_columns_max = 30;

bool is_over(StepStatus status) { return status != StepStatus::pending && status != StepStatus::active; }

std::string repeated(std::string_view symbol, std::size_t times) {
  std::string text;
  while (times-- > 0) text += symbol;
  return text;
}

}  // namespace

LiveView::LiveView(std::shared_ptr<const core::Plan> plan, const Symbols& symbols)
    : plan_{plan}, symbols_{symbols}, reporter_{plan}, printer_{steps_of(*plan)}, steps_(plan->steps.size()) {}

std::string LiveView::name_of_step(std::uint32_t step) const { return text::safe_to_show(*plan_->steps[step].name); }

std::string LiveView::attempt_words(std::uint32_t step, std::uint64_t attempt) const {
  return numbered_attempt(attempt, plan_->steps[step].policy.max_attempts);
}

// ---- events ----------------------------------------

void LiveView::recall(const Event& event) {
  count(event);
  if (const auto step = reporter_.step_number(event.step)) steps_[*step].told = reporter_.status_of(*step);
}

void LiveView::add(const Event& event) {
  count(event);
  // Only here: what was done before an interruption says nothing about how fast it goes now.
  const auto step = reporter_.step_number(event.step);
  if (step && event.type == EventType::prepared) steps_[*step].rate.note(event.time, 0);
  tell(event);
}

void LiveView::count(const Event& event) {
  reporter_.add(event);
  is_stopping_ = event.type == EventType::cancel_requested || (is_stopping_ && event.type != EventType::reopened);
  has_ended_ = event.type == EventType::ended || (has_ended_ && event.type != EventType::reopened);
  if (event.type == EventType::reopened || event.type == EventType::revisited) {  // what was over may end once more
    for (std::uint32_t step = 0; step < steps_.size(); ++step) steps_[step].told = reporter_.status_of(step);
  }
  const auto step = reporter_.step_number(event.step);
  if (!step) return;
  Live& live = steps_[*step];
  const Place place{*step, event.item};
  if (event.type == EventType::retrying) {
    if (waits_.size() < waits_kept_max || !plan_->steps[*step].for_each || waits_.contains(place))
      waits_[place] = {event.attempt, event.due, event.failure ? what_failed(*event.failure) : "", event.floored};
    return;
  }
  if (event.type == EventType::progress) {
    live.progress = text::safe_to_show(event.text);
    return;
  }
  waits_.erase(place);
  if (event.type == EventType::fallback)
    live.other_way = event.text.empty() ? "fallback" : text::safe_to_show(event.text);
  if (event.type == EventType::started) {
    live.attempt = event.attempt;
    live.started = event.time;
    live.progress.clear();
  }
}

void LiveView::tell(const Event& event) {
  if (const auto step = reporter_.step_number(event.step)) {
    tell_item(event, *step);
    tell_end_of_step(event, *step);
    return;
  }
  switch (event.type) {
    case EventType::recovered:
    case EventType::cancel_requested:
    case EventType::paused:
    case EventType::resumed:
    case EventType::signaled:
    case EventType::reopened:
      lines_.push_back({{std::string{symbols_.running} + " " + printer_.words(event), Style::dim}});
      return;
    default:
      return;  // the end has words of its own
  }
}

void LiveView::tell_item(const Event& event, std::uint32_t step) {
  const bool is_of_item = plan_->steps[step].for_each;
  if (event.type == EventType::circuit_opened || event.type == EventType::revisited ||
      (event.type == EventType::fallback && !is_of_item)) {  // of items there may be very many
    StyledLine line{{std::string{symbols_.again} + " ", Style::warning}, {name_of_step(step), Style::strong}, {" "}};
    if (const TroubledItem* const trouble = reporter_.trouble_of(step, event.item); trouble != nullptr && !is_of_item) {
      line.push_back({attempt_words(step, trouble->attempts) + " failed: " + what_failed(trouble->failure)});
      line.push_back({std::string{symbols_.dot}, Style::dim});
    }
    line.push_back({printer_.words(event)});
    lines_.push_back(std::move(line));
    return;
  }
  const bool has_failed = event.type == EventType::failed && !event.will_retry && event.reason != StopReason::canceled;
  if (!has_failed || !is_of_item) return;
  const TroubledItem* const trouble = reporter_.trouble_of(step, event.item);
  const std::uint32_t told = steps_[step].failures_told++;
  if (trouble == nullptr || told >= failures_in_full_max + failures_in_short_max) return;
  TroubledItem item = *trouble;
  if (told >= failures_in_full_max) item.tries.clear();
  std::ranges::move(failure_lines(work_name(name_of_step(step), event.item, true), item, symbols_),
                    std::back_inserter(lines_));
}

void LiveView::tell_end_of_step(const Event& event, std::uint32_t step) {
  const StepStatus status = reporter_.status_of(step);
  Live& live = steps_[step];
  if (status == live.told) return;
  live.told = status;
  if (!is_over(status)) return;
  const StepReport& report = reporter_.step(step);
  const std::string name = name_of_step(step);
  if (status == StepStatus::skipped || status == StepStatus::unreachable) {
    const char* const words = status == StepStatus::skipped ? " skipped" : " not reached: a step it needs has failed";
    lines_.push_back({{std::string{symbols_.pending} + " " + name + words, Style::dim}});
    return;
  }
  const bool has_failed = status == StepStatus::failed;
  if (!report.has_items) {
    if (!has_failed) {
      const bool has_other_way = report.fallbacks > 0;
      lines_.push_back(recovered_line(name, event.total_attempts, has_other_way ? 0 : report.retries,
                                      event.total_elapsed, symbols_));
      if (has_other_way)
        lines_.back().push_back({" " + std::string{symbols_.again} + " by its " + live.other_way, Style::warning});
    } else if (const TroubledItem* const trouble = reporter_.trouble_of(step, event.item)) {
      std::ranges::move(failure_lines(name, *trouble, symbols_), std::back_inserter(lines_));
    }
    return;
  }
  StyledLine line{
      {std::string{has_failed ? symbols_.failed : symbols_.done} + " ", has_failed ? Style::bad : Style::good},
      {name, Style::strong},
      {" " + std::to_string(report.succeeded) + " of " + counted(report.items, "item")}};
  if (report.failed > 0) line.push_back({", " + std::to_string(report.failed) + " failed", Style::bad});
  if (plan_->steps[step].on_failure == OnFailure::dead_letter && report.failed > 0)
    line.push_back({" and kept as " + std::string{report.failed == 1 ? "a dead letter" : "dead letters"}});
  if (report.first_started)
    line.push_back({" (" + calm_duration(event.time - *report.first_started) + ")", Style::dim});
  if (report.succeeded_after_retry > 0) {
    line.push_back({" " + std::string{symbols_.again} + " " + std::to_string(report.succeeded_after_retry) +
                        " recovered after " + counted_retries(report.retries),
                    Style::warning});
  }
  lines_.push_back(std::move(line));
}

std::vector<StyledLine> LiveView::take_lines() { return std::exchange(lines_, {}); }

// ---- how it stands ----------------------------------------

// Waits and signals have no attempts; they have begun when everything they need is there.
bool LiveView::is_waiting_for_outside(std::uint32_t step, const RunReport& report) const {
  const core::StepPlan& plan = plan_->steps[step];
  if (plan.verb == core::Verb::call || plan.runs_finally || report.steps[step].status != StepStatus::pending)
    return false;
  return std::ranges::all_of(
      plan.needs, [&](std::uint32_t needed) { return report.steps[needed].status == StepStatus::succeeded; });
}

StyledLine LiveView::header(const RunReport& report, WallTime now) const {
  const auto over = std::ranges::count_if(report.steps, [](const StepReport& step) { return is_over(step.status); });
  StyledLine line{{std::string{symbols_.running} + " ", Style::strong},
                  {text::safe_to_show(plan_->name), Style::strong}};
  const auto add = [&](const std::string& words, Style style = Style::plain) {
    line.push_back({std::string{symbols_.dot}, Style::dim});
    line.push_back({words, style});
  };
  if (report.status == RunStatus::paused) add("paused", Style::warning);
  if (is_stopping_) add("stopping", Style::warning);
  add(std::to_string(over) + " of " + counted(report.steps.size(), "step"));
  if (report.created != WallTime{}) add(calm_duration(now - report.created));  // before its first event nobody knows
  if (report.retries() > 0) add(counted_retries(report.retries()), Style::warning);
  if (report.failed() > 0) add(std::to_string(report.failed()) + " failed", Style::bad);
  return line;
}

StyledLine LiveView::wait_line(const Wait& wait, std::uint32_t step, WallTime now) const {
  const std::string dot{symbols_.dot};
  StyledLine line{{attempt_words(step, wait.attempt)}, {dot, Style::dim}};
  if (!wait.what.empty()) {
    // The countdown must be seen: what failed gives way.
    constexpr std::size_t what_columns_max = 60;
    const std::string_view shown = text::clipped(wait.what, what_columns_max);
    line.push_back({std::string{shown} + (shown.size() < wait.what.size() ? std::string{symbols_.more} : "")});
    line.push_back({dot, Style::dim});
  }
  line.push_back(
      {wait.due > now ? "retry in " + calm_duration(wait.due - now) : "retry when there is room", Style::warning});
  if (wait.floored) line.push_back({" (Retry-After)", Style::dim});
  return line;
}

StyledLine LiveView::map_line(std::uint32_t step, const StepReport& report, WallTime now, std::size_t columns) {
  const std::uint64_t over = std::uint64_t{report.succeeded} + report.failed;
  const std::size_t bar = std::clamp<std::size_t>(columns / 4, 6, bar_columns_max);
  const std::size_t full = report.items == 0 ? bar : static_cast<std::size_t>(over * bar / report.items);
  StyledLine line{{repeated(symbols_.bar, full), Style::good},
                  {repeated(symbols_.rest, bar - full), Style::dim},
                  {" " + std::to_string(over) + "/" + std::to_string(report.items)}};
  const auto add = [&](const std::string& words, Style style = Style::plain) {
    line.push_back({std::string{symbols_.dot}, Style::dim});
    line.push_back({words, style});
  };
  Rate& rate = steps_[step].rate;
  rate.note(now, over);
  if (const auto speed = rate.per_second(now, over); speed && over < report.items) {
    add(rough_number(*speed) + "/s");
    add("ETA " + time_left(report.items - over, *speed));
  }
  if (report.running > 0) add(std::to_string(report.running) + " running");
  if (report.waiting > 0) add(std::to_string(report.waiting) + " retrying", Style::warning);
  if (report.failed > 0) add(std::to_string(report.failed) + " failed", Style::bad);
  return line;
}

StyledLine LiveView::step_line(std::uint32_t step, const StepReport& report, WallTime now, std::size_t name_columns,
                               std::size_t columns) {
  const core::StepPlan& plan = plan_->steps[step];
  const auto wait = report.has_items ? waits_.end() : waits_.find({step, 0});
  const bool is_waiting = wait != waits_.end();
  const std::string name{text::clipped(name_of_step(step), name_columns_max)};
  StyledLine line{
      {std::string{is_waiting ? symbols_.again : symbols_.running} + " ", is_waiting ? Style::warning : Style::plain},
      {text::padded(name, name_columns) + "  ", Style::strong}};
  StyledLine rest;
  if (plan.verb == core::Verb::signal) {
    rest = {{"waits for the signal "}, {text::safe_to_show(plan.signal), Style::strong}};
  } else if (plan.verb == core::Verb::wait) {
    rest = {{"waits"}};
  } else if (report.has_items) {
    rest = map_line(step, report, now, columns);
  } else if (is_waiting) {
    rest = wait_line(wait->second, step, now);
  } else if (const Live& live = steps_[step]; live.attempt > 0) {
    rest = {{attempt_words(step, live.attempt)},
            {std::string{symbols_.dot}, Style::dim},
            {calm_duration(now - live.started)}};
    if (!live.progress.empty()) {
      rest.push_back({std::string{symbols_.dot}, Style::dim});
      rest.push_back({live.progress});
    }
  }
  std::ranges::move(rest, std::back_inserter(line));
  return line;
}

// Those that have failed most often, and among them those that come next.
std::vector<LiveView::Place> LiveView::interesting_waits(std::size_t count) const {
  std::vector<Place> places;
  for (const auto& [place, wait] : waits_) {
    if (plan_->steps[place.first].for_each) places.push_back(place);
  }
  const auto is_more_interesting = [this](const Place& left, const Place& right) {
    const Wait& one = waits_.at(left);
    const Wait& other = waits_.at(right);
    return std::tuple{other.attempt, one.due, left} < std::tuple{one.attempt, other.due, right};
  };
  const auto end = places.begin() + static_cast<std::ptrdiff_t>(std::min(count, places.size()));
  std::ranges::partial_sort(places, end, is_more_interesting);
  places.erase(end, places.end());
  return places;
}

StyledLine LiveView::next_line(const std::vector<std::uint32_t>& steps) const {
  std::string names;
  for (const std::uint32_t step : steps) names += (names.empty() ? "" : ", ") + name_of_step(step);
  return {{std::string{symbols_.pending} + " then: " + names, Style::dim}};
}

std::vector<StyledLine> LiveView::frame(WallTime now, std::size_t columns, std::size_t rows) {
  if (has_ended_ || rows == 0) return {};
  const RunReport report = reporter_.overview();
  std::vector<std::uint32_t> active;
  std::vector<std::uint32_t> pending;
  std::size_t name_columns = 0;
  for (std::uint32_t step = 0; step < report.steps.size(); ++step) {
    const bool is_active = report.steps[step].status == StepStatus::active || is_waiting_for_outside(step, report);
    if (is_active) name_columns = std::max(name_columns, text::columns_of(name_of_step(step)));
    if (is_active) active.push_back(step);
    if (!is_active && report.steps[step].status == StepStatus::pending) pending.push_back(step);
  }
  name_columns = std::min(name_columns, name_columns_max);

  std::vector<StyledLine> lines{header(report, now)};
  const std::size_t next_rows = pending.empty() || rows < 3 ? 0 : 1;
  const std::size_t room = rows - 1 - next_rows;
  const std::size_t shown = active.size() <= room ? active.size() : room - std::min<std::size_t>(room, 1);
  const std::vector<Place> waits = interesting_waits(std::min(waits_shown_max, room - std::min(room, active.size())));
  for (std::size_t index = 0; index < shown; ++index) {
    const std::uint32_t step = active[index];
    lines.push_back(step_line(step, report.steps[step], now, name_columns, columns));
    for (const Place& place : waits) {
      if (place.first != step) continue;
      StyledLine line{{"  " + std::string{symbols_.again} + " ", Style::warning},
                      {work_name(name_of_step(step), place.second, true) + " "}};
      std::ranges::move(wait_line(waits_.at(place), step, now), std::back_inserter(line));
      lines.push_back(std::move(line));
    }
  }
  if (shown < active.size() && room > 0)
    lines.push_back({{"  and " + counted(active.size() - shown, "more step") + " under way", Style::dim}});
  if (next_rows > 0) lines.push_back(next_line(pending));
  for (StyledLine& line : lines) line = clipped(line, columns, symbols_.more);
  return lines;
}

}  // namespace reprise::observe
