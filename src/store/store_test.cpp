// The stores agree: whatever is written, the SQLite store answers every question as the memory store does.
#include "store/store.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "store/memory_store.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/power_loss_vfs.hpp"
#include "support/run_program.hpp"
#include "support/store_model.hpp"

namespace reprise::store {
namespace {

using testing_support::CommitSource;
using testing_support::expect_same;
using testing_support::PowerLossDisk;
using testing_support::TemporaryDirectory;

constexpr std::uint64_t secret = 0xfedc'ba98'7654'3210;

std::unique_ptr<Store> opened(const std::string& path, const std::string& vfs) {
  auto store = open_sqlite_store(path, {.vfs = vfs, .checkpoint_pages = 20, .secret = secret});
  EXPECT_TRUE(store) << store.error().message;
  return store ? std::move(*store) : nullptr;
}

// Commits, and now and then a reopening or a new process; all questions after each.
void compare_stores(std::uint64_t seed, std::uint64_t steps, const std::string& vfs) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/runs.db";
  CommitSource source{seed};
  const auto model = make_memory_store(secret);
  auto store = opened(path, vfs);
  for (std::uint64_t step = 0; store && step < steps && !::testing::Test::HasFailure(); ++step) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step));
    const Commit& commit = source.next();
    ASSERT_TRUE(model->append(commit));
    const auto appended = store->append(commit);
    ASSERT_TRUE(appended) << appended.error().message;
    expect_same(*model, *store, source.below(UINT64_MAX));
    if (source.below(20) == 0) {
      ASSERT_TRUE(store->reopen());
      expect_same(*model, *store, source.below(UINT64_MAX));
    }
    if (source.below(20) == 0) {
      store.reset();
      store = opened(path, vfs);
    }
  }
}

RC_GTEST_PROP(Store, sqlite_answers_as_memory_does, ()) {
  const auto seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>());
  const auto steps = *rc::gen::inRange<std::uint64_t>(1, 60);
  const PowerLossDisk disk{"store_test"};
  compare_stores(seed, steps, disk.vfs());
  RC_ASSERT(!::testing::Test::HasFailure());
}

TEST(Store, sqlite_answers_as_memory_does_for_long) {
  const PowerLossDisk disk{"store_test"};
  compare_stores(1, 600, disk.vfs());
}

TEST(Store, sqlite_answers_as_memory_does_on_the_real_disk) { compare_stores(2, 60, ""); }

class EachStore : public ::testing::TestWithParam<const char*> {
 protected:
  EachStore() {
    if (std::string_view{GetParam()} == "memory") {
      store_ = make_memory_store(secret);
    } else {
      store_ = opened(folder_.path() + "/runs.db", disk_.vfs());
    }
  }

  Image image(std::uint64_t run, std::uint64_t first_sequence, std::string_view events) {
    Image made;
    made.run = run;
    made.first_sequence = first_sequence;
    made.state = commit_.put("state");
    made.events = commit_.put(events);
    return made;
  }
  void append(std::uint64_t id) {
    commit_.id = id;
    const auto appended = store_->append(commit_);
    ASSERT_TRUE(appended) << appended.error().message;
    commit_.clear();
  }
  void expect_invalid(std::string_view part_of_message) {
    const auto appended = store_->append(commit_);
    ASSERT_FALSE(appended);
    EXPECT_EQ(appended.error().code, ErrorCode::invalid);
    EXPECT_NE(appended.error().message.find(part_of_message), std::string::npos) << appended.error().message;
    commit_.clear();
  }

  TemporaryDirectory folder_;
  PowerLossDisk disk_{"each_store"};
  std::unique_ptr<Store> store_;
  Commit commit_;
};
INSTANTIATE_TEST_SUITE_P(Store, EachStore, ::testing::Values("memory", "sqlite"));

TEST_P(EachStore, refuses_commits_out_of_order_and_goes_on) {
  append(1);
  commit_.id = 1;
  expect_invalid("cannot follow commit 1");
  commit_.id = 3;
  expect_invalid("cannot follow commit 1");
  commit_.id = 0;
  expect_invalid("cannot follow commit 1");
  append(2);
  EXPECT_EQ(store_->last_commit(), 2U);
}

TEST_P(EachStore, refuses_commits_that_contradict_themselves) {
  const auto refused = [&](std::string_view why, const auto& spoil) {
    commit_.id = 1;
    commit_.images.push_back(image(1, 1, "events"));
    spoil();
    expect_invalid(why);
  };
  refused("no run", [&] { commit_.images[0].run = 0; });
  refused("no run", [&] { commit_.images[0].run = UINT64_MAX; });
  refused("contradict", [&] { commit_.images[0].ended = 5; });
  refused("contradict", [&] { commit_.images[0].status = RunStatus::failed; });
  refused("unknown status", [&] { commit_.images[0].status = static_cast<RunStatus>(9); });
  refused("parked", [&] {
    commit_.images[0].status = RunStatus::failed;
    commit_.images[0].ended = 5;
    commit_.images[0].due = 6;
  });
  refused("before 1970", [&] { commit_.images[0].due = -1; });
  refused("outside", [&] { commit_.images[0].state = {1000, 1}; });
  refused("outside", [&] { commit_.images[0].key = {1, SIZE_MAX}; });
  refused("32 bytes", [&] { commit_.payloads.push_back({commit_.put("short"), {}, 1}); });
  refused("empty", [&] { commit_.keys.push_back({{}, 1}); });
  refused("future", [&] { commit_.cut = 2; });
  refused("removal", [&] { commit_.removals.push_back(0); });
  EXPECT_EQ(store_->last_commit(), 0U);
  EXPECT_EQ(store_->count_open(), 0U);
}

TEST_P(EachStore, refuses_events_twice_and_keeps_nothing_of_the_commit) {
  commit_.images = {image(1, 1, "a")};
  append(1);
  commit_.images = {image(1, 2, "b")};
  append(2);
  commit_.images = {image(7, 1, "x"), image(1, 2, "other")};
  commit_.id = 3;
  expect_invalid("already");
  EXPECT_FALSE(store_->read_run(7)->has_value());
  commit_.images = {image(1, 3, "c"), image(1, 3, "c")};
  commit_.id = 3;
  expect_invalid("already");
  commit_.images = {image(1, 3, "c")};
  append(3);
  std::string history;
  ASSERT_TRUE(store_->read_history(1, [&](std::uint64_t, std::string_view events) {
    history += events;
    return true;
  }));
  EXPECT_EQ(history, "abc");
}

TEST_P(EachStore, a_callback_may_read_too) {
  commit_.frame = commit_.put("frame");
  commit_.images = {image(1, 1, "a"), image(2, 1, "b")};
  append(1);
  std::string seen;
  ASSERT_TRUE(store_->read_journal([&](std::uint64_t, std::string_view) {
    return store_
        ->read_history(1,
                       [&](std::uint64_t, std::string_view) {
                         seen = store_->read_run(2)->value().state;
                         return true;
                       })
        .has_value();
  }));
  EXPECT_EQ(seen, "state");
}

TEST_P(EachStore, readers_see_whole_commits_during_appends) {
  std::atomic<bool> written{false};
  std::jthread writer{[&] {
    for (std::uint64_t id = 1; id <= 200; ++id) {
      commit_.id = id;
      for (std::uint64_t run = 1; run <= 10; ++run) {
        commit_.images.push_back(image(run, id, "e"));
        commit_.images.back().due = static_cast<Time>(1000 + id);
      }
      EXPECT_TRUE(store_->append(commit_));
      commit_.clear();
    }
    written = true;
  }};
  Time due = 0;
  for (bool last = false; !last;) {
    last = written;  // asked before reading: then the last reading sees everything
    const auto parked = store_->read_due(INT64_MAX, {}, 100);
    ASSERT_TRUE(parked);
    if (due == 0 && parked->empty()) continue;
    ASSERT_EQ(parked->size(), 10U);
    ASSERT_EQ(parked->front().due, parked->back().due);
    ASSERT_GE(parked->front().due, due) << "time goes forward";
    due = parked->front().due;
  }
  EXPECT_EQ(due, 1200);
}

TEST_P(EachStore, reads_during_a_reopening_end_or_are_refused) {
  const std::string hash(32, 'h');
  commit_.images = {image(1, 1, "events")};
  commit_.images.back().due = 1000;
  commit_.payloads.push_back({commit_.put(hash), commit_.put("body"), 1});
  append(1);
  std::atomic<bool> done = false;
  std::atomic<std::uint64_t> answered = 0;
  const auto check = [&](const auto& read, const auto& is_right) {
    if (!read) {
      EXPECT_EQ(read.error().code, ErrorCode::store_unavailable) << read.error().message;
      return;
    }
    EXPECT_TRUE(is_right(*read));
    ++answered;
  };
  std::vector<std::jthread> readers;
  for (int thread = 0; thread < 3; ++thread) {
    readers.emplace_back([&] {
      while (!done) {
        check(store_->read_payload(hash), [](const auto& body) { return body == "body"; });
        check(store_->read_due(INT64_MAX, {}, 10), [](const auto& rows) { return rows.size() == 1; });
        std::string history;
        const auto read = store_->read_history(1, [&](std::uint64_t, std::string_view events) {
          history = events;
          return true;
        });
        EXPECT_EQ(history, read ? "events" : history);
      }
    });
  }
  for (int times = 0; times < 50; ++times) EXPECT_TRUE(store_->reopen());
  const std::uint64_t before = answered;
  while (answered < before + 3) std::this_thread::yield();  // they go on as before
  done = true;
}

TEST(StoreUrl, memory_and_paths) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(open_store("memory:"));
  EXPECT_TRUE(open_store("sqlite:" + folder.path() + "/a.db"));
  EXPECT_TRUE(open_store(folder.path() + "/new/folders/b.db"));
  EXPECT_TRUE(open_store("sqlite://" + folder.path() + "/c:d.db")) << "an empty host";
}

TEST(StoreUrl, refusals_say_what_to_write) {
  const auto message = [](std::string_view url) {
    const auto store = open_store(url);
    EXPECT_FALSE(store) << url;
    EXPECT_EQ(store.error().code, ErrorCode::invalid);
    return store.error().message;
  };
  EXPECT_NE(message("").find("sqlite:PATH"), std::string::npos);
  EXPECT_NE(message("sqlite:").find("sqlite:PATH"), std::string::npos);
  EXPECT_NE(message("memory:x").find("nothing after the colon"), std::string::npos);
  EXPECT_NE(message("postgres://host/db").find("named postgres"), std::string::npos);
  EXPECT_NE(message("sqlite://runs.db").find("sqlite:runs.db"), std::string::npos);
}

TEST(StoreUrl, new_stores_have_different_secrets) {
  EXPECT_NE((*open_store("memory:"))->secret(), (*open_store("memory:"))->secret());
}

}  // namespace
}  // namespace reprise::store
