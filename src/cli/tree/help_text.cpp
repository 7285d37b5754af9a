#include "cli/tree/help_text.hpp"

#include <fmt/format.h>

namespace reprise::cli {

HelpText::HelpText() {
  column_width(34);
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "COMMAND");
  label("SUBCOMMANDS", "COMMAND");
}

std::string HelpText::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return make_description(app) + make_usage(app, std::move(name)) + make_subcommands(app, mode) +
         make_positionals(app) + make_groups(app, mode) + "\n" + make_footer(app);
}

std::string HelpText::make_subcommands(const CLI::App* app, CLI::AppFormatMode) const {
  std::string text;
  std::string group;
  for (const CLI::App* const command : app->get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group() != group) text += fmt::format("\n{}:\n", command->get_group());
    group = command->get_group();
    text += make_subcommand(command);
  }
  return text;
}

std::string HelpText::make_subcommand(const CLI::App* command) const {
  return fmt::format("  {:<14}{}\n", command->get_name(),
                     command->get_description());  // names are short, unlike options
}

}  // namespace reprise::cli
