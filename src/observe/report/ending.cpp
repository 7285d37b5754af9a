#include "observe/report/ending.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "observe/words.hpp"
#include "text/display.hpp"
#include "text/duration.hpp"
#include "text/place.hpp"
#include "text/utf8.hpp"

namespace reprise::observe {
namespace {

using core::ItemStatus;

// A sign and a blank, or nothing for those who want no signs.
Span sign(std::string_view symbol, Style style) { return {symbol.empty() ? "" : std::string{symbol} + " ", style}; }

std::string name_of_work(const RunReport& report, const TroubledItem& item) {
  const StepReport& step = report.steps[item.step];
  const bool is_uncounted = item.attempts == 0 && step.items <= 1;  // it was never known which items there are
  return labelled(work_name(text::safe_to_show(step.name), item.item, step.has_items && !is_uncounted), item.label);
}

std::string then_words(const FailedAttempt& attempt, const TroubledItem& item) {
  const bool is_last = attempt.attempt >= item.attempts;
  if (attempt.wait && !(is_last && item.skipped)) {
    return *attempt.wait == Duration{0}
               ? "tried again at once"
               : "waited " + text::rough_duration(*attempt.wait) + (attempt.floored ? " (Retry-After)" : "");
  }
  if (is_last && item.skipped) return "skipped";
  return is_last && item.status == ItemStatus::failed ? "gave up" : "";
}

std::vector<StyledLine> attempts_table(const TroubledItem& item) {
  constexpr std::size_t columns = 4;
  constexpr std::size_t what = 2;
  constexpr std::size_t what_columns_max = 72;  // the others line up as far as that
  std::vector<std::array<std::string, columns>> rows{{"attempt", "took", "what", "then"}};
  for (const FailedAttempt& attempt : item.tries) {
    rows.push_back({attempt.attempt == 0 ? "-" : std::to_string(attempt.attempt), calm_duration(attempt.took),
                    what_failed(attempt.failure) + " (" + class_words(attempt.failure) + ")",
                    then_words(attempt, item)});
  }
  std::array<std::size_t, columns> widths{};
  for (const auto& row : rows) {
    for (std::size_t cell = 0; cell < columns; ++cell)
      widths[cell] = std::max(widths[cell], text::columns_of(row[cell]));
  }
  widths[what] = std::min(widths[what], what_columns_max);
  std::vector<StyledLine> lines;
  for (const auto& row : rows) {
    const bool is_heading = lines.empty();
    const std::string numbers = std::string(4 + widths[0] - text::columns_of(row[0]), ' ') + row[0] + "  " +
                                std::string(widths[1] - text::columns_of(row[1]), ' ') + row[1] + "  ";
    StyledLine line{{numbers, Style::dim}};
    line.push_back({row[3].empty() ? row[what] : text::padded(row[what], widths[what]) + "  ",
                    is_heading ? Style::dim : Style::plain});
    if (!row[3].empty()) line.push_back({row[3], Style::dim});
    lines.push_back(std::move(line));
  }
  return lines;
}

// "exhausted all 3 attempts", "gave up after 1 attempt"; why stands behind it unless it says so itself.
std::string gave_up_words(const TroubledItem& item) {
  if (item.status == ItemStatus::canceled) return "was stopped after " + counted(item.attempts, "attempt");
  if (item.skipped) return "was skipped after " + counted(item.attempts, "attempt");
  if (item.attempts == 0) return "failed before its first attempt";
  if (item.reason == StopReason::attempts && item.attempts > 1)
    return "exhausted all " + counted(item.attempts, "attempt");
  return "gave up after " + counted(item.attempts, "attempt");
}

StyledLine gave_up_line(const std::string& work, const TroubledItem& item, const Symbols& symbols) {
  StyledLine line{sign(symbols.failed, Style::bad), {work, Style::strong}, {" " + gave_up_words(item)}};
  if (item.began != WallTime{}) line.push_back({" (" + calm_duration(item.time - item.began) + ")", Style::dim});
  const bool says_it_already = item.reason == StopReason::none || item.reason == StopReason::attempts;
  if (!says_it_already)
    line.push_back({": " + std::string{item.skipped ? circuit_open_words : reason_words(item.reason)}});
  if (item.dead_letter) line.push_back({", kept as a dead letter"});
  return line;
}

void add_log_tail(std::vector<StyledLine>& lines, const LogTail& words, const Symbols& symbols) {
  if (words.path.empty()) return;
  lines.push_back({{"    its final output, from " + text::safe_to_show(words.path) + ":", Style::dim}});
  for (const std::string& line : words.lines)
    lines.push_back({{"    " + std::string{symbols.quote} + " ", Style::dim}, {text::safe_to_show(line)}});
}

StyledLine first_line(const RunId& run, const RunReport& report, const Symbols& symbols) {
  const bool has_succeeded = report.status == RunStatus::succeeded;
  const std::string_view symbol = has_succeeded ? symbols.done : symbols.failed;
  std::string words = "run " + to_string(run) + " " + std::string{name_of(report.status)};
  if (report.ended) words += " in " + text::rough_duration(*report.ended - report.created);
  if (report.reason == StopReason::deadline) words += ", " + std::string{reason_words(report.reason)};
  words += ": " + counted(report.steps.size(), "step") + ", " + counted(report.attempts(), "attempt") + ", " +
           counted_retries(report.retries());
  return {sign(symbol, has_succeeded ? Style::good : Style::bad), {std::move(words), Style::strong}};
}

// What a success passes over: " with 12 dead letters (of 300 items)".
std::string exceptions_of(const RunReport& report) {
  std::uint64_t dead_letters = 0;
  std::uint64_t items = 0;
  for (const StepReport& step : report.steps) {
    dead_letters += step.dead_letters;
    items += step.dead_letters > 0 ? step.items : 0;
  }
  if (dead_letters > 0) return " with " + counted(dead_letters, "dead letter") + " (of " + counted(items, "item") + ")";
  return report.failed() > 0 ? " with " + counted(report.failed(), "failure") : "";
}

}  // namespace

std::vector<TroubledItem> failures_of(const RunReport& report) {
  struct Ranked {
    bool is_tolerated;    // the step as a whole has not failed
    bool is_skipped;      // another item is the reason
    std::size_t of_step;  // the how manieth of its step
    std::size_t in_report;
  };
  std::vector<Ranked> ranked;
  std::map<std::uint32_t, std::size_t> seen;
  for (std::size_t index = 0; index < report.troubled.size(); ++index) {
    const TroubledItem& item = report.troubled[index];
    if (item.status != ItemStatus::failed) continue;
    ranked.push_back({report.steps[item.step].status != core::StepStatus::failed, item.skipped, seen[item.step]++, index});
  }
  std::ranges::sort(ranked, {}, [](const Ranked& one) {
    return std::tuple{one.is_tolerated, one.is_skipped, one.of_step > 0, one.in_report};
  });
  std::vector<TroubledItem> failures;
  for (const Ranked& one : ranked) failures.push_back(report.troubled[one.in_report]);
  return failures;
}

StyledLine recovered_line(const std::string& work, std::uint64_t attempts, std::uint64_t retries, Duration elapsed,
                          const Symbols& symbols) {
  StyledLine line{sign(symbols.done, Style::good), {work, Style::strong}};
  if (attempts > 1) line.push_back({" completed after " + counted(attempts, "attempt")});
  if (attempts > 0) line.push_back({" (" + calm_duration(elapsed) + ")", Style::dim});
  if (retries > 0) {
    const std::string recovered = std::string{symbols.again} + " recovered after " + counted_retries(retries);
    line.push_back({" " + recovered, Style::warning});
  }
  return line;
}

StyledLine failure_line(const std::string& work, const TroubledItem& item, const Symbols& symbols) {
  StyledLine line = gave_up_line(work, item, symbols);
  line.push_back({": " + what_failed(item.failure) + " (" + class_words(item.failure) + ")"});
  return line;
}

std::vector<StyledLine> statistics_of(const RunReport& report) {
  const std::uint64_t retried = report.sum(&StepReport::retried);
  if (retried == 0) return {};
  const std::uint64_t well = report.sum(&StepReport::succeeded_after_retry);
  const std::uint64_t in_vain = report.sum(&StepReport::failed_after_retries);
  const auto row = [](const std::string& name, const std::string& value) -> StyledLine {
    return {{text::padded("  " + name, 28), Style::dim}, {value}};
  };
  return {{{"retry statistics", Style::strong}},
          row("work with retries", std::to_string(retried)),
          row("succeeded after retry", std::to_string(well) + " (" + percent(well, retried) + ")"),
          row("failed after all retries", std::to_string(in_vain) + " (" + percent(in_vain, retried) + ")"),
          row("total retries", std::to_string(report.retries())),
          row("average per retried item",
              rough_number(static_cast<double>(report.retries()) / static_cast<double>(retried))),
          row("time spent waiting", text::rough_duration(report.waited()))};
}

std::string verdict_of(const RunReport& report) {
  if (report.status == RunStatus::canceled) {
    if (report.reason == StopReason::deadline) return "cancelled: " + std::string{reason_words(report.reason)};
    return "cancelled" + text::shorten(report.cancel_words, message_characters_max);
  }
  if (report.status == RunStatus::succeeded) return "succeeded" + exceptions_of(report);
  const std::vector<TroubledItem> failures = failures_of(report);
  if (!failures.empty()) {
    const TroubledItem& first = failures.front();
    return "failed: " + name_of_work(report, first) + " " + gave_up_words(first) + ": " + what_failed(first.failure);
  }
  return report.reason == StopReason::none ? "failed" : "failed: " + std::string{reason_words(report.reason)};
}

std::vector<StyledLine> ending_of(const RunId& run, const RunReport& report, const std::vector<LogTail>& words,
                                  const std::vector<NextCommand>& next, const Symbols& symbols, EndingOf what) {
  std::vector<StyledLine> lines;
  const auto add = [&lines](std::vector<StyledLine> more) { std::ranges::move(more, std::back_inserter(lines)); };
  const std::vector<TroubledItem> failures = failures_of(report);
  const auto add_next = [&] {
    std::size_t widest = 0;
    for (const NextCommand& command : next) widest = std::max(widest, command.purpose.size());
    for (const NextCommand& command : next)
      add({{{"  " + text::padded(command.purpose + ":", widest + 2), Style::dim}, {command.command}}});
  };
  if (what == EndingOf::command) {  // its attempts were told as they came, and its output went past
    if (failures.empty()) {
      add({first_line(run, report, symbols)});
    } else {
      add({failure_line(name_of_work(report, failures.front()), failures.front(), symbols)});
    }
    add_next();
    return lines;
  }
  const std::size_t named = std::min(failures.size(), failures_named_max);
  for (std::size_t index = 0; index < named; ++index) {
    const TroubledItem& item = failures[index];
    const std::string work = name_of_work(report, item);
    if (index >= failures_with_attempts_max) {
      add({failure_line(work, item, symbols)});
      continue;
    }
    add({gave_up_line(work, item, symbols)});
    add(item.tries.empty() ? std::vector<StyledLine>{} : attempts_table(item));
    if (index < words.size()) add_log_tail(lines, words[index], symbols);
  }
  const std::uint64_t failed = report.failed();
  if (failed > named) add({{{"  and " + std::to_string(failed - named) + " more that failed"}}});
  for (const StepReport& step : report.steps) {
    if (step.kept_out > 0)
      add({{{text::safe_to_show(step.name), Style::strong},
            {": " + counted(step.kept_out, "item") + " skipped: " + std::string{circuit_open_words}}}});
  }
  const auto leave_room = [&lines] {
    if (!lines.empty()) lines.emplace_back();
  };
  for (const StepReport& step : report.steps) {
    const bool is_empty = step.has_items && step.items == 0 && step.status == core::StepStatus::succeeded;
    if (is_empty)
      add({{{"warning: ", Style::warning},
            {text::safe_to_show(step.name) + " had nothing to do: its list, or what was selected from it, is empty"}}});
  }
  leave_room();
  if (auto statistics = statistics_of(report); !statistics.empty()) {
    add(std::move(statistics));
    leave_room();
  }
  add({first_line(run, report, symbols)});
  add_next();
  const bool is_good = report.status == RunStatus::succeeded;
  add({{sign(is_good ? symbols.done : symbols.failed, is_good ? Style::good : Style::bad),
        {verdict_of(report), Style::strong}}});
  return lines;
}

}  // namespace reprise::observe
