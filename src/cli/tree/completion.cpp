#include "cli/tree/completion.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace reprise::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string first_words(const CommandShape& command) {
  std::vector<std::string> words;
  if (!command.arguments.empty()) words = command.arguments.front().choices;
  for (const CommandShape& child : command.commands) words.push_back(child.name);
  for (const CommandShape::Option& option : command.options)
    words.insert(words.end(), option.names.begin(), option.names.end());
  return joined(words);
}

bool takes_file(const CommandShape& command) {
  return std::ranges::any_of(command.arguments, [](const auto& argument) { return argument.name == "FILE"; });
}

template <class Use>
void for_each_command(const CommandShape& command, const std::string& path, Use use) {
  use(path, command);
  for (const CommandShape& child : command.commands) for_each_command(child, path + " " + child.name, use);
}

// The words typed so far, without options, name the command; its words are offered, or files where it takes one.
std::string bash_script(const CommandShape& root) {
  std::string values;
  std::string words;
  for_each_command(root, root.name, [&](const std::string& path, const CommandShape& command) {
    for (const CommandShape::Option& option : command.options) {
      for (const std::string& name : option.names) {
        if (option.choices.empty()) continue;
        values += fmt::format("    \"{} {}\") COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n", path,
                              name, joined(option.choices));
      }
    }
    words += fmt::format("    \"{}\") COMPREPLY=($(compgen -W \"{}\"{} -- \"$current\")) ;;\n", path,
                         first_words(command), takes_file(command) ? " -f" : "");
  });
  return fmt::format(R"(# bash completion for reprise
_reprise() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" path="reprise" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
{}    esac
  done
  case "$path $previous" in
{}  esac
  case "$path" in
{}  esac
}}
complete -o filenames -F _reprise reprise
)",
                     [&] {
                       std::string cases;
                       for_each_command(root, root.name, [&](const std::string& path, const CommandShape&) {
                         if (path != root.name) cases += fmt::format("      \"{}\") path=\"{}\" ;;\n", path, path);
                       });
                       return cases;
                     }(),
                     values, words);
}

std::string zsh_script(const CommandShape& root) {
  return "#compdef reprise\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(root);
}

std::string fish_quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) safe += c == '\'' ? std::string{"\\'"} : std::string{c};
  return "'" + safe + "'";
}

std::string fish_script(const CommandShape& root) {
  std::string script = "# fish completion for reprise\ncomplete -c reprise -f\n";
  for_each_command(root, "", [&](const std::string& path, const CommandShape& command) {
    std::string condition = path.empty() ? "__fish_use_subcommand" : "";
    for (std::size_t begin = 1; begin < path.size();) {
      const std::size_t end = std::min(path.find(' ', begin), path.size());
      condition +=
          (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + path.substr(begin, end - begin));
      begin = end + 1;
    }
    if (!path.empty() && !command.commands.empty()) {
      std::vector<std::string> children;
      for (const CommandShape& child : command.commands) children.push_back(child.name);
      condition += "; and not __fish_seen_subcommand_from " + joined(children);
    }
    for (const CommandShape& child : command.commands) {
      script += fmt::format("complete -c reprise -n {} -a {} -d {}\n", fish_quoted(condition), child.name,
                            fish_quoted(child.description));
    }
    for (const CommandShape::Argument& argument : command.arguments) {
      for (const std::string& word : argument.choices)
        script += fmt::format("complete -c reprise -n {} -a {}\n", fish_quoted(condition), word);
    }
    for (const CommandShape::Option& option : command.options) {
      std::string flags;
      for (const std::string& name : option.names)
        flags += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const std::string values = option.choices.empty() ? "" : " -a " + fish_quoted(joined(option.choices));
      script += fmt::format("complete -c reprise -n {}{}{}{} -d {}\n", fish_quoted(condition), flags,
                            option.takes_value ? " -r" : "", values, fish_quoted(option.description));
    }
    if (takes_file(command)) script += fmt::format("complete -c reprise -n {} -F\n", fish_quoted(condition));
  });
  return script;
}

}  // namespace

std::string completion_script(const CommandShape& root, const std::string& shell) {
  if (shell == "fish") return fish_script(root);
  return shell == "zsh" ? zsh_script(root) : bash_script(root);
}

}  // namespace reprise::cli
