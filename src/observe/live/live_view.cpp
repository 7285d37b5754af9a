#include "observe/live/live_view.hpp"

#include <algorithm>
#include <tuple>

#include "observe/report/ending.hpp"
#include "observe/words.hpp"
#include "text/display.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {

using core::StepStatus;

namespace {

constexpr std::size_t waits_shown_max = 5;
constexpr std::uint32_t failures_told_max = 10;  // of the items of one step; the end tells about each attempt
constexpr std::size_t name_columns_max = 24;
constexpr std::size_t bar_columns_max = 30;

std::string repeated(std::string_view symbol, std::size_t times) {
  std::string text;
  while (times-- > 0) text += symbol;
  return text;
}

}  // namespace

LiveView::LiveView(std::shared_ptr<const core::Plan> plan, const Symbols& symbols, LabelOf labels)
    : plan_{plan},
      symbols_{symbols},
      reporter_{plan},
      printer_{steps_of(*plan)},
      labels_{std::move(labels)},
      steps_(plan->steps.size()) {}

std::string LiveView::name_of_step(std::uint32_t step) const { return text::safe_to_show(*plan_->steps[step].name); }

std::string LiveView::name_of_item(std::uint32_t step, std::uint32_t item) const {
  return labelled(work_name(name_of_step(step), item, true), labels_ ? labels_(*plan_->steps[step].name, item) : "");
}

std::string LiveView::attempt_words(std::uint32_t step, std::uint64_t attempt) const {
  return numbered_attempt(attempt, plan_->steps[step].policy.max_attempts);
}

// ---- events ----------------------------------------

void LiveView::recall(const Event& event) {
  count(event);
  if (const auto step = run().step_number(event.step)) steps_[*step].told = run().status_of(*step);
}

void LiveView::add(const Event& event) {
  count(event);
  // Only here: what was done before an interruption says nothing about how fast it goes now.
  const auto step = run().step_number(event.step);
  if (step && event.type == EventType::prepared) steps_[*step].rate.note(event.time, 0);
  tell(event);
}

void LiveView::count(const Event& event) {
  reporter_.add(event);
  if (event.type == EventType::reopened || event.type == EventType::revisited) {  // what was over may end once more
    for (std::uint32_t step = 0; step < steps_.size(); ++step) steps_[step].told = run().status_of(step);
  }
  const auto step = run().step_number(event.step);
  if (!step) return;
  if (event.type == EventType::progress) steps_[*step].progress = text::safe_to_show(event.text);
  if (event.type == EventType::started) steps_[*step].progress.clear();
}

void LiveView::tell(const Event& event) {
  if (const auto step = run().step_number(event.step)) {
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
  if (event.type == EventType::circuit_opened || event.type == EventType::circuit_half_opened ||
      event.type == EventType::circuit_closed || event.type == EventType::revisited ||
      (event.type == EventType::fallback && !is_of_item)) {  // of items there may be very many
    StyledLine line{{std::string{symbols_.again} + " ", Style::warning}, {name_of_step(step), Style::strong}, {" "}};
    const bool goes_back = event.type != EventType::revisited || !event.on_request;
    if (const auto trouble = reporter_.trouble_of(step, event.item); trouble && !is_of_item && goes_back) {
      line.push_back({attempt_words(step, trouble->attempts) + " failed: " + what_failed(trouble->failure)});
      line.push_back({std::string{symbols_.dot}, Style::dim});
    }
    line.push_back({printer_.words(event)});
    lines_.push_back(std::move(line));
    return;
  }
  const bool has_failed = event.type == EventType::failed && !event.will_retry && event.reason != StopReason::canceled;
  if (!has_failed || !is_of_item) return;
  const auto trouble = reporter_.trouble_of(step, event.item);
  const std::uint32_t told = steps_[step].failures_told++;
  if (!trouble || told >= failures_told_max) return;
  lines_.push_back(failure_line(name_of_item(step, event.item), *trouble, symbols_));
}

void LiveView::tell_end_of_step(const Event& event, std::uint32_t step) {
  const StepStatus status = run().status_of(step);
  Live& live = steps_[step];
  if (status == live.told) return;
  live.told = status;
  if (!core::is_final(status)) return;
  const StepReport report = reporter_.step(step);
  const std::string name = name_of_step(step);
  if (status == StepStatus::skipped || status == StepStatus::unreachable) {
    const char* const words = status == StepStatus::skipped ? " skipped" : " not reached: a step it needs has failed";
    lines_.push_back({{std::string{symbols_.pending} + " " + name + words, Style::dim}});
    return;
  }
  const bool has_failed = status == StepStatus::failed;
  if (!report.has_items) {
    if (!has_failed) {
      const std::string way = run().way_of(step, event.item);
      lines_.push_back(
          recovered_line(name, event.total_attempts, way.empty() ? report.retries : 0, event.total_elapsed, symbols_));
      if (!way.empty()) lines_.back().push_back({" " + std::string{symbols_.again} + " by its " + way, Style::warning});
    } else if (const auto trouble = reporter_.trouble_of(step, event.item)) {
      lines_.push_back(failure_line(name, *trouble, symbols_));
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
                        " recovered after " + counted_retries(report.helpful_retries),
                    Style::warning});
  }
  lines_.push_back(std::move(line));
}

std::vector<StyledLine> LiveView::take_lines() { return std::exchange(lines_, {}); }

// ---- how it stands ----------------------------------------

StyledLine LiveView::header(const RunReport& report, WallTime now) const {
  const auto over =
      std::ranges::count_if(report.steps, [](const StepReport& step) { return core::is_final(step.status); });
  StyledLine line{{std::string{symbols_.running} + " ", Style::strong},
                  {text::safe_to_show(plan_->name), Style::strong}};
  const auto add = [&](const std::string& words, Style style = Style::plain) {
    line.push_back({std::string{symbols_.dot}, Style::dim});
    line.push_back({words, style});
  };
  if (report.status == RunStatus::paused) add("paused", Style::warning);
  if (run().run().cancel_requested) add("stopping", Style::warning);
  add(std::to_string(over) + " of " + counted(report.steps.size(), "step"));
  if (report.created != WallTime{}) add(calm_duration(now - report.created));  // before its first event nobody knows
  if (report.retries() > 0) add(counted_retries(report.retries()), Style::warning);
  if (report.failed() > 0) add(std::to_string(report.failed()) + " failed", Style::bad);
  return line;
}

// The countdown must be seen: what failed gets what is left of the columns.
StyledLine LiveView::wait_line(const Wait& wait, std::uint32_t step, WallTime now, std::size_t columns) const {
  constexpr std::size_t what_columns_max = 60;
  constexpr std::size_t what_columns_min = 4;  // with less nobody could tell what it was
  const Span dot{std::string{symbols_.dot}, Style::dim};
  const Event& failed = *wait.after->failed;
  StyledLine line{{numbered_attempt(wait.after->number, plan_->steps[step].policy.max_attempts,
                                    {failed.used_attempts, failed.interrupted_attempts, failed.lost_attempts})},
                  dot};
  StyledLine countdown{
      {wait.due > now ? "retry in " + calm_duration(wait.due - now) : "retry when there is room", Style::warning}};
  if (wait.after->retrying->floored) countdown.push_back({" (Retry-After)", Style::dim});
  const std::string what = what_failed(wait.after->failed->failure.value_or(Failure{}));
  const std::size_t taken = columns_of(line) + columns_of(countdown) + text::columns_of(symbols_.dot);
  std::size_t room = std::min(what_columns_max, columns - std::min(columns, taken));
  if (text::columns_of(what) > room) room -= std::min(room, text::columns_of(symbols_.more));
  if (!what.empty() && room >= what_columns_min) {
    const std::string_view shown = text::clipped(what, room);
    line.push_back({std::string{shown} + (shown.size() < what.size() ? std::string{symbols_.more} : "")});
    line.push_back(dot);
  }
  std::ranges::move(countdown, std::back_inserter(line));
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
  const WorkStory* const story = report.has_items ? nullptr : run().story_of(step, 0);
  const auto wait = story != nullptr ? wait_of({step, 0}, *story) : std::nullopt;
  const bool is_waiting = wait.has_value();
  const std::string name{text::clipped(name_of_step(step), name_columns_max)};
  StyledLine line{
      {std::string{is_waiting ? symbols_.again : symbols_.running} + " ", is_waiting ? Style::warning : Style::plain},
      {text::padded(name, name_columns) + "  ", Style::strong}};
  StyledLine rest;
  if (plan.kind == core::StepKind::signal) {
    rest = {{"waits for the signal "}, {text::safe_to_show(plan.signal), Style::strong}};
  } else if (plan.kind == core::StepKind::wait) {
    rest = {{"waits"}};
  } else if (report.has_items) {
    rest = map_line(step, report, now, columns);
  } else if (is_waiting) {
    rest = wait_line(*wait, step, now, columns - std::min(columns, columns_of(line)));
  } else if (story != nullptr && !story->attempts.empty() && story->attempts.back().began) {
    const Live& live = steps_[step];
    const AttemptStory& last = story->attempts.back();
    rest = {{attempt_words(step, last.number)},
            {std::string{symbols_.dot}, Style::dim},
            {calm_duration(now - *last.began)}};
    if (!live.progress.empty()) {
      rest.push_back({std::string{symbols_.dot}, Style::dim});
      rest.push_back({live.progress});
    }
  }
  std::ranges::move(rest, std::back_inserter(line));
  return line;
}

std::optional<LiveView::Wait> LiveView::wait_of(const Place& place, const WorkStory& story) const {
  const core::Item* const item = run().item_of(place.first, place.second);
  if (item == nullptr || item->status != core::ItemStatus::waiting || story.attempts.empty()) return std::nullopt;
  const AttemptStory& last = story.attempts.back();
  const bool waits_for_retry = last.retrying != nullptr && !last.asked_again && last.next_way.empty();
  if (!waits_for_retry) return std::nullopt;
  return Wait{&last, WallTime{Duration{item->due}}};
}

// Those that have failed most often, and among them those that come next.
std::vector<std::pair<Place, LiveView::Wait>> LiveView::interesting_waits(std::size_t count) const {
  std::vector<std::pair<Place, Wait>> waits;
  for (const auto& [place, story] : run().stories()) {
    if (!run().has_items(place.first)) continue;
    if (const auto wait = wait_of(place, story)) waits.emplace_back(place, *wait);
  }
  const auto is_more_interesting = [](const auto& left, const auto& right) {
    return std::tuple{right.second.after->number, left.second.due, left.first} <
           std::tuple{left.second.after->number, right.second.due, right.first};
  };
  const auto end = waits.begin() + static_cast<std::ptrdiff_t>(std::min(count, waits.size()));
  std::ranges::partial_sort(waits, end, is_more_interesting);
  waits.erase(end, waits.end());
  return waits;
}

StyledLine LiveView::next_line(const std::vector<std::uint32_t>& steps) const {
  std::string names;
  for (const std::uint32_t step : steps) names += (names.empty() ? "" : ", ") + name_of_step(step);
  return {{std::string{symbols_.pending} + " then: " + names, Style::dim}};
}

std::vector<StyledLine> LiveView::frame(WallTime now, std::size_t columns, std::size_t rows) {
  if (run().run().has_ended() || rows == 0) return {};
  const RunReport report = reporter_.overview();
  std::vector<std::uint32_t> active;
  std::vector<std::uint32_t> pending;
  std::size_t name_columns = 0;
  for (std::uint32_t step = 0; step < report.steps.size(); ++step) {
    const bool is_active = run().is_under_way(step);
    if (is_active) name_columns = std::max(name_columns, text::columns_of(name_of_step(step)));
    if (is_active) active.push_back(step);
    if (!is_active && !core::is_final(report.steps[step].status)) pending.push_back(step);
  }
  name_columns = std::min(name_columns, name_columns_max);

  std::vector<StyledLine> lines{header(report, now)};
  const std::size_t next_rows = pending.empty() || rows < 3 ? 0 : 1;
  const std::size_t room = rows - 1 - next_rows;
  const std::size_t shown = active.size() <= room ? active.size() : room - std::min<std::size_t>(room, 1);
  const auto waits = interesting_waits(std::min(waits_shown_max, room - std::min(room, active.size())));
  for (std::size_t index = 0; index < shown; ++index) {
    const std::uint32_t step = active[index];
    lines.push_back(step_line(step, report.steps[step], now, name_columns, columns));
    for (const auto& [place, wait] : waits) {
      if (place.first != step) continue;
      StyledLine line{{"  " + std::string{symbols_.again} + " ", Style::warning},
                      {name_of_item(step, place.second) + " "}};
      const std::size_t left = columns - std::min(columns, columns_of(line));
      std::ranges::move(wait_line(wait, step, now, left), std::back_inserter(line));
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
