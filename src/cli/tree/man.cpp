#include "cli/tree/man.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/tree/man_page.hpp"
#include "text/nearest.hpp"

namespace reprise::cli {
namespace {

int write_pages(const CommandShape& root, const CommandShape& command, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / (page_name(command) + ".1");
  if (const auto written = write_file(path.string(), man_page(root, command)); !written) return written.error();
  for (const CommandShape& child : command.commands) {
    if (const int code = write_pages(root, child, folder); code != exit_done) return code;
  }
  return exit_done;
}

int unknown(const CommandShape& command, const std::string& word) {
  std::vector<std::string_view> names;
  for (const CommandShape& child : command.commands) names.push_back(child.name);
  return usage_error(fmt::format("{} has no command {}{}", command.path, word, text::did_you_mean(word, names)));
}

}  // namespace

int man(const ManOptions& options, const CommandShape& root) {
  if (!options.folder.empty()) {
    if (!options.command.empty()) return usage_error("man: name a command or write --all DIR, not both");
    std::error_code problem;
    std::filesystem::create_directories(options.folder, problem);
    if (problem) return usage_error(fmt::format("cannot make {}: {}", options.folder, problem.message()));
    return write_pages(root, root, options.folder);
  }
  const CommandShape* command = &root;
  for (const std::string& word : options.command) {
    const auto found = std::ranges::find(command->commands, word, &CommandShape::name);
    if (found == command->commands.end()) return unknown(*command, word);
    command = &*found;
  }
  print(man_page(root, *command));
  return exit_done;
}

}  // namespace reprise::cli
