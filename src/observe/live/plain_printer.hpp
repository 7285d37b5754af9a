// Events as lines for people in plain mode: one line each, no escape codes, no carriage returns.
//
//   12:00:03Z fetch[57] attempt 2/5 failed: HTTP 429 (transient, throttled); retry in 2.1s
//
// Thread safety: one thread at a time, as far as the lookup allows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <reprise/event.hpp>

#include "core/plan.hpp"
#include "observe/words.hpp"

namespace reprise::observe {

struct PrintedStep {
  std::optional<std::uint64_t> max_attempts = {};
  bool has_items = false;  // work of it is named fetch[57] instead of fetch
};
using StepLookup = std::function<PrintedStep(std::string_view step)>;
// `has_given_items`: the first step is a task that was submitted with items, which its plan does not tell.
StepLookup steps_of(const core::Plan& plan, bool has_given_items = false);

class PlainPrinter {
 public:
  explicit PlainPrinter(StepLookup steps, LabelOf labels = {}) : steps_{std::move(steps)}, labels_{std::move(labels)} {}

  // Without a line end. Empty: nothing to say, because the next event says it (a failure before its wait, for example).
  std::string line(const Event& event) const;
  // The same without the time and the name of the work.
  std::string words(const Event& event) const;

 private:
  std::string attempt(const Event& event, std::uint64_t number) const;
  std::string retrying(const Event& event) const;
  std::string failed(const Event& event) const;

  StepLookup steps_;
  LabelOf labels_;
};

}  // namespace reprise::observe
