// The commands that change what becomes of a run: resume, retry, cancel, pause, signal, wait, rm, and dead letters.
//
// While another process owns the shard that has the run it is asked to do it; otherwise it is done here.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/private_file.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/look/looking.hpp"
#include "cli/operate/asker.hpp"
#include "cli/operate/meant_work.hpp"
#include "cli/operate/operator.hpp"
#include "cli/run/run_commands.hpp"
#include "cli/run/watching.hpp"
#include "cli/store_option.hpp"
#include "exec/document/program.hpp"
#include "exec/log_path.hpp"
#include "observe/words.hpp"
#include "runtime/control.hpp"
#include "runtime/engine_access.hpp"
#include "runtime/shard_snapshot.hpp"
#include "text/nearest.hpp"

namespace reprise::cli {
namespace {

constexpr Duration look_again = std::chrono::milliseconds{200};

struct Known {
  store::Shard shard;
  RunId id;
  runtime::RunView view;
};

std::expected<Known, int> known_run(const std::string& store, const std::string& name) {
  auto looked = look_at({.store = store, .run = name});
  if (!looked) return std::unexpected{looked.error()};
  return Known{looked->shard, looked->id, std::move(looked->view)};
}

int done_or_error(const std::expected<void, Error>& answer) { return answer ? exit_done : show_error(answer.error()); }

// Asks the owner of the shard, or becomes it for a moment. Other owners of a moment are worth waiting for.
std::expected<void, Error> in_shard(const store::Shard& shard, const runtime::RunRequest& request) {
  constexpr int looks_max = 40;
  for (int look = 0;; ++look) {
    if (const auto answer = runtime::ask_owner(shard.path, runtime::control_request_of(request)))
      return runtime::done_or_error(*answer);
    auto engine = runtime::EngineAccess::open({.store = "sqlite:" + shard.path, .threads = 1}, {});
    if (engine) {
      const auto done = runtime::EngineAccess::perform(*engine, request);
      return done ? std::expected<void, Error>{} : std::unexpected{done.error()};
    }
    if (engine.error().code != ErrorCode::store_locked || look == looks_max) return std::unexpected{engine.error()};
    system_env().wait_until(system_env().now() + std::chrono::milliseconds{50}, {});
  }
}

int operate(const Known& known, const OperateOptions& options, runtime::RunRequest request) {
  request.run = known.id;
  request.by = asker(runtime::name_of(request.asked), options.why);
  return done_or_error(in_shard(known.shard, request));
}

int operate(const OperateOptions& options, runtime::RunRequest request) {
  const auto known = known_run(options.store, options.run);
  return known ? operate(*known, options, std::move(request)) : known.error();
}

// Standard input of an exec that has not succeeded.
base::SystemResult<void> remove_kept_stdin(const std::string& folder, const runtime::RunView& view) {
  const auto input = exec::decode_run_input(view.input);
  if (!input || input->argv.empty() || input->stdin_file.empty()) return {};
  return base::remove_below(folder, base::name_below(folder, exec::kept_stdin_path(folder, *input)));
}

// What would fail for good at once is left as it is.
int refuse_what_cannot_run(const runtime::RunView& view, const WatchOptions& options) {
  const auto obstacle = obstacle_here(view, options.moved);
  if (!obstacle) return exit_done;
  print_error(obstacle->message);
  return obstacle->exit_code;
}

// Where the folder of the run is now, as --directory says. The error is an exit code.
std::expected<WatchOptions, int> with_folder(const ResumeOptions& options, const runtime::RunView& view) {
  WatchOptions watch = options.watch;
  if (options.directory.empty()) return watch;
  std::error_code problem;
  const auto folder = std::filesystem::canonical(options.directory, problem);
  if (problem || !std::filesystem::is_directory(folder, problem))
    return std::unexpected{usage_error(fmt::format("--directory: {} is not a folder", options.directory))};
  const auto input = exec::decode_run_input(view.input);
  if (!input) return std::unexpected{usage_error("--directory: only runs of documents and commands have a folder")};
  const auto opened =
      input->sealed.empty() ? std::unexpected{std::string{}} : exec::load_program(*input, exec::without_files);
  watch.moved = {opened ? (*opened)->input.directory : input->directory, folder.string()};
  return watch;
}

// A process that works with the shard already knows the folder as it was.
std::expected<void, Error> attach(RunSession& session, const store::Shard& shard) {
  if (auto attached = session.attach(shard); !attached) return attached;
  if (!session.options().moved || session.owns_shard()) return {};
  return std::unexpected{
      Error{ErrorCode::store_locked,
            "another process works with this part of the store, and --directory cannot reach it; stop it first"}};
}

// Between two looks at it.
bool has_ended_meanwhile(const Known& known) {
  auto snapshot = runtime::ShardSnapshot::open(known.shard.path);
  const auto view = snapshot ? snapshot->run(known.id) : std::unexpected{snapshot.error()};
  return view && *view && !is_open((*view)->info.status);
}

// A run keeps the document it was begun with. Whoever has put the file right meanwhile must know.
void tell_if_document_changed(const runtime::RunView& view, const WatchOptions& options) {
  auto input = exec::decode_run_input(view.input);
  if (!input || input->is_exec() || options.progress == ProgressMode::quiet) return;
  input->moved = options.moved;
  const auto opened = input->sealed.empty() ? std::unexpected{std::string{}} : exec::load_program(*input);
  if (!opened && !input->sealed.empty()) return;  // whoever resumes the run says why
  const exec::RunInput& whole = opened ? (*opened)->input : *input;
  const std::string& folder = options.moved && !opened ? options.moved->to : whole.directory;
  const auto path = std::filesystem::path{folder} / std::filesystem::path{whole.file}.filename();
  std::ifstream file{path, std::ios::binary};
  if (!file || std::string{std::istreambuf_iterator<char>{file}, {}} == whole.text) return;
  print_error(
      fmt::format("{} has changed; this run continues with the document it was started with. To run the new one: "
                  "reprise run {}\n",
                  input->file, input->file));
}

// A run whose handlers are functions of a C++ program is run by that program alone: it is asked, and goes on with it.
int ask_program(const Known& known, const runtime::RunRequest& request) {
  if (const auto answer = runtime::ask_owner(known.shard.path, runtime::control_request_of(request)))
    return done_or_error(runtime::done_or_error(*answer));
  print_error(
      fmt::format("reprise: run {} is work of a C++ program ({}), which alone has its handlers, and does not "
                  "run now. Start it: it continues its open runs by itself, and takes this command then.\n",
                  to_string(known.id), known.view.info.name));
  return exit_usage;
}

int retry_chosen(const ResumeOptions& options, const Known& known, runtime::WorkChoice choice) {
  choice.only = options.only;
  const runtime::RunRequest request{.asked = runtime::Asked::retry,
                                    .run = known.id,
                                    .choice = std::move(choice),
                                    .by = asker(options.watch.command, options.why)};
  if (!known.view.plan->is_document) return ask_program(known, request);
  // Before signals are taken: a file that hangs can be interrupted.
  const auto watch = with_folder(options, known.view);
  if (!watch) return watch.error();
  if (const int refused = refuse_what_cannot_run(known.view, *watch); refused != exit_done) return refused;
  tell_if_document_changed(known.view, *watch);
  auto session = RunSession::open(*watch);
  if (!session) return session.error();
  if (auto attached = attach(**session, known.shard); !attached) return show_error(attached.error());
  if (auto again = (*session)->retry(request); !again) return show_error(again.error());
  return (*session)->follow_and_report(known.id, known.view.plan, known.view.sequence);
}

}  // namespace

int resume(const ResumeOptions& options) {
  const auto known = known_run(options.watch.store, options.run);
  if (!known) return known.error();
  const RunStatus status = known->view.info.status;
  if (status == RunStatus::succeeded) {
    print_error(fmt::format("run {} has succeeded: there is nothing to resume\n", to_string(known->id)));
    return exit_done;
  }
  if (status == RunStatus::failed) {
    print_error(fmt::format("run {} has failed for good; to try again what failed: {}\n", to_string(known->id),
                            suggested(options.watch.store, "retry", known->id)));
    return exit_failed;
  }
  const runtime::RunRequest request{
      .asked = runtime::Asked::resume, .run = known->id, .by = asker(options.watch.command, options.why)};
  if (!known->view.plan->is_document) return ask_program(*known, request);
  // Who has paused it while it ran wants it to go on there, where it is watched already.
  if (status == RunStatus::paused && is_worked_on(known->shard, known->id)) {
    if (const auto answer = runtime::ask_owner(known->shard.path, runtime::control_request_of(request)))
      return done_or_error(runtime::done_or_error(*answer));
  }
  // Before signals are taken: a file that hangs can be interrupted.
  const auto watch = with_folder(options, known->view);
  if (!watch) return watch.error();
  if (const int refused = refuse_what_cannot_run(known->view, *watch); refused != exit_done) return refused;
  tell_if_document_changed(known->view, *watch);
  auto session = RunSession::open(*watch);
  if (!session) return session.error();
  if (auto attached = attach(**session, known->shard); !attached) return show_error(attached.error());
  if (auto going = (*session)->go_on(known->id, request.by); !going) return show_error(going.error());
  return (*session)->follow_and_report(known->id, known->view.plan, known->view.sequence);
}

int retry(const ResumeOptions& options) {
  const auto known = known_run(options.watch.store, options.run);
  if (!known) return known.error();
  auto choice = work_to_retry(options.watch.store, known->id, options.work);
  return choice ? retry_chosen(options, *known, *std::move(choice)) : choice.error();
}

int dead_letters_retry(const ResumeOptions& options) {
  const auto known = known_run(options.watch.store, options.run);
  if (!known) return known.error();
  auto letters = dead_letters_meant(options.watch.store, known->id, options.work, "retry");
  if (!letters) return letters.error();
  if (options.watch.progress != ProgressMode::quiet)
    print_error(fmt::format("retrying {}\n", observe::counted(letters->count, "dead letter")));
  return retry_chosen(options, *known, std::move(letters->choice));
}

int cancel(const OperateOptions& options) { return operate(options, {.asked = runtime::Asked::cancel}); }

int pause(const OperateOptions& options) { return operate(options, {.asked = runtime::Asked::pause}); }

// A document says all the signals that it waits for; what a program's handlers wait for only they know.
int signal_run(const OperateOptions& options) {
  const auto known = known_run(options.store, options.run);
  if (!known) return known.error();
  const core::Plan& plan = *known->view.plan;
  std::vector<std::string_view> names;
  for (const core::StepPlan& step : plan.steps) {
    if (step.kind == core::StepKind::signal) names.push_back(step.signal);
  }
  if (plan.is_document && std::ranges::find(names, options.text) == names.end()) {
    return show_error({ErrorCode::not_found,
                       names.empty() ? "No step of this run waits for a signal."
                                     : fmt::format("No step of this run waits for \"{}\"; there is {}.", options.text,
                                                   text::join_words(names, "and"))});
  }
  return operate(*known, options, {.asked = runtime::Asked::signal, .text = options.text, .payload = options.payload});
}

int wait_for(const OperateOptions& options) {
  const auto known = known_run(options.store, options.run);
  if (!known) return known.error();
  while (true) {
    auto snapshot = runtime::ShardSnapshot::open(known->shard.path);
    if (!snapshot) return show_error(snapshot.error());
    const auto view = snapshot->run(known->id);
    if (!view) return show_error(view.error());
    if (!*view) return show_error({ErrorCode::not_found, "the run is gone"});
    const RunOutcome& outcome = (*view)->outcome;
    if (!is_open((*view)->info.status)) return exit_code_of(RunSession::End{outcome, 0});
    if (!is_worked_on(known->shard, known->id) && !has_ended_meanwhile(*known)) {
      print_error(fmt::format("no process is working on run {}; resume it with: {}\n", to_string(known->id),
                              suggested(options.store, "resume", known->id)));
      return exit_failed;
    }
    system_env().wait_until(system_env().now() + look_again, {});
  }
}

int remove_run(const OperateOptions& options) {
  const auto known = known_run(options.store, options.run);
  if (!known) return known.error();
  const std::string url = store_url(options.store);
  const auto forgotten = in_shard(known->shard, {.asked = runtime::Asked::remove, .run = known->id, .by = asker("rm")});
  if (!forgotten) return show_error(forgotten.error());
  const std::string folder = store_folder(url);
  auto removed = base::remove_below(folder, base::name_below(folder, exec::log_folder(folder, known->id)));
  if (removed) removed = remove_kept_stdin(folder, known->view);
  if (!removed) {
    print_error("reprise: the run is deleted, but its files could not be removed: " + base::words_of(removed.error()) +
                "\n");
  }
  return exit_done;
}

int dead_letters_drop(const OperateOptions& options) {
  const auto known = known_run(options.store, options.run);
  if (!known) return known.error();
  const bool names_nothing = options.work.places.empty() && options.work.filter.empty() && !options.work.all;
  if (names_nothing) {
    return usage_error(
        "which dead letters? Name them (fetch, 'fetch[3]'), give a filter such as class:transient, or add --all");
  }
  const auto letters = dead_letters_meant(options.store, known->id, options.work, "drop");
  if (!letters) return letters.error();
  const std::string count = observe::counted(letters->count, "dead letter");
  if (auto sure = confirm(letters->count, fmt::format("This drops {} for good.", count), options.work.yes); !sure)
    return sure.error();
  const auto dropped = in_shard(known->shard, {.asked = runtime::Asked::drop,
                                               .run = known->id,
                                               .choice = letters->choice,
                                               .by = asker("dead-letters drop", options.why)});
  if (dropped) print_error(fmt::format("dropped {}\n", count));
  return done_or_error(dropped);
}

}  // namespace reprise::cli
