// Comments in JSON, as editors write it: // to the end of a line, and /* to */.
//
// Thread safety: a function of its argument.
#pragma once

#include <string>
#include <string_view>

namespace reprise::text {

// The text with blanks in place of its comments, so that every line and column stays what it was. Text that does not begin with { or [
// (comments aside) is YAML, has comments of its own, and comes back as it is.
std::string without_json_comments(std::string_view text);

}  // namespace reprise::text
