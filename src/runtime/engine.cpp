// The public engine: checks what callers ask, hands it to the loop, and waits for the answer.
#include <reprise/engine.hpp>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <semaphore>
#include <thread>

#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "base/store_address.hpp"
#include "env/wall_clock.hpp"
#include "event/codec.hpp"
#include "event/evidence.hpp"
#include "event/history.hpp"
#include "exec/function/function_pool.hpp"
#include "runtime/control.hpp"
#include "runtime/driver.hpp"
#include "runtime/engine_access.hpp"
#include "runtime/feed.hpp"
#include "runtime/ids.hpp"
#include "runtime/plan_book.hpp"
#include "runtime/run_service.hpp"
#include "store/store.hpp"
#include "text/pattern.hpp"

namespace reprise {

using runtime::Input;

namespace {

constexpr std::size_t key_max = 512;
constexpr std::size_t reason_max = 1024;  // of a cancel
constexpr std::size_t evidence_max = std::size_t{64} << 10U;
constexpr std::size_t payload_max = std::size_t{1} << 30U;
constexpr std::size_t batch_max = 100'000;
// The loop's list of executors.
constexpr std::uint32_t function_executor = 0;
constexpr std::uint32_t document_executor = 1;

std::unexpected<Error> invalid(std::string message) {
  return std::unexpected{Error{ErrorCode::invalid, std::move(message)}};
}
std::unexpected<Error> stopped() { return std::unexpected{Error{ErrorCode::stopped, "the engine has stopped"}}; }

// A reply that a thread waits for.
template <class Base>
class Awaited final : public Base {
 public:
  Awaited() = default;
  explicit Awaited(bool has_limit) : has_limit_{has_limit} {}

  void done(std::expected<void, Error> answer) override {
    answer_ = std::move(answer);
    if (!has_limit_) return answered_.release();
    const std::lock_guard lock{mutex_};
    is_answered_ = true;
    in_time_.notify_all();
  }
  std::expected<void, Error> wait() {
    answered_.acquire();
    return std::move(answer_);
  }
  // Only if it was made with a limit. False: the time is over, and the answer goes nowhere.
  bool wait_until(Env::TimePoint until) {
    std::unique_lock lock{mutex_};
    return in_time_.wait_until(lock, until, [this] { return is_answered_; });
  }
  std::expected<void, Error> take() { return std::move(answer_); }

 private:
  // A semaphore spins a little before it sleeps, which most answers are quick enough for. With a limit of time those of libstdc++ 12 sleep and
  // look, up to 64 ms too long; so that is waited for in another way.
  const bool has_limit_ = false;
  std::binary_semaphore answered_{0};
  std::mutex mutex_;
  std::condition_variable in_time_;
  bool is_answered_ = false;
  std::expected<void, Error> answer_;
};

// Large payloads go by their hash; the bytes travel beside it until they are stored.
event::Payload payload_of(std::string bytes, std::string& body) {
  if (bytes.size() <= event::payload_inline_max) return event::Payload::of(std::move(bytes));
  event::Payload payload{base::sha256(bytes), bytes.size(), true};
  body = std::move(bytes);
  return payload;
}

// The same for what a failed attempt left behind; `body` stays empty when the failure itself holds it all.
void keep_evidence_apart(Failure& failure, std::string& body) {
  if (failure.evidence.size() > evidence_max) failure.evidence.clear();  // a handler's, which is none of ours
  failure.evidence_size = failure.evidence.size();
  if (failure.evidence.size() <= event::FailureEvidence::inline_bytes_max) return;
  body = std::move(failure.evidence);
  failure.evidence = base::hexadecimal(base::sha256(body));
}

std::shared_ptr<const MessagePattern> compile(std::string_view expression) {
  auto pattern = text::compile_pattern(expression);
  return pattern ? *std::move(pattern) : nullptr;
}

unsigned threads_for(const EngineSettings& settings) {
  return settings.threads > 0 ? settings.threads : std::max(4U, std::thread::hardware_concurrency());
}

}  // namespace

struct Engine::State final : exec::Sink {
  State(EngineSettings wanted, std::unique_ptr<store::Store> opened, const runtime::ExecutorFactory& make_documents)
      : settings{std::move(wanted)},
        env{settings.env != nullptr ? *settings.env : system_env()},
        clock{env, wall_clock_now_exactly().time_since_epoch().count()},
        store{std::move(opened)},
        book{{.retry = settings.retry,
              .by_type = settings.retry_by_type,
              .built_ins = settings.built_ins,
              .types = settings.types},
             {compile, settings.types}},
        pool{{.threads = threads_for(settings),
              .grace = settings.grace,
              .max_abandoned = settings.max_abandoned,
              .env = &env,
              .wall_clock = [this] { return clock.now(); },
              .load = [this](std::string_view hash) { return load(hash); }},
             *this},
        documents{make_documents ? make_documents(*this, [this](std::string_view hash) { return load(hash); })
                                 : nullptr},
        loop{*store,
             documents != nullptr ? runtime::Executors{&pool, documents.get()} : runtime::Executors{&pool},
             {.memory = settings.memory,
              .max_open = settings.max_open,
              .park_after = settings.park_after,
              .keep_ended = settings.keep_ended,
              .keep_count = settings.keep_count,
              .types = settings.types},
             env.random_seed(),
             clock.now()},
        driver{loop, *store, clock, settings.max_inbox} {}

  std::expected<void, Error> begin() {
    auto plans = loop.recover(compile, clock.now());
    if (!plans) return std::unexpected{plans.error()};
    book.restore(*std::move(plans));
    loop.set_observer(&feeds);
    if (documents != nullptr) {
      loop.restrict_documents();
      loop.handle(runtime::OpenQueue{std::string{runtime::document_queue}, {.executor = document_executor}, 0},
                  clock.now());
    }
    driver.start();
    return {};
  }

  void ended(exec::Outcome&& outcome) override {
    std::string body;
    if (auto* const end = std::get_if<exec::Succeeded>(&outcome.end))
      end->output = payload_of(std::move(end->output.bytes), body);
    if (auto* const end = std::get_if<exec::Failed>(&outcome.end)) keep_evidence_apart(*end->failure, body);
    driver.push(runtime::Ended{std::move(outcome), std::move(body)});
  }
  void began(const event::AttemptId& id) override { driver.push(runtime::Began{id, clock.now()}); }
  void accepted(exec::Accepted&& accepted) override { driver.push(std::move(accepted)); }
  void reported(exec::Report&& report) override { driver.push(runtime::Reported{std::move(report)}); }
  void progressed(exec::Progress&& progress) override { driver.push(std::move(progress)); }
  void room_changed() override { driver.push(runtime::RoomChanged{}); }
  void prepared(exec::Prepared&& prepared) override {
    std::string body;
    prepared.list = payload_of(std::move(prepared.list.bytes), body);
    if (prepared.failure != nullptr) keep_evidence_apart(*prepared.failure, body);
    driver.push(runtime::Begins{std::move(prepared), std::move(body)});
  }

  std::expected<std::string, Error> load(std::string_view hash) {
    auto bytes = store->read_payload(hash);
    if (!bytes) return std::unexpected{bytes.error()};
    if (!*bytes) return std::unexpected{Error{ErrorCode::store_damaged, "a large payload is missing from the store"}};
    return std::move(**bytes);
  }

  bool stop(Duration patience) {
    const std::lock_guard lock{stop_mutex};
    if (has_stopped) return stopped_calmly;
    control.reset();  // while its questions are still answered
    driver.stop_starting();
    stopped_calmly = driver.drain(patience);
    exec::FunctionPool::Stopped rest = pool.stop(Duration{0});
    if (documents != nullptr) documents->shut_down();
    for (const event::AttemptId& id : rest.not_begun) driver.push(runtime::Ended{{id, exec::Returned{}}, {}});
    for (const event::AttemptId& id : rest.interrupted) driver.push(runtime::Ended{{id, exec::Interrupted{}}, {}});
    driver.finish();
    feeds.close();
    has_stopped = true;
    return stopped_calmly;
  }

  // Each event that is stored, one after the other: there may be millions. Gives a history that has seen all of them.
  std::expected<event::EventHistory, Error> read_past(const RunId& run, const std::function<void(Event&&)>& visit);
  enum class Room : std::uint8_t { awaited, needed };  // what happens while the inbox is full
  std::expected<RunId, Error> submit_one(runtime::NewRun run, Room room = Room::awaited);
  std::expected<runtime::NewRun, Error> new_run(Task& task, std::expected<runtime::PlannedTask, Error> plan);
  std::expected<std::shared_ptr<Awaited<runtime::AskReply>>, Error> ask(const RunId& run, runtime::Question question,
                                                                        bool has_limit = false);
  std::expected<RunOutcome, Error> outcome_in(Awaited<runtime::AskReply>& reply);
  std::expected<void, Error> operate(runtime::Operation operation, const RunId& run, std::string_view text = {},
                                     std::string payload = {}, const runtime::WorkChoice& choice = {});
  std::expected<void, Error> signal(const RunId& run, std::string_view name, std::string payload);
  bool works_on(const RunId& run);
  bool can_run(const runtime::AskReply& reply) const;
  std::expected<void, Error> check_can_run(const RunId& run);
  std::expected<void, Error> perform(const runtime::RunRequest& request);
  void listen();  // to other processes, if they can find the store

  EngineSettings settings;
  Env& env;
  runtime::Clock clock;
  std::unique_ptr<store::Store> store;
  runtime::PlanBook book;
  runtime::Feeds feeds;
  exec::FunctionPool pool;
  std::unique_ptr<exec::Executor> documents;  // nullptr: only functions
  runtime::Loop loop;
  runtime::Driver driver;
  std::mutex stop_mutex;
  bool has_stopped = false;
  bool stopped_calmly = false;
  std::unique_ptr<runtime::ControlServer> control;  // last: it calls what stands above
};

// ---- opening and closing ----------------------------------------

Engine::Engine(std::unique_ptr<State> state) noexcept : state_{std::move(state)} {}

std::expected<Engine, Error> Engine::open(EngineSettings settings) {
  auto engine = runtime::EngineAccess::open(std::move(settings), {});
  if (engine) engine->state_->listen();
  return engine;
}

std::expected<Engine, Error> runtime::EngineAccess::open(EngineSettings settings, const ExecutorFactory& documents,
                                                         std::unique_ptr<store::Store> shard) {
  for (const auto& [type, policy] : settings.retry_by_type) {
    const std::string same{actor_type_of(type)};
    if (same != type && settings.retry_by_type.contains(same))
      return invalid("retry_by_type: \"" + type + "\" and \"" + same + "\" are the same actor type; keep one of them");
  }
  auto store = shard != nullptr ? std::move(shard) : store::open_store(settings.store);
  if (!store) return std::unexpected{store.error()};
  auto state = std::make_unique<Engine::State>(std::move(settings), *std::move(store), documents);
  if (auto begun = state->begin(); !begun) return std::unexpected{begun.error()};
  return Engine{std::move(state)};
}

std::expected<RunId, Error> runtime::EngineAccess::submit(Engine& engine, core::Plan plan, Task task) {
  Engine::State& state = *engine.state_;
  auto run = state.new_run(task, state.book.book_document(std::move(plan)));
  if (!run) return std::unexpected{run.error()};
  return state.submit_one(*std::move(run));
}

void runtime::EngineAccess::allow(Engine& engine, const RunId& run, bool resumes) {
  engine.state_->driver.push(Allow{run, resumes});
}

std::expected<void, Error> runtime::EngineAccess::hand_over(Engine& engine, exec::HandedOver over, core::Plan plan,
                                                            std::string input) {
  Engine::State& state = *engine.state_;
  Task task{.input = std::move(input), .key = std::move(over.key)};
  auto child = state.new_run(task, state.book.book_document(std::move(plan)));
  if (!child) return std::unexpected{child.error()};
  state.driver.push(HandOver{over.id, *std::move(child), over.time_left, std::move(over.overdue), over.returns});
  return {};
}

bool runtime::EngineAccess::works_on(Engine& engine, const RunId& run) { return engine.state_->works_on(run); }

std::expected<void, Error> runtime::EngineAccess::perform(Engine& engine, const RunRequest& request) {
  return engine.state_->perform(request);
}

std::expected<std::uint64_t, Error> runtime::EngineAccess::last_sequence(Engine& engine, const RunId& run) {
  const auto reply = engine.state_->ask(run, Question::now);
  if (!reply) return std::unexpected{reply.error()};
  return (*reply)->sequence;
}

std::expected<void, Error> runtime::EngineAccess::retry_failed(Engine& engine, const RunId& run,
                                                               const WorkChoice& choice) {
  return engine.state_->operate(Operation::retry_failed, run, {}, {}, choice);
}

std::expected<void, Error> runtime::EngineAccess::drop(Engine& engine, const RunId& run, const WorkChoice& choice) {
  return engine.state_->operate(Operation::drop, run, {}, {}, choice);
}

Engine::Engine(EngineSettings settings) {
  auto opened = open(std::move(settings));
  if (!opened) throw EngineError{opened.error()};
  state_ = std::move(opened->state_);
}

Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&& other) noexcept {
  if (this != &other) {
    if (state_ != nullptr) state_->stop(Duration{0});
    state_ = std::move(other.state_);
  }
  return *this;
}
Engine::~Engine() {
  if (state_ != nullptr) state_->stop(Duration{0});
}

bool Engine::stop(Duration patience) { return state_->stop(patience); }

EngineStats Engine::stats() const { return state_->driver.stats(); }

// ---- handlers and flows ----------------------------------------

std::expected<void, Error> Engine::add_handler(std::string name, Handler handler, HandlerOptions options) {
  const std::uint32_t limit = options.concurrency;
  if (auto added = state_->book.add_handler(name, std::move(options)); !added) return added;
  const std::uint32_t number = state_->pool.add_handler(name, std::move(handler));
  if (!state_->driver.push_when_room(
          runtime::OpenQueue{std::move(name), {.executor = function_executor, .handler = number}, limit}))
    return stopped();
  return {};
}

std::expected<EffectivePolicy, Error> Engine::effective_policy(std::string_view handler) const {
  return state_->book.effective_policy(handler);
}

std::expected<void, Error> Engine::flow(Flow flow) { return state_->book.add_flow(flow); }

// ---- submitting ----------------------------------------

std::expected<runtime::NewRun, Error> Engine::State::new_run(Task& task,
                                                             std::expected<runtime::PlannedTask, Error> plan) {
  if (task.key.size() > key_max) return invalid("a key has at most 512 bytes");
  if (task.priority > 9) return invalid("priority is 0 (last) to 9 (first), not " + std::to_string(task.priority));
  if (task.delay.count() < 0) return invalid("a delay is not negative");
  if (task.input.size() > payload_max) return invalid("an input has at most 1 GiB");
  if (!plan) return std::unexpected{plan.error()};
  runtime::NewRun run;
  run.plan = plan->plan;
  run.facts = std::move(plan->facts);
  run.items = static_cast<std::uint32_t>(task.items.size());
  run.input = payload_of(task.items.empty() ? std::move(task.input) : encode_list(task.items), run.body);
  run.key = std::move(task.key);
  run.delay = task.delay;
  run.priority = task.priority;
  return run;
}

std::expected<RunId, Error> Engine::submit(Task task) {
  auto run = state_->new_run(task, state_->book.plan_for(task));
  if (!run) return std::unexpected{run.error()};
  return state_->submit_one(*std::move(run));
}

std::expected<RunId, Error> Engine::try_submit(Task task) {
  auto run = state_->new_run(task, state_->book.plan_for(task));
  if (!run) return std::unexpected{run.error()};
  return state_->submit_one(*std::move(run), State::Room::needed);
}

std::expected<RunId, Error> Engine::State::submit_one(runtime::NewRun run, Room room) {
  auto reply = std::make_shared<Awaited<runtime::SubmitReply>>();
  reply->runs.push_back(std::move(run));
  if (room == Room::needed) {
    if (auto pushed = driver.try_push(runtime::Submit{reply}); !pushed) return std::unexpected{pushed.error()};
  } else if (!driver.push_when_room(runtime::Submit{reply})) {
    return stopped();
  }
  if (auto answer = reply->wait(); !answer) return std::unexpected{answer.error()};
  return reply->runs.front().id;
}

std::expected<std::vector<RunId>, Error> Engine::submit_all(std::vector<Task> tasks) {
  if (tasks.size() > batch_max) return invalid("a batch has at most 100,000 tasks");
  auto reply = std::make_shared<Awaited<runtime::SubmitReply>>();
  reply->runs.reserve(tasks.size());
  for (std::size_t index = 0; index < tasks.size(); ++index) {
    auto run = state_->new_run(tasks[index], state_->book.plan_for(tasks[index]));
    if (!run) return invalid("task " + std::to_string(index + 1) + ": " + run.error().message);
    reply->runs.push_back(*std::move(run));
  }
  if (!state_->driver.push_when_room(runtime::Submit{reply})) return stopped();
  if (auto answer = reply->wait(); !answer) return std::unexpected{answer.error()};
  std::vector<RunId> ids;
  ids.reserve(reply->runs.size());
  for (const runtime::NewRun& run : reply->runs) ids.push_back(run.id);
  return ids;
}

// ---- asking ----------------------------------------

std::expected<std::shared_ptr<Awaited<runtime::AskReply>>, Error> Engine::State::ask(const RunId& run,
                                                                                     runtime::Question question,
                                                                                     bool has_limit) {
  auto reply = std::make_shared<Awaited<runtime::AskReply>>(has_limit);
  if (!driver.push_when_room(runtime::Ask{question, run, reply})) return stopped();
  if (question == runtime::Question::ended) return reply;
  if (auto answer = reply->wait(); !answer) return std::unexpected{answer.error()};
  return reply;
}

std::expected<RunOutcome, Error> Engine::State::outcome_in(Awaited<runtime::AskReply>& reply) {
  if (reply.large_output) {
    auto bytes = load(reply.large_output->bytes);
    if (!bytes) return std::unexpected{bytes.error()};
    reply.outcome.output = *std::move(bytes);
  }
  return std::move(reply.outcome);
}

std::expected<RunOutcome, Error> Engine::wait(const RunId& run, std::optional<Duration> patience) {
  const auto reply = state_->ask(run, runtime::Question::ended, patience.has_value());
  if (!reply) return std::unexpected{reply.error()};
  std::expected<void, Error> answer;
  if (!patience) {
    answer = (*reply)->wait();
  } else if ((*reply)->wait_until(state_->env.now() + *patience)) {
    answer = (*reply)->take();
  } else {
    return std::unexpected{Error{ErrorCode::timed_out, "the run " + to_string(run) + " has not ended yet"}};
  }
  if (!answer) return std::unexpected{answer.error()};
  return state_->outcome_in(**reply);
}

std::expected<RunOutcome, Error> Engine::result(const RunId& run) {
  const auto reply = state_->ask(run, runtime::Question::now);
  if (!reply) return std::unexpected{reply.error()};
  return state_->outcome_in(**reply);
}

std::expected<RunInfo, Error> Engine::info(const RunId& run) {
  const auto reply = state_->ask(run, runtime::Question::now);
  if (!reply) return std::unexpected{reply.error()};
  return (*reply)->info;
}

std::expected<RunPage, Error> Engine::find(const RunQuery& query, std::string_view cursor) {
  auto reply = std::make_shared<Awaited<runtime::FindReply>>();
  reply->query = query;
  if (!cursor.empty()) {
    const auto [end, mistake] = std::from_chars(cursor.data(), cursor.data() + cursor.size(), reply->below);
    if (mistake != std::errc{} || end != cursor.data() + cursor.size() || reply->below == 0)
      return invalid("this is not a cursor that find() gave");
  }
  if (!state_->driver.push_when_room(runtime::Find{reply})) return stopped();
  if (auto answer = reply->wait(); !answer) return std::unexpected{answer.error()};
  RunPage page{.runs = std::move(reply->runs)};
  if (reply->next_below > 1) page.cursor = std::to_string(reply->next_below);
  return page;
}

std::expected<std::vector<Event>, Error> Engine::events(const RunId& run) {
  std::vector<Event> events;
  const auto read = state_->read_past(run, [&](Event&& event) { events.push_back(std::move(event)); });
  if (!read) return std::unexpected{read.error()};
  return events;
}

std::expected<event::EventHistory, Error> Engine::State::read_past(const RunId& run,
                                                                   const std::function<void(Event&&)>& visit) {
  const auto reply = ask(run, runtime::Question::past);
  if (!reply) return std::unexpected{reply.error()};
  const runtime::BookedPlan* const plan = book.plan((*reply)->plan);
  event::EventHistory history{run, core::step_labels(*plan->plan)};
  bool ok = true;
  const auto tell = [&](std::uint64_t first, std::string_view chunk) {
    event::ChunkReader reader{chunk, first};
    event::Record record;
    while (reader.next(record)) visit(history.add(record));
    return ok = reader.ok();
  };
  // What has got an image since the question is told from the answer, which has it, too.
  const std::uint64_t end = (*reply)->events_first;
  const auto read = store->read_history(
      (*reply)->number, [&](std::uint64_t first, std::string_view chunk) { return first < end && tell(first, chunk); });
  if (!read) return std::unexpected{read.error()};
  if (ok && !(*reply)->events.empty()) tell(end, (*reply)->events);
  if (!ok)
    return std::unexpected{Error{ErrorCode::store_damaged, "the events of run " + to_string(run) + " cannot be read"}};
  return history;
}

Events Engine::subscribe(Subscription subscription) {
  std::shared_ptr<runtime::Feed> feed = state_->feeds.add(std::move(subscription));
  constexpr int readings_max = 5;  // a run that is too quick for that is told without what depends on its past
  bool is_sure = !feed->subscription.run;
  for (int reading = 0; !is_sure && reading < readings_max; ++reading) {
    std::uint64_t last = 0;
    auto history = state_->read_past(*feed->subscription.run, [&](const Event& event) {
      feed->add(event);
      last = event.sequence;
    });
    if (!history) break;
    state_->feeds.prime(*feed->subscription.run, *std::move(history), last);
    const std::lock_guard lock{feed->mutex};
    is_sure = feed->unsure_until <= last;
  }
  return Events{std::move(feed)};
}

// ---- operating ----------------------------------------

std::expected<void, Error> Engine::State::operate(runtime::Operation operation, const RunId& run, std::string_view text,
                                                  std::string payload, const runtime::WorkChoice& choice) {
  auto reply = std::make_shared<Awaited<runtime::Reply>>();
  runtime::Operate input{operation, run, std::string{text}, {}, {}, reply, choice};
  input.payload = payload_of(std::move(payload), input.body);
  if (!driver.push_when_room(std::move(input))) return stopped();
  return reply->wait();
}

bool Engine::State::works_on(const RunId& run) {
  const auto reply = ask(run, runtime::Question::now);
  if (!reply) return reply.error().code != ErrorCode::not_found;  // a store in trouble is waited for
  return is_open((*reply)->info.status) && (*reply)->may_go_on && can_run(**reply);
}

// A program's engine has nothing that runs documents, though its shard may have runs of them.
bool Engine::State::can_run(const runtime::AskReply& reply) const {
  const runtime::BookedPlan* const plan = book.plan(reply.plan);
  return documents != nullptr || plan == nullptr || !plan->plan->is_document;
}

std::expected<void, Error> Engine::State::check_can_run(const RunId& run) {
  const auto reply = ask(run, runtime::Question::now);
  if (!reply) return std::unexpected{reply.error()};
  if (can_run(**reply)) return {};
  return invalid(
      "this is a run of a document, and the program that owns its part of the store runs none; stop the program first");
}

std::expected<void, Error> Engine::State::perform(const runtime::RunRequest& request) {
  using runtime::Asked;
  using runtime::Operation;
  if (!request.run) return {};  // a ping
  const RunId& run = *request.run;
  switch (request.asked) {
    case Asked::ping:
      if (works_on(run)) return {};
      return std::unexpected{Error{ErrorCode::not_found, "nobody works on this run here"}};
    case Asked::cancel:
      return operate(Operation::cancel, run, std::string_view{request.text}.substr(0, reason_max));
    case Asked::pause:
      return operate(Operation::pause, run);
    case Asked::resume:
      if (auto can = check_can_run(run); !can) return can;
      return operate(Operation::resume, run);
    case Asked::retry:
      if (auto can = check_can_run(run); !can) return can;
      return operate(Operation::retry_failed, run, {}, {}, request.choice);
    case Asked::drop:
      return operate(Operation::drop, run, {}, {}, request.choice);
    case Asked::signal:
      return signal(run, request.text, request.payload);
    case Asked::remove:
      return operate(Operation::remove, run);
  }
  return invalid("this cannot be asked of a run");
}

void Engine::State::listen() {
  const auto address = base::parse_store_address(settings.store);
  if (!address || address->kind == base::StoreKind::memory) return;
  control = runtime::ControlServer::listen(address->path, [this](const runtime::ControlRequest& asked) {
    const auto request = runtime::run_request_in(asked);
    return request ? perform(*request) : std::unexpected{request.error()};
  });
}

std::expected<void, Error> Engine::cancel(const RunId& run, std::string_view why) {
  return state_->operate(runtime::Operation::cancel, run, why.substr(0, reason_max));
}
std::expected<void, Error> Engine::pause(const RunId& run) { return state_->operate(runtime::Operation::pause, run); }
std::expected<void, Error> Engine::resume(const RunId& run) { return state_->operate(runtime::Operation::resume, run); }
std::expected<void, Error> Engine::retry_failed(const RunId& run) {
  return state_->operate(runtime::Operation::retry_failed, run);
}
std::expected<void, Error> Engine::remove(const RunId& run) { return state_->operate(runtime::Operation::remove, run); }

std::expected<void, Error> Engine::signal(const RunId& run, std::string_view name, std::string payload) {
  return state_->signal(run, name, std::move(payload));
}

std::expected<void, Error> Engine::State::signal(const RunId& run, std::string_view name, std::string payload) {
  if (name.empty() || name.size() > 200) return invalid("the name of a signal has 1 to 200 characters");
  if (payload.size() > payload_max) return invalid("a payload has at most 1 GiB");
  return operate(runtime::Operation::signal, run, name, std::move(payload));
}

}  // namespace reprise
