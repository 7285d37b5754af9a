// examples/durable_tasks.cpp, killed in the middle and started again: no order is lost, none is charged twice.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <reprise/engine.hpp>

#include "support/child.hpp"
#include "support/run_program.hpp"

namespace reprise {
namespace {

using namespace std::chrono_literals;
using testing_support::Child;
using testing_support::Outcome;
using testing_support::run_program;
using testing_support::TemporaryDirectory;

constexpr int orders = 10;

std::set<std::string> charged_in(const std::string& output) {
  std::set<std::string> charged;
  for (int number = 1; number <= orders; ++number) {
    const std::string order = "order-" + std::to_string(number);
    if (output.find(order + ": charged\n") != std::string::npos) charged.insert(order);
  }
  return charged;
}

// How often the payment service, which has books of its own, took money for each order.
std::map<std::string, int> payments_in(const std::string& books) {
  std::map<std::string, int> payments;
  std::ifstream file{books};
  std::string key;
  std::string order;
  while (file >> key >> order) ++payments[order];
  return payments;
}

TEST(DurableTasks, GoOnAfterAKillAndChargeOnce) {
  const TemporaryDirectory folder;
  const std::string store = folder.path() + "/orders.db";
  std::string before;
  {
    Child first{{REPRISE_DURABLE_TASKS, store}};
    ASSERT_TRUE(first.wait_for("0 orders are open from before", 30s)) << first.said();
    ASSERT_TRUE(first.wait_for(": charged", 30s)) << first.said();
    ASSERT_TRUE(first.wait_for(": charged", 30s)) << first.said();
    first.signal(SIGKILL);
    ASSERT_EQ(first.join(), 128 + SIGKILL);
    while (first.line(1s)) {
    }
    before = first.said();
  }
  ASSERT_LT(charged_in(before).size(), std::size_t{orders}) << "the kill came too late to show anything";

  const Outcome second = run_program({REPRISE_DURABLE_TASKS, store});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out.find(": 0 orders are open from before"), std::string::npos) << second.out;
  for (int number = 1; number <= orders; ++number) {
    const std::string order = "order-" + std::to_string(number);
    EXPECT_NE(second.out.find("receipt for " + order + ","), std::string::npos) << second.out;
  }
  EXPECT_EQ(payments_in(store + ".payments").size(), std::size_t{orders});
  for (const auto& [order, count] : payments_in(store + ".payments")) EXPECT_EQ(count, 1) << order;

  const Outcome third = run_program({REPRISE_DURABLE_TASKS, store});
  EXPECT_EQ(third.exit_code, 0) << third.err;
  EXPECT_EQ(charged_in(third.out).size(), 0U) << "everything was done: " << third.out;
  EXPECT_EQ(third.out.find(": attempt"), std::string::npos) << third.out;

  auto engine = Engine::open({.store = "sqlite:" + store});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto page = engine->find({});
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->runs.size(), std::size_t{orders});
  int lost = 0;
  for (const RunInfo& run : page->runs) {
    const auto events = engine->events(run.id);
    ASSERT_TRUE(events) << events.error().message;
    int completed = 0;
    bool runs = false;
    for (const Event& event : *events) {
      completed += event.type == EventType::completed ? 1 : 0;
      if (event.type == EventType::started) runs = true;
      // What was only reserved when the kill came is lost as well, and may never have begun.
      if (event.type == EventType::failed && event.lost) lost += std::exchange(runs, false) ? 1 : 0;
    }
    EXPECT_EQ(completed, 1) << run.key;
  }
  EXPECT_LE(lost, 2) << "two at a time, so the kill ended at most two attempts";
}

}  // namespace
}  // namespace reprise
