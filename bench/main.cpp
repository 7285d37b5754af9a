// reprise-bench [--suite NAME] [--json]: runs one suite, or all, and prints a table, or one JSON object a line.
#include "report.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

namespace reprise::bench {
namespace {

struct Suite {
  std::string_view name;
  void (*run)(Report&);
};
constexpr std::array suites{
    Suite{"library", run_library_suite},
    Suite{"engine", run_engine_suite},
    Suite{"process", run_process_suite},
};

struct Arguments {
  std::string_view suite = {};  // empty = all
  bool json = false;
};

int complain(const char* what, std::string_view value) {
  std::fprintf(stderr, "reprise-bench: %s '%.*s'\nusage: reprise-bench [--suite NAME] [--json]\nsuites:", what,
               static_cast<int>(value.size()), value.data());
  for (const Suite& suite : suites) std::fprintf(stderr, " %s", suite.name.data());
  std::fprintf(stderr, "\n");
  return 2;
}

// What could not be measured here, because the program to compare with is missing, is null.
std::string value_of(const Measure& measure, bool json) {
  if (std::isnan(measure.value)) return "null";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), json ? "%.3f" : "%.2f", measure.value);
  return text.data();
}

void print(const Report& report, bool json) {
  for (const Measure& measure : report.measures()) {
    const char* format = json ? "{\"bench\":\"%s\",\"value\":%s,\"unit\":\"%s\"}\n" : "%-32s %12s %s\n";
    std::printf(format, measure.bench.c_str(), value_of(measure, json).c_str(), measure.unit.c_str());
  }
}

int run(int argc, char** argv) {
  Arguments arguments;
  for (int index = 1; index < argc; ++index) {
    const std::string_view argument = argv[index];
    if (argument == "--json") {
      arguments.json = true;
    } else if (argument == "--suite" && index + 1 < argc) {
      arguments.suite = argv[++index];
    } else {
      return complain("do not understand", argument);
    }
  }

  Report report;
  bool found = false;
  for (const Suite& suite : suites) {
    if (!arguments.suite.empty() && suite.name != arguments.suite) continue;
    found = true;
    suite.run(report);
  }
  if (!found) return complain("no suite", arguments.suite);
  print(report, arguments.json);
  return 0;
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) { return reprise::bench::run(argc, argv); }
