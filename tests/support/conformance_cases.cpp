#include "support/conformance_cases.hpp"

#include <fstream>
#include <stdexcept>

#include <boost/json.hpp>

namespace reprise::testing_support {
namespace {

std::string text_of(const boost::json::object& line, std::string_view key) {
  return std::string{line.at(key).as_string()};
}

}  // namespace

std::vector<ConformanceCase> conformance_cases(std::string_view name) {
  const std::string path = REPRISE_CONFORMANCE_DIRECTORY "/" + std::string{name} + ".jsonl";
  std::ifstream file{path};
  if (!file) throw std::runtime_error{"cannot read " + path};
  std::vector<ConformanceCase> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.empty()) continue;
    const boost::json::value parsed = boost::json::parse(line);
    const boost::json::object& object = parsed.as_object();
    cases.push_back({text_of(object, "id"), text_of(object, "dialect"), text_of(object, "kind"),
                     text_of(object, "title"), text_of(object, "document"), boost::json::serialize(object.at("input")),
                     boost::json::serialize(object.at("expect"))});
  }
  return cases;
}

}  // namespace reprise::testing_support
