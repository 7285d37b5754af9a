// Why a piece of work was tried again, or not: every decision of its policy, in sentences, from the recorded events alone.
//
//   Explainer explainer{plan, wanted};
//   for (const Event& event : events) explainer.add(event);
//   for (const Explanation& item : explainer.explanations()) …
//
// Only work that failed at least once is kept. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <reprise/event.hpp>

#include "core/plan.hpp"

namespace reprise::observe {

// One failed attempt and what was decided about it.
struct Judgement {
  Event failed;
  std::optional<Event> retrying;       // when a wait follows
  std::vector<std::string> sentences;  // what failed, its class, the limit or rule that applied, the wait
};

enum class WorkState : std::uint8_t { waiting, running, succeeded, failed, canceled };
std::string_view name_of(WorkState state) noexcept;

struct Explanation {
  std::uint32_t step = 0;  // in the plan
  std::uint32_t item = 0;
  WorkState state = WorkState::running;
  std::uint64_t attempts = 0;
  std::vector<Judgement> judgements = {};
  std::string ending = {};                 // what came of it, in one sentence
  std::vector<std::string> remedies = {};  // failed: what would have to change for it to be tried again
};

struct WantedWork {
  std::uint32_t step = 0;
  std::optional<std::uint32_t> item = {};
};

class Explainer {
 public:
  Explainer(std::shared_ptr<const core::Plan> plan, std::optional<WantedWork> wanted);

  void add(const Event& event);
  std::vector<Explanation> explanations() const;  // by step and item
  // What concerns all of the run and may explain the rest: cancelled, deadline, recovered, reopened.
  const std::vector<std::string>& about_the_run() const noexcept { return about_the_run_; }

 private:
  void add_of_run(const Event& event);
  void add_failed(const Event& event, std::uint32_t step);

  std::shared_ptr<const core::Plan> plan_;
  std::optional<WantedWork> wanted_;
  std::map<std::string, std::uint32_t, std::less<>> step_numbers_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Explanation> items_;
  std::vector<std::string> about_the_run_;
};

// The sentences one by one, for those who tell the same story in another form.
std::string classification_sentence(const Failure& failure);                     // which class, by which rule
std::string decision_sentence(const core::StepPlan& plan, const Event& failed);  // tried again or given up, and why
std::string wait_reason(const Policy& policy, const Event& retrying);            // "drawn from 375ms to 625ms (…)"

// "the step's own", "built in" …
std::string_view level_words(PolicyLevel level) noexcept;

}  // namespace reprise::observe
