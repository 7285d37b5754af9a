// A flow in words: the order of its steps, what each does, and which policy it has and why. Thread safety: pure functions.
#pragma once

#include <string>

#include "flow/flow.hpp"

namespace reprise::cli {

std::string plan_in_words(const flow::FlowDocument& flow);
std::string plan_json(const flow::FlowDocument& flow);  // one line

}  // namespace reprise::cli
