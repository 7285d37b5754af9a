// Why a piece of work was tried again, or not: every decision of its policy, in sentences, from the recorded events alone.
//
//   Explainer explainer{plan, wanted, WorkSource::document};
//   for (const Event& event : events) explainer.add(event);
//   for (const Explanation& item : explainer.explanations()) …
//
// Only work that failed, or was stopped, at least once is explained: a form of what the projection of the run knows (projection.hpp). why_words.hpp has
// the sentences, why_remedies.hpp what would change the outcome, why_text.hpp the layout. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <reprise/event.hpp>

#include "observe/projection.hpp"

namespace reprise::observe {

// Where its policy was written, and so where somebody would change it.
enum class WorkSource : std::uint8_t { program, document, foreign_document, exec };

// One failed attempt and what was decided about it.
struct RetryDecision {
  Event failed = {};
  std::optional<Event> retrying = {};        // when a wait follows
  bool is_wait_over = false;                 // the next attempt has begun
  bool is_wait_in_vain = false;              // the wait is over, and no attempt follows
  bool is_interruption = false;              // it did not fail: it was stopped. `failed` says when
  std::string way = {};                      // fallback, on_failure: the attempt was not the step itself but this
  std::string next_way = {};                 // what is tried next instead
  Duration waited_before{0};                 // all waits before this attempt
  StopReason cancel_reason = {};             // why the run was being stopped then; none = it was not
  std::optional<WallTime> asked_again = {};  // when somebody wanted it tried once more, though it was given up
  std::string went_back = {};                // the step the run went back to after it, to come here again
  std::vector<std::string> sentences = {};   // what failed, its class, the limit or rule that applied, the wait
};

// Of an attempt that failed; without the sentences.
RetryDecision retry_decision_of(const AttemptStory& attempt);

enum class WorkState : std::uint8_t { waiting, running, succeeded, failed, canceled };
std::string_view name_of(WorkState state) noexcept;

struct Explanation {
  std::uint32_t step = 0;  // in the plan
  std::uint32_t item = 0;
  WorkState state = WorkState::running;
  std::uint64_t attempts = 0;
  std::vector<RetryDecision> decisions = {};
  bool is_dead_letter = false;
  bool has_failed = false;                 // or was only stopped
  std::string ending = {};                 // what came of it, in one sentence
  std::vector<std::string> remedies = {};  // failed: what would have to be written for it to be tried again
};

class Explainer {
 public:
  Explainer(std::shared_ptr<const core::Plan> plan, std::optional<WantedWork> wanted,
            WorkSource source = WorkSource::program);

  void add(const Event& event) { run_.add(event); }
  std::vector<Explanation> explanations() const;  // by step and item
  // Never begun, because the circuit of its step is open.
  bool is_kept_out(std::uint32_t step, std::uint32_t item) const { return run_.is_kept_out(step, item); }
  // What concerns all of the run and may explain the rest: cancelled, deadline, recovered, reopened, gone back.
  std::vector<std::string> about_the_run() const;

 private:
  Explanation explained(const Place& place, const WorkStory& story) const;

  std::shared_ptr<const core::Plan> plan_;
  WorkSource source_;
  RunProjection run_;
};

// "the step's own", "built in" …
std::string_view level_words(PolicyLevel level) noexcept;

}  // namespace reprise::observe
