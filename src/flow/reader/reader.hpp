// Flow documents: text → FlowDocument, with every mistake in one pass. docs/reference/flow.md describes them.
//
// Thread safety: pure functions. No I/O: files a document refers to are looked at when a step runs.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include <reprise/diagnostic.hpp>

#include "flow/flow.hpp"

namespace reprise::flow {

struct ReadFlow {
  FlowDocument flow;
  std::vector<Diagnostic> warnings;
};

// `name` is what diagnostics call the text. The dialect is told by the keys, or by `dialect:` at the top.
std::expected<ReadFlow, std::vector<Diagnostic>> read_flow(std::string text, std::string name);

// The values of the parameters for one run: what was given, checked against the flow's own list, and the defaults.
// Each mistake is one sentence.
std::expected<Json, std::vector<std::string>> bind_params(const FlowDocument& flow, const Json& given);

// `--set key=value`: the value as the parameter's type wants it (JSON where it is no text).
std::expected<Json, std::string> param_from_text(const FlowDocument& flow, const std::string& key,
                                                 const std::string& value);

// JSON Schema (draft-07) for editors.
std::string flow_schema();

}  // namespace reprise::flow
