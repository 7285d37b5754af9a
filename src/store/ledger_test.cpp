// Shards of a store: who gets which, that they share a secret, and what is not taken for one.
#include "store/ledger.hpp"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "support/run_program.hpp"

namespace reprise::store {
namespace {

class StoreLedger : public ::testing::Test {
 protected:
  std::unique_ptr<Ledger> ledger(LedgerSettings settings = {}) const {
    return *open_ledger("sqlite:" + path_, settings);
  }
  std::string path_of(std::string_view name) const { return folder_.path() + "/" + std::string{name}; }

  testing_support::TemporaryDirectory folder_;
  std::string path_ = folder_.path() + "/my.db";
};

TEST_F(StoreLedger, the_lowest_free_shard_is_taken_and_one_is_made_when_none_is_free) {
  const auto shards = ledger();
  auto first = shards->claim();
  ASSERT_TRUE(first) << first.error().message;
  auto second = shards->claim();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(first->shard, (Shard{0, path_}));
  EXPECT_EQ(second->shard, (Shard{1, path_of("my-1.db")}));
  EXPECT_EQ(first->store->slot(), 0U);
  EXPECT_EQ(second->store->slot(), 1U);
  EXPECT_EQ(first->store->secret(), second->store->secret());
  first->store.reset();
  EXPECT_EQ(shards->claim()->shard.slot, 0U) << "free again";
  EXPECT_EQ(shards->open_shard(second->shard).error().code, ErrorCode::store_locked);
  second->store.reset();
  EXPECT_EQ(shards->open_shard(second->shard)->store->slot(), 1U) << "it is in the file";
}

TEST_F(StoreLedger, there_are_as_many_as_there_may_be) {
  const auto shards = ledger({.shards_max = 2});
  const auto first = shards->claim();
  const auto second = shards->claim();
  const auto third = shards->claim();
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::full);
  EXPECT_NE(third.error().message.find("2 processes work with " + path_), std::string::npos) << third.error().message;
}

TEST_F(StoreLedger, those_who_come_at_the_same_moment_agree_on_the_secret) {
  for (int round = 0; round < 5; ++round) {
    path_ = path_of("round" + std::to_string(round) + ".db");
    std::vector<Result<OwnedShard>> owned(4);
    {
      std::vector<std::jthread> threads;
      for (auto& each : owned) threads.emplace_back([this, &each] { each = ledger()->claim(); });
    }
    for (const auto& each : owned) {
      ASSERT_TRUE(each) << each.error().message;
      EXPECT_EQ(each->store->secret(), owned[0]->store->secret());
    }
  }
}

TEST_F(StoreLedger, another_store_with_such_a_name_and_a_damaged_file_are_left_alone) {
  ASSERT_TRUE(open_store("sqlite:" + path_of("my-1.db")));
  std::ofstream{path_of("my-2.db")} << std::string(8192, 'x');
  const auto shards = ledger();
  const auto first = shards->claim();
  const auto second = shards->claim();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->shard.slot, 3U);
  const auto views = shards->look();
  ASSERT_EQ(views.size(), 3U);
  EXPECT_TRUE(views[0].view);
  EXPECT_EQ(views[1].shard.slot, 2U);
  EXPECT_EQ(views[1].view.error().code, ErrorCode::store_damaged);
  EXPECT_EQ(views[2].view.value()->slot(), 3U);
}

TEST_F(StoreLedger, a_link_leads_to_the_shards_beside_the_file_itself) {
  const auto first = ledger()->claim();
  std::filesystem::create_directory(path_of("elsewhere"));
  std::filesystem::create_symlink(path_, path_of("elsewhere/link.db"));
  const auto second = (*open_ledger(path_of("elsewhere/link.db")))->claim();
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->shard.path, path_of("my-1.db"));
}

TEST_F(StoreLedger, the_address_of_one_shard_has_no_others) {
  const auto first = ledger()->claim();
  const auto second = ledger()->claim();
  EXPECT_EQ((*open_ledger(second->shard.path))->claim().error().code, ErrorCode::store_locked);
  EXPECT_FALSE(std::filesystem::exists(path_of("my-1-1.db")));
}

TEST_F(StoreLedger, one_process_at_a_time_looks_a_key_up) {
  const auto shards = ledger();
  auto lock = shards->try_lock_keys();
  ASSERT_TRUE(lock && *lock);
  EXPECT_FALSE(ledger()->try_lock_keys().value());
  lock->reset();
  EXPECT_TRUE(ledger()->try_lock_keys().value());
}

TEST_F(StoreLedger, in_memory_there_is_one_for_each_who_asks) {
  const auto shards = open_ledger("memory:");
  ASSERT_TRUE(shards);
  EXPECT_NE((*shards)->claim()->store->secret(), (*shards)->claim()->store->secret());
  EXPECT_EQ((*shards)->look().at(0).view.error().code, ErrorCode::invalid);
  EXPECT_EQ(open_ledger("postgres://x").error().code, ErrorCode::invalid);
}

}  // namespace
}  // namespace reprise::store
