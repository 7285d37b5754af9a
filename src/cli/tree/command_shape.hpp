// The tree of commands as plain values: what the command line is read by, and what help, completions, manual pages and tests know about a command.
//
//   CommandShape show = command_named("show", "How a run stands, step by step");
//   add_run_name(show, options.run);                               // cli/options.hpp
//   set_footer(show, "  reprise show @last");
//   show.run = [&options] { return show_run(options); };
//   root.commands.push_back(std::move(show));
//
// command_line.cpp alone knows the library that parses. What `take` and `run` write to must live as long as the tree. Thread safety: plain values.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace reprise::cli {

struct CommandShape {
  // Gets one word of the command line. The answer is what is wrong with it; empty: nothing.
  using Take = std::function<std::string(const std::string&)>;

  struct Option {
    std::vector<std::string> names;  // -h, --help
    std::string value;               // what stands for its value in help: URL, text|json; empty for a flag
    std::string description;
    std::vector<std::string> choices;  // empty: a free value, or none
    bool takes_value = false;
    bool may_repeat = false;
    bool is_list = false;  // a,b,c are three values
    Take take = {};        // of a flag: gets an empty word
  };
  struct Argument {
    std::string name;  // FILE
    std::string description;
    std::vector<std::string> choices;  // empty: a free value
    bool is_required = false;
    bool may_repeat = false;
    std::string more = {};  // what stands behind its name in help: ..., ARG...
    Take take = {};
  };
  std::string name;
  std::string path;  // with the commands above it: reprise policy check
  std::string group;
  std::string description;
  std::vector<Argument> arguments;
  std::vector<Option> options;        // its own first, then those that many commands have, --help last
  std::string footer;                 // the end of its help: notes and examples as they are laid out there
  std::string notes;                  // the part of it that is text, in paragraphs
  std::vector<std::string> examples;  // command lines
  std::vector<CommandShape> commands;
  std::function<int()> run;          // empty: one of its commands must be named
  bool ends_with_arguments = false;  // what follows the first argument is never an option: exec CMD -x

  bool has_option(const std::string& long_name) const;
  CommandShape& command(const std::string& name);  // which must be there
};

CommandShape command_named(std::string name, std::string description);

// Lines that are indented are examples, all others notes; a note that ends with a colon introduces examples.
void set_footer(CommandShape& command, std::string footer);

// Gives each command its path, its group, and --help; and puts commands and options in the order they have in help, completions and manual
// pages: commands by group and within it by use; a command's own options first, then --progress, --store, --format and --help. Once, when the
// tree is complete.
void complete_tree(CommandShape& root);

}  // namespace reprise::cli
