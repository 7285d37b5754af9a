#include "torture/checker.hpp"

#include <fstream>
#include <map>
#include <set>
#include <tuple>

#include <reprise/engine.hpp>

#include "torture/script.hpp"

namespace reprise::torture {
namespace {

constexpr std::size_t mistakes_max = 20;

struct Line {
  std::uint64_t attempt = 0;
  WallTime time{};
};
using ItemName = std::pair<std::string, std::uint32_t>;  // step, item
using Lines = std::map<ItemName, std::vector<Line>>;

// Every `start` line, by run and work item, in the order of the file.
std::map<std::string, Lines> read_log(const std::string& path) {
  std::map<std::string, Lines> log;
  std::ifstream file{path};
  std::string what;
  std::string run;
  std::string step;
  std::uint32_t item = 0;
  std::uint64_t attempt = 0;
  std::int64_t time = 0;
  while (file >> what >> run >> step >> item >> attempt >> time) {
    if (what == "start") log[run][{step, item}].push_back({attempt, WallTime{Duration{time}}});
  }
  return log;
}

// The story of one work item, as its events tell it.
struct ItemStory {
  std::uint64_t started = 0;  // attempts; also the number of the last one
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;  // by the handler's own word
  std::uint64_t lost = 0;
  std::uint64_t interrupted = 0;
  bool reserved = false;
  bool running = false;
  bool over = false;  // completed, or failed for good
  StopReason reason = StopReason::none;
  std::map<std::uint64_t, WallTime> start_times;  // by attempt: when it was recorded that it may begin
  std::map<std::uint64_t, WallTime> due_times;
};

class RunCheck {
 public:
  RunCheck(Findings& findings, const RunInfo& info, std::uint64_t number, const Lines& lines)
      : findings_{findings}, info_{info}, number_{number}, kind_{kind_of(number)}, lines_{lines} {}

  void check(const std::vector<Event>& events, const RunOutcome& outcome) {
    read(events);
    check_outcome(outcome);
    for (const auto& [name, story] : items_) check_item(name, story);
    for (const auto& [name, starts] : lines_) check_starts(name, starts);
  }

 private:
  void wrong(const std::string& what) {
    findings_.add("run " + to_string(info_.id) + " (" + std::string{name_of(kind_)} + " " + std::to_string(number_) +
                  "): " + what);
  }
  void wrong(const ItemName& item, const std::string& what) {
    wrong(item.first + "[" + std::to_string(item.second) + "]: " + what);
  }

  void read(const std::vector<Event>& events) {
    std::uint64_t sequence = 0;
    WallTime time{};
    WallTime wait_began{};
    for (const Event& event : events) {
      if (event.sequence != ++sequence) return wrong("event " + std::to_string(sequence) + " is missing");
      if (event.time < time) wrong("event " + std::to_string(sequence) + " is older than the one before it");
      time = event.time;
      if ((event.type == EventType::submitted) != (sequence == 1)) wrong("`submitted` is not its first event");
      if ((event.type == EventType::ended) != (sequence == events.size())) wrong("`ended` is not its last event");
      if (event.type == EventType::submitted) first_due_ = event.due;
      if (event.type == EventType::recovered) ++findings_.recovered;
      if (event.type == EventType::cancel_requested) canceled_ = true;
      if (event.step == "hours" && event.type == EventType::completed) wrong("its five hours are over");
      if (event.step == "before" && event.type == EventType::completed) wait_began = event.time;
      if (event.step == "wait" && event.time < wait_began + wait_of()) wrong("its wait ended early");
      if (event.step == "wait" || event.step == "approval" || event.step == "hours") continue;  // no handler
      if (!event.step.empty()) read(event, items_[{event.step, event.item}]);
    }
  }

  void read(const Event& event, ItemStory& story) {
    const ItemName name{event.step, event.item};
    if (event.type == EventType::interrupted && canceled_ && !story.running) return;  // it was waiting
    if (event.type == EventType::reserved) return reserve(name, event, story);
    if (event.type == EventType::failed && story.reserved && !story.running) {  // it may have begun, and nobody knows
      if (!event.lost || event.attempt != 1) wrong(name, "an attempt failed that was only reserved");
      story.started = event.attempt;
      story.running = true;
    }
    const bool ends_attempt =
        event.type == EventType::completed || event.type == EventType::failed || event.type == EventType::interrupted;
    if (ends_attempt && (!story.running || event.attempt != story.started))
      wrong(name, "an attempt ended that was not running");
    if (ends_attempt) story.running = false;
    switch (event.type) {
      case EventType::started:
        ++findings_.attempts;
        if (canceled_ && !story.reserved) wrong(name, "started after the run was cancelled");
        story.reserved = false;
        if (story.running) wrong(name, "two attempts at once");
        if (story.over) wrong(name, "started again after its end was recorded");
        if (event.attempt != story.started + 1)
          wrong(name, "attempt " + std::to_string(event.attempt) + " follows " + std::to_string(story.started));
        if (story.due_times.contains(event.attempt) && event.time < story.due_times[event.attempt])
          wrong(name, "recorded as started before it was due");
        story.started = event.attempt;
        story.running = true;
        story.start_times.try_emplace(event.attempt, event.time);  // what was reserved was recorded before it began
        break;
      case EventType::completed:
        ++story.completed;
        story.over = true;
        check_output(name, event);
        break;
      case EventType::failed:
        ++(event.lost ? story.lost : story.failed);
        findings_.lost += event.lost ? 1 : 0;
        story.over = !event.will_retry;
        story.reason = event.reason;
        if (canceled_ && event.will_retry) wrong(name, "is retried after the run was cancelled");
        if (!event.lost && !canceled_) check_verdict(name, event);
        break;
      case EventType::retrying:
        ++findings_.retries;
        story.due_times[event.next_attempt] = event.due;
        break;
      case EventType::interrupted:
        ++findings_.interrupted;
        ++story.interrupted;
        break;
      default:
        break;
    }
  }

  void reserve(const ItemName& name, const Event& event, ItemStory& story) {
    if (story.reserved != event.withdrawn) wrong(name, "reserved twice, or taken back without having been");
    if (story.started > 0 || story.over) wrong(name, "reserved after it had begun");
    if (canceled_ && !event.withdrawn) wrong(name, "reserved after the run was cancelled");
    story.reserved = !event.withdrawn;
    if (story.reserved) story.start_times[event.attempt] = event.time;
    if (!story.reserved) story.start_times.clear();
  }

  void check_output(const ItemName& name, const Event& event) {
    const std::string wanted = output_of(number_, name.first, name.second);
    const bool by_hash = event.output_size > event.output.size();
    if (by_hash ? event.output_size != wanted.size() : event.output != wanted)
      wrong(name, "its output is " + event.output);
    if (behaviour_of(number_, name.first, name.second, event.attempt).verdict != Verdict::succeed)
      wrong(name, "completed, and had to fail");
  }

  void check_verdict(const ItemName& name, const Event& event) {
    const Verdict verdict = behaviour_of(number_, name.first, name.second, event.attempt).verdict;
    if (verdict == Verdict::succeed)
      wrong(name, "failed, and had to succeed: " + (event.failure ? event.failure->message : ""));
    if (verdict == Verdict::refuse && event.will_retry) wrong(name, "is retried after a permanent failure");
  }

  void check_outcome(const RunOutcome& outcome) {
    if (kind_ == Kind::canceled) {
      if (outcome.status != RunStatus::canceled || !canceled_)
        wrong("is not cancelled, but " + std::string{name_of(outcome.status)});
      return;
    }
    const bool may_fail = kind_ == Kind::limited || kind_ == Kind::doomed || kind_ == Kind::refused;
    const bool must_fail = kind_ == Kind::doomed || kind_ == Kind::refused;
    if (outcome.status != RunStatus::succeeded && outcome.status != RunStatus::failed)
      return wrong("has not ended: " + std::string{name_of(outcome.status)});
    const bool failed = outcome.status == RunStatus::failed;
    if (failed ? !may_fail : must_fail)
      wrong("ended as " + std::string{name_of(outcome.status)} + ": " + outcome.failure.message);
    for (const std::string& step : steps_of(kind_)) {
      for (std::uint32_t item = 0; item < items_of(number_, step); ++item) {
        const ItemStory& story = items_[{step, item}];
        if (story.completed != (failed ? 0U : 1U))
          wrong({step, item}, "completed " + std::to_string(story.completed) + " times");
      }
    }
    if (!failed && kind_ != Kind::items && outcome.output != output_of(number_, steps_of(kind_).back(), 0))
      wrong("its output is " + outcome.output);
  }

  void check_item(const ItemName& name, const ItemStory& story) {
    if (story.running) wrong(name, "still runs");
    if (story.started != story.completed + story.failed + story.lost + story.interrupted)
      wrong(name, "not every attempt has one end");
    const std::optional<std::uint64_t> most = max_attempts_of(kind_);
    // What a kill or an orderly stop ended is neither a success nor a failure, and does not count.
    const std::uint64_t used = story.completed + story.failed;
    if (most && used > *most) wrong(name, std::to_string(used) + " attempts");
    if (!story.over || story.completed > 0 || canceled_) return;
    const StopReason reason = kind_ == Kind::refused ? StopReason::permanent : StopReason::attempts;
    if (story.reason != reason) wrong(name, "gave up because of " + std::string{name_of(story.reason)});
    if (reason == StopReason::attempts && used < *most)
      wrong(name, "gave up after " + std::to_string(used) + " attempts");
  }

  void check_starts(const ItemName& name, const std::vector<Line>& starts) {
    const auto found = items_.find(name);
    if (found == items_.end()) return wrong(name, "ran, and no event says so");
    const ItemStory& story = found->second;
    std::uint64_t before = 0;
    for (const Line& line : starts) {
      const std::string attempt = "attempt " + std::to_string(line.attempt);
      if (line.attempt <= before) wrong(name, attempt + " ran after attempt " + std::to_string(before));
      before = line.attempt;
      const auto recorded = story.start_times.find(line.attempt);
      if (recorded == story.start_times.end()) {
        wrong(name, attempt + " ran without being recorded");
      } else if (line.time < recorded->second) {
        wrong(name, attempt + " ran before it was recorded");
      }
      const auto due = story.due_times.find(line.attempt);
      if (due != story.due_times.end() && line.time < due->second) {
        wrong(name, attempt + " ran " + std::to_string((due->second - line.time).count()) + " ns before it was due");
      }
      if (line.time < first_due_) wrong(name, attempt + " ran before the run was due");
    }
  }

  Findings& findings_;
  const RunInfo& info_;
  std::uint64_t number_;
  Kind kind_;
  const Lines& lines_;
  std::map<ItemName, ItemStory> items_;
  WallTime first_due_{};
  bool canceled_ = false;
};

std::vector<RunInfo> all_runs(Engine& engine, Findings& findings) {
  std::vector<RunInfo> runs;
  std::string cursor;
  do {
    auto page = engine.find({.limit = 1000}, cursor);
    if (!page) {
      findings.add("find: " + page.error().message);
      return runs;
    }
    runs.insert(runs.end(), page->runs.begin(), page->runs.end());
    cursor = page->cursor;
  } while (!cursor.empty());
  return runs;
}

void check_accepted(const std::string& path, const std::map<std::string, std::string>& run_of_key, Findings& findings) {
  std::ifstream file{path};
  std::string key;
  std::string run;
  while (file >> key >> run) {
    const auto found = run_of_key.find(key);
    if (found == run_of_key.end()) {
      findings.add("key " + key + " was accepted as run " + run + " and is lost");
    } else if (found->second != run) {
      findings.add("key " + key + " was accepted as run " + run + " and as run " + found->second);
    }
  }
}

}  // namespace

void Findings::add(std::string mistake) {
  if (mistakes.size() < mistakes_max) {
    mistakes.push_back(std::move(mistake));
  } else {
    ++more;
  }
}

Findings check(const std::string& store, const std::string& log, const std::string& accepted) {
  Findings findings;
  auto engine = Engine::open({.store = "sqlite:" + store});
  if (!engine) {
    findings.add("the store cannot be opened: " + engine.error().message);
    return findings;
  }
  const std::map<std::string, Lines> all_lines = read_log(log);
  std::map<std::string, std::string> run_of_key;
  const Lines none;
  for (const RunInfo& info : all_runs(*engine, findings)) {
    ++findings.runs;
    const std::string id = to_string(info.id);
    const std::optional<std::uint64_t> number = number_of_key(info.key);
    if (!number) {
      findings.add("run " + id + " has the key \"" + info.key + "\"");
      continue;
    }
    if (!run_of_key.emplace(info.key, id).second)
      findings.add("key " + info.key + " has two runs: " + id + " and " + run_of_key[info.key]);
    const auto events = engine->events(info.id);
    const auto outcome = engine->result(info.id);
    if (!events || !outcome) {
      findings.add("run " + id + ": " + (!events ? events : std::unexpected{outcome.error()}).error().message);
      continue;
    }
    const auto lines = all_lines.find(id);
    RunCheck{findings, info, *number, lines != all_lines.end() ? lines->second : none}.check(*events, *outcome);
  }
  for (const auto& [run, lines] : all_lines) {
    const auto id = run_id_from(run);
    if (!id || !engine->info(*id)) findings.add("run " + run + " ran and is not in the store");
  }
  check_accepted(accepted, run_of_key, findings);
  return findings;
}

}  // namespace reprise::torture
