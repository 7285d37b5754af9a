// Ids of runs: they carry the number, sort by time, and are not taken for those of another store.
#include "runtime/ids.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace reprise::runtime {
namespace {

constexpr event::Time noon = 1'790'000'000'000'000'000;

RC_GTEST_PROP(RuntimeIds, carry_the_number, ()) {
  const auto secret = *rc::gen::arbitrary<std::uint64_t>();
  const auto number = *rc::gen::inRange<std::uint64_t>(0, run_number_max);
  const auto created = *rc::gen::inRange<event::Time>(0, 2 * noon);
  const RunId id = id_of(secret, number, created);
  RC_ASSERT(number_in(id) == number);
  RC_ASSERT(id == id_of(secret, number, created));
  RC_ASSERT(run_id_from(to_string(id)) == id);
  RC_ASSERT(id.bytes[6] >> 4U == 7);     // version
  RC_ASSERT(id.bytes[8] >> 6U == 0b10);  // variant
}

TEST(RuntimeIds, reach_the_largest_number) {
  EXPECT_EQ(number_in(id_of(1, run_number_max, noon)), run_number_max);
  EXPECT_EQ(number_in(id_of(1, 0, noon)), 0U);
}

RC_GTEST_PROP(RuntimeIds, sort_by_time_of_creation, ()) {
  const auto earlier = *rc::gen::inRange<event::Time>(0, noon);
  const auto later = earlier + *rc::gen::inRange<event::Time>(1'000'000, noon);
  RC_ASSERT(id_of(1, *rc::gen::inRange<std::uint64_t>(0, run_number_max), earlier) <
            id_of(1, *rc::gen::inRange<std::uint64_t>(0, run_number_max), later));
}

// Whoever has an id recomputes it from the number in it: only the store that gave it comes to the same.
RC_GTEST_PROP(RuntimeIds, of_another_store_are_told_apart, ()) {
  const auto secret = *rc::gen::arbitrary<std::uint64_t>();
  const auto other = *rc::gen::distinctFrom(rc::gen::arbitrary<std::uint64_t>(), secret);
  const auto number = *rc::gen::inRange<std::uint64_t>(0, run_number_max);
  const RunId id = id_of(secret, number, noon);
  RC_ASSERT(id_of(other, number_in(id), noon) != id);
}

// Stores of before keep their ids.
TEST(RuntimeIds, of_slot_0_are_what_they_always_were) {
  EXPECT_EQ(to_string(id_of(42, 1000, noon)), "SLOT0");
  EXPECT_EQ(id_of(42, 1000, noon, 0), id_of(42, 1000, noon));
}

RC_GTEST_PROP(RuntimeIds, give_the_slot_back_to_whoever_has_the_secret, ()) {
  const auto secret = *rc::gen::arbitrary<std::uint64_t>();
  const auto number = *rc::gen::inRange<std::uint64_t>(0, run_number_max);
  const auto created = *rc::gen::inRange<event::Time>(0, 2 * noon);
  const auto slot = *rc::gen::inRange<std::uint32_t>(0, slot_max + 1);
  const RunId id = id_of(secret, number, created, slot);
  RC_ASSERT(slot_in(secret, id) == slot);
  RC_ASSERT(number_in(id) == number);
  RC_ASSERT(id != id_of(secret, number, created, slot ^ 1U));
  RC_ASSERT(id.bytes[6] >> 4U == 7);
  RC_ASSERT(id.bytes[8] >> 6U == 0b10);
}

TEST(RuntimeIds, have_no_slot_in_another_store) {
  int found = 0;
  for (std::uint64_t number = 0; number < 1000; ++number) found += slot_in(43, id_of(42, number, noon)).has_value();
  EXPECT_EQ(found, 0);
}

TEST(RuntimeIds, a_typing_mistake_gives_no_other_run) {
  const RunId id = id_of(42, 1000, noon);
  for (std::size_t byte = 0; byte < id.bytes.size(); ++byte) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      RunId wrong = id;
      wrong.bytes[byte] = static_cast<std::uint8_t>(wrong.bytes[byte] ^ 1U << bit);
      EXPECT_NE(id_of(42, number_in(wrong), noon), wrong) << byte << "." << bit;
    }
  }
}

}  // namespace
}  // namespace reprise::runtime
