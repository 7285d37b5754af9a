// What a run has for itself beside its work: what is said is found again, and what cannot be said is refused.
#include "event/attributes.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "event/facts.hpp"
#include "event/history.hpp"

namespace reprise::event {
namespace {

const RunAttributes everything{.origin = "cli",
                               .labels = {{"team", "a"}, {"ticket", "OPS-7, urgent"}},
                               .queue = "slow",
                               .tenant = "acme",
                               .max_cost = Cost{1000, 2'500'000},
                               .traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"};

std::string mistake_in(RunAttributes attributes) {
  const auto settled = settle_attributes(attributes);
  return settled ? "" : settled.error();
}

TEST(EventAttributes, what_is_written_is_read_back) {
  EXPECT_EQ(read_attributes(encode_attributes(everything)), everything);
  EXPECT_EQ(encode_attributes({}), "");
  EXPECT_EQ(read_attributes(""), RunAttributes{});
}

TEST(EventAttributes, other_facts_are_passed_over) {
  std::string facts;
  put_fact(facts, FactTag::deadline, "\x08");
  facts += encode_attributes({.tenant = "acme"});
  put_fact(facts, static_cast<FactTag>(4711), "from the future");
  EXPECT_EQ(read_attributes(facts), RunAttributes{.tenant = "acme"});
}

TEST(EventAttributes, labels_are_put_in_order) {
  RunAttributes attributes{.labels = {{"b", "2"}, {"a", "1"}}};
  ASSERT_TRUE(settle_attributes(attributes));
  EXPECT_EQ(attributes.labels, (Labels{{"a", "1"}, {"b", "2"}}));
}

TEST(EventAttributes, what_cannot_be_said_is_refused) {
  EXPECT_EQ(mistake_in(everything), "");
  EXPECT_NE(mistake_in({.labels = {{"", "x"}}}), "");
  EXPECT_NE(mistake_in({.labels = {{"two words", "x"}}}), "");
  EXPECT_NE(mistake_in({.labels = {{std::string(65, 'n'), "x"}}}), "");
  EXPECT_NE(mistake_in({.labels = {{"n", std::string(257, 'x')}}}), "");
  EXPECT_NE(mistake_in({.labels = {{"n", "line\nline"}}}), "");
  EXPECT_NE(mistake_in({.labels = {{"n", "\xFF"}}}), "");
  EXPECT_EQ(mistake_in({.labels = {{"n", "1"}, {"n", "2"}}}), "the label n is given twice; keep one of them");
  Labels many;
  for (std::size_t index = 0; index <= labels_max; ++index) many.emplace_back("n" + std::to_string(index), "x");
  EXPECT_EQ(mistake_in({.labels = many}), "a run has at most 32 labels");
  EXPECT_NE(mistake_in({.queue = std::string(129, 'q')}), "");
  EXPECT_NE(mistake_in({.tenant = "a\x1b[31m"}), "");
}

TEST(EventAttributes, a_traceparent_is_what_its_specification_says) {
  const std::string trace = "-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  EXPECT_EQ(mistake_in({.traceparent = "00" + trace}), "");
  EXPECT_EQ(mistake_in({.traceparent = "01" + trace + "-more"}), "") << "a later version";
  for (const std::string& wrong :
       {"00" + trace + "-more", "ff" + trace, "0" + trace, "00" + trace.substr(1), std::string{"00"},
        std::string{"00-00000000000000000000000000000000-00f067aa0ba902b7-01"},
        std::string{"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"},
        std::string{"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"}})
    EXPECT_NE(mistake_in({.traceparent = wrong}), "") << wrong;
}

TEST(EventAttributes, the_event_has_them) {
  const std::string facts = encode_attributes(everything);
  EventHistory history{RunId{}, {{"step"}}};
  const Event event = history.add({.type = EventType::submitted, .sequence = 1, .time = 1, .facts = facts});
  ASSERT_TRUE(event.attributes);
  EXPECT_EQ(*event.attributes, everything);
  const std::string json = to_json(event);
  EXPECT_NE(json.find(R"("origin":"cli","labels":{"team":"a","ticket":"OPS-7, urgent"},"queue":"slow","tenant":"acme",)"
                      R"("max_cost":{"tokens":1000,"micros":2500000},"traceparent":"00-4bf92f)"),
            std::string::npos)
      << json;
}

RC_GTEST_PROP(EventAttributes, arbitrary_bytes_do_no_harm, (const std::string& bytes)) {
  const RunAttributes read = read_attributes(bytes);
  RC_ASSERT(read.labels.size() <= labels_max);
}

}  // namespace
}  // namespace reprise::event
