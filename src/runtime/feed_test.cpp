// Those who watch: the past and what happens meanwhile meet without a gap, and whoever knows more is believed.
#include "runtime/feed.hpp"

#include <gtest/gtest.h>

#include "event/codec.hpp"

namespace reprise::runtime {
namespace {

Event event_of(std::uint64_t sequence, std::uint64_t total_attempts) {
  return {.type = EventType::completed, .sequence = sequence, .step = "a", .total_attempts = total_attempts};
}

std::vector<std::uint64_t> totals(Feed& feed) {
  std::vector<std::uint64_t> found;
  const std::lock_guard lock{feed.mutex};
  while (const auto event = feed.take()) found.push_back(event->total_attempts);
  return found;
}

TEST(RuntimeFeed, ThePastKnowsMoreThanWhoJoinedInTheMiddle) {
  Feed feed{{.run = RunId{}}};
  feed.publish(event_of(3, 0));
  feed.publish(event_of(4, 0));
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) feed.add(event_of(sequence, 10 + sequence));
  EXPECT_EQ(totals(feed), (std::vector<std::uint64_t>{11, 12, 13, 0}));
  feed.add(event_of(4, 14));
  EXPECT_TRUE(totals(feed).empty()) << "it was read already";
}

TEST(RuntimeFeed, ASecondReadingOfThePastFillsInTheRest) {
  Feed feed{{.run = RunId{}, .after = 1}};
  feed.publish(event_of(3, 0));
  for (int reading = 0; reading < 2; ++reading) {
    for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) feed.add(event_of(sequence, 10 + sequence));
  }
  EXPECT_EQ(totals(feed), (std::vector<std::uint64_t>{12, 13}));
}

TEST(RuntimeFeeds, SayWhichEventsWereToldWithoutThePast) {
  Feeds feeds;
  core::Plan plan;
  plan.steps.resize(1);
  plan.steps[0].name = std::make_shared<const std::string>("a");
  const auto feed = feeds.add({.run = RunId{}});
  const auto publish = [&](std::uint64_t sequence) {
    std::string chunk;
    event::put_chunk_header(chunk, 0);
    event::put_event(chunk, {.type = EventType::started, .sequence = sequence, .time = 1, .attempt = 2}, 0);
    feeds.published(RunId{}, plan, sequence, sequence, chunk);
  };
  const auto past = [] { return event::EventHistory{RunId{}, {{"a"}}}; };
  publish(4);
  EXPECT_EQ(feed->unsure_until, 4U);
  feeds.prime(RunId{}, past(), 3);
  publish(5);
  EXPECT_EQ(feed->unsure_until, 5U) << "that past was too short";
  feeds.prime(RunId{}, past(), 5);
  publish(6);
  EXPECT_EQ(feed->unsure_until, 5U);
}

}  // namespace
}  // namespace reprise::runtime
