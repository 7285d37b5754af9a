// Where references to secrets stand in a sealed text: between two marks, which no JSON text has.
//
// Thread safety: functions of their arguments.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace reprise::exec {

inline constexpr char reference_mark = '\x1A';

// Gives each reference to `replace`, which appends what stands for it. False: it did so itself.
template <typename Replace>
bool replace_references(std::string_view sealed, std::string& out, const Replace& replace) {
  while (!sealed.empty()) {
    const std::size_t begin = std::min(sealed.find(reference_mark), sealed.size());
    out += sealed.substr(0, begin);
    if (begin == sealed.size()) return true;
    const std::size_t end = sealed.find(reference_mark, begin + 1);
    if (end == std::string_view::npos) return false;
    if (!replace(sealed.substr(begin + 1, end - begin - 1))) return false;
    sealed.remove_prefix(end + 1);
  }
  return true;
}

}  // namespace reprise::exec
