// The public engine: checks what callers ask, hands it to the loop, and waits for the answer.
#include <reprise/engine.hpp>

#include <algorithm>
#include <mutex>
#include <semaphore>
#include <thread>

#include "base/hex.hpp"
#include "base/sha256.hpp"
#include "base/store_address.hpp"
#include "env/wall_clock.hpp"
#include "env/who.hpp"
#include "event/codec.hpp"
#include "event/evidence.hpp"
#include "event/history.hpp"
#include "exec/function/function_pool.hpp"
#include "runtime/control.hpp"
#include "runtime/driver.hpp"
#include "runtime/engine_access.hpp"
#include "runtime/feed.hpp"
#include "runtime/ids.hpp"
#include "runtime/live_reader.hpp"
#include "runtime/plan_book.hpp"
#include "runtime/replies.hpp"
#include "runtime/run_service.hpp"
#include "store/store.hpp"
#include "text/pattern.hpp"

namespace reprise {

using runtime::Awaited;
using runtime::Called;
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
std::unexpected<Error> stopped() { return std::unexpected{runtime::engine_has_stopped()}; }

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
              .types = settings.types,
              .plan_of_command = [this](const exec::Command& command) { return book.plan_of_command(command); }},
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
  void decided(exec::Decided&& decided) override { driver.push(std::move(decided)); }
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
    {
      const std::lock_guard functions_lock{functions_mutex};
      if (functions != nullptr) functions->shut_down();
    }
    for (const event::AttemptId& id : rest.not_begun) driver.push(runtime::Ended{{id, exec::Returned{}}, {}});
    for (const event::AttemptId& id : rest.interrupted) driver.push(runtime::Ended{{id, exec::Interrupted{}}, {}});
    driver.finish();
    feeds.close();
    has_stopped = true;
    return stopped_calmly;
  }

  // Each event that is stored, one after the other: there may be millions, until the visitor has enough. Gives a history that has seen them.
  std::expected<event::EventHistory, Error> read_past(const RunId& run, const std::function<bool(Event&&)>& visit);
  enum class Room : std::uint8_t { awaited, needed };  // what happens while the inbox is full
  std::expected<RunId, Error> submit_one(runtime::NewRun run, Room room = Room::awaited);
  std::expected<runtime::NewRun, Error> new_run(Task& task, std::expected<runtime::PlannedTask, Error> plan);
  std::expected<std::shared_ptr<Awaited<runtime::AskReply>>, Error> ask(const RunId& run, runtime::Question question,
                                                                        bool has_limit = false);
  std::expected<RunOutcome, Error> outcome_in(Awaited<runtime::AskReply>& reply);
  runtime::Requester asked(std::string_view why = {}) const;  // by this program
  std::expected<runtime::RunAnswer, Error> ask_and_wait(runtime::RunRequest request);
  std::expected<void, Error> do_and_wait(runtime::RunRequest request);
  void perform(runtime::RunRequest&& request, runtime::RunAnswered answered);  // for the service
  void submit(runtime::RunRequest&& request, runtime::RunAnswered answered);
  enum class From : std::uint8_t { caller, loop };  // the loop's thread must not wait for room
  void operate(runtime::RunRequest&& request, runtime::RunAnswered answered, From from);
  using Known = std::function<void(const runtime::AskReply&, std::expected<void, Error>)>;
  void ask_then(const RunId& run, Known then);
  bool works_on(const runtime::AskReply& reply) const;
  bool can_run(const runtime::AskReply& reply) const;
  void listen();  // to other processes, if they can find the store

  EngineSettings settings;
  Env& env;
  runtime::Clock clock;
  // Above the loop, whose replies still call it when they are dropped.
  runtime::RunService service{[this](runtime::RunRequest&& request, runtime::RunAnswered answered) {
    perform(std::move(request), std::move(answered));
  }};
  std::unique_ptr<store::Store> store;
  runtime::PlanBook book;
  runtime::Feeds feeds;
  exec::FunctionPool pool;
  std::unique_ptr<exec::Executor> documents;  // nullptr: only functions
  std::mutex functions_mutex;
  std::unique_ptr<exec::Executor> functions;  // durable ones; nullptr: there are none yet
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

std::expected<RunId, Error> runtime::EngineAccess::submit(Engine& engine, core::Plan plan, Task task,
                                                          RunAttributes attributes) {
  Engine::State& state = *engine.state_;
  auto run = state.new_run(task, state.book.book_document(std::move(plan), std::move(attributes)));
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

exec::Executor& runtime::EngineAccess::functions(Engine& engine, const ExecutorFactory& make) {
  Engine::State& state = *engine.state_;
  const std::lock_guard lock{state.functions_mutex};
  if (state.functions == nullptr) {
    state.functions = make(state, [&state](std::string_view hash) { return state.load(hash); });
    state.driver.push(AddExecutor{state.functions.get()});
  }
  return *state.functions;
}

std::expected<void, Error> runtime::EngineAccess::add_function(Engine& engine, const std::string& name,
                                                               std::uint32_t version, std::uint32_t number) {
  Engine::State& state = *engine.state_;
  auto queue = state.book.add_function(name, version);
  if (!queue) return std::unexpected{queue.error()};
  const std::uint32_t executor = state.documents != nullptr ? document_executor + 1 : document_executor;
  if (!state.driver.push_when_room(OpenQueue{*std::move(queue), {.executor = executor, .handler = number}, 0}))
    return stopped();
  return {};
}

void runtime::EngineAccess::add_closures(Engine& engine, Handler handler) {
  Engine::State& state = *engine.state_;
  const std::string queue{closure_queue};
  const std::uint32_t number = state.pool.add_handler(queue, std::move(handler));
  state.driver.push(OpenQueue{queue, {.executor = function_executor, .handler = number}, 0});
}

std::uint64_t runtime::EngineAccess::number_of(const RunId& run) { return number_in(run); }

void runtime::EngineAccess::perform(Engine& engine, RunRequest request, RunAnswered answered) {
  engine.state_->service.ask(std::move(request), std::move(answered));
}

std::expected<runtime::RunAnswer, Error> runtime::EngineAccess::perform(Engine& engine, RunRequest request) {
  return engine.state_->ask_and_wait(std::move(request));
}

std::expected<std::shared_ptr<const runtime::AskReply>, Error> runtime::EngineAccess::ask(Engine& engine,
                                                                                          const RunId& run,
                                                                                          Question question) {
  return engine.state_->ask(run, question);
}

std::expected<runtime::FoundRuns, Error> runtime::EngineAccess::some_below(Engine& engine, const RunQuery& query,
                                                                           std::uint64_t below) {
  auto reply = std::make_shared<Awaited<FindReply>>();
  reply->query = query;
  reply->below = below;
  if (!engine.state_->driver.push_when_room(Find{reply})) return stopped();
  if (auto answer = reply->wait(); !answer) return std::unexpected{answer.error()};
  return std::move(reply->found);
}

std::expected<void, Error> runtime::EngineAccess::each_event(Engine& engine, const RunId& run,
                                                             const std::function<bool(Event&&)>& visit) {
  const auto read = engine.state_->read_past(run, visit);
  if (!read) return std::unexpected{read.error()};
  return {};
}

store::Store& runtime::EngineAccess::store(Engine& engine) { return *engine.state_->store; }

std::shared_ptr<const core::Plan> runtime::EngineAccess::plan(Engine& engine, std::uint32_t number) {
  const BookedPlan* const booked = engine.state_->book.plan(number);
  return booked != nullptr ? booked->plan : nullptr;
}

core::FactsDecoder runtime::EngineAccess::facts_decoder(Engine& engine) {
  return core::FactsDecoder{compile, engine.state_->settings.types};
}

std::expected<std::uint64_t, Error> runtime::EngineAccess::last_sequence(Engine& engine, const RunId& run) {
  const auto reply = engine.state_->ask(run, Question::now);
  if (!reply) return std::unexpected{reply.error()};
  return (*reply)->sequence;
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

std::expected<std::optional<std::string>, Error> Engine::state(const RunId& run) {
  const auto reply = state_->ask(run, runtime::Question::now);
  if (!reply) return std::unexpected{reply.error()};
  const auto& published = (*reply)->published;
  if (!published) return std::nullopt;
  if (!published->hashed) return published->bytes;
  auto bytes = state_->load(published->bytes);
  if (!bytes) return std::unexpected{bytes.error()};
  return *std::move(bytes);
}

std::expected<RunInfo, Error> Engine::info(const RunId& run) {
  const auto reply = state_->ask(run, runtime::Question::now);
  if (!reply) return std::unexpected{reply.error()};
  return (*reply)->info;
}

std::expected<RunPage, Error> Engine::find(const RunQuery& query, std::string_view cursor) {
  return runtime::LiveReader{*this}.find(query, cursor);
}

std::expected<std::vector<Event>, Error> Engine::events(const RunId& run) {
  std::vector<Event> events;
  const auto read = state_->read_past(run, [&](Event&& event) {
    events.push_back(std::move(event));
    return true;
  });
  if (!read) return std::unexpected{read.error()};
  return events;
}

std::expected<event::EventHistory, Error> Engine::State::read_past(const RunId& run,
                                                                   const std::function<bool(Event&&)>& visit) {
  const auto reply = ask(run, runtime::Question::past);
  if (!reply) return std::unexpected{reply.error()};
  runtime::EventTeller teller{run, *book.plan((*reply)->plan)->plan, visit};
  // What has got an image since the question is told from the answer, which has it, too.
  const std::uint64_t end = (*reply)->events_first;
  const auto read = store->read_history((*reply)->number, [&](std::uint64_t first, std::string_view chunk) {
    return first < end && teller.tell(first, chunk);
  });
  if (!read) return std::unexpected{read.error()};
  if (!(*reply)->events.empty()) teller.tell(end, (*reply)->events);
  if (teller.is_whole()) return teller.take_history();
  return std::unexpected{Error{ErrorCode::store_damaged, "the events of run " + to_string(run) + " cannot be read"}};
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
      return true;
    });
    if (!history) break;
    state_->feeds.prime(*feed->subscription.run, *std::move(history), last);
    const std::lock_guard lock{feed->mutex};
    is_sure = feed->unsure_until <= last;
  }
  return Events{std::move(feed)};
}

// ---- operating ----------------------------------------

runtime::Requester Engine::State::asked(std::string_view why) const {
  return {runtime::new_request_id(clock.now()), settings.name.empty() ? program_name() : settings.name,
          std::string{why}};
}

std::expected<runtime::RunAnswer, Error> Engine::State::ask_and_wait(runtime::RunRequest request) {
  struct Waiting {
    std::binary_semaphore answered{0};
    std::expected<runtime::RunAnswer, Error> answer;
  };
  const auto waiting = std::make_shared<Waiting>();
  service.ask(std::move(request), [waiting](std::expected<runtime::RunAnswer, Error> answer) {
    waiting->answer = std::move(answer);
    waiting->answered.release();
  });
  waiting->answered.acquire();
  return std::move(waiting->answer);
}

std::expected<void, Error> Engine::State::do_and_wait(runtime::RunRequest request) {
  const auto answer = ask_and_wait(std::move(request));
  return answer ? std::expected<void, Error>{} : std::unexpected{answer.error()};
}

// `then` is called on the loop's thread, or here when the engine has stopped.
void Engine::State::ask_then(const RunId& run, Known then) {
  auto reply = std::make_shared<Called<runtime::AskReply>>(
      [then = std::move(then)](runtime::AskReply& told, std::expected<void, Error> answer) {
        then(told, std::move(answer));
      });
  driver.push_when_room(runtime::Ask{runtime::Question::now, run, std::move(reply)});
}

// A run of a document that waits for somebody to continue it is worked on by nobody.
bool Engine::State::works_on(const runtime::AskReply& reply) const {
  return is_open(reply.info.status) && reply.may_go_on && can_run(reply);
}

// A program's engine has nothing that runs documents, though its shard may have runs of them.
bool Engine::State::can_run(const runtime::AskReply& reply) const {
  const runtime::BookedPlan* const plan = book.plan(reply.plan);
  return documents != nullptr || plan == nullptr || !plan->plan->is_document;
}

void Engine::State::perform(runtime::RunRequest&& request, runtime::RunAnswered answered) {
  using runtime::Asked;
  if (request.asked == Asked::submit) return submit(std::move(request), std::move(answered));
  if (!request.run) return answered(runtime::RunAnswer{});  // a ping
  const RunId run = *request.run;
  if (request.asked == Asked::ping) {
    return ask_then(run, [this, answered = std::move(answered)](const runtime::AskReply& reply,
                                                                const std::expected<void, Error>& known) {
      // A store in trouble is waited for.
      const bool works = known ? works_on(reply) : known.error().code != ErrorCode::not_found;
      if (works) return answered(runtime::RunAnswer{});
      answered(std::unexpected{Error{ErrorCode::not_found, "nobody works on this run here"}});
    });
  }
  const bool runs_something = request.asked == Asked::resume || request.asked == Asked::retry;
  if (!runs_something || documents != nullptr) return operate(std::move(request), std::move(answered), From::caller);
  ask_then(run, [this, request = std::move(request), answered = std::move(answered)](
                    const runtime::AskReply& reply, const std::expected<void, Error>& known) mutable {
    if (!known) return answered(std::unexpected{known.error()});
    if (can_run(reply)) return operate(std::move(request), std::move(answered), From::loop);
    answered(
        invalid("this is a run of a document, and the program that owns its part of the store runs none; stop the "
                "program first"));
  });
}

void Engine::State::submit(runtime::RunRequest&& request, runtime::RunAnswered answered) {
  if (!request.task) return answered(invalid("submit needs a task"));
  auto run = new_run(*request.task, book.plan_for(*request.task));
  if (!run) return answered(std::unexpected{run.error()});
  auto reply = std::make_shared<Called<runtime::SubmitReply>>(
      [answered = std::move(answered)](runtime::SubmitReply& told, const std::expected<void, Error>& answer) {
        if (!answer) return answered(std::unexpected{answer.error()});
        answered(runtime::RunAnswer{told.runs.front().id});
      });
  reply->runs.push_back(*std::move(run));
  driver.push_when_room(runtime::Submit{std::move(reply)});
}

namespace {

std::expected<runtime::Operation, Error> operation_of(const runtime::RunRequest& request) {
  using runtime::Asked;
  using runtime::Operation;
  switch (request.asked) {
    case Asked::cancel:
      return Operation::cancel;
    case Asked::pause:
      return Operation::pause;
    case Asked::resume:
      return Operation::resume;
    case Asked::retry:
      return Operation::retry_failed;
    case Asked::drop:
      return Operation::drop;
    case Asked::remove:
      return Operation::remove;
    case Asked::signal:
      if (request.text.empty() || request.text.size() > 200)
        return invalid("the name of a signal has 1 to 200 characters");
      if (request.payload.size() > payload_max) return invalid("a payload has at most 1 GiB");
      return Operation::signal;
    case Asked::ping:
    case Asked::submit:
      break;
  }
  return invalid("this cannot be asked of a run");
}

}  // namespace

void Engine::State::operate(runtime::RunRequest&& request, runtime::RunAnswered answered, From from) {
  const auto operation = operation_of(request);
  if (!operation) return answered(std::unexpected{operation.error()});
  auto reply = std::make_shared<Called<runtime::Reply>>(
      [answered = std::move(answered)](runtime::Reply&, const std::expected<void, Error>& answer) {
        if (answer) return answered(runtime::RunAnswer{});
        answered(std::unexpected{answer.error()});
      });
  runtime::Requester by = std::move(request.by);
  by.why.resize(std::min(by.why.size(), reason_max));
  if (by.id == RunId{}) by.id = runtime::new_request_id(clock.now());
  std::string text = std::move(request.text);
  if (*operation == runtime::Operation::cancel) text = std::exchange(by.why, {});
  runtime::Operate input{*operation, *request.run, std::move(text), {}, {}, std::move(reply),
                         std::move(request.choice), std::move(by)};
  input.payload = payload_of(std::move(request.payload), input.body);
  if (from == From::loop) return driver.push(std::move(input));
  driver.push_when_room(std::move(input));
}

void Engine::State::listen() {
  const auto address = base::parse_store_address(settings.store);
  if (!address || address->kind == base::StoreKind::memory) return;
  control = runtime::ControlServer::listen(
      address->path, runtime::control_handler([this](runtime::RunRequest&& request, runtime::RunAnswered answered) {
        service.ask(std::move(request), std::move(answered));
      }));
}

std::expected<void, Error> Engine::cancel(const RunId& run, std::string_view why) {
  return state_->do_and_wait({.asked = runtime::Asked::cancel, .run = run, .by = state_->asked(why)});
}
std::expected<void, Error> Engine::pause(const RunId& run, std::string_view why) {
  return state_->do_and_wait({.asked = runtime::Asked::pause, .run = run, .by = state_->asked(why)});
}
std::expected<void, Error> Engine::resume(const RunId& run, std::string_view why) {
  return state_->do_and_wait({.asked = runtime::Asked::resume, .run = run, .by = state_->asked(why)});
}
std::expected<void, Error> Engine::retry_failed(const RunId& run, std::string_view why) {
  return state_->do_and_wait({.asked = runtime::Asked::retry, .run = run, .by = state_->asked(why)});
}
std::expected<void, Error> Engine::remove(const RunId& run) {
  return state_->do_and_wait({.asked = runtime::Asked::remove, .run = run, .by = state_->asked()});
}
std::expected<void, Error> Engine::signal(const RunId& run, std::string_view name, std::string payload) {
  return state_->do_and_wait({.asked = runtime::Asked::signal,
                              .run = run,
                              .text = std::string{name},
                              .payload = std::move(payload),
                              .by = state_->asked()});
}

}  // namespace reprise
