// What a document needs that this machine does not have: found before a run starts, not after an hour of it. Thread safety: any thread.
#pragma once

#include <string>
#include <vector>

#include <reprise/diagnostic.hpp>

#include "flow/flow.hpp"

namespace reprise::cli {

// Each says what is missing, the place that needs it and what to install. `validate` warns, `run` refuses.
std::vector<Diagnostic> missing_here(const flow::FlowDocument& flow, const std::string& file, Severity severity);

}  // namespace reprise::cli
