#include "cli/run/watching.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <reprise/env.hpp>

#include "cli/io.hpp"
#include "cli/look/looking.hpp"
#include "cli/look/output_lines.hpp"
#include "cli/operate/asker.hpp"
#include "cli/operate/operator.hpp"
#include "cli/store_option.hpp"
#include "exec/document/program.hpp"
#include "exec/log_path.hpp"
#include "observe/report/run_report.hpp"
#include "observe/words.hpp"
#include "runtime/engine_access.hpp"
#include "runtime/live_reader.hpp"
#include "runtime/shard_snapshot.hpp"
#include "runtime/snapshot.hpp"
#include "text/duration.hpp"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds look_again{50};

std::expected<runtime::RunView, Error> view_in(runtime::RunReader& reader, const RunId& run) {
  auto view = reader.run(run);
  if (!view) return std::unexpected{view.error()};
  if (!*view) return std::unexpected{Error{ErrorCode::not_found, "the run is gone"}};
  return **std::move(view);
}

// The engine goes on by itself when the cause is gone.
bool may_pass(ErrorCode code) {
  return code == ErrorCode::store_full || code == ErrorCode::store_read_only || code == ErrorCode::store_unavailable;
}

// Cannot open PATH: WHY, cannot write to PATH: WHY … are one trouble.
std::string_view reason_in(std::string_view trouble) {
  const std::size_t colon = trouble.find(": ");
  return colon == std::string_view::npos ? trouble : trouble.substr(colon);
}

// As it is written from here, when that is shorter.
std::string path_to_show(const std::string& path) {
  std::error_code problem;
  const std::string near = fs::proximate(path, problem).string();
  return !problem && !near.starts_with("..") ? near : path;
}

std::expected<exec::CallbackSettings, int> callbacks_of(const WatchOptions& options) {
  exec::CallbackSettings callbacks;
  if (!options.callback_listen.empty()) {
    auto address = exec::parse_listen_address(options.callback_listen);
    if (!address) return std::unexpected{usage_error("--callback-listen: " + address.error())};
    if (exec::is_any_address(*address) && options.callback_url.empty())
      return std::unexpected{usage_error(fmt::format(
          "--callback-listen {0} is every address of this machine, and workers have to be told one: add --callback-url "
          "http://HOST:{1}",
          options.callback_listen, address->port))};
    callbacks.listen = *std::move(address);
  }
  if (options.callback_url.empty()) return callbacks;
  auto url = exec::parse_callback_url(options.callback_url);
  if (!url) return std::unexpected{usage_error("--callback-url: " + url.error())};
  if (!callbacks.listen)
    return std::unexpected{usage_error("--callback-url needs --callback-listen: where does it lead to?")};
  callbacks.url = *std::move(url);
  return callbacks;
}

}  // namespace

RunSession::RunSession(const WatchOptions& options)
    : options_{options}, interrupts_{options.progress == ProgressMode::live} {}

std::expected<std::unique_ptr<RunSession>, int> RunSession::open(const WatchOptions& asked, bool stderr_through) {
  WatchOptions options = asked;
  if (options.progress == ProgressMode::automatic) options.progress = automatic_progress();
  if (options.progress == ProgressMode::live && options.only_trouble) options.progress = ProgressMode::plain;
  auto callbacks = callbacks_of(options);
  if (!callbacks) return std::unexpected{callbacks.error()};
  std::unique_ptr<RunSession> session{new RunSession{options}};
  session->callbacks_ = *std::move(callbacks);
  std::signal(SIGPIPE, SIG_IGN);  // whoever stops reading the progress must not end the run
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is a full disk: the store waits until it is lifted
  session->stderr_through_ = stderr_through;
  const std::string url = store_url(options.store);
  auto ledger = ledger_of(url);
  if (!ledger) return std::unexpected{show_error(ledger.error())};
  session->ledger_ = *std::move(ledger);
  std::error_code problem;
  if (store_path(url).empty()) {
    std::string scratch = (fs::temp_directory_path(problem) / "reprise-XXXXXX").string();
    if (mkdtemp(scratch.data()) == nullptr) return std::unexpected{usage_error("cannot make a temporary folder")};
    session->scratch_ = session->folder_ = scratch;
  } else {
    const fs::path folder = fs::absolute(store_folder(url), problem);
    session->folder_ = folder.lexically_normal().string();
    make_store_folder(session->folder_);
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

// ---- whose shard it is ----------------------------------------

std::expected<void, Error> RunSession::work_with(store::OwnedShard owned) {
  exec::CallbackSettings callbacks = callbacks_;
  callbacks.warn = [](const std::string& warning) { print_error("reprise: warning: " + warning + "\n"); };
  auto host = host::FlowHost::open({.shard = std::move(owned.store),
                                    .store_folder = folder_,
                                    .name = [command = options_.command] { return asker_name(command); },
                                    .stderr_through = stderr_through_,
                                    .stdout_through = options_.stdout_through,
                                    .moved = options_.moved,
                                    .callbacks = std::move(callbacks)});
  if (!host) return std::unexpected{host.error()};
  shard_ = std::move(owned.shard);
  host_ = *std::move(host);
  owns_shard_ = true;
  if (shard_.path.empty()) return {};
  control_ = runtime::ControlServer::listen(
      shard_.path, runtime::control_handler([asked = std::make_shared<Operator>(*host_)](
                                                runtime::RunRequest&& request, runtime::RunAnswered answered) {
        (*asked)(std::move(request), std::move(answered));
      }));
  return {};
}

std::expected<RunId, Error> RunSession::submit_new(const NewRun& run) {
  auto owned = ledger_->claim();
  if (!owned) return std::unexpected{owned.error()};
  if (auto opened = work_with(*std::move(owned)); !opened) return std::unexpected{opened.error()};
  return host_->submit(run.program, run.key, run.attributes);
}

std::expected<RunId, Error> RunSession::find_or_submit(const NewRun& wanted) {
  auto snapshot = runtime::Snapshot::open(ledger_->look());
  if (!snapshot && snapshot.error().code != ErrorCode::not_found) return std::unexpected{snapshot.error()};
  if (!snapshot) return submit_new(wanted);
  if (!snapshot->troubles().empty()) return std::unexpected{snapshot->troubles().front()};  // it may have the key
  const auto run = snapshot->find_key(wanted.key);
  if (!run) return std::unexpected{run.error()};
  if (!*run) return submit_new(wanted);
  const auto shard = snapshot->shard_of(**run);
  if (!shard) return std::unexpected{shard.error()};
  if (auto attached = attach(*shard); !attached) return std::unexpected{attached.error()};
  return **run;
}

std::expected<RunId, Error> RunSession::try_submit(const NewRun& run) {
  if (run.key.empty() || !scratch_.empty()) return submit_new(run);
  const auto lock = ledger_->try_lock_keys();
  if (!lock) return std::unexpected{lock.error()};
  if (!*lock) return std::unexpected{Error{ErrorCode::timed_out, "another process looks for a run by its id."}};
  return find_or_submit(run);
}

std::expected<RunId, int> RunSession::submit(const std::shared_ptr<const exec::Program>& program,
                                             const std::string& key, const RunAttributes& attributes) {
  constexpr int looks_untold = 20;  // a key is looked up in a moment
  bool has_told = false;
  for (int look = 0;; ++look) {
    const auto run = try_submit({program, key, attributes});
    if (run) return *run;
    const ErrorCode code = run.error().code;
    const bool is_worth_waiting = host_ == nullptr && (code == ErrorCode::full || code == ErrorCode::timed_out);
    if (!is_worth_waiting) return std::unexpected{show_error(run.error())};
    if ((code == ErrorCode::full || look >= looks_untold) && !std::exchange(has_told, true))
      print_error(fmt::format("reprise: waiting: {}\n", run.error().message));
    if (const int signal = interrupts_.wait_for(look_again); signal != 0) return std::unexpected{128 + signal};
  }
}

std::expected<void, Error> RunSession::attach(const store::Shard& shard) {
  constexpr int looks_max = 40;
  shard_ = shard;
  auto owned = ledger_->open_shard(shard);
  for (int look = 0; !owned && owned.error().code == ErrorCode::store_locked; ++look) {
    if (runtime::ask_owner(shard.path, {"ping"})) return {};  // it will be asked
    if (look == looks_max) break;  // commands such as `signal` own a shard for a moment only, and listen to nobody
    system_env().wait_until(system_env().now() + look_again, {});
    owned = ledger_->open_shard(shard);
  }
  if (!owned) return std::unexpected{owned.error()};
  return work_with(*std::move(owned));
}

runtime::Requester RunSession::asked() const { return asker(options_.command); }

std::expected<void, Error> RunSession::ask_or_do(
    const runtime::RunRequest& request, const std::function<std::expected<void, Error>(host::FlowHost&)>& here) {
  while (host_ == nullptr) {
    auto answer = runtime::ask_owner(shard_.path, runtime::control_request_of(request));
    // Without an answer it was not done: the owner ends.
    const bool is_answered = answer && (*answer || answer->error().code != ErrorCode::store_unavailable);
    if (is_answered) return runtime::done_or_error(*answer);
    if (auto attached = attach(shard_); !attached) return attached;
  }
  return here(*host_);
}

std::expected<std::uint64_t, Error> RunSession::go_on(const RunId& run, runtime::Requester by) {
  if (host_ != nullptr) return host_->go_on(run, std::move(by));
  if (by.by.empty()) by = asked();
  const auto view = recorded_view(run);
  if (!view) return std::unexpected{view.error()};
  const std::uint64_t before = view->sequence;
  if (view->info.status == RunStatus::succeeded || view->info.status == RunStatus::failed) return before;
  const auto done = ask_or_do({.asked = runtime::Asked::resume, .run = run, .by = by},
                              [&](host::FlowHost& host) -> std::expected<void, Error> {
                                const auto going = host.go_on(run, by);
                                if (!going) return std::unexpected{going.error()};
                                return {};
                              });
  if (!done) return std::unexpected{done.error()};
  return before;
}

std::expected<void, Error> RunSession::retry(const runtime::RunRequest& request) {
  return ask_or_do(request, [&](host::FlowHost& host) -> std::expected<void, Error> {
    const auto again = runtime::EngineAccess::perform(host.engine(), request);
    if (!again) return std::unexpected{again.error()};
    host.allow(*request.run);  // only once it is ready: what cannot be retried must not go on because of the question
    return {};
  });
}

// ---- signals and trouble ----------------------------------------

void RunSession::interrupted(const RunId& run, int signal) {
  // A terminal that is closed may tell us so twice, by its shell and by the kernel: nobody is impatient.
  if (signal == SIGHUP && signal_.load() != 0) {
    must_end_ = true;
    return;
  }
  const bool is_second = signal_.exchange(signal) != 0;
  // Whoever sends another signal than Ctrl-C cannot be asked to do it twice.
  if (is_second || signal != SIGINT) must_end_ = true;
  if (!owns_shard_) return;  // watch_owner() ends
  if (is_second) return host_->kill_all();
  if (progress_) progress_->say("stopping: nothing new starts, what runs is asked to end (again to kill it)");
  cancel(run);
}

void RunSession::cancel(const RunId& run) {
  runtime::RunRequest request{.asked = runtime::Asked::cancel, .run = run, .by = asked()};
  request.by.why = fmt::format("interrupted by {}", signal_name(signal_));
  const auto canceled = runtime::EngineAccess::perform(host_->engine(), std::move(request));
  cancel_again_ = !canceled && may_pass(canceled.error().code);
}

void RunSession::say(const std::string& line) {
  if (options_.progress == ProgressMode::live && progress_) return progress_->say(line);
  print_error(line + "\n");
}

bool RunSession::waits_for_store(const RunId& run, const std::string& trouble) {
  if (!trouble.empty() && must_end_) return false;
  if (!trouble.empty() && (told_.empty() || reason_in(told_) != reason_in(trouble))) {
    told_ = trouble;
    say(fmt::format("reprise: waiting for the store: {} The run continues by itself then; Ctrl-C twice ends it now.",
                    trouble));
  } else if (trouble.empty() && !told_.empty()) {
    told_.clear();
    say("reprise: the store can be written again");
  }
  if (trouble.empty() && cancel_again_.exchange(false)) cancel(run);
  return true;
}

int RunSession::leave(const RunId& run) {
  if (progress_) progress_->finish();
  print_error(fmt::format(
      "reprise: interrupted while the store could not be written: what happened since then is not recorded, what was "
      "recorded before is not lost; resume with: {}\n",
      suggested(options_.store, "resume", run)));
  return exit_code_of(End{{.status = RunStatus::canceled}, signal_.load()});
}

std::expected<RunOutcome, int> RunSession::wait_for_end(const RunId& run) {
  constexpr Duration look_again = std::chrono::milliseconds{250};
  while (true) {
    auto outcome = host_->engine().wait(run, look_again);
    if (outcome) {
      waits_for_store(run, {});
      return *std::move(outcome);
    }
    const bool is_refused = outcome.error().code != ErrorCode::timed_out;
    if (is_refused && !may_pass(outcome.error().code)) return std::unexpected{show_error(outcome.error())};
    std::string trouble = host_->engine().stats().trouble;
    if (is_refused && trouble.empty()) trouble = outcome.error().message;
    if (!is_refused && !trouble.empty() && !host_->engine().info(run)) continue;  // it began just now: what kind is it?
    if (!waits_for_store(run, trouble)) return std::unexpected{leave(run)};
    if (is_refused) system_env().wait_until(system_env().now() + look_again, {});
  }
}

// What was before, and what was missed because this reader was slow or the run quick, is read from the store.
bool RunSession::show_progress(const RunId& run, std::uint64_t after) {
  Events feed = host_->engine().subscribe({.run = run, .after = after, .buffer = 65'536});
  std::uint64_t last = 0;
  const auto catch_up = [&](std::uint64_t end) {
    if (last + 1 >= end) return;
    static_cast<void>(each_event(run, [&](const Event& event) {
      if (event.sequence > last && event.sequence <= after) progress_->recall(event);
      if (event.sequence > std::max(last, after) && event.sequence < end) progress_->add(event);
      return event.sequence < end;
    }));
    last = end - 1;
  };
  catch_up(after + 1);
  progress_->time_passes();
  while (true) {
    const auto event = feed.next(progress_->patience());
    if (!event) {
      progress_->time_passes();
      const auto info = host_->engine().info(run);
      if (info ? is_open(info->status) : may_pass(info.error().code)) {
        if (!waits_for_store(run, host_->engine().stats().trouble)) return false;
        continue;
      }
      // It has ended between the two looks: what the feed was not asked for any more is in the record.
      static_cast<void>(host_->engine().wait(run));
      catch_up(std::numeric_limits<std::uint64_t>::max());
      break;
    }
    if (!told_.empty() && !waits_for_store(run, host_->engine().stats().trouble)) return false;
    catch_up(event->sequence);
    last = event->sequence;
    progress_->add(*event);
    if (event->type == EventType::ended) break;
  }
  progress_->finish();
  return true;
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
  progress_ = make_progress_display(options_.progress, options_.only_trouble, plan_, labels_of(run));
  if (options_.output_logs)
    progress_ = with_output(std::move(progress_), OutputLines{folder_, observe::steps_of(*plan_), labels_of(run)});
  if (wrap_) progress_ = wrap_(std::move(progress_));
  interrupts_.handle([this, run](int signal) { interrupted(run, signal); },
                     {.before = [this] { progress_->pause_drawing(); }, .after = [this] { progress_->draw_again(); }});
  if (host_ == nullptr) {
    const auto end = watch_owner(run, after);
    if (!end) return std::unexpected{end.error()};
    if (*end) return **end;
    if (signal_.load() != 0) cancel(run);  // it came when the shard was not quite ours
  }
  if (progress_ && has_news(run, after) && !show_progress(run, after)) return std::unexpected{leave(run)};
  auto outcome = wait_for_end(run);
  if (!outcome) return std::unexpected{outcome.error()};
  return End{*std::move(outcome), signal_.load()};
}

observe::LabelOf RunSession::labels_of(const RunId& run) {
  return [this, run](std::string_view step, std::uint32_t item) {
    if (!labels_) {
      const auto opened = reader();
      const auto view = opened ? (*opened)->run(run) : std::unexpected{opened.error()};
      labels_.emplace(view && *view ? document_of_run((*view)->input) : nullptr, [this, run](std::string_view of) {
        const auto again = reader();
        if (!again) return std::vector<std::string>{};
        auto items = (*again)->item_inputs(run, of, ItemLabels::items_max);
        return items ? *std::move(items) : std::vector<std::string>{};
      });
    }
    return labels_->of(step, item);
  };
}

// ---- beside the owner ----------------------------------------

std::expected<runtime::RunView, Error> RunSession::recorded_view(const RunId& run) const {
  const auto opened = reader();
  if (!opened) return std::unexpected{opened.error()};
  return view_in(**opened, run);
}

std::expected<runtime::RunView, Error> RunSession::show_recorded(const RunId& run, std::uint64_t after,
                                                                 std::uint64_t& last) {
  const auto opened = reader();
  if (!opened) return std::unexpected{opened.error()};
  auto view = view_in(**opened, run);
  if (!view) return view;
  const bool has_news = is_open(view->info.status) || view->sequence > after;
  if (!progress_ || !has_news) return view;
  const auto shown = (*opened)->each_event(run, [&](const Event& event) {
    if (event.sequence <= last) return true;
    last = event.sequence;
    event.sequence <= after ? progress_->recall(event) : progress_->add(event);
    return true;
  });
  if (!shown) return std::unexpected{shown.error()};
  progress_->time_passes();
  return view;
}

std::expected<bool, Error> RunSession::is_ours_now(const RunId& run) {
  const auto answer = runtime::ask_owner(shard_.path, {"ping", to_string(run)});
  if (answer) {
    const bool is_left_alone = !*answer && answer->error().code == ErrorCode::not_found;
    if (!is_left_alone) return false;
    // Unless it has ended just now.
    const auto view = recorded_view(run);
    if (!view) return std::unexpected{view.error()};
    if (view->info.status != RunStatus::running) return false;
    if (auto done = ask_or_do({.asked = runtime::Asked::resume, .run = run, .by = asked()},
                              [](host::FlowHost&) { return std::expected<void, Error>{}; });
        !done)
      return std::unexpected{done.error()};
  } else {
    auto owned = ledger_->open_shard(shard_);
    if (!owned && owned.error().code == ErrorCode::store_locked) return false;
    if (!owned) return std::unexpected{owned.error()};
    if (auto opened = work_with(*std::move(owned)); !opened) return std::unexpected{opened.error()};
  }
  if (host_ != nullptr) host_->allow(run);
  return host_ != nullptr;
}

int RunSession::leave_to_owner(const RunId& run) {
  if (progress_) progress_->finish();
  print_error(fmt::format("reprise: another process goes on with this run; to stop it: {}\n",
                          suggested(options_.store, "cancel", run)));
  return 128 + signal_.load();
}

std::expected<std::optional<RunSession::End>, int> RunSession::watch_owner(const RunId& run, std::uint64_t& after) {
  constexpr Duration look_again_after = std::chrono::milliseconds{200};
  std::uint64_t last = 0;
  while (true) {
    auto view = show_recorded(run, after, last);
    if (!view) return std::unexpected{show_error(view.error())};
    if (!is_open(view->info.status)) {
      if (progress_) progress_->finish();
      return End{std::move(view->outcome), 0};
    }
    if (signal_.load() != 0) return std::unexpected{leave_to_owner(run)};
    const auto is_ours = is_ours_now(run);
    if (!is_ours) return std::unexpected{show_error(is_ours.error())};
    if (*is_ours) {
      after = std::max(after, last);
      return std::nullopt;
    }
    system_env().wait_until(system_env().now() + look_again_after, {});
  }
}

// ---- the end ----------------------------------------

std::expected<void, Error> RunSession::each_event(const RunId& run, const std::function<bool(const Event&)>& visit) {
  const auto opened = reader();
  if (!opened) return std::unexpected{opened.error()};
  return (*opened)->each_event(run, visit);
}

std::expected<std::unique_ptr<runtime::RunReader>, Error> RunSession::reader() const {
  if (host_ != nullptr) return std::make_unique<runtime::LiveReader>(host_->engine());
  auto snapshot = runtime::ShardSnapshot::open(shard_.path);
  if (!snapshot) return std::unexpected{snapshot.error()};
  return std::make_unique<runtime::ShardSnapshot>(*std::move(snapshot));
}

std::string RunSession::whole_output(const Event& event) const {
  const auto opened = reader();
  if (!opened) return {};
  auto payload = (*opened)->payload(event.run, event.output);
  return payload ? *std::move(payload) : std::string{};
}

std::uint64_t RunSession::failed_items(const RunId& run) {
  const auto report = read_report(run);
  return report ? report->failed() : 0;
}

std::optional<observe::RunReport> RunSession::read_report(const RunId& run) {
  observe::RunReporter reporter{plan_};
  const auto read = each_event(run, [&](const Event& event) {
    reporter.add(event);
    return true;
  });
  return read ? std::optional{reporter.report()} : std::nullopt;
}

observe::LogTail RunSession::log_tail_of(const RunId& run, const observe::StepReport& step,
                                         const observe::TroubledItem& item) const {
  if (!scratch_.empty()) return {};  // gone in a moment
  const std::string path = exec::log_path(folder_, run, step.name, item.item, item.attempts);
  std::ifstream file{path, std::ios::binary};
  if (!file) return {};
  observe::LogTail words{.path = path_to_show(path), .lines = {}};
  if (item.failure.http_status) {  // what was asked for stands first, and the answer may be a whole page
    constexpr std::size_t lines_max = 2;
    for (std::string line; words.lines.size() < lines_max && std::getline(file, line);) words.lines.push_back(line);
    return words;
  }
  constexpr std::streamoff bytes_max = 4096;
  constexpr std::size_t lines_max = 5;
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - bytes_max));
  for (std::string line; std::getline(file, line);) words.lines.push_back(line);
  if (words.lines.size() > lines_max)
    words.lines.erase(words.lines.begin(), words.lines.end() - static_cast<std::ptrdiff_t>(lines_max));
  return words;
}

void RunSession::report_in_words(const RunId& run, const observe::RunReport& report) {
  std::vector<observe::LogTail> words;
  const std::vector<observe::TroubledItem> failures = observe::failures_of(report);
  for (std::size_t index = 0; index < std::min(failures.size(), observe::failures_with_attempts_max); ++index)
    words.push_back(log_tail_of(run, report.steps[failures[index].step], failures[index]));
  std::vector<observe::NextCommand> next;
  if (scratch_.empty() && report.status == RunStatus::failed) {
    next = {{"why", suggested(options_.store, "why", run)}, {"try again", suggested(options_.store, "retry", run)}};
  } else if (scratch_.empty() && report.status == RunStatus::canceled) {
    next = {{"nothing is lost; resume with", suggested(options_.store, "resume", run)}};
  } else if (scratch_.empty() && report.failed() > 0) {
    next = {{"causes", suggested(options_.store, "failures", run)},
            {"try again", suggested(options_.store, "retry", run)}};
  }
  const bool is_live = options_.progress == ProgressMode::live;
  const observe::Symbols& symbols = is_live ? symbols_of_terminal() : observe::no_symbols;
  const bool is_map = std::ranges::any_of(plan_->steps, &core::StepPlan::for_each);
  const auto what = options_.only_trouble && !is_map ? observe::EndingOf::command : observe::EndingOf::flow;
  std::string text = is_live ? "\n" : "";
  for (const observe::StyledLine& line : observe::ending_of(run, report, words, next, symbols, what)) {
    std::string shown = is_live && has_colours() ? with_escape_codes(line) : without_styles(line);
    text += (symbols.is_ascii && is_live ? observe::in_ascii(shown) : shown) + "\n";
  }
  print_error_bytes(text);  // with our own colours; what it quotes was made safe when it was composed
}

observe::AnnotatedFile RunSession::document_of(const RunId& run) const {
  if (!scratch_.empty()) return {};
  const auto view = recorded_view(run);
  if (!view) return {};
  const auto input = exec::decode_run_input(view->input);
  if (!input || input->text.empty()) return {};
  const auto program = exec::load_program(*input, exec::without_files);
  if (!program) return {};
  observe::AnnotatedFile file{.path = input->file, .lines = {}};
  for (const flow::Step& step : (*program)->flow.steps) file.lines.emplace(step.id, step.place.line);
  return file;
}

text::Value RunSession::result_value(const RunId& run, const End& end,
                                     const std::optional<observe::RunReport>& found) const {
  text::Value value = text::Value::map();
  value.set("run", to_string(run));
  value.set("status", word(name_of(end.outcome.status)));
  if (end.outcome.reason != StopReason::none) value.set("reason", word(name_of(end.outcome.reason)));
  if (found && found->ended)
    value.set("elapsed_ms", text::milliseconds(std::max(*found->ended - found->created, Duration{0})));
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
  return value;
}

int RunSession::report(const RunId& run, const End& end) {
  const bool has_words = options_.progress == ProgressMode::plain || options_.progress == ProgressMode::live;
  const bool tells_failure =
      options_.progress == ProgressMode::quiet && !options_.annotations && end.outcome.status == RunStatus::failed;
  if (!has_words && !options_.json && !options_.annotations && !tells_failure) return exit_code_of(end);
  auto found = read_report(run);
  if (found && labels_of(run)) {
    for (observe::TroubledItem& item : found->troubled)
      item.label = labels_of(run)(found->steps[item.step].name, item.item);
  }
  if (found && options_.annotations) print_error(observe::github_annotations(*found, document_of(run)));
  if (found && tells_failure) print_error("reprise: " + observe::verdict_of(*found) + "\n");
  if (found && has_words) report_in_words(run, *found);  // its last line is the verdict
  if (options_.json) print_json(result_value(run, end, found));
  return exit_code_of(end);
}

int RunSession::follow_and_report(const RunId& run, std::shared_ptr<const core::Plan> plan, std::uint64_t after) {
  const auto end = follow(run, std::move(plan), after);
  return end ? report(run, *end) : end.error();
}

int exit_code_of(const RunSession::End& end) {
  if (end.outcome.status == RunStatus::succeeded) return exit_done;
  if (end.outcome.status == RunStatus::canceled && end.signal != 0) return 128 + end.signal;
  if (end.outcome.status == RunStatus::canceled && end.outcome.reason == StopReason::deadline) return 124;
  // By somebody else. For whoever waits it is what SIGTERM would have been: stopped from outside, and to be resumed.
  if (end.outcome.status == RunStatus::canceled) return 128 + SIGTERM;
  return exit_failed;
}

}  // namespace reprise::cli
