// reprise failures: what has failed in a run, grouped by cause, and the commands that retry or drop a group.
#include <algorithm>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/look/failed_work.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "observe/report/failure_groups.hpp"
#include "observe/words.hpp"

namespace reprise::cli {
namespace {

using observe::FailureGroup;

constexpr std::size_t items_named = 8;
constexpr std::size_t fingerprint_digits = 12;  // enough to tell groups apart, and to be typed

std::string where(const FailureGroup& group) {
  return "fingerprint:" + group.fingerprint.substr(0, fingerprint_digits);
}

std::string items_in_words(const FailureGroup& group) {
  std::string words;
  for (std::size_t index = 0; index < std::min(group.items.size(), items_named); ++index) {
    words += fmt::format("{}{}", words.empty() ? "" : ", ",
                         observe::labelled(std::to_string(group.items[index]), group.labels[index]));
  }
  if (group.items.size() > items_named) words += fmt::format(" and {} more", group.items.size() - items_named);
  return words;
}

void print_group(const FailuresOptions& options, const Looked& looked, const FailedWork& work,
                 const FailureGroup& group) {
  const observe::StepReport& step = work.report.steps[group.step];
  const auto seconds = [](WallTime time) {
    return observe::date_and_time(std::chrono::floor<std::chrono::seconds>(time));
  };
  print(fmt::format("{} × {}: {} ({})\n", group.count, preview(step.name, 60),
                    observe::what_failed(group.sample.failure), observe::class_words(group.sample.failure)));
  print(fmt::format("  {}\n", group.count == 1
                                  ? "failed for good at " + seconds(group.first)
                                  : fmt::format("first {}, last {}", seconds(group.first), seconds(group.last))));
  if (step.has_items) print(fmt::format("  items: {}\n", items_in_words(group)));
  for (const std::string& line : observe::evidence_lines(group.sample.failure)) print("  " + line + "\n");
  const std::string place = quoted_place(step.name, group.sample.item, step.has_items);
  print(fmt::format("  why:   {}\n", suggested(options.run.store, "why", looked.id, place)));
  if (!is_open(looked.view.info.status))
    print(fmt::format("  retry: {}\n", suggested(options.run.store, "retry", looked.id, "--where " + where(group))));
  if (group.dead_letters > 0)
    print(fmt::format("  drop:  {}\n", suggested(options.run.store, "dead-letters drop", looked.id, where(group))));
  print("\n");
}

text::Value value_of(const FailedWork& work, const FailureGroup& group) {
  text::Value value = text::Value::map();
  value.set("fingerprint", group.fingerprint);
  value.set("step", work.report.steps[group.step].name);
  value.set("count", whole(group.count));
  value.set("dead_letters", whole(group.dead_letters));
  value.set("first", observe::date_and_time(group.first));
  value.set("last", observe::date_and_time(group.last));
  text::Value items = text::Value::list();
  for (std::size_t index = 0; index < group.items.size(); ++index) {
    text::Value item = text::Value::map();
    item.set("item", whole(group.items[index]));
    if (!group.labels[index].empty()) item.set("label", group.labels[index]);
    items.add(std::move(item));
  }
  value.set("items", std::move(items));
  value.set("error", failure_value(group.sample.failure));
  return value;
}

}  // namespace

int failures(const FailuresOptions& options) {
  // `reprise failures http:503` is about the last run.
  RunOptions run = options.run;
  std::vector<std::string> words = options.filter;
  if (index::is_filter_word(run.run)) words.push_back(std::exchange(run.run, {}));
  if (run.run.empty()) run.run = "@last";
  const auto filter = filter_in(words);
  if (!filter) return filter.error();
  auto looked = look_at(run);
  if (!looked) return looked.error();
  const auto work = failed_work_of(*looked);
  if (!work) return show_error(work.error());
  std::vector<FailedItem> meant = those_meant(*work, {}, *filter);
  for (FailedItem& each : meant) looked->reader->add_evidence(looked->id, each.trouble.failure);
  std::vector<observe::FailedPiece> pieces;
  for (const FailedItem& each : meant) pieces.push_back({&each.trouble, each.fingerprint});
  const auto groups = observe::failure_groups(pieces);
  if (options.run.json) {
    for (const FailureGroup& group : groups) print_json(value_of(*work, group));
    return exit_done;
  }
  if (groups.empty()) {
    print_error(words.empty() ? "Nothing has failed for good.\n" : "No failure matches.\n");
    return exit_done;
  }
  print(fmt::format("{} failed for {}\n\n", meant.size(),
                    groups.size() == 1 ? "one cause" : fmt::format("{} causes", groups.size())));
  for (const FailureGroup& group : groups) print_group(options, *looked, *work, group);
  return exit_done;
}

}  // namespace reprise::cli
