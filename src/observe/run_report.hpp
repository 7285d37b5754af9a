// What became of a run, worked out from its events as they come: counts for each step, details only of work that had trouble.
//
//   RunReporter reporter{plan};
//   for (const Event& event : events) reporter.add(event);
//   const RunReport report = reporter.report();
//
// Work that succeeds leaves nothing but a count, so a run with a million items costs little. Of failures the first `details_max` are
// kept with their words, and the first few of every step in any case: a list that may fail does not hide what made the run fail.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <reprise/event.hpp>

#include "core/plan.hpp"
#include "core/state.hpp"

namespace reprise::observe {

struct StepReport {
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
  std::uint64_t attempts = 0;               // started, all items and visits together
  std::uint64_t retries = 0;                // waits that were followed, or will be, by another attempt
  std::uint64_t rescued = 0;                // items that succeeded after at least one failure
  std::uint64_t retried = 0;                // items that were tried again at least once
  std::uint64_t succeeded_after_retry = 0;  // of these
  std::uint64_t failed_after_retries = 0;   // of these
  std::uint64_t lost = 0;                   // attempts during which the engine died
  std::uint64_t fallbacks = 0;              // times another way was tried
  Duration waited{0};                       // sum of all waits between attempts
  std::optional<WallTime> first_started = {};
  std::optional<WallTime> last_event = {};
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
  core::ItemStatus status = core::ItemStatus::failed;  // waiting, running, failed or canceled
  std::uint64_t attempts = 0;
  Failure failure = {};  // the last one
  StopReason reason = StopReason::none;
  bool dead_letter = false;
  Duration waited{0};
  WallTime due = {};                      // waiting: until then
  WallTime time = {};                     // of its last event
  WallTime began = {};                    // its first attempt
  std::vector<FailedAttempt> tries = {};  // the last few, for the first few items; the failure above is the last one's
};

struct RunReport {
  RunStatus status = RunStatus::running;
  StopReason reason = StopReason::none;
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
  // `first_step_items`: of a task that was submitted with items, which no event tells; 0 = it was not.
  explicit RunReporter(std::shared_ptr<const core::Plan> plan, std::uint32_t first_step_items = 0,
                       std::size_t details_max = 10'000);

  void add(const Event& event);
  RunReport report() const;

  // For those who look while it goes on: the same without the troubled items, and these one by one.
  RunReport overview() const;
  std::optional<std::uint32_t> step_number(std::string_view name) const;
  const StepReport& step(std::uint32_t number) const { return report_.steps[number]; }
  core::StepStatus status_of(std::uint32_t step) const;
  const TroubledItem* trouble_of(std::uint32_t step, std::uint32_t item) const;

 private:
  using Place = std::pair<std::uint32_t, std::uint32_t>;  // step, item
  struct Item {
    core::ItemStatus status = core::ItemStatus::untouched;
    bool has_failed = false;
    bool was_retried = false;
    bool dead_letter = false;
    WallTime began = {};    // its first attempt
    WallTime started = {};  // its last one
    std::unique_ptr<TroubledItem> details;
  };
  struct Kept {  // how many items have them
    std::size_t details = 0;
    std::size_t tries = 0;
  };

  void add_of_step(const Event& event, std::uint32_t step);
  void add_started(const Event& event, std::uint32_t step);
  void add_failed(const Event& event, std::uint32_t step);
  void remember_try(const Event& event, const Item& item);
  void add_retrying(const Event& event, std::uint32_t step);
  void add_completed(const Event& event, std::uint32_t step);
  void add_reopened(const Event& event);
  void mark_dead_letter(const Event& event, std::uint32_t step, bool is_one);
  void move(std::uint32_t step, Item& item, core::ItemStatus to);
  void forget_tries(Item& item);
  void let_go(Item& item);
  void forget_items(std::uint32_t step);

  std::shared_ptr<const core::Plan> plan_;
  std::size_t details_max_;
  Kept kept_;
  std::vector<Kept> kept_of_steps_;
  bool is_canceling_ = false;
  RunReport report_;
  std::map<std::string, std::uint32_t, std::less<>> step_numbers_;
  std::map<Place, Item> items_;  // under way, failed or canceled
};

}  // namespace reprise::observe
