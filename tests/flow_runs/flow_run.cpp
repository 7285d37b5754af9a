// What flow_run.hpp promises: commands are started through env(1), which gives them their folder and their environment.
#include "flow_runs/flow_run.hpp"

#include <poll.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

namespace reprise::testing_support {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

// Looks every 20 ms; each look takes some time of its own.
bool wait_until(const std::function<bool()>& true_at_last) {
  constexpr int looks = 600;
  for (int look = 0; look < looks; ++look) {
    if (true_at_last()) return true;
    ::poll(nullptr, 0, 20);
  }
  return false;
}

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

json::object parsed(const std::string& text) {
  boost::system::error_code problem;
  json::value value = json::parse(text, problem);
  return problem || !value.is_object() ? json::object{} : value.get_object();
}

// "fetch[3]" is item 3 of fetch, "fetch" any item of it.
bool concerns(const json::object& event, std::string_view step) {
  const std::string name = text_of(event, "step");
  return name == step || name + "[" + text_of(event, "item") + "]" == step;
}

}  // namespace

std::string text_of(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  if (value == nullptr) return {};
  return value->is_string() ? std::string{value->get_string()} : json::serialize(*value);
}

double number_of(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  return value != nullptr && value->is_number() ? value->to_number<double>() : 0;
}

bool flag_of(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains(field);
  return value != nullptr && value->is_bool() && value->get_bool();
}

bool has(const json::object& object, std::string_view field) { return object.contains(field); }

const json::object& object_of(const json::object& object, std::string_view field) {
  static const json::object nothing;
  const json::value* value = object.if_contains(field);
  return value != nullptr && value->is_object() ? value->get_object() : nothing;
}

Events of_type(const Events& events, std::string_view type, std::string_view step) {
  Events found;
  for (const json::object& event : events) {
    if (text_of(event, "type") == type && (step.empty() || concerns(event, step))) found.push_back(event);
  }
  return found;
}

std::vector<std::string> story_of(const Events& events, std::string_view step) {
  std::vector<std::string> story;
  for (const json::object& event : events) {
    if (!step.empty() && !concerns(event, step)) continue;
    std::string words = text_of(event, "type");
    if (has(event, "step")) words += " " + text_of(event, "step");
    if (number_of(event, "item") > 0) words += "[" + text_of(event, "item") + "]";
    if (has(event, "attempt")) words += "#" + text_of(event, "attempt");
    story.push_back(std::move(words));
  }
  return story;
}

// ---- files ----

FlowFolder::FlowFolder() {
  const char* path = std::getenv("PATH");
  set("PATH", directory_.path() + ":" + (path != nullptr ? path : "/usr/bin:/bin"));
  set("HOME", directory_.path());
  set("TMPDIR", directory_.path());
}

std::string FlowFolder::path_of(std::string_view name) const { return path() + "/" + std::string{name}; }

std::string FlowFolder::write(std::string_view name, std::string_view text) const {
  fs::create_directories(fs::path{path_of(name)}.parent_path());
  return directory_.write(name, text);
}

std::string FlowFolder::program(std::string_view name, std::string_view lines) const {
  std::string file = write(name, "#!/bin/sh\n" + std::string{lines} + "\n");
  fs::permissions(file, fs::perms::owner_all);
  return file;
}

std::string FlowFolder::flow(std::string_view document) const { return write("flow.yaml", document); }

std::string FlowFolder::read(std::string_view name) const { return content_of(path_of(name)); }

bool FlowFolder::exists(std::string_view name) const { return fs::exists(path_of(name)); }

std::vector<std::string> FlowFolder::lines(std::string_view name) const {
  std::istringstream text{read(name)};
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> FlowFolder::files_with(std::string_view words, std::string_view name) const {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator{path_of(name)}) {
    if (entry.is_regular_file() && content_of(entry.path().string()).find(words) != std::string::npos)
      found.push_back(fs::relative(entry.path(), path()).string());
  }
  return found;
}

// ---- commands ----

void FlowFolder::set(std::string_view name, std::string_view value) {
  for (Setting& setting : settings_) {
    if (setting.name == name) {
      setting.value = value;
      return;
    }
  }
  settings_.push_back({std::string{name}, std::string{value}});
}

std::vector<std::string> FlowFolder::command_line(const std::vector<std::string>& arguments, bool quiet) const {
  std::vector<std::string> words{"/usr/bin/env", "-i", "-C", path()};
  for (const char* name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LLVM_PROFILE_FILE"}) {
    if (const char* value = std::getenv(name)) words.push_back(std::string{name} + "=" + value);
  }
  for (const auto& [name, value] : settings_) words.push_back(name + "=" + value);
  if (quiet) words.insert(words.end(), {"sh", "-c", R"(exec "$@" 2>>stderr.txt)", "sh"});
  words.emplace_back(REPRISE_COMMAND);
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

Outcome FlowFolder::reprise(const std::vector<std::string>& arguments, std::string_view input) const {
  return run_program(command_line(arguments, false), input);
}

Outcome FlowFolder::run(std::string_view document, const std::vector<std::string>& more) const {
  flow(document);
  std::vector<std::string> arguments{"run", "flow.yaml"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return reprise(arguments);
}

Outcome FlowFolder::shell(const std::string& line, std::string_view input) const {
  return run_program({"/usr/bin/env", "-C", path(), "sh", "-c", line, REPRISE_COMMAND}, input, {{"HOME", path()}});
}

std::unique_ptr<Child> FlowFolder::start(const std::vector<std::string>& arguments) const {
  return std::make_unique<Child>(command_line(arguments, true));
}

// ---- what is recorded ----

Events FlowFolder::events(std::string_view run) const {
  std::istringstream text{reprise({"events", std::string{run}, "--format", "json"}).out};
  Events events;
  for (std::string line; std::getline(text, line);) events.push_back(parsed(line));
  return events;
}

json::object FlowFolder::first(std::string_view type, std::string_view step) const {
  const Events found = of_type(events(), type, step);
  return found.empty() ? json::object{} : found.front();
}

json::object FlowFolder::last(std::string_view type, std::string_view step) const {
  const Events found = of_type(events(), type, step);
  return found.empty() ? json::object{} : found.back();
}

std::size_t FlowFolder::count(std::string_view type, std::string_view step) const {
  return of_type(events(), type, step).size();
}

json::object FlowFolder::show(std::string_view run) const {
  return parsed(reprise({"show", std::string{run}, "--format", "json"}).out);
}

json::object FlowFolder::step(std::string_view id, std::string_view run) const {
  const json::object shown = show(run);
  const json::value* steps = shown.if_contains("steps");
  if (steps == nullptr || !steps->is_array()) return {};
  for (const json::value& step : steps->get_array()) {
    if (text_of(step.as_object(), "step") == id) return step.as_object();
  }
  return {};
}

std::string FlowFolder::why(std::string_view about) const {
  std::vector<std::string> arguments{"why", "@last"};
  if (!about.empty()) arguments.emplace_back(about);
  return reprise(arguments).out;
}

std::string FlowFolder::log(std::string_view step, int item, int attempt) const {
  return read(".reprise/logs/" + last_run() + "/" + std::string{step} + "/" + std::to_string(item) + "." +
              std::to_string(attempt) + ".log");
}

std::string FlowFolder::last_run() const { return text_of(show(), "run"); }

bool FlowFolder::wait_for_event(std::string_view type, std::string_view step, std::size_t how_many) const {
  return wait_until([&] { return count(type, step) >= how_many; });
}

bool FlowFolder::wait_for_file(std::string_view name, std::string_view with_words) const {
  return wait_until([&] { return exists(name) && read(name).find(with_words) != std::string::npos; });
}

}  // namespace reprise::testing_support
