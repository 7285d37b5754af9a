// Manual pages in roff, made from the tree of commands so that they cannot disagree with it.
//
//   man_page(tree, {"dead-letters", "list"})      // what reprise-dead-letters-list.1 holds
//
// Thread safety: functions of their arguments.
#pragma once

#include <string>
#include <string_view>

#include "cli/tree/command_shape.hpp"

namespace reprise::cli {

// "reprise policy check" has the page reprise-policy-check.
std::string page_name(const CommandShape& command);

// Section 1. `command` is `root` or one below it.
std::string man_page(const CommandShape& root, const CommandShape& command);

// One line as roff shows it unchanged: dashes and quotes that can be copied, nothing that is taken for a request.
std::string roff_text(std::string_view text);

}  // namespace reprise::cli
