#include "exec/document/document_executor.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/sha256.hpp"
#include "event/evidence.hpp"
#include "exec/document/attempt_run.hpp"
#include "exec/document/preparation_run.hpp"
#include "exec/function/list.hpp"
#include "exec/place_keeper.hpp"
#include "exec/secrets/mask.hpp"
#include "exec/secrets/sealing.hpp"

namespace reprise::exec {
namespace {

constexpr std::size_t programs_max = 64;  // documents that are kept for their next job

using Key = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;
Key key_of(const AttemptId& id) { return {id.run, id.step, id.item, id.token}; }

// A secret's file has not answered: it may do so for the next attempt.
Failure unanswered(std::string message) {
  return {.type = "TimeoutError",
          .message = std::move(message),
          .failure_class = FailureClass::transient,
          .kind = FailureKind::timeout};
}

Failure interrupted() {
  return {.type = "CanceledError", .message = "canceled before it began", .failure_class = FailureClass::canceled};
}

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
  event::FailureEvidence evidence = event::evidence_in(failure);
  for (std::string* const text : {&evidence.out, &evidence.err}) *text = masked(secrets, std::move(*text));
  for (std::vector<std::string>* const list : {&evidence.mistakes, &evidence.failing, &evidence.done}) {
    for (std::string& text : *list) text = masked(secrets, std::move(text));
  }
  failure.evidence = event::encode(evidence);
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
    if (!expect(jobs.size())) return interrupt(jobs);
    // Not on the thread of the caller, which writes to the disk: on a busy machine that costs more than waking another one.
    services_.queue.post([this, jobs = std::move(jobs)]() mutable noexcept {
      for (Job& job : jobs) {
        if (job.limits.waits && begins_no_more_) {
          give_back(job.id);
          continue;
        }
        if (job.limits.any()) has_limits_.store(true);
        if (!places_.enter(job)) {
          waiting_.fetch_add(1);
          continue;
        }
        if (job.limits.waits) services_.sink.began(job.id);
        // Those that come back were not counted on: nobody asked for their capacity.
        const bool waits = job.context->brought != nullptr && is_full() && !is_stopping_;
        guarded_attempt(job.id, [&] { waits ? returning_.push_back(std::move(job)) : begin(std::move(job)); });
      }
    });
  }

  void prepare(Preparation&& preparation) {
    if (!expect(1)) return;
    services_.queue.post([this, preparation = std::move(preparation)]() mutable noexcept {
      guarded_preparation(preparation.id, [&] { begin(std::move(preparation)); });
    });
  }

  void cancel(const AttemptId& id) {
    services_.queue.post([this, id]() noexcept {
      if (places_.take_back(id)) return give_back_waiting(id);
      if (const auto found = attempts_.find(key_of(id)); found != attempts_.end()) return cancel(found->second);
      const auto asked = preparations_.find(key_of(id));
      if (asked == preparations_.end()) {
        cancel_waiting(id);
        return cancel_returning(id);
      }
      asked->second->cancel();
      preparations_.erase(asked);
      one_less();
    });
  }

  void take_back(const AttemptId& id) {
    services_.queue.post([this, id]() noexcept {
      if (places_.take_back(id)) give_back_waiting(id);
    });
  }

  void take_back_all() {
    services_.queue.post([this]() noexcept { give_back_all(); });
  }

  void settled(const AttemptId& id) {
    if (!has_limits_.load()) return;  // no place is kept
    services_.queue.post([this, id]() noexcept { pass_places_on(id); });
  }

  // Those that wait take no place of another.
  std::size_t capacity() const {
    const std::size_t active = with_room(active_.load());
    return active < services_.settings.attempts_max ? services_.settings.attempts_max - active : 0;
  }

  void kill_all() {
    services_.queue.post([this]() noexcept {
      const auto running = attempts_;
      for (const auto& [id, attempt] : running) cancel(attempt);
      give_back_all();
      cancel_waiting(std::nullopt);
      cancel_returning(std::nullopt);
      services_.processes.kill_all();
    });
  }

  void hand_on(std::string input, std::shared_ptr<const Program> program) {
    services_.queue.run_or_post([this, input = std::move(input), program = std::move(program)]() mutable noexcept {
      handed_on_ = {std::move(input), std::move(program)};
    });
  }

  Webhooks& webhooks() noexcept { return services_.webhooks; }
  void listen_again(std::string callback) {
    services_.queue.post(
        [this, callback = std::move(callback)]() noexcept { services_.webhooks.open_again(callback); });
  }

  void stop() {
    services_.webhooks.stop_taking();
    services_.queue.post([this]() noexcept {
      is_stopping_ = true;
      const auto running = attempts_;
      for (const auto& [id, attempt] : running) cancel(attempt);
      for (const auto& [id, asked] : preparations_) {
        asked->cancel();
        one_less();
      }
      preparations_.clear();
      give_back_all();
      cancel_waiting(std::nullopt);
      cancel_returning(std::nullopt);
    });
    {
      std::unique_lock lock{idle_mutex_};
      idle_.wait(lock, [&] { return active_.load() == 0; });
      is_closed_ = true;
    }
    if (parser_) parser_->finish();
    services_.queue.finish();
    services_.payloads.close();
  }

 private:
  // What goes wrong in our own part of one attempt or preparation is its failure, and of no other.
  template <class Work>
  void guarded_attempt(AttemptId id, const Work& work) noexcept {
    struct {
      State& state;
      AttemptId id;
      void broke(std::string_view why) {
        const auto found = state.attempts_.find(key_of(id));
        if (found == state.attempts_.end()) return state.answer(id, {std::unexpected{broken_off(why)}});
        const auto attempt = found->second;  // it leaves the map
        attempt->broke(why);
      }
    } owner{*this, id};
    guarded(owner, work);
  }
  template <class Work>
  void guarded_preparation(AttemptId id, const Work& work) noexcept {
    struct {
      State& state;
      AttemptId id;
      void broke(std::string_view why) {
        const auto found = state.preparations_.find(key_of(id));
        if (found == state.preparations_.end()) return state.refuse_preparation(id, broken_off(why));
        const auto preparation = found->second;  // it leaves the map
        preparation->broke(why);
      }
    } owner{*this, id};
    guarded(owner, work);
  }
  static void cancel(std::shared_ptr<AttemptRun> attempt) noexcept {
    guarded(*attempt, [&] { attempt->cancel(); });
  }

  // ---- jobs that wait for a place ----
  void give_back(const AttemptId& id) {
    services_.sink.ended({id, Returned{}});
    one_less();
  }
  void give_back_waiting(const AttemptId& id) {
    waiting_.fetch_sub(1);
    give_back(id);
  }
  void give_back_all() {
    begins_no_more_ = true;
    for (const AttemptId& id : places_.take_back_all()) give_back_waiting(id);
  }
  void pass_places_on(const AttemptId& id) { begin_waiting(places_.leave(id)); }
  void begin_waiting(std::vector<Job> begun) {
    waiting_.fetch_sub(begun.size());
    for (const Job& job : begun) services_.sink.began(job.id);  // first all, so that the loop hears of all at once
    for (Job& job : begun) guarded_attempt(job.id, [&] { begin(std::move(job)); });
  }

  void begin(Job&& job);
  void begin(Preparation&& preparation);
  using LoadedProgram = std::expected<std::shared_ptr<const Program>, Failure>;
  using WithProgram = std::move_only_function<void(LoadedProgram)>;

  // Files of secrets as far as they are known, and which are missing. What they are follows from the input, and from what is sealed in it.
  struct Reading {
    RunId run;
    RunInput input;
    std::map<std::string, FileContent> contents = {};
    std::set<std::string> missing = {};
    std::size_t awaited = 0;
    std::string unanswered = {};
  };

  // At once when it is known; otherwise when its document has been read, and the files of its secrets have answered.
  void with_program(const RunId& run, const JobContext& context, const AttemptId& id, WithProgram then);
  std::expected<RunInput, std::string> input_of(const JobContext& context);
  const std::shared_ptr<const Program>& keep(const RunId& run, std::shared_ptr<const Program> program);
  std::optional<LoadedProgram> load(Reading& reading) const;  // std::nullopt: files are missing
  void parse(const std::shared_ptr<Reading>& reading);
  void parsed(const std::shared_ptr<Reading>& reading, std::optional<LoadedProgram> program);
  void read_missing(const std::shared_ptr<Reading>& reading);
  void files_read(const std::shared_ptr<Reading>& reading);
  void loaded(const RunId& run, LoadedProgram program);
  std::shared_ptr<const Program> take_handed_on(const Payload& run_input);  // nullptr: it is another's
  void cancel_waiting(const std::optional<AttemptId>& id);                  // std::nullopt: all of them
  void cancel_returning(const std::optional<AttemptId>& id);
  bool is_full() const { return attempts_.size() >= services_.settings.attempts_max; }
  void leave(const AttemptId& id);
  void begin(Job&& job, const std::shared_ptr<const Program>& program);
  void begin(Preparation&& preparation, const std::shared_ptr<const Program>& program);
  std::expected<std::string, std::string> item_of(const Job& job, const Program& program);
  void answer(const AttemptId& id, AttemptResult&& result);
  void answer(Prepared&& prepared);
  void refuse(const AttemptId& id, std::string message) {
    answer(id, {.result = std::unexpected{unreadable(std::move(message))}});
  }
  void refuse_preparation(const AttemptId& id, Failure failure) {
    Prepared prepared;
    prepared.id = id;
    prepared.failure = std::make_unique<Failure>(std::move(failure));
    answer(std::move(prepared));
  }

  std::size_t with_room(std::size_t active) const {
    const std::size_t waiting = waiting_.load();
    return active > waiting ? active - waiting : 0;
  }
  // So many more to answer. False: it has stopped, and nothing begins any more.
  bool expect(std::size_t more) {
    const std::lock_guard lock{idle_mutex_};
    if (!is_closed_) active_.fetch_add(more);
    return !is_closed_;
  }
  // What was recorded as started while everything ended, because the store took its time.
  void interrupt(const std::vector<Job>& jobs) {
    for (const Job& job : jobs) services_.sink.ended({job.id, Returned{}});
  }
  void one_less() {
    const std::size_t before = active_.fetch_sub(1);
    if (with_room(before) == services_.settings.attempts_max) services_.sink.room_changed();
    if (before != 1) return;
    const std::lock_guard lock{idle_mutex_};
    idle_.notify_all();
  }

  Services services_;
  std::atomic<std::size_t> active_ = 0;
  std::atomic<std::size_t> waiting_ = 0;  // of those: for a place
  std::atomic<bool> has_limits_ = false;  // some job had
  std::mutex idle_mutex_;
  bool is_closed_ = false;
  std::condition_variable idle_;

  // on the serial queue's thread
  std::map<Key, std::shared_ptr<AttemptRun>> attempts_;
  std::map<Key, std::shared_ptr<PreparationRun>> preparations_;
  std::map<RunId, std::shared_ptr<const Program>> programs_;
  struct {
    std::string input;
    std::shared_ptr<const Program> program;
  } handed_on_;
  struct Waiting {
    AttemptId id;
    WithProgram then;
  };
  std::map<RunId, std::vector<Waiting>> loading_;
  std::deque<Job> returning_;  // attempts whose sub-flow has ended, while there is no room
  bool is_stopping_ = false;
  PlaceKeeper places_;
  bool begins_no_more_ = false;             // what waits for a place
  std::optional<SerialQueue> parser_ = {};  // of documents; made when one has to be read. Last: it posts to the others
};

void DocumentExecutor::State::with_program(const RunId& run, const JobContext& context, const AttemptId& id,
                                           WithProgram then) {
  if (const auto known = programs_.find(run); known != programs_.end()) return then(known->second);
  if (const auto found = loading_.find(run); found != loading_.end()) {
    found->second.push_back({id, std::move(then)});
    return;
  }
  if (auto program = take_handed_on(*context.run_input)) return then(keep(run, std::move(program)));
  auto input = input_of(context);
  if (!input) return then(std::unexpected{unreadable(input.error())});
  const auto reading = std::make_shared<Reading>(Reading{.run = run, .input = *std::move(input)});
  if (!parser_) parser_.emplace();
  loading_[run].push_back({id, std::move(then)});
  parse(reading);
  if (is_stopping_) cancel_waiting(id);
}

// On a thread of its own: this one serves all attempts. The reading belongs to one of both at a time.
void DocumentExecutor::State::parse(const std::shared_ptr<Reading>& reading) {
  parser_->post([this, reading]() noexcept {
    std::optional<LoadedProgram> program;
    struct {
      std::optional<LoadedProgram>& program;
      void broke(std::string_view why) { program = std::unexpected{broken_off(why)}; }
    } owner{program};
    guarded(owner, [&] { program = load(*reading); });
    services_.queue.post(
        [this, reading, program = std::move(program)]() mutable noexcept { parsed(reading, std::move(program)); });
  });
}

void DocumentExecutor::State::parsed(const std::shared_ptr<Reading>& reading, std::optional<LoadedProgram> program) {
  struct {
    State& state;
    const RunId& run;
    void broke(std::string_view why) { state.loaded(run, std::unexpected{broken_off(why)}); }
  } owner{*this, reading->run};
  guarded(owner, [&] { program ? loaded(reading->run, *std::move(program)) : read_missing(reading); });
}

std::expected<RunInput, std::string> DocumentExecutor::State::input_of(const JobContext& context) {
  try {
    const Payload& payload = *context.run_input;
    auto input = decode_run_input(payload.hashed ? *services_.payloads.read(payload.bytes) : payload.bytes);
    if (input) input->moved = services_.settings.moved;
    return input;
  } catch (const EngineError& error) {
    return std::unexpected{std::string{error.what()}};
  }
}

std::shared_ptr<const Program> DocumentExecutor::State::take_handed_on(const Payload& run_input) {
  if (handed_on_.program == nullptr) return nullptr;
  const bool is_same =
      run_input.bytes == (run_input.hashed ? base::sha256(handed_on_.input) : std::string_view{handed_on_.input});
  return is_same ? std::exchange(handed_on_, {}).program : nullptr;
}

const std::shared_ptr<const Program>& DocumentExecutor::State::keep(const RunId& run,
                                                                    std::shared_ptr<const Program> program) {
  if (programs_.size() >= programs_max) programs_.clear();
  return programs_[run] = std::move(program);
}

std::optional<DocumentExecutor::State::LoadedProgram> DocumentExecutor::State::load(Reading& reading) const {
  const auto program =
      services_.settings.load_program(reading.input, [&](const std::string& path, std::size_t) -> FileContent {
        if (const auto known = reading.contents.find(path); known != reading.contents.end()) return known->second;
        reading.missing.insert(path);
        return std::string{};
      });
  if (!reading.missing.empty()) return std::nullopt;  // whatever was made of empty ones
  if (!program) return std::unexpected{unreadable(program.error())};
  return *program;
}

void DocumentExecutor::State::read_missing(const std::shared_ptr<Reading>& reading) {
  const std::set<std::string> files = std::exchange(reading->missing, {});
  reading->awaited = files.size();
  for (const std::string& file : files) {
    services_.files.read(file, secret_file_bytes_max, std::nullopt, [this, reading, file](FileContent content) {
      if (!content && content.error().passes_by) reading->unanswered = content.error().message;
      reading->contents.insert_or_assign(file, std::move(content));
      if (--reading->awaited > 0) return;
      struct {
        State& state;
        const RunId& run;
        void broke(std::string_view why) { state.loaded(run, std::unexpected{broken_off(why)}); }
      } owner{*this, reading->run};
      guarded(owner, [&] { files_read(reading); });
    });
  }
}

void DocumentExecutor::State::files_read(const std::shared_ptr<Reading>& reading) {
  if (!reading->unanswered.empty())
    return loaded(reading->run, std::unexpected{unanswered("secret: " + reading->unanswered)});
  parse(reading);
}

void DocumentExecutor::State::loaded(const RunId& run, LoadedProgram program) {
  if (program) keep(run, *program);
  auto waiting = loading_.extract(run);
  if (waiting.empty()) return;
  for (Waiting& each : waiting.mapped()) each.then(program);
}

void DocumentExecutor::State::cancel_waiting(const std::optional<AttemptId>& id) {
  std::vector<Waiting> canceled;
  for (auto& [run, waiting] : loading_) {
    const auto rest =
        std::ranges::partition(waiting, [&](const Waiting& each) { return id && key_of(each.id) != key_of(*id); });
    std::ranges::move(rest, std::back_inserter(canceled));
    waiting.erase(rest.begin(), rest.end());
  }
  for (Waiting& each : canceled) each.then(std::unexpected{interrupted()});
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
  if (const auto known = programs_.find(job.run_id); known != programs_.end())
    return begin(std::move(job), known->second);
  const RunId run = job.run_id;
  const AttemptId id = job.id;
  const std::shared_ptr<const JobContext> context = job.context;
  with_program(run, *context, id, [this, job = std::move(job)](LoadedProgram program) mutable {
    if (!program) return answer(job.id, {.result = std::unexpected{std::move(program).error()}});
    guarded_attempt(job.id, [&] { begin(std::move(job), *program); });
  });
}

void DocumentExecutor::State::begin(Job&& job, const std::shared_ptr<const Program>& program) {
  const auto step = program->steps.find(*job.step);
  if (step == program->steps.end()) return refuse(job.id, "the document has no step \"" + *job.step + "\"");
  ScopeFacts facts{program,     job.run_id,        job.context,  std::nullopt, job.id.item,
                   job.attempt, job.used_attempts, job.is_first, step->second};
  if (job.input_is_list) {
    auto item = item_of(job, *program);
    if (!item) return refuse(job.id, item.error());
    facts.item = *std::move(item);
  }
  auto scope = std::make_shared<StepScope>(std::move(facts), services_.payloads);
  const auto done = [this, id = job.id, program](AttemptResult result) {
    if (result.handed_over) {
      leave(id);
      return begin_waiting(places_.hand_over(id));
    }
    result.result = recordable(*program, std::move(result.result));
    answer(id, std::move(result));
  };
  auto attempt = std::make_shared<AttemptRun>(services_, std::move(scope), *step->second, job, done);
  attempts_[key_of(job.id)] = attempt;
  if (is_stopping_) attempt->cancel();
  attempt->start();
}

void DocumentExecutor::State::answer(const AttemptId& id, AttemptResult&& result) {
  const bool succeeded = result.result.has_value();
  if (result.result) {
    const std::uint64_t size = result.result->size();
    services_.sink.ended({id, Succeeded{.output = {.bytes = *std::move(result.result), .size = size},
                                        .whole_output = result.kept_output ? to_text(*result.kept_output) : ""}});
  } else if (is_stopping_ && result.result.error().failure_class == FailureClass::canceled) {
    services_.sink.ended({id, Interrupted{}});
  } else {
    services_.sink.ended(failed(id, std::move(result.result).error(), result.precondition, result.end));
  }
  leave(id);
  if (succeeded) pass_places_on(id);
}

// There is room for another: first for one that was here before.
void DocumentExecutor::State::leave(const AttemptId& id) {
  attempts_.erase(key_of(id));
  one_less();
  if (returning_.empty()) return;
  services_.queue.post([this]() noexcept {
    if (returning_.empty() || is_full()) return;
    Job job = std::move(returning_.front());
    returning_.pop_front();
    guarded_attempt(job.id, [&] { begin(std::move(job)); });
  });
}

void DocumentExecutor::State::cancel_returning(const std::optional<AttemptId>& id) {
  std::deque<Job> rest;
  for (Job& job : std::exchange(returning_, {})) {
    if (id && key_of(job.id) != key_of(*id)) {
      rest.push_back(std::move(job));
    } else {
      answer(job.id, {.result = std::unexpected{interrupted()}});
    }
  }
  returning_ = std::move(rest);
}

void DocumentExecutor::State::answer(Prepared&& prepared) {
  preparations_.erase(key_of(prepared.id));
  services_.sink.prepared(std::move(prepared));
  one_less();
}

void DocumentExecutor::State::begin(Preparation&& preparation) {
  if (is_stopping_) return one_less();
  const RunId run = preparation.run_id;
  const AttemptId id = preparation.id;
  const std::shared_ptr<const JobContext> context = preparation.context;
  with_program(run, *context, id, [this, preparation = std::move(preparation)](LoadedProgram program) mutable {
    if (program) return guarded_preparation(preparation.id, [&] { begin(std::move(preparation), *program); });
    if (program.error().failure_class == FailureClass::canceled) return one_less();
    refuse_preparation(preparation.id, std::move(program).error());
  });
}

void DocumentExecutor::State::begin(Preparation&& preparation, const std::shared_ptr<const Program>& program) {
  const AttemptId id = preparation.id;
  const auto step = program->steps.find(*preparation.step);
  if (step == program->steps.end())
    return refuse_preparation(id, unreadable("the document has no step \"" + *preparation.step + "\""));
  ScopeFacts facts{program, preparation.run_id, preparation.context, std::nullopt, 0, 1};
  auto scope = std::make_shared<StepScope>(std::move(facts), services_.payloads);
  const auto found = [this, program](Prepared&& prepared) {
    make_recordable(*program, prepared);
    answer(std::move(prepared));
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
std::size_t DocumentExecutor::ahead(std::uint32_t, std::uint32_t places) { return places; }
void DocumentExecutor::take_back(const AttemptId& id) { state_->take_back(id); }
void DocumentExecutor::take_back_all() { state_->take_back_all(); }
void DocumentExecutor::settled(const AttemptId& id) { state_->settled(id); }
void DocumentExecutor::prepare(Preparation&& preparation) { state_->prepare(std::move(preparation)); }
void DocumentExecutor::shut_down() { state_->stop(); }
void DocumentExecutor::listen_again(std::string_view callback) { state_->listen_again(std::string{callback}); }
void DocumentExecutor::kill_all() { state_->kill_all(); }
std::expected<void, std::string> DocumentExecutor::listen() { return state_->webhooks().open(); }
void DocumentExecutor::hand_on(std::string input, std::shared_ptr<const Program> program) {
  state_->hand_on(std::move(input), std::move(program));
}

}  // namespace reprise::exec
