// What append() has confirmed survives a power loss at any moment, whole; and nothing is ever half there.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "store/memory_store.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "support/power_loss_vfs.hpp"
#include "support/run_program.hpp"
#include "support/store_model.hpp"

namespace reprise::store {
namespace {

using testing_support::CommitSource;
using testing_support::expect_same;
using testing_support::PowerLoss;
using testing_support::PowerLossDisk;
using testing_support::TemporaryDirectory;

constexpr std::uint64_t secret = 42;

Result<std::unique_ptr<Store>> open_on(const PowerLossDisk& disk, const std::string& path) {
  return open_sqlite_store(path, {.vfs = disk.vfs(), .checkpoint_pages = 15, .secret = secret});
}

// The model takes what append() confirmed. After the power loss the store may have one commit more: the one in progress.
class Cycles {
 public:
  explicit Cycles(std::uint64_t seed) : source_{seed} {}

  void run(int cycles) {
    for (int cycle = 0; cycle < cycles && !::testing::Test::HasFailure(); ++cycle) {
      SCOPED_TRACE("cycle " + std::to_string(cycle));
      disk_.fail_at_call(1 + source_.below(source_.below(2) == 0 ? 300 : 40));
      commit_until_power_fails();
      disk_.power_on(source_.below(2) == 0 ? PowerLoss::clean : PowerLoss::torn, source_.below(UINT64_MAX));
      compare();
    }
  }
  std::uint64_t confirmed() const { return confirmed_; }

 private:
  void commit_until_power_fails() {
    auto store = open_on(disk_, path_);
    while (!disk_.power_failed()) {
      ASSERT_TRUE(store) << store.error().message;
      if (!in_progress_) in_progress_ = &source_.next();
      const auto appended = (*store)->append(*in_progress_);
      if (!appended) break;
      ASSERT_TRUE(model_->append(*in_progress_));
      in_progress_ = nullptr;
      ++confirmed_;
    }
    ASSERT_TRUE(disk_.power_failed());
  }

  void compare() {
    auto store = open_on(disk_, path_);
    ASSERT_TRUE(store) << store.error().message;
    const auto last = (*store)->last_commit();
    ASSERT_TRUE(last) << last.error().message;
    if (in_progress_ && *last == in_progress_->id) {
      ASSERT_TRUE(model_->append(*in_progress_));
      in_progress_ = nullptr;
    }
    expect_same(*model_, **store, source_.below(UINT64_MAX));
  }

  TemporaryDirectory folder_;
  std::string path_ = folder_.path() + "/runs.db";
  PowerLossDisk disk_{"power_loss_test"};
  CommitSource source_;
  std::unique_ptr<Store> model_ = make_memory_store(secret);
  const Commit* in_progress_ = nullptr;
  std::uint64_t confirmed_ = 0;
};

RC_GTEST_PROP(StorePowerLoss, confirmed_commits_survive_whole, ()) {
  const auto seed = *rc::gen::noShrink(rc::gen::arbitrary<std::uint64_t>());
  Cycles{seed}.run(*rc::gen::inRange(1, 15));
  RC_ASSERT(!::testing::Test::HasFailure());
}

TEST(StorePowerLoss, confirmed_commits_survive_whole_through_many_losses) {
  Cycles cycles{7};
  cycles.run(400);
  EXPECT_GT(cycles.confirmed(), 400U) << "else nothing was tried";
}

// The disk itself, so that the tests above mean something.
TEST(StorePowerLoss, the_disk_forgets_what_was_not_synced) {
  const TemporaryDirectory folder;
  PowerLossDisk disk{"power_loss_test"};
  const std::string path = folder.path() + "/runs.db";
  ASSERT_TRUE(open_on(disk, path));
  EXPECT_GT(disk.calls(), 0U);
  EXPECT_GT(disk.used(), 0U);
  disk.fail_at_call(1);
  EXPECT_FALSE(open_on(disk, folder.path() + "/other.db"));
  EXPECT_TRUE(disk.power_failed());
  EXPECT_FALSE(open_on(disk, path));
  disk.power_on(PowerLoss::clean, 0);
  EXPECT_TRUE(open_on(disk, path));
}

}  // namespace
}  // namespace reprise::store
