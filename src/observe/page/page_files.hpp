// The files in page/, embedded when the project is built (cmake/EmbedFiles.cmake writes the definitions).
#pragma once

#include <string_view>

namespace reprise::observe::page {

extern const std::string_view skeleton;  // page.html, with a marker for each of the other parts
extern const std::string_view style;     // page.css
extern const std::string_view script;    // all *.js, one after the other

}  // namespace reprise::observe::page
