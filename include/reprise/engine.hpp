// The durable engine: named handlers, and runs that survive the process.
//
//   reprise::Engine engine{{.store = "sqlite:orders.db"}};
//   engine.handle("charge", [](reprise::Work& work) -> std::expected<std::string, reprise::Failure> {
//     return charge_card(work.input(), work.idempotency_key());
//   }, {.retry = reprise::policy::patient});
//
//   auto run = engine.submit({.handler = "charge", .input = "order 17", .key = "order-17"});   // recorded when this returns
//   auto outcome = engine.wait(*run);                                                          // an outcome, or an error
//
// Kill the program at any moment: what submit() accepted is not lost, what was recorded does not run again, waits go on where they were.
// An attempt that was running then is lost (`worker_lost`) and made again, without being counted.
// examples/durable_tasks.cpp is a complete program.
//
// Thread safety: every function may be called from any thread, also from handlers; wait() inside a handler holds that thread.
// Needs the library target Reprise::engine. Not supported: two processes on one SQLite store (the second is refused).
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <reprise/codec.hpp>
#include <reprise/dialect.hpp>
#include <reprise/env.hpp>
#include <reprise/error.hpp>
#include <reprise/event.hpp>
#include <reprise/failure.hpp>
#include <reprise/flow.hpp>
#include <reprise/policy.hpp>
#include <reprise/retry.hpp>

namespace reprise {

namespace runtime {
struct Feed;
struct EngineAccess;
}  // namespace runtime

struct FunctionOptions;  // <reprise/function.hpp>

// ---- What a handler sees ----------------------------------------

// One attempt, valid during the call it was given to. From the thread of the call, except stop_token().
class Work {
 public:
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  virtual const RunId& run() const noexcept = 0;
  virtual std::string_view step() const noexcept = 0;
  virtual std::uint32_t item() const noexcept = 0;     // 0-based
  virtual std::uint64_t attempt() const noexcept = 0;  // 1 is the first
  bool is_retry() const noexcept { return attempt() > 1; }
  virtual const Failure* last_failure() const noexcept = 0;  // of the attempt before; nullptr at the first

  // What was submitted; for a step with items, this item. Throws EngineError when a large one cannot be read from the store.
  virtual std::string_view input() = 0;
  // The result of a step this one needs; empty when there is none.
  virtual std::string_view output_of(std::string_view step) = 0;

  // The same for every attempt of this work item, also after a crash: give it to whatever must not happen twice.
  virtual std::string_view idempotency_key() = 0;

  // Stop is requested when the attempt's time is over, when the run is cancelled, and when the engine stops.
  // A handler that goes on regardless loses its thread's place: its result comes too late and is dropped.
  virtual const std::stop_token& stop_token() const noexcept = 0;
  virtual std::optional<Duration> remaining() const = 0;  // until the attempt is cut; std::nullopt = no limit

  // A sign of life for those who watch; recorded at most ten times a second.
  virtual void progress(std::string_view text) = 0;

 protected:
  Work() = default;
};

using Handler = std::function<std::expected<std::string, Failure>(Work&)>;

struct HandlerOptions {
  // Actor type: tool, llm, agent (or rh-agents' words: tool_call …), or your own; chooses the policy when `retry` is absent.
  std::string type = "tool";
  std::optional<Policy> retry = {};
  std::optional<Duration> timeout = {};  // of each attempt; the policy's attempt_timeout, if shorter, wins
  std::uint32_t concurrency = 0;         // attempts at a time; 0 = as many as the engine has threads for
  // at_most_once: what was lost, interrupted or out of time is not made again, but kept as a dead letter (reason `unclear`).
  Effect effect = Effect::keyed;
};

// ---- Submitting ----------------------------------------

struct Task {
  std::string handler = {};  // one of the handlers, or ...
  std::string flow = {};     // ... one of the flows
  std::string input = {};
  std::vector<std::string> items = {};    // for a handler: one work item for each; `input` must be empty then
  std::string key = {};                   // idempotency: the same key later finds the same run; at most 512 bytes
  Duration delay{0};                      // not before this long from now
  std::uint8_t priority = 5;              // 0 (last) … 9 (first), among what is ready
  std::optional<Policy> retry = {};       // instead of the handler's own; read_policy() reads it from any dialect
  std::optional<Duration> deadline = {};  // of the run, from now
  // What is recorded with it, and found again (RunInfo::attributes, `reprise runs label:team=a`). At most 32 labels; a name has 1 to 64 letters,
  // digits and . _ - /, a value up to 256 bytes; queue and tenant up to 128 bytes.
  Labels labels = {};
  std::string queue = {};
  std::string tenant = {};
  std::string traceparent = {};         // of the caller's trace: 00-<32 digits>-<16 digits>-<2 digits>
  std::optional<Cost> max_cost = {};
};

// The same for a Call, whose name and input come with it.
struct SubmitOptions {
  std::string key = {};
  Duration delay{0};
  std::uint8_t priority = 5;
  std::optional<Policy> retry = {};
  std::optional<Duration> deadline = {};
  Labels labels = {};
  std::string queue = {};
  std::string tenant = {};
  std::string traceparent = {};
  std::optional<Cost> max_cost = {};
};

struct EffectivePolicy {
  Policy policy = {};
  PolicyLevel level = PolicyLevel::built_in;
};

struct RunInfo {
  RunId id = {};
  std::string name = {};  // of the handler or flow
  RunStatus status = RunStatus::running;
  WallTime created{};
  std::optional<WallTime> ended = {};
  std::string key = {};
  // find() fills these in when the query asks for details:
  std::optional<RunId> parent = {};  // of a sub-flow: the run it works for
  WallTime changed{};                // its last event
  RunAttributes attributes = {};

  bool operator==(const RunInfo&) const = default;
};

struct RunQuery {
  std::optional<RunStatus> status = {};
  std::string name = {};  // of the handler or flow; empty = any
  std::optional<WallTime> created_from = {};
  std::optional<WallTime> created_before = {};
  std::size_t limit = 100;  // at most 10,000
  bool details = false;     // also parent, changed and attributes: the whole state of each run is read for them
};

struct RunPage {
  std::vector<RunInfo> runs;  // newest first
  std::string cursor = {};    // for the next page; empty = this was the last
};

struct EngineStats {
  std::uint64_t open = 0;            // runs accepted and not ended
  std::uint64_t resident = 0;        // of those: in memory
  std::uint64_t resident_bytes = 0;  // estimated
  std::uint64_t ready = 0;           // work items that wait for a thread
  std::uint64_t running = 0;         // attempts
  std::uint64_t waiting = 0;         // work items in memory that wait for a time
  std::uint64_t accepted = 0;        // since this engine was opened, like all that follow
  std::uint64_t succeeded = 0;
  std::uint64_t failed = 0;
  std::uint64_t canceled = 0;
  std::uint64_t attempts = 0;
  std::uint64_t retries = 0;
  std::uint64_t late = 0;  // results that came for an attempt that was already over
  std::uint64_t commits = 0;
  std::uint64_t committed_bytes = 0;
  std::uint64_t events = 0;
  bool loading = false;      // recovery has not yet looked at every open run
  std::string trouble = {};  // what is wrong with the store; empty = nothing
};

// ---- Watching ----------------------------------------

struct Subscription {
  std::optional<RunId> run = {};  // one run, or all
  std::uint64_t after = 0;        // one run: only events with a higher sequence; those of the past come first
  std::size_t buffer = 4096;      // events kept for a slow reader; then the oldest are dropped and counted
};

// Reads events as they become durable. Destroying it ends the subscription. One thread at a time.
class Events {
 public:
  Events(Events&&) noexcept;
  Events& operator=(Events&&) noexcept;
  ~Events();

  // The next event; std::nullopt when `patience` is over or the engine has stopped.
  std::optional<Event> next(Duration patience = std::chrono::hours{24 * 365});
  std::uint64_t dropped() const noexcept;  // because this reader was slow: read them with engine.events(run)

 private:
  friend class Engine;
  explicit Events(std::shared_ptr<runtime::Feed> feed) noexcept;
  std::shared_ptr<runtime::Feed> feed_;
};

// ---- The engine ----------------------------------------

struct EngineSettings {
  std::string store = "memory:";                   // or sqlite:PATH
  unsigned threads = 0;                            // for handlers; 0 = as many as the machine has cores, at least 4
  std::size_t memory = 256U << 20;                 // bytes for the state of open runs; beyond it they wait in the store
  std::uint64_t max_open = 100'000'000;            // open runs; submit() answers `full` beyond it
  std::size_t max_inbox = 100'000;                 // requests on their way; callers wait beyond it
  Duration park_after = std::chrono::seconds{10};  // a run with nothing to do for longer than this leaves memory
  Duration grace = std::chrono::milliseconds{500};  // for a handler that was asked to stop
  unsigned max_abandoned = 64;                      // threads lost to handlers that never return
  std::optional<Duration> keep_ended = {};          // retention by age; std::nullopt = for ever
  std::optional<std::uint64_t> keep_count = {};     // retention by number of ended runs
  std::optional<Policy> retry = {};                 // for handlers of any type that say nothing
  // For handlers of one actor type that say nothing; more specific than `retry`.
  std::map<std::string, Policy, std::less<>> retry_by_type = {};
  Dialect built_ins = Dialect::native;  // whose built-in policies handlers get that nothing is configured for
  // Error types of your own, for every policy that brings none (Policy::types); must outlive the engine.
  const TypeTree* types = nullptr;
  Env* env = nullptr;     // nullptr = system_env()
  std::string name = {};  // who asks, in the events of what is asked of this engine; empty = the name of the program
};

class Engine {
 public:
  // Opens the store and begins to recover; returns before everything is loaded. The constructor throws EngineError instead.
  // Beside a sqlite: store it listens on a Unix socket, PATH.sock, for this user's commands: reprise cancel, pause, resume, retry, signal …
  static std::expected<Engine, Error> open(EngineSettings settings);
  explicit Engine(EngineSettings settings);
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();  // stop() without waiting for handlers longer than the grace

  // Runs that wait for this handler start as soon as it is known. The function takes a Work&, a std::string_view (the input) or nothing;
  // it returns std::string, void, or a std::expected of them with any error that retry() understands; it may throw.
  template <class F>
  std::expected<void, Error> handle(std::string name, F handler, HandlerOptions options = {}) {
    return add_handler(std::move(name), adapt(std::move(handler)), std::move(options));
  }
  // A handler with types. The function takes the input, or Work& and the input (nothing, or Work&, where the Call has none), and returns the
  // result or a std::expected of it. An input that cannot be read fails the attempt as invalid_input.
  template <class R, class... A, class F>
  std::expected<void, Error> handle(Call<R(A...)> call, F handler, HandlerOptions options = {}) {
    return add_handler(std::string{call.name}, adapt_typed<R, A...>(std::move(handler)), std::move(options));
  }
  // A durable function: <reprise/function.hpp> defines these and Reprise::functions runs it. It takes Context& and the Call's input.
  template <class R, class... A, class F>
  std::expected<void, Error> function(Call<R(A...)> call, F code, const FunctionOptions& options);
  template <class R, class... A, class F>
  std::expected<void, Error> function(Call<R(A...)> call, F code);
  // What the function of this run has published last, as its Codec wrote it; std::nullopt: nothing.
  std::expected<std::optional<std::string>, Error> state(const RunId& run);

  // The steps' handlers must be known. A run keeps the flow it was submitted with, also when the name gets a new one.
  std::expected<void, Error> flow(Flow flow);

  // The policy of a task of this handler that brings none, and the level it comes from: handler, type, engine, or built in.
  std::expected<EffectivePolicy, Error> effective_policy(std::string_view handler) const;

  // Durable when it returns. With a key that is known already: that run, and nothing new.
  std::expected<RunId, Error> submit(Task task);
  template <class R, class A>
  std::expected<RunId, Error> submit(Call<R(A)> call, const In<A>& input, SubmitOptions options = {}) {
    return submit(task_of(call.name, Codec<In<A>>::encode(input), std::move(options)));
  }
  template <class R>
  std::expected<RunId, Error> submit(Call<R()> call, SubmitOptions options = {}) {
    return submit(task_of(call.name, {}, std::move(options)));
  }
  // The same for callers that must not queue: with max_inbox requests on their way it answers `full` at once instead of waiting for room.
  std::expected<RunId, Error> try_submit(Task task);
  // All or none are checked; then all are recorded together.
  std::expected<std::vector<RunId>, Error> submit_all(std::vector<Task> tasks);

  std::expected<RunOutcome, Error> wait(const RunId& run, std::optional<Duration> patience = {});
  std::expected<RunOutcome, Error> result(const RunId& run);  // as it is now
  std::expected<RunInfo, Error> info(const RunId& run);
  std::expected<RunPage, Error> find(const RunQuery& query, std::string_view cursor = {});
  std::expected<std::vector<Event>, Error> events(const RunId& run);
  Events subscribe(Subscription subscription = {});

  std::expected<void, Error> cancel(const RunId& run, std::string_view why = {});
  // Running attempts end; nothing new starts; clocks stand still.
  std::expected<void, Error> pause(const RunId& run, std::string_view why = {});
  std::expected<void, Error> resume(const RunId& run, std::string_view why = {});  // a paused or a cancelled run
  std::expected<void, Error> signal(const RunId& run, std::string_view name, std::string payload = {});
  // Failed and dead-lettered items get all their attempts again.
  std::expected<void, Error> retry_failed(const RunId& run, std::string_view why = {});
  std::expected<void, Error> remove(const RunId& run);  // forgets a run that has ended

  EngineStats stats() const;

  // Nothing new starts; running attempts get until the deadline to end, then they are asked to stop. Everything is recorded.
  // What did not end goes on when the store is opened again. True: everything that ran has ended by itself.
  bool stop(Duration patience = std::chrono::seconds{10});

 private:
  friend struct runtime::EngineAccess;
  struct State;
  explicit Engine(std::unique_ptr<State> state) noexcept;
  std::expected<void, Error> add_handler(std::string name, Handler handler, HandlerOptions options);

  template <class F>
  static Handler adapt(F function);
  template <class R, class... A, class F>
  static Handler adapt_typed(F function);
  static Task task_of(std::string_view handler, std::string input, SubmitOptions options);

  std::unique_ptr<State> state_;
};

namespace detail {

// The result of a handler as it is recorded, from what the function returned: a value, nothing, or a std::expected of either.
template <class Encode, class Call>
std::expected<std::string, Failure> recorded(Encode encode, Call call) {
  using Raw = decltype(call());
  using Result = ResultOf<std::remove_cvref_t<Raw>>;
  if constexpr (std::is_void_v<Raw>) {
    call();
    return std::string{};
  } else if constexpr (Result::is_expected) {
    auto result = call();
    if (!result) return std::unexpected{failure_from(std::move(result).error())};
    if constexpr (std::is_void_v<typename Result::Value>) {
      return std::string{};
    } else {
      return encode(*std::move(result));
    }
  } else {
    return encode(call());
  }
}

// std::string, what becomes one, void, or a std::expected of them.
template <class Raw>
consteval bool returns_text() {
  using Result = ResultOf<std::remove_cvref_t<Raw>>;
  using Value = std::conditional_t<Result::is_expected, typename Result::Value, Raw>;
  return std::is_void_v<Value> || std::convertible_to<Value, std::string> ||
         std::convertible_to<Value, std::string_view>;
}

}  // namespace detail

template <class F>
Handler Engine::adapt(F function) {
  static_assert(std::invocable<F&, Work&> || std::invocable<F&, std::string_view> || std::invocable<F&>,
                "reprise: a handler takes reprise::Work&, std::string_view or nothing");
  return [function = std::move(function)](Work& work) mutable -> std::expected<std::string, Failure> {
    auto call = [&]() -> decltype(auto) {
      if constexpr (std::invocable<F&, Work&>) {
        return std::invoke(function, work);
      } else if constexpr (std::invocable<F&, std::string_view>) {
        return std::invoke(function, work.input());
      } else {
        return std::invoke(function);
      }
    };
    constexpr bool fits = detail::returns_text<decltype(call())>();
    static_assert(fits,
                  "reprise: a handler returns std::string, void, or a std::expected of them; for other types use a "
                  "typed handler: "
                  "engine.handle(reprise::Call<int(std::string)>{\"name\"}, ...)");
    if constexpr (fits) {
      return detail::recorded([](auto&& text) { return std::string(std::forward<decltype(text)>(text)); }, call);
    } else {
      return std::string{};
    }
  };
}

template <class R, class... A, class F>
Handler Engine::adapt_typed(F function) {
  static_assert(std::invocable<F&, Work&, const In<A>&...> || std::invocable<F&, const In<A>&...>,
                "reprise: the function of a typed handler takes the Call's input, or reprise::Work& and the input");
  return [function = std::move(function)](Work& work) mutable -> std::expected<std::string, Failure> {
    auto run = [&](const auto&... input) {
      auto call = [&]() -> decltype(auto) {
        if constexpr (std::invocable<F&, Work&, decltype(input)...>) {
          return std::invoke(function, work, input...);
        } else {
          return std::invoke(function, input...);
        }
      };
      return detail::recorded(
          [](auto&& value) {
            using Value = std::remove_cvref_t<decltype(value)>;
            static_assert(
                std::convertible_to<Value, R>,
                "reprise: the function of a typed handler returns the Call's result, or a std::expected of it");
            return Codec<std::conditional_t<std::is_void_v<R>, Value, R>>::encode(std::forward<decltype(value)>(value));
          },
          call);
    };
    if constexpr (sizeof...(A) == 0) {
      return run();
    } else {
      const auto input = Codec<In<A>...>::decode(work.input());
      if (!input) {
        return std::unexpected{Failure{.type = "DecodeError",
                                       .message = "the input cannot be read: " + input.error(),
                                       .failure_class = FailureClass::deterministic,
                                       .kind = FailureKind::invalid_input}};
      }
      return run(*input);
    }
  };
}

inline Task Engine::task_of(std::string_view handler, std::string input, SubmitOptions options) {
  return {.handler = std::string{handler},
          .input = std::move(input),
          .key = std::move(options.key),
          .delay = options.delay,
          .priority = options.priority,
          .retry = std::move(options.retry),
          .deadline = options.deadline,
          .labels = std::move(options.labels),
          .queue = std::move(options.queue),
          .tenant = std::move(options.tenant),
          .traceparent = std::move(options.traceparent),
          .max_cost = options.max_cost};
}

}  // namespace reprise
