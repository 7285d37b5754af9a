// A run as lines in a log file while it goes on: few enough to be read, whatever it works through.
//
// Steps get a line for everything that happens to them. Of a list, only trouble is told, and of that only the beginning: the rest shows in a
// heartbeat, which comes more seldom the longer it lasts:
//
//   12:00:13Z fetch 12000 of 100000 done (412/s, ETA 3m33s), 4 running, 35 retrying, 2 failed
//
// Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <reprise/event.hpp>

#include "core/plan.hpp"
#include "observe/live/plain_printer.hpp"
#include "observe/live/rate.hpp"
#include "observe/report/run_report.hpp"

namespace reprise::observe {

class PlainProgress {
 public:
  // `only_trouble`: nothing is said about work that just works.
  PlainProgress(std::shared_ptr<const core::Plan> plan, bool only_trouble, LabelOf labels = {});

  void recall(const Event& event);                   // it happened before: it counts, but nothing is said about it
  std::vector<std::string> add(const Event& event);  // the lines to write, without their ends
  std::vector<std::string> heartbeat(WallTime now);  // the same when time has passed

 private:
  struct Items {  // of a step with a list
    std::uint32_t told = 0;
    bool has_ended = false;
    Rate rate = {};
  };

  bool is_worth_a_line(const Event& event, bool has_items);
  bool is_told_of_items(const Event& event, std::uint32_t step, std::vector<std::string>& lines);
  void mind_the_clock(WallTime now);
  std::string end_of_map(const Event& event);
  std::string items_line(std::uint32_t step, const StepReport& report, WallTime now);
  std::string steps_line(const RunReport& report, WallTime now) const;

  std::shared_ptr<const core::Plan> plan_;
  bool only_trouble_;
  RunReporter reporter_;
  PlainPrinter printer_;
  std::vector<Items> items_;
  WallTime seen_ = {};   // the time when anything was looked at last
  WallTime began_ = {};  // when it was first looked at
  WallTime last_line_ = {};
  WallTime next_beat_ = {};
};

}  // namespace reprise::observe
