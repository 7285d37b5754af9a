// What the loop is made of and can be looked at alone: the journal's length, keys that are on their way, and retention.
#include <gtest/gtest.h>

#include "runtime/journal.hpp"
#include "runtime/retention.hpp"
#include "runtime/young_keys.hpp"

namespace reprise::runtime {
namespace {

constexpr event::Time second = 1'000'000'000;

// ---- journal ----------------------------------------

TEST(RuntimeJournal, only_frames_that_no_run_needs_are_cut) {
  Journal journal{10};
  journal.add_run(7, 2);
  for (std::uint64_t commit = 1; commit <= 4; ++commit) journal.add_frame(commit, 6);
  EXPECT_EQ(journal.cut(), 1);  // run 7 needs those from commit 2 on
  EXPECT_EQ(journal.bytes(), 18);
  EXPECT_EQ(journal.cut(), std::nullopt);
  ASSERT_NE(journal.oldest(), nullptr);
  EXPECT_EQ(journal.oldest()->run, 7);
  journal.drop_oldest();
  EXPECT_EQ(journal.cut(), 4);
  EXPECT_EQ(journal.bytes(), 0);
}

TEST(RuntimeJournal, a_short_one_is_left_alone) {
  Journal journal{10};
  journal.add_frame(1, 10);
  EXPECT_FALSE(journal.is_too_long());
  EXPECT_EQ(journal.cut(), std::nullopt);
  journal.add_frame(2, 1);
  EXPECT_TRUE(journal.is_too_long());
  EXPECT_EQ(journal.cut(), 2);
}

TEST(RuntimeJournal, what_an_earlier_process_left_goes_with_the_first_commit_however_short_it_is) {
  Journal journal{1000};
  journal.add_frame(1, 5);
  journal.add_frame(2, 5);
  journal.add_run(3, 2);
  journal.inherit();
  EXPECT_EQ(journal.cut(), 1);
  journal.drop_oldest();
  EXPECT_EQ(journal.cut(), std::nullopt);  // only once
}

TEST(RuntimeJournal, nothing_is_inherited_from_an_empty_one) {
  Journal journal{1000};
  journal.inherit();
  journal.add_frame(1, 5);
  EXPECT_EQ(journal.cut(), std::nullopt);
}

// ---- keys ----------------------------------------

TEST(RuntimeYoungKeys, a_key_is_young_until_its_commit_is_written) {
  YoungKeys keys;
  keys.add("a", 1, 10);
  keys.add("b", 2, 11);
  EXPECT_EQ(keys.find("a"), 1);
  EXPECT_EQ(keys.find("c"), std::nullopt);
  keys.written(0);  // one that had nothing to write
  EXPECT_EQ(keys.size(), 2);
  keys.written(10);
  EXPECT_EQ(keys.find("a"), std::nullopt);
  EXPECT_EQ(keys.find("b"), 2);
  keys.written(11);
  EXPECT_EQ(keys.size(), 0);
}

TEST(RuntimeYoungKeys, a_key_that_a_younger_run_has_got_stays_young_with_it) {
  YoungKeys keys;
  keys.add("a", 1, 10);
  keys.add("a", 5, 12);  // run 1 was removed
  keys.written(10);
  EXPECT_EQ(keys.find("a"), 5);
  keys.written(12);
  EXPECT_EQ(keys.find("a"), std::nullopt);
}

// ---- retention ----------------------------------------

TEST(RuntimeRetention, without_a_limit_it_never_asks) {
  Retention retention{{}};
  retention.begin(5);
  EXPECT_EQ(retention.next(), std::nullopt);
  EXPECT_FALSE(retention.question(INT64_MAX, UINT64_MAX));
}

TEST(RuntimeRetention, it_asks_once_a_second_and_not_before_the_last_removals_are_durable) {
  Retention retention{{.keep_ended = std::chrono::seconds{3}, .keep_count = 7, .at_once = 2}};
  retention.begin(10 * second);
  const auto first = retention.question(10 * second, 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->ended_before, 7 * second);
  EXPECT_EQ(first->keep, 7);
  EXPECT_EQ(first->limit, 2);
  EXPECT_FALSE(retention.question(10 * second, 0));
  EXPECT_EQ(retention.next(), 11 * second);

  retention.found(1, 1, 4, 10 * second);
  EXPECT_FALSE(retention.question(11 * second, 3));
  EXPECT_TRUE(retention.question(11 * second, 4));
}

TEST(RuntimeRetention, it_looks_again_at_once_while_there_are_more_than_it_may_remove) {
  Retention retention{{.keep_count = 0, .at_once = 2}};
  retention.begin(second);
  ASSERT_TRUE(retention.question(second, 0));
  retention.found(2, 1, 1, second);
  EXPECT_EQ(retention.next(), second);
  ASSERT_TRUE(retention.question(second, 1));
  retention.found(2, 0, 2, second);  // all of them have been reopened
  EXPECT_EQ(retention.next(), 2 * second);
}

TEST(RuntimeRetention, a_run_is_removed_once_and_gone_until_that_is_durable) {
  Retention retention{{}};
  EXPECT_TRUE(retention.remove(3));
  EXPECT_FALSE(retention.remove(3));
  EXPECT_TRUE(retention.is_removing(3));
  const std::uint64_t done[] = {3, 4};
  retention.removed(done);
  EXPECT_FALSE(retention.is_removing(3));
}

}  // namespace
}  // namespace reprise::runtime
