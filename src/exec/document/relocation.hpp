// A folder that was moved since runs began in it: everything below it has moved along.
//
// It holds for the process that was told so (`resume --directory`) and is not recorded. Thread safety: a plain value.
#pragma once

#include <string>

namespace reprise::exec {

struct Relocation {
  std::string from;  // absolute, as recorded
  std::string to;    // absolute
};

}  // namespace reprise::exec
