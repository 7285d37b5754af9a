// How a scenario is played and what its expectations mean.
#include "sim/scenario.hpp"

#include <algorithm>
#include <charconv>

#include "runtime/ids.hpp"
#include "sim/callers.hpp"
#include "sim/machine.hpp"
#include "sim/scenario_text.hpp"
#include "store/memory_store.hpp"
#include "text/duration.hpp"

namespace reprise::sim {
namespace {

using event::Record;
using runtime::Operation;

constexpr Time patience = 30 * 24 * 3600 * second;  // virtual, after the last command
constexpr Time tick = 3 * millisecond;              // how late a timer may be, and a little for the way

struct Mistake {
  std::size_t line;
  std::string what;
};

std::string told(Time time) { return text::format_duration(Duration{time}); }

class Play {
 public:
  explicit Play(ScenarioText scenario)
      : scenario_{std::move(scenario)},
        world_{1},
        model_{world_, pattern_compiler()},
        store_{world_, model_},
        executor_{world_, model_},
        machine_{world_, model_, store_, executor_, scenario_.program, scenario_.settings},
        callers_{world_, machine_, model_} {
    store_.give(store::make_memory_store(1));
    executor_.script = [this](const exec::Job& job) { return act(job); };
    executor_.threads = 64;
  }

  std::vector<Mistake> run();

 private:
  Act act(const exec::Job& job);
  void perform(const Command& command);
  void start(const Command& command);
  void operate(const Command& command, Operation operation, std::string text, std::size_t label_at);
  void check(const Expectation& expectation);
  void check_run(const Expectation& expectation, const std::string& label);
  void check_started(const Expectation& expectation, std::uint64_t run, std::optional<std::uint32_t> step);
  void check_count(const Expectation& expectation, std::size_t at, std::uint64_t found);
  void say(std::size_t line, std::string what) { mistakes_.push_back({line, std::move(what)}); }
  std::uint64_t count(std::uint64_t run, std::optional<std::uint32_t> step, EventType type,
                      bool lost_only = false) const;
  std::uint64_t duplicated() const;
  bool is_calm() const;

  ScenarioText scenario_;
  World world_;
  Model model_;
  FaultyStore store_;
  FaultyExecutor executor_;
  Machine machine_;
  Callers callers_;
  std::map<std::string, RunId> runs_;                                          // by label
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> failures_;  // given so far, by run and (step, item)
  std::vector<Mistake> mistakes_;
};

// ---- what happens ----------------------------------------

Act Play::act(const exec::Job& job) {
  const Part& part = scenario_.parts[job.handler];
  Act act{.takes = part.takes,
          .output = part.output,
          .hangs = part.what == Part::What::hangs,
          .again = part.again,
          .obeys = 0};
  std::uint32_t& given = failures_[{job.id.run, std::uint64_t{job.id.step} << 32U | job.id.item}];
  const bool fails = part.what == Part::What::fails || (part.what == Part::What::flaky && given < part.failures);
  if (fails) {
    act.failure = part.failure;
    ++given;
  }
  return act;
}

void Play::perform(const Command& command) {
  const std::string& verb = command.words[0];
  const auto word = [&](std::size_t index) {
    return index < command.words.size() ? command.words[index] : std::string{};
  };
  if (verb == "start") return start(command);
  if (verb == "crash") return machine_.crash();
  if (verb == "stop") return machine_.stop();
  if (verb == "restart") {
    if (!machine_.is_off()) return say(command.line, "the machine is on: crash or stop it first");
    return machine_.boot();
  }
  if (verb == "cancel") return operate(command, Operation::cancel, "asked by the scenario", 1);
  if (verb == "pause") return operate(command, Operation::pause, {}, 1);
  if (verb == "resume") return operate(command, Operation::resume, {}, 1);
  if (verb == "retry_failed") return operate(command, Operation::retry_failed, {}, 1);
  if (verb == "remove") return operate(command, Operation::remove, {}, 1);
  if (verb == "signal") return operate(command, Operation::signal, word(1), 2);
  if (verb == "clock" && word(1) == "back" && read_time(word(2))) return machine_.set_clock_back(*read_time(word(2)));
  if (verb == "disk" && word(1) == "full") {
    store_.is_full = true;
  } else if (verb == "disk" && word(1) == "ok") {
    store_.is_full = false;
  } else if (verb == "writes" && word(1) == "fail") {
    store_.faults.fails = 1000;
  } else if (verb == "writes" && word(1) == "unanswered") {
    store_.faults.unanswered = 1000;
  } else if (verb == "writes" && word(1) == "ok") {
    store_.faults = {};
  } else if (verb == "writes" && word(1) == "take" && read_time(word(2))) {
    store_.faults.exactly = *read_time(word(2));
  } else {
    say(command.line, "nobody knows how to \"" + verb + ' ' + word(1) + '"');
  }
}

// start [FLOW] [as LABEL] [delay TIME] [deadline TIME] [key KEY]
void Play::start(const Command& command) {
  Task task;
  std::string label;
  for (std::size_t index = 1; index < command.words.size(); ++index) {
    const std::string& word = command.words[index];
    const std::string next = index + 1 < command.words.size() ? command.words[index + 1] : std::string{};
    if (word == "as") {
      label = next;
    } else if (word == "key") {
      task.key = next;
    } else if (word == "delay" && read_time(next)) {
      task.delay = Duration{*read_time(next)};
    } else if (word == "deadline" && read_time(next)) {
      task.deadline = Duration{*read_time(next)};
    } else if (task.flow.empty()) {
      task.flow = word;
      continue;
    } else {
      return say(command.line, "a start has a flow, as LABEL, delay TIME, deadline TIME and key KEY");
    }
    ++index;
  }
  if (task.flow.empty()) task.flow = scenario_.program.flows[0].name;
  if (label.empty()) label = task.flow;
  if (std::ranges::find(scenario_.program.flows, task.flow, &Flow::name) == scenario_.program.flows.end()) {
    return say(command.line, "there is no flow \"" + task.flow + '"');
  }
  if (!machine_.is_up()) return say(command.line, "the machine is off: nobody can start anything");
  callers_.submit({task}, [this, label](const std::expected<void, Error>& answer, const std::vector<RunId>& ids) {
    if (answer) runs_.insert_or_assign(label, ids.front());
  });
}

void Play::operate(const Command& command, Operation operation, std::string text, std::size_t label_at) {
  const std::string label = label_at < command.words.size() ? command.words[label_at] : scenario_.program.flows[0].name;
  const auto found = runs_.find(label);
  if (found == runs_.end()) return say(command.line, "no run \"" + label + "\" has been accepted by now");
  callers_.operate(operation, found->second, std::move(text), {},
                   [this, line = command.line](const std::expected<void, Error>& answer) {
                     if (!answer && answer.error().code == ErrorCode::invalid)
                       say(line, "was refused: " + answer.error().message);
                   });
}

// ---- what is expected ----------------------------------------

std::uint64_t Play::count(std::uint64_t run, std::optional<std::uint32_t> step, EventType type, bool lost_only) const {
  std::uint64_t found = 0;
  model_.for_each_event(run, [&](const Record& record) {
    found += record.type == type && (!step || record.step == *step) && (!lost_only || record.lost) ? 1 : 0;
  });
  return found;
}

// Work items that were completed more than once.
std::uint64_t Play::duplicated() const {
  std::uint64_t found = 0;
  for (const auto& [number, story] : model_.stories()) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> completed;
    model_.for_each_event(number, [&](const Record& record) {
      if (record.type == EventType::revisited) completed.clear();
      if (record.type == EventType::completed) found += ++completed[{record.step, record.item}] > 1 ? 1 : 0;
    });
  }
  return found;
}

void Play::check_count(const Expectation& expectation, std::size_t at, std::uint64_t found) {
  const auto& words = expectation.words;
  std::uint64_t wanted = 0;
  const bool is_comparison = at + 2 == words.size() && (words[at] == "==" || words[at] == ">=" || words[at] == "<=");
  const auto [end, bad] =
      is_comparison ? std::from_chars(words[at + 1].data(), words[at + 1].data() + words[at + 1].size(), wanted)
                    : std::from_chars_result{nullptr, std::errc::invalid_argument};
  if (bad != std::errc{}) return say(expectation.line, "write a comparison with a whole number: == 3");
  const bool holds = words[at] == "==" ? found == wanted : words[at] == ">=" ? found >= wanted : found <= wanted;
  if (!holds)
    say(expectation.line,
        "expected " + words[at - 1] + ' ' + words[at] + ' ' + words[at + 1] + ", found " + std::to_string(found));
}

void Play::check(const Expectation& expectation) {
  const auto& words = expectation.words;
  if (words[0] == "lost") {
    std::uint64_t lost = 0;
    for (const auto& [label, id] : runs_) lost += model_.find(runtime::number_in(id)) == nullptr ? 1 : 0;
    return check_count(expectation, 1, lost);
  }
  if (words[0] == "duplicated") return check_count(expectation, 1, duplicated());
  if (words[0] == "runs") return check_count(expectation, 1, model_.stories().size());
  if (words[0] == "resident")
    return check_count(expectation, 1, machine_.is_off() ? 0 : machine_.loop()->core().resident());
  check_run(expectation, words[0]);
}

void Play::check_run(const Expectation& expectation, const std::string& label) {
  const auto& words = expectation.words;
  const std::string name = label.substr(0, label.find('.'));
  const auto found = runs_.find(name);
  if (words.size() < 2) return say(expectation.line, "expect what of \"" + label + "\"?");
  if (found == runs_.end()) {
    if (words[1] != "absent") say(expectation.line, "no run \"" + name + "\" was accepted");
    return;
  }
  const std::uint64_t run = runtime::number_in(found->second);
  const RunStory& story = *model_.find(run);
  std::optional<std::uint32_t> step;
  if (name != label) {
    const auto& steps = story.plan->steps;
    const auto at = std::ranges::find_if(
        steps, [&](const core::StepPlan& plan) { return *plan.name == label.substr(name.size() + 1); });
    if (at == steps.end())
      return say(expectation.line, "the flow has no step \"" + label.substr(name.size() + 1) + '"');
    step = static_cast<std::uint32_t>(at - steps.begin());
  }
  const std::string& what = words[1];
  if (what == "attempts") return check_count(expectation, 2, count(run, step, EventType::started));
  if (what == "lost" && words.size() > 2 && words[2] == "attempts")
    return check_count(expectation, 3, count(run, step, EventType::failed, true));
  if (what == "attempt") return check_started(expectation, run, step);
  if (what == "same" && words.size() == 4) {  // same as LABEL
    const auto other = runs_.find(words[3]);
    if (other == runs_.end() || other->second != found->second) say(expectation.line, "they are two runs");
    return;
  }
  if (what == "removed") {
    if (!story.removed) say(expectation.line, "the run was not removed");
    return;
  }
  if (what == "reason" && words.size() == 3) {
    StopReason reason = StopReason::none;
    model_.for_each_event(run, [&](const Record& record) {
      if (record.type == EventType::failed && (!step || record.step == *step)) reason = record.reason;
    });
    if (name_of(reason) != words[2])
      say(expectation.line, "expected reason " + words[2] + ", found " + std::string{name_of(reason)});
    return;
  }
  if (what == "ended" && words.size() == 4) {  // ended at TIME
    const Time at = story.last_time - birth;
    if (!story.ended || !read_time(words[3]) || std::abs(at - *read_time(words[3])) > tick) {
      say(expectation.line, story.ended ? "ended at " + told(at) : "has not ended");
    }
    return;
  }
  const RunStatus status = story.paused_at != 0 && !story.ended ? RunStatus::paused : story.status;
  if (words.size() != 2 ||
      (what != "running" && what != "paused" && what != "succeeded" && what != "failed" && what != "canceled")) {
    return say(expectation.line, "nobody knows what \"" + what + "\" means");
  }
  if (name_of(status) != what)
    say(expectation.line, "expected " + label + ' ' + what + ", found " + std::string{name_of(status)});
}

// attempt K started at|before|after TIME
void Play::check_started(const Expectation& expectation, std::uint64_t run, std::optional<std::uint32_t> step) {
  const auto& words = expectation.words;
  const auto when = words.size() == 6 && words[3] == "started" ? read_time(words[5]) : std::nullopt;
  if (!when) return say(expectation.line, "write: attempt 2 started at 9s");
  std::uint64_t nth = 0;
  std::optional<Time> found;
  model_.for_each_event(run, [&](const Record& record) {
    if (record.type != EventType::started || (step && record.step != *step)) return;
    if (std::to_string(++nth) == words[2]) found = record.time - birth;
  });
  if (!found) return say(expectation.line, "there was no attempt " + words[2]);
  const Time late = *found - *when;
  const bool holds = words[4] == "at"       ? late >= 0 && late <= tick
                     : words[4] == "before" ? late < 0
                                            : words[4] == "after" && late > 0;
  if (!holds) say(expectation.line, "attempt " + words[2] + " started at " + told(*found));
}

// ---- from the beginning to the end ----------------------------------------

bool Play::is_calm() const {
  if (!machine_.is_up() || !machine_.is_quiet()) return machine_.is_off();
  return std::ranges::all_of(model_.stories(), [&](const auto& entry) {
    return entry.second.ended || entry.second.removed || model_.waits_for_ever(entry.second);
  });
}

std::vector<Mistake> Play::run() {
  std::size_t line = 0;
  Time last = 0;
  for (const Command& command : scenario_.commands) {
    last = std::max(last, command.when);
    world_.at(birth + command.when, [this, &command, &line] {
      line = command.line;
      perform(command);
    });
  }
  for (const Expectation& expectation : scenario_.expectations) {
    if (!expectation.when) continue;
    last = std::max(last, *expectation.when);
    world_.at(birth + *expectation.when, [this, &expectation] { check(expectation); });
  }
  try {
    machine_.boot();
    while (!world_.is_over() && world_.next() <= birth + last + patience) {
      world_.run_next();
      if (world_.now() > birth + last && is_calm()) break;
    }
    if (machine_.is_up() && machine_.is_quiet()) {
      model_.compare(*machine_.loop());
      model_.check_books(*machine_.loop());
    }
    for (const Expectation& expectation : scenario_.expectations) {
      if (!expectation.when) check(expectation);
    }
  } catch (const Violation& violation) {
    say(line, std::string{"a promise was broken: "} + violation.what() + '\n' + model_.tell(violation.run(), 30));
  }
  return mistakes_;
}

}  // namespace

std::vector<std::string> run_scenario(std::string_view file_name, std::string_view text) {
  std::vector<std::string> told_mistakes;
  const auto tell = [&](std::size_t line, const std::string& what) {
    told_mistakes.push_back(std::string{file_name} + ':' + std::to_string(line) + ": " + what);
  };
  auto scenario = read_scenario(text);
  if (!scenario) {
    tell(scenario.error().line, scenario.error().what);
    return told_mistakes;
  }
  Play play{*std::move(scenario)};
  for (const Mistake& mistake : play.run()) tell(mistake.line, mistake.what);
  return told_mistakes;
}

}  // namespace reprise::sim
