#include "cli/tree/app.hpp"

#include <cstdio>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cli/io.hpp"
#include "cli/tree/command_line.hpp"
#include "cli/tree/completion.hpp"
#include "cli/tree/look_app.hpp"
#include "cli/tree/man.hpp"
#include "cli/tree/options.hpp"
#include "cli/tree/policy_app.hpp"
#include "cli/tree/run_app.hpp"
#include "event/event_schema.hpp"
#include "flow/reader/reader.hpp"

namespace reprise::cli {
namespace {

constexpr const char* version_line = "reprise " REPRISE_VERSION;

// Everything the commands need, alive as long as the tree refers to it.
struct Options {
  PolicyAppOptions policy;
  LookOptions look;
  RunAppOptions run;
  ManOptions man;
  std::string schema = "policy";
  std::string shell;
};

CommandShape schema_command(std::string& what) {
  CommandShape command = command_named("schema", "JSON Schema for editors and readers of events");
  add_word_argument(command, "WHAT", {"flow", "policy", "event"}, what, "of what (default: policy)",
                    Presence::optional);
  set_footer(command,
             "  reprise schema flow > flow.schema.json\n"
             "  reprise schema event > event.schema.json");
  command.run = [&what] {
    print(what == "flow" ? flow::flow_schema() : what == "event" ? event::event_schema() : policy_schema());
    return exit_done;
  };
  return command;
}

CommandShape completion_command(std::string& shell) {
  CommandShape command = command_named("completion", "A completion script for your shell");
  add_word_argument(command, "SHELL", {"bash", "zsh", "fish"}, shell, "which one you use");
  set_footer(command,
             "  reprise completion bash > ~/.local/share/bash-completion/completions/reprise\n"
             "  reprise completion zsh > ~/.zfunc/_reprise\n"
             "  reprise completion fish > ~/.config/fish/completions/reprise.fish");
  command.run = [&shell] {
    print(completion_script(command_tree(), shell));
    return exit_done;
  };
  return command;
}

CommandShape man_command(ManOptions& options) {
  CommandShape command = command_named("man", "A manual page, or all of them");
  add_arguments(command, "COMMAND", options.command, " ",
                "which command's page: run, dead-letters list (default: reprise)", Presence::optional);
  add_option(command, "--all", options.folder, "DIR", "writes the pages of all commands there");
  set_footer(command,
             "To read one: reprise man run | man -l -\n\n"
             "  reprise man run > reprise-run.1\n"
             "  reprise man --all ~/.local/share/man/man1");
  command.run = [&options] { return man(options, command_tree()); };
  return command;
}

CommandShape version_command() {
  CommandShape command = command_named("version", "Which version this is");
  set_footer(command, "  reprise version");
  command.run = [] {
    print(fmt::format("{}\n", version_line));
    return exit_done;
  };
  return command;
}

CommandShape tree_with(Options& options) {
  CommandShape root = command_named("reprise", "Runs unreliable work until it is done, and explains every retry.");
  add_look_commands(root, options.look);
  add_run_commands(root, options.run, options.look);
  add_policy_commands(root, options.policy);
  root.commands.push_back(schema_command(options.schema));
  root.commands.push_back(completion_command(options.shell));
  root.commands.push_back(man_command(options.man));
  root.commands.push_back(version_command());
  CommandShape::Option version;
  version.names = {"--version"};
  version.description = "which version this is";
  root.options.push_back(std::move(version));
  set_footer(
      root,
      "Exit codes: 0 done, 1 failed for good, 2 bad usage, 3 invalid document, 4 no such run, 5 trouble with the "
      "store,\n"
      "124 a deadline passed, 129, 130 and 143 interrupted.\n\n"
      "Documents: reprise COMMAND --help, man reprise-COMMAND; docs/tutorial.md of the source is a tutorial.\n\n"
      "Try these first:\n"
      "  reprise exec -- sh -c 'test $REPRISE_ATTEMPT = 2'\n"
      "  reprise why @last\n"
      "  reprise run flow.yaml --dry-run");
  complete_tree(root);
  return root;
}

// An answer that could not be written is no answer.
int finished(int code, bool is_exec) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  const int usage = usage_error("cannot write to standard output");
  return is_exec ? exit_exec_usage : usage;
}

}  // namespace

CommandShape command_tree() {
  const auto options = std::make_shared<Options>();
  CommandShape tree = tree_with(*options);
  tree.run = [options] { return exit_usage; };  // keeps what the tree refers to
  return tree;
}

int run(std::span<const char* const> arguments) {
  Options options;
  const CommandShape tree = tree_with(options);
  const CommandLine line = read_command_line(tree, version_line, arguments);
  if (!line.error.empty()) {
    print_error(line.error);
    return line.is_exec ? exit_exec_usage : exit_usage;
  }
  print(line.out);
  try {
    return finished(line.run ? line.run() : exit_done, line.is_exec);
  } catch (const std::exception& error) {
    return usage_error(fmt::format("failed unexpectedly: {}", error.what()));
  }
}

}  // namespace reprise::cli
