// What a person sees in a terminal while a run goes on: lines that stay, for what is over, and below them a few that change.
//
//   ✔ download completed after 3 attempts (1.8s) ↻ recovered after 2 retries
//   ● nightly · 1 of 4 steps · 6.2s · 3 retries
//   ● fetch   ████████░░░░░░░░ 57/120 · 9.1/s · ETA 7s · 4 running · 2 retrying · 0 failed
//     ↻ fetch[57] attempt 3/5 · HTTP 429 · retry in 2.1s (Retry-After)
//   ○ then: report, notify
//
// It knows nothing of terminals: events and the time come in, lines go out. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <reprise/event.hpp>

#include "core/plan.hpp"
#include "observe/live/plain_printer.hpp"
#include "observe/live/rate.hpp"
#include "observe/report/run_report.hpp"
#include "observe/styled.hpp"

namespace reprise::observe {

class LiveView {
 public:
  LiveView(std::shared_ptr<const core::Plan> plan, const Symbols& symbols, LabelOf labels = {});

  void recall(const Event& event);  // it happened before: it counts, but nothing is said about it
  void add(const Event& event);

  // What has become certain since the last call. These lines are as long as they are.
  std::vector<StyledLine> take_lines();
  // How it stands, in at most so many rows and columns; nothing when the run has ended.
  std::vector<StyledLine> frame(WallTime now, std::size_t columns, std::size_t rows);

 private:
  struct Wait {
    const AttemptStory* after;  // the attempt that failed
    WallTime due;
  };
  struct Live {  // beside what the projection knows about a step
    core::StepStatus told = core::StepStatus::pending;
    std::string progress = {};  // the last progress text of the attempt that runs
    std::uint32_t failures_told = 0;
    Rate rate = {};
  };

  const RunProjection& run() const { return reporter_.projection(); }
  void count(const Event& event);
  void tell(const Event& event);
  void tell_item(const Event& event, std::uint32_t step);
  void tell_end_of_step(const Event& event, std::uint32_t step);
  std::string attempt_words(std::uint32_t step, std::uint64_t attempt) const;
  std::string name_of_step(std::uint32_t step) const;
  std::string name_of_item(std::uint32_t step, std::uint32_t item) const;
  StyledLine header(const RunReport& report, WallTime now) const;
  StyledLine step_line(std::uint32_t step, const StepReport& report, WallTime now, std::size_t name_columns,
                       std::size_t columns);
  StyledLine map_line(std::uint32_t step, const StepReport& report, WallTime now, std::size_t columns);
  StyledLine wait_line(const Wait& wait, std::uint32_t step, WallTime now, std::size_t columns) const;
  StyledLine next_line(const std::vector<std::uint32_t>& steps) const;
  std::optional<Wait> wait_of(const Place& place, const WorkStory& story) const;
  std::vector<std::pair<Place, Wait>> interesting_waits(std::size_t count) const;

  std::shared_ptr<const core::Plan> plan_;
  Symbols symbols_;
  RunReporter reporter_;
  PlainPrinter printer_;
  LabelOf labels_;
  std::vector<Live> steps_;
  std::vector<StyledLine> lines_;
};

}  // namespace reprise::observe
