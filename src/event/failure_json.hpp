// A failure as JSON: the only place that writes one, so that events, `why`, `show` and all others agree.
//
// Thread safety: pure.
#pragma once

#include <reprise/failure.hpp>

#include "text/value.hpp"

namespace reprise::event {

// What is not known is left out. What was left behind is `stdout`, `stderr`, `mistakes` and `failing`, or `evidence_hash` and
// `evidence_size` where only the store has it.
text::Value failure_value(const Failure& failure);

}  // namespace reprise::event
