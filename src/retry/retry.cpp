// What retry() does apart from calling: the loop's state, waiting, events, budget and breaker. Decisions come from decide().
#include <reprise/classify.hpp>
#include <reprise/retry.hpp>

#include <algorithm>
#include <cstdio>

#include "base/hex.hpp"
#include "base/saturating_time.hpp"

namespace reprise {
namespace {

using TimePoint = Env::TimePoint;

Duration since(TimePoint start, TimePoint now) noexcept {
  std::int64_t span = 0;
  if (now <= start) return Duration{0};
  const bool overflow = __builtin_sub_overflow(now.time_since_epoch().count(), start.time_since_epoch().count(), &span);
  return overflow ? Duration::max() : Duration{span};
}

// The end of everything, if the policy has one. max_elapsed 0 means no retries; it does not take the first attempt's time away.
std::optional<TimePoint> end_of_time(const Policy& policy, TimePoint created) noexcept {
  if (!policy.max_elapsed || *policy.max_elapsed <= Duration{0}) return std::nullopt;
  return base::later(created, *policy.max_elapsed);
}

std::optional<TimePoint> attempt_deadline(const Policy& policy, TimePoint created, TimePoint started) noexcept {
  std::optional<TimePoint> deadline = end_of_time(policy, created);
  if (policy.attempt_timeout) {
    const TimePoint cut = base::later(started, *policy.attempt_timeout);
    deadline = deadline ? std::min(*deadline, cut) : cut;
  }
  return deadline;
}

constinit const std::stop_token never_stopped;

bool was_throttled(const Failure& failure) {
  return failure.retry_after.has_value() || classify(evidence_of(failure)).kind == FailureKind::throttled;
}

std::string_view why_not_started(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::canceled:
      return "canceled before the first attempt";
    case StopReason::deadline:
      return "the time was over before the first attempt";
    default:
      return "the circuit breaker is open";
  }
}

std::string_view type_of_refusal(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::canceled:
      return "CanceledError";
    case StopReason::deadline:
      return "TimeoutError";
    default:
      return "CircuitOpenError";
  }
}

// For people: 850ns, 3.2s, 2m5s, 1h30m.
std::string rounded(Duration span) {
  const std::int64_t ns = span.count();
  std::array<char, 48> text{};
  const auto print = [&text](const char* format, auto... values) {
    std::snprintf(text.data(), text.size(), format, values...);
    return std::string{text.data()};
  };
  const auto tenths = [&print, ns](std::int64_t unit, const char* name) {
    const std::int64_t tenth = ns / (unit / 10);
    if (tenth % 10 == 0) return print("%lld%s", static_cast<long long>(tenth / 10), name);
    return print("%lld.%lld%s", static_cast<long long>(tenth / 10), static_cast<long long>(tenth % 10), name);
  };
  constexpr std::int64_t second = 1'000'000'000;
  if (ns < 1'000) return print("%lldns", static_cast<long long>(ns));
  if (ns < 1'000'000) return tenths(1'000, "us");
  if (ns < second) return tenths(1'000'000, "ms");
  if (ns < 60 * second) return tenths(second, "s");
  const auto seconds = static_cast<long long>(ns / second);
  if (seconds < 3600) return print("%lldm%llds", seconds / 60, seconds % 60);
  return print("%lldh%lldm", seconds / 3600, seconds / 60 % 60);
}

}  // namespace

// ---- RetryLoop ----------------------------------------

bool RetryLoop::may_start(TimePoint now) const noexcept {
  if (stopped()) return false;
  const std::optional<TimePoint> end = end_of_time(*policy_, created_);
  return !end || now < *end;
}

std::optional<TimePoint> RetryLoop::deadline(TimePoint started) const noexcept {
  return attempt_deadline(*policy_, created_, started);
}

Duration RetryLoop::elapsed(TimePoint now) const noexcept { return since(created_, now); }

const Decision& RetryLoop::failed(const Failure& failure, TimePoint now, RetrySignals signals) {
  if (stopped()) return decision_;
  ++failures_;
  const History history{.attempt = failures_,
                        .elapsed = elapsed(now),
                        .waited = waited_,
                        .previous_delay = previous_delay_,
                        .canceled = signals.canceled,
                        .circuit_open = signals.circuit_open};
  decision_ = decide(*policy_, history, failure, random_);
  if (decision_.retry) {
    waited_ = base::saturating_sum(waited_, decision_.delay);
    previous_delay_ = decision_.delay;
  }
  return decision_;
}

const Decision& RetryLoop::stop(StopReason reason) noexcept {
  if (stopped()) return decision_;
  decision_.retry = false;
  decision_.reason = reason;
  return decision_;
}

// ---- RetryRun ----------------------------------------

namespace detail {

RetryRun::Trouble::~Trouble() = default;

Env& RetryRun::env() const noexcept {
  return options_ != nullptr && options_->env != nullptr ? *options_->env : system_env();
}

const std::stop_token& RetryRun::stop() const noexcept { return options_ != nullptr ? options_->stop : never_stopped; }

bool RetryRun::watched() const noexcept { return options_ != nullptr && options_->observer; }

bool RetryRun::begin_carefully() {
  const bool placed_in_time =
      options_ != nullptr && options_->created && policy_.elapsed_from != ElapsedFrom::first_start;
  timed_ = policy_.max_elapsed || policy_.attempt_timeout || placed_in_time || watched();
  if (timed_) {
    started_ = env().now();
    created_ = placed_in_time ? *options_->created : started_;
  }
  if (stop().stop_requested()) return refuse_first(StopReason::canceled);
  if (timed_ && !RetryLoop{policy_, created_, 0}.may_start(started_)) return refuse_first(StopReason::deadline);
  if (!acquire_permit()) return refuse_first(StopReason::circuit_open);
  if (watched()) tell({.what = RetryEvent::What::started, .at = started_});
  return true;
}

bool RetryRun::acquire_permit() {
  if (options_ == nullptr || options_->breaker == nullptr) return true;
  std::optional<CircuitBreaker::Permit> permit = options_->breaker->try_acquire();
  if (!permit) return false;
  permit_.emplace(*std::move(permit));
  return true;
}

void RetryRun::report_success() noexcept {
  if (permit_) {
    (*std::move(permit_)).report(true);
    permit_.reset();
  }
  if (options_->budget != nullptr && attempt_ == 1) options_->budget->refund();
  if (watched()) tell({.what = RetryEvent::What::completed, .attempt = attempt_, .at = env().now()});
}

RetryRun::Trouble& RetryRun::note(Failure&& failure) {
  if (!trouble_) {
    const std::uint64_t seed = options_ != nullptr && options_->seed ? *options_->seed : env().random_seed();
    const TimePoint now = env().now();
    trouble_.emplace(RetryLoop{policy_, timed_ ? created_ : now, seed}, std::move(failure), nullptr, now);
    return *trouble_;
  }
  trouble_->last = std::move(failure);
  trouble_->exception = nullptr;
  if (timed_) trouble_->at = env().now();
  return *trouble_;
}

void RetryRun::record(Failure&& failure) { note(std::move(failure)); }

void RetryRun::record_thrown() {
  if (succeeded_) throw;
  std::exception_ptr exception = std::current_exception();
  note(to_failure(exception)).exception = std::move(exception);
}

bool RetryRun::again() {
  Trouble& trouble = *trouble_;
  trouble.loop.failed(trouble.last, trouble.at, report_failure(trouble));
  RetryBudget* const budget = options_ != nullptr ? options_->budget : nullptr;
  if (budget != nullptr && trouble.loop.decision().retry && !budget->try_spend(was_throttled(trouble.last))) {
    trouble.loop.stop(StopReason::budget);
  }
  const Decision& decision = trouble.loop.decision();
  // Where nothing is timed, the decision did not need the time; a wait and the final report do.
  if (!timed_ && attempt_ > 1 && (!decision.retry || decision.delay > Duration{0})) trouble.at = env().now();
  if (watched()) {
    tell({.what = RetryEvent::What::failed,
          .attempt = attempt_,
          .will_retry = decision.retry,
          .reason = decision.reason,
          .failure = &trouble.last,
          .at = trouble.at});
  }
  return decision.retry && wait(trouble) && start_next(trouble);
}

// Tells the breaker, and finds out what decide() cannot know.
RetrySignals RetryRun::report_failure(Trouble& trouble) {
  if (options_ == nullptr) return {};
  RetrySignals signals{.canceled = options_->stop.stop_requested()};
  if (!permit_) return signals;
  const bool ours = signals.canceled || trouble.last.failure_class == FailureClass::canceled;
  if (!ours) (*std::move(permit_)).report(false);
  permit_.reset();
  signals.circuit_open = options_->breaker->refuses();
  return signals;
}

bool RetryRun::wait(Trouble& trouble) {
  const Duration delay = trouble.loop.decision().delay;
  const TimePoint due = base::later(trouble.at, delay);
  if (watched()) {
    tell({.what = RetryEvent::What::retrying,
          .attempt = attempt_,
          .next_attempt = trouble.loop.attempt(),
          .failure = &trouble.last,
          .delay = delay,
          .due = due,
          .at = trouble.at});
  }
  if (delay <= Duration{0} || env().wait_until(due, stop())) return true;
  return interrupt(trouble, StopReason::canceled);
}

bool RetryRun::start_next(Trouble& trouble) {
  if (stop().stop_requested()) return interrupt(trouble, StopReason::canceled);
  if (timed_) {
    started_ = env().now();
    if (!trouble.loop.may_start(started_)) return interrupt(trouble, StopReason::deadline);
  }
  if (!acquire_permit()) return interrupt(trouble, StopReason::circuit_open);
  attempt_ = trouble.loop.attempt();
  if (watched()) {
    tell({.what = RetryEvent::What::started,
          .attempt = attempt_,
          .failure = &trouble.last,
          .delay = trouble.loop.decision().delay,
          .at = started_});
  }
  return true;
}

bool RetryRun::refuse_first(StopReason reason) {
  Failure refusal{.type = std::string{type_of_refusal(reason)}, .message = std::string{why_not_started(reason)}};
  if (reason == StopReason::canceled) refusal.failure_class = FailureClass::canceled;
  return interrupt(note(std::move(refusal)), reason);
}

bool RetryRun::interrupt(Trouble& trouble, StopReason reason) {
  trouble.loop.stop(reason);
  trouble.at = env().now();
  if (watched()) {
    tell({.what = RetryEvent::What::interrupted,
          .attempt = trouble.loop.failures(),
          .reason = reason,
          .failure = &trouble.last,
          .at = trouble.at});
  }
  return false;
}

RetryError RetryRun::take_error() {
  Trouble& trouble = *trouble_;
  return {.reason = trouble.loop.decision().reason,
          .attempts = trouble.loop.failures(),
          .elapsed = trouble.loop.elapsed(trouble.at),
          .last = std::move(trouble.last),
          .exception = std::move(trouble.exception),
          .decision = trouble.loop.decision()};
}

void RetryRun::tell(RetryEvent event) noexcept {
  event.is_retry = event.attempt > 1;
  event.elapsed = since(created_, event.at);
  try {
    options_->observer(event);
  } catch (...) {
    // Not even a failure to describe what was thrown may reach the caller.
    try {
      env().warn("a retry observer threw and was ignored: " + to_failure(std::current_exception()).message);
    } catch (...) {
      env().warn("a retry observer threw and was ignored");
    }
  }
}

// RFC 9562, version 4, from two draws of the Env.
std::string_view RetryRun::idempotency_key() {
  if (options_ != nullptr && !options_->idempotency_key.empty()) return options_->idempotency_key;
  if (!has_key_) {
    constexpr std::string_view pattern = "xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx";
    std::array<std::uint64_t, 2> bits{env().random_seed(), env().random_seed()};
    std::size_t drawn = 0;
    for (std::size_t index = 0; index < pattern.size(); ++index) {
      if (pattern[index] != 'x' && pattern[index] != 'y') {
        key_[index] = pattern[index];
        continue;
      }
      std::uint64_t& word = bits[drawn++ / 16];
      const std::uint64_t digit = pattern[index] == 'x' ? word & 0xFU : (word & 0x3U) | 0x8U;
      word >>= 4U;
      key_[index] = base::hex_digits[digit];
    }
    has_key_ = true;
  }
  return {key_.data(), key_.size()};
}

}  // namespace detail

// ---- Attempt ----------------------------------------

std::optional<Attempt::TimePoint> Attempt::deadline() const noexcept {
  if (!run_.timed_) return std::nullopt;
  return attempt_deadline(run_.policy_, run_.created_, run_.started_);
}

std::optional<Duration> Attempt::remaining() const {
  const std::optional<TimePoint> end = deadline();
  if (!end) return std::nullopt;
  return since(run_.env().now(), *end);
}

const Failure* Attempt::last_failure() const noexcept { return run_.trouble_ ? &run_.trouble_->last : nullptr; }

std::string_view Attempt::idempotency_key() const { return run_.idempotency_key(); }

const std::stop_token& Attempt::stop_token() const noexcept { return run_.stop(); }

// ---- What comes out ----------------------------------------

std::string RetryError::describe() const {
  std::string text = "gave up before the first attempt";
  if (attempts > 0) {
    text = "gave up after " + std::to_string(attempts) + (attempts == 1 ? " attempt" : " attempts");
    if (elapsed > Duration{0}) text += " in " + rounded(elapsed);
  }
  text.append(" (").append(name_of(reason)).append(")");
  if (!last.type.empty()) text.append(": ").append(last.type);
  if (!last.message.empty()) text.append(": ").append(last.message);
  return text;
}

std::string_view name_of(RetryEvent::What what) noexcept {
  switch (what) {
    case RetryEvent::What::started:
      return "started";
    case RetryEvent::What::failed:
      return "failed";
    case RetryEvent::What::retrying:
      return "retrying";
    case RetryEvent::What::completed:
      return "completed";
    case RetryEvent::What::interrupted:
      return "interrupted";
  }
  return "started";
}

}  // namespace reprise
