// The cache with a limit: what was asked for longest ago goes first.
#include "base/recently_used.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace reprise::base {
namespace {

TEST(BaseRecentlyUsed, what_was_asked_for_longest_ago_makes_room) {
  RecentlyUsed<std::string, int> cache{3};
  cache.put("a", 1);
  cache.put("b", 2);
  cache.put("c", 3);
  ASSERT_NE(cache.find(std::string_view{"a"}), nullptr);
  cache.put("d", 4);
  EXPECT_EQ(cache.find("b"), nullptr);
  EXPECT_EQ(*cache.find("a"), 1);
  EXPECT_EQ(*cache.find("c"), 3);
  EXPECT_EQ(*cache.find("d"), 4);
  EXPECT_EQ(cache.size(), 3U);
}

TEST(BaseRecentlyUsed, a_key_has_one_value) {
  RecentlyUsed<int, int> cache{1};
  EXPECT_EQ(cache.put(7, 1), 1);
  EXPECT_EQ(cache.put(7, 2), 2);
  EXPECT_EQ(*cache.find(7), 2);
  EXPECT_EQ(cache.size(), 1U);
}

}  // namespace
}  // namespace reprise::base
