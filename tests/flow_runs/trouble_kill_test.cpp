// kill -9 in the middle of runs, then `reprise resume`: nothing is lost, nothing that was recorded is done again, nobody survives.
//
// REPRISE_KILLS and REPRISE_KILL_ITEMS make the map longer and killed more often: `make torture` does.
#include <gtest/gtest.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "flow_runs/flow_run.hpp"
#include "flow_runs/processes.hpp"

namespace reprise::testing_support {
namespace {

std::size_t setting(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr && std::atol(text) > 0 ? static_cast<std::size_t>(std::atol(text)) : otherwise;
}

int attempt_of(const boost::json::object& event) { return static_cast<int>(number_of(event, "attempt")); }

// What the record and the files of the items say about one item.
struct ItemStory {
  int attempts = 0;       // started, or reserved when the kill came
  bool reserved = false;  // and it is not known to have begun
  std::set<int> lost;     // attempts that a kill has taken
  bool lost_reserved = false;  // the first of them was not known to have begun
  std::set<int> failed;   // attempts that failed by themselves
  std::set<int> effects;  // attempts that wrote their line
  int completed = 0;      // how often
  int completed_attempt = 0;
};

using Stories = std::map<int, ItemStory>;

// Adds what one event tells, and checks that it may come after those before.
void tell(ItemStory& story, const boost::json::object& event) {
  const std::string type = text_of(event, "type");
  if (type == "reserved") {
    EXPECT_EQ(story.attempts, flag_of(event, "withdrawn") ? 1 : 0) << boost::json::serialize(event);
    story.reserved = !flag_of(event, "withdrawn");
    story.attempts = story.reserved ? 1 : 0;
  } else if (type == "started") {
    EXPECT_EQ(story.completed, 0) << "a finished item was started again: " << boost::json::serialize(event);
    if (!std::exchange(story.reserved, false)) ++story.attempts;
    EXPECT_EQ(attempt_of(event), story.attempts) << "attempt numbers must go on: " << boost::json::serialize(event);
  } else if (type == "completed") {
    ++story.completed;
    story.completed_attempt = attempt_of(event);
  } else if (type == "failed") {
    (flag_of(event, "lost") ? story.lost : story.failed).insert(attempt_of(event));
    EXPECT_TRUE(!story.reserved || flag_of(event, "lost")) << boost::json::serialize(event);
    story.lost_reserved |= std::exchange(story.reserved, false);
  }
}

Stories stories_of(const FlowFolder& folder) {
  Stories stories;
  for (const boost::json::object& event : folder.events()) {
    if (text_of(event, "step") == "work") tell(stories[static_cast<int>(number_of(event, "item"))], event);
  }
  for (const std::string& line : folder.lines("done.txt")) {
    const std::size_t space = line.find(' ');
    ItemStory& story = stories[std::atoi(line.c_str())];
    const int attempt = std::atoi(line.c_str() + space + 1);
    EXPECT_TRUE(story.effects.insert(attempt).second) << "an attempt ran twice: item and attempt " << line;
  }
  return stories;
}

void expect_each_item_done_once(const Stories& stories, std::size_t items) {
  EXPECT_EQ(stories.size(), items);
  for (const auto& [item, story] : stories) {
    EXPECT_EQ(story.completed, 1) << "item " << item;
    EXPECT_EQ(story.completed_attempt, story.attempts) << "item " << item;
    EXPECT_TRUE(story.effects.contains(story.completed_attempt)) << "item " << item << " was not really done";
    for (const int attempt : story.effects) {
      const bool may_be = attempt == story.completed_attempt || story.lost.contains(attempt);
      EXPECT_TRUE(may_be) << "item " << item << " was done again after attempt " << attempt;
    }
    EXPECT_EQ(story.lost.size() + story.failed.size() + 1, static_cast<std::size_t>(story.attempts)) << "item " << item;
  }
}

std::string list_of(std::size_t items) {
  std::string list = "[0";
  for (std::size_t item = 1; item < items; ++item) list += "," + std::to_string(item);
  return list + "]";
}

// Kills what runs, and sees that it takes everything it has started with it.
void kill_and_look(const FlowFolder& folder, Child& running) {
  running.signal(SIGKILL);
  EXPECT_EQ(running.join(), 128 + SIGKILL);
  EXPECT_EQ(leftovers_in(folder.path()), "");
}

// Every tenth item fails at first, so that there are waits to be killed in.
constexpr std::string_view map_of_items = R"(
runtime: {limits: {worker_lost: 100}}  # the same item may be hit by each kill
steps:
  - id: work
    for_each: {file: items.json}
    max_parallel: 8
    retry: {max_attempts: unlimited, backoff: constant, initial: 20ms, max_elapsed: 10h}
    run: |
      case ${item}/$REPRISE_ATTEMPT in *0/1) exit 1 ;; esac
      echo ${item} $REPRISE_ATTEMPT >> done.txt
  - id: sum
    needs: work
    run: echo ${steps.work.succeeded} of ${steps.work.total}
)";

TEST(TroubleKill, MapIsKilledAgainAndAgain) {
  const std::size_t items = setting("REPRISE_KILL_ITEMS", 1000);
  const std::size_t kills = setting("REPRISE_KILLS", 5);
  FlowFolder folder;
  folder.write("items.json", list_of(items));
  auto running = folder.start({"run", folder.flow(map_of_items), "--progress", "quiet"});
  ASSERT_TRUE(folder.wait_for_file("done.txt"));
  for (std::size_t kill = 1; kill <= kills; ++kill) {
    const std::size_t enough = items * kill / (kills + 1);
    ASSERT_TRUE(
        eventually([&] { return folder.lines("done.txt").size() >= enough || reprise_in(folder.path()) == 0; }));
    kill_and_look(folder, *running);
    EXPECT_EQ(text_of(folder.show(), "status"), "running");
    running = folder.start({"resume", "@last", "--progress", "quiet"});
  }
  ASSERT_EQ(running->join(), 0) << folder.read("stderr.txt");
  const Stories stories = stories_of(folder);
  expect_each_item_done_once(stories, items);
  std::size_t lost = 0;
  std::size_t lost_reserved = 0;
  for (const auto& [item, story] : stories) {
    lost += story.lost.size();
    lost_reserved += story.lost_reserved ? 1 : 0;
  }
  EXPECT_EQ(number_of(folder.step("work"), "lost"), static_cast<double>(lost));
  EXPECT_LE(lost - lost_reserved, kills * 8) << "more were lost than could run at once";
  EXPECT_LE(lost, kills * 16) << "one is recorded ahead for each place";
  EXPECT_EQ(text_of(folder.last("completed", "sum"), "output"), std::to_string(items) + " of " + std::to_string(items));
  EXPECT_EQ(folder.count("recovered"), number_of(folder.show(), "recoveries"));
  EXPECT_EQ(folder.reprise({"replay", "@last"}).exit_code, 0);
  EXPECT_EQ(leftovers_in(folder.path()), "");
}

// As early as it can be hit: before and while the list is read. What was accepted goes on; what was not left nothing behind.
TEST(TroubleKill, BeginningOfARun) {
  FlowFolder folder;
  folder.write("items.json", list_of(50));
  folder.flow(map_of_items);
  for (int delay = 0; delay < 6; ++delay) {
    const auto running = folder.start({"run", "flow.yaml", "--id", "the same", "--progress", "quiet"});
    int looks = 0;
    ASSERT_TRUE(eventually([&] { return folder.exists(".reprise/reprise.db") && looks++ >= delay; }));
    running->signal(SIGKILL);
    running->join();
    EXPECT_EQ(leftovers_in(folder.path()), "");
  }
  const Outcome outcome = folder.reprise({"run", "flow.yaml", "--id", "the same"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_each_item_done_once(stories_of(folder), 50);
}

TEST(TroubleKill, AWaitKeepsItsDueTime) {
  FlowFolder folder;
  auto running = folder.start({"run", folder.flow(R"(
steps:
  - {id: a, run: "echo $REPRISE_ATTEMPT >> ran; test -e open", retry: {backoff: constant, initial: 1h, max: 1h, jitter: none}})")});
  ASSERT_TRUE(folder.wait_for_event("retrying", "a"));
  const std::string due = text_of(folder.last("retrying", "a"), "due_at");
  const auto due_now = [&] { return text_of(folder.show().at("failures").as_array().at(0).as_object(), "due_at"); };
  EXPECT_EQ(due_now(), due);
  for (int kill = 0; kill < 3; ++kill) {
    kill_and_look(folder, *running);
    EXPECT_EQ(due_now(), due);
    running = folder.start({"resume", "@last"});
    ASSERT_TRUE(
        eventually([&] { return folder.exists(".reprise/reprise.db-owner") && reprise_in(folder.path()) != 0; }));
    EXPECT_EQ(due_now(), due);
  }
  running->signal(SIGINT);
  EXPECT_EQ(running->join(), 130);
  EXPECT_EQ(folder.count("retrying"), 1U);
  EXPECT_EQ(folder.read("ran"), "1\n");
}

TEST(TroubleKill, AWaitThatIsOverWhileNobodyRunsIsNotEarly) {
  FlowFolder folder;
  auto running = folder.start({"run", folder.flow(R"(
steps:
  - {id: a, run: "test $REPRISE_ATTEMPT = 3", retry: {max_attempts: 3, backoff: constant, initial: 700ms, jitter: none}})")});
  ASSERT_TRUE(folder.wait_for_event("retrying", "a"));
  kill_and_look(folder, *running);
  EXPECT_EQ(folder.reprise({"resume", "@last"}).exit_code, 0);
  const Events waits = of_type(folder.events(), "retrying");
  const Events starts = of_type(folder.events(), "started");
  ASSERT_EQ(waits.size(), 2U);
  ASSERT_EQ(starts.size(), 3U);
  const auto moment = [](std::string time) {  // with or without decimals, comparable as text
    if (time.find('.') == std::string::npos) time.insert(time.size() - 1, ".");
    time.pop_back();
    return time.append(30 - time.size(), '0');
  };
  for (std::size_t retry = 0; retry < 2; ++retry)
    EXPECT_GE(moment(text_of(starts[retry + 1], "time")), moment(text_of(waits[retry], "due_at")));
}

TEST(TroubleKill, TheBreakerGoesOnCounting) {
  FlowFolder folder;
  auto running = folder.start({"run", folder.flow(R"(
classify: [{when: "exit:3", class: deterministic}]
steps:
  - id: a
    run: echo $REPRISE_ATTEMPT >> ran; exit 3
    circuit_breaker: {limit: 3}
    retry: {max_attempts: 10, only_on: [deterministic], backoff: constant, initial: 1500ms, jitter: none})")});
  ASSERT_TRUE(folder.wait_for_event("retrying", "a", 2));
  kill_and_look(folder, *running);
  const Outcome outcome = folder.reprise({"resume", "@last"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_EQ(folder.count("circuit_opened", "a"), 1U);
  EXPECT_EQ(text_of(folder.last("failed", "a"), "stop_reason"), "circuit_open");
  const Events failures = of_type(folder.events(), "failed");
  std::size_t counted = 0;
  for (const boost::json::object& failure : failures) counted += flag_of(failure, "lost") ? 0U : 1U;
  EXPECT_EQ(counted, 3U);
}

// The document lets no loss be made again, and why says so.
TEST(TroubleKill, ALostAttemptStopsAtTheLimitOfLosses) {
  FlowFolder folder;
  auto running = folder.start(
      {"run", folder.flow("runtime: {limits: {worker_lost: 0}}\nsteps: [{id: a, run: echo x >> ran; sleep 1000}]")});
  ASSERT_TRUE(folder.wait_for_file("ran", "x"));
  kill_and_look(folder, *running);
  const Outcome outcome = folder.reprise({"resume", "@last"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(flag_of(folder.last("failed", "a"), "lost"));
  EXPECT_EQ(folder.read("ran"), "x\n");
  EXPECT_NE(folder.why().find("lost"), std::string::npos) << folder.why();
}

// Children that ignore everything that can be ignored, and their children, go when reprise is killed.
TEST(TroubleKill, StubbornFamiliesDieToo) {
  FlowFolder folder;
  folder.program("stubborn.sh", R"(trap '' TERM INT HUP
(trap '' TERM INT HUP; (trap '' TERM INT HUP; echo x >> up; sleep 1000) & echo x >> up; sleep 1000) &
echo x >> up
while :; do sleep 1000; done)");
  auto running = folder.start({"run", folder.flow("steps: [{id: a, for_each: [1, 2, 3], argv: [stubborn.sh]}]")});
  ASSERT_TRUE(eventually([&] { return folder.lines("up").size() == 9; }));
  EXPECT_GE(processes_in(folder.path()).size(), 10U);  // the test can see them
  kill_and_look(folder, *running);
}

// ---- the guardian ----------------------------------------

constexpr std::string_view family = R"(
steps:
  - {id: a, run: "trap '' TERM; (trap '' TERM; echo x >> up; sleep 1000) & echo x >> up; while :; do sleep 1000; done"}
)";

// It has left our folder, and nobody else that we started has. Waits for one with another number than `before`; 0: none came.
pid_t guardian_in(const FlowFolder& folder, pid_t before = 0) {
  pid_t found = 0;
  eventually([&] {
    for (const LivingProcess& process : processes_in(folder.path())) {
      std::error_code gone;
      const bool has_left = std::filesystem::read_symlink("/proc/" + std::to_string(process.pid) + "/cwd", gone) == "/";
      if (has_left && process.pid != before) found = process.pid;
    }
    return found != 0;
  });
  return found;
}

// As `pkill -9 reprise` and `pkill -9 -f` do it: whoever has the name, in its own or in its command line.
TEST(TroubleKill, AllOfItsNameAtOnceLeaveNobodyBehind) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(family)});
  ASSERT_TRUE(eventually([&] { return folder.lines("up").size() == 2; }));
  ASSERT_NE(guardian_in(folder), 0);
  int killed = 0;
  for (const LivingProcess& process : processes_in(folder.path())) {
    if ((process.name + " " + process.command_line).find("reprise") == std::string::npos) continue;
    ::kill(process.pid, SIGKILL);
    ++killed;
  }
  EXPECT_EQ(killed, 1) << "only the engine itself";
  EXPECT_EQ(running->join(), 128 + SIGKILL);
  EXPECT_EQ(leftovers_in(folder.path()), "");
}

TEST(TroubleKill, AGuardianThatIsKilledIsReplaced) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow(family)});
  ASSERT_TRUE(eventually([&] { return folder.lines("up").size() == 2; }));
  const pid_t first = guardian_in(folder);
  ASSERT_NE(first, 0);
  ::kill(first, SIGKILL);
  ASSERT_NE(guardian_in(folder, first), 0);
  kill_and_look(folder, *running);
}

// Nobody is left to kill the group: the kernel kills the command itself.
TEST(TroubleKill, CommandsGoWhenEngineAndGuardianDoAtTheSameMoment) {
  FlowFolder folder;
  const auto running = folder.start({"run", folder.flow("steps: [{id: a, run: echo x >> up; exec sleep 1000}]")});
  ASSERT_TRUE(folder.wait_for_file("up", "x"));
  const pid_t guardian = guardian_in(folder);
  ASSERT_NE(guardian, 0);
  running->signal(SIGSTOP);  // or it would have another one before the second kill
  ::kill(guardian, SIGKILL);
  kill_and_look(folder, *running);
}

}  // namespace
}  // namespace reprise::testing_support
