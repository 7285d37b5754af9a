#include "cli/run/this_machine.hpp"

#include "exec/http/http_features.hpp"

namespace reprise::cli {

std::vector<Diagnostic> missing_here(const flow::FlowDocument& flow, const std::string& file, Severity severity) {
  if (!flow.first_request) return {};  // asking would load the library
  const exec::HttpFeatures http = exec::http_features();
  if (http.problem.empty()) return {};
  return {{.severity = severity,
           .file = file,
           .line = flow.first_request->line,
           .column = flow.first_request->column,
           .message = http.problem,
           .help = http.remedy}};
}

}  // namespace reprise::cli
