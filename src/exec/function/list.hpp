// Lists as one payload, so that one item of a million is found without reading the others.
//
//   "RLS1"  4 bytes
//   count   32 bits, least significant byte first, like all numbers here
//   ends    32 bits for each element: where it ends, counted from the end of this table
//   bytes   of all elements, one after the other
//
// At most 4 GiB of elements. Bytes from anywhere are safe to ask: what is no list has no size and no elements.
// encode_list() and decode_list() stand in reprise/engine.hpp. Thread safety: none needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace reprise::exec {

// Constant time. The size of something that begins and ends like a list; an element of it may still turn out to be damaged.
std::optional<std::uint32_t> list_size(std::string_view list) noexcept;

// Constant time; looks into `list`. std::nullopt: no list, no such element, or damaged.
std::optional<std::string_view> list_element(std::string_view list, std::uint32_t index) noexcept;

}  // namespace reprise::exec
