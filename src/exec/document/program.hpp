// One run of a document in this process: its flow, its parameters, and the secrets it may see.
//
// Everything a run needs to go on stands in the input it was submitted with (RunInput), so that it can be resumed without the file it came
// from. `reprise exec` is a document of one step that nobody wrote.
//
// A secret is read when the run is loaded, and never stored: recorded_input() refers to it where it stands in a parameter, a name or the
// document, and load_program() puts it back. A flow inside of a flow knows the secrets of those around it, since they may come with its
// parameters: it does not see them by name, but none of them leaves it unmasked.
// Thread safety: immutable once loaded, shared freely.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <reprise/diagnostic.hpp>

#include "exec/document/read_file.hpp"
#include "exec/document/relocation.hpp"
#include "exec/kept_file.hpp"
#include "exec/secrets/secret_table.hpp"
#include "flow/flow.hpp"

namespace reprise::exec {

inline constexpr std::uint32_t current_rules = 2;

// What a run of a document is submitted with, as JSON.
struct RunInput {
  std::string file;       // what the document is called in messages
  std::string text;       // the document itself; empty = `exec`
  std::string directory;  // where its commands run, and what its paths are relative to; absolute
  json::Json params;
  std::uint32_t depth = 0;  // of sub-flows
  // Which rules it was begun with; older records do not say (0). 1: a command needs a verdict where its dialect wants one.
  // 2: several lines for the shell stop at the first that fails; a list in a command is its JSON; results are those of items that succeeded.
  std::uint32_t rules = current_rules;
  // Secrets that are known without reading the document: those of the flows around it, and those that `sealed` refers to. Files are absolute.
  std::vector<flow::Secret> secrets = {};
  std::vector<std::string> secret_values = {};  // of the first of them, for those who know them already; never stored
  std::string sealed =
      {};  // fields with secrets in them, as sealed JSON text; the same fields above are for people then

  std::optional<Relocation> moved = {};  // never stored; load_program() puts the directory right

  // exec
  std::vector<std::string> argv = {};
  std::string retry = {};                   // the policy as text ...
  Dialect retry_dialect = Dialect::native;  // ... of this dialect
  std::optional<Duration> timeout = {};     // of each attempt, when the policy does not say it
  std::string stdin_file = {};              // replayed to each attempt; empty = nothing
  std::optional<KeptFile> kept_stdin = {};  // what that file must be; older records do not say

  bool is_exec() const noexcept { return text.empty(); }
  bool stops_at_first_failing_line() const noexcept { return rules >= 2; }
  bool has_lists_as_json() const noexcept { return rules >= 2; }
  bool leaves_failed_results_out() const noexcept { return rules >= 2; }
};
std::string encode(const RunInput& input);
// Where its standard input stands now: a store may have been moved since. Empty = it has none.
std::string kept_stdin_path(const std::string& store_folder, const RunInput& input);
std::expected<RunInput, std::string> decode_run_input(std::string_view json);

inline constexpr std::string_view exec_step = "command";
inline constexpr std::string_view stdin_folder = "stdin";  // beside the store: what `exec` was given

struct Program {
  RunInput input;
  flow::FlowDocument flow;
  std::map<std::string, const flow::Step*, std::less<>> steps;  // also those that run finally
  json::Json params;
  json::Json secrets;                               // name → value
  json::Json env;                                   // name → value: ours
  std::vector<std::string> inherited;               // the same as NAME=value, for commands
  std::vector<flow::Secret> secret_sources;         // all: input.secrets, then those of the document
  std::vector<std::string> secret_values;           // in the same order
  std::shared_ptr<const SecretTable> secret_table;  // of these; nullptr = none has one
};

// The error is for people: what is wrong with the document, its parameters or its secrets. Secrets that stand in files are read by `read`,
// which may block; with without_files they are left out, which is enough for those who only look at the document.
std::expected<std::shared_ptr<const Program>, std::string> load_program(RunInput input,
                                                                        const ReadFile& read = read_regular_file);
// The same for one who has read the document already: `flow` is what read_flow() made of input.text under the name input.file.
std::expected<std::shared_ptr<const Program>, std::string> load_program(RunInput input, flow::FlowDocument flow,
                                                                        const ReadFile& read = read_regular_file);
FileContent without_files(const std::string& path, std::size_t bytes_max);

// What the run is submitted with: its input without secrets.
RunInput recorded_input(const Program& program);

// For messages before there is a run. Those in files are left out: reading a file may take its time, and a document may name any.
std::shared_ptr<const SecretTable> secrets_in_environment(const flow::FlowDocument& flow);

// One for each secret in the environment that is so short that masking it hides more than the secret.
std::vector<Diagnostic> warnings_about_secrets(const flow::FlowDocument& flow, std::string_view file);

}  // namespace reprise::exec
