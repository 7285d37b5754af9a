// Why a piece of work was tried again, or not: every decision of its policy, in sentences, from the recorded events alone.
//
//   Explainer explainer{plan, wanted, WorkSource::document};
//   for (const Event& event : events) explainer.add(event);
//   for (const Explanation& item : std::move(explainer).explanations()) …
//
// Only work that failed at least once is kept. why_words.hpp has the sentences, why_remedies.hpp what would change the outcome, why_text.hpp
// the layout. Thread safety: one thread at a time.
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

// Where its policy was written, and so where somebody would change it.
enum class WorkSource : std::uint8_t { program, document, foreign_document, exec };

// One failed attempt and what was decided about it.
struct Judgement {
  Event failed = {};
  std::optional<Event> retrying = {};        // when a wait follows
  bool is_wait_over = false;                 // the next attempt has begun
  std::string way = {};                      // fallback, on_failure: the attempt was not the step itself but this
  std::string next_way = {};                 // what is tried next instead
  Duration waited_before{0};                 // all waits before this attempt
  std::optional<WallTime> asked_again = {};  // when somebody wanted it tried once more, though it was given up
  std::string went_back = {};                // the step the run went back to after it, to come here again
  std::vector<std::string> sentences = {};   // what failed, its class, the limit or rule that applied, the wait
};

enum class WorkState : std::uint8_t { waiting, running, succeeded, failed, canceled };
std::string_view name_of(WorkState state) noexcept;

struct Explanation {
  std::uint32_t step = 0;  // in the plan
  std::uint32_t item = 0;
  WorkState state = WorkState::running;
  std::uint64_t attempts = 0;
  std::vector<Judgement> judgements = {};
  bool is_dead_letter = false;
  std::string ending = {};                 // what came of it, in one sentence
  std::vector<std::string> remedies = {};  // failed: what would have to be written for it to be tried again
};

struct WantedWork {
  std::uint32_t step = 0;
  std::optional<std::uint32_t> item = {};
};

class Explainer {
 public:
  Explainer(std::shared_ptr<const core::Plan> plan, std::optional<WantedWork> wanted,
            WorkSource source = WorkSource::program);

  void add(const Event& event);
  std::vector<Explanation> explanations() &&;  // by step and item
  // What concerns all of the run and may explain the rest: cancelled, deadline, recovered, reopened, gone back.
  const std::vector<std::string>& about_the_run() const noexcept { return about_the_run_; }

 private:
  void add_of_run(const Event& event);
  void add_failed(const Event& event, std::uint32_t step);
  void add_later(const Event& event, Explanation& item) const;
  void reopen(const Event& event);
  void go_back(const Event& event, std::uint32_t step);

  std::shared_ptr<const core::Plan> plan_;
  std::optional<WantedWork> wanted_;
  WorkSource source_;
  std::map<std::string, std::uint32_t, std::less<>> step_numbers_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Explanation> items_;
  std::vector<std::string> about_the_run_;
  StopReason cancel_reason_ = StopReason::none;  // why the run was stopped, if it was
  bool was_visited_enough_ = false;              // the run ended because of max_visits
};

// "the step's own", "built in" …
std::string_view level_words(PolicyLevel level) noexcept;

}  // namespace reprise::observe
