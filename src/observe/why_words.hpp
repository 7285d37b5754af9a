// The sentences of why: one failed attempt, what was decided about it, and what would have to be written for another decision.
//
// Thread safety: functions of their arguments.
#pragma once

#include <string>
#include <vector>

#include "observe/why.hpp"

namespace reprise::observe {

struct JudgementContext {
  const core::Plan& plan;
  const core::StepPlan& step;
  WorkSource source;
  StopReason cancel_reason;  // why the run was stopped; none = it was not
};

// What failed, its class and by which rule, what was decided with its numbers, what came next. `before` is the attempt before it, if that
// failed too: what has not changed is not said again.
std::vector<std::string> sentences_of(const JudgementContext& context, const Judgement& judgement,
                                      const Judgement* before);

// What would have made the last decision another one: which key with which value, and where it stands.
std::vector<std::string> remedies_of(const JudgementContext& context, const Judgement& judgement);

// 2026-11-15T10:00:03.123Z: nobody needs more digits in a sentence.
std::string moment(WallTime time);

// its fallback, its on_failure command
std::string way_words(std::string_view way);

}  // namespace reprise::observe
