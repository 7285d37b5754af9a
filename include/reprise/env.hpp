// The door to the world: time, waiting, chance, and a place for warnings. Everything that needs one of them asks an Env.
//
// system_env() is the real one. reprise/testing.hpp has a simulated one, for our tests and yours.
// Thread safety: an Env may be used from many threads at once.
#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string_view>

#include <reprise/failure.hpp>

namespace reprise {

class Env {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Env() = default;
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;
  virtual ~Env() = default;

  virtual TimePoint now() = 0;

  // Waits until `due` or until stop is requested, whichever comes first; never returns early otherwise.
  // True: the time has come. False: stopped.
  virtual bool wait_until(TimePoint due, const std::stop_token& stop) = 0;

  virtual std::uint64_t random_seed() = 0;

  // Something a person should know and the program should survive, such as an observer that threw.
  virtual void warn(std::string_view message) noexcept = 0;
};

// The machine's own clock and randomness; warnings go to standard error.
Env& system_env() noexcept;

}  // namespace reprise
