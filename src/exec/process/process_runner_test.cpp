// ProcessRunner: every command is answered once, with what really happened, and nothing of it is left behind.
// Real processes, real time; nothing here measures it.
#include "exec/process/process_runner.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <semaphore>
#include <sstream>
#include <thread>

#include "exec/secrets/secret_table.hpp"

namespace reprise::exec {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr auto patience = 60s;  // so that a mistake fails instead of hanging

// A clock that stands still until the test moves it.
class HandEnv final : public Env {
 public:
  TimePoint now() override { return TimePoint{Duration{now_.load()}}; }
  bool wait_until(TimePoint, const std::stop_token&) override { return true; }
  std::uint64_t random_seed() override { return 1; }
  void warn(std::string_view) noexcept override { warnings.fetch_add(1); }
  void advance(Duration span) { now_.fetch_add(span.count()); }

  std::atomic<int> warnings{0};

 private:
  std::atomic<std::int64_t> now_{Duration{1h}.count()};
};

class ExecProcess : public testing::Test {
 protected:
  ExecProcess() {
    std::string pattern = (fs::temp_directory_path() / "reprise-process-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ExecProcess() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string content_of(const std::string& name) const {
    std::ifstream stream{path(name), std::ios::binary};
    std::ostringstream content;
    content << stream.rdbuf();
    return content.str();
  }
  std::string write(const std::string& name, const std::string& content,
                    fs::perms permissions = fs::perms::owner_all) const {
    std::ofstream{path(name)} << content;
    fs::permissions(path(name), permissions);
    return path(name);
  }

  fs::path folder_;
};

ProcessSpec command(std::vector<std::string> argv) {
  ProcessSpec spec;
  spec.argv = std::move(argv);
  spec.env = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
  return spec;
}

ProcessSpec shell(const std::string& line) { return command({"/bin/sh", "-c", line}); }

// A command and the place where its end arrives.
class Started {
 public:
  Started(ProcessRunner& runner, ProcessSpec spec, ProcessRunner::SignOfLife progress = {}) {
    ticket_ = runner.start(
        std::move(spec), [promise = promise_](ProcessEnd&& end) { promise->set_value(std::move(end)); },
        std::move(progress));
  }
  ProcessRunner::Ticket ticket() const { return ticket_; }
  bool is_over() { return future_.wait_for(0s) == std::future_status::ready; }
  ProcessEnd end() {
    if (future_.wait_for(patience) == std::future_status::ready) return future_.get();
    ADD_FAILURE() << "the command was not answered";
    return {};
  }

 private:
  std::shared_ptr<std::promise<ProcessEnd>> promise_ = std::make_shared<std::promise<ProcessEnd>>();
  std::future<ProcessEnd> future_ = promise_->get_future();
  ProcessRunner::Ticket ticket_ = 0;
};

ProcessEnd run(ProcessSpec spec) {
  ProcessRunner runner{{}};
  return Started{runner, std::move(spec)}.end();
}

template <typename Condition>
bool comes_true(Condition condition) {
  for (int round = 0; round < 6'000; ++round) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// Processes of a group that are still there; zombies are not.
int alive_in_group(pid_t group) {
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator{"/proc"}) {
    std::ifstream stream{entry.path() / "stat"};
    std::string line;
    if (!std::getline(stream, line)) continue;
    std::istringstream fields{line.substr(line.rfind(')') + 1)};
    char state = 0;
    pid_t parent = 0;
    pid_t its_group = 0;
    fields >> state >> parent >> its_group;
    if (its_group == group && state != 'Z' && state != 'X') ++count;
  }
  return count;
}

bool group_is_gone(pid_t group) {
  return comes_true([&] { return alive_in_group(group) == 0; });
}

bool has_no_children() { return ::waitpid(-1, nullptr, WNOHANG | __WALL) == -1 && errno == ECHILD; }

// ---- What a command gets, and what comes back ----------------------------------------

TEST_F(ExecProcess, TellsHowItExited) {
  const ProcessEnd end = run(shell("echo to out; echo to err >&2; exit 3"));
  EXPECT_EQ(end.spawn_errno, 0) << end.spawn_problem;
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 0);
  EXPECT_EQ(end.out.text(), "to out\n");
  EXPECT_EQ(end.err.text(), "to err\n");
  EXPECT_FALSE(end.timed_out || end.stalled || end.canceled || end.had_to_kill);
  EXPECT_TRUE(has_no_children());
}

TEST_F(ExecProcess, TellsWhichSignalKilledIt) {
  const ProcessEnd end = run(shell("kill -SEGV $$"));
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_EQ(end.exit_code, -1);
}

TEST_F(ExecProcess, GetsExactlyItsArgumentsAndEnvironment) {
  ProcessSpec spec = command({"/usr/bin/env", "-0"});
  spec.env = {"B=2 \n", "A="};
  EXPECT_EQ(run(spec).out.text(), std::string("B=2 \n\0A=\0", 9));
  EXPECT_EQ(run(command({"printf", "[%s]", "", "a b", "$HOME"})).out.text(), "[][a b][$HOME]");
}

TEST_F(ExecProcess, RunsInItsDirectory) {
  ProcessSpec spec = shell("pwd");
  spec.directory = folder_.string();
  EXPECT_EQ(run(spec).out.text(), fs::canonical(folder_).string() + "\n");
}

TEST_F(ExecProcess, IsLookedUpInItsOwnPath) {
  fs::create_directories(folder_ / "one");
  fs::create_directories(folder_ / "two");
  write("one/tool", "#!/bin/sh\necho one\n", fs::perms::owner_read);  // not executable: the next one is taken
  write("two/tool", "#!/bin/sh\necho two\n");
  ProcessSpec spec = command({"tool"});
  spec.env = {"PATH=/nowhere:" + path("one") + ":" + path("two")};
  EXPECT_EQ(run(spec).out.text(), "two\n");
  spec.env = {"PATH="};  // an empty part means the current folder
  spec.directory = path("two");
  EXPECT_EQ(run(spec).out.text(), "two\n");
  EXPECT_EQ(run({.argv = {"echo", "no PATH"}, .env = {}}).out.text(), "no PATH\n");
}

TEST_F(ExecProcess, ReadsItsInputFile) {
  ProcessSpec spec = command({"cat"});
  EXPECT_EQ(run(spec).out.text(), "") << "no file: nothing to read";
  spec.stdin_file = write("input", "some lines\n");
  EXPECT_EQ(run(spec).out.text(), "some lines\n");
}

TEST_F(ExecProcess, AFifoAsInputHoldsUpNobody) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  ProcessSpec spec = command({"true"});
  spec.stdin_file = path("fifo");
  EXPECT_EQ(run(spec).exit_code, 0);
}

TEST_F(ExecProcess, AScriptWithoutFirstLineIsAShellScript) {
  write("script", "echo \"$0 $1\"\n");
  EXPECT_EQ(run(command({path("script"), "x"})).out.text(), path("script") + " x\n");
}

TEST_F(ExecProcess, BeginsWithDefaultSignals) {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigset_t mask_before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &mask_before);
  const ProcessEnd end = run(command({"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"}));
  pthread_sigmask(SIG_SETMASK, &mask_before, nullptr);
  ::signal(SIGPIPE, before);
  EXPECT_EQ(end.out.text(), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(ExecProcess, InheritsNoDescriptors) {
  const int inherited = ::open("/dev/null", O_RDONLY);  // not close-on-exec, on purpose
  ASSERT_GE(inherited, 0);
  EXPECT_EQ(run(command({"ls", "/proc/self/fd"})).out.text(), "0\n1\n2\n3\n") << "3 is the folder that ls reads";
  ::close(inherited);
}

TEST_F(ExecProcess, WorksWhenOurStandardDescriptorsAreClosed) {
  const pid_t helper = ::fork();
  ASSERT_GE(helper, 0);
  if (helper == 0) {
    for (const int number : {0, 1, 2}) ::close(number);
    const ProcessEnd end = run(shell("cat; echo out; echo err >&2"));
    ::_exit(end.exit_code == 0 && end.out.head == "out\n" && end.err.head == "err\n" ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(helper, &status, 0), helper);
  EXPECT_EQ(status, 0);
}

TEST_F(ExecProcess, WorksWhenSigchldIsIgnored) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  const ProcessEnd end = run(shell("exit 7"));
  EXPECT_EQ(end.exit_code, 7) << end.spawn_problem;
  ::signal(SIGCHLD, before);
}

// ---- Commands that cannot be started ----------------------------------------

void expect_problem(const ProcessSpec& spec, int error, const std::string& words) {
  const ProcessEnd end = run(spec);
  EXPECT_EQ(end.spawn_errno, error) << end.spawn_problem;
  EXPECT_EQ(end.spawn_problem, words);
  EXPECT_EQ(end.exit_code, -1);
  EXPECT_TRUE(has_no_children());
}

TEST_F(ExecProcess, SaysWhichCommandIsMissing) {
  expect_problem(command({"fooo"}), ENOENT, "there is no command \"fooo\" in PATH");
  expect_problem(command({"./fooo"}), ENOENT, "there is no file \"./fooo\"");
  expect_problem(command({""}), ENOENT, "there is no command \"\" in PATH");
  ProcessSpec elsewhere = command({"./fooo"});
  elsewhere.directory = folder_.string();
  expect_problem(elsewhere, ENOENT, "there is no file \"./fooo\" in \"" + folder_.string() + "\"");
}

TEST_F(ExecProcess, SaysWhatIsMissingBesidesTheCommand) {
  ProcessSpec spec = command({"true"});
  spec.directory = path("gone");
  expect_problem(spec, ENOENT, "the directory \"" + path("gone") + "\" to run in does not exist");
  spec.directory = write("file", "");
  expect_problem(spec, ENOTDIR, "\"" + path("file") + "\", to run in, is not a directory");
  spec.directory = "";
  spec.stdin_file = path("gone");
  expect_problem(spec, ENOENT, "the input file \"" + path("gone") + "\" does not exist");
  spec.stdin_file = folder_.string();
  expect_problem(spec, EISDIR, "the input file \"" + folder_.string() + "\" cannot be read: Is a directory");
  write("script", "#! /usr/bin/python9 -u\n");
  expect_problem(
      command({path("script")}), ENOENT,
      "\"" + path("script") + "\" is there, but what should run it, \"/usr/bin/python9\" in its first line, is not");
}

TEST_F(ExecProcess, SaysWhatMayNotBeExecuted) {
  const std::string script = write("script", "#!/bin/sh\n", fs::perms::owner_read);
  expect_problem(command({script}), EACCES, "\"" + script + "\" is not executable (chmod +x would make it so)");
  expect_problem(command({folder_.string()}), EACCES, "\"" + folder_.string() + "\" is a directory, not a command");
}

TEST_F(ExecProcess, SaysWhatCannotBeHandedOver) {
  expect_problem(command({}), EINVAL, "no command was given");
  expect_problem(command({"echo", std::string("a\0b", 3)}), EINVAL,
                 "an argument of the command has a NUL byte, which no command can be given");
  expect_problem(command({"echo", std::string(1U << 20U, 'x')}), E2BIG,
                 "the arguments and the environment of \"echo\" are longer than the system allows (hand large values "
                 "over with `stdin:`, or in a file)");
}

TEST_F(ExecProcess, SaysThatNoMoreFilesMayBeOpened) {
  ProcessRunner runner{{}};
  EXPECT_EQ(Started(runner, command({"true"})).end().exit_code, 0);
  std::vector<int> taken;
  for (int next = ::dup(0); next >= 0; next = ::dup(0)) taken.push_back(next);
  const ProcessEnd end = Started{runner, command({"true"})}.end();
  for (const int number : taken) ::close(number);
  EXPECT_EQ(end.spawn_errno, EMFILE);
  EXPECT_EQ(end.spawn_problem, "no pipe could be made for its output: Too many open files");
  EXPECT_EQ(Started(runner, command({"true"})).end().exit_code, 0) << "and works again afterwards";
}

// ---- Commands that have to be stopped ----------------------------------------

TEST_F(ExecProcess, IsStoppedWhenItsTimeIsOver) {
  ProcessSpec spec = command({"sleep", "1000"});
  spec.timeout = 20ms;
  const ProcessEnd end = run(spec);
  EXPECT_TRUE(end.timed_out);
  EXPECT_FALSE(end.had_to_kill);
  EXPECT_EQ(end.signal, SIGTERM);
  EXPECT_GE(end.ran, 20ms);
}

TEST_F(ExecProcess, IsKilledWithAllItsOwnWhenItIgnoresTerm) {
  ProcessSpec spec = shell("trap '' TERM; echo $$; sleep 1000 & sleep 1000 & while :; do sleep 1000; done");
  spec.timeout = 300ms;
  spec.grace = 20ms;
  const ProcessEnd end = run(spec);
  EXPECT_TRUE(end.timed_out);
  EXPECT_TRUE(end.had_to_kill);
  EXPECT_EQ(end.signal, SIGKILL);
  ASSERT_FALSE(end.out.head.empty());
  EXPECT_TRUE(group_is_gone(std::stoi(end.out.head)));
  EXPECT_TRUE(has_no_children());
}

TEST_F(ExecProcess, OneThatIsHaltedIsWokenToHearTerm) {
  ProcessSpec spec = shell("trap 'echo heard; exit 5' TERM; kill -STOP $$; sleep 1000 & wait");
  spec.timeout = 100ms;
  spec.grace = patience;
  const ProcessEnd end = run(spec);
  EXPECT_FALSE(end.had_to_kill);
}

TEST_F(ExecProcess, IsStoppedWithoutASignOfLife) {
  ProcessSpec spec = command({"sleep", "1000"});
  spec.stall_timeout = 20ms;
  const ProcessEnd end = run(spec);
  EXPECT_TRUE(end.stalled);
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(end.signal, SIGTERM);
}

// The command says something whenever the test lets it; the clock of the runner moves only in between.
TEST_F(ExecProcess, OutputIsASignOfLife) {
  HandEnv env;
  std::counting_semaphore<> signs{0};
  ProcessRunner runner{{.env = &env}};
  ProcessSpec spec =
      shell("for i in 1 2 3 4; do echo $i; while ! test -e " + path("go$i") + "; do sleep 0.01; done; done");
  spec.stall_timeout = 200ms;
  Started started{runner, spec, [&] { signs.release(); }};
  for (int round = 1; round <= 4; ++round) {
    ASSERT_TRUE(signs.try_acquire_for(patience));
    env.advance(150ms);
    write("go" + std::to_string(round), "");
  }
  const ProcessEnd end = started.end();
  EXPECT_FALSE(end.stalled);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.ran, 600ms);
}

TEST_F(ExecProcess, AChangeOfTheProgressFileIsASignOfLife) {
  HandEnv env;
  std::counting_semaphore<> signs{0};
  ProcessRunner runner{{.env = &env}};
  ProcessSpec spec = shell("for i in 1 2 3 4; do while ! test -e " + path("go$i") +
                           "; do sleep 0.01; done; echo $i >> " + path("progress") + "; done; sleep 1000");
  spec.stall_timeout = 200ms;
  spec.progress_file = path("progress");
  Started started{runner, spec, [&] { signs.release(); }};
  for (std::size_t lines = 1; lines <= 4; ++lines) {
    env.advance(120ms);
    write("go" + std::to_string(lines), "");
    ASSERT_TRUE(comes_true([&] { return content_of("progress").size() == 2 * lines; }));
    env.advance(30ms);  // an eighth of the stall time, and a bit: now it looks
    ASSERT_TRUE(signs.try_acquire_for(patience));
  }
  EXPECT_FALSE(started.is_over()) << "after three stall times";
  env.advance(201ms);
  EXPECT_TRUE(started.end().stalled);
}

// ---- When we ourselves did not run for a while ----------------------------------------

int living_children() {
  int count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator{"/proc"}) {
    std::ifstream stream{entry.path() / "stat"};
    std::string line;
    if (!std::getline(stream, line)) continue;
    std::istringstream fields{line.substr(line.rfind(')') + 1)};
    char state = 0;
    pid_t parent = 0;
    fields >> state >> parent;
    if (parent == ::getpid() && state != 'Z' && state != 'X') ++count;
  }
  return count;
}

// The runner's thread is held up by a callback while many commands end, more of them than epoll tells of at once, and their time passes.
TEST_F(ExecProcess, WhatEndedInTimeCountsHoweverLateItIsSeen) {
  ASSERT_EQ(::mkfifo(path("gate").c_str(), 0600), 0);
  const int gate = ::open(path("gate").c_str(), O_RDWR | O_CLOEXEC);
  HandEnv env;
  ProcessRunner runner{{.env = &env}};
  std::vector<std::unique_ptr<Started>> many;
  for (int index = 0; index < 100; ++index) {
    ProcessSpec spec = command({"cat"});
    spec.stdin_file = path("gate");
    (index % 2 == 0 ? spec.timeout : spec.stall_timeout) = 10min;
    many.push_back(std::make_unique<Started>(runner, std::move(spec)));
  }
  std::binary_semaphore held_up{0};
  std::binary_semaphore let_go{0};
  runner.start(command({"true"}), [&](ProcessEnd&&) {
    held_up.release();
    EXPECT_TRUE(let_go.try_acquire_for(patience));
  });
  ASSERT_TRUE(held_up.try_acquire_for(patience));
  ::close(gate);
  EXPECT_TRUE(comes_true([] { return living_children() == 1; })) << "the guardian alone";
  env.advance(10min + 100ms);
  let_go.release();
  for (const auto& started : many) {
    const ProcessEnd end = started->end();
    EXPECT_EQ(end.exit_code, 0);
    EXPECT_FALSE(end.timed_out || end.stalled);
  }
}

// It may have been halted together with us, and gets the time that we missed, but not more than it was given.
TEST_F(ExecProcess, WhatStillRunsWhenWeWakeGetsItsTimeAgain) {
  HandEnv env;
  ProcessRunner runner{{.env = &env}};
  ProcessSpec spec = shell("echo; exec sleep 1000");
  spec.timeout = 50ms;
  ProcessSpec quiet = shell("exec sleep 1000");
  quiet.stall_timeout = 50ms;
  std::binary_semaphore began{0};
  Started slow{runner, spec, [&] { began.release(); }};
  Started stalled{runner, quiet};
  ASSERT_TRUE(began.try_acquire_for(patience));
  env.advance(1h);
  for (int look = 0; look < 3; ++look) EXPECT_EQ(Started(runner, command({"true"})).end().exit_code, 0);
  EXPECT_FALSE(slow.is_over());
  EXPECT_FALSE(stalled.is_over());
  env.advance(51ms);
  EXPECT_TRUE(slow.end().timed_out);
  EXPECT_TRUE(stalled.end().stalled);
}

TEST_F(ExecProcess, IsCanceled) {
  ProcessRunner runner{{}};
  std::binary_semaphore began{0};
  Started started{runner, shell("echo $$; sleep 1000 & wait"), [&] { began.release(); }};
  ASSERT_TRUE(began.try_acquire_for(patience));
  EXPECT_EQ(runner.running(), 1U);
  runner.cancel(started.ticket());
  runner.cancel(started.ticket() + 1000);
  const ProcessEnd end = started.end();
  EXPECT_TRUE(end.canceled);
  EXPECT_EQ(end.signal, SIGTERM);
  EXPECT_TRUE(group_is_gone(std::stoi(end.out.head)));
  EXPECT_EQ(runner.running(), 0U);
}

TEST_F(ExecProcess, IsNotEvenStartedWhenItWasCanceledBefore) {
  ProcessRunner runner{{}};
  std::promise<ProcessEnd> promise;
  runner.start(command({"true"}), [&](ProcessEnd&&) {
    const auto ticket =
        runner.start(command({"touch", path("ran")}), [&](ProcessEnd&& end) { promise.set_value(std::move(end)); });
    runner.cancel(ticket);
  });
  std::future<ProcessEnd> future = promise.get_future();
  ASSERT_EQ(future.wait_for(patience), std::future_status::ready);
  EXPECT_TRUE(future.get().canceled);
  EXPECT_FALSE(fs::exists(path("ran")));
}

TEST_F(ExecProcess, KillAllKillsAtOnce) {
  ProcessRunner runner{{}};
  std::counting_semaphore<> began{0};
  std::vector<std::unique_ptr<Started>> all;
  for (int count = 0; count < 3; ++count) {
    all.push_back(std::make_unique<Started>(runner, shell("trap '' TERM; echo $$; sleep 1000 & while :; do wait; done"),
                                            [&] { began.release(); }));
  }
  for (int count = 0; count < 3; ++count) ASSERT_TRUE(began.try_acquire_for(patience));
  runner.kill_all();
  for (const auto& started : all) {
    const ProcessEnd end = started->end();
    EXPECT_TRUE(end.canceled);
    EXPECT_EQ(end.signal, SIGKILL);
    EXPECT_TRUE(group_is_gone(std::stoi(end.out.head)));
  }
  EXPECT_EQ(Started(runner, command({"true"})).end().exit_code, 0) << "those that come later are not meant";
}

TEST_F(ExecProcess, NothingOutlivesTheRunner) {
  std::string pid;
  std::atomic<int> answers{0};
  {
    ProcessRunner runner{{}};
    std::binary_semaphore began{0};
    runner.start(
        shell("trap '' TERM; echo $$ > " + path("pid") + "; echo; sleep 1000 & while :; do wait; done"),
        [&](ProcessEnd&&) { ++answers; }, [&] { began.release(); });
    ASSERT_TRUE(began.try_acquire_for(patience));
  }
  EXPECT_EQ(answers, 0);
  EXPECT_TRUE(group_is_gone(std::stoi(content_of("pid"))));
  EXPECT_TRUE(has_no_children());
}

// ---- Grandchildren ----------------------------------------

TEST_F(ExecProcess, GrandchildrenDoNotKeepItOpen) {
  const ProcessEnd end = run(shell("sleep 1000 & echo $$"));
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_TRUE(group_is_gone(std::stoi(end.out.head)));
}

TEST_F(ExecProcess, NorDoThoseThatNeverStopWriting) {
  const ProcessEnd end = run(shell("echo $$; yes & yes >&2 & sleep 0.1"));
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_TRUE(group_is_gone(std::stoi(end.out.head)));
}

TEST_F(ExecProcess, OnesInASessionOfTheirOwnDoNotEither) {
  ProcessSpec spec = shell("setsid sh -c 'echo $$ > " + path("pid") + "; exec sleep 1000' & while ! test -s " +
                           path("pid") + "; do sleep 0.01; done; echo over");
  EXPECT_EQ(run(spec).out.text(), "over\n");
  ::kill(std::stoi(content_of("pid")), SIGKILL);
}

TEST_F(ExecProcess, TheGuardianKillsWhatTheRunnerLeftBehind) {
  int report[2];
  ASSERT_EQ(::pipe(report), 0);
  const pid_t helper = ::fork();
  ASSERT_GE(helper, 0);
  if (helper == 0) {
    ProcessRunner runner{{}};
    ProcessSpec spec =
        shell("trap '' TERM HUP; echo $$ > " + path("pid") + "; echo; sleep 1000 & while :; do wait; done");
    runner.start(std::move(spec), {}, [] { ::kill(::getpid(), SIGKILL); });
    while (true) ::pause();
  }
  ::close(report[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(helper, &status, 0), helper);
  EXPECT_TRUE(WIFSIGNALED(status));
  char byte = 0;
  EXPECT_EQ(::read(report[0], &byte, 1), 0) << "nobody holds the descriptors of the helper";
  ::close(report[0]);
  EXPECT_TRUE(group_is_gone(std::stoi(content_of("pid"))));
}

TEST_F(ExecProcess, TheGuardianHoldsNothingButItsPipe) {
  ProcessRunner runner{{}};
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator{"/proc"}) {
    std::ifstream status{entry.path() / "status"};
    std::ostringstream content;
    content << status.rdbuf();
    if (content.str().find("\nPPid:\t" + std::to_string(::getpid()) + "\n") != std::string::npos)
      found.push_back(entry.path());
  }
  ASSERT_EQ(found.size(), 1U);
  const auto held = [&] {
    const auto entries = fs::directory_iterator{found[0] + "/fd"};
    return std::distance(fs::begin(entries), fs::end(entries));
  };
  EXPECT_TRUE(comes_true([&] { return held() == 1; }));
  std::ifstream name{found[0] + "/comm"};
  std::string comm;
  std::getline(name, comm);
  EXPECT_EQ(comm, "rp-guardian");
  std::ifstream line{found[0] + "/cmdline"};
  const std::string words{std::istreambuf_iterator<char>{line}, {}};
  EXPECT_EQ(words.substr(0, words.find_last_not_of('\0') + 1), "rp-guardian") << "nothing of ours in its command line";
}

// A hangup that is ignored stays so: what runs under nohup is to go on, with all its commands.
TEST_F(ExecProcess, IgnoresHangupsWhenWeDo) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  const ProcessEnd end = run(shell("kill -HUP $$; echo on"));
  ::signal(SIGHUP, before);
  EXPECT_EQ(end.out.text(), "on\n");
}

// ---- Output ----------------------------------------

TEST_F(ExecProcess, KeepsBothEndsOfMuchOutput) {
  ProcessSpec spec = shell("echo first; head -c 50000000 /dev/zero; echo last");
  spec.log_file = path("deep/er/log");
  const ProcessEnd end = run(spec);
  EXPECT_EQ(end.out.size, 50'000'011U);
  EXPECT_TRUE(end.out.head.starts_with("first\n"));
  EXPECT_TRUE(end.out.tail.ends_with("last\n"));
  EXPECT_EQ(end.out.head.size(), spec.keep_head);
  EXPECT_EQ(end.out.tail.size(), spec.keep_tail);
  EXPECT_EQ(fs::file_size(spec.log_file), 50'000'011U);
  EXPECT_EQ(end.log_problem, "");
}

TEST_F(ExecProcess, KeepsTheWholeOutputWhenItIsWanted) {
  ProcessSpec spec = shell("seq 100000; seq 100000 >&2");
  spec.stdout_max = 1U << 20U;
  const ProcessEnd end = run(spec);
  EXPECT_TRUE(end.out.is_whole());
  EXPECT_EQ(end.out.head.size(), 588'895U);
  EXPECT_FALSE(end.err.is_whole()) << "of stdout, not of stderr";
}

TEST_F(ExecProcess, ClosingEverythingIsNotTheEnd) {
  const ProcessEnd end = run(shell("exec <&- >&- 2>&-; sleep 0.05; exit 6"));
  EXPECT_EQ(end.exit_code, 6);
}

TEST_F(ExecProcess, SecretsAreMaskedWhereverTheyAreCut) {
  ProcessSpec spec = shell("printf 'my pass'; sleep 0.05; printf 'word.'; printf pass >&2");
  spec.secrets = std::make_shared<const SecretTable>(std::vector<std::string>{"password", "1234"});
  spec.log_file = path("log");
  spec.stdout_file = path("whole");
  const ProcessEnd end = run(spec);
  EXPECT_EQ(end.out.text(), "my ***.");
  EXPECT_EQ(end.err.text(), "pass");
  EXPECT_EQ(content_of("log").size(), 11U);
  EXPECT_EQ(content_of("log").find("word"), std::string::npos);
  EXPECT_EQ(content_of("whole"), "my password.");
}

TEST_F(ExecProcess, TheLogIsMadeWithTheFirstByte) {
  ProcessSpec spec = command({"true"});
  spec.log_file = path("folder/log");
  EXPECT_EQ(run(spec).exit_code, 0);
  EXPECT_FALSE(fs::exists(path("folder")));
}

TEST_F(ExecProcess, ALogThatCannotBeWrittenDisturbsNobody) {
  ProcessSpec spec = shell("seq 1000; exit 2");
  spec.log_file = write("file", "") + "/log";
  ProcessEnd end = run(spec);
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.log_problem, "the file \"" + path("file") + "/log\" could not be opened: Not a directory");
  spec.log_file = "/dev/full";
  end = run(spec);
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_EQ(end.out.size, 3893U);
  EXPECT_EQ(end.log_problem, "the file \"/dev/full\" could not be written: No space left on device");
}

TEST_F(ExecProcess, ShortOutputNeedsNoFile) {
  ProcessSpec spec = shell("head -c 131072 /dev/zero");
  spec.stdout_file = path("whole");
  ProcessEnd end = run(spec);
  EXPECT_TRUE(end.out.is_whole());
  EXPECT_FALSE(end.kept_stdout);
  EXPECT_FALSE(fs::exists(path("whole")));
  spec = shell("head -c 131073 /dev/zero");
  spec.stdout_file = path("whole");
  end = run(spec);
  ASSERT_TRUE(end.kept_stdout);
  EXPECT_EQ(end.kept_stdout->bytes, 131'073U);
  EXPECT_TRUE(check(path("whole"), *end.kept_stdout));
  EXPECT_EQ(fs::status(path("whole")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  fs::resize_file(path("whole"), 0);
  EXPECT_FALSE(check(path("whole"), *end.kept_stdout));
}

TEST_F(ExecProcess, OutputThatCannotBeKeptIsToldAtTheEnd) {
  ProcessSpec spec = shell("seq 100000");
  spec.stdout_file = "/dev/full";
  ProcessEnd end = run(spec);
  EXPECT_EQ(end.exit_code, 0) << "the command is not disturbed";
  EXPECT_FALSE(end.kept_stdout);
  EXPECT_EQ(end.stdout_problem, "the file \"/dev/full\" could not be written: No space left on device");
  spec.stdout_file = folder_.string();
  end = run(spec);
  EXPECT_EQ(end.stdout_problem, "the file \"" + folder_.string() + "\" could not be opened: Is a directory");
}

// Our stderr, as a pipe that the test reads or does not.
class StderrPipe {
 public:
  StderrPipe() : saved_{::dup(STDERR_FILENO)} {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    reader_ = ends[0];
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
  }
  ~StderrPipe() {
    restore();
    ::close(reader_);
  }
  void restore() {
    if (saved_ >= 0) ::dup2(saved_, STDERR_FILENO);
    if (saved_ >= 0) ::close(std::exchange(saved_, -1));
  }
  std::string read(std::size_t size) {
    std::string text(size, '\0');
    std::size_t done = 0;
    while (done < size) {
      const ssize_t count = ::read(reader_, text.data() + done, size - done);
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    text.resize(done);
    return text;
  }

 private:
  int saved_;
  int reader_ = -1;
};

TEST_F(ExecProcess, StderrGoesThroughToOurs) {
  StderrPipe pipe;
  ProcessRunner runner{{}};
  ProcessSpec spec = shell("echo out; echo seen >&2");
  spec.stderr_through = true;
  const ProcessEnd end = Started{runner, spec}.end();
  EXPECT_EQ(pipe.read(5), "seen\n");
  EXPECT_EQ(end.err.text(), "seen\n");
}

TEST_F(ExecProcess, AStderrThatNobodyReadsHoldsUpOnlyThatCommand) {
  StderrPipe pipe;
  ProcessRunner runner{{}};
  ProcessSpec spec = shell("seq 200000 >&2");
  spec.stderr_through = true;
  spec.stdout_max = 0;
  spec.keep_head = 2U << 20U;
  Started held_up{runner, spec};
  Started canceled{runner, spec};
  for (int count = 0; count < 20; ++count) EXPECT_EQ(Started(runner, shell("sleep 0.01")).end().exit_code, 0);
  EXPECT_FALSE(held_up.is_over());
  runner.cancel(canceled.ticket());
  EXPECT_TRUE(canceled.end().canceled);
  std::thread reader{[&] { pipe.read(64U << 20U); }};
  const ProcessEnd end = held_up.end();
  pipe.restore();
  reader.join();
  EXPECT_EQ(end.err.head.size(), 1'288'895U);
  EXPECT_EQ(end.exit_code, 0);
}

// ---- Many ----------------------------------------

TEST_F(ExecProcess, CallbacksThatThrowDisturbNobody) {
  HandEnv env;
  ProcessRunner runner{{.env = &env}};
  runner.start(
      command({"echo"}), [](ProcessEnd&&) { throw std::runtime_error{"no"}; }, [] { throw 1; });
  EXPECT_TRUE(comes_true([&] { return env.warnings == 2; }));
  EXPECT_EQ(Started(runner, command({"true"})).end().exit_code, 0);
}

TEST_F(ExecProcess, EveryOneOfManyIsAnsweredOnce) {
  constexpr int threads = 4;
  constexpr int each = 60;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int, int> answers;
  int wrong = 0;
  {
    ProcessRunner runner{{}};
    std::vector<std::thread> starters;
    for (int thread = 0; thread < threads; ++thread) {
      starters.emplace_back([&, thread] {
        for (int number = thread * each; number < (thread + 1) * each; ++number) {
          ProcessSpec spec = shell("echo " + std::to_string(number) + "; exit " + std::to_string(number % 100));
          spec.timeout = patience;
          const auto ticket = runner.start(std::move(spec), [&, number](ProcessEnd&& end) {
            const std::lock_guard lock{mutex};
            ++answers[number];
            const bool is_right = end.exit_code == number % 100 && end.out.head == std::to_string(number) + "\n";
            if (!is_right && !end.canceled) ++wrong;
            changed.notify_one();
          });
          if (number % 7 == 0) runner.cancel(ticket);
        }
      });
    }
    for (std::thread& starter : starters) starter.join();
    std::unique_lock lock{mutex};
    EXPECT_TRUE(changed.wait_for(lock, patience, [&] { return answers.size() == threads * each; }));
  }
  for (const auto& [number, count] : answers) EXPECT_EQ(count, 1) << number;
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(has_no_children());
}

}  // namespace
}  // namespace reprise::exec
