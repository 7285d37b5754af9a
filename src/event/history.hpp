// From records to the public Event: names for numbers, and everything that can be worked out from the events before.
//
// Worked out, not stored: is_retry, the failure and delay before a retry, total_attempts, total_elapsed.
// Thread safety: one History per thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "event/record.hpp"

namespace reprise::event {

class History {
 public:
  History(RunId run, std::vector<std::string> step_names);

  // Records must come in order, from the first of the run.
  Event add(const Record& record);

 private:
  struct Item {        // what later events of the same work item need to know
    Time created = 0;  // its first start
    std::unique_ptr<Failure> failure;
    std::int64_t delay = 0;
  };
  void add_started(Event& event, const Record& record);
  void add_failed(Event& event, const Record& record);
  void add_retrying(Event& event, const Record& record);
  void end_item(Event& event, const Record& record);

  RunId run_;
  std::vector<std::string> steps_;
  Time created_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Item> items_;  // only those under way
};

}  // namespace reprise::event
