// Policies of single items as bytes: shared where they are equal, and read as they were written.
#include "core/item_policies.hpp"

#include <gtest/gtest.h>

#include "core/facts.hpp"

namespace reprise::core {
namespace {

Policy with_attempts(std::uint64_t attempts) { return {.max_attempts = attempts}; }

TEST(CoreItemPolicies, are_read_as_they_were_written) {
  std::vector<std::optional<Policy>> policies(1000);
  for (std::size_t item = 100; item < 200; ++item) policies[item] = with_attempts(7);
  policies[500] = with_attempts(8);
  policies[999] = with_attempts(7);
  const std::string bytes = encode_item_policies(policies);
  EXPECT_LT(bytes.size(), 300U);  // two policies and six runs
  FactsDecoder decoder;
  const auto read = read_item_policies(bytes, decoder, nullptr);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->policies.size(), 2U);
  for (std::uint32_t item = 0; item < policies.size(); ++item) {
    const Policy* const own = read->of(item);
    ASSERT_EQ(own != nullptr, policies[item].has_value()) << item;
    if (own != nullptr) {
      EXPECT_EQ(*own, *policies[item]) << item;
    }
  }
  EXPECT_EQ(read->of(1000), nullptr);
  EXPECT_EQ(read->bytes, bytes);
}

TEST(CoreItemPolicies, none_at_all_are_no_bytes) {
  EXPECT_EQ(encode_item_policies(std::vector<std::optional<Policy>>(50)), "");
}

TEST(CoreItemPolicies, the_types_of_the_plan_are_theirs) {
  TypeTree types;
  types.add("APIError", "ConnectionError");
  FactsDecoder decoder;
  const std::vector<std::optional<Policy>> one{with_attempts(2)};
  EXPECT_EQ(read_item_policies(encode_item_policies(one), decoder, &types)->of(0)->types, &types);
}

TEST(CoreItemPolicies, damaged_bytes_are_refused) {
  FactsDecoder decoder;
  const std::vector<std::optional<Policy>> two{with_attempts(2), std::nullopt};
  const std::string whole = encode_item_policies(two);
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(read_item_policies(std::string_view{whole}.substr(0, size), decoder, nullptr), nullptr) << size;
  std::string beyond = whole;
  beyond.back() = 9;  // a policy that is not there
  EXPECT_EQ(read_item_policies(beyond, decoder, nullptr), nullptr);
}

}  // namespace
}  // namespace reprise::core
