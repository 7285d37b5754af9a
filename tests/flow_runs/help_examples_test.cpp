// The examples in help and manual pages are true: each is typed into a shell, in a folder that has the files and runs it speaks of.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "cli/tree/app.hpp"
#include "flow_runs/flow_run.hpp"

namespace reprise::testing_support {
namespace {

// Items 57 to 59 fail as long as there is a file `broken`, each with an exit code of its own.
constexpr std::string_view fetching = R"(
steps:
  - id: fetch
    for_each: {command: {run: "seq 0 59"}}
    run: 'echo item; test ${item} -lt 57 || test ! -e broken || exit $((${item} + 3))'
    retry: {max_attempts: 2, initial: 1ms}
)";

void write_files(const FlowFolder& folder) {
  folder.write("nightly.yaml", "params: {date: today}\nsteps: [{id: a, run: 'echo ${params.date}'}]\n");
  folder.write("flow.yaml", "steps: [{id: a, run: 'true'}]\n");
  folder.write("flows/a.yaml", "steps: [{id: a, run: 'true'}]\n");
  folder.write("failing.yaml", fetching);
  folder.write("letters.yaml", std::string{fetching} + "    on_failure: dead_letter\n");
  folder.write("waiting.yaml", "steps: [{id: approve, signal: approval}]\n");
  folder.write("retry.yaml", "policy: patient\n");
  folder.write("retry.json", R"({"stop": {"max_attempts": 3}})");
  folder.write("retry_config.yaml", "attempts: 3\nbackoff: {fibonacci: {initial: 100ms}}\njitter: true\n");
  folder.write("broken", "");
  folder.program("upload.sh", "true");
  folder.program("job.sh", "true");
  folder.program("ship.sh", "true");
  folder.write("orders.jsonl", "{\"id\": 1, \"city\": \"ulm\"}\n");
  folder.write("a.png", "");
  folder.program("curl", "true");  // no test leaves this machine
  for (const char* place : {".local/share/bash-completion/completions/x", ".zfunc/x", ".config/fish/completions/x"})
    folder.write(place, "");
}

Outcome in_a_shell(const FlowFolder& folder, const std::string& line) {
  const std::string commands = std::filesystem::path{REPRISE_COMMAND}.parent_path().string();
  return run_program({"/usr/bin/env", "-C", folder.path(), "sh", "-c", line}, {},
                     {{"HOME", folder.path()}, {"PATH", folder.path() + ":" + commands + ":/usr/bin:/bin"}});
}

bool needs_an_open_run(const std::string& command) {
  return command == "reprise cancel" || command == "reprise pause" || command == "reprise signal";
}

void try_examples(const cli::CommandShape& command) {
  SCOPED_TRACE(command.path);
  FlowFolder folder;
  write_files(folder);
  std::unique_ptr<Child> running;
  if (needs_an_open_run(command.path)) {
    running = folder.start({"run", folder.path_of("waiting.yaml")});
    ASSERT_TRUE(folder.wait_for_event("submitted"));
  } else if (command.has_option("--store") || !command.commands.empty()) {
    EXPECT_EQ(folder.reprise({"run", folder.path_of("failing.yaml")}).exit_code, 1);
    EXPECT_EQ(folder.reprise({"run", folder.path_of("letters.yaml")}).exit_code, 0);
    std::filesystem::remove(folder.path_of("broken"));
  }
  for (const std::string& example : command.examples) {
    const Outcome outcome = in_a_shell(folder, example);
    EXPECT_EQ(outcome.exit_code, 0) << example << "\n" << outcome.out << outcome.err;
  }
  if (running != nullptr) in_a_shell(folder, "reprise cancel @last");
  for (const cli::CommandShape& child : command.commands) try_examples(child);
}

TEST(TroubleHelp, EveryExampleWorks) { try_examples(cli::command_tree()); }

}  // namespace
}  // namespace reprise::testing_support
