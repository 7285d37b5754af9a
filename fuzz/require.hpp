// What must hold, whatever the input: a sentence on standard error and an abort, which libFuzzer reports with the input.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace reprise::fuzz {

inline void require(bool holds, std::string_view sentence) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
  std::abort();
}

// The same with the text that shows it.
inline void require(bool holds, std::string_view sentence, std::string_view shown) {
  if (!holds) std::fprintf(stderr, "%.*s\n", static_cast<int>(shown.size()), shown.data());
  require(holds, sentence);
}

}  // namespace reprise::fuzz
