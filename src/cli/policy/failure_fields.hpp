// What `policy decide` and `classify` are told of a failure, in the same words.
#pragma once

#include <optional>
#include <string>

#include <reprise/failure.hpp>

#include "text/fields.hpp"

namespace reprise::cli {

void read_failure_fields(text::Fields& fields, Failure& failure, text::Report& report);

// The readers a failure needs beyond those of text/fields.hpp.
std::optional<Duration> read_milliseconds(const text::Field& field, text::Report& report);
std::optional<std::string> read_text(const text::Field& field, text::Report& report);

}  // namespace reprise::cli
