// Plain scalars: which type they have (YAML 1.2 core schema), and exact decimal numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <reprise/failure.hpp>

#include "text/document.hpp"

namespace reprise::text {

NodeType scalar_type(std::string_view text) noexcept;

// -?[0-9]+ within the range of int64; nullopt otherwise.
std::optional<std::int64_t> whole_number(std::string_view text) noexcept;

// Any decimal number as a finite double; nullopt for infinities, NaN, overflow and everything that is no number.
std::optional<double> finite_number(std::string_view text) noexcept;

// A decimal number of units as a duration, exact to the nearest nanosecond. nullopt: no decimal number, negative, or beyond 2^63-1 ns.
std::optional<Duration> decimal_duration(std::string_view text, std::int64_t unit_ns) noexcept;

// The other way: 1.5 for 1500 ms in units of a second, exact.
std::string decimal_text(Duration duration, std::int64_t unit_ns);

}  // namespace reprise::text
