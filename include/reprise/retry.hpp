// retry() calls a function until it succeeds or a policy says stop. No engine, no I/O, nothing allocated on success.
//
//   std::expected<std::string, std::error_code> fetch(const std::string& url);
//
//   std::expected<std::string, reprise::RetryError> body =
//       reprise::retry(reprise::policy::aggressive, [&] { return fetch(url); });
//   if (!body) std::cerr << body.error().describe() << '\n';   // gave up after 5 attempts in 2.9s (attempts): TimeoutError: …
//
// The call takes an Attempt& or nothing. It succeeds by returning a value, void, or a std::expected that has one; it fails by
// returning a std::expected with an error, by throwing anything at all, or when `check` does not accept its result.
// RetryLoop is the same without waiting, for programs that have their own event loop.
//
// Thread safety: each retry() and each RetryLoop lives on one thread at a time; policies, budgets, breakers and Envs may be
// shared by any number of them. An Attempt is valid during the call it was given to.
// Cost: a call that succeeds reads no clock, unless the policy has max_elapsed or attempt_timeout, or the options have an
// observer or `created`. Without those, `elapsed` counts from the first failure instead of from the start.
// Not supported: stopping a call that is running (attempt_timeout and max_elapsed are handed to it as attempt.deadline(), and it
// must respect them); results that cannot be moved; pthread_cancel; coroutines. A zero delay is not waited at all.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <reprise/circuit_breaker.hpp>
#include <reprise/env.hpp>
#include <reprise/failure.hpp>
#include <reprise/policy.hpp>
#include <reprise/retry_budget.hpp>

namespace reprise {

namespace detail {
class RetryRun;
}

// ---- The attempt, as the call sees it ----------------------------------------

class Attempt {
 public:
  using TimePoint = Env::TimePoint;

  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  std::uint64_t number() const noexcept;  // 1 is the first
  bool is_retry() const noexcept { return number() > 1; }

  // min(start of this attempt + attempt_timeout, created + max_elapsed); std::nullopt when the policy has neither.
  // max_elapsed 0 means no retries and does not limit the first attempt.
  std::optional<TimePoint> deadline() const noexcept;
  std::optional<Duration> remaining() const;  // until deadline(), never negative

  const Failure* last_failure() const noexcept;  // of the attempt before; nullptr at the first

  // The same for every attempt of one retry(): from the options, or else a random UUID (version 4) made when first asked for.
  // It never comes from RetryOptions::seed, because a seed may be used again and a key must not be.
  std::string_view idempotency_key() const;

  const std::stop_token& stop_token() const noexcept;  // of the options

 private:
  friend class detail::RetryRun;
  explicit Attempt(detail::RetryRun& run) noexcept : run_{run} {}

  detail::RetryRun& run_;
};

// ---- What observers see ----------------------------------------

// started → completed | failed → retrying → started …; `interrupted` ends it when something other than a failure does: a stop
// request, the deadline or a breaker, before an attempt could start. The last event carries attempts, elapsed and reason.
struct RetryEvent {
  enum class What : std::uint8_t { started, failed, retrying, completed, interrupted };

  What what = What::started;
  std::uint64_t attempt = 1;             // interrupted: how many there were, may be 0
  std::uint64_t next_attempt = 0;        // retrying
  bool is_retry = false;                 // attempt > 1
  bool will_retry = false;               // failed
  StopReason reason = StopReason::none;  // failed, interrupted: why it ends
  const Failure* failure = nullptr;      // failed, retrying: this one; started, interrupted: the latest, if any
  Duration delay{0};                     // retrying: the wait to come; started: the wait that was
  Env::TimePoint due{};                  // retrying: when the next attempt starts
  Env::TimePoint at{};                   // now
  Duration elapsed{0};                   // since the start, or since `created`
};
std::string_view name_of(RetryEvent::What what) noexcept;

// Called on the thread of retry(). It cannot disturb: what it throws is caught, reported through Env::warn() and forgotten.
using RetryObserver = std::function<void(const RetryEvent&)>;

// ---- Options and results ----------------------------------------

// Everything is optional, and what is pointed to must outlive the call.
struct RetryOptions {
  std::stop_token stop = {};          // seen before each attempt, and wakes a wait at once: reason canceled
  RetryBudget* budget = nullptr;      // pays for each retry: reason budget
  CircuitBreaker* breaker = nullptr;  // asked before and told after each attempt: reason circuit_open
  RetryObserver observer = {};
  Env* env = nullptr;                      // nullptr = system_env()
  std::optional<std::uint64_t> seed = {};  // fixes the draws of the delays
  std::string idempotency_key = {};        // empty = made when asked for
  std::optional<Env::TimePoint> created =
      {};  // max_elapsed counts from here, unless the policy counts from the first start
};

struct RetryError {
  StopReason reason = StopReason::none;
  std::uint64_t attempts = 0;  // 0: not even the first one was allowed to start
  Duration elapsed{0};
  Failure last = {};                  // of the last attempt; with 0 attempts it says what prevented the first
  std::exception_ptr exception = {};  // what the last attempt threw, if it threw
  Decision decision = {};             // the last one

  std::string describe() const;  // gave up after 3 attempts in 3.2s (attempts): TimeoutError: no answer
};

// For calls that report by throwing: carries a whole Failure. A Failure may also be thrown as it is.
class FailureError : public std::runtime_error {
 public:
  explicit FailureError(Failure failure);
  const Failure& failure() const noexcept { return *failure_; }

 private:
  std::shared_ptr<const Failure> failure_;  // exceptions are copied, and copying one must not throw
};

// What value_or_throw() throws. what() is RetryError::describe(); a retry() around it sees the last failure inside.
class RetryFailed : public std::runtime_error {
 public:
  explicit RetryFailed(RetryError error);
  const RetryError& error() const noexcept { return *error_; }

 private:
  std::shared_ptr<const RetryError> error_;
};

template <class T>
T value_or_throw(std::expected<T, RetryError> result) {
  if (!result) throw RetryFailed{std::move(result).error()};
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// ---- From errors to failures ----------------------------------------
//
// For an error type of your own, define `reprise::Failure to_failure(const MyError&)` in its namespace.

// ConnectionRefusedError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError, TimeoutError, PermissionError,
// FileNotFoundError, and OSError for every other code.
Failure to_failure(const std::error_code& code);

// A Failure, FailureError or RetryFailed is taken as it is; std::system_error as its code; std::out_of_range is an IndexError;
// std::invalid_argument, domain_error and length_error are ValueErrors; std::bad_alloc is a MemoryError; every other
// std::exception a RuntimeError, and anything else an Exception. Null is a RuntimeError too.
Failure to_failure(const std::exception_ptr& exception);

namespace detail {

Failure failure_from_text(std::string_view message);

template <class E>
concept HasOwnToFailure = requires(const E& error) {
  { to_failure(error) } -> std::convertible_to<Failure>;
};

template <class E>
Failure failure_from(E&& error) {
  using Error = std::remove_cvref_t<E>;
  if constexpr (std::same_as<Error, Failure>) {
    return std::forward<E>(error);
  } else if constexpr (std::same_as<Error, std::errc>) {
    return reprise::to_failure(std::make_error_code(error));
  } else if constexpr (HasOwnToFailure<Error>) {
    return to_failure(std::as_const(error));
  } else if constexpr (std::convertible_to<const Error&, const char*>) {
    const char* const message = error;
    return failure_from_text(message != nullptr ? message : "");
  } else if constexpr (std::convertible_to<const Error&, std::string_view>) {
    return failure_from_text(error);
  } else if constexpr (std::convertible_to<const Error&, std::error_code>) {
    return reprise::to_failure(static_cast<std::error_code>(error));
  } else {
    static_assert(HasOwnToFailure<Error>,
                  "reprise::retry: the error of the returned std::expected must be a reprise::Failure, std::error_code "
                  "or text, or "
                  "have a `reprise::Failure to_failure(const E&)` in its own namespace");
  }
}

template <class R>
struct ResultOf {
  using Value = std::remove_cvref_t<R>;
  static constexpr bool is_expected = false;
};
template <class T, class E>
struct ResultOf<std::expected<T, E>> {
  using Value = T;
  static constexpr bool is_expected = true;
};

template <class Call>
constexpr bool takes_attempt = std::invocable<Call&, Attempt&>;

template <class Call>
decltype(auto) invoke_call(Call& call, Attempt& attempt) {
  static_assert(takes_attempt<Call> || std::invocable<Call&>,
                "reprise::retry: the call must be callable with reprise::Attempt& or with nothing");
  if constexpr (takes_attempt<Call>) {
    return std::invoke(call, attempt);
  } else {
    return std::invoke(call);
  }
}

template <class Call>
using RawResult = decltype(invoke_call(std::declval<Call&>(), std::declval<Attempt&>()));
template <class Call>
using ValueOf = typename ResultOf<std::remove_cvref_t<RawResult<Call>>>::Value;

struct AcceptAll {};

Failure unacceptable_result();

// What is wrong with a result, if anything.
template <class Check, class T>
std::optional<Failure> objection(Check& check, const T& value) {
  static_assert(std::invocable<Check&, const T&>, "reprise::retry: the check must be callable with const T&");
  using Answer = std::invoke_result_t<Check&, const T&>;
  if constexpr (std::convertible_to<Answer, std::optional<Failure>> &&
                !std::same_as<std::remove_cvref_t<Answer>, bool>) {
    return std::invoke(check, value);
  } else {
    static_assert(std::convertible_to<Answer, bool>,
                  "reprise::retry: the check must answer bool (true = a failure) or std::optional<reprise::Failure>");
    if (std::invoke(check, value)) return unacceptable_result();
    return std::nullopt;
  }
}

}  // namespace detail

// ---- The loop without the waiting ----------------------------------------

// What a RetryLoop cannot know by itself when an attempt has failed.
struct RetrySignals {
  bool canceled = false;
  bool circuit_open = false;
};

// The state of one piece of work between its attempts. Pure: no clock, no waiting, no allocation.
//
//   reprise::RetryLoop loop{policy, clock::now(), seed};
//   …an attempt failed…
//   const reprise::Decision next = loop.failed(failure, clock::now());
//   if (next.retry) timer.expires_after(next.delay);   // and then start attempt loop.attempt(), if loop.may_start(clock::now())
class RetryLoop {
 public:
  using TimePoint = Env::TimePoint;

  // The policy must outlive the loop. max_elapsed counts from `created`.
  RetryLoop(const Policy& policy, TimePoint created, std::uint64_t seed) noexcept
      : policy_{&policy}, created_{created}, random_{seed} {}
  RetryLoop(const Policy&&, TimePoint, std::uint64_t) = delete;

  std::uint64_t attempt() const noexcept { return failures_ + 1; }  // the one that runs, or would be next
  std::uint64_t failures() const noexcept { return failures_; }     // attempts that have ended
  bool stopped() const noexcept { return decision_.reason != StopReason::none; }
  const Decision& decision() const noexcept { return decision_; }  // the last one

  // Not stopped, and before created + max_elapsed: timers may be late. max_elapsed 0 forbids retries, not the first attempt.
  bool may_start(TimePoint now) const noexcept;

  // When an attempt that starts at `started` should be cut.
  std::optional<TimePoint> deadline(TimePoint started) const noexcept;

  // The attempt has failed: what now? The same as decision() from then on. Once stopped, the answer stays.
  const Decision& failed(const Failure& failure, TimePoint now, RetrySignals signals = {});

  // Ends it for a reason from outside: StopReason::canceled, deadline, budget or circuit_open.
  const Decision& stop(StopReason reason) noexcept;
  const Decision& canceled() noexcept { return stop(StopReason::canceled); }

  // Since `created`, never negative.
  Duration elapsed(TimePoint now) const noexcept;

 private:
  const Policy* policy_;
  TimePoint created_;
  Random random_;
  std::uint64_t failures_ = 0;
  Duration waited_{0};
  Duration previous_delay_{0};
  Decision decision_ = {};
};

// ---- The machinery under retry(), kept out of the template ----------------------------------------

namespace detail {

class RetryRun {
 public:
  explicit RetryRun(const Policy& policy, const RetryOptions* options = nullptr) noexcept
      : policy_{policy}, options_{options} {}
  RetryRun(const RetryRun&) = delete;
  RetryRun& operator=(const RetryRun&) = delete;

  Attempt attempt() noexcept { return Attempt{*this}; }

  // May the first attempt start?
  bool begin() {
    if (options_ == nullptr && !policy_.max_elapsed && !policy_.attempt_timeout) [[likely]]
      return true;
    return begin_carefully();
  }

  void succeeded() noexcept {
    succeeded_ = true;
    if (options_ != nullptr) report_success();
  }

  void record(Failure&& failure);

  // Call it inside a catch block. What is thrown after a success comes from moving the result out and is not ours to keep.
  void record_thrown();

  // After a record: decides, waits, and answers whether there is another attempt.
  bool again();

  // After begin() or again() has said no.
  RetryError take_error();

 private:
  friend class reprise::Attempt;
  using TimePoint = Env::TimePoint;

  // What exists only once something has gone wrong.
  struct Trouble {
    ~Trouble();  // out of line, or it would be in every caller's code

    RetryLoop loop;
    Failure last = {};
    std::exception_ptr exception = {};
    TimePoint at{};  // when the last thing happened
  };

  Env& env() const noexcept;
  const std::stop_token& stop() const noexcept;
  bool watched() const noexcept;
  bool begin_carefully();
  void report_success() noexcept;
  Trouble& note(Failure&& failure);
  RetrySignals report_failure(Trouble& trouble);
  bool wait(Trouble& trouble);
  bool start_next(Trouble& trouble);
  bool acquire_permit();
  bool refuse_first(StopReason reason);
  bool interrupt(Trouble& trouble, StopReason reason);
  void tell(RetryEvent event) noexcept;
  std::string_view idempotency_key();

  const Policy& policy_;
  const RetryOptions* options_;
  std::uint64_t attempt_ = 1;
  bool timed_ = false;  // created_ and started_ are set
  bool succeeded_ = false;
  bool has_key_ = false;  // key_ is set
  TimePoint created_;
  TimePoint started_;  // this attempt
  std::array<char, 36> key_;
  std::optional<CircuitBreaker::Permit> permit_;
  std::optional<Trouble> trouble_;
};

// Looks at what the call returned, and records what is wrong with it, if anything.
template <class Result, class Check>
bool is_success(RetryRun& run, Result& result, Check& check) {
  if constexpr (ResultOf<Result>::is_expected) {
    if (!result) [[unlikely]] {
      run.record(failure_from(std::move(result).error()));
      return false;
    }
  }
  if constexpr (!std::same_as<std::remove_cvref_t<Check>, AcceptAll>) {
    std::optional<Failure> found;
    if constexpr (ResultOf<Result>::is_expected) {
      found = objection(check, *std::as_const(result));
    } else {
      found = objection(check, std::as_const(result));
    }
    if (found) {
      run.record(*std::move(found));
      return false;
    }
  }
  return true;
}

template <class Call, class Check>
auto call_until_done(RetryRun& run, Call& call, Check& check) -> std::expected<ValueOf<Call>, RetryError> {
  using Value = ValueOf<Call>;
  using Raw = RawResult<Call>;
  using Outcome = std::expected<Value, RetryError>;
  static_assert(std::same_as<std::remove_cvref_t<Check>, AcceptAll> || !std::is_void_v<Value>,
                "reprise::retry: a call without a result has nothing to check");

  if (run.begin()) [[likely]] {
    Attempt attempt = run.attempt();
    do {
      try {
        if constexpr (std::is_void_v<Raw>) {
          invoke_call(call, attempt);
          run.succeeded();
          return Outcome{};
        } else {
          auto result = invoke_call(call, attempt);
          if (is_success(run, result, check)) [[likely]] {
            run.succeeded();
            if constexpr (std::is_void_v<Value>) {
              return Outcome{};
            } else if constexpr (ResultOf<decltype(result)>::is_expected) {
              return Outcome{std::in_place, *std::move(result)};
            } else {
              return Outcome{std::in_place, std::move(result)};
            }
          }
        }
      } catch (...) {
        run.record_thrown();
      }
    } while (run.again());
  }
  return Outcome{std::unexpect, run.take_error()};
}

}  // namespace detail

inline std::uint64_t Attempt::number() const noexcept { return run_.attempt_; }

// ---- retry() ----------------------------------------

template <class Call>
[[nodiscard]] auto retry(const Policy& policy, Call&& call) -> std::expected<detail::ValueOf<Call>, RetryError> {
  detail::RetryRun run{policy};
  detail::AcceptAll check;
  return detail::call_until_done(run, call, check);
}

// `check` looks at a result of type const T& and answers bool (true: this result is a failure, of type UnacceptableResult) or
// std::optional<Failure>. If it throws, the attempt has failed too.
template <class Call, class Check = detail::AcceptAll>
[[nodiscard]] auto retry(const Policy& policy, Call&& call, const RetryOptions& options, Check&& check = {})
    -> std::expected<detail::ValueOf<Call>, RetryError> {
  detail::RetryRun run{policy, &options};
  return detail::call_until_done(run, call, check);
}

}  // namespace reprise
