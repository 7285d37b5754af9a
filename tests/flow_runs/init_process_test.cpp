// The command as the first process of a container: it waits for orphans, forwards signals, and ends as its child ends.
#include <gtest/gtest.h>
#include <unistd.h>

#include "flow_runs/flow_run.hpp"

namespace reprise::testing_support {
namespace {

class InitProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    const Outcome possible = folder_.shell(container_ + "true");
    if (possible.exit_code != 0) GTEST_SKIP() << "this machine allows no PID namespaces: " << possible.err;
  }

  // In a container of its own "$0" is process 1.
  Outcome as_first_process(const std::string& words) const { return folder_.shell(container_ + "\"$0\" " + words); }

  FlowFolder folder_;
  const std::string container_ = ::geteuid() == 0 ? "unshare --pid --fork --mount-proc "
                                                  : "unshare --map-root-user --pid --fork --mount-proc ";
};

TEST_F(InitProcess, waits_for_the_orphans_of_its_container) {
  // The orphan's parent ends at once. As long as nobody waits for the orphan it stays in /proc as a zombie.
  folder_.program("work.sh",
                  "echo $PPID > worker\n"
                  "(sleep 0.3 & echo $! > orphan)\n"
                  "for look in $(seq 100); do [ -e /proc/$(cat orphan) ] || exit 0; sleep 0.1; done\n"
                  "exit 3");
  const Outcome outcome = as_first_process("exec --retry none -- ./work.sh");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(folder_.read("worker"), "1\n");
}

TEST_F(InitProcess, forwards_signals_and_the_run_can_be_resumed) {
  folder_.program("work.sh", "test -e again && exit 0\ntouch again\nkill -TERM 1\nsleep 1000");
  const Outcome outcome = as_first_process("exec --retry none -- ./work.sh");
  EXPECT_EQ(outcome.exit_code, 143) << outcome.err;
  EXPECT_EQ(text_of(folder_.show(), "status"), "canceled");
  EXPECT_EQ(as_first_process("resume @last").exit_code, 0);
}

TEST_F(InitProcess, ends_as_its_child_ends) {
  EXPECT_EQ(as_first_process("exec --retry none -- sh -c 'exit 7'").exit_code, 7);
  EXPECT_EQ(as_first_process("version").exit_code, 0);
  EXPECT_EQ(as_first_process("frob").exit_code, 2);
}

}  // namespace
}  // namespace reprise::testing_support
