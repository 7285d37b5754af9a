// Where benchmarks put their numbers, and the suites there are. Add a suite: a function here, a line in main.cpp's table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::bench {

struct Measure {
  std::string bench;
  double value = 0;  // NaN = could not be measured here
  std::string unit;
};

class Report {
 public:
  void add(std::string_view bench, double value, std::string_view unit) {
    measures_.push_back({std::string{bench}, value, std::string{unit}});
  }
  const std::vector<Measure>& measures() const noexcept { return measures_; }

 private:
  std::vector<Measure> measures_;
};

void run_library_suite(Report& report);
void run_engine_suite(Report& report);
void run_process_suite(Report& report);

}  // namespace reprise::bench
