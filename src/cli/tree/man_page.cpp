#include "cli/tree/man_page.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

namespace reprise::cli {
namespace {

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", roff_text(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", roff_text(text)); }

// Text that roff fills, in lines of a length that people who read the source can bear.
std::string prose(std::string_view text) {
  constexpr std::size_t line_max = 78;
  std::string lines;
  std::string line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string word{text.substr(0, end)};
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (!line.empty() && roff_text(line + " " + word).size() > line_max)
      lines += roff_text(std::exchange(line, "")) + "\n";
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + roff_text(line) + "\n";
}

// A term and what it means.
std::string entry(const std::string& term, std::string_view meaning) {
  return fmt::format(".TP\n{}\n{}", term, prose(meaning));
}

std::string title_of(const CommandShape& command) {
  std::string title = page_name(command);
  std::ranges::transform(title, title.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return title;
}

// "Runs a flow to its end" → "runs a flow to its end", as a NAME section has it; "JSON Schema" stays.
std::string name_line(const CommandShape& command) {
  std::string words = command.description;
  const bool is_word = words.size() > 1 && !(words[1] >= 'A' && words[1] <= 'Z');
  if (is_word && words[0] >= 'A' && words[0] <= 'Z') words[0] = char(words[0] - 'A' + 'a');
  while (words.ends_with('.')) words.pop_back();
  return words;
}

std::string synopsis(const CommandShape& command) {
  std::string line = bold(command.path) + " [" + italic("OPTIONS") + "]";
  if (!command.commands.empty()) return line + " " + italic("COMMAND") + " ...\n";
  if (command.path == "reprise exec") line += " " + bold("--");
  for (const CommandShape::Argument& argument : command.arguments) {
    const std::string word = italic(argument.name) + (argument.may_repeat ? " ..." : "");
    line += argument.is_required ? " " + word : " [" + word + "]";
  }
  return line + "\n";
}

std::string commands_section(const CommandShape& command) {
  std::string text;
  std::string group;
  for (const CommandShape& child : command.commands) {
    if (child.group != group && command.path == "reprise") text += fmt::format(".SS {}\n", roff_text(child.group));
    group = child.group;
    text += entry(fmt::format("{}(1)", bold(page_name(child))), child.description);
  }
  return text;
}

std::string options_section(const CommandShape& command) {
  std::string text;
  for (const CommandShape::Argument& argument : command.arguments) {
    std::string meaning = argument.description;
    if (!argument.choices.empty()) meaning = fmt::format("{}: {}", fmt::join(argument.choices, ", "), meaning);
    text += entry(italic(argument.name), meaning);
  }
  for (const CommandShape::Option& option : command.options) {
    std::string term;
    for (const std::string& name : option.names) term += (term.empty() ? "" : ", ") + bold(name);
    if (!option.value.empty()) term += " " + (option.choices.empty() ? italic(option.value) : roff_text(option.value));
    text += entry(term, option.description);
  }
  return text;
}

std::string examples_section(const CommandShape& command) {
  std::string text;
  for (const std::string& example : command.examples)
    text += fmt::format("{}.nf\n.RS 4\n{}\n.RE\n.fi\n", text.empty() ? "" : ".PP\n", roff_text(example));
  return text;
}

bool runs_work(const CommandShape& command) { return command.has_option("--progress"); }

struct Meaning {
  std::string_view term;
  std::string_view text;
};

std::string entries(std::initializer_list<Meaning> meanings) {
  std::string text;
  for (const Meaning& meaning : meanings) text += entry(bold(meaning.term), meaning.text);
  return text;
}

constexpr Meaning done{"0", "Done."};
constexpr Meaning failed{"1", "The run failed for good."};
constexpr Meaning usage{"2", "Bad usage, a file that cannot be read, or an answer that cannot be written."};
constexpr Meaning invalid{"3", "The document is invalid."};
constexpr Meaning missing{"4", "No such run, step or item; no store there."};
constexpr Meaning trouble{"5",
                          "The store is locked, newer than this program, damaged or cannot be read; nothing was "
                          "touched."};
constexpr Meaning deadline{"124", "A deadline passed."};
constexpr Meaning interrupted{"129, 130, 143",
                              "Interrupted by SIGHUP, SIGINT or SIGTERM, or (143) cancelled by somebody else; reprise resume continues it."};

std::string exit_status(const CommandShape& command) {
  if (command.path == "reprise exec") {
    return "That of the command, 128 + n when signal n ended it; otherwise:\n" +
           entries({{"124", "The last attempt timed out, or a deadline passed."},
                    {"125", "Bad usage."},
                    {"126", "The command is not executable."},
                    {"127", "The command was not found."},
                    trouble,
                    interrupted});
  }
  if (command.path == "reprise") {
    return entries({done, failed, usage, invalid, missing, trouble, deadline, interrupted}) + ".PP\n" +
           bold("reprise exec") + " gives the exit status of its command: see " + bold("reprise-exec") + "(1).\n";
  }
  if (runs_work(command) || command.name == "wait")
    return entries({done, failed, usage, invalid, missing, trouble, deadline, interrupted});
  if (command.name == "doctor")
    return entries({done, {"1", "Something is missing; the output says what to do."}, usage});
  if (command.name == "replay")
    return entries({done, {"1", "What was replayed differs from what is recorded."}, usage, missing, trouble});
  if (command.has_option("--store")) return entries({done, usage, missing, trouble});
  if (command.group == "Write" || command.path.starts_with("reprise policy")) return entries({done, usage, invalid});
  return entries({done, usage});
}

std::string environment(const CommandShape& command) {
  const bool is_root = command.path == "reprise";
  std::string text;
  if (is_root || command.has_option("--store"))
    text += entries({{"REPRISE_STORE", "The store, when there is no --store."}});
  if (is_root || runs_work(command)) {
    text += entries({{"NO_COLOR, CI, TERM",
                      "With --progress auto, progress is plain lines when NO_COLOR or CI is set or TERM is dumb, and "
                      "whenever standard error is no terminal."}});
  }
  if (command.path == "reprise policy schedule")
    text += entries({{"LC_ALL, LC_CTYPE, LANG", "Bars are drawn in ASCII unless the first that is set names UTF-8."}});
  if (!is_root && !runs_work(command)) return text;
  return text + ".PP\nEach attempt of a command sees:\n" +
         entries({{"REPRISE_RUN_ID", "The id of the run."},
                  {"REPRISE_STEP, REPRISE_ITEM", "The step, and the number of the item, from 0."},
                  {"REPRISE_ATTEMPT, REPRISE_MAX_ATTEMPTS", "1, 2, 3 and so on; a number or unlimited."},
                  {"REPRISE_IDEMPOTENCY_KEY", "The same for every attempt of one work item."},
                  {"REPRISE_LAST_ERROR", "What was wrong with the attempt before, on one line; empty in the first."},
                  {"REPRISE_LAST_ERROR_FILE",
                   "A file with all that is kept of that failure: mistakes, failing tests, the ends of its output; empty "
                   "in the first attempt."},
                  {"REPRISE_PROGRESS_FILE", "With stall_timeout: writing to this file is a sign of life."}});
}

std::string files(const CommandShape& command) {
  if (command.path != "reprise" && !command.has_option("--store")) return "";
  return entries(
      {{".reprise/reprise.db", "The store, unless another was named: one SQLite file."},
       {".reprise/logs/RUN/STEP/ITEM.ATTEMPT.log", "What an attempt wrote; beside the store, wherever it is."},
       {".reprise/stdin/", "Standard input of reprise exec, until its run has succeeded or is removed."}});
}

void collect_related(const CommandShape& node, const CommandShape& command, std::vector<std::string>& pages) {
  const bool is_parent =
      std::ranges::any_of(node.commands, [&](const auto& child) { return child.path == command.path; });
  if (is_parent) {
    pages.push_back(page_name(node));
    for (const CommandShape& sibling : node.commands) {
      if (sibling.group == command.group && sibling.path != command.path) pages.push_back(page_name(sibling));
    }
  }
  for (const CommandShape& child : node.commands) collect_related(child, command, pages);
}

std::string see_also(const CommandShape& root, const CommandShape& command) {
  std::vector<std::string> pages;
  collect_related(root, command, pages);
  for (const CommandShape& child : command.commands) pages.push_back(page_name(child));
  std::string text;
  for (const std::string& page : pages) text += (text.empty() ? "" : ",\n") + bold(page) + "(1)";
  return text + "\n";
}

std::string section(std::string_view title, const std::string& content) {
  return content.empty() ? "" : fmt::format(".SH {}\n{}", title, content);
}

// Paragraphs about exit codes are left out: they have a section of their own.
std::string description(const CommandShape& command) {
  std::string text = command.description;
  if (!text.ends_with('.') && !text.ends_with('?')) text += ".";
  text = prose(text);
  for (std::string_view rest = command.notes; !rest.empty();) {
    const std::size_t end = std::min(rest.find("\n\n"), rest.size());
    if (!rest.starts_with("Exit code")) text += ".PP\n" + prose(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return text;
}

}  // namespace

std::string roff_text(std::string_view text) {
  std::string safe;
  if (text.starts_with('.') || text.starts_with('\'')) safe = "\\&";  // else it would be a request
  for (const char c : text) {
    switch (c) {
      case '\\':
        safe += "\\e";
        break;
      case '-':
        safe += "\\-";
        break;
      case '\'':
        safe += "\\(aq";
        break;
      case '`':
        safe += "\\(ga";
        break;
      case '^':
        safe += "\\(ha";
        break;
      case '~':
        safe += "\\(ti";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string page_name(const CommandShape& command) {
  std::string name = command.path;
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string man_page(const CommandShape& root, const CommandShape& command) {
  return fmt::format(".TH {} 1 {} \"reprise {}\" \"Reprise\"\n", roff_text(title_of(command)), REPRISE_DATE,
                     REPRISE_VERSION) +
         section("NAME", fmt::format("{} \\-\n{}", roff_text(page_name(command)), prose(name_line(command)))) +
         section("SYNOPSIS", synopsis(command)) + section("DESCRIPTION", description(command)) +
         section("COMMANDS", commands_section(command)) + section("OPTIONS", options_section(command)) +
         section("EXAMPLES", examples_section(command)) + section("EXIT STATUS", exit_status(command)) +
         section("ENVIRONMENT", environment(command)) + section("FILES", files(command)) +
         section("SEE ALSO", see_also(root, command));
}

}  // namespace reprise::cli
