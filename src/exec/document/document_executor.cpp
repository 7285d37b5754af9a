#include "exec/document/document_executor.hpp"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "exec/document/attempt_run.hpp"
#include "exec/document/preparation_run.hpp"
#include "exec/list.hpp"
#include "exec/secrets/mask.hpp"
#include "exec/secrets/sealing.hpp"

namespace reprise::exec {
namespace {

constexpr std::size_t programs_max = 64;  // documents that are kept for their next job

using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;
Key key_of(const AttemptId& id) { return {id.run, id.step, id.item, id.token}; }

Failure unreadable(std::string message) {
  return {.type = "ValueError",
          .message = std::move(message),
          .failure_class = FailureClass::deterministic,
          .kind = FailureKind::invalid_input,
          .permanent = true};
}

// ---- what leaves a program to be recorded has no secrets in it ----

Judged recordable(const Program& program, Judged result) {
  const auto& secrets = program.secret_table;
  if (secrets == nullptr) return result;
  if (result) return masked(secrets, *std::move(result));
  Failure& failure = result.error();
  failure.type = masked(secrets, std::move(failure.type));
  failure.message = masked(secrets, std::move(failure.message));
  failure.details = masked(secrets, std::move(failure.details));
  return result;
}

// Items keep references to secrets: an attempt gets them whole.
Payload recordable_list(const Program& program, Payload list) {
  auto items = program.secret_table != nullptr ? decode_list(list.bytes) : std::nullopt;
  if (!items) return list;
  for (std::string& item : *items) item = sealed(*program.secret_table, item);
  return Payload::of(encode_list(*items));
}

void make_recordable(const Program& program, Prepared& prepared) {
  prepared.list = recordable_list(program, std::move(prepared.list));
  if (prepared.failure == nullptr) return;
  Judged failed = recordable(program, std::unexpected{std::move(*prepared.failure)});
  *prepared.failure = std::move(failed).error();
}

}  // namespace

class DocumentExecutor::State {
 public:
  State(DocumentSettings settings, Sink& sink, PayloadLoader load)
      : services_{std::move(settings), sink, std::move(load)} {}

  void start(std::vector<Job>&& jobs) {
    active_.fetch_add(jobs.size());
    // Not on the thread of the caller, which writes to the disk: on a busy machine that costs more than waking another one.
    services_.conductor.post([this, jobs = std::move(jobs)]() mutable {
      for (Job& job : jobs) begin(std::move(job));
    });
  }

  void prepare(Preparation&& preparation) {
    active_.fetch_add(1);
    services_.conductor.post([this, preparation = std::move(preparation)]() mutable { begin(std::move(preparation)); });
  }

  void cancel(const AttemptId& id) {
    services_.conductor.post([this, id] {
      if (const auto found = attempts_.find(key_of(id)); found != attempts_.end()) return found->second->cancel();
      const auto asked = preparations_.find(key_of(id));
      if (asked == preparations_.end()) return;
      asked->second->cancel();
      preparations_.erase(asked);
      one_less();
    });
  }

  std::size_t capacity() const {
    const std::size_t active = active_.load();
    return active < services_.settings.attempts_max ? services_.settings.attempts_max - active : 0;
  }

  void kill_all() {
    services_.conductor.post([this] {
      const auto running = attempts_;
      for (const auto& [id, attempt] : running) attempt->cancel();
      services_.processes.kill_all();
    });
  }

  void stop() {
    services_.conductor.post([this] {
      is_stopping_ = true;
      const auto running = attempts_;
      for (const auto& [id, attempt] : running) attempt->cancel();
      for (const auto& [id, asked] : preparations_) {
        asked->cancel();
        one_less();
      }
      preparations_.clear();
    });
    {
      std::unique_lock lock{idle_mutex_};
      idle_.wait(lock, [&] { return active_.load() == 0; });
    }
    services_.conductor.finish();
    services_.payloads.close();
  }

 private:
  void begin(Job&& job);
  void begin(Preparation&& preparation);
  std::expected<std::shared_ptr<const Program>, std::string> program_of(const RunId& run, const JobContext& context);
  std::expected<std::string, std::string> item_of(const Job& job, const Program& program);
  void answer(const AttemptId& id, AttemptResult&& result);
  void refuse(const AttemptId& id, std::string message) {
    answer(id, {std::unexpected{unreadable(std::move(message))}});
  }

  void one_less() {
    if (active_.fetch_sub(1) != 1) return;
    const std::lock_guard lock{idle_mutex_};
    idle_.notify_all();
  }

  Services services_;
  std::atomic<std::size_t> active_ = 0;
  std::mutex idle_mutex_;
  std::condition_variable idle_;

  // on the conductor's thread
  std::map<Key, std::shared_ptr<AttemptRun>> attempts_;
  std::map<Key, std::shared_ptr<PreparationRun>> preparations_;
  std::map<RunId, std::shared_ptr<const Program>> programs_;
  bool is_stopping_ = false;
};

std::expected<std::shared_ptr<const Program>, std::string> DocumentExecutor::State::program_of(
    const RunId& run, const JobContext& context) {
  if (const auto known = programs_.find(run); known != programs_.end()) return known->second;
  try {
    const Payload& input = *context.run_input;
    auto program = load_program(input.hashed ? *services_.payloads.read(input.bytes) : input.bytes);
    if (!program) return program;
    if (programs_.size() >= programs_max) programs_.clear();
    return programs_[run] = *program;
  } catch (const EngineError& error) {
    return std::unexpected{std::string{error.what()}};
  }
}

std::expected<std::string, std::string> DocumentExecutor::State::item_of(const Job& job, const Program& program) {
  try {
    const Payloads::Bytes stored = job.input.hashed ? services_.payloads.read_list(job.input.bytes) : nullptr;
    const auto element = list_element(stored != nullptr ? *stored : job.input.bytes, job.id.item);
    if (element) return unsealed(program.secret_table.get(), *element);
  } catch (const EngineError& error) {
    return std::unexpected{std::string{error.what()}};
  }
  return std::unexpected{"item " + std::to_string(job.id.item) + " is not in its list"};
}

void DocumentExecutor::State::begin(Job&& job) {
  auto program = program_of(job.run_id, *job.context);
  if (!program) return refuse(job.id, program.error());
  const auto step = (*program)->steps.find(*job.step);
  if (step == (*program)->steps.end()) return refuse(job.id, "the document has no step \"" + *job.step + "\"");
  ScopeFacts facts{*program, job.run_id, job.context, std::nullopt, job.id.item, job.attempt};
  if (job.input_is_list) {
    auto item = item_of(job, **program);
    if (!item) return refuse(job.id, item.error());
    facts.item = *std::move(item);
  }
  auto scope = std::make_shared<StepScope>(std::move(facts), services_.payloads);
  const auto done = [this, id = job.id, program = *program](AttemptResult result) {
    result.result = recordable(*program, std::move(result.result));
    answer(id, std::move(result));
  };
  auto attempt = std::make_shared<AttemptRun>(services_, std::move(scope), *step->second, job, done);
  attempts_[key_of(job.id)] = attempt;
  if (is_stopping_) attempt->cancel();
  attempt->start();
}

void DocumentExecutor::State::answer(const AttemptId& id, AttemptResult&& result) {
  attempts_.erase(key_of(id));
  Outcome outcome;
  outcome.id = id;
  if (result.result) {
    const std::uint64_t size = result.result->size();
    outcome.succeeded = true;
    outcome.output = {.bytes = *std::move(result.result), .size = size};
  } else if (is_stopping_ && result.result.error().failure_class == FailureClass::canceled) {
    outcome.interrupted = true;
  } else {
    outcome.failure = std::make_unique<Failure>(std::move(result.result).error());
    outcome.precondition = result.precondition;
  }
  services_.sink.ended(std::move(outcome));
  one_less();
}

void DocumentExecutor::State::begin(Preparation&& preparation) {
  const AttemptId id = preparation.id;
  const auto done = [this, id](Prepared&& prepared) {
    preparations_.erase(key_of(id));
    services_.sink.prepared(std::move(prepared));
    one_less();
  };
  const auto refused = [&](std::string message) {
    Prepared prepared;
    prepared.id = id;
    prepared.failure = std::make_unique<Failure>(unreadable(std::move(message)));
    done(std::move(prepared));
  };
  if (is_stopping_) return one_less();
  auto program = program_of(preparation.run_id, *preparation.context);
  if (!program) return refused(program.error());
  const auto step = (*program)->steps.find(*preparation.step);
  if (step == (*program)->steps.end()) return refused("the document has no step \"" + *preparation.step + "\"");
  ScopeFacts facts{*program, preparation.run_id, preparation.context, std::nullopt, 0, 1};
  auto scope = std::make_shared<StepScope>(std::move(facts), services_.payloads);
  const auto found = [done, program = *program](Prepared&& prepared) {
    make_recordable(*program, prepared);
    done(std::move(prepared));
  };
  auto run = std::make_shared<PreparationRun>(services_, std::move(scope), *step->second, id, found);
  preparations_[key_of(id)] = run;
  run->start();
}

// ---- the executor ----------------------------------------

DocumentExecutor::DocumentExecutor(DocumentSettings settings, Sink& sink, PayloadLoader load)
    : state_{std::make_unique<State>(std::move(settings), sink, std::move(load))} {}

DocumentExecutor::~DocumentExecutor() { shut_down(); }

void DocumentExecutor::start(std::vector<Job>& jobs) {
  state_->start(std::move(jobs));
  jobs.clear();
}

void DocumentExecutor::cancel(const AttemptId& id) { state_->cancel(id); }
std::size_t DocumentExecutor::capacity(std::uint32_t) { return state_->capacity(); }
void DocumentExecutor::prepare(Preparation&& preparation) { state_->prepare(std::move(preparation)); }
void DocumentExecutor::shut_down() { state_->stop(); }
void DocumentExecutor::kill_all() { state_->kill_all(); }

}  // namespace reprise::exec
