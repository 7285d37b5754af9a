// Ctrl-Z, a debugger, a paused container: the engine does not run for a while, and what was done in time meanwhile is not held against anyone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"
#include "support/scripted_server.hpp"

namespace reprise::testing_support {
namespace {

using namespace std::chrono_literals;

// Commands that read from it wait until it opens, and all of them are through then, without looking again and again.
class Gate {
 public:
  explicit Gate(const std::string& path) {
    ::mkfifo(path.c_str(), 0600);
    writer_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }
  void open() {
    if (writer_ >= 0) ::close(std::exchange(writer_, -1));
  }

 private:
  int writer_ = -1;
};

constexpr auto limit = 2s;         // as the documents below have it
constexpr auto well_past = 700ms;  // longer than a busy machine would explain

// Halts the engine, lets the work be done, and wakes it up when everything that was to end has, and the limits have long passed.
void halt_while(const FlowFolder& folder, const Child& running, std::size_t still_running,
                const std::function<void()>& work_is_done) {
  const auto halted = std::chrono::steady_clock::now();
  running.signal(SIGSTOP);
  work_is_done();
  constexpr std::size_t engine_and_guardian = 2;
  EXPECT_TRUE(eventually([&] { return processes_in(folder.path()).size() <= engine_and_guardian + still_running; }));
  std::this_thread::sleep_until(halted + limit + well_past);
  running.signal(SIGCONT);
}

TEST(TroubleHalt, WhatEndedInTimeIsNotJudgedByTheClock) {
  ScriptedServer server;
  server.on("/").when_released().answer(200, "{}");
  FlowFolder folder;
  Gate gate{folder.path_of("gate")};
  folder.program("work.sh", "exec 3< gate; echo x >> began; cat <&3; echo done");
  folder.program("talk.sh",
                 "exec 3< gate; echo x >> began; cat <&3; echo alive; until test -e on; do sleep 0.05; done");
  const auto running = folder.start({"run", folder.flow(R"(
runtime: {max_parallel: 16}
steps:
  - {id: many, for_each: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], argv: [work.sh], timeout: 2s, retry: none}
  - {id: silent, argv: [work.sh], stall_timeout: 2s, retry: none}
  - {id: checked, argv: [work.sh], check: {run: echo x >> checks}, timeout: 2s, retry: none}
  - {id: talks, argv: [talk.sh], stall_timeout: 2s, retry: none}
  - {id: asks, http: {url: ')" + server.url("/") + R"('}, timeout: 2s, retry: none})")});
  ASSERT_TRUE(server.wait_for_requests(1)) << folder.read("stderr.txt");
  ASSERT_TRUE(eventually([&] { return folder.lines("began").size() == 15; }));
  halt_while(folder, *running, 2, [&] {  // talk.sh and its sleep go on
    gate.open();
    server.release();
  });
  ASSERT_TRUE(folder.wait_for_event("completed", "checked"));
  folder.write("on", "");
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(folder.count("failed"), 0U);
  EXPECT_EQ(folder.count("started"), 16U);
  EXPECT_EQ(folder.lines("checks").size(), 1U);
}

// The deadline of a run is a time of day. Nothing starts after it; what had ended before, and was only not seen, has ended.
TEST(TroubleHalt, ARunThatWasDoneBeforeItsDeadlineSucceeds) {
  FlowFolder folder;
  Gate gate{folder.path_of("gate")};
  folder.program("work.sh", "exec 3< gate; echo x >> began; cat <&3; echo done");
  const auto running =
      folder.start({"run", folder.flow("{runtime: {deadline: 2s}, steps: [{id: a, argv: [work.sh], retry: none}]}")});
  ASSERT_TRUE(folder.wait_for_file("began", "x"));
  halt_while(folder, *running, 0, [&] { gate.open(); });
  EXPECT_EQ(running->join(), 0) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(folder.show(), "status"), "succeeded");
}

// What really takes too long is stopped all the same.
TEST(TroubleHalt, WhatStillRunsIsStopped) {
  FlowFolder folder;
  folder.program("work.sh", "echo x >> began; exec sleep 1000");
  const auto running =
      folder.start({"run", folder.flow("steps: [{id: a, argv: [work.sh], timeout: 300ms, retry: none}]")});
  ASSERT_TRUE(folder.wait_for_file("began", "x"));
  running->signal(SIGSTOP);
  std::this_thread::sleep_for(300ms + well_past);
  running->signal(SIGCONT);
  EXPECT_EQ(running->join(), 1) << folder.read("stderr.txt");
  EXPECT_EQ(text_of(object_of(folder.last("failed", "a"), "error"), "kind"), "timeout");
  EXPECT_EQ(leftovers_in(folder.path()), "");
}

}  // namespace
}  // namespace reprise::testing_support
