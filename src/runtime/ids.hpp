// From run numbers to ids and back, without a table: an id is a UUID of version 7 that carries the number.
//
// 48 bits are the time of creation in milliseconds, 40 bits the number, and the other 34 are a hash of both and the store's secret:
// enough to tell an id of this store from one of another, or from a typing mistake. Ids are names, not secrets.
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>

#include <reprise/event.hpp>

#include "event/record.hpp"

namespace reprise::runtime {

inline constexpr std::uint64_t run_number_max = (std::uint64_t{1} << 40U) - 1;

RunId id_of(std::uint64_t secret, std::uint64_t number, event::Time created) noexcept;
std::uint64_t number_in(const RunId& id) noexcept;

}  // namespace reprise::runtime
