// reprise policy show: a policy in words, in the native form, as JSON fields, or in another dialect.
#include "cli/io.hpp"

#include <fmt/format.h>

namespace reprise::cli {
namespace {

std::string as_comments(const std::string& sentences) {
  std::string comments;
  std::size_t begin = 0;
  for (std::size_t end = sentences.find('\n'); end != std::string::npos; end = sentences.find('\n', begin)) {
    comments += "# " + sentences.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return comments;
}

// Everything the target cannot say is listed; without --lossy nothing else happens.
int show_in(Dialect to, const Policy& policy, const PolicyShowOptions& options, std::string_view before) {
  const TextFormat format = options.format == PolicyShowOptions::Format::json ? TextFormat::json : TextFormat::yaml;
  const WrittenPolicy written = write_policy(policy, to, format);
  if (!written.losses.empty()) {
    const std::string_view severity = options.lossy ? "warning" : "error";
    print_error(fmt::format("{}: {}: the {} dialect cannot say:\n",
                            options.policy.file == "-" ? "<stdin>" : options.policy.file, severity, name_of(to)));
    for (const std::string& loss : written.losses) print_error(fmt::format("  - {}\n", loss));
    if (!options.lossy) {
      print_error("  = use --lossy to write the rest\n");
      return exit_invalid;
    }
  }
  print(before);
  print(written.text);
  return exit_done;
}

}  // namespace

int policy_show(const PolicyShowOptions& options) {
  const auto policy = load_policy(options.policy, Warnings::hide);
  if (!policy) return policy.error();
  if (options.lossy && !options.to) return usage_error("policy show: --lossy needs --to");
  if (options.to) return show_in(*options.to, *policy, options, "");
  if (options.format == PolicyShowOptions::Format::json) {
    print(policy_json(*policy) + "\n");
    return exit_done;
  }
  // The native form is for reading here; what it cannot say of a foreign policy stands in the words above it.
  const bool words = options.format == PolicyShowOptions::Format::words;
  WrittenPolicy native = write_policy(*policy, Dialect::native, TextFormat::yaml);
  print(words ? as_comments(explain(*policy)) : "");
  for (const std::string& loss : native.losses) print(fmt::format("# the native form cannot say: {}\n", loss));
  print(native.text);
  return exit_done;
}

}  // namespace reprise::cli
