// How --help looks: commands by group, before arguments and options.
#pragma once

#include <CLI/CLI.hpp>

namespace reprise::cli {

class HelpText : public CLI::Formatter {
 public:
  HelpText();

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
  std::string make_subcommand(const CLI::App* command) const override;
};

}  // namespace reprise::cli
