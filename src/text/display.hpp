// How wide text is on a terminal: one column a character, two for East Asian ideographs and emoji, none for marks that combine.
//
// Thread safety: functions of their arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::text {

std::size_t columns_of(std::uint32_t code_point) noexcept;
std::size_t columns_of(std::string_view text) noexcept;  // bytes that are no character count as one column each

// As many whole characters from the beginning as fit.
std::string_view clipped(std::string_view text, std::size_t columns) noexcept;

// With blanks behind it, if it is narrower than that.
std::string padded(std::string_view text, std::size_t columns);

}  // namespace reprise::text
