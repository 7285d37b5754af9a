// Entries of only_on and never_on: what each matches, and what it does not.
#include <reprise/policy.hpp>

#include <gtest/gtest.h>

#include "policy/words.hpp"

namespace reprise {
namespace {

bool matches_failure(const FailureRule& rule, const Failure& failure, const Policy& policy = {},
                     FailureClass failure_class = FailureClass::transient, FailureKind kind = FailureKind::none) {
  return matches(rule, policy, failure, failure_class, kind);
}

TEST(PolicyMatch, classes_and_kinds_are_compared_with_the_judgement) {
  const Failure nothing;
  const Policy policy;
  EXPECT_TRUE(matches(FailureRule::of(FailureClass::test_failure), policy, nothing, FailureClass::test_failure,
                      FailureKind::none));
  EXPECT_FALSE(matches(FailureRule::of(FailureClass::test_failure), policy, nothing, FailureClass::transient,
                       FailureKind::none));
  EXPECT_TRUE(matches(FailureRule::of(FailureKind::throttled), policy, nothing, FailureClass::transient,
                      FailureKind::throttled));
  EXPECT_FALSE(
      matches(FailureRule::of(FailureKind::throttled), policy, nothing, FailureClass::transient, FailureKind::timeout));
  EXPECT_FALSE(matches(FailureRule::of(FailureKind::timeout), policy, {.type = "timeout"}, FailureClass::transient,
                       FailureKind::none));
}

TEST(PolicyMatch, types_go_through_the_tree_unless_matching_is_exact) {
  const FailureRule rule = FailureRule::of_type("OSError");
  EXPECT_TRUE(matches_failure(rule, {.type = "ConnectionResetError"}));
  EXPECT_TRUE(matches_failure(rule, {.type = "socket.timeout.OSError"}));
  EXPECT_FALSE(matches_failure(rule, {.type = "ValueError"}));
  EXPECT_FALSE(matches_failure(rule, {.type = "oserror"})) << "case counts";
  EXPECT_FALSE(matches_failure(rule, {}));
  const Policy exact{.match = Matching::exact};
  EXPECT_TRUE(matches_failure(rule, {.type = "OSError"}, exact));
  EXPECT_FALSE(matches_failure(rule, {.type = "ConnectionResetError"}, exact));
  EXPECT_FALSE(matches_failure(rule, {.type = "builtins.OSError"}, exact));
  TypeTree tree;
  tree.add("Mine", "OSError");
  Policy own;
  own.types = &tree;
  EXPECT_TRUE(matches_failure(rule, {.type = "Mine"}, own));
  EXPECT_FALSE(matches_failure(rule, {.type = "Mine"}));
}

TEST(PolicyMatch, codes_signals_and_statuses_are_ranges) {
  EXPECT_TRUE(matches_failure(FailureRule::of_exit(75), {.exit_code = 75}));
  EXPECT_FALSE(matches_failure(FailureRule::of_exit(75), {.exit_code = 74}));
  EXPECT_FALSE(matches_failure(FailureRule::of_exit(75), {}));
  const FailureRule range = FailureRule::of_exit(64, 74);
  for (const int code : {64, 70, 74}) EXPECT_TRUE(matches_failure(range, {.exit_code = code}));
  for (const int code : {0, 63, 75}) EXPECT_FALSE(matches_failure(range, {.exit_code = code}));
  EXPECT_TRUE(matches_failure(FailureRule::of_http_family(5), {.http_status = 500}));
  EXPECT_TRUE(matches_failure(FailureRule::of_http_family(5), {.http_status = 599}));
  EXPECT_FALSE(matches_failure(FailureRule::of_http_family(5), {.http_status = 499}));
  EXPECT_FALSE(matches_failure(FailureRule::of_http(503), {.http_status = 500}));
  EXPECT_FALSE(matches_failure(FailureRule::of_http(503), {.exit_code = 503}));
  EXPECT_TRUE(matches_failure(FailureRule::of_signal(9), {.signal = 9}));
  EXPECT_TRUE(matches_failure(FailureRule::of_signal(9), {.exit_code = 137})) << "what a shell makes of it";
  EXPECT_FALSE(matches_failure(FailureRule::of_signal(9), {.exit_code = 9}));
}

TEST(PolicyMatch, rules_are_equal_when_they_are_written_alike) {
  EXPECT_EQ(FailureRule::of_exit(64, 74).text, "exit:64-74");
  EXPECT_EQ(FailureRule::of_exit(75).text, "exit:75");
  EXPECT_EQ(FailureRule::of_http(503).text, "http:503");
  EXPECT_EQ(FailureRule::of_http_family(5).text, "http:5xx");
  EXPECT_EQ(FailureRule::of_signal(9).text, "signal:SIGKILL");
  EXPECT_EQ(FailureRule::of(FailureKind::auth).text, "auth");
  EXPECT_NE(FailureRule::of(FailureKind::timeout), FailureRule::of_type("timeout"));
  EXPECT_NE(FailureRule::of(FailureKind::timeout), FailureRule::of(ErrorCategory::timeout));
}

// A pattern of a C++ user's own.
struct Mentions final : MessagePattern {
  explicit Mentions(std::string text) : wanted{std::move(text)} {}
  bool matches(std::string_view message) const noexcept override {
    return message.find(wanted) != std::string_view::npos;
  }
  std::string wanted;
};

TEST(PolicyMatch, patterns_look_at_the_message) {
  const FailureRule rule = FailureRule::of_message("/reset/", std::make_shared<const Mentions>("reset"));
  EXPECT_TRUE(matches_failure(rule, {.message = "connection reset by peer"}));
  EXPECT_FALSE(matches_failure(rule, {.type = "reset", .message = "Reset", .details = "reset"}));
  EXPECT_FALSE(matches_failure(FailureRule::of_message("/x/", nullptr), {.message = "x"}));
}

TEST(PolicyMatch, categories_of_prodigy) {
  const auto in = [](ErrorCategory category, const Failure& failure, FailureKind kind = FailureKind::none) {
    return matches_failure(FailureRule::of(category), failure, {}, FailureClass::transient, kind);
  };
  using enum ErrorCategory;
  EXPECT_TRUE(in(network, {.type = "BrokenPipeError"}));
  EXPECT_TRUE(in(network, {.type = "NetworkError"}));
  EXPECT_TRUE(in(network, {.message = "Connection refused"}));
  EXPECT_FALSE(in(network, {.type = "TimeoutError", .message = "disconnections"}));
  EXPECT_TRUE(in(timeout, {.type = "TimeoutError"}));
  EXPECT_TRUE(in(timeout, {.http_status = 408}));
  EXPECT_TRUE(in(timeout, {.http_status = 504}));
  EXPECT_TRUE(in(timeout, {.message = "request timed out"}));
  EXPECT_TRUE(in(timeout, {}, FailureKind::timeout));
  EXPECT_FALSE(in(timeout, {.http_status = 503}));
  EXPECT_TRUE(in(server_error, {.http_status = 503}));
  EXPECT_TRUE(in(server_error, {.message = "Internal Server Error"}));
  EXPECT_FALSE(in(server_error, {.http_status = 499}));
  EXPECT_TRUE(in(rate_limit, {.http_status = 429}));
  EXPECT_TRUE(in(rate_limit, {.message = "HTTP 429"}));
  EXPECT_TRUE(in(rate_limit, {}, FailureKind::throttled));
  EXPECT_FALSE(in(rate_limit, {.message = "4290 items"}));
}

TEST(PolicyWords, phrases_stand_as_whole_words) {
  EXPECT_TRUE(words::contains("Rate Limit exceeded", "rate limit"));
  EXPECT_TRUE(words::contains("(429)", "429"));
  EXPECT_TRUE(words::contains("x --- FAIL: y", "--- fail"));
  EXPECT_FALSE(words::contains("4290", "429"));
  EXPECT_FALSE(words::contains("my_timeout", "timeout"));
  EXPECT_FALSE(words::contains("timeouts", "timeout"));
  EXPECT_TRUE(words::contains("timeouts timeout", "timeout")) << "a later one counts";
  EXPECT_FALSE(words::contains("", "timeout"));
  EXPECT_FALSE(words::contains("time", "timeout"));
  EXPECT_TRUE(words::contains("timeout", "timeout"));
}

TEST(PolicyWords, a_test_run_reports_its_failure) {
  for (const char* text : {"2 failed", "exit code 1", "exit status: 2", "FAIL", "exit code=10", "errors"})
    EXPECT_TRUE(words::reports_failure(text)) << text;
  for (const char* text : {"", "ok", "exit code 0", "exit code", "unfailing", "exit code 00"})
    EXPECT_FALSE(words::reports_failure(text)) << text;
}

}  // namespace
}  // namespace reprise
