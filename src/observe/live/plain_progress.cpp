#include "observe/live/plain_progress.hpp"

#include <algorithm>
#include <utility>

#include "observe/words.hpp"
#include "text/duration.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {

using namespace std::chrono_literals;
using core::StepStatus;

namespace {

constexpr std::uint32_t item_lines_max = 20;  // of one step
constexpr Duration first_beat = 10s;          // and later after a twentieth of the time that has passed
constexpr Duration silence_max = 60s;         // before a line says that work without items is still going on

}  // namespace

PlainProgress::PlainProgress(std::shared_ptr<const core::Plan> plan, bool only_trouble, LabelOf labels)
    : plan_{plan},
      only_trouble_{only_trouble},
      reporter_{plan},
      printer_{steps_of(*plan), std::move(labels)},
      items_(plan->steps.size()) {}

void PlainProgress::recall(const Event& event) { reporter_.add(event); }

// Items of a list that just work are not worth a line each.
bool PlainProgress::is_worth_a_line(const Event& event, bool has_items) {
  switch (event.type) {
    case EventType::reserved:
    case EventType::handed_over:
    case EventType::handed_back:
      return false;  // how an attempt works is its own affair
    case EventType::started:
    case EventType::progress:
      return !has_items && !only_trouble_;
    case EventType::completed:
      return !only_trouble_ && (!has_items || event.total_attempts > 1);
    case EventType::prepared:
      return has_items && !only_trouble_;
    case EventType::submitted:
    case EventType::ended:
      return !only_trouble_;
    case EventType::failed:
      return !only_trouble_ || event.will_retry;  // the ending tells what failed for good
    default:
      return true;
  }
}

// The last one that is told is followed by a word about the others.
bool PlainProgress::is_told_of_items(const Event& event, std::uint32_t step, std::vector<std::string>& lines) {
  const bool is_of_item = event.type != EventType::prepared && event.type != EventType::skipped &&
                          event.type != EventType::unreachable && event.type != EventType::revisited;
  if (!is_of_item) return true;
  std::uint32_t& told = items_[step].told;
  if (told >= item_lines_max) return false;
  if (++told == item_lines_max) {
    lines.push_back(
        clock_time(event.time) + " " + text::safe_to_show(event.step) +
        " further trouble with its items is counted, not told; `reprise events` and `reprise why` tell all of it");
  }
  return true;
}

// When the clock is set back, what waits for it goes back too: nobody should wait an hour for the next line.
void PlainProgress::mind_the_clock(WallTime now) {
  if (now < seen_ - first_beat) {  // events come a little late
    for (WallTime* const time : {&began_, &last_line_, &next_beat_}) *time += now - seen_;
  }
  seen_ = now;
}

std::vector<std::string> PlainProgress::add(const Event& event) {
  reporter_.add(event);
  mind_the_clock(event.time);
  if (began_ == WallTime{}) began_ = last_line_ = event.time;
  if (next_beat_ == WallTime{}) next_beat_ = event.time + first_beat;
  std::vector<std::string> lines;
  const auto step = reporter_.projection().step_number(event.step);
  const bool has_items = step && reporter_.projection().has_items(*step);
  if (has_items) {
    const core::StepState& state = reporter_.projection().step(*step);
    items_[*step].rate.note(event.time, std::uint64_t{state.succeeded} + state.failed);
  }
  if (is_worth_a_line(event, has_items)) {
    std::string line = printer_.line(event);
    std::vector<std::string> more;
    if (!line.empty() && (!has_items || is_told_of_items(event, *step, more))) {
      lines.push_back(std::move(line));
      std::ranges::move(more, std::back_inserter(lines));
      last_line_ = event.time;
    }
  }
  if (std::string line = end_of_map(event); !line.empty()) {
    lines.push_back(std::move(line));
    last_line_ = event.time;
  }
  if (event.type != EventType::ended) std::ranges::move(heartbeat(event.time), std::back_inserter(lines));
  return lines;
}

// fetch finished: 275 of 300 succeeded, 25 dead letters, in 9.1s
std::string PlainProgress::end_of_map(const Event& event) {
  const auto step = reporter_.projection().step_number(event.step);
  if (!step || !reporter_.projection().has_items(*step) || only_trouble_) return {};
  Items& items = items_[*step];
  const bool is_over = is_final(reporter_.projection().status_of(*step));
  if (!is_over || std::exchange(items.has_ended, is_over) == is_over) {
    items.has_ended = is_over;
    return {};
  }
  const StepReport report = reporter_.step(*step);
  std::string line = clock_time(event.time) + " " + text::safe_to_show(report.name) +
                     " finished: " + std::to_string(report.succeeded) + " of " + std::to_string(report.items) +
                     " succeeded";
  // The last one may have failed just now, and is kept by the next event.
  const bool keeps_letters = plan_->steps[*step].on_failure == OnFailure::dead_letter;
  if (report.failed > 0)
    line += ", " + (keeps_letters ? counted(report.failed, "dead letter") : std::to_string(report.failed) + " failed");
  if (report.first_started && event.time > *report.first_started)
    line += ", in " + text::rough_duration(event.time - *report.first_started);
  return line;
}

std::string PlainProgress::items_line(std::uint32_t step, const StepReport& report, WallTime now) {
  const std::uint64_t over = std::uint64_t{report.succeeded} + report.failed;
  std::string line = clock_time(now) + " " + text::safe_to_show(report.name) + " " + std::to_string(over) + " of " +
                     std::to_string(report.items) + " done";
  if (const auto speed = items_[step].rate.per_second(now, over)) {
    const std::uint64_t left = report.items - std::min<std::uint64_t>(over, report.items);
    line += " (" + rough_number(*speed) + "/s, ETA " + time_left(left, *speed) + ")";
  }
  const auto add = [&line](std::uint32_t count, const char* what) {
    if (count > 0) line += ", " + std::to_string(count) + " " + what;
  };
  add(report.running, "running");
  add(report.waiting, "retrying");
  add(report.failed, "failed");
  return line;
}

std::string PlainProgress::steps_line(const RunReport& report, WallTime now) const {
  std::string names;
  for (std::uint32_t number = 0; number < report.steps.size(); ++number) {
    if (!reporter_.projection().is_under_way(number)) continue;
    const StepReport& step = report.steps[number];
    names += (names.empty() ? "" : ", ") + text::safe_to_show(step.name) + (step.waiting > 0 ? " (waiting)" : "");
  }
  return names.empty() ? "" : clock_time(now) + " still under way: " + names;
}

std::vector<std::string> PlainProgress::heartbeat(WallTime now) {
  mind_the_clock(now);
  if (next_beat_ == WallTime{} || now < next_beat_) return {};
  if (only_trouble_ && now - last_line_ < silence_max) return {};  // but a log that is silent looks like one that hangs
  next_beat_ = now + std::max<Duration>(first_beat, (now - began_) / 20);
  std::vector<std::string> lines;
  const RunReport report = reporter_.overview();
  if (!is_open(report.status) || report.status == RunStatus::paused) return {};
  for (std::uint32_t step = 0; step < report.steps.size(); ++step) {
    const StepReport& of_step = report.steps[step];
    if (of_step.has_items && of_step.status == StepStatus::active) lines.push_back(items_line(step, of_step, now));
  }
  if (lines.empty() && now - last_line_ >= silence_max) {
    if (std::string line = steps_line(report, now); !line.empty()) lines.push_back(std::move(line));
  }
  if (!lines.empty()) last_line_ = now;
  return lines;
}

}  // namespace reprise::observe
