// reprise policy check: is the document valid, and would a careful reviewer say something about it?
#include "cli/io.hpp"

#include <fmt/format.h>

namespace reprise::cli {

int policy_check(const PolicyCheckOptions& options) {
  auto input = read_input(options.policy.file);
  if (!input) return input.error();
  const std::string name = input->name;
  const auto read = read_policy(std::move(input->text), options.policy.from, name);
  const std::vector<Diagnostic>& diagnostics = read ? read->warnings : read.error();
  if (options.json) {
    print(fmt::format("{{\"valid\":{},\"diagnostics\":{}}}\n", read.has_value(), render_json(diagnostics)));
    return read ? exit_done : exit_invalid;
  }
  print_error(render(diagnostics));
  if (!read) return exit_invalid;
  print_error(fmt::format("{}: a valid {} policy{}\n", name, name_of(options.policy.from),
                          diagnostics.empty()
                              ? ""
                              : fmt::format(", {} warning{}", diagnostics.size(), diagnostics.size() == 1 ? "" : "s")));
  return exit_done;
}

}  // namespace reprise::cli
