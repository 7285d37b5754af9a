#include "cli/watching.hpp"

#include <unistd.h>
#include <algorithm>

#include <csignal>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/looking.hpp"
#include "cli/store_option.hpp"
#include "exec/log_path.hpp"
#include "observe/plain_printer.hpp"
#include "observe/run_report.hpp"
#include "observe/words.hpp"
#include "runtime/engine_access.hpp"
#include "runtime/snapshot.hpp"
#include "text/duration.hpp"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

// What other processes may ask of the one that owns the store.
class Operator {
 public:
  explicit Operator(Engine& engine) : engine_{engine} {}

  std::expected<void, Error> operator()(const runtime::ControlRequest& request) {
    if (request.operation == "ping") return {};
    const auto run = run_id_from(request.run);
    if (!run) return std::unexpected{Error{ErrorCode::invalid, "this is not the id of a run"}};
    if (request.operation == "cancel") return engine_.cancel(*run, request.text);
    if (request.operation == "pause") return pause(*run);
    if (request.operation == "resume") return resume(*run);
    if (request.operation == "signal") return engine_.signal(*run, request.text, request.payload);
    return std::unexpected{Error{ErrorCode::invalid, "unknown operation \"" + request.operation + "\""}};
  }

 private:
  std::expected<void, Error> pause(const RunId& run) {
    auto paused = engine_.pause(run);
    if (paused) paused_.insert(run);
    return paused;
  }

  // Only what was paused while it ran here: other runs would be open again, with nobody who works on them.
  std::expected<void, Error> resume(const RunId& run) {
    if (!paused_.contains(run)) {
      return std::unexpected{
          Error{ErrorCode::store_locked,
                fmt::format("process {} owns the store and works on another run; when that has ended, "
                            "this one can be resumed",
                            getpid())}};
    }
    auto resumed = engine_.resume(run);
    if (resumed) paused_.erase(run);
    return resumed;
  }

  Engine& engine_;
  std::set<RunId> paused_;
};

// Items of a list that just work are not worth a line each.
bool is_worth_a_line(const Event& event, bool has_items, bool only_trouble) {
  switch (event.type) {
    case EventType::started:
    case EventType::progress:
      return !has_items && !only_trouble;
    case EventType::completed:
      return !only_trouble && (!has_items || event.total_attempts > 1);
    case EventType::prepared:
      return has_items && !only_trouble;
    case EventType::submitted:
    case EventType::ended:
      return !only_trouble;
    default:
      return true;
  }
}

observe::StepLookup lookup_in(std::shared_ptr<const core::Plan> plan) {
  return [plan = std::move(plan)](std::string_view name) -> observe::PrintedStep {
    for (const core::StepPlan& step : plan->steps) {
      if (*step.name == name) return {step.policy.max_attempts, step.for_each};
    }
    return {};
  };
}

}  // namespace

std::expected<std::unique_ptr<RunSession>, int> RunSession::open(const WatchOptions& options, bool stderr_through) {
  std::unique_ptr<RunSession> session{new RunSession};
  std::signal(SIGPIPE, SIG_IGN);  // whoever stops reading the progress must not end the run
  session->options_ = options;
  session->store_ = store_url(options.store);
  const std::string path = store_path(session->store_);
  std::error_code problem;
  if (path.empty()) {
    std::string scratch = (fs::temp_directory_path(problem) / "reprise-XXXXXX").string();
    if (mkdtemp(scratch.data()) == nullptr) return std::unexpected{usage_error("cannot make a temporary folder")};
    session->scratch_ = session->folder_ = scratch;
  } else {
    const fs::path folder = fs::absolute(store_folder(session->store_), problem);
    fs::create_directories(folder, problem);
    session->folder_ = folder.lexically_normal().string();
  }
  auto host = runtime::FlowHost::open(
      {.store = session->store_, .store_folder = session->folder_, .stderr_through = stderr_through});
  if (!host) return std::unexpected{show_error(host.error())};
  session->host_ = *std::move(host);
  if (!path.empty()) {
    Engine& engine = session->host_->engine();
    session->control_ =
        runtime::ControlServer::listen(path, [asked = std::make_shared<Operator>(engine)](
                                                 const runtime::ControlRequest& request) { return (*asked)(request); });
  }
  return session;
}

RunSession::~RunSession() {
  interrupts_.stop();  // its handler asks the host
  control_.reset();
  host_.reset();
  std::error_code ignored;
  if (!scratch_.empty()) fs::remove_all(scratch_, ignored);
}

void RunSession::interrupted(const RunId& run, int signal) {
  if (signal_.exchange(signal) != 0) {
    host_->kill_all();
    return;
  }
  if (options_.progress != ProgressMode::quiet)
    print_error("stopping: nothing new starts, what runs is asked to end (again to kill it)\n");
  static_cast<void>(host_->engine().cancel(run, fmt::format("interrupted by {}", signal_name(signal))));
}

void RunSession::show_progress(const RunId& run, std::uint64_t after) {
  Events feed = host_->engine().subscribe({.run = run, .after = after, .buffer = 65'536});
  const observe::StepLookup steps = lookup_in(plan_);
  const observe::PlainPrinter printer{steps};
  while (const auto event = feed.next()) {
    if (options_.progress == ProgressMode::json) {
      print_error(to_json(*event) + "\n");
    } else if (is_worth_a_line(*event, !event->step.empty() && steps(event->step).has_items, options_.only_trouble)) {
      if (const std::string line = printer.line(*event); !line.empty()) print_error(line + "\n");
    }
    if (event->type == EventType::ended) return;
  }
}

// A run that had ended before has no story to tell.
bool RunSession::has_news(const RunId& run, std::uint64_t after) {
  const auto info = host_->engine().info(run);
  const auto last = runtime::EngineAccess::last_sequence(host_->engine(), run);
  return !info || !last || is_open(info->status) || *last > after;
}

std::expected<RunSession::End, int> RunSession::follow(const RunId& run, std::shared_ptr<const core::Plan> plan,
                                                       std::uint64_t after) {
  plan_ = std::move(plan);
  interrupts_.handle([this, run](int signal) { interrupted(run, signal); });
  if (options_.progress != ProgressMode::quiet && has_news(run, after)) show_progress(run, after);
  auto outcome = host_->engine().wait(run);
  if (!outcome) return std::unexpected{show_error(outcome.error())};
  return End{*std::move(outcome), signal_.load()};
}

// ---- the end ----------------------------------------

std::optional<observe::RunReport> RunSession::read_report(const RunId& run) {
  observe::RunReporter reporter{plan_};
  const auto add = [&](const Event& event) {
    reporter.add(event);
    return true;
  };
  if (!scratch_.empty()) {  // in memory: nobody else can read it, and it is small
    const auto events = host_->engine().events(run);
    if (!events) return std::nullopt;
    for (const Event& event : *events) add(event);
    return reporter.report();
  }
  auto snapshot = runtime::Snapshot::open(store_);
  if (!snapshot || !snapshot->each_event(run, add)) return std::nullopt;
  return reporter.report();
}

void RunSession::report_in_words(const RunId& run, const End& end, const std::optional<observe::RunReport>& found) {
  const RunOutcome& outcome = end.outcome;
  std::string words = fmt::format("run {} {}", to_string(run), name_of(outcome.status));
  if (found && found->ended) words += " in " + text::rough_duration(*found->ended - found->created);
  if (found) {
    words += fmt::format(": {}, {}, {}", observe::counted(found->steps.size(), "step"),
                         observe::counted(found->attempts(), "attempt"),
                         found->retries() == 1 ? std::string{"1 retry"} : fmt::format("{} retries", found->retries()));
  }
  words += "\n";
  constexpr std::size_t shown_max = 5;
  for (std::size_t index = 0; found && index < std::min(found->troubled.size(), shown_max); ++index) {
    const observe::TroubledItem& item = found->troubled[index];
    const observe::StepReport& step = found->steps[item.step];
    words += fmt::format("  {} {} after {}: {} ({})\n", observe::work_name(step.name, item.item, step.has_items),
                         item.status == core::ItemStatus::failed ? "failed" : "stopped",
                         observe::counted(item.attempts, "attempt"), observe::what_failed(item.failure),
                         observe::class_words(item.failure));
    const std::string log = exec::log_path(folder_, run, step.name, item.item, item.attempts);
    if (scratch_.empty() && fs::exists(log)) words += "    log: " + log + "\n";
  }
  if (found && found->troubled.size() > shown_max)
    words += fmt::format("  and {} more\n", found->troubled.size() - shown_max + found->without_details);
  if (scratch_.empty() && outcome.status == RunStatus::failed) {
    words += "  why:       " + suggested(options_.store, "why", run) + "\n";
    words += "  try again: " + suggested(options_.store, "retry", run) + "\n";
  } else if (scratch_.empty() && outcome.status == RunStatus::canceled) {
    words += "  nothing is lost; go on with: " + suggested(options_.store, "resume", run) + "\n";
  }
  print_error(words);
}

int RunSession::report(const RunId& run, const End& end) {
  const int code = exit_code_of(end);
  if (options_.progress == ProgressMode::quiet && !options_.json) return code;
  const auto found = read_report(run);
  if (options_.progress == ProgressMode::plain) report_in_words(run, end, found);
  if (!options_.json) return code;
  text::Value value = text::Value::map();
  value.set("run", to_string(run));
  value.set("status", word(name_of(end.outcome.status)));
  if (end.outcome.reason != StopReason::none) value.set("reason", word(name_of(end.outcome.reason)));
  if (found && found->ended) value.set("elapsed_ms", text::milliseconds(*found->ended - found->created));
  if (found) {
    text::Value steps = text::Value::list();
    for (const observe::StepReport& step : found->steps) {
      text::Value entry = text::Value::map();
      entry.set("step", step.name);
      entry.set("status", word(core::name_of(step.status)));
      entry.set("items", whole(step.items));
      entry.set("succeeded", whole(step.succeeded));
      entry.set("failed", whole(step.failed));
      entry.set("attempts", whole(step.attempts));
      entry.set("retries", whole(step.retries));
      steps.add(std::move(entry));
    }
    value.set("steps", std::move(steps));
  }
  if (end.outcome.status == RunStatus::succeeded) value.set("output", end.outcome.output);
  if (end.outcome.status == RunStatus::failed) value.set("error", failure_value(end.outcome.failure));
  print_json(value);
  return code;
}

int RunSession::follow_and_report(const RunId& run, std::shared_ptr<const core::Plan> plan, std::uint64_t after) {
  const auto end = follow(run, std::move(plan), after);
  return end ? report(run, *end) : end.error();
}

int exit_code_of(const RunSession::End& end) {
  if (end.outcome.status == RunStatus::succeeded) return exit_done;
  if (end.outcome.status == RunStatus::canceled && end.signal != 0) return end.signal == SIGTERM ? 143 : 130;
  if (end.outcome.status == RunStatus::canceled && end.outcome.reason == StopReason::deadline) return 124;
  return exit_failed;
}

std::expected<RunId, int> resolve_run(const std::string& store, const std::string& name) {
  auto snapshot = open_snapshot(store);
  if (!snapshot) return std::unexpected{snapshot.error()};
  const auto run = snapshot->resolve(name);
  if (!run) return std::unexpected{show_error(run.error())};
  return *run;
}

}  // namespace reprise::cli
