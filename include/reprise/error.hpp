// Why the engine could not do what it was asked: a code for programs, a sentence with place and remedy for people.
//
// Plain values. Thread safety: none needed.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace reprise {

enum class ErrorCode : std::uint8_t {
  invalid,            // what was asked makes no sense; nothing was changed
  not_found,          // no such run, step or item
  full,               // a bound was reached: try again later
  stopped,            // the engine is stopping or has stopped
  timed_out,          // the time the caller gave was over; the work itself goes on
  store_locked,       // another process owns the store
  store_newer,        // written by a newer version than this one
  store_damaged,      // what is there cannot be read
  store_read_only,    // the file or its folder cannot be written
  store_full,         // no space left
  store_unavailable,  // any other trouble with the store
  store_gone,         // removed, moved or replaced while the engine had it: nothing more can be recorded
  fenced,             // another owner has the store by now: nothing more can be recorded
  store_behind,       // it has forgotten what it had recorded, as a copy from before has: nothing more can be recorded
};
std::string_view name_of(ErrorCode code) noexcept;

struct Error {
  ErrorCode code = ErrorCode::invalid;
  std::string message = {};

  bool operator==(const Error&) const = default;
};

// For those who prefer exceptions: the constructor of Engine throws it.
class EngineError : public std::runtime_error {
 public:
  explicit EngineError(Error error) : std::runtime_error{error.message}, code_{error.code} {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace reprise
