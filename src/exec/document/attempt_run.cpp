#include "exec/document/attempt_run.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "core/plan.hpp"
#include "event/evidence.hpp"
#include "exec/log_path.hpp"
#include "exec/secrets/mask.hpp"
#include "exec/time_limit.hpp"

namespace reprise::exec {
namespace {

constexpr std::uint32_t sub_flow_depth_max = 16;

// Like $(…): the line ends at the end do not belong to a result.
std::string without_line_ends(std::string text) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text;
}

// An attempt of that number was there before: in runs whose rules count anew when something is tried again.
void separate_from_before(const std::string& log_file, const std::string& store_folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(log_file, ignored)) return;
  OutputFile{log_file, OutputFile::Existing::append, store_folder}.write("\n---- tried again ----\n");
}

std::string_view word_for(bool is_fix) { return is_fix ? "fix: " : "require: "; }

}  // namespace

AttemptRun::AttemptRun(Services& services, std::shared_ptr<StepScope> scope, const flow::Step& step, const Job& job,
                       Done done)
    : services_{services},
      scope_{std::move(scope)},
      step_{step},
      id_{job.id},
      done_{std::move(done)},
      timeout_{job.timeout} {
  const ScopeFacts& facts = scope_->facts();
  idempotency_key_ = idempotency_key(job);
  if (!services.settings.store_folder.empty()) {
    log_file_ = log_path(services.settings.store_folder, facts.run, step.id, facts.index, facts.attempt);
    if (facts.context->brought == nullptr) separate_from_before(log_file_, services.settings.store_folder);
  }
  if (job.deadline != 0) {
    const Duration left{std::max<std::int64_t>(job.deadline - wall_clock_now_exactly().time_since_epoch().count(), 1)};
    if (timeout_ == Duration{0} || left <= timeout_) {
      timeout_ = left;
      ends_with_deadline_ = true;
    }
  }
  if (timeout_ > Duration{0} && timeout_ < Env::TimePoint::max() - services.env.now())
    ends_ = services.env.now() + timeout_;
}

Judge AttemptRun::judge() const {
  const ScopeFacts& facts = scope_->facts();
  return {facts.program->flow, step_, timeout_, facts.context->by_first_rules};
}

void AttemptRun::plan() {
  const ScopeFacts& facts = scope_->facts();
  const JobContext& context = *facts.context;
  if (context.stage == core::stage::fallback && step_.fallback) {
    todo_.push_back({Part::main, &step_.fallback->command});
    return;
  }
  if (context.stage == core::stage::failure_handler && step_.on_failure_command) {
    todo_.push_back({Part::main, &*step_.on_failure_command});
    return;
  }
  if (context.brought == nullptr) plan_main();
  if (step_.check) todo_.push_back({Part::check, &*step_.check});
}

void AttemptRun::plan_main() {
  const ScopeFacts& facts = scope_->facts();
  // A step with one item is asked before it begins (preparation_run); here each item of many is.
  if (facts.is_first && step_.require && step_.for_each) todo_.push_back({Part::require, &*step_.require});
  const bool tests_failed = facts.context->last_failure.failure_class == FailureClass::test_failure;
  if (tests_failed && step_.fix) todo_.push_back({Part::fix, &*step_.fix});
  commands_begun_ = first_command();
  for (std::size_t index = commands_begun_; index < step_.commands.size(); ++index)
    todo_.push_back({Part::main, &step_.commands[index]});
  if (step_.verb == flow::Verb::flow) todo_.push_back({Part::main, nullptr});
}

// How many commands need not run again: those before one that failed and has a policy of its own.
std::uint32_t AttemptRun::first_command() {
  const std::uint32_t failed = scope_->facts().context->last_failure.command;
  const bool has_policy = std::ranges::find(step_.command_policies, failed, &flow::CommandPolicy::command) !=
                          step_.command_policies.end();
  const std::vector<std::string>& done = scope_->last_evidence().done;
  if (failed == 0 || !has_policy || done.size() + 1 != failed) return 0;
  for (const std::string& output : done) scope_->add_output(output);
  return failed - 1;
}

void AttemptRun::start() {
  if (is_canceled_) return finish(std::unexpected{judge().canceled()});
  plan();
  if (const auto& brought = scope_->facts().context->brought; brought != nullptr) return go_on_with(*brought);
  next();
}

void AttemptRun::cancel() {
  is_canceled_ = true;
  if (current_ != nullptr) current_->cancel();
  if (is_reading_) finish(std::unexpected{judge().canceled()});
}

void AttemptRun::finish(Judged result, bool precondition) {
  finish({.result = std::move(result), .precondition = precondition, .kept_output = std::move(kept_output_)});
}

void AttemptRun::finish(AttemptResult result) {
  if (std::exchange(is_done_, true)) return;
  const bool is_over = ends_ && *ends_ <= services_.env.now();
  const bool was_out_of_time = (current_ != nullptr && current_->was_out_of_time()) || (is_over && current_ == nullptr);
  if (was_out_of_time) result.end = is_over && ends_with_deadline_ ? AttemptEnd::deadline : AttemptEnd::timed_out;
  current_.reset();
  const Done done = std::move(done_);
  done(std::move(result));
}

CommandSetting AttemptRun::setting(Part part) {
  if (ends_) ends_ = fair_due(*ends_, timeout_, services_.env.now());
  const RunInput& input = scope_->facts().program->input;
  CommandSetting setting{.step = step_, .idempotency_key = idempotency_key_};
  setting.log_file = log_file_;
  setting.ends = ends_;
  setting.timeout = timeout_;
  setting.stdin_file = kept_stdin_path(services_.settings.store_folder, input);
  setting.kept_stdin = input.kept_stdin;
  if (part != Part::main) return setting;
  const ScopeFacts& facts = scope_->facts();
  setting.callback = {.run = facts.run,
                      .step = id_.step,
                      .item = id_.item,
                      .visit = facts.context->visit,
                      .attempt = id_.token,
                      .only_own = step_.refuses_late};
  setting.accepted = [self = shared_from_this()] { self->leave_to_report(); };
  setting.whole_output = step_.output != flow::OutputForm::text;
  if (input.is_exec() && !services_.settings.store_folder.empty()) setting.stdout_file = exec_stdout_file(log_file_);
  return setting;
}

void AttemptRun::next() {
  if (is_canceled_) return finish(std::unexpected{judge().canceled()});
  if (todo_.empty()) return finish(result());
  const Todo todo = todo_.front();
  todo_.pop_front();
  run(todo);
}

void AttemptRun::run(const Todo& todo) {
  if (todo.command == nullptr) return start_sub_flow();
  const bool is_own = todo.part == Part::main && scope_->facts().context->stage == core::stage::main;
  if (is_own) ++commands_begun_;
  current_ = std::make_shared<CommandRun>(services_, scope_, *todo.command, setting(todo.part),
                                          [self = shared_from_this(), todo](Judged result) {
                                            guarded(*self, [&] { self->ended(todo, std::move(result)); });
                                          });
  current_->start();
}

void AttemptRun::ended(const Todo& todo, Judged result) {
  if (is_done_) return;
  const bool was_canceled = !result && result.error().failure_class == FailureClass::canceled;
  if (was_canceled) return finish(std::move(result));
  switch (todo.part) {
    case Part::require:
    case Part::fix:
      if (result) return next();
      result.error().message = std::string{word_for(todo.part == Part::fix)} + result.error().message;
      return finish(std::move(result), todo.part == Part::require);
    case Part::repair:
      if (result) return main_succeeded(*std::move(result));
      to_repair_->details += "\non_failure: " + result.error().message;
      return finish(std::unexpected{of_command(*std::move(to_repair_))});
    case Part::check:
      if (result) return next();  // what it wrote itself says what is wrong
      result.error().message = "check: " + result.error().message;
      result.error().failure_class = FailureClass::contract_failure;
      result.error().failed_check = true;
      return finish(std::move(result));
    case Part::main:
      break;
  }
  if (result) {
    if (current_ != nullptr) {
      kept_output_ = current_->kept_stdout();
      stderr_ = current_->stderr_tail();
    }
    return main_succeeded(*std::move(result));
  }
  if (todo.command == nullptr) return finish(std::move(result));
  if (todo.command->on_failure == nullptr) return finish(std::unexpected{of_command(std::move(result).error())});
  begin_repair(todo, std::move(result).error());
}

void AttemptRun::begin_repair(const Todo& todo, Failure failure) {
  to_repair_ = std::move(failure);
  scope_->set_failure_to_repair(*to_repair_);
  if (!log_file_.empty())
    OutputFile{log_file_, OutputFile::Existing::append, services_.settings.store_folder}.write(
        "---- on_failure of " + todo.command->verb + " ----\n");
  services_.sink.progressed({id_, "on_failure of " + todo.command->verb + ": " + to_repair_->message});
  run({Part::repair, todo.command->on_failure.get()});
}

// Which command it was matters where it has a policy of its own: it alone is tried again, with what those before it have given.
Failure AttemptRun::of_command(Failure failure) {
  const bool has_policy = std::ranges::find(step_.command_policies, commands_begun_, &flow::CommandPolicy::command) !=
                          step_.command_policies.end();
  if (!has_policy || scope_->facts().context->stage != core::stage::main) return failure;
  failure.command = commands_begun_;
  event::FailureEvidence evidence = event::evidence_in(failure);
  evidence.done = scope_->outputs();
  failure.evidence = event::encode(evidence);
  return failure;
}

// Of an item with several commands: what the last one gave, and what each of them did.
std::string AttemptRun::result() {
  if (!step_.keeps_outputs || scope_->facts().context->stage != core::stage::main) return std::move(output_);
  boost::json::array outputs;
  for (const std::string& each : scope_->outputs()) outputs.emplace_back(each);
  return json::to_text(boost::json::object{{"output", output_}, {"outputs", std::move(outputs)}});
}

void AttemptRun::main_succeeded(std::string output) {
  if (step_.keeps_outputs) scope_->add_output(without_line_ends(output));
  const bool is_last = todo_.empty() || todo_.front().part != Part::main;
  if (is_last) {
    // The caller of `exec` gets every byte, and short output stands in the record alone.
    output_ = scope_->facts().program->input.is_exec() ? std::move(output) : without_line_ends(std::move(output));
    if (auto fits = judge().form(output_); !fits) return refuse(std::move(fits).error());
    if (!step_.check_schema.empty()) return check_schema();
  }
  next();
}

// Its result is no good, and what it wrote beside it may say why.
void AttemptRun::refuse(Failure failure) {
  event::FailureEvidence evidence = event::evidence_in(failure);
  evidence.err = stderr_;
  failure.evidence = event::encode(evidence);
  finish(std::unexpected{std::move(failure)});
}

// ---- files ----------------------------------------

void AttemptRun::read_file(const std::string& path, std::size_t bytes_max, std::string_view what,
                           std::function<void(std::string)> then) {
  if (is_canceled_) return finish(std::unexpected{judge().canceled()});
  is_reading_ = true;
  services_.files.read(path, bytes_max, ends_, [this, weak = weak_from_this(), what, then](FileContent content) {
    const auto self = weak.lock();
    if (self == nullptr || is_done_) return;
    is_reading_ = false;
    guarded(*self, [&] {
      if (!content) return finish(std::unexpected{judge().unreadable(what, content.error())});
      then(*std::move(content));
    });
  });
}

void AttemptRun::check_schema() {
  const std::string path = path_in(scope_->facts().program->input.directory, step_.check_schema);
  read_file(path, schema_file_bytes_max, "schema", [this, path](std::string content) {
    const auto schema = services_.schemas.compiled(path, std::move(content));
    if (!schema) return finish(std::unexpected{judge().invalid(schema.error())});
    if (auto fits = judge().schema(output_, *schema, step_.check_schema); !fits) return refuse(std::move(fits).error());
    next();
  });
}

// ---- flows inside of flows ----------------------------------------

void AttemptRun::start_sub_flow() {
  const Program& program = *scope_->facts().program;
  if (services_.settings.sub_flows == nullptr)
    return finish(std::unexpected{judge().invalid("flows inside of flows cannot run here")});
  if (program.input.depth >= sub_flow_depth_max)
    return finish(std::unexpected{judge().invalid("flows call each other more than 16 levels deep")});
  auto file = step_.flow.file.render(*scope_, flow::Quoting::none);
  if (!file) return finish(std::unexpected{judge().invalid(file.error())});
  RunInput input;
  input.file = path_in(program.input.directory, *file);
  input.directory = input.file.substr(0, input.file.rfind('/'));
  input.depth = program.input.depth + 1;
  input.rules = program.input.rules;
  input.secrets = program.secret_sources;
  input.secret_values = program.secret_values;
  boost::json::object params;
  for (const auto& [name, value] : step_.flow.params) {
    auto made = evaluate(value, *scope_);
    if (!made) return finish(std::unexpected{judge().invalid(name + ": " + made.error())});
    params[name] = *std::move(made);
  }
  input.params = std::move(params);
  const std::string path = input.file;
  read_file(path, flow_file_bytes_max, "flow", [this, input = std::move(input)](std::string content) mutable {
    input.text = std::move(content);
    hand_over(input);
  });
}

// What is left of its time goes with it. False: nothing is, and it has failed.
template <class Over>
bool AttemptRun::give_time(Over& over, std::string_view overdue) {
  if (!ends_) return true;
  const Env::TimePoint now = services_.env.now();
  ends_ = fair_due(*ends_, timeout_, now);
  if (*ends_ <= now) {
    finish(std::unexpected{judge().timed_out("timed out")});
    return false;
  }
  over.time_left = std::chrono::duration_cast<Duration>(*ends_ - now);
  over.overdue = std::make_unique<Failure>(judge().timed_out(overdue));
  return true;
}

// The engine does the rest: it stops the flow when the attempt is cancelled or its time is over, and knows of both after a restart.
void AttemptRun::hand_over(const RunInput& input) {
  HandedOver over{.id = id_, .key = idempotency_key_};
  if (!give_time(over, "timed out")) return;
  over.returns = step_.check || !step_.check_schema.empty() || step_.output == flow::OutputForm::json;
  if (auto handed = services_.settings.sub_flows->hand_over(std::move(over), input); !handed)
    return finish(std::unexpected{judge().invalid(handed.error().message)});
  finish(AttemptResult{.result = {}, .handed_over = true});
}

void AttemptRun::leave_to_report() {
  Accepted accepted{.id = id_, .callback = services_.webhooks.used()};
  if (!give_time(accepted, "no webhook came")) return;
  services_.sink.accepted(std::move(accepted));
  finish(AttemptResult{.result = {}, .handed_over = true});
}

// What a sub-flow has brought, or what was reported.
void AttemptRun::go_on_with(const Payload& brought) {
  std::string bytes;
  try {
    bytes = brought.hashed ? *services_.payloads.read(brought.bytes) : brought.bytes;
  } catch (const EngineError& error) {
    return finish(std::unexpected{judge().invalid(error.what())});
  }
  if (step_.verb == flow::Verb::flow) return main_succeeded(std::move(bytes));
  const std::string report = masked(scope_->facts().program->secret_table, std::move(bytes));
  ended({Part::main, &step_.commands.front()}, judge().webhook(report));
}

std::string exec_stdout_file(std::string_view log_file) {
  std::string file{log_file};
  if (file.ends_with(".log")) file.resize(file.size() - 4);
  return file + ".stdout";
}

}  // namespace reprise::exec
