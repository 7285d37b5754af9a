// One run as its events tell it: the engine's own state of it, and beside that what only people ask for. Reports, `why`, the live view, plain
// lines and the page all read this; nobody else works anything out from events.
//
//   RunProjection run{plan};
//   for (const Event& event : events) run.add(event);
//   run.status_of(step, item);   run.totals(step).retries;   run.story_of(step, item)->attempts;
//
// States come from core::Core, which applies the events as the engine does. Totals and stories (attempts with their failures and waits) are kept
// here. Bounds: a story has as many attempts, and there are as many stories, as `StoryLimits` says; work that succeeds leaves nothing but
// counts, unless the limits say so. Thread safety: one thread at a time.
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

#include "core/core.hpp"
#include "event/history.hpp"

namespace reprise::observe {

using Place = std::pair<std::uint32_t, std::uint32_t>;  // step, item

enum class AttemptEnd : std::uint8_t { none, succeeded, failed, lost, interrupted, canceled };

// One attempt and what was decided about it; or what failed, or was over, without one.
struct AttemptStory {
  std::uint64_t number = 0;            // 0: there was none
  std::string way = {};                // fallback, on_failure: it was not the step itself but this
  std::optional<WallTime> began = {};  // none: it failed before it could begin
  std::optional<WallTime> ended = {};
  AttemptEnd end = AttemptEnd::none;
  std::unique_ptr<const Event> failed = {};     // the failure with its evidence, and the decision
  Duration waited_before{0};                    // failed: all waits before it, as its policy counts them
  StopReason cancel_reason = StopReason::none;  // failed: why the run was being stopped then, if it was
  std::unique_ptr<const Event> retrying = {};   // when a wait follows
  std::optional<WallTime> wait_ended = {};      // that one
  bool is_wait_interrupted = false;             // by the end of the run
  bool is_followed = false;                     // the next attempt has begun
  std::string next_way = {};                    // what is tried next instead
  std::optional<WallTime> asked_again = {};     // when a person wanted it tried once more, though it was given up
  std::string went_back = {};                   // the step the run went back to after it, to come here again
  std::string output = {};                      // succeeded, and work that never failed is kept: its beginning
  std::uint64_t output_size = 0;                // larger than that: `output` is the hash of so many bytes
};

// One piece of work, since the run began.
struct WorkStory {
  std::vector<AttemptStory> attempts = {};  // in order
  bool is_kept = false;                     // it counts among the stories of work that failed
  bool is_short = false;                    // only the last ones are there: there are too many stories
  bool is_cut = false;                      // the last ones are missing: there are too many attempts
  bool has_failed = false;                  // since it last began anew by a way back
  bool was_retried = false;                 // as well
  bool was_dropped = false;                 // its dead letter
  bool was_interrupted = false;             // an attempt of it, and what came of that is worth telling
  std::optional<WallTime> skipped = {};     // since the circuit of its step opened it is not tried any more
  std::uint64_t started = 0;
  std::uint64_t failures = 0;
  std::uint64_t waits = 0;
  std::uint64_t waits_since = 0;       // since it last began anew by a way back
  std::optional<WallTime> began = {};  // its first attempt, since it was last given all its attempts
  Duration total_elapsed{0};           // succeeded, or failed for good: since then
  std::optional<WallTime> waits_from = {};  // the wait that it is in, if it is in one ...
  Duration wait_left{0};                    // ... and what is left of the last one

  const AttemptStory* last_failed() const;  // nullptr: none is kept
};

struct StepTotals {                         // of all items and visits
  std::uint64_t attempts = 0;               // started
  std::uint64_t retries = 0;                // attempts after others that failed or were lost, and those that will be
  std::uint64_t rescued = 0;                // items that succeeded after at least one failure
  std::uint64_t retried = 0;                // items that were tried again at least once ...
  std::uint64_t succeeded_after_retry = 0;  // ... of these
  std::uint64_t helpful_retries = 0;        // of those that succeeded in the end
  std::uint64_t lost = 0;                   // attempts during which the engine died
  std::uint64_t fallbacks = 0;              // times another way was tried
  Duration waited{0};                       // sum of all waits between attempts, as far as they are over
  std::optional<WallTime> first_started = {};
  std::optional<WallTime> last_event = {};
};

// A time in which the run stood still.
struct Standstill {
  enum class Kind : std::uint8_t { paused, gone, over };  // gone: no engine. over: it had ended, and was reopened
  Kind kind = Kind::paused;
  WallTime from = {};
  std::optional<WallTime> to = {};  // none: it still does
};

struct WantedWork {
  std::uint32_t step = 0;
  std::optional<std::uint32_t> item = {};
};

struct StoryLimits {
  std::size_t stories_max = 10'000;     // of work that failed; each step has some in any case
  std::size_t long_stories_max = 100;   // of these: with more than the last attempt
  std::size_t attempts_max = 12;        // of a long one: the last
  bool keeps_recovered = false;         // also work that failed and then succeeded, or was gone back from
  bool keeps_unharmed = false;          // also work that never failed
  std::optional<WantedWork> only = {};  // no stories, and no totals, of anything else
};

inline constexpr StoryLimits whole_stories{
    .stories_max = SIZE_MAX, .long_stories_max = SIZE_MAX, .attempts_max = SIZE_MAX, .keeps_recovered = true};

class RunProjection {
 public:
  explicit RunProjection(std::shared_ptr<const core::Plan> plan, StoryLimits limits = {});

  void add(const Event& event);  // in order, from the first
  void stop_telling();           // stories end here, as far as they are kept; states and totals go on

  // ---- what the engine knows ----
  const core::Plan& plan() const noexcept { return *plan_; }
  const core::Run& run() const noexcept { return *run_; }
  std::optional<std::uint32_t> step_number(std::string_view name) const;
  const core::StepState& step(std::uint32_t step) const { return run_->steps[step]; }
  bool has_items(std::uint32_t step) const;
  core::StepStatus status_of(std::uint32_t step) const { return run_->steps[step].status; }
  core::ItemStatus status_of(std::uint32_t step, std::uint32_t item) const;
  const core::Item* item_of(std::uint32_t step, std::uint32_t item) const { return run_->steps[step].touched(item); }
  // fallback, on_failure: which way it is, or was last, tried; empty = its own.
  std::string way_of(std::uint32_t step, std::uint32_t item) const;
  // Something of it has begun, or it waits for a time or a signal.
  bool is_under_way(std::uint32_t step) const;

  // ---- what people ask for ----
  std::uint32_t waiting(std::uint32_t step) const { return counts_[step].waiting; }
  std::uint32_t dead_letters(std::uint32_t step) const { return counts_[step].dead_letters; }
  // Items that were never begun, and will not be: the circuit of their step is open.
  std::uint32_t kept_out(std::uint32_t step) const;
  bool is_kept_out(std::uint32_t step, std::uint32_t item) const;
  const StepTotals& totals(std::uint32_t step) const { return totals_[step]; }
  const WorkStory* story_of(std::uint32_t step, std::uint32_t item) const;
  // By step and item: work that is under way, has failed or was cancelled, and what else is to be kept.
  const std::map<Place, WorkStory>& stories() const noexcept { return stories_; }
  std::uint64_t recoveries() const noexcept { return recoveries_; }  // times the engine had died
  // " by ada: the warehouse is closed": who cancelled it, and why, as far as that is recorded; empty: nobody, or it is not.
  const std::string& cancel_words() const noexcept { return cancel_words_; }
  // What concerns all of the run: recovered, cancelled, paused, resumed, reopened, gone back, ended.
  const std::vector<Event>& notes() const noexcept { return notes_; }
  const std::vector<Standstill>& standstills() const noexcept { return standstills_; }

 private:
  struct Counts {  // of items
    std::uint32_t waiting = 0;
    std::uint32_t dead_letters = 0;
  };
  struct Kept {  // stories
    std::size_t all = 0;
    std::size_t long_ones = 0;
  };

  void apply(const Event& event);
  void count_again(std::uint32_t step);
  void note(const Event& event);
  bool is_wanted(std::uint32_t step, std::uint32_t item) const;
  void tell(const Event& event, std::uint32_t step);
  void tell_started(const Event& event, std::uint32_t step);
  void tell_completed(const Event& event, std::uint32_t step);
  void tell_failed(const Event& event, std::uint32_t step);
  void tell_retrying(const Event& event, std::uint32_t step);
  void tell_interrupted(const Event& event, std::uint32_t step);
  void tell_skipped(const Event& event, std::uint32_t step);
  void end_wait(WorkStory& story, std::uint32_t step, WallTime time);
  void take_back_retry(WorkStory& story, std::uint32_t step);
  void tell_reopened(const Event& event);
  void tell_revisited(const Event& event, std::uint32_t step);
  static AttemptStory* last_of(WorkStory& story);
  AttemptStory* add_attempt(WorkStory& story);
  bool make_room(std::uint32_t step, WorkStory& story);
  bool is_to_be_kept(const WorkStory& story) const;
  void forget(std::uint32_t step, WorkStory& story);
  void begin_anew(const Event& event);

  std::shared_ptr<const core::Plan> plan_;
  StoryLimits limits_;
  std::unique_ptr<core::Core> core_;
  core::Run* run_;  // its only one, not live
  event::StepNumbers step_numbers_;
  std::vector<Counts> counts_;
  std::vector<StepTotals> totals_;
  std::map<Place, WorkStory> stories_;
  Kept kept_;
  std::vector<Kept> kept_of_steps_;
  std::vector<Event> notes_;
  std::vector<Standstill> standstills_;
  std::uint64_t recoveries_ = 0;
  std::string cancel_words_;
  WallTime last_time_ = {};  // of the event before
  bool is_telling_ = true;
};

}  // namespace reprise::observe
