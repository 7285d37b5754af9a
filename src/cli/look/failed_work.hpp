// What has failed in a run, item by item, and which of it somebody means: by place (fetch, fetch[17,20-30]), by filter, or all of it.
//
// Thread safety: one thread.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "cli/look/looking.hpp"
#include "index/filter.hpp"
#include "observe/report/run_report.hpp"
#include "runtime/run_service.hpp"

namespace reprise::cli {

struct FailedItem {
  observe::TroubledItem trouble;
  std::string fingerprint;  // hexadecimal; what failures with the same cause have in common
};

struct FailedWork {
  observe::RunReport report;      // without its troubled items
  std::vector<FailedItem> items;  // by step and item: failed, whether kept as a dead letter or not
};
std::expected<FailedWork, Error> failed_work_of(Looked& looked);

// FILTER words, each argument holding one or several. The error is an exit code; the message has been written already.
std::expected<index::Filter, int> filter_in(const std::vector<std::string>& words);

// STEP, STEP[3] or STEP[17,20-30].
std::expected<runtime::StepItems, Error> parse_work_places(std::string_view text);

// Those that stand at one of the places (none = everywhere) and match the filter.
std::vector<FailedItem> those_meant(const FailedWork& work, const std::vector<runtime::StepItems>& places,
                                    const index::Filter& filter);

// To be asked of the engine.
runtime::WorkChoice choice_of(const observe::RunReport& report, const std::vector<FailedItem>& items);

}  // namespace reprise::cli
