// A folder in which the real command runs flows, and its answers: exit codes, what it wrote, and events as JSON.
//
//   FlowFolder folder;
//   folder.program("work.sh", "echo done");                   // executable, found as ./work.sh and as work.sh
//   const Outcome outcome = folder.run("steps: [{id: a, run: ./work.sh}]");
//   EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
//   EXPECT_EQ(text_of(folder.last("completed", "a"), "output"), "done");
//
//   auto running = folder.start({"run", folder.flow("steps: [{id: a, signal: go}]")});
//   ASSERT_TRUE(folder.wait_for_event("submitted"));
//   folder.reprise({"signal", "@last", "go"});
//   EXPECT_EQ(running->join(), 0);
//
// The environment of every command is PATH (the folder first), HOME and TMPDIR (the folder) and what set() says: nothing else of the caller's.
// Thread safety: one thread at a time; commands that run beside it are processes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "support/child.hpp"
#include "support/run_program.hpp"

namespace reprise::testing_support {

// ---- fields of JSON objects, forgiving: what is absent is empty, 0 or false ----

std::string text_of(const boost::json::object& object, std::string_view field);  // also of numbers and other values
double number_of(const boost::json::object& object, std::string_view field);
bool flag_of(const boost::json::object& object, std::string_view field);
bool has(const boost::json::object& object, std::string_view field);
const boost::json::object& object_of(const boost::json::object& object, std::string_view field);

using Events = std::vector<boost::json::object>;

// Those of the type; `step` narrows it, "fetch[3]" to one item.
Events of_type(const Events& events, std::string_view type, std::string_view step = {});
// "started a#1", "failed a#1", "prepared b", "started b[1]#1", "ended": in the order of the record. `step` narrows it.
std::vector<std::string> story_of(const Events& events, std::string_view step = {});

class FlowFolder {
 public:
  FlowFolder();

  // ---- files ----
  const std::string& path() const noexcept { return directory_.path(); }
  std::string path_of(std::string_view name) const;                          // of a file in the folder
  std::string write(std::string_view name, std::string_view text) const;     // gives its path; makes folders on the way
  std::string program(std::string_view name, std::string_view lines) const;  // a script for sh, executable
  std::string flow(std::string_view document) const;                         // writes flow.yaml, gives its path
  std::string read(std::string_view name) const;                             // "" when it is not there
  bool exists(std::string_view name) const;
  std::vector<std::string> lines(std::string_view name) const;
  // Of all files below `name` that have the words in them; bytes are searched, so databases too.
  std::vector<std::string> files_with(std::string_view words, std::string_view name = {}) const;

  // ---- commands ----
  void set(std::string_view name, std::string_view value);  // an environment variable of every command from here on
  Outcome reprise(const std::vector<std::string>& arguments, std::string_view input = {}) const;
  Outcome run(std::string_view document, const std::vector<std::string>& more = {}) const;  // run flow.yaml MORE…
  Outcome shell(const std::string& line, std::string_view input = {}) const;  // for sh; "$0" is the command
  // In the background. Its standard error goes to the file stderr.txt.
  std::unique_ptr<Child> start(const std::vector<std::string>& arguments) const;

  // ---- what is recorded ----
  Events events(std::string_view run = "@last") const;
  boost::json::object first(std::string_view type, std::string_view step = {}) const;  // {} when there is none
  boost::json::object last(std::string_view type, std::string_view step = {}) const;
  std::size_t count(std::string_view type, std::string_view step = {}) const;
  boost::json::object show(std::string_view run = "@last") const;
  boost::json::object step(std::string_view id, std::string_view run = "@last") const;  // its part of show
  std::string why(std::string_view about = {}) const;                                   // as text, of @last
  std::string log(std::string_view step, int item, int attempt) const;                  // the file's content
  std::string last_run() const;                                                         // the id

  // Both give up after some tens of seconds; false: it did not come.
  bool wait_for_event(std::string_view type, std::string_view step = {}, std::size_t how_many = 1) const;
  bool wait_for_file(std::string_view name, std::string_view with_words = {}) const;

 private:
  std::vector<std::string> command_line(const std::vector<std::string>& arguments, bool quiet) const;

  TemporaryDirectory directory_;
  std::vector<Setting> settings_;
};

}  // namespace reprise::testing_support
