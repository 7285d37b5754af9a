#include "cli/look/output_lines.hpp"

#include <fstream>
#include <utility>

#include "exec/log_path.hpp"
#include "text/utf8.hpp"

namespace reprise::cli {
namespace {

constexpr std::size_t line_bytes_max = std::size_t{64} * 1024;

bool ends_an_attempt(EventType type) {
  return type == EventType::completed || type == EventType::failed || type == EventType::interrupted;
}

}  // namespace

void OutputLines::begin(const Event& event) {
  const bool has_items = steps_(event.step).has_items;
  const std::string label = has_items && labels_ ? labels_(event.step, event.item) : "";
  const std::string work = observe::work_name(text::safe_to_show(event.step), event.item, has_items);
  logs_[{event.step, event.item, event.attempt}] = {
      .path = exec::log_path(folder_, event.run, event.step, event.item, event.attempt),
      .prefix = observe::labelled(work, label) + " | "};
}

void OutputLines::read(Log& log, std::vector<std::string>& lines) {
  std::ifstream file{log.path, std::ios::binary};
  if (!file) return;  // nothing was written yet
  file.seekg(static_cast<std::streamoff>(log.position));
  char block[64 * 1024];
  while (file.read(block, sizeof block) || file.gcount() > 0) {
    const auto size = static_cast<std::size_t>(file.gcount());
    log.position += size;
    log.begun.append(block, size);
    std::size_t at = 0;
    for (std::size_t end = 0; (end = log.begun.find('\n', at)) != std::string::npos; at = end + 1)
      lines.push_back(log.prefix + text::safe_to_show(std::string_view{log.begun}.substr(at, end - at)));
    log.begun.erase(0, at);
    if (log.begun.size() > line_bytes_max)
      lines.push_back(log.prefix + text::safe_to_show(std::exchange(log.begun, {})));
  }
}

std::vector<std::string> OutputLines::news() {
  std::vector<std::string> lines;
  for (auto& [key, log] : logs_) read(log, lines);
  return lines;
}

std::vector<std::string> OutputLines::add(const Event& event) {
  std::vector<std::string> lines;
  if (event.type == EventType::started) {
    begin(event);
  } else if (ends_an_attempt(event.type)) {
    const auto found = logs_.find({event.step, event.item, event.attempt});
    if (found == logs_.end()) return lines;
    read(found->second, lines);
    if (!found->second.begun.empty()) lines.push_back(found->second.prefix + text::safe_to_show(found->second.begun));
    logs_.erase(found);
  }
  return lines;
}

void OutputLines::skip(const Event& event) {
  if (event.type == EventType::started) {
    begin(event);
  } else if (ends_an_attempt(event.type)) {
    logs_.erase({event.step, event.item, event.attempt});
  }
}

}  // namespace reprise::cli
