// When a limit of time is over, if we ourselves may not have run meanwhile: Ctrl-Z, a debugger, a paused container, a starved machine.
//
// The rule of every executor: look first, judge then. An end or output that waits to be read counts, however late we read it. What still
// runs when we wake, and has nothing to show, may have been halted together with us: it gets as much time again as we know to have missed,
// at most its whole limit. How long we missed before a limit was due cannot be known without a regular wake-up, which would cost every
// machine something for a rare case. A computer that sleeps needs none of this: the steady clock sleeps too.
//
// Thread safety: none needed, everything is an argument.
#pragma once

#include <algorithm>

#include <reprise/env.hpp>

#include "base/lateness.hpp"

namespace reprise::exec {

using base::late_without_excuse;

// When a limit of `span` that was due then is to be judged: as it was, or later because we did not run.
inline Env::TimePoint fair_due(Env::TimePoint due, Duration span, Env::TimePoint now) noexcept {
  if (due >= now || now - due <= late_without_excuse) return due;
  return now + std::min<Duration>(now - due, span);
}

}  // namespace reprise::exec
