// The ledger in memory: the same answers as a folder of SQLite files gives, and ownership that lapses.
#include "store/memory_ledger.hpp"

#include <map>

#include <gtest/gtest.h>

#include <reprise/random.hpp>

#include "support/run_program.hpp"

namespace reprise::store {
namespace {

constexpr LedgerSettings small{.shards_max = 4};

Commit commit(std::uint64_t id, std::string_view key = {}) {
  Commit commit;
  commit.id = id;
  commit.frame = commit.put("frame");
  if (!key.empty()) commit.keys.push_back({commit.put(key), id});
  return commit;
}

// One ledger, and those who own parts of it; each answer as text.
class Side {
 public:
  explicit Side(std::unique_ptr<Ledger> ledger) : ledger_{std::move(ledger)} {}

  std::string claim(std::uint64_t owner) { return take(owner, ledger_->claim()); }
  std::string open(std::uint64_t owner, std::size_t which) {
    const auto views = ledger_->look();
    const ShardView& view = views[which % views.size()];
    if (!view.view) return std::string{name_of(view.view.error().code)};
    return take(owner, ledger_->open_shard(view.shard));
  }
  std::string end(std::uint64_t owner) { return owners_.erase(owner) > 0 ? "ended" : "nobody"; }
  std::string append(std::uint64_t owner, std::string_view key) {
    const auto found = owners_.find(owner);
    if (found == owners_.end()) return "nobody";
    const auto written = found->second.store->append(commit(*found->second.store->last_commit() + 1, key));
    return written ? "written" : std::string{name_of(written.error().code)};
  }
  std::string look(std::string_view key) {
    std::string seen;
    for (const ShardView& each : ledger_->look()) {
      seen += std::to_string(each.shard.slot) + ":";
      if (!each.view) {
        seen += name_of(each.view.error().code);
        continue;
      }
      StoreView& view = **each.view;
      seen += std::to_string(*view.last_commit()) + "," + std::to_string(view.run_of_key(key)->value_or(0)) + "," +
              std::string{name_of(view.append(commit(*view.last_commit() + 1)).error().code)} + " ";
    }
    return seen;
  }
  std::string lock(std::uint64_t owner) {
    auto taken = ledger_->try_lock_keys();
    if (!taken.value()) return "taken";
    locks_[owner] = *std::move(taken);
    return "locked";
  }
  std::string unlock(std::uint64_t owner) { return locks_.erase(owner) > 0 ? "unlocked" : "none"; }

 private:
  std::string take(std::uint64_t owner, Result<OwnedShard> owned) {
    if (!owned) return std::string{name_of(owned.error().code)};
    const std::uint32_t slot = owned->store->slot();
    EXPECT_EQ(slot, owned->shard.slot);
    owners_[owner] = *std::move(owned);
    return "shard " + std::to_string(slot);
  }

  std::unique_ptr<Ledger> ledger_;
  std::map<std::uint64_t, OwnedShard> owners_;
  std::map<std::uint64_t, KeysLock> locks_;
};

std::string any_operation(Side& side, std::uint64_t what, std::uint64_t owner, const std::string& key) {
  switch (what) {
    case 0:
    case 1:
      return side.claim(owner);
    case 2:
      return side.open(owner, owner);
    case 3:
      return side.end(owner);
    case 4:
      return side.look(key);
    case 5:
      return side.lock(owner);
    case 6:
      return side.unlock(owner);
    default:
      return side.append(owner, key);
  }
}

TEST(StoreMemoryLedger, answers_as_a_folder_does_whatever_owners_do) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const testing_support::TemporaryDirectory folder;
    Side memory{std::make_unique<MemoryLedger>(seed, small)};
    Side files{*open_ledger("sqlite:" + folder.path() + "/my.db", small)};
    Random random{seed};
    std::uint64_t claims = 0;
    for (int step = 0; step < 80; ++step) {
      // An owner that claims while it has a shard gets a second one before the first is let go: six owners fill four shards.
      const auto what = static_cast<std::uint64_t>(random.between(0, 9));
      const auto owner = static_cast<std::uint64_t>(random.between(0, 5));
      const std::string key = "key " + std::to_string(random.between(0, 5));
      const std::string expected = any_operation(files, what, owner, key);
      ASSERT_EQ(any_operation(memory, what, owner, key), expected) << "seed " << seed << ", step " << step;
      if (expected.starts_with("shard")) ++claims;
    }
    EXPECT_GT(claims, 5U);
  }
}

TEST(StoreMemoryLedger, an_owner_whose_ownership_lapsed_is_fenced_also_before_there_is_another) {
  MemoryLedger ledger{7, small};
  auto old = ledger.claim();
  ASSERT_TRUE(old->store->append(commit(1)));
  ledger.lapse(0);
  EXPECT_EQ(old->store->append(commit(2)).error().code, ErrorCode::fenced);
  auto next = ledger.claim();
  EXPECT_EQ(next->shard.slot, 0U);
  EXPECT_EQ(*next->store->last_commit(), 1U);
  EXPECT_EQ(old->store->append(commit(2)).error().code, ErrorCode::fenced);
  EXPECT_EQ(old->store->reopen().error().code, ErrorCode::fenced) << "it does not come back by opening it again";
  EXPECT_EQ(*old->store->last_commit(), 1U) << "it may read";
  ASSERT_TRUE(next->store->append(commit(2)));
  old->store.reset();
  EXPECT_EQ(ledger.open_shard({}).error().code, ErrorCode::store_locked) << "the end of the old one frees nothing";
}

}  // namespace
}  // namespace reprise::store
