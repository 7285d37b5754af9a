// I-Regexp and ECMA's expressions, as RE2 runs them.
#include "json/regex_to_re2.hpp"

#include <gtest/gtest.h>

namespace reprise::json {
namespace {

bool whole(std::string_view expression, std::string_view text) {
  const auto pattern = compile_i_regexp(expression, Anchoring::whole);
  EXPECT_TRUE(pattern.has_value()) << expression << ": " << pattern.error();
  return pattern && (*pattern)->matches(text);
}
bool is_i_regexp(std::string_view expression) { return compile_i_regexp(expression, Anchoring::anywhere).has_value(); }
bool ecma(std::string_view expression, std::string_view text) {
  const auto pattern = compile_ecma_regex(expression);
  EXPECT_TRUE(pattern.has_value()) << expression << ": " << pattern.error();
  return pattern && (*pattern)->matches(text);
}
std::string ecma_problem(std::string_view expression) {
  const auto pattern = compile_ecma_regex(expression);
  return pattern ? "accepted" : pattern.error();
}

TEST(FlowRegex, i_regexp_matches_the_whole_text_or_a_part) {
  EXPECT_TRUE(whole("a|bc", "bc"));
  EXPECT_FALSE(whole("a|bc", "abc"));
  EXPECT_FALSE(whole("a", "a\n"));
  EXPECT_TRUE((*compile_i_regexp("b", Anchoring::anywhere))->matches("abc"));
  EXPECT_TRUE(whole("", ""));
  EXPECT_TRUE(whole("(a|b)*c{2,3}", "ababcc"));
  EXPECT_FALSE(whole("(a|b)*c{2,3}", "abc"));
  EXPECT_TRUE(whole("a||b", ""));
}

TEST(FlowRegex, a_dot_is_anything_but_a_line_end) {
  EXPECT_TRUE(whole(".", "\xE2\x80\xA8"));
  EXPECT_FALSE(whole(".", "\n"));
  EXPECT_FALSE(whole(".", "\r"));
  EXPECT_TRUE(whole("a\\.b", "a.b"));
  EXPECT_FALSE(whole("a\\.b", "axb"));
  EXPECT_FALSE(whole("[.]", "x"));
}

TEST(FlowRegex, i_regexp_classes) {
  EXPECT_TRUE(whole("[-a-c\\p{Nd}]+", "a-1"));
  EXPECT_TRUE(whole("[a-]", "-"));
  EXPECT_TRUE(whole("[^a^]", "b"));
  EXPECT_FALSE(whole("[^a^]", "^"));
  EXPECT_TRUE(whole("[\\]\\[\\\\\\^\\-]+", "][\\^-"));
  EXPECT_TRUE(whole("\\p{Lu}\\P{Lu}", "Жж"));
  EXPECT_TRUE(whole("[:alpha:]+", "alp:")) << "no names of classes here";
}

TEST(FlowRegex, what_i_regexp_does_not_have_is_refused) {
  for (const char* expression :
       {"a**", "*a",         "a{",      "a{,2}",       "a{x}", "a}",    "]",          "(a",   "a)",    "[",     "[]",
        "[^]", "[a",         "[a-b-c]", "[[:alpha:]]", "\\d",  "\\w",   "\\x41",      "\\",   "(?i)a", "(?:a)", "a+?",
        "a*+", "\\p{Greek}", "\\pL",    "\\p{L",       "\\b",  "[\\d]", "[a-\\p{L}]", "\xFF", "[\xFF]"}) {
    EXPECT_FALSE(is_i_regexp(expression)) << expression;
  }
  EXPECT_FALSE(is_i_regexp(std::string(1001, 'a')));
  EXPECT_FALSE(is_i_regexp(std::string(500, '(') + std::string(500, ')')));
  EXPECT_FALSE(is_i_regexp("((a{1000}){1000}){1000}")) << "memory is bounded";
}

TEST(FlowRegex, ecma_is_said_in_the_words_of_re2) {
  EXPECT_TRUE(ecma("^\\d{3}-\\w+$", "123-ab"));
  EXPECT_TRUE(ecma("b", "abc")) << "not anchored";
  EXPECT_FALSE(ecma("^a$", "a\n"));
  EXPECT_TRUE(ecma("^\\u00e9\\u{1F600}$", "é😀"));
  EXPECT_TRUE(ecma("^\\ud83d\\ude00$", "😀"));
  EXPECT_TRUE(ecma("^[\\u0041-\\u0043]+$", "ABC"));
  EXPECT_TRUE(ecma("^\\cJ$", "\n"));
  EXPECT_TRUE(ecma("^(?<year>\\d+)$", "2026"));
  EXPECT_TRUE(ecma("^a\\/b$", "a/b"));
  EXPECT_TRUE(ecma("^[[a]$", "["));
  EXPECT_TRUE(ecma("^[^]$", "\n"));
  EXPECT_FALSE(ecma("[]", "a"));
  EXPECT_FALSE(ecma("^.$", "\xE2\x80\xA8"));
  EXPECT_TRUE(ecma("^\\s$", "\xC2\xA0"));
  EXPECT_FALSE(ecma("\\S", "\xC2\xA0"));
  EXPECT_TRUE(ecma("^[\\s]$", "\xE2\x80\xA8"));
  EXPECT_TRUE(ecma("^[\\b]\\0$", std::string_view{"\b\0", 2}));
  EXPECT_TRUE(ecma("^\\p{Lu}$", "Ä"));
  EXPECT_TRUE(ecma("^\\x41\\e$", "Ae"));
  EXPECT_TRUE(ecma("^a{$", "a{")) << "as all engines read it";
}

TEST(FlowRegex, what_takes_more_than_linear_time_is_refused) {
  EXPECT_NE(ecma_problem("a(?=b)").find("look-around"), std::string::npos);
  EXPECT_NE(ecma_problem("(?<!a)b").find("look-around"), std::string::npos);
  EXPECT_NE(ecma_problem("(a)\\1").find("back-references"), std::string::npos);
  EXPECT_NE(ecma_problem("(?<n>a)\\k<n>").find("back-references"), std::string::npos);
  for (const char* expression : {"(", "[a", "a\\", "\\u12", "\\u{110000000}", "*", "a{1001}", "\xFF"})
    EXPECT_NE(ecma_problem(expression), "accepted") << expression;
}

}  // namespace
}  // namespace reprise::json
