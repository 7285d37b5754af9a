// reprise replay --validate: runs the same document with the same parameters once more, in memory, and reports every difference.
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/look/looking.hpp"
#include "cli/run/run_commands.hpp"
#include "cli/run/watching.hpp"
#include "cli/store_option.hpp"
#include "exec/document/program.hpp"
#include "host/flow_plan.hpp"

namespace reprise::cli {
namespace {

// How one work item ended.
struct ItemEnd {
  std::string status = "not begun";
  std::uint64_t attempts = 0;
  std::string output;  // or its hash
  std::string error;

  bool operator==(const ItemEnd&) const = default;
};
using Ends = std::map<std::pair<std::string, std::uint32_t>, ItemEnd>;

void add(Ends& ends, const Event& event) {
  if (event.step.empty()) return;
  ItemEnd& end = ends[{event.step, event.item}];
  switch (event.type) {
    case EventType::completed:
      end = {"succeeded", event.total_attempts, event.output, {}};
      break;
    case EventType::failed:
      if (!event.will_retry) end = {"failed", event.total_attempts, {}, event.failure ? event.failure->message : ""};
      break;
    case EventType::skipped:
    case EventType::unreachable:
      end.status = name_of(event.type);
      break;
    default:
      break;
  }
}

std::string words(const ItemEnd& end) {
  std::string text = end.status;
  if (end.attempts > 0) text += fmt::format(" after {} attempt{}", end.attempts, end.attempts == 1 ? "" : "s");
  if (!end.error.empty()) text += ": " + preview(end.error, 80);
  if (end.status == "succeeded")
    text += ", output " + (end.output.empty() ? "empty" : "\"" + preview(end.output, 60) + "\"");
  return text;
}

struct Difference {
  Ends::key_type place;
  ItemEnd was;
  ItemEnd is;
};

std::vector<Difference> differences_between(const Ends& before, const Ends& now) {
  std::vector<Difference> differences;
  for (const auto& [place, end] : before) {
    const auto found = now.find(place);
    const ItemEnd again = found == now.end() ? ItemEnd{} : found->second;
    if (again != end) differences.push_back({place, end, again});
  }
  for (const auto& [place, end] : now) {
    if (!before.contains(place)) differences.push_back({place, {}, end});
  }
  return differences;
}

text::Value value_of(const ItemEnd& end) {
  text::Value value = text::Value::map();
  value.set("status", end.status);
  if (end.attempts > 0) value.set("attempts", whole(end.attempts));
  if (!end.output.empty()) value.set("output", end.output);
  if (!end.error.empty()) value.set("error", end.error);
  return value;
}

void print_as_json(const RunId& run, const std::vector<Difference>& differences) {
  text::Value list = text::Value::list();
  for (const Difference& difference : differences) {
    text::Value one = text::Value::map();
    one.set("step", difference.place.first);
    one.set("item", whole(difference.place.second));
    one.set("was", value_of(difference.was));
    one.set("is", value_of(difference.is));
    list.add(std::move(one));
  }
  text::Value value = text::Value::map();
  value.set("run", to_string(run));
  value.set("same", differences.empty());
  value.set("differences", std::move(list));
  print_json(value);
}

void print_as_text(const std::vector<Difference>& differences) {
  for (const auto& [place, was, is] : differences)
    print(fmt::format("{}[{}]: was {}; is {}\n", place.first, place.second, words(was), words(is)));
  const std::size_t count = differences.size();
  print(count == 0 ? "no difference\n" : fmt::format("{} difference{}\n", count, count == 1 ? "" : "s"));
}

}  // namespace

int validate_replay(const RunOptions& options) {
  auto looked = look_at(options);
  if (!looked) return looked.error();
  auto input = exec::decode_run_input(looked->view.input);
  if (!input) return usage_error("this run cannot be run again here: " + input.error());
  Ends before;
  const auto read = looked->reader->each_event(looked->id, [&](const Event& event) {
    add(before, event);
    return true;
  });
  if (!read) return show_error(read.error());

  const auto program = exec::load_program(*input);
  if (!program) return usage_error("this run cannot be run again here: " + program.error());
  auto session = RunSession::open({.store = "memory:", .progress = ProgressMode::plain, .only_trouble = true});
  if (!session) return session.error();
  const auto run = (*session)->submit(*program);
  if (!run) return run.error();
  const auto end = (*session)->follow(*run, std::make_shared<const core::Plan>(host::plan_of((*program)->flow)));
  if (!end) return end.error();
  if (end->signal != 0) return exit_code_of(*end);
  Ends now;
  const auto read_again = (*session)->each_event(*run, [&](const Event& event) {
    add(now, event);
    return true;
  });
  if (!read_again) return show_error(read_again.error());
  const std::vector<Difference> differences = differences_between(before, now);
  options.json ? print_as_json(looked->id, differences) : print_as_text(differences);
  return differences.empty() ? exit_done : exit_failed;
}

}  // namespace reprise::cli
