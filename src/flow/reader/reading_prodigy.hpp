// What the two readers of Prodigy documents share. Internal to src/flow/reader.
#pragma once

#include <optional>
#include <string>

#include "flow/reader/reading.hpp"

namespace reprise::flow {

std::string not_supported(const text::Node&);
std::optional<Duration> read_timeout(const text::Field& field, Reading& reading);  // 300 or 5m
// One of shell, claude or another agent, and what to run when it fails. Other keys are the caller's.
std::optional<Command> read_template_command(text::Fields& fields, const text::Node& map, bool may_recover,
                                             Reading& reading);
// What is said about failed items: under map, and in the error_policy at the top of the document (`shared`). After agent_template.
void read_map_policies(text::Fields& map, const std::optional<text::Field>& shared, StepDraft& draft, Reading& reading);

}  // namespace reprise::flow
