// The list of facts: what is written is read back, unknown ones included, and nothing else is taken for one.
#include "event/facts.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <utility>
#include <vector>

namespace reprise::event {
namespace {

std::vector<std::pair<std::uint32_t, std::string>> all_of(std::string_view bytes, bool& ok) {
  FactReader reader{bytes};
  Fact fact;
  std::vector<std::pair<std::uint32_t, std::string>> facts;
  while (reader.next(fact)) facts.emplace_back(static_cast<std::uint32_t>(fact.tag), fact.bytes);
  ok = reader.ok();
  return facts;
}

TEST(EventFacts, a_fact_is_its_tag_its_length_and_its_bytes) {
  std::string facts;
  put_fact(facts, FactTag::deadline, "ab");
  put_fact(facts, static_cast<FactTag>(300), "");
  EXPECT_EQ(facts, std::string("\x01\x02\x61\x62\xAC\x02\x00", 7));
  bool ok = false;
  const auto read = all_of(facts, ok);
  EXPECT_TRUE(ok);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0], (std::pair<std::uint32_t, std::string>{1, "ab"}));
  EXPECT_EQ(read[1], (std::pair<std::uint32_t, std::string>{300, ""}));
}

TEST(EventFacts, tags_rise) {
  std::string facts;
  put_fact(facts, FactTag::policy, "x");
  put_fact(facts, FactTag::policy, "y");
  bool ok = true;
  EXPECT_EQ(all_of(facts, ok).size(), 1U);
  EXPECT_FALSE(ok);
  EXPECT_TRUE(all_of({"\0\0", 2}, ok).empty()) << "0 is no tag";
  EXPECT_FALSE(ok);
}

RC_GTEST_PROP(EventFacts, arbitrary_bytes_do_no_harm, (const std::string& bytes)) {
  bool ok = false;
  const auto read = all_of(bytes, ok);
  std::string again;
  for (const auto& [tag, value] : read) put_fact(again, static_cast<FactTag>(tag), value);
  if (ok) RC_ASSERT(again.size() <= bytes.size());
}

}  // namespace
}  // namespace reprise::event
