// reprise runs: which runs there are, newest first.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/look/look_commands.hpp"
#include "cli/look/looking.hpp"
#include "cli/store_option.hpp"
#include "env/wall_clock.hpp"
#include "event/attributes.hpp"
#include "index/filter.hpp"
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
  if (run.parent) value.set("parent", to_string(*run.parent));
  event::set_attributes(value, run.attributes);
  return value;
}

// A run that is open although nobody works on it has been interrupted. Where nobody listens, one question is enough for all.
class Owners {
 public:
  explicit Owners(const runtime::Snapshot& snapshot) : snapshot_{snapshot} {}

  // As people are told it.
  std::string status_of(const RunInfo& run) {
    if (run.status != RunStatus::running) return std::string{name_of(run.status)};
    const auto known = statuses_.find(run.id);
    if (known != statuses_.end()) return known->second;
    return statuses_.emplace(run.id, work_on(run.id) ? "running" : "interrupted").first->second;
  }

 private:
  bool work_on(const RunId& run) {
    const auto shard = snapshot_.shard_of(run);
    if (!shard || std::ranges::find(deserted_, shard->slot) != deserted_.end()) return false;
    const auto answer = runtime::ask_owner(shard->path, {"ping", to_string(run)});
    if (!answer) deserted_.push_back(shard->slot);
    return answer && *answer;
  }

  const runtime::Snapshot& snapshot_;
  std::vector<std::uint32_t> deserted_;
  std::map<RunId, std::string> statuses_;
};

// Those that a filter means. What rows can answer is asked of the store; the state of a run is read only for what they cannot.
class Chosen {
 public:
  Chosen(runtime::Snapshot& snapshot, Owners& owners, const RunsOptions& options, index::Filter filter, WallTime now)
      : snapshot_{snapshot}, owners_{owners}, options_{options}, filter_{std::move(filter)}, now_{now} {}

  struct Page {
    std::vector<RunInfo> runs;
    bool is_all = true;
  };
  std::expected<Page, Error> newest() {
    constexpr std::size_t looked_at_once = 1000;
    RunQuery query = base_query();
    query.limit = filter_.empty() ? options_.limit : looked_at_once;
    Page chosen;
    std::string cursor;
    do {
      auto page = snapshot_.find(query, cursor);
      if (!page) return std::unexpected{page.error()};
      for (RunInfo& run : page->runs) {
        const auto wanted = is_wanted(run);
        if (!wanted) return std::unexpected{wanted.error()};
        if (*wanted && chosen.runs.size() == options_.limit) chosen.is_all = false;
        if (*wanted && chosen.is_all) chosen.runs.push_back(std::move(run));
        if (!chosen.is_all) return chosen;
      }
      cursor = page->cursor;
    } while (!cursor.empty() && chosen.runs.size() < options_.limit);
    chosen.is_all = cursor.empty();
    return chosen;
  }

 private:
  RunQuery base_query() const {
    RunQuery query{.status = options_.status, .name = options_.flow};
    query.details = options_.json || filter_.older || !filter_.run_labels.empty() || !filter_.parents.empty();
    if (query.name.empty() && filter_.flows.size() == 1) query.name = filter_.flows.front();
    if (options_.since) query.created_from = now_ - *options_.since;
    if (filter_.since)
      query.created_from = std::max(query.created_from.value_or(WallTime{}), filter_.since->before(now_));
    if (filter_.until) query.created_before = filter_.until->before(now_);
    return query;
  }

  std::expected<bool, Error> is_wanted(const RunInfo& run) {
    if (filter_.empty()) return true;
    const std::string parent = run.parent ? to_string(*run.parent) : "";
    const std::string status = filter_.statuses.empty() ? std::string{name_of(run.status)} : owners_.status_of(run);
    const index::RunSubject subject{.status = status,
                                    .flow = run.name,
                                    .key = run.key,
                                    .parent = parent,
                                    .created = run.created,
                                    .changed = run.changed,
                                    .labels = run.attributes.labels};
    if (!filter_.matches(subject, now_)) return false;
    return !filter_.looks_at_items() ? true : has_item(run.id);
  }

  // A run is meant when one of its work items is.
  std::expected<bool, Error> has_item(const RunId& run) {
    bool found = false;
    const auto read = snapshot_.each_item(run, [&](const runtime::ItemView& item) {
      const index::ItemSubject subject{
          .step = item.step,
          .item = item.has_items ? std::optional<std::uint64_t>{item.item} : std::nullopt,
          .attempts = item.attempts,
          .failure = item.failure,
          .failure_class = item.failure != nullptr ? item.failure->failure_class : std::nullopt};
      found = filter_.matches(subject);
      return !found;
    });
    if (!read && read.error().code != ErrorCode::not_found) return std::unexpected{read.error()};
    return found;
  }

  runtime::Snapshot& snapshot_;
  Owners& owners_;
  const RunsOptions& options_;
  index::Filter filter_;
  WallTime now_;
};

// What rows and states of runs do not say.
std::string beyond_runs(const index::Filter& filter) {
  if (!filter.fingerprints.empty())
    return "`runs` does not know fingerprints; `reprise events` and `why` have the failures";
  if (!filter.item_labels.empty())
    return fmt::format("`runs` finds labels of runs, and those have a value: label:{}=VALUE",
                       filter.item_labels.front());
  return "";
}

std::expected<index::Filter, int> filter_of(const RunsOptions& options) {
  auto filter = index::parse_filter(options.filter);
  if (!filter) {
    const index::FilterMistake& mistake = filter.error();
    return std::unexpected{usage_error(fmt::format("{}: {}{}", options.filter.at(mistake.word), mistake.message,
                                                   mistake.help.empty() ? "" : "; " + mistake.help))};
  }
  if (const std::string beyond = beyond_runs(*filter); !beyond.empty()) return std::unexpected{usage_error(beyond)};
  return *std::move(filter);
}

void print_table(const std::vector<RunInfo>& runs, WallTime now, Owners& owners) {
  std::vector<std::vector<std::string>> rows{{"RUN", "STATUS", "FLOW", "CREATED", "TOOK", "KEY"}};
  for (const RunInfo& run : runs) {
    const Duration took = std::max(run.ended.value_or(now) - run.created, Duration{0});
    rows.push_back({to_string(run.id), owners.status_of(run), preview(run.name, 60),
                    observe::date_and_time(std::chrono::floor<std::chrono::seconds>(run.created)),
                    text::rough_duration(took) + (run.ended ? "" : " so far"), preview(run.key, 60)});
  }
  print(columns(rows));
}

}  // namespace

int runs(const RunsOptions& options) {
  auto filter = filter_of(options);
  if (!filter) return filter.error();
  auto snapshot = open_snapshot(options.store);
  if (!snapshot) return snapshot.error();
  const WallTime now = wall_clock_now_exactly();
  Owners owners{*snapshot};
  const auto page = Chosen{*snapshot, owners, options, *std::move(filter), now}.newest();
  if (!page) return show_error(page.error());
  if (options.json) {
    for (const RunInfo& run : page->runs) print_json(json_of(run));
  } else if (page->runs.empty()) {
    print_error("No run matches.\n");
  } else {
    print_table(page->runs, now, owners);
  }
  if (!page->is_all) print_error(fmt::format("These are the newest {}; --limit shows more.\n", options.limit));
  return exit_code_of_list(*snapshot);
}

}  // namespace reprise::cli
