// What a run was submitted with for itself beside its work (RunAttributes), as facts, as JSON, and what may be said at all.
//
// The core has no use for them: it keeps the facts as bytes, and they are read here for those who show or choose runs.
// Thread safety: functions of their arguments.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include <reprise/event.hpp>

#include "text/value.hpp"

namespace reprise::event {

inline constexpr std::size_t labels_max = 32;

// Puts the labels in order. The error is a sentence that says what would be right.
std::expected<void, std::string> settle_attributes(RunAttributes& attributes);

// As facts (facts.hpp) of the tags from `origin` to `traceparent`; empty when nothing was said.
std::string encode_attributes(const RunAttributes& attributes);
// From all facts of a run. What cannot be read is left out.
RunAttributes read_attributes(std::string_view facts);

// Adds the fields origin, labels, queue, tenant, max_cost and traceparent, those that were said.
void set_attributes(text::Value& object, const RunAttributes& attributes);

}  // namespace reprise::event
