// The state machine of reprise/circuit_breaker.hpp, packed into one word:
//
//   bits 62..63  state
//   bits 48..61  epoch: counts changes of state; a permit carries the epoch it was given in, and an older one is ignored
//   bits 40..47  probes in flight       (half_open only)
//   bits 32..39  probes that succeeded  (half_open only)
//   bits  0..31  window                 (closed only): the newest outcome is bit 0, 1 = failed; a one above the oldest outcome
//                tells how many there are, so an empty window is 1
//
// The epoch wraps after 16384 changes: a permit would have to be held through exactly that many to be taken for a new one, and
// would then be counted as one outcome too many.
#include <reprise/circuit_breaker.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

namespace reprise {
namespace {

using State = CircuitBreaker::State;

constexpr std::uint32_t empty_window = 1;
constexpr std::uint32_t window_max = 31;
constexpr std::uint32_t probes_max = 255;
constexpr std::uint64_t epoch_mask = (1U << 14U) - 1U;
constexpr std::uint64_t one_in_flight = std::uint64_t{1} << 40U;
constexpr std::uint64_t one_success = std::uint64_t{1} << 32U;

constexpr State state_of(std::uint64_t word) noexcept { return static_cast<State>(word >> 62U); }
constexpr std::uint64_t epoch_of(std::uint64_t word) noexcept { return (word >> 48U) & epoch_mask; }
constexpr std::uint64_t in_flight_of(std::uint64_t word) noexcept { return (word >> 40U) & 0xFFU; }
constexpr std::uint64_t successes_of(std::uint64_t word) noexcept { return (word >> 32U) & 0xFFU; }
constexpr std::uint32_t window_of(std::uint64_t word) noexcept { return static_cast<std::uint32_t>(word); }

// A fresh state in the next epoch, with no probes and no outcomes.
constexpr std::uint64_t entering(State state, std::uint64_t from) noexcept {
  const std::uint64_t epoch = (epoch_of(from) + 1) & epoch_mask;
  return (static_cast<std::uint64_t>(state) << 62U) | (epoch << 48U) | empty_window;
}

constexpr std::uint32_t samples_in(std::uint32_t window) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(window)) - 1;
}

// The newest `count` outcomes; count <= 31.
constexpr std::uint32_t newest(std::uint32_t window, std::uint32_t count) noexcept {
  return window & ((std::uint32_t{1} << count) - 1U);
}

constexpr std::uint32_t push(std::uint32_t window, bool failed, std::uint32_t capacity) noexcept {
  const bool full = samples_in(window) == capacity;
  const std::uint32_t kept = full ? newest(window, capacity - 1) | (std::uint32_t{1} << (capacity - 1)) : window;
  return (kept << 1U) | (failed ? 1U : 0U);
}

CircuitBreakerSettings clamped(CircuitBreakerSettings settings) noexcept {
  settings.consecutive_failures = std::min(settings.consecutive_failures, window_max);
  settings.failure_ratio = std::isnan(settings.failure_ratio) ? 0.0 : std::clamp(settings.failure_ratio, 0.0, 1.0);
  settings.window = std::clamp(settings.window, std::uint32_t{1}, window_max);
  settings.minimum_calls = std::clamp(settings.minimum_calls, std::uint32_t{1}, settings.window);
  settings.open_for = std::max(settings.open_for, Duration{0});
  settings.half_open_probes = std::clamp(settings.half_open_probes, std::uint32_t{1}, probes_max);
  return settings;
}

}  // namespace

CircuitBreaker::CircuitBreaker(const CircuitBreakerSettings& settings, Env* env) noexcept
    : settings_{clamped(settings)},
      env_{env != nullptr ? env : &system_env()},
      word_{empty_window},
      open_until_{INT64_MIN} {}

std::optional<CircuitBreaker::Permit> CircuitBreaker::try_acquire() noexcept {
  std::uint64_t word = word_.load(std::memory_order_acquire);
  for (;;) {
    std::uint64_t next = word;
    switch (state_of(word)) {
      case State::closed:
        return Permit{*this, epoch_of(word)};
      case State::open:
        if (!is_due()) return std::nullopt;
        next = entering(State::half_open, word) + one_in_flight;
        break;
      case State::half_open:
        // More probes than the successes still missing would only burden a service that is coming back.
        if (in_flight_of(word) + successes_of(word) >= settings_.half_open_probes) return std::nullopt;
        next = word + one_in_flight;
        break;
    }
    if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire)) {
      return Permit{*this, epoch_of(next)};
    }
  }
}

bool CircuitBreaker::refuses() const noexcept { return state() == State::open && !is_due(); }

CircuitBreaker::State CircuitBreaker::state() const noexcept { return state_of(word_.load(std::memory_order_acquire)); }

void CircuitBreaker::report(std::uint64_t epoch, bool ok) noexcept {
  std::uint64_t word = word_.load(std::memory_order_acquire);
  for (;;) {
    if (epoch_of(word) != epoch) return;
    const std::uint64_t next = after_report(word, ok);
    if (next == word) return;  // a success among successes
    if (state_of(next) == State::open) raise_open_until();
    if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire)) return;
  }
}

void CircuitBreaker::abandon(std::uint64_t epoch) noexcept {
  std::uint64_t word = word_.load(std::memory_order_acquire);
  while (state_of(word) == State::half_open && epoch_of(word) == epoch && in_flight_of(word) > 0) {
    if (word_.compare_exchange_weak(word, word - one_in_flight, std::memory_order_acq_rel, std::memory_order_acquire))
      return;
  }
}

std::uint64_t CircuitBreaker::after_report(std::uint64_t word, bool ok) const noexcept {
  switch (state_of(word)) {
    case State::closed: {
      const std::uint32_t capacity = std::max(settings_.window, settings_.consecutive_failures);
      const std::uint32_t window = push(window_of(word), !ok, capacity);
      if (!ok && trips(window)) return entering(State::open, word);
      return (word & ~std::uint64_t{UINT32_MAX}) | window;
    }
    case State::half_open:
      if (!ok) return entering(State::open, word);
      if (successes_of(word) + 1 >= settings_.half_open_probes) return entering(State::closed, word);
      return in_flight_of(word) > 0 ? word - one_in_flight + one_success : word;
    case State::open:
      break;
  }
  return word;
}

bool CircuitBreaker::trips(std::uint32_t window) const noexcept {
  const std::uint32_t samples = samples_in(window);
  const auto in_a_row = static_cast<std::uint32_t>(std::countr_one(newest(window, samples)));
  if (settings_.consecutive_failures > 0 && in_a_row >= settings_.consecutive_failures) return true;

  const std::uint32_t judged = std::min(samples, settings_.window);
  if (settings_.failure_ratio <= 0.0 || judged < settings_.minimum_calls) return false;
  return std::popcount(newest(window, judged)) >= settings_.failure_ratio * judged;
}

// Two calls may both see the last straw; the later end wins, whichever of them changes the word.
void CircuitBreaker::raise_open_until() noexcept {
  const std::int64_t now = env_->now().time_since_epoch().count();
  const std::int64_t span = settings_.open_for.count();
  const std::int64_t until = now > 0 && span > INT64_MAX - now ? INT64_MAX : now + span;
  std::int64_t known = open_until_.load(std::memory_order_relaxed);
  while (known < until &&
         !open_until_.compare_exchange_weak(known, until, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

bool CircuitBreaker::is_due() const noexcept {
  return env_->now().time_since_epoch().count() >= open_until_.load(std::memory_order_acquire);
}

std::string_view name_of(CircuitBreaker::State state) noexcept {
  switch (state) {
    case CircuitBreaker::State::closed:
      return "closed";
    case CircuitBreaker::State::open:
      return "open";
    case CircuitBreaker::State::half_open:
      return "half_open";
  }
  return "closed";
}

}  // namespace reprise
