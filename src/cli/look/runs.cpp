// reprise runs: which runs there are, newest first.
#include <algorithm>

#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "env/wall_clock.hpp"
#include "observe/words.hpp"
#include "runtime/control.hpp"
#include "text/duration.hpp"

namespace reprise::cli {
namespace {

text::Value json_of(const RunInfo& run) {
  text::Value value = text::Value::map();
  value.set("run", to_string(run.id));
  value.set("flow", run.name);
  value.set("status", word(name_of(run.status)));
  value.set("created", observe::date_and_time(run.created));
  if (run.ended) {
    value.set("ended", observe::date_and_time(*run.ended));
    value.set("duration_ms", text::milliseconds(std::max(*run.ended - run.created, Duration{0})));
  }
  if (!run.key.empty()) value.set("key", run.key);
  return value;
}

// A run that is open although nobody works on it has been interrupted. Where nobody listens, one question is enough for all.
class Owners {
 public:
  explicit Owners(const runtime::Snapshot& snapshot) : snapshot_{snapshot} {}

  bool work_on(const RunId& run) {
    const auto shard = snapshot_.shard_of(run);
    if (!shard || std::ranges::find(deserted_, shard->slot) != deserted_.end()) return false;
    const auto answer = runtime::ask_owner(shard->path, {"ping", to_string(run)});
    if (!answer) deserted_.push_back(shard->slot);
    return answer && *answer;
  }

 private:
  const runtime::Snapshot& snapshot_;
  std::vector<std::uint32_t> deserted_;
};

void print_table(const std::vector<RunInfo>& runs, WallTime now, Owners owners) {
  std::vector<std::vector<std::string>> rows{{"RUN", "STATUS", "FLOW", "CREATED", "TOOK", "KEY"}};
  for (const RunInfo& run : runs) {
    const Duration took = std::max(run.ended.value_or(now) - run.created, Duration{0});
    rows.push_back(
        {to_string(run.id),
         run.status == RunStatus::running && !owners.work_on(run.id) ? "interrupted" : std::string{name_of(run.status)},
         preview(run.name, 60), observe::date_and_time(std::chrono::floor<std::chrono::seconds>(run.created)),
         text::rough_duration(took) + (run.ended ? "" : " so far"), preview(run.key, 60)});
  }
  print(columns(rows));
}

}  // namespace

int runs(const RunsOptions& options) {
  auto snapshot = open_snapshot(options.store);
  if (!snapshot) return snapshot.error();
  const WallTime now = wall_clock_now_exactly();
  RunQuery query{.status = options.status, .name = options.flow, .limit = options.limit};
  if (options.since) query.created_from = now - *options.since;
  const auto page = snapshot->find(query);
  if (!page) return show_error(page.error());
  if (options.json) {
    for (const RunInfo& run : page->runs) print_json(json_of(run));
  } else if (page->runs.empty()) {
    print_error("No run matches.\n");
  } else {
    print_table(page->runs, now, Owners{*snapshot});
  }
  if (!page->cursor.empty()) print_error(fmt::format("These are the newest {}; --limit shows more.\n", options.limit));
  return exit_code_of_list(*snapshot);
}

}  // namespace reprise::cli
