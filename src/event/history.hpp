// From records to the public Event: names for numbers, and everything that can be worked out from the events before.
//
// Worked out, not stored: is_retry, the failure and delay before a retry, used, lost and interrupted attempts, total_attempts, total_elapsed.
// record_of() is the way back, for those who are given events and want to know what they make of a run.
// Thread safety: one EventHistory per thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "event/record.hpp"

namespace reprise::event {

struct StepLabel {
  std::string name;
  std::string actor_type = {};
  std::vector<std::uint32_t> dependants = {};
  bool runs_finally = false;
};

using StepNumbers = std::map<std::string, std::uint32_t, std::less<>>;  // in the plan, by name

// As much of the record as the state of a run depends on: no payloads, nothing that a run has for itself. It looks into the event, which must
// live as long. std::nullopt: the run has no such step.
std::optional<Record> record_of(const Event& event, const StepNumbers& steps);

class EventHistory {
 public:
  EventHistory(RunId run, std::vector<StepLabel> steps);

  // Records must come in order, from the first of the run.
  Event add(const Record& record);

 private:
  struct Item {                        // what later events of the same work item need to know
    Time created = 0;                  // its first start; 0 = not seen
    std::unique_ptr<Failure> failure;  // its own last one, or else the last loss
    std::unique_ptr<Failure> loss;     // the attempt before this was lost
    std::int64_t delay = 0;
    std::uint64_t attempt = 0;  // the last that started
    std::uint64_t earlier = 0;  // before it was retried on request
    std::uint64_t lost = 0;
    std::uint64_t interrupted = 0;
    bool has_failed_itself = false;
    bool runs = false;
    bool is_reserved = false;  // and nothing has begun
  };
  bool is_retry(const Record& record, std::uint64_t attempt) const;
  void add_called(Event& event, const Record& record);
  void add_reserved(Event& event, const Record& record);
  void add_started(Event& event, const Record& record);
  void add_failed(Event& event, const Record& record);
  void add_retrying(Event& event, const Record& record);
  void add_interrupted(Event& event, const Record& record);
  void end_item(Event& event, const Record& record);
  void forget_visit(std::uint32_t step);
  void forget_items(std::uint32_t step);

  RunId run_;
  std::vector<StepLabel> steps_;
  Time created_ = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Item> items_;  // only those under way
};

}  // namespace reprise::event
