#include "exec/document/run_identity.hpp"

#include <boost/json/object.hpp>

namespace reprise::exec {
namespace {

using json::Json;

// With defaults filled in: saying what is the default anyway makes no other run.
boost::json::object params_of(const RunInput& input) {
  const auto program = load_program(input, without_files);
  const Json& params = program ? (*program)->params : input.params;
  return params.is_object() ? params.get_object() : boost::json::object{};
}

void compare_params(const RunInput& recorded, const RunInput& asked, std::vector<std::string>& found) {
  if (recorded.params == asked.params && recorded.sealed == asked.sealed) return;
  if (!recorded.sealed.empty() || !asked.sealed.empty()) {  // which of them has the secret is not for telling
    found.emplace_back("the parameters");
    return;
  }
  const boost::json::object before = params_of(recorded);
  const boost::json::object now = params_of(asked);
  for (const auto& [name, value] : now) {
    const Json* const was = before.if_contains(name);
    if (was == nullptr || *was != value) found.push_back("the parameter " + std::string{name});
  }
  for (const auto& [name, value] : before) {
    if (!now.contains(name)) found.push_back("the parameter " + std::string{name});
  }
}

std::string stdin_words(const RunInput& input) {
  if (input.stdin_file.empty()) return "none";
  return input.kept_stdin ? std::to_string(input.kept_stdin->bytes) + " bytes" : "some";
}

void compare_stdin(const RunInput& recorded, const RunInput& asked, std::vector<std::string>& found) {
  const bool is_unknown = !recorded.stdin_file.empty() && !recorded.kept_stdin;
  const bool is_same = recorded.stdin_file.empty() == asked.stdin_file.empty() &&
                       (is_unknown || recorded.kept_stdin == asked.kept_stdin);
  if (!is_same) found.push_back("standard input (" + stdin_words(recorded) + " then, " + stdin_words(asked) + " now)");
}

}  // namespace

std::vector<std::string> differences(const RunInput& recorded, const RunInput& asked) {
  if (recorded.is_exec() != asked.is_exec())
    return {recorded.is_exec() ? "that run is one of `reprise exec`" : "that run is one of a document"};
  std::vector<std::string> found;
  if (recorded.text != asked.text) found.emplace_back("the document");
  if (recorded.text == asked.text && !asked.is_exec()) compare_params(recorded, asked, found);
  if (recorded.argv != asked.argv) found.emplace_back("the command");
  if (recorded.retry != asked.retry || recorded.retry_dialect != asked.retry_dialect ||
      recorded.timeout != asked.timeout)
    found.emplace_back("the retry policy");
  if (recorded.directory != asked.directory) found.push_back("the folder (" + recorded.directory + " then)");
  compare_stdin(recorded, asked, found);
  return found;
}

}  // namespace reprise::exec
