#include "cli/operate/meant_work.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/look/failed_work.hpp"
#include "cli/store_option.hpp"
#include "index/filter.hpp"
#include "observe/words.hpp"

namespace reprise::cli {
namespace {

std::expected<std::vector<core::ItemRange>, int> items_in(const std::vector<std::string>& texts) {
  std::vector<core::ItemRange> items;
  for (const std::string& text : texts) {
    const auto ranges = core::item_ranges_in(text);
    if (!ranges) {
      return std::unexpected{
          usage_error(fmt::format("--item: expected the number of an item or a range of them, such as 17 or 20-30 (the "
                                  "first is 0), found {}",
                                  text))};
    }
    items.insert(items.end(), ranges->begin(), ranges->end());
  }
  return items;
}

std::expected<std::vector<runtime::StepItems>, int> places_of_options(const WorkSelection& selection) {
  const auto items = items_in(selection.items);
  if (!items) return std::unexpected{items.error()};
  if (!items->empty() && selection.steps.empty())
    return std::unexpected{usage_error("--item needs --step: which step's item?")};
  if (!items->empty() && selection.steps.size() > 1)
    return std::unexpected{usage_error("--item is of one step, and --step names several; use --where 'step:… item:…'")};
  std::vector<runtime::StepItems> places;
  for (const std::string& step : selection.steps) places.push_back({step, *items});
  return places;
}

// The run has these steps and items.
int check_places(const Looked& looked, const std::vector<runtime::StepItems>& places) {
  for (const runtime::StepItems& place : places) {
    std::uint32_t highest = 0;
    for (const core::ItemRange& range : place.items) highest = std::max(highest, range.to);
    const std::string name = place.items.empty() ? place.step : observe::work_name(place.step, highest, true);
    if (const auto found = find_place(looked, name); !found) return show_error(found.error());
  }
  return exit_done;
}

bool has_items(const Looked& looked, const std::string& step) {
  const auto found = std::ranges::find(looked.view.steps, step, &runtime::StepView::name);
  return found != looked.view.steps.end() && found->has_items;
}

std::unexpected<int> nothing_there(std::string_view what, const std::string& help) {
  return std::unexpected{show_error({ErrorCode::not_found, fmt::format("{}{}", what, help)})};
}

}  // namespace

std::expected<runtime::WorkChoice, int> work_to_retry(const std::string& store, const RunId& run,
                                                      const WorkSelection& selection) {
  auto places = places_of_options(selection);
  if (!places) return std::unexpected{places.error()};
  if (selection.filter.empty()) return runtime::WorkChoice{*std::move(places)};
  const auto filter = filter_in(selection.filter);
  if (!filter) return std::unexpected{filter.error()};
  auto looked = look_at({.store = store, .run = to_string(run)});
  if (!looked) return std::unexpected{looked.error()};
  if (const int wrong = check_places(*looked, *places); wrong != exit_done) return std::unexpected{wrong};
  const auto work = failed_work_of(*looked);
  if (!work) return std::unexpected{show_error(work.error())};
  const auto meant = those_meant(*work, *places, *filter);
  if (meant.empty())
    return nothing_there("no failed work matches; failures by cause: ", suggested(store, "failures", run));
  print_error(fmt::format("retrying {} of {} failed\n", meant.size(), work->items.size()));
  return choice_of(work->report, meant);
}

std::expected<MeantLetters, int> dead_letters_meant(const std::string& store, const RunId& run,
                                                    const WorkSelection& selection, std::string_view verb) {
  auto looked = look_at({.store = store, .run = to_string(run)});
  if (!looked) return std::unexpected{looked.error()};
  auto places = places_of_options(selection);
  if (!places) return std::unexpected{places.error()};
  for (const std::string& word : selection.places) {
    auto place = parse_work_places(word);
    if (!place) return std::unexpected{show_error(place.error())};
    if (place->items.empty() && !selection.all && has_items(*looked, place->step))
      return std::unexpected{
          usage_error(fmt::format("{} is a whole step: add --all to {} all of its dead letters, or "
                                  "name items such as '{}[3]'",
                                  place->step, verb, place->step))};
    places->push_back(*std::move(place));
  }
  if (const int wrong = check_places(*looked, *places); wrong != exit_done) return std::unexpected{wrong};
  const auto filter = filter_in(selection.filter);
  if (!filter) return std::unexpected{filter.error()};
  auto work = failed_work_of(*looked);
  if (!work) return std::unexpected{show_error(work.error())};
  std::erase_if(work->items, [](const FailedItem& item) { return !item.trouble.dead_letter; });
  const auto meant = those_meant(*work, *places, *filter);
  if (meant.empty())
    return nothing_there("no dead letter matches; those there are: ", suggested(store, "dead-letters list", run));
  return MeantLetters{choice_of(work->report, meant), meant.size()};
}

std::expected<void, int> confirm(std::size_t count, std::string_view question, bool yes) {
  if (count <= 1 || yes) return {};
  if (isatty(STDIN_FILENO) != 1)
    return std::unexpected{usage_error(fmt::format("{} Add --yes to do so without a question.", question))};
  print_error(fmt::format("{} [y/N] ", question));
  char answer[16] = {};
  const bool is_yes = std::fgets(answer, sizeof answer, stdin) != nullptr && (answer[0] == 'y' || answer[0] == 'Y');
  if (is_yes) return {};
  print_error("nothing was done\n");
  return std::unexpected{int{exit_failed}};
}

}  // namespace reprise::cli
