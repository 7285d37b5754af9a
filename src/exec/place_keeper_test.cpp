// Who begins when, under one limit and under several, and who does not.
#include "exec/place_keeper.hpp"

#include <gtest/gtest.h>

namespace reprise::exec {
namespace {

Job job_of(std::uint32_t item, PlaceLimits limits, std::uint64_t run = 1, std::uint32_t step = 0) {
  Job job;
  job.id = {.run = run, .step = step, .item = item, .token = item + 1};
  job.limits = limits;
  return job;
}

AttemptId id_of(std::uint32_t item, std::uint64_t run = 1, std::uint32_t step = 0) {
  return {.run = run, .step = step, .item = item, .token = item + 1};
}

bool enter(PlaceKeeper& keeper, Job job) { return keeper.enter(job); }

std::vector<std::uint32_t> items_of(const std::vector<Job>& jobs) {
  std::vector<std::uint32_t> items;
  for (const Job& job : jobs) items.push_back(job.id.item);
  return items;
}

using Items = std::vector<std::uint32_t>;

TEST(ExecPlaceKeeper, they_begin_in_order_when_there_is_a_place) {
  PlaceKeeper keeper;
  EXPECT_TRUE(enter(keeper, job_of(0, {.step = 2})));
  EXPECT_TRUE(enter(keeper, job_of(1, {.step = 2, .waits = true}))) << "there is one";
  EXPECT_FALSE(enter(keeper, job_of(2, {.step = 2, .waits = true})));
  EXPECT_FALSE(enter(keeper, job_of(3, {.step = 2, .waits = true})));
  EXPECT_EQ(keeper.waiting(), 2U);
  EXPECT_EQ(items_of(keeper.leave(id_of(0))), Items{2});
  EXPECT_TRUE(keeper.leave(id_of(0)).empty()) << "once";
  EXPECT_EQ(items_of(keeper.leave(id_of(2))), Items{3});
  EXPECT_TRUE(keeper.leave(id_of(1)).empty());
  EXPECT_TRUE(keeper.leave(id_of(3)).empty());
}

TEST(ExecPlaceKeeper, what_does_not_wait_begins_in_any_case_and_counts) {
  PlaceKeeper keeper;
  for (std::uint32_t item = 0; item < 3; ++item) EXPECT_TRUE(enter(keeper, job_of(item, {.handler = 2})));
  EXPECT_FALSE(enter(keeper, job_of(3, {.handler = 2, .waits = true}, 2)));
  EXPECT_TRUE(keeper.leave(id_of(0)).empty()) << "there are still two";
  EXPECT_EQ(items_of(keeper.leave(id_of(1))), Items{3});
}

TEST(ExecPlaceKeeper, steps_of_other_runs_have_their_own) {
  PlaceKeeper keeper;
  EXPECT_TRUE(enter(keeper, job_of(0, {.step = 1})));
  EXPECT_TRUE(enter(keeper, job_of(1, {.step = 1, .waits = true}, 2)));
  EXPECT_TRUE(enter(keeper, job_of(2, {.step = 1, .waits = true}, 1, 1)));
  EXPECT_FALSE(enter(keeper, job_of(3, {.step = 1, .waits = true})));
}

TEST(ExecPlaceKeeper, who_has_several_limits_needs_a_place_under_each) {
  PlaceKeeper keeper;
  EXPECT_TRUE(enter(keeper, job_of(0, {.step = 1, .run = 2})));
  EXPECT_TRUE(enter(keeper, job_of(1, {.run = 2}, 1, 1)));
  EXPECT_FALSE(enter(keeper, job_of(2, {.step = 1, .run = 2, .waits = true})));
  EXPECT_FALSE(enter(keeper, job_of(3, {.run = 2, .waits = true}, 1, 1)));
  EXPECT_EQ(items_of(keeper.leave(id_of(1, 1, 1))), Items{3}) << "the other's step is full";
  EXPECT_EQ(items_of(keeper.leave(id_of(0))), Items{2});
}

TEST(ExecPlaceKeeper, one_whose_second_gate_is_full_holds_up_nobody_at_the_first) {
  PlaceKeeper keeper;
  EXPECT_TRUE(enter(keeper, job_of(0, {.handler = 1})));
  EXPECT_TRUE(enter(keeper, job_of(1, {.step = 1})));
  EXPECT_FALSE(enter(keeper, job_of(2, {.handler = 1, .step = 1, .waits = true})));
  EXPECT_FALSE(enter(keeper, job_of(3, {.handler = 1, .waits = true}, 2)));
  EXPECT_EQ(items_of(keeper.leave(id_of(0))), Items{3});
  EXPECT_TRUE(keeper.leave(id_of(1)).empty()) << "now the handler is full";
  EXPECT_EQ(items_of(keeper.leave(id_of(3, 2))), Items{2});
}

TEST(ExecPlaceKeeper, what_was_taken_back_does_not_begin) {
  PlaceKeeper keeper;
  EXPECT_TRUE(enter(keeper, job_of(0, {.run = 1})));
  for (std::uint32_t item = 1; item < 5; ++item) EXPECT_FALSE(enter(keeper, job_of(item, {.run = 1, .waits = true})));
  EXPECT_TRUE(keeper.take_back(id_of(1)));
  EXPECT_FALSE(keeper.take_back(id_of(1)));
  EXPECT_FALSE(keeper.take_back(id_of(0))) << "it has begun";
  EXPECT_EQ(items_of(keeper.leave(id_of(0))), Items{2});
  EXPECT_EQ(keeper.take_back_all().size(), 2U);
  EXPECT_TRUE(keeper.leave(id_of(2)).empty());
}

TEST(ExecPlaceKeeper, who_comes_back_has_its_place) {
  PlaceKeeper keeper;
  EXPECT_TRUE(enter(keeper, job_of(0, {.step = 1})));
  EXPECT_FALSE(enter(keeper, job_of(1, {.step = 1, .waits = true})));
  EXPECT_TRUE(enter(keeper, job_of(0, {.step = 1}))) << "with what was brought from outside";
  EXPECT_EQ(items_of(keeper.leave(id_of(0))), Items{1}) << "it had one place, not two";
}

// What works for it outside may need that very place.
TEST(ExecPlaceKeeper, who_goes_outside_leaves_the_place_of_its_handler) {
  PlaceKeeper keeper;
  EXPECT_TRUE(enter(keeper, job_of(0, {.handler = 1, .step = 1})));
  EXPECT_FALSE(enter(keeper, job_of(1, {.handler = 1, .waits = true}, 2)));
  EXPECT_FALSE(enter(keeper, job_of(2, {.step = 1, .waits = true})));
  EXPECT_EQ(items_of(keeper.hand_over(id_of(0))), Items{1});
  EXPECT_TRUE(enter(keeper, job_of(0, {.handler = 1, .step = 1}))) << "it comes back above the limit";
  EXPECT_FALSE(enter(keeper, job_of(3, {.handler = 1, .waits = true}, 3)));
  EXPECT_TRUE(keeper.leave(id_of(1, 2)).empty()) << "the one that came back is there";
  EXPECT_EQ(items_of(keeper.leave(id_of(0))), (Items{2, 3}));
}

}  // namespace
}  // namespace reprise::exec
