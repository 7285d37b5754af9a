// Chosen work items as text and back.
#include "core/chosen.hpp"

#include <gtest/gtest.h>

namespace reprise::core {
namespace {

std::string number(std::uint32_t step) { return std::to_string(step); }

TEST(CoreChosen, is_text_and_comes_back) {
  const Chosen chosen{{{0, {{17, 17}, {20, 30}}}, {3}}};
  EXPECT_EQ(to_text(chosen, number), "0[17,20-30] 3");
  EXPECT_EQ(chosen_in("0[17,20-30] 3"), chosen);
  for (const char* wrong : {"", "x", "0[", "0[]", "0[3", "0[5-3]", "0[1,]", "0[-1]", "4294967296", "0[1]2"})
    EXPECT_FALSE(chosen_in(wrong)) << wrong;
}

TEST(CoreChosen, has_what_was_named_and_nothing_else) {
  const Chosen chosen = *chosen_in("0[17,20-30] 3");
  EXPECT_TRUE(chosen.has(0, 17) && chosen.has(0, 20) && chosen.has(0, 30) && chosen.has(3, 0) && chosen.has(3, 99));
  EXPECT_FALSE(chosen.has(0, 18) || chosen.has(0, 31) || chosen.has(1, 17));
  EXPECT_TRUE(Chosen{}.has(7, 7));  // nothing is named: everything
}

TEST(CoreChosen, joins_neighbours) {
  EXPECT_EQ(to_text(ranges_of({9, 4, 3, 5, 5})), "3-5,9");
  EXPECT_EQ(to_text(ranges_of({})), "");
}

}  // namespace
}  // namespace reprise::core
