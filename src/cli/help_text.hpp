// How --help looks: commands by group before options, and options in the order in which they are needed.
#pragma once

#include <CLI/CLI.hpp>

namespace reprise::cli {

class HelpText : public CLI::Formatter {
 public:
  HelpText();

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_group(std::string group, bool is_positional, std::vector<const CLI::Option*> options) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace reprise::cli
