// Policies in sentences: golden texts for what people see of `policy show`.
#include <reprise/dialect.hpp>

#include <gtest/gtest.h>

namespace reprise {
namespace {

using namespace std::chrono_literals;

std::string explained(const std::string& text, Dialect dialect = Dialect::native) {
  const auto read = read_policy(text, dialect);
  EXPECT_TRUE(read.has_value()) << text << (read ? "" : render(read.error()));
  return read ? explain(read->policy) : "";
}

constexpr const char* class_sentence =
    "gives up on failures that another attempt cannot mend (deterministic, budget_exhausted)\n";

TEST(DialectExplain, the_named_policies) {
  EXPECT_EQ(explained("standard"), std::string{"runs at most 3 times, that is 2 retries\n"
                                               "waits 1s 2s, each anywhere between 0 and that\n"} +
                                       class_sentence);
  EXPECT_EQ(explained("aggressive"), std::string{"runs at most 5 times, that is 4 retries\n"
                                                 "waits 200ms 400ms 800ms 1.6s, each anywhere between 0 and that\n"} +
                                         class_sentence);
  EXPECT_EQ(explained("none"), "runs once and is never retried\n");
}

TEST(DialectExplain, a_policy_with_everything) {
  EXPECT_EQ(explained("max_attempts: unlimited\nmax_elapsed: 15m\nattempt_timeout: 2m\nbackoff: linear\ninitial: "
                      "1s\nincrement: 500ms\nmax: 4s\njitter: 25%\n"
                      "only_on: [transient, \"http:5xx\"]\nnever_on: [\"exit:64-74\"]\nhonor_retry_after: false\n"),
            "runs as often as it takes\n"
            "gives each attempt at most 2m\n"
            "waits 1s 1.5s 2s 2.5s 3s 3.5s 4s 4s … and never more than 4s, each up to 25 % shorter or longer\n"
            "is retried only on transient, http:5xx\n"
            "gives up after 15m, or on exit:64-74\n"
            "ignores what a server asks for with Retry-After\n");
}

TEST(DialectExplain, waits_that_are_all_the_same) {
  EXPECT_EQ(explained("backoff: constant\ninitial: 5s\njitter: none\n"),
            std::string{"runs at most 3 times, that is 2 retries\nwaits 5s before each retry\n"} + class_sentence);
  EXPECT_EQ(explained("max_attempts: 2\njitter: equal\n"),
            std::string{"runs at most 2 times, that is 1 retry\nwaits 1s, anywhere between half of that and that\n"} +
                class_sentence);
}

TEST(DialectExplain, decorrelated_waits) {
  EXPECT_EQ(explained("backoff: decorrelated\n"),
            std::string{"runs at most 3 times, that is 2 retries\n"
                        "waits between 1s and three times the wait before, 30s at most\n"} +
                class_sentence);
  EXPECT_EQ(explained("backoff: decorrelated\nmax: null\n").find("without a cap at most"), std::string::npos)
      << "no cap is not a maximum";
}

TEST(DialectExplain, policies_of_other_systems) {
  EXPECT_EQ(explained("{}", Dialect::azolla),
            "runs at most 5 times, that is 4 retries\n"
            "waits 1s 2s 4s 8s, each anywhere between 0 and that\n"
            "is retried only on ValueError (exactly these names)\n");
  EXPECT_EQ(explained("{}", Dialect::rh_agents),
            "runs at most 3 times, that is 2 retries\n"
            "waits 1s 2s, each up to 25 % shorter or longer\n"
            "is retried only on TimeoutError, ConnectionError\n"
            "gives up on ValidationError, ValueError, TypeError, KeyError, AttributeError\n");
  EXPECT_EQ(explained("{}", Dialect::argyll), "runs once and is never retried\n");
  EXPECT_EQ(explained("{max_retries: 2, parallelism: 4}", Dialect::argyll),
            "runs at most 3 times, that is 2 retries\n"
            "waits 1s 2s\n"
            "is retried only when the handler itself reports \"not completed\"\n"
            "runs 4 work items at a time\n");
  EXPECT_EQ(explained("attempts: 4\nretry_budget: 1m\nretry_on: [network, {pattern: x}]\n", Dialect::prodigy),
            "runs at most 4 times, that is 3 retries\n"
            "waits 1s 2s 4s\n"
            "is retried only on network, /x/\n"
            "gives up when its waits add up to more than 1m\n");
  EXPECT_EQ(explained("policy: patient\n", Dialect::wave),
            std::string{"runs at most 3 times, that is 2 retries\nwaits 5s 15s\n"} + class_sentence);
}

TEST(DialectExplain, retrying_on_nothing) {
  EXPECT_EQ(explained("only_on: []\n"),
            "runs at most 3 times, that is 2 retries\nis retried on nothing, because the list is empty\n");
}

}  // namespace
}  // namespace reprise
