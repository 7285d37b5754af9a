// The inbox of the driver: what those are told who do not want to wait for room in it.
#include "runtime/driver.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "store/memory_store.hpp"

namespace reprise::runtime {
namespace {

class NoWork final : public exec::Executor {
 public:
  std::size_t capacity(std::uint32_t) override { return 0; }
  void start(std::vector<exec::Job>&) override {}
  void cancel(const event::AttemptId&) override {}
};

struct Counted final : Reply {
  explicit Counted(std::atomic<int>& to) : count{to} {}
  void done(std::expected<void, Error>) override { ++count; }

  std::atomic<int>& count;
};

TEST(RuntimeDriver, a_full_inbox_is_said_at_once_to_who_does_not_wait) {
  const auto store = store::make_memory_store(1);
  NoWork executor;
  Loop loop{*store, {&executor}, {}, 1, 1000};
  ASSERT_TRUE(loop.recover({}, 1000));
  Driver driver{loop, *store, Clock{system_env(), 1000}, 2};
  std::atomic<int> answered = 0;
  const auto cancel = [&] {
    return Operate{Operation::cancel, RunId{}, "", {}, "", std::make_shared<Counted>(answered)};
  };

  EXPECT_TRUE(driver.try_push(cancel()));
  EXPECT_TRUE(driver.try_push(cancel()));
  const auto full = driver.try_push(cancel());
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::full);
  EXPECT_NE(full.error().message.find("max_inbox"), std::string::npos) << full.error().message;
  driver.push(cancel());  // what workers have to say always has room

  driver.start();  // from now on the inbox is emptied
  while (answered < 3) std::this_thread::yield();
  EXPECT_TRUE(driver.try_push(cancel()));
  driver.finish();
  EXPECT_EQ(answered, 4);
  EXPECT_EQ(driver.try_push(cancel()).error().code, ErrorCode::stopped);
}

}  // namespace
}  // namespace reprise::runtime
