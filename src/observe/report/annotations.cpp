#include "observe/report/annotations.hpp"

#include <algorithm>

#include "observe/report/ending.hpp"
#include "observe/words.hpp"

namespace reprise::observe {
namespace {

constexpr std::size_t annotations_max = 10;  // of each kind

std::string escaped(std::string_view text, bool is_property) {
  std::string out;
  for (const char character : text) {
    switch (character) {
      case '%':
        out += "%25";
        break;
      case '\r':
        out += "%0D";
        break;
      case '\n':
        out += "%0A";
        break;
      case ':':
        out += is_property ? "%3A" : ":";
        break;
      case ',':
        out += is_property ? "%2C" : ",";
        break;
      default:
        out += character;
    }
  }
  return out;
}

std::string annotation(std::string_view level, const AnnotatedFile& file, std::string_view step, std::string_view title,
                       std::string_view words) {
  std::string line = "::" + std::string{level} + " ";
  if (!file.path.empty()) {
    line += "file=" + escaped(file.path, true) + ",";
    if (const auto found = file.lines.find(step); found != file.lines.end())
      line += "line=" + std::to_string(found->second) + ",";
  }
  return line + "title=" + escaped(title, true) + "::" + escaped(words, false) + "\n";
}

}  // namespace

std::string github_annotations(const RunReport& report, const AnnotatedFile& file) {
  std::string lines;
  const std::vector<TroubledItem> failures = failures_of(report);
  for (std::size_t index = 0; index < std::min(failures.size(), annotations_max); ++index) {
    const TroubledItem& item = failures[index];
    const StepReport& step = report.steps[item.step];
    const std::string work = work_name(step.name, item.item, step.has_items);
    const bool is_last = index + 1 == annotations_max && failures.size() > annotations_max;
    lines +=
        annotation("error", file, step.name, work + " failed after " + counted(item.attempts, "attempt"),
                   what_failed(item.failure) + " (" + class_words(item.failure) + ")" +
                       (is_last ? "\nand " + std::to_string(report.failed() - annotations_max) + " more failed" : ""));
  }
  std::size_t warnings = 0;
  for (const StepReport& step : report.steps) {
    if (step.succeeded_after_retry == 0 || ++warnings > annotations_max) continue;
    const std::string words = step.has_items
                                  ? std::to_string(step.succeeded_after_retry) + " of " + counted(step.items, "item") +
                                        " succeeded only when tried again; " + counted_retries(step.retries) + " in all"
                                  : "it succeeded only after " + counted_retries(step.retries);
    lines += annotation("warning", file, step.name, step.name + " recovered", words);
  }
  return lines;
}

}  // namespace reprise::observe
