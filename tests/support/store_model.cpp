#include "support/store_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace reprise::testing_support {
namespace {

using store::Commit;
using store::DueCursor;
using store::Image;
using store::RunFilter;
using store::Store;
using store::StoredPlan;
using store::StoredRun;
using store::Time;

constexpr std::uint64_t runs_max =
    60;  // then their numbers come again, as after a removal nothing may be left of the old
constexpr Time minute = 60'000'000'000;

auto fields(const StoredRun& run) {
  return std::tuple{run.run, run.status, run.plan, run.created, run.ended, run.due, run.commit, run.key, run.state};
}
auto fields(const StoredPlan& plan) { return std::tuple{plan.number, plan.name, plan.body}; }
auto fields(std::uint64_t number) { return number; }

template <class T>
auto all_fields(const store::Result<std::vector<T>>& result) {
  if (!result) ADD_FAILURE() << result.error().message;
  std::vector<decltype(fields(std::declval<const T&>()))> all;
  if (result) std::ranges::transform(*result, std::back_inserter(all), [](const T& one) { return fields(one); });
  return all;
}

template <class T>
T value_of(const store::Result<T>& result) {
  if (result) return *result;
  ADD_FAILURE() << result.error().message;
  return {};
}

using Chunks = std::vector<std::pair<std::uint64_t, std::string>>;

Chunks journal_of(Store& store, std::size_t limit) {
  Chunks frames;
  const auto read = store.read_journal([&](std::uint64_t commit, std::string_view frame) {
    frames.emplace_back(commit, frame);
    return frames.size() < limit;
  });
  EXPECT_TRUE(read) << read.error().message;
  return frames;
}

Chunks history_of(Store& store, std::uint64_t run) {
  Chunks chunks;
  const auto read = store.read_history(run, [&](std::uint64_t first, std::string_view events) {
    chunks.emplace_back(first, events);
    return true;
  });
  EXPECT_TRUE(read) << read.error().message;
  return chunks;
}

std::string hash_of(std::uint64_t number) { return std::string(31, 'h') + static_cast<char>('0' + number); }
std::string key_of(std::uint64_t number) { return std::string{"key\0 ", 5} + std::to_string(number); }

std::vector<StoredRun> expect_same_runs(Store& expected, Store& actual) {
  std::vector<StoredRun> runs;
  for (std::uint64_t run = 0; run <= runs_max + 1; ++run) {
    const auto one = value_of(expected.read_run(run));
    const auto other = value_of(actual.read_run(run));
    EXPECT_EQ(one.has_value(), other.has_value()) << "run " << run;
    if (one && other) {
      EXPECT_EQ(fields(*one), fields(*other));
    }
    EXPECT_EQ(history_of(expected, run), history_of(actual, run)) << "run " << run;
    if (one) runs.push_back(*one);
  }
  return runs;
}

void expect_same_due(Store& expected, Store& actual, const std::vector<StoredRun>& runs, std::mt19937_64& random) {
  std::vector<DueCursor> cursors{{}, {INT64_MAX, 0}, {0, 7}};
  for (const StoredRun& run : runs) {
    if (run.due > 0 && random() % 4 == 0) cursors.push_back({run.due, run.run - random() % 2});
  }
  std::ranges::shuffle(cursors, random);
  for (const DueCursor cursor : cursors) {
    const Time before = cursors[random() % cursors.size()].due - static_cast<Time>(random() % 2);
    const std::size_t limit = random() % 2 == 0 ? 1000 : random() % 5;
    EXPECT_EQ(all_fields(expected.read_due(before, cursor, limit)), all_fields(actual.read_due(before, cursor, limit)))
        << "due " << before << " after (" << cursor.due << ", " << cursor.run << "), " << limit;
    EXPECT_EQ(value_of(expected.next_due(cursor)), value_of(actual.next_due(cursor)));
  }
  EXPECT_EQ(all_fields(expected.read_due(INT64_MAX, {}, 1000)), all_fields(actual.read_due(INT64_MAX, {}, 1000)));
}

void expect_same_searches(Store& expected, Store& actual, const std::vector<StoredRun>& runs, std::mt19937_64& random) {
  const std::optional<RunStatus> statuses[] = {std::nullopt,         RunStatus::running, RunStatus::paused,
                                               RunStatus::succeeded, RunStatus::failed,  RunStatus::canceled};
  for (const auto status : statuses) {
    RunFilter filter{.status = status, .open_only = random() % 3 == 0};
    if (random() % 3 == 0) filter.plan = static_cast<std::uint32_t>(random() % 3);
    if (!runs.empty() && random() % 3 == 0) filter.created_from = runs[random() % runs.size()].created;
    if (!runs.empty() && random() % 3 == 0) filter.created_before = runs[random() % runs.size()].created;
    const std::uint64_t below = random() % 3 == 0 ? random() % runs_max : 0;
    const std::size_t limit = random() % 2 == 0 ? 1000 : random() % 5;
    EXPECT_EQ(all_fields(expected.find(filter, below, limit)), all_fields(actual.find(filter, below, limit)));
  }
  const Time ended_before = runs.empty() ? 0 : runs[random() % runs.size()].ended;
  for (const std::uint64_t keep : {std::uint64_t{0}, random() % 20, UINT64_MAX}) {
    const std::size_t limit = random() % 2 == 0 ? 1000 : random() % 5;
    EXPECT_EQ(all_fields(expected.expired(ended_before, keep, limit)),
              all_fields(actual.expired(ended_before, keep, limit)))
        << "ended before " << ended_before << ", keep " << keep << ", limit " << limit;
  }
}

}  // namespace

std::string CommitSource::text(std::size_t size_max) {
  const std::size_t size = below(8) == 0 ? below(size_max) : below(50);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(below(256));
  return text;
}

void CommitSource::add_image(std::uint64_t run) {
  Image image;
  image.run = run;
  image.plan = static_cast<std::uint32_t>(below(3));
  image.created = now_ - static_cast<Time>(below(1000));
  image.status = static_cast<RunStatus>(below(5));
  if (!is_open(image.status)) {
    image.ended = now_ - static_cast<Time>(below(3));
  } else if (below(3) > 0) {
    image.due = now_ + static_cast<Time>(below(4) == 0 ? below(3) : below(20 * static_cast<std::uint64_t>(minute)));
  }
  image.first_sequence = sequence_++;
  image.state = commit_.put(text(20'000));
  image.events = commit_.put(text(20'000));
  if (run % 3 == 0) image.key = commit_.put(key_of(run % 5));
  commit_.images.push_back(image);
}

const Commit& CommitSource::next() {
  commit_.clear();
  commit_.id = ++last_id_;
  now_ += static_cast<Time>(below(3) == 0 ? below(static_cast<std::uint64_t>(5 * minute)) : below(2));
  if (below(4) > 0) commit_.frame = commit_.put(text(40'000));
  for (std::uint64_t count = below(6); count > 0; --count) add_image(1 + below(runs_max));
  for (std::uint64_t count = below(3); count > 0; --count) {
    commit_.keys.push_back({commit_.put(key_of(below(5))), 3 * (1 + below(runs_max / 3))});
  }
  for (std::uint64_t count = below(3); count > 0; --count) {
    const std::uint64_t number = below(6);
    commit_.payloads.push_back(
        {commit_.put(hash_of(number)), commit_.put(std::string(5000 + number, 'p')), 1 + below(runs_max)});
  }
  if (below(6) == 0) {
    commit_.plans.push_back({static_cast<std::uint32_t>(below(4)), commit_.put(text(20)), commit_.put(text(9'000))});
  }
  if (below(3) == 0) commit_.cut = last_id_ - std::min(last_id_, below(10));
  for (std::uint64_t count = below(4) == 0 ? below(12) : 0; count > 0; --count) {
    commit_.removals.push_back(1 + below(runs_max));
  }
  return commit_;
}

void expect_same(Store& expected, Store& actual, std::uint64_t seed) {
  std::mt19937_64 random{seed};
  EXPECT_EQ(value_of(expected.last_commit()), value_of(actual.last_commit()));
  EXPECT_EQ(value_of(expected.last_run()), value_of(actual.last_run()));
  EXPECT_EQ(value_of(expected.count_open()), value_of(actual.count_open()));
  EXPECT_EQ(expected.secret(), actual.secret());
  const std::size_t frames = random() % 2 == 0 ? 1000 : 1 + random() % 4;
  EXPECT_EQ(journal_of(expected, frames), journal_of(actual, frames));
  EXPECT_EQ(all_fields(expected.read_plans()), all_fields(actual.read_plans()));
  for (std::uint64_t number = 0; number < 7; ++number) {
    EXPECT_EQ(value_of(expected.run_of_key(key_of(number))), value_of(actual.run_of_key(key_of(number))));
    EXPECT_EQ(value_of(expected.read_payload(hash_of(number))), value_of(actual.read_payload(hash_of(number))));
  }
  const std::vector<StoredRun> runs = expect_same_runs(expected, actual);
  const std::uint64_t after = random() % 2 == 0 ? 0 : random() % runs_max;
  const std::size_t limit = random() % 2 == 0 ? 1000 : random() % 5;
  EXPECT_EQ(all_fields(expected.read_open(after, limit)), all_fields(actual.read_open(after, limit)));
  expect_same_due(expected, actual, runs, random);
  expect_same_searches(expected, actual, runs, random);
}

}  // namespace reprise::testing_support
