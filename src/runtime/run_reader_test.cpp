// Looking at runs: the live engine and the stored state say the same, and the engine is never behind what was acknowledged.
#include "runtime/run_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "runtime/live_reader.hpp"
#include "runtime/snapshot.hpp"
#include "support/run_program.hpp"

namespace reprise::runtime {
namespace {

using testing_support::TemporaryDirectory;
using namespace std::chrono_literals;

const Failure no_answer{.type = "TimeoutError", .message = "no answer", .evidence = std::string(2000, 'e')};

class RuntimeRunReader : public ::testing::Test {
 protected:
  // A run of every kind: well, badly, with a list and dead letters, waiting for its retry, waiting for its time.
  void fill(Engine& engine) {
    ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
    ASSERT_TRUE(engine.handle("pick",
                              [](Work& work) -> std::expected<std::string, Failure> {
                                if (work.input() == "b") return std::unexpected{no_answer};
                                return std::string{work.input()};
                              },
                              {.retry = Policy{.max_attempts = 2, .initial = 1ms, .max = 1ms}}));
    ASSERT_TRUE(
        engine.handle("late", [](Work&) -> std::expected<std::string, Failure> { return std::unexpected{no_answer}; },
                      {.retry = Policy{.max_attempts = 9, .initial = 24h, .max = 24h, .jitter = Jitter::none}}));
    ASSERT_TRUE(engine.handle("list", [] { return encode_list(std::vector<std::string>{"a", "b", "c"}); }));
    ASSERT_TRUE(engine.flow({.name = "letters",
                             .steps = {{.name = "list", .handler = "list"},
                                       {.name = "each",
                                        .handler = "pick",
                                        .needs = {"list"},
                                        .for_each = "list",
                                        .on_failure = OnFailure::dead_letter}}}));
    large_ = engine.submit({.handler = "echo", .input = std::string(10'000, 'x'), .key = "one"}).value();
    letters_ = engine.submit({.flow = "letters", .labels = {{"team", "b"}}}).value();
    items_ = engine.submit({.handler = "pick", .items = {"a", "b"}}).value();
    for (const RunId& run : {large_, letters_, items_}) ASSERT_TRUE(engine.wait(run, 60s));
    waiting_ = engine.submit({.handler = "late", .input = "in", .labels = {{"team", "a"}}, .queue = "slow"}).value();
    Events events = engine.subscribe({.run = waiting_});
    while (events.next(60s).value().type != EventType::retrying) continue;
    delayed_ = engine.submit({.handler = "echo", .delay = 24h}).value();
  }

  std::vector<RunId> all() const { return {delayed_, waiting_, items_, letters_, large_}; }

  TemporaryDirectory folder_;
  std::string url_ = "sqlite:" + folder_.path() + "/runs.db";
  RunId large_, letters_, items_, waiting_, delayed_;
};

std::vector<std::string> items_of(RunReader& reader, const RunId& run) {
  std::vector<std::string> items;
  EXPECT_TRUE(reader.each_item(run, [&](const ItemView& item) {
    items.push_back(std::string{item.step} + "[" + std::to_string(item.item) + "] " +
                    std::to_string(static_cast<int>(item.status)) + " " + std::to_string(item.attempts) + " " +
                    (item.failure != nullptr ? item.failure->message : "") + (item.dead_letter ? " letter" : ""));
    return true;
  }));
  return items;
}

std::vector<std::string> letters_of(const std::expected<std::vector<DeadLetter>, Error>& letters) {
  std::vector<std::string> words;
  if (!letters) return {letters.error().message};
  for (const DeadLetter& letter : *letters)
    words.push_back(to_string(letter.run) + letter.flow + letter.step + std::to_string(letter.item) + " " +
                    std::to_string(letter.attempts) + letter.failure.message);
  return words;
}

std::vector<std::string> events_of(RunReader& reader, const RunId& run) {
  std::vector<std::string> lines;
  EXPECT_TRUE(reader.each_event(run, [&](Event&& event) {
    if (event.failure) reader.add_evidence(run, *event.failure);
    lines.push_back(to_json(event));
    return true;
  }));
  return lines;
}

void expect_same_view(RunReader& left, RunReader& right, const RunId& run) {
  const auto one = left.run(run);
  const auto other = right.run(run);
  ASSERT_TRUE(one && *one && other && *other) << to_string(run);
  EXPECT_EQ((*one)->info, (*other)->info);
  EXPECT_EQ((*one)->outcome, (*other)->outcome);
  EXPECT_EQ((*one)->input, (*other)->input);
  EXPECT_EQ((*one)->sequence, (*other)->sequence);
  ASSERT_EQ((*one)->steps.size(), (*other)->steps.size());
  for (std::size_t step = 0; step < (*one)->steps.size(); ++step) {
    EXPECT_EQ((*one)->steps[step].status, (*other)->steps[step].status);
    EXPECT_EQ((*one)->steps[step].succeeded, (*other)->steps[step].succeeded);
    EXPECT_EQ((*one)->steps[step].failed, (*other)->steps[step].failed);
  }
  EXPECT_EQ(events_of(left, run), events_of(right, run));
  EXPECT_EQ(items_of(left, run), items_of(right, run));
  EXPECT_EQ(letters_of(left.dead_letters_of(run, 10)), letters_of(right.dead_letters_of(run, 10)));
  const auto replayed = left.replay(run);
  ASSERT_TRUE(replayed) << replayed.error().message;
  EXPECT_TRUE(replayed->is_same);
}

TEST_F(RuntimeRunReader, the_live_engine_and_the_stored_state_say_the_same) {
  Engine engine{{.store = url_, .threads = 2}};
  fill(engine);
  LiveReader live{engine};
  auto stored = Snapshot::open(url_);
  ASSERT_TRUE(stored) << stored.error().message;
  for (const RunId& run : all()) expect_same_view(live, *stored, run);
  EXPECT_EQ(letters_of(live.dead_letters(10)), letters_of(stored->dead_letters(10)));
  EXPECT_EQ(letters_of(live.dead_letters(10)).size(), 1U);
  EXPECT_EQ(live.item_input(letters_, "each", 1).value_or(""), "b");
  EXPECT_EQ(stored->item_input(letters_, "each", 1).value_or(""), "b");
  EXPECT_EQ(live.item_input(letters_, "each", 3).error().code, ErrorCode::not_found);
  for (RunReader* const reader : std::initializer_list<RunReader*>{&live, &*stored}) {
    EXPECT_EQ(reader->find_key("one").value().value(), large_);
    EXPECT_FALSE(reader->find_key("two").value());
    EXPECT_EQ(reader->resolve("@last").value(), delayed_);
    EXPECT_EQ(reader->resolve(to_string(items_)).value(), items_);
    EXPECT_EQ(reader->resolve("@last-failed").value(), items_);
    EXPECT_FALSE(reader->run(RunId{}).value());
    EXPECT_EQ(reader->each_event(RunId{}, [](Event&&) { return true; }).error().code, ErrorCode::not_found);
    EXPECT_EQ(reader->each_item(RunId{}, [](const ItemView&) { return true; }).error().code, ErrorCode::not_found);
  }
}

TEST_F(RuntimeRunReader, lists_are_the_same_page_by_page_with_details_and_without) {
  Engine engine{{.store = url_, .threads = 2}};
  fill(engine);
  LiveReader live{engine};
  auto stored = Snapshot::open(url_);
  ASSERT_TRUE(stored);
  for (RunReader* const reader : std::initializer_list<RunReader*>{&live, &*stored}) {
    for (const std::size_t limit : {1U, 2U, 100U}) {
      std::vector<RunId> found;
      std::string cursor;
      do {
        const auto page = reader->find({.limit = limit}, cursor);
        ASSERT_TRUE(page);
        EXPECT_LE(page->runs.size(), limit);
        for (const RunInfo& run : page->runs) found.push_back(run.id);
        cursor = page->cursor;
      } while (!cursor.empty());
      EXPECT_EQ(found, all());
    }
    const auto named = reader->find({.name = "pick", .limit = 1});
    ASSERT_EQ(named->runs.size(), 1U) << "a page is full unless it is the last";
    const auto details = reader->find({.details = true});
    for (const RunInfo& run : details->runs) EXPECT_NE(run.changed, WallTime{});
    EXPECT_EQ(details->runs[1].attributes.labels, (Labels{{"team", "a"}}));
    EXPECT_EQ(details->runs[1].attributes.queue, "slow");
    EXPECT_EQ(details->runs[3].attributes.labels, (Labels{{"team", "b"}}));
    EXPECT_EQ(details->runs[4].attributes, RunAttributes{});
    EXPECT_FALSE(reader->find({}, "nonsense"));
  }
  EXPECT_EQ(engine.find({.limit = 2})->runs.size(), 2U);
}

// What was acknowledged is seen, however soon; also in a store that nobody else can look at.
TEST_F(RuntimeRunReader, the_engine_is_never_behind_what_it_acknowledged) {
  for (const std::string& url : {url_, std::string{"memory:"}}) {
    Engine engine{{.store = url, .threads = 2}};
    ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
    LiveReader live{engine};
    for (int count = 0; count < 50; ++count) {
      const RunId run = engine.submit({.handler = "echo", .input = std::string(5000, 'x'), .delay = 24h}).value();
      EXPECT_EQ(live.find({.limit = 1})->runs.at(0).id, run);
      ASSERT_TRUE(engine.cancel(run, "enough"));
      const auto view = live.run(run);
      ASSERT_TRUE(view && *view);
      EXPECT_EQ((*view)->info.status, RunStatus::canceled);
      EXPECT_EQ((*view)->input.size(), 5000U);
      EXPECT_EQ(live.events(run)->back().type, EventType::ended);
    }
  }
}

TEST_F(RuntimeRunReader, an_owner_reads_its_shard_from_its_engine_and_the_others_from_the_store) {
  Engine engine{{.store = url_, .threads = 2}};
  ASSERT_TRUE(engine.handle("echo", [](std::string_view input) { return std::string{input}; }));
  auto both = Snapshot::open(url_);
  ASSERT_TRUE(both);
  both->read_live(both->shards().front(), std::make_unique<LiveReader>(engine));
  const RunId run = engine.submit({.handler = "echo"}).value();
  EXPECT_EQ(both->find({})->runs.at(0).id, run) << "the stored state was copied before";
  EXPECT_TRUE(both->run(run).value());
}

}  // namespace
}  // namespace reprise::runtime
