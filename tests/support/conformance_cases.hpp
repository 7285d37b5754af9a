// The cases of tests/conformance/*.jsonl, as tests/conformance/README.md describes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reprise::testing_support {

struct ConformanceCase {
  std::string id;
  std::string dialect;
  std::string kind;  // valid, invalid, show, schedule, decide, classify
  std::string title;
  std::string document;
  std::string input;   // JSON
  std::string expect;  // JSON
};

// `name` is the file's name without .jsonl. Throws when the file is missing or a line of it is no case.
std::vector<ConformanceCase> conformance_cases(std::string_view name);

}  // namespace reprise::testing_support
