// What became of a run: counts for each step, details only of work that had trouble.
//
//   RunReporter reporter{plan};
//   for (const Event& event : events) reporter.add(event);
//   const RunReport report = reporter.report();
//
// A form of what the projection of the run knows (projection.hpp), whose limits hold: of failures the first ten thousand are kept with their
// words, and the first few of every step in any case: a list that may fail does not hide what made the run fail.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <reprise/event.hpp>

#include "observe/projection.hpp"

namespace reprise::observe {

struct StepReport : StepTotals {
  std::string name;
  core::StepStatus status = core::StepStatus::pending;
  bool has_items = false;
  std::uint32_t items = 1;
  std::uint32_t running = 0;
  std::uint32_t waiting = 0;
  std::uint32_t succeeded = 0;
  std::uint32_t failed = 0;
  std::uint32_t canceled = 0;
  std::uint32_t dead_letters = 0;
  std::uint32_t kept_out = 0;  // never begun, because its circuit is open
  std::uint64_t failed_after_retries = 0;  // of those that were tried again
};

struct FailedAttempt {
  std::uint64_t attempt = 0;
  Failure failure = {};
  Duration took{0};
  std::optional<Duration> wait = {};  // before the next one, if there is to be one
  bool floored = false;               // retry_after lifted the wait
};

struct TroubledItem {
  std::uint32_t step = 0;  // index into RunReport::steps
  std::uint32_t item = 0;
  std::string label = {};                              // what people call the item; put there by those who know it
  core::ItemStatus status = core::ItemStatus::failed;  // waiting, running, failed or canceled
  std::uint64_t attempts = 0;
  Failure failure = {};  // the last one
  StopReason reason = StopReason::none;
  bool dead_letter = false;
  bool skipped = false;  // it is not tried any more, because the circuit of its step is open
  Duration waited{0};
  WallTime due = {};                      // waiting: until then
  WallTime time = {};                     // of its last event
  WallTime began = {};                    // its first attempt
  std::vector<FailedAttempt> tries = {};  // the last few, for the first few items; the failure above is the last one's
};

struct RunReport {
  RunStatus status = RunStatus::running;
  StopReason reason = StopReason::none;
  std::string cancel_words = {};  // canceled: by whom and why (projection.hpp)
  WallTime created = {};
  std::optional<WallTime> ended = {};
  std::vector<StepReport> steps;
  std::vector<TroubledItem> troubled;  // by step and item: what has failed and was not made good by a later attempt
  std::uint64_t without_details = 0;   // failed ones beyond those
  std::uint64_t recoveries = 0;        // times the engine had died

  std::uint64_t sum(std::uint64_t StepReport::*member) const;  // over all steps
  std::uint64_t attempts() const { return sum(&StepReport::attempts); }
  std::uint64_t retries() const { return sum(&StepReport::retries); }
  std::uint64_t failed() const;
  Duration waited() const;
};

class RunReporter {
 public:
  explicit RunReporter(std::shared_ptr<const core::Plan> plan, StoryLimits limits = {})
      : projection_{std::move(plan), limits} {}

  void add(const Event& event) { projection_.add(event); }
  RunReport report() const;
  // For those who look while it goes on: the same without the troubled items, and these one by one.
  RunReport overview() const;
  StepReport step(std::uint32_t number) const;
  std::optional<TroubledItem> trouble_of(std::uint32_t step, std::uint32_t item) const;

  RunProjection& projection() noexcept { return projection_; }
  const RunProjection& projection() const noexcept { return projection_; }

 private:
  RunProjection projection_;
};

}  // namespace reprise::observe
