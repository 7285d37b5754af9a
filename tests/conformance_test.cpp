// Every conformance case through the real command, as tests/conformance/README.md says. A failing file lists its failing
// cases.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include <boost/json.hpp>

#include "support/conformance_cases.hpp"
#include "support/run_program.hpp"

namespace reprise {
namespace {

namespace json = boost::json;
using testing_support::ConformanceCase;
using testing_support::Outcome;
using testing_support::run_program;
using testing_support::TemporaryDirectory;

const std::string command = REPRISE_COMMAND;

// What is wrong with an answer, in words; empty when nothing is.
class Complaints {
 public:
  void add(const std::string& complaint) { text_ += (text_.empty() ? "" : "\n      ") + complaint; }
  void add_difference(const std::string& where, const json::value& expected, const json::value& actual) {
    add(where + ": expected " + json::serialize(expected) + ", got " + json::serialize(actual));
  }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

bool close_enough(double expected, double actual) {
  return std::abs(expected - actual) <= 1e-9 * std::abs(expected) + 1e-6;
}

bool agrees(const json::value& expected, const json::value& actual) {
  if (expected.is_number())
    return actual.is_number() && close_enough(expected.to_number<double>(), actual.to_number<double>());
  if (expected.is_array()) {
    if (!actual.is_array() || expected.as_array().size() != actual.as_array().size()) return false;
    for (std::size_t index = 0; index < expected.as_array().size(); ++index) {
      if (!agrees(expected.as_array()[index], actual.as_array()[index])) return false;
    }
    return true;
  }
  if (expected.is_object()) {
    if (const json::value* range = expected.as_object().if_contains("$between")) {
      if (!actual.is_number()) return false;
      const double number = actual.to_number<double>();
      return number >= range->as_array().at(0).to_number<double>() &&
             number <= range->as_array().at(1).to_number<double>();
    }
    if (!actual.is_object()) return false;
    for (const auto& [key, value] : expected.as_object()) {
      const json::value* found = actual.as_object().if_contains(key);
      if (found == nullptr || !agrees(value, *found)) return false;
    }
    return true;
  }
  return expected == actual;
}

void compare_fields(const json::object& expected, const json::value& answer, Complaints& complaints) {
  for (const auto& [key, value] : expected) {
    const json::value* found = answer.is_object() ? answer.as_object().if_contains(key) : nullptr;
    if (found == nullptr) {
      complaints.add("the answer has no field " + std::string{key});
    } else if (!agrees(value, *found)) {
      complaints.add_difference(std::string{key}, value, *found);
    }
  }
}

// One JSON document on stdout and nothing on stderr; nullopt (and a complaint) otherwise.
std::optional<json::value> answer_of(const Outcome& outcome, Complaints& complaints) {
  if (outcome.exit_code != 0)
    complaints.add("expected exit code 0, got " + std::to_string(outcome.exit_code) + ": " + outcome.err);
  boost::system::error_code error;
  json::value parsed = json::parse(outcome.out, error);
  if (!error) return parsed;
  complaints.add("stdout is no JSON document: " + outcome.out);
  return std::nullopt;
}

void check_mentions(const json::object& expect, const std::string& err, Complaints& complaints) {
  const json::value* mentions = expect.if_contains("mentions");
  if (mentions == nullptr) return;
  for (const json::value& word : mentions->as_array()) {
    if (err.find(word.as_string().c_str()) == std::string::npos)
      complaints.add("stderr does not mention " + json::serialize(word) + ": " + err);
  }
}

void check_valid(const ConformanceCase& test, const json::object& expect, Complaints& complaints) {
  const Outcome outcome = run_program({command, "policy", "check", "--from", test.dialect, "-"}, test.document);
  if (outcome.exit_code != 0)
    complaints.add("expected exit code 0, got " + std::to_string(outcome.exit_code) + ": " + outcome.err);
  check_mentions(expect, outcome.err, complaints);
  if (expect.contains("mentions") && outcome.err.find("warning") == std::string::npos)
    complaints.add("expected a warning, got: " + outcome.err);
}

void check_invalid(const ConformanceCase& test, const json::object& expect, Complaints& complaints) {
  static const std::regex place{"(^|\n)[^\n]*:([0-9]+):([0-9]+): error: "};
  const Outcome outcome = run_program({command, "policy", "check", "--from", test.dialect, "-"}, test.document);
  if (outcome.exit_code != 3)
    complaints.add("expected exit code 3, got " + std::to_string(outcome.exit_code) + ": " + outcome.err);
  if (!outcome.out.empty()) complaints.add("expected nothing on stdout, got: " + outcome.out);
  check_mentions(expect, outcome.err, complaints);
  bool any_place = false;
  bool line_found = !expect.contains("line");
  for (auto found = std::sregex_iterator{outcome.err.begin(), outcome.err.end(), place};
       found != std::sregex_iterator{}; ++found) {
    any_place = true;
    if (!line_found) line_found = std::stoll((*found)[2]) == expect.at("line").to_number<std::int64_t>();
  }
  if (!any_place) complaints.add("stderr has no file:line:column: " + outcome.err);
  if (!line_found)
    complaints.add("no mistake was found on line " + json::serialize(expect.at("line")) + ": " + outcome.err);
}

void check_show(const ConformanceCase& test, const json::object& expect, Complaints& complaints) {
  const auto answer = answer_of(
      run_program({command, "policy", "show", "--from", test.dialect, "--format", "json", "-"}, test.document),
      complaints);
  if (answer) compare_fields(expect, *answer, complaints);
}

// `nominal_ms`, `min_ms` and `max_ms` are given as columns; the answer has rows.
json::array column(const json::array& retries, std::string_view field) {
  json::array values;
  for (const json::value& retry : retries) values.push_back(retry.as_object().at(field));
  return values;
}

void check_schedule(const ConformanceCase& test, const json::object& input, const json::object& expect,
                    Complaints& complaints) {
  std::vector<std::string> arguments{command, "policy", "schedule", "--from", test.dialect, "--format", "json"};
  if (const json::value* failures = input.if_contains("failures"))
    arguments.insert(arguments.end(), {"--failures", json::serialize(*failures)});
  arguments.push_back("-");
  const auto answer = answer_of(run_program(arguments, test.document), complaints);
  if (!answer) return;
  const json::array& retries = answer->as_object().at("retries").as_array();
  for (std::size_t index = 0; index < retries.size(); ++index) {
    if (!agrees(index + 1, retries[index].as_object().at("retry"))) complaints.add("retries are not numbered from 1");
  }
  for (const auto& [key, value] : expect) {
    if (key == "count") {
      if (!agrees(value, retries.size())) complaints.add_difference("number of retries", value, retries.size());
    } else if (key == "at") {
      for (const auto& [number, wanted] : value.as_object()) {
        const std::size_t index = std::stoul(std::string{number}) - 1;
        const json::value actual = index < retries.size() ? retries[index] : json::value{};
        if (!agrees(wanted, actual)) complaints.add_difference("retry " + std::string{number}, wanted, actual);
      }
    } else if (key == "stop") {
      const json::value& stop = answer->as_object().at("stop");
      if (!agrees(value, stop)) complaints.add_difference("stop", value, stop);
    } else {
      const json::array actual = column(retries, key);
      if (!agrees(value, actual)) complaints.add_difference(std::string{key}, value, actual);
    }
  }
}

void check_decide(const ConformanceCase& test, const json::object& expect, const TemporaryDirectory& directory,
                  Complaints& complaints) {
  const std::string file = directory.write("policy", test.document);
  const auto answer = answer_of(
      run_program({command, "policy", "decide", "--from", test.dialect, "--format", "json", file}, test.input),
      complaints);
  if (!answer) return;
  compare_fields(expect, *answer, complaints);
  if (answer->as_object().at("decision") != "retry") return;
  const double low = answer->as_object().at("min_ms").to_number<double>();
  const double high = answer->as_object().at("max_ms").to_number<double>();
  const double delay = answer->as_object().at("delay_ms").to_number<double>();
  if (delay < low - 1e-6 || delay > high + 1e-6)
    complaints.add("the delay is outside of its range: " + json::serialize(*answer));
}

void check_classify(const ConformanceCase& test, const json::object& expect, const TemporaryDirectory& directory,
                    Complaints& complaints) {
  std::vector<std::string> arguments{command, "classify", "--format", "json"};
  if (!test.document.empty()) arguments.insert(arguments.end(), {"--rules", directory.write("rules", test.document)});
  const auto answer = answer_of(run_program(arguments, test.input), complaints);
  if (answer) compare_fields(expect, *answer, complaints);
}

std::string complaints_about(const ConformanceCase& test, const TemporaryDirectory& directory) {
  const json::value input = json::parse(test.input);
  const json::value expect = json::parse(test.expect);
  Complaints complaints;
  if (test.kind == "valid") {
    check_valid(test, expect.as_object(), complaints);
  } else if (test.kind == "invalid") {
    check_invalid(test, expect.as_object(), complaints);
  } else if (test.kind == "show") {
    check_show(test, expect.as_object(), complaints);
  } else if (test.kind == "schedule") {
    check_schedule(test, input.as_object(), expect.as_object(), complaints);
  } else if (test.kind == "decide") {
    check_decide(test, expect.as_object(), directory, complaints);
  } else if (test.kind == "classify") {
    check_classify(test, expect.as_object(), directory, complaints);
  } else {
    complaints.add("unknown kind of case: " + test.kind);
  }
  return complaints.text();
}

struct CaseFile {
  const char* name;
  std::size_t cases;  // a file that lost some would pass for the wrong reason
};

class Conformance : public ::testing::TestWithParam<CaseFile> {};

TEST_P(Conformance, every_case_holds) {
  const auto cases = testing_support::conformance_cases(GetParam().name);
  EXPECT_EQ(cases.size(), GetParam().cases) << "the number of cases in " << GetParam().name << ".jsonl";
  const TemporaryDirectory directory;
  std::ostringstream report;
  std::size_t failed = 0;
  for (const ConformanceCase& test : cases) {
    const std::string complaints = complaints_about(test, directory);
    if (complaints.empty()) continue;
    ++failed;
    report << "  " << test.id << " (" << test.title << ")\n      " << complaints << "\n";
  }
  EXPECT_EQ(failed, 0U) << "failing cases of " << GetParam().name << ".jsonl:\n" << report.str();
}

INSTANTIATE_TEST_SUITE_P(Files, Conformance,
                         ::testing::Values(CaseFile{"argyll", 81}, CaseFile{"azolla", 135}, CaseFile{"classify", 114}, CaseFile{"law", 152},
                                           CaseFile{"native", 173}, CaseFile{"prodigy", 146}, CaseFile{"prodigy_matchers", 29},
                                           CaseFile{"rh_agents", 136}, CaseFile{"rule0", 73}, CaseFile{"wave", 110}),
                         [](const auto& each) { return std::string{each.param.name}; });

TEST(ConformanceFiles, a_missing_file_is_a_failure) {
  EXPECT_THROW(testing_support::conformance_cases("no_such_dialect"), std::runtime_error);
}

}  // namespace
}  // namespace reprise
