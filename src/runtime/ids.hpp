// From run numbers to ids and back, without a table: an id is a UUID of version 7 that carries the number.
//
// 48 bits are the time of creation in milliseconds, 40 bits the number, and the other 34 are a hash of both and the store's secret:
// enough to tell an id of this store from one of another, or from a typing mistake. Ids are names, not secrets.
// The shards of a store share its secret and count on their own. So 12 bits of the hash are XORed with the shard's slot: two shards never
// give the same id, and whoever has the secret knows from an id which shard has the run. Slot 0 leaves the hash as it is.
// Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <optional>

#include <reprise/event.hpp>

#include "event/record.hpp"

namespace reprise::runtime {

inline constexpr std::uint64_t run_number_max = (std::uint64_t{1} << 40U) - 1;

inline constexpr std::uint32_t slot_max = (1U << 12U) - 1;

RunId id_of(std::uint64_t secret, std::uint64_t number, event::Time created, std::uint32_t slot = 0) noexcept;
// A new one for a request, by chance: a UUID of version 7.
RunId new_request_id(event::Time now);
std::uint64_t number_in(const RunId& id) noexcept;
// std::nullopt: the id is not of a store with this secret. Chance finds a slot in one of 4 million foreign ids: the run must be there, too.
std::optional<std::uint32_t> slot_in(std::uint64_t secret, const RunId& id) noexcept;

}  // namespace reprise::runtime
