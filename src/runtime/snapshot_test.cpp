// Looking at a store: while its owner writes, after the owner was killed, and when there is nothing to see.
#include "runtime/snapshot.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "store/sqlite/connection.hpp"
#include "support/run_program.hpp"

namespace reprise::runtime {
namespace {

using testing_support::TemporaryDirectory;
using namespace std::chrono_literals;

class RuntimeSnapshot : public ::testing::Test {
 protected:
  EngineSettings settings() const { return {.store = url_, .threads = 2}; }

  static Policy quick(std::uint64_t attempts) {
    Policy policy;
    policy.max_attempts = attempts;
    policy.initial = 1ms;
    policy.max = 2ms;
    return policy;
  }

  // "fine", "flaky" (works the third time) and "broken" (never).
  static void add_handlers(Engine& engine) {
    ASSERT_TRUE(engine.handle("fine", [](std::string_view input) { return std::string{input}; }));
    ASSERT_TRUE(engine.handle("flaky",
                              [](Work& work) -> std::expected<std::string, Failure> {
                                if (work.attempt() < 3)
                                  return std::unexpected{Failure{.type = "TimeoutError", .message = "no answer"}};
                                return "done";
                              },
                              {.retry = quick(5)}));
    ASSERT_TRUE(engine.handle("broken",
                              [](Work&) -> std::expected<std::string, Failure> {
                                return std::unexpected{
                                    Failure{.type = "ValueError", .message = "bad input", .permanent = true}};
                              },
                              {.retry = quick(3)}));
  }

  static void expect_prefix(const std::vector<Event>& events) {
    for (std::size_t index = 0; index < events.size(); ++index) ASSERT_EQ(events[index].sequence, index + 1);
    ASSERT_FALSE(events.empty());
    ASSERT_EQ(events.front().type, EventType::submitted);
  }

  ErrorCode refusal(std::string_view url, std::string_view part_of_message) const {
    const auto snapshot = Snapshot::open(url);
    EXPECT_FALSE(snapshot);
    if (snapshot) return ErrorCode::full;
    EXPECT_NE(snapshot.error().message.find(part_of_message), std::string::npos) << snapshot.error().message;
    return snapshot.error().code;
  }

  TemporaryDirectory folder_;
  std::string path_ = folder_.path() + "/runs.db";
  std::string url_ = "sqlite:" + path_;
};

TEST_F(RuntimeSnapshot, SeesWhatHappenedAfterTheEngineHasStopped) {
  RunId fine;
  RunId flaky;
  RunId broken;
  {
    Engine engine{settings()};
    add_handlers(engine);
    fine = engine.submit({.handler = "fine", .input = std::string(10'000, 'x'), .key = "one"}).value();
    flaky = engine.submit({.handler = "flaky", .input = "in"}).value();
    broken = engine.submit({.handler = "broken"}).value();
    for (const RunId& run : {fine, flaky, broken}) ASSERT_TRUE(engine.wait(run, 60s));
  }
  auto snapshot = Snapshot::open(url_);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  const auto page = snapshot->find({});
  ASSERT_TRUE(page);
  ASSERT_EQ(page->runs.size(), 3U);
  EXPECT_EQ(page->runs[0].id, broken);
  EXPECT_EQ(page->runs[2].id, fine);
  EXPECT_EQ(page->runs[2].key, "one");
  EXPECT_TRUE(page->cursor.empty());

  const auto large = snapshot->run(fine);
  ASSERT_TRUE(large && *large);
  EXPECT_EQ((*large)->outcome.status, RunStatus::succeeded);
  EXPECT_EQ((*large)->outcome.output, std::string(10'000, 'x'));
  EXPECT_EQ((*large)->input.size(), 10'000U);
  const auto view = snapshot->run(flaky);
  ASSERT_TRUE(view && *view);
  EXPECT_EQ((*view)->outcome.attempts, 3U);
  ASSERT_EQ((*view)->steps.size(), 1U);
  EXPECT_EQ((*view)->steps[0].status, core::StepStatus::succeeded);
  EXPECT_EQ((*view)->plan->steps[0].policy.max_attempts, 5U);
  EXPECT_EQ((*view)->input, "in");
  const auto events = snapshot->events(flaky);
  ASSERT_TRUE(events);
  expect_prefix(*events);
  EXPECT_EQ(events->size(), 10U);  // submitted, three attempts with two waits, ended
  EXPECT_EQ(events->back().type, EventType::ended);
  const auto submitted = snapshot->events(fine);
  ASSERT_TRUE(submitted);
  EXPECT_EQ(snapshot->payload(fine, submitted->front().output).value_or(""), std::string(10'000, 'x'));
  EXPECT_FALSE(*snapshot->run(RunId{}));
}

TEST_F(RuntimeSnapshot, ShowsTheDeadlineAndThePolicyThatARunHasForItself) {
  RunId own;
  RunId plain;
  {
    Engine engine{{.store = url_}};
    ASSERT_TRUE(engine.handle("fine", [] {}));
    own = engine.submit({.handler = "fine", .retry = policy::patient, .deadline = 3h}).value();
    plain = engine.submit({.handler = "fine"}).value();
    for (const RunId& run : {own, plain}) ASSERT_TRUE(engine.wait(run, 60s));
  }
  auto snapshot = Snapshot::open(url_);
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  const auto view = snapshot->run(own);
  ASSERT_TRUE(view && *view);
  EXPECT_EQ((*view)->plan->deadline, Duration{3h}.count());
  EXPECT_EQ((*view)->plan->steps[0].policy, policy::patient);
  EXPECT_EQ((*view)->plan->steps[0].level, PolicyLevel::work_item);
  const auto replayed = snapshot->replay(own);
  ASSERT_TRUE(replayed);
  EXPECT_TRUE(replayed->is_same);
  EXPECT_EQ(replayed->view.plan->deadline, Duration{3h}.count());
  const auto other = snapshot->run(plain);
  ASSERT_TRUE(other && *other);
  EXPECT_EQ((*other)->plan->deadline, 0);
  EXPECT_EQ((*other)->plan->steps[0].policy, policy::tool);
}

TEST_F(RuntimeSnapshot, ResolvesNames) {
  RunId first;
  RunId failed;
  RunId last;
  {
    Engine engine{settings()};
    add_handlers(engine);
    first = engine.submit({.handler = "fine"}).value();
    failed = engine.submit({.handler = "broken"}).value();
    last = engine.submit({.handler = "fine"}).value();
    for (const RunId& run : {first, failed, last}) ASSERT_TRUE(engine.wait(run, 60s));
  }
  auto snapshot = Snapshot::open(url_);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->resolve("@last").value_or(RunId{}), last);
  EXPECT_EQ(snapshot->resolve("@last-failed").value_or(RunId{}), failed);
  EXPECT_EQ(snapshot->resolve(to_string(first)).value_or(RunId{}), first);
  EXPECT_EQ(snapshot->resolve(to_string(first).substr(0, 35)).value_or(RunId{}), first);
  EXPECT_EQ(snapshot->resolve(to_string(first).substr(0, 4)).error().code, ErrorCode::invalid);
  for (const std::string_view missing :
       {"", "abc", "@lost", "ffff-", "019g1234", "ffff", "00000000", "7fffffff-ffff-7000-8000-000000000001"})
    EXPECT_EQ(snapshot->resolve(missing).error().code, ErrorCode::not_found) << missing;
}

TEST_F(RuntimeSnapshot, EveryMomentOfALivingStoreFitsTogether) {
  constexpr int runs = 150;
  Engine engine{settings()};
  add_handlers(engine);
  std::atomic<bool> submitting = true;
  std::vector<RunId> ids(runs);
  std::jthread writer{[&] {
    const char* const handlers[] = {"fine", "flaky", "broken"};
    for (int index = 0; index < runs; ++index)
      ids[static_cast<std::size_t>(index)] = engine.submit({.handler = handlers[index % 3], .input = "x"}).value();
    submitting = false;
  }};
  std::map<RunId, std::size_t> seen;
  int looks = 0;
  bool has_looked_while_writing = false;
  for (bool last = false; !last;) {
    last = !submitting;
    has_looked_while_writing = has_looked_while_writing || !last;
    auto snapshot = Snapshot::open(url_);
    if (!snapshot && snapshot.error().code == ErrorCode::not_found) continue;  // not even the first commit
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    const auto page = snapshot->find({.limit = 1000});
    ASSERT_TRUE(page) << page.error().message;
    ++looks;
    for (const RunInfo& run : page->runs) {
      const auto events = snapshot->events(run.id);
      ASSERT_TRUE(events) << events.error().message;
      expect_prefix(*events);
      EXPECT_EQ(events->back().type == EventType::ended, !is_open(run.status));
      EXPECT_GE(events->size(), seen[run.id]);
      seen[run.id] = events->size();
    }
  }
  writer.join();
  EXPECT_TRUE(has_looked_while_writing);
  EXPECT_GT(looks, 0);
  for (const RunId& run : ids) ASSERT_TRUE(engine.wait(run, 60s));
  auto snapshot = Snapshot::open(url_);
  ASSERT_TRUE(snapshot);
  for (const RunId& run : ids) {
    const auto view = snapshot->run(run);
    ASSERT_TRUE(view && *view);
    EXPECT_EQ((*view)->outcome, engine.result(run).value());
    EXPECT_EQ((*view)->info, engine.info(run).value());
    EXPECT_EQ(snapshot->events(run).value(), engine.events(run).value());
  }
}

TEST_F(RuntimeSnapshot, ShowsARunAtOneMomentHoweverTheStoreGoesOn) {
  Engine engine{settings()};
  add_handlers(engine);
  const RunId run = engine.submit({.handler = "fine", .delay = 1h}).value();
  auto snapshot = Snapshot::open(url_);
  ASSERT_TRUE(snapshot);
  const std::uint64_t sequence = snapshot->run(run).value()->sequence;
  ASSERT_TRUE(engine.cancel(run, "enough"));
  ASSERT_TRUE(engine.wait(run, 60s));
  EXPECT_EQ(snapshot->run(run).value()->info.status, RunStatus::running);
  EXPECT_EQ(snapshot->events(run).value().size(), sequence);
  EXPECT_TRUE(snapshot->replay(run).value().is_same);
  EXPECT_GT(Snapshot::open(url_)->events(run).value().size(), sequence);
}

// Plans and rows that are younger than the snapshot are found when they are asked for.
TEST_F(RuntimeSnapshot, FindsWhatCameLater) {
  Engine engine{settings()};
  add_handlers(engine);
  ASSERT_TRUE(engine.wait(engine.submit({.handler = "fine"}).value(), 60s));
  auto snapshot = Snapshot::open(url_);
  ASSERT_TRUE(snapshot);
  const RunId later = engine.submit({.handler = "flaky"}).value();
  ASSERT_TRUE(engine.wait(later, 60s));
  const auto page = snapshot->find({});
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->runs.size(), 2U);
  EXPECT_EQ(page->runs.front().name, "flaky");
  expect_prefix(snapshot->events(later).value());
  EXPECT_TRUE(snapshot->dead_letters({}, 10));
  EXPECT_EQ(snapshot->find({})->runs.size(), 2U) << "also the one that was visited";
  ASSERT_TRUE(engine.remove(later));
  EXPECT_EQ(snapshot->events(later).error().code, ErrorCode::not_found) << "it is gone, not damaged";
}

TEST_F(RuntimeSnapshot, FindsByStatusNameAndTimePageByPage) {
  {
    Engine engine{settings()};
    add_handlers(engine);
    std::vector<Task> tasks;
    for (int index = 0; index < 30; ++index) tasks.push_back({.handler = index % 3 == 0 ? "broken" : "fine"});
    const auto ids = engine.submit_all(std::move(tasks));
    ASSERT_TRUE(ids);
    for (const RunId& run : *ids) ASSERT_TRUE(engine.wait(run, 60s));
    ASSERT_TRUE(engine.submit({.handler = "fine", .delay = 1h}));
  }
  auto snapshot = Snapshot::open(url_);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->find({.status = RunStatus::failed})->runs.size(), 10U);
  EXPECT_EQ(snapshot->find({.status = RunStatus::running})->runs.size(), 1U);
  EXPECT_EQ(snapshot->find({.name = "fine"})->runs.size(), 21U);
  EXPECT_TRUE(snapshot->find({.created_before = WallTime{}})->runs.empty());
  std::set<RunId> all;
  std::string cursor;
  int pages = 0;
  do {
    const auto page = snapshot->find({.name = "fine", .limit = 4}, cursor);
    ASSERT_TRUE(page);
    EXPECT_LE(page->runs.size(), 4U);
    for (const RunInfo& run : page->runs) EXPECT_TRUE(all.insert(run.id).second);
    cursor = page->cursor;
  } while (!cursor.empty() && ++pages < 100);
  EXPECT_EQ(all.size(), 21U);
  EXPECT_EQ(snapshot->find({}, "x").error().code, ErrorCode::invalid);
}

TEST_F(RuntimeSnapshot, GivesEachItemItsInput) {
  RunId task;
  RunId flow;
  {
    Engine engine{settings()};
    add_handlers(engine);
    ASSERT_TRUE(engine.handle("list", [] { return encode_list(std::vector<std::string>{"a", "b", "c"}); }));
    ASSERT_TRUE(engine.flow({.name = "each",
                             .steps = {{.name = "list", .handler = "list"},
                                       {.name = "do", .handler = "fine", .needs = {"list"}, .for_each = "list"}}}));
    task = engine.submit({.handler = "fine", .items = {"eins", "zwei"}}).value();
    flow = engine.submit({.flow = "each", .input = "all"}).value();
    for (const RunId& run : {task, flow}) ASSERT_TRUE(engine.wait(run, 60s));
  }
  auto snapshot = Snapshot::open(url_);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->item_input(task, "fine", 1).value_or("?"), "zwei");
  EXPECT_EQ(snapshot->item_input(flow, "do", 2).value_or("?"), "c");
  EXPECT_EQ(snapshot->item_input(flow, "list", 0).value_or("?"), "all");
  EXPECT_EQ(snapshot->item_input(flow, "do", 3).error().code, ErrorCode::not_found);
  EXPECT_EQ(snapshot->item_input(flow, "nothing", 0).error().code, ErrorCode::not_found);
}

TEST_F(RuntimeSnapshot, SeesWhatAKilledOwnerHadRecorded) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // dies in the middle of an attempt
    Engine engine{settings()};
    (void)engine.handle("fatal", [](Work&) -> std::string {
      kill(getpid(), SIGKILL);
      return "";
    });
    const auto run = engine.submit({.handler = "fatal", .input = "last words"});
    if (run) (void)engine.wait(*run, 60s);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  for (int look = 0; look < 2; ++look) {  // the first look changes nothing for the second
    auto snapshot = Snapshot::open(url_);
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    const auto id = snapshot->resolve("@last");
    ASSERT_TRUE(id) << id.error().message;
    const auto view = snapshot->run(*id);
    ASSERT_TRUE(view && *view);
    EXPECT_EQ((*view)->input, "last words");
    EXPECT_EQ((*view)->info.status, RunStatus::running);
    EXPECT_EQ((*view)->steps[0].running, 1U);
    expect_prefix(snapshot->events(*id).value());
  }
}

TEST_F(RuntimeSnapshot, RefusesWhatIsNoStore) {
  EXPECT_EQ(refusal(url_, "there is no such file"), ErrorCode::not_found);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_EQ(refusal("memory:", "nobody else can look"), ErrorCode::invalid);
  EXPECT_EQ(refusal("sqlite:" + folder_.path(), "it is a folder"), ErrorCode::invalid);
  EXPECT_EQ(refusal("mysql:x", "no kind of store"), ErrorCode::invalid);
  folder_.write("empty.db", "");
  EXPECT_EQ(refusal(folder_.path() + "/empty.db", "nothing has been stored"), ErrorCode::not_found);
  folder_.write("text.db", std::string(5000, 'x'));
  EXPECT_EQ(refusal(folder_.path() + "/text.db", "damaged or not a store"), ErrorCode::store_damaged);
}

TEST_F(RuntimeSnapshot, RefusesANewerStoreAndLeavesItAlone) {
  { Engine engine{settings()}; }
  {
    auto connection = store::sqlite::Connection::open(path_, store::sqlite::Access::write, "");
    ASSERT_TRUE(connection->execute("UPDATE meta SET value = 99 WHERE key = 'version'", "change"));
  }
  EXPECT_EQ(refusal(url_, "version 99"), ErrorCode::store_newer);
}

TEST_F(RuntimeSnapshot, SaysWhatIsMissingInAFolderThatCannotBeWritten) {
  { Engine engine{settings()}; }
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);  // as its user lets others look
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
  const pid_t child = fork();
  if (child == 0) {  // as somebody whom permissions bind
    if (getuid() == 0 && setuid(65534) != 0) _exit(2);
    const auto snapshot = Snapshot::open(url_);
    const bool right = !snapshot && snapshot.error().code == ErrorCode::store_read_only &&
                       snapshot.error().message.find("-shm") != std::string::npos;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  chmod(folder_.path().c_str(), 0755);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace reprise::runtime
