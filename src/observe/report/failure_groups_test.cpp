// Failures by cause.
#include "observe/report/failure_groups.hpp"

#include <gtest/gtest.h>

namespace reprise::observe {
namespace {

using namespace std::chrono_literals;

TEST(ObserveFailureGroups, JoinWhatHasTheSameCauseTheLargestFirst) {
  const WallTime noon{12h};
  const TroubledItem one{.item = 1, .label = "a", .dead_letter = true, .time = noon};
  const TroubledItem two{.item = 2, .label = "b", .time = noon + 3s};
  const TroubledItem three{.item = 3, .label = "c", .dead_letter = true, .time = noon + 1s};
  const std::vector<FailedPiece> failures{{&one, "aa"}, {&two, "bb"}, {&three, "bb"}};
  const std::vector<FailureGroup> groups = failure_groups(failures);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].fingerprint, "bb");
  EXPECT_EQ(groups[0].count, 2U);
  EXPECT_EQ(groups[0].dead_letters, 1U);
  EXPECT_EQ(groups[0].first, noon + 1s);
  EXPECT_EQ(groups[0].last, noon + 3s);
  EXPECT_EQ(groups[0].items, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(groups[0].labels, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(groups[0].sample.item, 2U);
  EXPECT_EQ(groups[1].fingerprint, "aa");
  EXPECT_TRUE(failure_groups({}).empty());
}

}  // namespace
}  // namespace reprise::observe
