// What would have to be written for work that was given up to be tried again: which key with which value, and where it stands.
//
// Thread safety: functions of their arguments.
#pragma once

#include <string>
#include <vector>

#include "observe/why/why_words.hpp"

namespace reprise::observe {

// Empty when nothing that is written would have changed it.
std::vector<std::string> remedies_of(const DecisionContext& context, const RetryDecision& decision);

}  // namespace reprise::observe
