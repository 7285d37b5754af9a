// reprise validate: is a flow document valid, what dialect is it, and what does each step's policy mean?
#include <fmt/format.h>
#include <reprise/dialect.hpp>

#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/run/flow_words.hpp"
#include "cli/run/run_commands.hpp"
#include "cli/run/this_machine.hpp"
#include "exec/document/program.hpp"
#include "flow/reader/reader.hpp"
#include "text/utf8.hpp"
#include "text/value.hpp"

namespace reprise::cli {
namespace {

text::Value diagnostic_value(const Diagnostic& diagnostic) {
  text::Value value = text::Value::map();
  value.set("severity", diagnostic.severity == Severity::error ? "error" : "warning");
  value.set("file", diagnostic.file);
  value.set("line", std::int64_t{diagnostic.line});
  value.set("column", std::int64_t{diagnostic.column});
  value.set("message", diagnostic.message);
  if (!diagnostic.help.empty()) value.set("help", diagnostic.help);
  return value;
}

void print_result(const std::string& file, bool is_valid, const std::vector<Diagnostic>& diagnostics) {
  text::Value value = text::Value::map();
  value.set("file", file);
  value.set("valid", is_valid);
  text::Value list = text::Value::list();
  for (const Diagnostic& diagnostic : diagnostics) list.add(diagnostic_value(diagnostic));
  value.set("diagnostics", std::move(list));
  print(text::to_json(value) + "\n");
}

int validate_one(const std::string& path, bool json) {
  const auto file = read_input(path);
  if (!file) return file.error();
  auto read = flow::read_flow(file->text, file->name);
  if (read) {
    for (const auto& found : {missing_here(read->flow, file->name, Severity::warning),
                              exec::warnings_about_secrets(read->flow, file->name)})
      read->warnings.insert(read->warnings.end(), found.begin(), found.end());
  }
  if (json) {
    print_result(file->name, read.has_value(), read ? read->warnings : read.error());
    return read ? exit_done : exit_invalid;
  }
  if (!read) {
    print_error(render(read.error()));
    return exit_invalid;
  }
  print_error(render(read->warnings));
  print(fmt::format("{}: valid, {}\n", text::safe_to_show(file->name), name_of(read->flow.dialect)) +
        plan_in_words(read->flow));
  return exit_done;
}

}  // namespace

int validate(const ValidateOptions& options) {
  int code = exit_done;
  for (const std::string& file : options.files) code = std::max(code, validate_one(file, options.json));
  return code;
}

}  // namespace reprise::cli
