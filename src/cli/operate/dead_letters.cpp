// reprise dead-letters list and show: work that was given up and kept.
#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "observe/words.hpp"

namespace reprise::cli {
namespace {

using runtime::DeadLetter;

std::string why_kept(const DeadLetter& letter) {
  const std::string failed = observe::what_failed(letter.failure);
  return letter.skipped ? fmt::format("skipped: {}; before that: {}", observe::circuit_open_words, failed) : failed;
}

text::Value json_of(const DeadLetter& letter) {
  text::Value value = text::Value::map();
  value.set("run", to_string(letter.run));
  value.set("flow", letter.flow);
  value.set("step", letter.step);
  value.set("item", whole(letter.item));
  value.set("attempts", whole(letter.attempts));
  value.set("time", observe::date_and_time(letter.time));
  if (letter.reason != StopReason::none) value.set("reason", word(name_of(letter.reason)));
  if (letter.skipped) value.set("skipped", true);
  value.set("error", failure_value(letter.failure));
  return value;
}

void print_table(const std::vector<DeadLetter>& letters) {
  std::vector<std::vector<std::string>> rows{{"RUN", "FLOW", "WORK", "ATTEMPTS", "GIVEN UP", "FAILURE"}};
  for (const DeadLetter& letter : letters) {
    rows.push_back({to_string(letter.run), preview(letter.flow, 40),
                    preview(observe::work_name(letter.step, letter.item, letter.has_items), 60),
                    std::to_string(letter.attempts),
                    observe::date_and_time(std::chrono::floor<std::chrono::seconds>(letter.time)),
                    preview(why_kept(letter), 80)});
  }
  print(columns(rows));
}

// Each failed attempt of the item, in order.
std::expected<std::vector<Event>, Error> failures_of(Looked& looked, const DeadLetter& letter) {
  std::vector<Event> failures;
  const auto read = looked.reader->each_event(looked.id, [&](Event&& event) {
    if (event.type != EventType::failed || event.step != letter.step || event.item != letter.item) return true;
    if (event.failure) looked.reader->add_evidence(looked.id, *event.failure);
    failures.push_back(std::move(event));
    return true;
  });
  if (!read) return std::unexpected{read.error()};
  return failures;
}

void print_letter(const PlaceOptions& options, const DeadLetter& letter, const std::string& input,
                  const std::vector<Event>& failures) {
  const auto field = [](std::string_view name, std::string_view value) {
    print(fmt::format("{:<10}{}\n", name, value));
  };
  field("run", to_string(letter.run));
  field("flow", preview(letter.flow));
  field("work", preview(observe::work_name(letter.step, letter.item, letter.has_items)));
  field("given up", observe::date_and_time(letter.time));
  field("because", letter.skipped ? fmt::format("skipped: {}", observe::circuit_open_words)
                                  : std::string{observe::reason_words(letter.reason)});
  for (const Event& failure : failures) {
    field(fmt::format("attempt {}", failure.attempt),
          fmt::format("{} ({})", observe::what_failed(*failure.failure), observe::class_words(*failure.failure)));
  }
  if (!letter.failure.details.empty()) field("details", preview(letter.failure.details, 2000));
  if (!failures.empty() && failures.back().failure) {
    for (const std::string& line : observe::evidence_lines(*failures.back().failure)) print("  " + line + "\n");
  }
  field("input", preview(input, 2000));
  const std::string item = letter.has_items ? fmt::format(" --item {}", letter.item) : "";
  print_error(fmt::format("To try it again: {}\n", suggested(options.run.store, "retry", letter.run,
                                                             "--step " + quoted_place(letter.step, 0, false) + item)));
}

}  // namespace

int dead_letters_list(const DeadLettersOptions& options) {
  const RunOptions& run = options.of.run;
  auto snapshot = open_snapshot(run.store);
  if (!snapshot) return snapshot.error();
  std::optional<RunId> id;
  if (!run.run.empty()) {
    const auto found = snapshot->resolve(run.run);
    if (!found) return show_error(found.error());
    id = *found;
  }
  const auto letters =
      id ? snapshot->dead_letters_of(*id, options.limit + 1) : snapshot->dead_letters(options.limit + 1);
  if (!letters) return show_error(letters.error());
  std::vector<DeadLetter> shown = *letters;
  if (shown.size() > options.limit) shown.pop_back();
  if (run.json) {
    for (const DeadLetter& letter : shown) print_json(json_of(letter));
  } else if (shown.empty()) {
    print_error("There are no dead letters.\n");
  } else {
    print_table(shown);
  }
  if (letters->size() > shown.size())
    print_error(fmt::format("These are the first {}; --limit shows more.\n", options.limit));
  return exit_code_of_list(*snapshot);
}

int dead_letters_show(const PlaceOptions& options) {
  auto looked = look_at(options.run);
  if (!looked) return looked.error();
  const auto place = find_place(*looked, options.place);
  if (!place) return show_error(place.error());
  const auto letters = looked->reader->dead_letters_of(looked->id, SIZE_MAX);
  if (!letters) return show_error(letters.error());
  const std::string& step = looked->view.steps[(*place)->step].name;
  const std::uint32_t item = (*place)->item.value_or(0);
  for (const DeadLetter& letter : *letters) {
    if (letter.step != step || letter.item != item) continue;
    const auto input = looked->reader->item_input(looked->id, step, item);
    if (!input) return show_error(input.error());
    const auto failures = failures_of(*looked, letter);
    if (!failures) return show_error(failures.error());
    if (!options.run.json) {
      print_letter(options, letter, *input, *failures);
      return exit_done;
    }
    text::Value value = json_of(letter);
    value.set("input", *input);
    text::Value list = text::Value::list();
    for (const Event& failure : *failures) list.add(failure_value(*failure.failure));
    value.set("errors", std::move(list));
    print_json(value);
    return exit_done;
  }
  return show_error(
      {ErrorCode::not_found, fmt::format("{} is no dead letter; `{}` lists those there are",
                                         observe::work_name(step, item, looked->view.steps[(*place)->step].has_items),
                                         suggested(options.run.store, "dead-letters list", looked->id))});
}

}  // namespace reprise::cli
