// examples/checkout.cpp, killed again and again at moments that a seed chooses: every order ends as it should, and nothing recorded is done twice.
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

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

std::multiset<std::string> entries_in(const std::string& books) {
  std::multiset<std::string> entries;
  std::ifstream file{books};
  for (std::string key, entry; file >> key && std::getline(file, entry);) entries.insert(entry);
  return entries;
}

void kill_again_and_again(const std::string& store, unsigned seed) {
  std::mt19937 random{seed};
  for (int kills = 0; kills < 12; ++kills) {
    Child program{{REPRISE_CHECKOUT, store}};
    std::this_thread::sleep_for(std::chrono::milliseconds{random() % 120});
    program.signal(SIGKILL);
    if (program.join() != 128 + SIGKILL) return;  // it was quicker
  }
}

void expect_done_once(const std::string& store) {
  EXPECT_EQ(entries_in(store + ".books"),
            (std::multiset<std::string>{" charged A-17", " charged B-4", " refunded B-4", " shipped A-17"}));
  auto engine = Engine::open({.store = "sqlite:" + store});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto page = engine->find({});
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->runs.size(), 2U);
  for (const RunInfo& run : page->runs) {
    EXPECT_EQ(run.status, run.key == "A-17" ? RunStatus::succeeded : RunStatus::failed) << run.key;
    std::map<std::string, int> completed;
    std::map<std::string, int> begun;
    const auto events = engine->events(run.id);
    ASSERT_TRUE(events) << events.error().message;
    for (const Event& event : *events) {
      completed[event.step] += event.type == EventType::completed ? 1 : 0;
      if (event.type == EventType::called && !event.text.empty()) ++begun[event.text];
      EXPECT_NE(event.type, EventType::diverged) << event.text;
    }
    for (const auto& [step, times] : completed) EXPECT_LE(times, 1) << step;
    for (const auto& [path, times] : begun) EXPECT_EQ(times, 1) << path;
  }
}

class Checkout : public ::testing::TestWithParam<unsigned> {};

TEST_P(Checkout, KilledAtAnyMomentItEndsAsItShould) {
  const TemporaryDirectory folder;
  const std::string store = folder.path() + "/checkout.db";
  kill_again_and_again(store, GetParam());
  const Outcome last = run_program({REPRISE_CHECKOUT, store});
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_NE(last.out.find("A-17: delivered as parcel-A-17\nB-4: failed: there is none left\n"), std::string::npos) << last.out;
  expect_done_once(store);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Checkout, ::testing::Range(1U, 4U));

}  // namespace
}  // namespace reprise
