// How an attempt ended, for tests: what is asked for is there, or the test fails with an exception.
#pragma once

#include <variant>

#include "exec/executor.hpp"

namespace reprise::testing_support {

inline bool has_succeeded(const exec::Outcome& outcome) { return std::holds_alternative<exec::Succeeded>(outcome.end); }
inline bool was_interrupted(const exec::Outcome& outcome) {
  return std::holds_alternative<exec::Interrupted>(outcome.end);
}
inline const exec::Payload& output_of(const exec::Outcome& outcome) {
  return std::get<exec::Succeeded>(outcome.end).output;
}
inline const Failure& failure_of(const exec::Outcome& outcome) { return *std::get<exec::Failed>(outcome.end).failure; }

}  // namespace reprise::testing_support
