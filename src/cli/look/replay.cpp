// reprise replay: the recorded story once more, without running or waiting, and whether it leads to what is recorded.
#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "observe/words.hpp"

namespace reprise::cli {
namespace {

void print_story(const observe::PlainPrinter& printer, const Event& event) {
  if (const std::string line = printer.line(event); !line.empty()) print(line + "\n");
}

text::Value state_value(const runtime::RunView& view) {
  text::Value value = text::Value::map();
  value.set("status", word(name_of(view.info.status)));
  text::Value steps = text::Value::list();
  for (const runtime::StepView& step : view.steps) {
    text::Value one = text::Value::map();
    one.set("step", step.name);
    one.set("state", word(core::name_of(step.status)));
    one.set("items", whole(step.items));
    one.set("done", whole(step.succeeded));
    one.set("failed", whole(step.failed));
    steps.add(std::move(one));
  }
  value.set("steps", std::move(steps));
  return value;
}

void print_states(const runtime::RunView& replayed) {
  std::vector<std::vector<std::string>> rows{{"STEP", "STATE", "ITEMS", "DONE", "FAILED"}};
  for (const runtime::StepView& step : replayed.steps) {
    rows.push_back({preview(step.name, 60), std::string{core::name_of(step.status)}, std::to_string(step.items),
                    std::to_string(step.succeeded), std::to_string(step.failed)});
  }
  print("\n" + columns(rows));
}

}  // namespace

int replay(const RunOptions& options) {
  auto looked = look_at(options);
  if (!looked) return looked.error();
  const observe::PlainPrinter printer = looked->printer();
  std::uint64_t events = 0;
  if (options.json) print(fmt::format("{{\"run\":\"{}\",\"story\":[", to_string(looked->id)));
  const auto read = looked->reader->each_event(looked->id, [&](Event event) {
    ++events;
    event.replayed = true;
    options.json ? print((events > 1 ? "," : "") + to_json(event)) : print_story(printer, event);
    return true;
  });
  if (!read) return show_error(read.error());
  const auto replayed = looked->reader->replay(looked->id);
  if (!replayed) return show_error(replayed.error());
  if (options.json) {
    print(fmt::format("],\"events\":{},\"same\":{},\"replayed\":{},\"recorded\":{}}}\n", events, replayed->is_same,
                      text::to_json(state_value(replayed->view)), text::to_json(state_value(looked->view))));
  } else {
    print_states(replayed->view);
    print(fmt::format("{} lead to: {}. {}\n", observe::counted(events, "event"), name_of(replayed->view.info.status),
                      replayed->is_same
                          ? "That is what is recorded."
                          : fmt::format("Recorded is another state ({}): the store was changed by somebody else, "
                                        "or this version decides differently.",
                                        name_of(looked->view.info.status))));
  }
  return replayed->is_same ? exit_done : exit_failed;
}

}  // namespace reprise::cli
