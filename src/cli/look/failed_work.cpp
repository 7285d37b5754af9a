#include "cli/look/failed_work.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/io.hpp"

namespace reprise::cli {
namespace {

// Every failure, each with its end only: how it came to it is told by `why`.
constexpr observe::StoryLimits ends_only{.stories_max = SIZE_MAX, .long_stories_max = 0};

std::string hexadecimal_fingerprint(const core::Run& run, const observe::TroubledItem& item) {
  const FailureClass failure_class = item.failure.failure_class.value_or(FailureClass::transient);
  return fmt::format("{:016x}", core::fingerprint_of(run, item.step, failure_class, item.failure));
}

bool is_at(const observe::RunReport& report, const observe::TroubledItem& item,
           const std::vector<runtime::StepItems>& places) {
  const auto holds = [&](const runtime::StepItems& place) {
    const bool is_meant = place.items.empty() || std::ranges::any_of(place.items, [&](const core::ItemRange& range) {
                            return range.from <= item.item && item.item <= range.to;
                          });
    return report.steps[item.step].name == place.step && is_meant;
  };
  return places.empty() || std::ranges::any_of(places, holds);
}

}  // namespace

std::expected<FailedWork, Error> failed_work_of(Looked& looked) {
  observe::RunReporter reporter{looked.view.plan, ends_only};
  const auto read = looked.reader->each_event(looked.id, [&](const Event& event) {
    reporter.add(event);
    return true;
  });
  if (!read) return std::unexpected{read.error()};
  FailedWork work{reporter.report(), {}};
  looked.labels().label(work.report);
  for (observe::TroubledItem& item : work.report.troubled) {
    if (item.status != core::ItemStatus::failed) continue;
    std::string fingerprint = hexadecimal_fingerprint(reporter.projection().run(), item);
    work.items.push_back({std::move(item), std::move(fingerprint)});
  }
  work.report.troubled.clear();
  return work;
}

std::expected<index::Filter, int> filter_in(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  auto filter = index::parse_filter(std::string_view{text});
  if (filter) return *std::move(filter);
  const index::FilterMistake& mistake = filter.error();
  return std::unexpected{
      usage_error(fmt::format("filter: {}{}", mistake.message, mistake.help.empty() ? "" : " (" + mistake.help + ")"))};
}

std::expected<runtime::StepItems, Error> parse_work_places(std::string_view text) {
  const std::size_t open = text.find('[');
  if (open == std::string_view::npos && !text.empty()) return runtime::StepItems{std::string{text}};
  const bool is_closed = open != std::string_view::npos && open > 0 && text.ends_with(']');
  auto items = is_closed ? core::item_ranges_in(text.substr(open + 1, text.size() - open - 2)) : std::nullopt;
  if (items) return runtime::StepItems{std::string{text.substr(0, open)}, *std::move(items)};
  return std::unexpected{
      Error{ErrorCode::invalid, fmt::format("\"{}\" is neither STEP nor STEP[ITEM]: write fetch, fetch[57] or "
                                            "fetch[17,20-30] (the first item is 0)",
                                            text)}};
}

std::vector<FailedItem> those_meant(const FailedWork& work, const std::vector<runtime::StepItems>& places,
                                    const index::Filter& filter) {
  std::vector<FailedItem> meant;
  for (const FailedItem& each : work.items) {
    const observe::TroubledItem& item = each.trouble;
    const observe::StepReport& step = work.report.steps[item.step];
    index::ItemSubject subject{.step = step.name,
                               .label = item.label,
                               .attempts = item.attempts,
                               .failure = &item.failure,
                               .failure_class = item.failure.failure_class,
                               .fingerprint = each.fingerprint};
    if (step.has_items) subject.item = item.item;
    if (is_at(work.report, item, places) && filter.matches(subject)) meant.push_back(each);
  }
  return meant;
}

runtime::WorkChoice choice_of(const observe::RunReport& report, const std::vector<FailedItem>& items) {
  std::vector<std::vector<std::uint32_t>> by_step(report.steps.size());
  for (const FailedItem& each : items) by_step[each.trouble.step].push_back(each.trouble.item);
  runtime::WorkChoice choice;
  for (std::size_t step = 0; step < by_step.size(); ++step) {
    if (!by_step[step].empty())
      choice.steps.push_back({report.steps[step].name, core::ranges_of(std::move(by_step[step]))});
  }
  return choice;
}

}  // namespace reprise::cli
