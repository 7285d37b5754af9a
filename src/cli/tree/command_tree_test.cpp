// The tree of commands as a whole: its order, its examples, and that manual pages and the reference leave nothing out.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "cli/tree/app.hpp"
#include "cli/tree/man_page.hpp"

namespace reprise::cli {
namespace {

void for_each_command(const CommandShape& command, const std::function<void(const CommandShape&)>& use) {
  use(command);
  for (const CommandShape& child : command.commands) for_each_command(child, use);
}

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::ostringstream content;
  content << file.rdbuf();
  EXPECT_FALSE(content.str().empty()) << path;
  return content.str();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CliTree, GroupsCommandsAsANewcomerNeedsThem) {
  const CommandShape tree = command_tree();
  std::vector<std::string> groups;
  std::string order;
  for (const CommandShape& command : tree.commands) {
    if (groups.empty() || groups.back() != command.group) groups.push_back(command.group);
    order += command.name + " ";
  }
  EXPECT_EQ(groups, (std::vector<std::string>{"Run", "Look", "Write", "Other"}));
  EXPECT_TRUE(
      order.starts_with("run exec map resume retry cancel pause signal wait rm "
                        "runs show events logs why failures dead-letters replay "
                        "validate policy classify schema "))
      << order;
}

TEST(CliTree, CommonOptionsComeLast) {
  const std::vector<std::string> last{"--progress", "--store", "--format", "--version", "--help"};
  for_each_command(command_tree(), [&](const CommandShape& command) {
    std::size_t highest = 0;
    for (const CommandShape::Option& option : command.options) {
      const auto found = std::ranges::find(last, option.names.back());
      const std::size_t rank = found == last.end() ? 0 : static_cast<std::size_t>(found - last.begin()) + 1;
      EXPECT_GE(rank, highest) << command.path << " " << option.names.back();
      highest = std::max(highest, rank);
    }
    EXPECT_EQ(command.options.back().names.back(), "--help") << command.path;
  });
}

TEST(CliTree, EveryCommandHasAnExampleOfItself) {
  std::size_t seen = 0;
  for_each_command(command_tree(), [&](const CommandShape& command) {
    ++seen;
    ASSERT_FALSE(command.examples.empty()) << command.path;
    const auto is_of_it = [&](const std::string& example) { return has(example, command.path); };
    EXPECT_TRUE(std::ranges::any_of(command.examples, is_of_it)) << command.path;
    EXPECT_FALSE(command.description.empty()) << command.path;
    for (const CommandShape::Option& option : command.options) EXPECT_FALSE(option.description.empty()) << command.path;
  });
  EXPECT_GE(seen, 30U);
}

TEST(CliManPages, HaveEveryArgumentOptionCommandAndExample) {
  const CommandShape tree = command_tree();
  for_each_command(tree, [&](const CommandShape& command) {
    const std::string page = man_page(tree, command);
    for (const char* title : {"NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO"})
      EXPECT_TRUE(has(page, std::string{"\n.SH "} + title + "\n")) << command.path << " " << title;
    for (const CommandShape::Argument& argument : command.arguments)
      EXPECT_TRUE(has(page, "\\fI" + roff_text(argument.name) + "\\fR")) << command.path << " " << argument.name;
    for (const CommandShape::Option& option : command.options) {
      for (const std::string& name : option.names)
        EXPECT_TRUE(has(page, "\\fB" + roff_text(name) + "\\fR")) << command.path << " " << name;
    }
    for (const CommandShape& child : command.commands)
      EXPECT_TRUE(has(page, "\\fB" + roff_text(page_name(child)) + "\\fR(1)")) << child.path;
    for (const std::string& example : command.examples)
      EXPECT_TRUE(has(page, "\n" + roff_text(example) + "\n")) << example;
    EXPECT_EQ(has(page, "REPRISE_STORE"), command.path == "reprise" || command.has_option("--store")) << command.path;
    EXPECT_EQ(has(page, "REPRISE_RUN_ID"), command.path == "reprise" || command.has_option("--progress"))
        << command.path;
  });
}

TEST(CliManPages, ShowTextUnchanged) {
  EXPECT_EQ(roff_text("a-b \\n 'c' `d`"), "a\\-b \\en \\(aqc\\(aq \\(gad\\(ga");
  EXPECT_EQ(roff_text(".TH x"), "\\&.TH x");
  EXPECT_EQ(roff_text("'quoted"), "\\&\\(aqquoted");
  EXPECT_EQ(roff_text("~/x^2"), "\\(ti/x\\(ha2");
}

// docs/reference/cli.md has a part for each command, and names each of its options there.
TEST(CliReference, LeavesNothingOut) {
  const std::string reference = content_of(REPRISE_CLI_REFERENCE);
  for_each_command(command_tree(), [&](const CommandShape& command) {
    if (command.commands.empty() || command.path == "reprise") {
      const std::string title = "\n## " + command.path + "\n";
      const std::size_t begin = command.path == "reprise" ? 0 : reference.find(title);
      ASSERT_NE(begin, std::string::npos) << command.path << " has no part of its own";
      const std::string part = reference.substr(begin, reference.find("\n## ", begin + 1) - begin);
      for (const CommandShape::Option& option : command.options) {
        const std::string& name = option.names.back();
        if (name == "--help" && command.path != "reprise") continue;  // said once for all
        EXPECT_TRUE(has(part, "`" + name)) << command.path << " " << name;
        for (const std::string& choice : option.choices)
          EXPECT_TRUE(has(part, choice)) << command.path << " " << name << " " << choice;
      }
      for (const CommandShape::Argument& argument : command.arguments)
        EXPECT_TRUE(has(part, argument.name)) << command.path << " " << argument.name;
    }
  });
}

// And nothing that is not there: a part or an option that was renamed.
TEST(CliReference, SaysNothingThatIsNotThere) {
  std::set<std::string> paths;
  std::set<std::string> names;
  for_each_command(command_tree(), [&](const CommandShape& command) {
    paths.insert(command.path);
    for (const CommandShape::Option& option : command.options) names.insert(option.names.begin(), option.names.end());
  });
  std::istringstream lines{content_of(REPRISE_CLI_REFERENCE)};
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(!line.starts_with("## reprise") || paths.contains(line.substr(3))) << line;
    for (std::size_t at = line.find("`--"); at != std::string::npos; at = line.find("`--", at + 1)) {
      const std::string name = line.substr(at + 1, line.find_first_of("` =|", at + 1) - at - 1);
      EXPECT_TRUE(names.contains(name)) << name << " in: " << line;
    }
  }
}

}  // namespace
}  // namespace reprise::cli
