// Warnings about valid policies: each appears when it should, at its key, and not when it should not.
#include <reprise/dialect.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace reprise {
namespace {

std::vector<Diagnostic> warnings_for(const std::string& text, Dialect dialect) {
  const auto read = read_policy(text, dialect);
  EXPECT_TRUE(read.has_value()) << text << (read ? "" : render(read.error()));
  return read ? read->warnings : std::vector<Diagnostic>{};
}

bool warns(const std::string& text, std::string_view message, Dialect dialect = Dialect::native) {
  const auto warnings = warnings_for(text, dialect);
  for (const Diagnostic& warning : warnings) {
    EXPECT_EQ(warning.severity, Severity::warning);
    EXPECT_GE(warning.line, 1U);
    EXPECT_GE(warning.column, 1U);
  }
  return std::ranges::any_of(
      warnings, [&](const Diagnostic& warning) { return warning.message.find(message) != std::string::npos; });
}

bool silent(const std::string& text, Dialect dialect = Dialect::native) {
  const auto warnings = warnings_for(text, dialect);
  EXPECT_TRUE(warnings.empty()) << text << "\n" << render(warnings);
  return warnings.empty();
}

TEST(DialectWarnings, ordinary_policies_give_none) {
  for (const char* text : {"none", "standard", "aggressive", "patient", "{}", "{max_attempts: 5, max_elapsed: 2m}",
                           "{backoff: [1s, 5s]}", "{only_on: [transient]}"}) {
    EXPECT_TRUE(silent(text)) << text;
  }
  for (const Dialect dialect : all_dialects) EXPECT_TRUE(silent("{}", dialect)) << name_of(dialect);
}

TEST(DialectWarnings, unlimited_attempts_and_no_deadline) {
  constexpr auto message = "unlimited attempts and no deadline";
  EXPECT_TRUE(warns("max_attempts: unlimited", message));
  EXPECT_TRUE(warns("max_attempts: null", message));
  EXPECT_FALSE(warns("{max_attempts: unlimited, max_elapsed: 1h}", message));
  EXPECT_TRUE(warns("max_retries: -1", message, Dialect::argyll));
  EXPECT_TRUE(warns("stop: {max_attempts: null}", message, Dialect::azolla));
  EXPECT_FALSE(warns("stop: {max_attempts: null, max_delay: 60}", message, Dialect::azolla));
}

TEST(DialectWarnings, an_unreachable_limit) {
  constexpr auto message = "unreachable limit";
  EXPECT_TRUE(warns("{max_attempts: 3, max_elapsed: 1h}", message));
  EXPECT_FALSE(warns("{max_attempts: 3, max_elapsed: 20s}", message));
  EXPECT_TRUE(warns("{max_attempts: 3, max_elapsed: 1h, attempt_timeout: 1s}", message));
  EXPECT_FALSE(warns("{max_attempts: 3, max_elapsed: 1h, attempt_timeout: 30m}", message))
      << "attempts that take their time may reach it";
  EXPECT_TRUE(warns("{\"stop\":{\"max_delay\":1800},\"wait\":{\"strategy\":\"fixed\",\"delay\":10}}", message,
                    Dialect::azolla));
  const auto warnings =
      warnings_for("{\"stop\":{\"max_delay\":1800},\"wait\":{\"strategy\":\"fixed\",\"delay\":10}}", Dialect::azolla);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].message, "unreachable limit: 5 attempts and 40s of waiting are over long before 30m");
  EXPECT_EQ(warnings[0].help, "to retry until then set \"max_attempts\": null");
  EXPECT_EQ(warnings[0].column, 22U) << "at the value of max_delay";
}

TEST(DialectWarnings, more_waiting_than_the_deadline_allows) {
  constexpr auto message = "more waiting than";
  EXPECT_TRUE(warns("{max_attempts: 10, max_elapsed: 10s}", message));
  EXPECT_FALSE(warns("{max_attempts: 3, max_elapsed: 10s}", message));
  EXPECT_TRUE(warns("{max_attempts: 10, retry_timeout: 10}", message, Dialect::rh_agents));
}

TEST(DialectWarnings, a_deadline_of_nothing) {
  EXPECT_TRUE(warns("max_elapsed: 0", "max_elapsed is 0: nothing is ever retried"));
  EXPECT_FALSE(warns("{max_elapsed: 0, max_attempts: 1}", "nothing is ever retried"));
}

TEST(DialectWarnings, an_attempt_timeout_as_long_as_the_deadline) {
  EXPECT_TRUE(warns("{attempt_timeout: 10s, max_elapsed: 10s}", "attempt_timeout is not shorter"));
  EXPECT_FALSE(warns("{attempt_timeout: 3s, max_elapsed: 10s}", "attempt_timeout is not shorter"));
}

TEST(DialectWarnings, retries_without_any_wait) {
  EXPECT_TRUE(warns("initial: 0", "retries follow at once"));
  EXPECT_TRUE(warns("max: 0", "retries follow at once"));
  EXPECT_FALSE(warns("{initial: 0, max_attempts: 2}", "retries follow at once"));
  EXPECT_FALSE(warns("{backoff: linear, initial: 0, increment: 1s}", "retries follow at once"));
}

TEST(DialectWarnings, a_cap_below_the_first_delay) {
  EXPECT_TRUE(warns("{initial: 1m, max: 5s}", "the cap of 5s is below the first delay of 1m"));
  EXPECT_FALSE(warns("{initial: 5s, max: 5s}", "the cap of"));
}

TEST(DialectWarnings, a_factor_that_does_not_grow) {
  EXPECT_TRUE(warns("factor: 1", "a factor of 1 does not grow"));
  EXPECT_FALSE(warns("factor: 1.1", "does not grow"));
}

TEST(DialectWarnings, delays_that_are_never_used) {
  EXPECT_TRUE(warns("{max_attempts: 3, backoff: [1s, 2s, 3s]}", "3 delays for 2 retries"));
  EXPECT_FALSE(warns("{max_attempts: 4, backoff: [1s, 2s, 3s]}", "delays for"));
  EXPECT_TRUE(warns("backoff: {custom: {delays: [1s, 2s, 3s]}}", "3 delays for 2 retries", Dialect::prodigy));
}

TEST(DialectWarnings, a_list_without_a_cap) {
  EXPECT_TRUE(warns("{backoff: [1s], max: null}", "there is no cap"));
  EXPECT_FALSE(warns("{backoff: [1s]}", "there is no cap"));
}

TEST(DialectWarnings, no_jitter_on_a_fan_out) {
  EXPECT_TRUE(warns("{max_retries: 3, parallelism: 8}", "no jitter on a fan-out: 8 work items", Dialect::argyll));
  EXPECT_FALSE(warns("{max_retries: 3, parallelism: 1}", "fan-out", Dialect::argyll));
  EXPECT_FALSE(warns("{max_retries: 0, parallelism: 8}", "fan-out", Dialect::argyll));
}

TEST(DialectWarnings, a_budget_that_ends_early) {
  EXPECT_TRUE(
      warns("{attempts: 5, retry_budget: 5s}", "the budget of 5s is spent after attempt 3 of 5", Dialect::prodigy));
  EXPECT_FALSE(warns("{attempts: 3, retry_budget: 5s}", "budget", Dialect::prodigy));
}

TEST(DialectWarnings, filters_that_let_nothing_through) {
  EXPECT_TRUE(warns("only_on: []", "only_on is empty: nothing is ever retried"));
  EXPECT_TRUE(warns("retry: {include_errors: []}", "include_errors is empty", Dialect::azolla));
  EXPECT_TRUE(warns("only_on: [transient, canceled]", "canceled work is never retried"));
  EXPECT_TRUE(warns("{only_on: [TimeoutError], never_on: [TimeoutError]}", "TimeoutError is excluded too"));
  EXPECT_TRUE(warns("{only_on: [TimeoutError], never_on: [OSError]}", "TimeoutError is excluded as OSError"));
  EXPECT_FALSE(warns("{only_on: [OSError], never_on: [TimeoutError]}", "excluded"));
  EXPECT_TRUE(warns("retry_on_exceptions: [KeyError]", "KeyError is excluded", Dialect::rh_agents));
  EXPECT_FALSE(warns("retry: {include_errors: [TimeoutError], exclude_errors: [OSError]}", "excluded", Dialect::azolla))
      << "Azolla matches exactly";
}

TEST(DialectWarnings, words_that_are_probably_misspelt) {
  EXPECT_TRUE(warns("only_on: [transiet]", "transiet is taken for the name of an error type"));
  EXPECT_TRUE(warns("never_on: [time_out]", "time_out is taken for the name of an error type"));
  EXPECT_FALSE(warns("only_on: [TransientError]", "taken for"));
  EXPECT_FALSE(warns("only_on: [my_own_thing]", "taken for"));
}

TEST(DialectWarnings, keys_that_azolla_ignores) {
  EXPECT_TRUE(warns("{stopp: {}}", "the key \"stopp\" is ignored", Dialect::azolla));
  EXPECT_FALSE(warns("{stop: {}}", "is ignored", Dialect::azolla));
}

TEST(DialectWarnings, fields_that_a_backoff_does_not_use) {
  EXPECT_TRUE(warns("{backoff: constant, factor: 3}", "factor is not used by constant backoff"));
  EXPECT_TRUE(warns("increment: 3s", "increment is not used by exponential backoff"));
  EXPECT_TRUE(warns("{backoff: [1s], initial: 3s}", "initial is not used by list backoff"));
  EXPECT_TRUE(warns("{backoff: decorrelated, jitter: full}", "jitter is not applied on top"));
  EXPECT_FALSE(warns("{backoff: linear, increment: 3s}", "not used"));
  EXPECT_FALSE(warns("{backoff: exponential, factor: 3}", "not used"));
}

// A type name may hold anything in Azolla and rh-agents; a terminal must not get to see it raw.
TEST(DialectWarnings, names_are_made_safe_before_they_are_shown) {
  for (const Diagnostic& warning : warnings_for(
           R"({"retry": {"include_errors": ["\u001b[31m"], "exclude_errors": ["\u001b[31m"]}})", Dialect::azolla)) {
    EXPECT_EQ(warning.message.find('\x1b'), std::string::npos) << "an escape sequence in a warning";
  }
}

}  // namespace
TEST(DialectWarnings, point_at_the_entry_they_speak_of) {
  const auto read = read_policy("only_on: [TimeoutError, transiet]\nnever_on: [OSError]\n", Dialect::native);
  ASSERT_TRUE(read.has_value());
  ASSERT_EQ(read->warnings.size(), 2U);
  EXPECT_EQ(read->warnings[0].column, 11U);
  EXPECT_EQ(read->warnings[1].column, 25U);
}

}  // namespace reprise
