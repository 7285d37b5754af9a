// A sealed text for people: what it takes to look at a run, and no more, so that programs without documents have it too.
#include "exec/secrets/mask.hpp"
#include "exec/secrets/references.hpp"
#include "exec/secrets/sealing.hpp"

namespace reprise::exec {

std::string shown(std::string_view sealed) {
  std::string out;
  replace_references(sealed, out, [&](std::string_view) {
    out += stars;
    return true;
  });
  return out;
}

}  // namespace reprise::exec
