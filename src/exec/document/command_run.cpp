#include "exec/document/command_run.hpp"

#include <algorithm>
#include <csignal>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "base/private_file.hpp"
#include "event/evidence.hpp"
#include "exec/process/output_file.hpp"
#include "exec/secrets/mask.hpp"
#include "text/ascii.hpp"

namespace reprise::exec {

using json::Json;
using namespace std::string_literals;

namespace {

constexpr std::size_t whole_output_max = std::size_t{256} << 20U;
constexpr std::size_t short_output_max = std::size_t{16}
                                         << 10U;  // judged at once, on the thread that reads from other commands too

// Who closes a terminal, ends a session or stops a service sends the signal to all of its processes, one after the other.
constexpr Duration until_our_signal_comes = std::chrono::milliseconds{100};

bool may_be_meant_for_us_too(const ProcessEnd& end) {
  const bool is_ours_to_heed = end.signal == SIGHUP || end.signal == SIGINT || end.signal == SIGTERM;
  return is_ours_to_heed && !end.canceled && !end.timed_out && !end.stalled;
}

std::expected<Json, std::string> evaluated(const flow::JsonTemplate& value, const StepScope& scope) {
  if (const Json* const plain = std::get_if<Json>(&value.value)) return *plain;
  if (const auto* const text = std::get_if<flow::Template>(&value.value)) return text->evaluate(scope);
  if (const auto* const list = std::get_if<flow::JsonTemplate::List>(&value.value)) {
    boost::json::array array;
    for (const flow::JsonTemplate& element : *list) {
      auto made = evaluated(element, scope);
      if (!made) return made;
      array.push_back(*std::move(made));
    }
    return array;
  }
  boost::json::object object;
  for (const auto& [key, element] : std::get<flow::JsonTemplate::Map>(value.value)) {
    auto made = evaluated(element, scope);
    if (!made) return made;
    object[key] = *std::move(made);
  }
  return object;
}

}  // namespace

std::string path_in(const std::string& directory, const std::string& path) {
  if (path.empty()) return directory;
  return path.starts_with('/') ? path : directory + "/" + path;
}

std::expected<Json, std::string> evaluate(const flow::JsonTemplate& value, const StepScope& scope) {
  return evaluated(value, scope);
}

CommandRun::CommandRun(Services& services, std::shared_ptr<StepScope> scope, const flow::Command& command,
                       CommandSetting setting, Done done)
    : services_{services},
      scope_{std::move(scope)},
      command_{command},
      setting_{std::move(setting)},
      done_{std::move(done)} {}

Judge CommandRun::judge() const {
  const ScopeFacts& facts = scope_->facts();
  return {facts.program->flow, setting_.step, limit_, facts.context->by_first_rules};
}

Duration CommandRun::time_left() const {
  if (!setting_.ends) return Duration{0};
  return std::max<Duration>(std::chrono::duration_cast<Duration>(*setting_.ends - services_.env.now()), Duration{1});
}

void CommandRun::start() {
  if (setting_.ends && services_.env.now() >= *setting_.ends) {
    limit_ = setting_.timeout;
    return end_out_of_time("timed out");
  }
  limit_ = setting_.timeout;
  if (command_.timeout && (limit_ == Duration{0} || *command_.timeout < limit_)) limit_ = *command_.timeout;
  if (command_.prompt) {
    auto prompt = command_.prompt->render(*scope_, flow::Quoting::none);
    if (!prompt) return fail(prompt.error());
    scope_->set_prompt(*std::move(prompt));
  }
  command_.kind == flow::Command::Kind::http ? start_request() : start_process();
}

void CommandRun::cancel() {
  is_canceled_ = true;
  if (process_ != 0) services_.processes.cancel(process_);
  if (request_ != 0) services_.http().cancel(request_);
  if (is_reading_) finish(std::unexpected{judge().canceled()});
}

void CommandRun::end_out_of_time(std::string_view what) {
  was_out_of_time_ = true;
  finish(std::unexpected{judge().timed_out(what)});
}

void CommandRun::finish(Judged result) {
  if (std::exchange(is_done_, true)) return;
  const std::string& folder = services_.settings.store_folder;
  if (!last_error_file_.empty()) own_files_.push_back(last_error_file_);
  for (const std::string& file : own_files_)
    static_cast<void>(base::remove_below(folder, base::name_below(folder, file)));
  const Done done = std::move(done_);
  done(std::move(result));
}

// ---- commands ----------------------------------------

// What the command before left behind, in full, as long as this one runs. False: there was no failure, or no place for the file.
bool CommandRun::write_last_error() {
  const Failure& failure = scope_->last_failure();
  if (failure.message.empty() || setting_.log_file.empty()) return false;
  last_error_file_ = setting_.log_file + ".last_error";
  OutputFile file{last_error_file_, OutputFile::Existing::replace, services_.settings.store_folder};
  file.write(without_secrets(event::in_full(failure, scope_->last_evidence())));
  return file.problem().empty();
}

std::expected<std::vector<std::string>, std::string> CommandRun::environment() {
  const ScopeFacts& facts = scope_->facts();
  std::map<std::string, std::string, std::less<>> env;  // what is not inherited
  for (const auto* const added : {&facts.program->flow.env, &command_.env, &setting_.step.env}) {
    for (const auto& [name, text] : *added) {
      auto value = text.render(*scope_, flow::Quoting::none);
      if (!value) return std::unexpected{"env." + name + ": " + value.error()};
      env[name] = *std::move(value);
    }
  }
  const auto& max_attempts = setting_.step.policy.max_attempts;
  env["REPRISE_RUN_ID"] = to_string(facts.run);
  env["REPRISE_STEP"] = setting_.step.id;
  env["REPRISE_ITEM"] = facts.item ? std::to_string(facts.index) : "";
  env["REPRISE_ATTEMPT"] = std::to_string(facts.attempt);
  env["REPRISE_ATTEMPTS_USED"] = std::to_string(facts.used_attempts);
  env["REPRISE_MAX_ATTEMPTS"] = max_attempts ? std::to_string(*max_attempts) : "unlimited";
  env["REPRISE_IDEMPOTENCY_KEY"] = setting_.idempotency_key;
  env["REPRISE_LAST_ERROR"] = scope_->last_failure().message;
  env["REPRISE_LAST_ERROR_FILE"] = write_last_error() ? last_error_file_ : "";
  std::vector<std::string> list;
  list.reserve(facts.program->inherited.size() + env.size());
  for (const std::string& variable : facts.program->inherited) {
    if (!env.contains(std::string_view{variable}.substr(0, variable.find('=')))) list.push_back(variable);
  }
  for (const auto& [name, value] : env) list.push_back(name + "=" + value);
  return list;
}

std::expected<std::string, std::string> CommandRun::write_own_file(std::string_view ending, std::string_view content) {
  if (setting_.log_file.empty()) return std::unexpected{"there is no folder for its files"};
  std::string path = setting_.log_file + std::string{ending};
  OutputFile file{path, OutputFile::Existing::replace, services_.settings.store_folder};
  const bool is_open = file.open();
  file.write(content);
  own_files_.push_back(path);
  if (!is_open || !file.problem().empty()) return std::unexpected{file.problem()};
  return path;
}

namespace {

// Words of a POSIX shell are quoted for it; to others a value is a literal of theirs.
bool reads_shell(std::string_view program) {
  constexpr std::string_view shells[] = {"sh", "bash", "dash", "ksh", "zsh", "ash", "busybox"};
  const std::string_view name = program.substr(program.find_last_of('/') + 1);
  return std::ranges::find(shells, name) != std::end(shells);
}

bool has_several_lines(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text.find('\n') != std::string_view::npos;
}

}  // namespace

std::expected<std::vector<std::string>, std::string> CommandRun::shell_arguments() {
  const RunInput& input = scope_->facts().program->input;
  const bool is_shell = command_.interpreter.empty() || reads_shell(command_.interpreter.front());
  const auto of_shell = input.has_lists_as_json() ? flow::Quoting::shell : flow::Quoting::spread;
  auto script = command_.shell.render(*scope_, is_shell ? of_shell : flow::Quoting::interpreter);
  if (!script) return std::unexpected{script.error()};
  if (command_.interpreter.empty()) {
    const bool stops = command_.verb != "shell" && input.stops_at_first_failing_line();
    if (stops && has_several_lines(command_.shell.text())) return std::vector{"/bin/sh"s, "-e"s, "-c"s, *script};
    return std::vector{"/bin/sh"s, "-c"s, *std::move(script)};
  }
  const auto file = write_own_file(".script", *script);
  if (!file) return std::unexpected{"its script cannot be written: " + file.error()};
  std::vector<std::string> argv = command_.interpreter;
  const auto place = std::ranges::find(argv, "{}");
  place != argv.end() ? * place = *file : argv.emplace_back(*file);
  return argv;
}

std::expected<std::vector<std::string>, std::string> CommandRun::arguments() {
  if (command_.kind == flow::Command::Kind::shell) return shell_arguments();
  std::vector<std::string> argv;
  for (const flow::Template& part : command_.argv) {
    if (part.gives_words()) {
      const auto words = part.evaluate(*scope_);
      if (!words) return std::unexpected{words.error()};
      for (const Json& word : words->get_array()) argv.push_back(json::to_plain(word));
      continue;
    }
    auto argument = part.render(*scope_, flow::Quoting::none);
    if (!argument) return std::unexpected{argument.error()};
    argv.push_back(*std::move(argument));
  }
  if (argv.empty()) return std::unexpected{"argv: there is no program"};
  return argv;
}

void CommandRun::start_process() {
  ProcessSpec spec;
  auto argv = arguments();
  if (!argv) return fail(argv.error());
  spec.argv = *std::move(argv);
  auto env = environment();
  if (!env) return fail(env.error());
  if (setting_.kept_stdin) {
    if (auto same = check(setting_.stdin_file, *setting_.kept_stdin); !same)
      return fail("the standard input that was kept for this run is damaged: " + same.error());
  }
  const Program& program = *scope_->facts().program;
  spec.env = *std::move(env);
  spec.directory = path_in(program.input.directory, setting_.step.directory);
  spec.stdin_file = setting_.stdin_file;
  if (command_.standard_input) {
    const auto value = evaluate(*command_.standard_input, *scope_);
    if (!value) return fail("stdin: " + value.error());
    const auto file =
        write_own_file(".stdin", value->is_string() ? std::string{value->get_string()} : json::to_text(*value));
    if (!file) return fail("stdin: it cannot be written: " + file.error());
    spec.stdin_file = *file;
  }
  spec.log_file = setting_.log_file;
  spec.stdout_file = setting_.stdout_file;
  spec.private_folder = services_.settings.store_folder;
  spec.stderr_through = services_.settings.stderr_through;
  spec.stdout_through = services_.settings.stdout_through;
  spec.timeout = time_left();
  if (command_.timeout && (spec.timeout == Duration{0} || *command_.timeout < spec.timeout))
    spec.timeout = *command_.timeout;
  spec.stall_timeout = setting_.step.stall_timeout;
  if (spec.stall_timeout > Duration{0} && !setting_.log_file.empty()) {
    spec.progress_file = setting_.log_file + ".progress";
    spec.env.push_back("REPRISE_PROGRESS_FILE=" + spec.progress_file);
    // A command that cannot write there has its output to show that it lives.
    static_cast<void>(
        base::make_folder_of(spec.private_folder, base::name_below(spec.private_folder, spec.progress_file)));
  }
  spec.grace = services_.settings.grace;
  spec.secrets = program.secret_table;
  if (setting_.whole_output) spec.stdout_max = whole_output_max;
  process_ = services_.processes.start(std::move(spec), [self = shared_from_this()](ProcessEnd&& end) {
    SerialQueue& queue = self->services_.queue;
    const bool is_short = end.out.size + end.err.size <= short_output_max;
    auto ended = [self, end = std::move(end)]() mutable noexcept {
      guarded(*self, [&] { self->process_ended(std::move(end)); });
    };
    is_short ? queue.run_or_post(std::move(ended)) : queue.post(std::move(ended));
  });
  if (is_canceled_) services_.processes.cancel(process_);
}

// A command that was ended by what interrupts us as well is interrupted, and has not failed, even if it heard of it first.
void CommandRun::process_ended(ProcessEnd&& end) {
  if (!may_be_meant_for_us_too(end)) return judge_end(std::move(end));
  services_.queue.post_at(services_.env.now() + until_our_signal_comes,
                          [self = shared_from_this(), end = std::move(end)]() mutable noexcept {
                            end.canceled = self->is_canceled_;
                            guarded(*self, [&] { self->judge_end(std::move(end)); });
                          });
}

void CommandRun::judge_end(ProcessEnd&& end) {
  const bool is_cut = setting_.whole_output && !end.out.is_whole() && end.exit_code == 0;
  if (is_cut) return fail("the output has more than 256 MiB");
  kept_stdout_ = end.kept_stdout;
  was_out_of_time_ = end.timed_out || end.stalled;
  if (end.err.size > 0 && end.exit_code == 0) stderr_tail_ = event::tail_of(end.err.text());
  finish(judge().process(std::move(end)));
}

// ---- requests ----------------------------------------

std::expected<HttpRequest, std::string> CommandRun::request() {
  const flow::HttpCall& call = command_.http;
  HttpRequest request;
  request.method = call.method;
  auto url = call.url.render(*scope_, flow::Quoting::url);
  if (!url) return std::unexpected{"url: " + url.error()};
  request.url = *std::move(url);
  bool has_type = false;
  for (const auto& [name, text] : call.headers) {
    auto value = text.render(*scope_, flow::Quoting::none);
    if (!value) return std::unexpected{name + ": " + value.error()};
    has_type |= text::lowered(name) == "content-type";
    request.headers.emplace_back(name, *std::move(value));
  }
  if (call.body) {
    auto body = evaluated(*call.body, *scope_);
    if (!body) return std::unexpected{"body: " + body.error()};
    request.body = body->is_string() ? std::string{body->get_string()} : json::to_text(*body);
    if (!has_type && !body->is_string()) request.headers.emplace_back("Content-Type", "application/json");
  }
  const ScopeFacts& facts = scope_->facts();
  request.headers.emplace_back("Idempotency-Key", setting_.idempotency_key);
  request.headers.emplace_back("X-Reprise-Run-Id", to_string(facts.run));
  request.headers.emplace_back("X-Reprise-Step", setting_.step.id);
  request.headers.emplace_back("X-Reprise-Attempt", std::to_string(facts.attempt));
  request.timeout = time_left();
  request.stall_timeout = setting_.step.stall_timeout;
  if (command_.timeout && (request.timeout == Duration{0} || *command_.timeout < request.timeout))
    request.timeout = *command_.timeout;
  return request;
}

void CommandRun::start_request() {
  auto made = request();
  if (!made) return fail(made.error());
  if (command_.http.is_async) {
    const auto place = services_.webhooks.place_of(setting_.callback);
    if (!place) return fail("its end cannot be reported: " + place.error());
    made->headers.emplace_back("X-Reprise-Webhook-Url", place->url);
    made->headers.emplace_back("X-Reprise-Webhook-Token", place->token);
  }
  HttpRequest copy{.method = made->method, .url = made->url};
  request_ = services_.http().start(*std::move(made), [self = shared_from_this(), copy](HttpEnd&& end) {
    self->services_.queue.post([self, copy, end = std::move(end)]() mutable noexcept {
      guarded(*self, [&] { self->request_ended(copy, std::move(end)); });
    });
  });
  if (is_canceled_) services_.http().cancel(request_);
}

void CommandRun::request_ended(const HttpRequest& request, HttpEnd end) {
  end.body = without_secrets(std::move(end.body));
  end.message = without_secrets(std::move(end.message));
  write_log(request, end);
  const flow::HttpCall& call = command_.http;
  was_out_of_time_ = end.problem == HttpProblem::timed_out;
  const bool is_over = setting_.step.needs_verdict && Judge::holds_verdict(end.body);
  Judged result = judge().http(call, std::move(end), wall_clock_now());
  request_ = 0;
  if (!result) return finish(std::move(result));
  if (call.is_async && !is_over) return leave_to_report();
  if (call.expect_schema.empty()) return finish(std::move(result));
  check_schema(*std::move(result));
}

void CommandRun::check_schema(std::string body) {
  if (is_canceled_) return finish(std::unexpected{judge().canceled()});
  const std::string path = path_in(scope_->facts().program->input.directory, command_.http.expect_schema);
  is_reading_ = true;
  services_.files.read(path, schema_file_bytes_max, setting_.ends,
                       [=, this, weak = weak_from_this()](FileContent content) {
                         const auto self = weak.lock();
                         if (self == nullptr || is_done_) return;
                         guarded(*self, [&] { schema_read(path, std::move(content), body); });
                       });
}

void CommandRun::schema_read(const std::string& path, FileContent content, const std::string& body) {
  if (!content) return finish(std::unexpected{judge().unreadable("schema", content.error())});
  const auto schema = services_.schemas.compiled(path, *std::move(content));
  if (!schema) return fail(schema.error());
  if (auto fits = judge().schema(body, *schema, command_.http.expect_schema); !fits)
    return finish(std::unexpected{std::move(fits).error()});
  finish(body);
}

void CommandRun::leave_to_report() {
  if (is_canceled_) return finish(std::unexpected{judge().canceled()});
  is_done_ = true;
  const auto accepted = std::move(setting_.accepted);
  accepted();
}

// The exchange in a few lines, for `reprise logs`.
void CommandRun::write_log(const HttpRequest& request, const HttpEnd& end) const {
  if (setting_.log_file.empty()) return;
  constexpr std::size_t body_max = std::size_t{64} << 10U;
  const std::string url = request.url.substr(0, request.url.find('?'));
  const std::string head =
      request.method + " " + url + "\n" + (end.status != 0 ? "HTTP " + std::to_string(end.status) : end.message) + "\n";
  OutputFile log{setting_.log_file, OutputFile::Existing::append, services_.settings.store_folder};
  log.write(without_secrets(head) + "\n" + end.body.substr(0, body_max) + "\n");
}

std::string CommandRun::without_secrets(std::string text) const {
  return masked(scope_->facts().program->secret_table, std::move(text));
}

}  // namespace reprise::exec
