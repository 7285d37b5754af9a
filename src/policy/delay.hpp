// Drawing a delay from its range.
#pragma once

#include <reprise/policy.hpp>

namespace reprise {

// `range` is delay_range() for the same arguments. Nothing is drawn where there is nothing to choose.
Duration draw_delay(const Policy& policy, std::uint64_t retry, Duration previous, const DelayRange& range,
                    Random& random) noexcept;

}  // namespace reprise
