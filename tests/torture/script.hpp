// What the tortured program does, worked out from a number alone, so that whoever checks it afterwards knows what had to happen.
//
// Run number n has the key "n", a kind, and handlers that fail as often as chance said for n. The worker and the checker ask the
// same functions and share nothing else. Thread safety: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/engine.hpp>

namespace reprise::torture {

enum class Kind : std::uint8_t {
  quick,     // succeeds at once
  flaky,     // fails a few times first; never gives up
  limited,   // the same with 4 attempts
  doomed,    // always fails, 3 attempts
  refused,   // fails for good the first time it is asked
  delayed,   // not before some milliseconds
  large,     // an input and an output that are stored by hash
  items,     // one task, many work items
  sequence,  // a flow: one step after the other, each adds its name
  waiting,   // a flow: step, wait, step
  map,       // a flow: a list, one item for each element, a sum
  approval,  // a flow: step, signal, step
  canceled,  // a flow: step, and a wait that somebody ends
};

Kind kind_of(std::uint64_t number);
std::string_view name_of(Kind kind) noexcept;
Task task_of(std::uint64_t number);
std::optional<std::uint64_t> number_of_key(std::string_view key);
inline constexpr std::string_view signal_name = "approve";

std::optional<std::uint64_t> max_attempts_of(Kind kind);
std::string output_of(std::uint64_t number, std::string_view step, std::uint32_t item);
std::vector<std::string> steps_of(Kind kind);  // those with a handler, the last one last
std::uint32_t items_of(std::uint64_t number, std::string_view step);
Duration wait_of();  // of the waiting flow

// What an attempt has to do: work for a moment, and fail or not.
enum class Verdict : std::uint8_t { succeed, fail, refuse };
struct Behaviour {
  Verdict verdict = Verdict::succeed;
  std::chrono::microseconds work{0};
};
Behaviour behaviour_of(std::uint64_t number, std::string_view step, std::uint32_t item, std::uint64_t attempt);

// The handlers and flows of all kinds. `began` and `ended` are called around the work of every attempt.
class Log {
 public:
  Log() = default;
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  virtual ~Log() = default;
  virtual void began(const Work& work) = 0;
  virtual void ended(const Work& work, Verdict verdict) = 0;
};
std::expected<void, Error> set_up(Engine& engine, Log& log);

}  // namespace reprise::torture
