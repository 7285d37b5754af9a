// What people call the items of a document's run: clang-format-14 beside fetch[28].
//
// Items are read once for each step, when the first label is asked for; of more than a hundred thousand the first have one.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exec/document/program.hpp"
#include "observe/report/run_report.hpp"

namespace reprise::cli {

class ItemLabels {
 public:
  static constexpr std::size_t items_max = 100'000;
  using Items = std::function<std::vector<std::string>(std::string_view step)>;  // each as JSON

  ItemLabels() = default;  // knows none
  ItemLabels(std::shared_ptr<const exec::Program> program, Items items)
      : program_{std::move(program)}, items_{std::move(items)} {}

  std::string of(std::string_view step, std::uint32_t item);
  void label(observe::RunReport& report);  // its troubled items

 private:
  std::shared_ptr<const exec::Program> program_;
  Items items_;
  std::map<std::string, std::vector<std::string>, std::less<>> known_;
};

// The document of a run that is recorded; nullptr: it has none, or it cannot be read.
std::shared_ptr<const exec::Program> document_of_run(std::string_view recorded_input);

}  // namespace reprise::cli
