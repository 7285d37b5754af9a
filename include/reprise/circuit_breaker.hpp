// CircuitBreaker stops calling a service that keeps failing, and lets a few probes find out when it is back.
//
//   reprise::CircuitBreaker breaker{{.consecutive_failures = 5, .open_for = std::chrono::seconds{10}}};   // one per service
//   auto body = reprise::retry(reprise::policy::standard, fetch, {.breaker = &breaker});
//   // body.error().reason == reprise::StopReason::circuit_open when an attempt was refused, or when its failure opened the circuit
//
// or by hand, around anything:
//
//   if (auto permit = breaker.try_acquire()) {
//     const bool ok = ping();
//     std::move(*permit).report(ok);
//   }
//
//   closed     every call goes through; a run of failures, or too large a share of failures, opens it
//   open       no call goes through for `open_for`; then the next call that asks is the first probe
//   half_open  at most `half_open_probes` probes; that many successes close it, one failure opens it again
//
// This is the breaker of one process over all failures of one service. The engine's breaker, which is durable and counts equal
// failures of a step (CircuitBreakerRule), is another thing.
// Thread safety: every member may be called from any thread at any time; lock-free. While calls succeed, a call costs two loads.
// The clock is read only when the circuit is not closed or is being opened.
// Not supported: a window above 31 calls or above 255 probes (settings are clamped, see settings()); failure shares over time
// spans. A probe that hangs keeps its place until its permit is reported or dropped: give calls a timeout.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <reprise/env.hpp>
#include <reprise/failure.hpp>

namespace reprise {

struct CircuitBreakerSettings {
  std::uint32_t consecutive_failures = 5;  // this many failures in a row open it, at most 31; 0 = not looked at
  double failure_ratio = 0.5;              // this share of failures in the window opens it, 0..1; 0 = not looked at
  std::uint32_t window = 30;               // the share is taken over this many of the latest calls, 1..31
  std::uint32_t minimum_calls = 10;        // no share is taken before this many calls, 1..window
  Duration open_for = std::chrono::seconds{30};  // before the first probe; never negative
  std::uint32_t half_open_probes = 1;            // at a time, and successes needed to close, 1..255

  bool operator==(const CircuitBreakerSettings&) const = default;
};

class CircuitBreaker {
 public:
  enum class State : std::uint8_t { closed, open, half_open };

  // Leave to make one call. Dropped without report() counts as abandoned: a probe's place is free again, nothing else changes.
  class [[nodiscard]] Permit {
   public:
    Permit(Permit&& other) noexcept : breaker_{std::exchange(other.breaker_, nullptr)}, epoch_{other.epoch_} {}
    Permit& operator=(Permit&&) = delete;
    ~Permit() {
      if (breaker_ != nullptr) breaker_->abandon(epoch_);
    }

    // How the call ended. A report is ignored when the circuit has changed its state since the permit was given.
    void report(bool ok) && noexcept {
      if (breaker_ != nullptr) std::exchange(breaker_, nullptr)->report(epoch_, ok);
    }

   private:
    friend class CircuitBreaker;
    Permit(CircuitBreaker& breaker, std::uint64_t epoch) noexcept : breaker_{&breaker}, epoch_{epoch} {}

    CircuitBreaker* breaker_;
    std::uint64_t epoch_;
  };

  // `env` gives the time and must outlive the breaker; nullptr = system_env().
  explicit CircuitBreaker(const CircuitBreakerSettings& settings = {}, Env* env = nullptr) noexcept;
  CircuitBreaker(const CircuitBreaker&) = delete;
  CircuitBreaker& operator=(const CircuitBreaker&) = delete;

  // std::nullopt: refused, do not call. Permits must not outlive the breaker.
  [[nodiscard]] std::optional<Permit> try_acquire() noexcept;

  // Open, and it is not time for a probe yet. Takes nothing; a moment later the answer may be another.
  [[nodiscard]] bool refuses() const noexcept;

  // An open circuit stays `open` here until somebody asks for a permit, also when the time for a probe has come.
  State state() const noexcept;

  // As given, clamped to what is supported.
  const CircuitBreakerSettings& settings() const noexcept { return settings_; }

 private:
  void report(std::uint64_t epoch, bool ok) noexcept;
  void abandon(std::uint64_t epoch) noexcept;
  std::uint64_t after_report(std::uint64_t word, bool ok) const noexcept;
  bool trips(std::uint32_t window) const noexcept;
  void raise_open_until() noexcept;
  bool is_due() const noexcept;

  CircuitBreakerSettings settings_;
  Env* env_;
  // The whole state in one word, so that every change is one compare-and-swap (layout in circuit_breaker.cpp).
  alignas(64) std::atomic<std::uint64_t> word_;
  // When the latest opening ends, in the clock's nanoseconds. Raised before the word says open, so it is never read too early.
  std::atomic<std::int64_t> open_until_;
};

std::string_view name_of(CircuitBreaker::State state) noexcept;  // closed, open, half_open

}  // namespace reprise
