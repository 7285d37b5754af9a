// What the attempts of a run write, line by line as it comes, each with its step and item:
//
//   fetch[28] clang-format-14 | downloading 12 MB
//
// Read from the log files beside the store, where output stands at once and masked. A line that is not ended yet waits for its end, or for the
// end of the attempt. Bounds: a line of more than 64 KiB comes in pieces. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <reprise/event.hpp>

#include "observe/live/plain_printer.hpp"
#include "observe/words.hpp"

namespace reprise::cli {

class OutputLines {
 public:
  OutputLines(std::string folder, observe::StepLookup steps, observe::LabelOf labels)
      : folder_{std::move(folder)}, steps_{std::move(steps)}, labels_{std::move(labels)} {}

  // In order. An attempt that ends gives the lines it has left.
  std::vector<std::string> add(const Event& event);
  std::vector<std::string> news();  // of all attempts that run
  void skip(const Event& event);    // it happened before: what was written until then is not told

 private:
  using Key = std::tuple<std::string, std::uint32_t, std::uint64_t>;  // step, item, attempt
  struct Log {
    std::string path;
    std::string prefix;
    std::uint64_t position = 0;
    std::string begun = {};  // of a line that is not ended
  };

  void begin(const Event& event);
  static void read(Log& log, std::vector<std::string>& lines);

  std::string folder_;
  observe::StepLookup steps_;
  observe::LabelOf labels_;
  std::map<Key, Log> logs_;
};

}  // namespace reprise::cli
