// What went wrong in a run as annotations of a GitHub workflow, which shows them beside the file: ::error file=…,line=…,title=…::words
//
// GitHub keeps ten errors and ten warnings of a step, so there are never more. Thread safety: functions of their arguments.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "observe/report/run_report.hpp"

namespace reprise::observe {

struct AnnotatedFile {
  std::string path;                                         // empty = not a file
  std::map<std::string, std::uint32_t, std::less<>> lines;  // of its steps
};

// Errors for what failed for good, warnings for steps that succeeded only because they were tried again. One a line.
std::string github_annotations(const RunReport& report, const AnnotatedFile& file);

}  // namespace reprise::observe
