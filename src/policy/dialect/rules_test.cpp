// Entries of only_on, never_on and `when`, and the user's classify rules as text.
#include <gtest/gtest.h>

#include <csignal>

#include "policy/dialect/reading.hpp"

namespace reprise {
namespace {

using What = FailureRule::What;

TEST(DialectRules, entries_are_read_as_what_they_are) {
  struct Case {
    const char* text;
    What what;
    int low;
    int high;
  };
  const Case cases[] = {
      {"transient", What::failure_class, 0, 0},
      {"canceled", What::failure_class, static_cast<int>(FailureClass::canceled),
       static_cast<int>(FailureClass::canceled)},
      {"timeout", What::kind, static_cast<int>(FailureKind::timeout), static_cast<int>(FailureKind::timeout)},
      {"auth", What::kind, static_cast<int>(FailureKind::auth), static_cast<int>(FailureKind::auth)},
      {"TimeoutError", What::type, 0, 0},
      {"a.b.C_1", What::type, 0, 0},
      {"none", What::type, 0, 0},
      {"exit:1", What::exit_code, 1, 1},
      {"exit:255", What::exit_code, 255, 255},
      {"exit:64-74", What::exit_code, 64, 74},
      {"exit:7-7", What::exit_code, 7, 7},
      {"exit:0-3", What::exit_code, 0, 3},
      {"http:100", What::http_status, 100, 100},
      {"http:599", What::http_status, 599, 599},
      {"http:5xx", What::http_status, 500, 599},
      {"signal:KILL", What::signal, SIGKILL, SIGKILL},
      {"signal:SIGKILL", What::signal, SIGKILL, SIGKILL},
      {"/x/", What::message, 0, 0},
      {"/a/b/", What::message, 0, 0},
  };
  for (const Case& each : cases) {
    const auto rule = dialect::parse_rule(each.text);
    ASSERT_TRUE(rule.has_value()) << each.text << ": " << rule.error();
    EXPECT_EQ(rule->what, each.what) << each.text;
    EXPECT_EQ(rule->low, each.low) << each.text;
    EXPECT_EQ(rule->high, each.high) << each.text;
    EXPECT_EQ(rule->text, std::string_view{each.text} == "exit:7-7" ? "exit:7" : each.text)
        << "so that it can be shown and written again";
  }
}

TEST(DialectRules, entries_that_cannot_match_anything_are_errors) {
  for (const char* text :
       {"",           " ",       "exit:",      "exit:0",      "exit:256", "exit:-1",  "exit:5-4", "exit:x",  "exit:1-",
        "exit:1-2-3", "exit:+5", "http:",      "http:99",     "http:600", "http:6xx", "http:5XX", "http:05", "http:0xx",
        "http:5x",    "signal:", "signal:FOO", "signal:kill", "signal:9", "/",        "//",       "/open",   "/(/",
        "1Error",     "a b",     "Foo.",       ".Foo",        "a..b",     "Foo!",     "exit 3",   "exit:3 ", "é"}) {
    const auto rule = dialect::parse_rule(text);
    ASSERT_FALSE(rule.has_value()) << text;
    EXPECT_FALSE(rule.error().empty());
  }
}

TEST(DialectRules, classify_rules_as_a_list_or_under_their_key) {
  for (const char* text :
       {"classify: [{when: \"exit:3\", class: deterministic}, {when: /quota/, class: budget_exhausted}]",
        "- when: exit:3\n  class: deterministic\n- {when: \"/quota/\", class: budget_exhausted}\n",
        R"([{"when":"exit:3","class":"deterministic"},{"class":"budget_exhausted","when":"/quota/"}])"}) {
    const auto rules = read_classify_rules(text);
    ASSERT_TRUE(rules.has_value()) << text << render(rules.error());
    ASSERT_EQ(rules->size(), 2U);
    EXPECT_EQ((*rules)[0].when.text, "exit:3");
    EXPECT_EQ((*rules)[0].then, FailureClass::deterministic);
    EXPECT_EQ(classify({.message = "out of quota"}, *rules).failure_class, FailureClass::budget_exhausted);
  }
  EXPECT_EQ(read_classify_rules("[]").value().size(), 0U);
  EXPECT_EQ(read_classify_rules("classify: []").value().size(), 0U);
}

TEST(DialectRules, mistakes_in_classify_rules_are_all_found) {
  const auto rules = read_classify_rules(
      "- {when: exit:0, class: transient}\n- {when: exit:1, class: transiet}\n- {when: exit:1}\n- {class: "
      "transient}\n- {when: 3, class: transient, x: 1}\n- word\n");
  ASSERT_FALSE(rules.has_value());
  ASSERT_EQ(rules.error().size(), 7U) << render(rules.error());
  EXPECT_EQ(rules.error()[0].message, "when: \"exit:0\" (text) cannot match anything");
  EXPECT_EQ(rules.error()[1].help, "did you mean transient?");
  EXPECT_EQ(rules.error()[2].message, "a classify rule needs `class`");
  EXPECT_EQ(rules.error()[3].message, "a classify rule needs `when`");
  for (const char* text : {"{}", "other: []", "classify: {when: x}", "3", "classify: null", ""}) {
    const auto refused = read_classify_rules(text);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_FALSE(refused.error().front().message.empty());
  }
}

}  // namespace
}  // namespace reprise
