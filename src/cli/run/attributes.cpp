#include "cli/run/attributes.hpp"

#include <cstdlib>

#include "event/attributes.hpp"
#include "text/utf8.hpp"

namespace reprise::cli {

std::expected<RunAttributes, std::string> attributes_here(const std::vector<std::string>& labels) {
  RunAttributes attributes{.origin = origin_of_commands};
  for (const std::string& label : labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos)
      return std::unexpected{"--label expects NAME=VALUE, found " + text::safe_to_show(label)};
    attributes.labels.emplace_back(label.substr(0, equals), label.substr(equals + 1));
  }
  if (auto settled = event::settle_attributes(attributes); !settled)
    return std::unexpected{"--label: " + settled.error()};
  if (const char* const parent = std::getenv("TRACEPARENT"); parent != nullptr) {
    RunAttributes trace{.traceparent = parent};
    if (event::settle_attributes(trace)) attributes.traceparent = parent;
  }
  return attributes;
}

}  // namespace reprise::cli
