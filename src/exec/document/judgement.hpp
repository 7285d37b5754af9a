// What the end of a command or a request means: a result, or a failure with its class and the rule that found it.
//
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include <reprise/classify.hpp>
#include <reprise/failure.hpp>

#include "exec/document/read_file.hpp"
#include "exec/http/http_client.hpp"
#include "exec/process/process_runner.hpp"
#include "flow/flow.hpp"
#include "json/json_schema.hpp"

namespace reprise::exec {

using Judged = std::expected<std::string, Failure>;  // what it brought, or why not

// We could not do our part of the attempt: a thread cannot be made, memory is not there. The next attempt may find them.
Failure broken_off(std::string_view why);

struct Judge {
  const flow::FlowDocument& flow;  // its rules and error types
  const flow::Step& step;
  Duration timeout{0};          // that was given, for messages
  bool by_first_rules = false;  // of a run that 0.1.0 began: as that version judged

  Judged process(ProcessEnd&& end) const;
  Judged http(const flow::HttpCall& call, HttpEnd&& end, std::chrono::sys_seconds now) const;
  // The body that an asynchronous job was reported with.
  Judged webhook(std::string_view body) const;
  static bool holds_verdict(std::string_view body);  // {"success": …}, which a handler may give in its answer already
  // The output must be what `output:` says, and fit the schema; `name` is what the document calls it.
  std::expected<void, Failure> form(std::string_view output) const;
  std::expected<void, Failure> schema(std::string_view output, const json::JsonSchema& schema,
                                      const std::string& name) const;
  // A file that the document names could not be read; `what` it is: "schema", "flow".
  Failure unreadable(std::string_view what, const FileProblem& problem) const;
  Failure timed_out(std::string_view what) const;
  Failure canceled() const;
  Failure invalid(std::string message) const;  // an expression, a file: trying again would not help

 private:
  Failure classified(Failure failure, Evidence evidence) const;
  Failure not_started(const ProcessEnd& end) const;
  Failure exited(const ProcessEnd& end) const;
  Failure not_json(std::string_view output, const std::string& problem) const;
  Judged with_verdict(const ProcessEnd& end) const;
  static void add_curl(Failure& failure, Evidence& evidence, std::string_view written);
  Judged verdict(std::optional<json::Json> said, Failure otherwise) const;
};

}  // namespace reprise::exec
