// The word somebody probably meant, places in a text, and how words are listed.
#include "text/nearest.hpp"

#include <gtest/gtest.h>

#include "text/pattern.hpp"
#include "text/place.hpp"

namespace reprise::text {
namespace {

constexpr std::string_view keys[] = {"max_attempts", "max_elapsed", "initial", "factor", "max", "jitter"};

TEST(TextNearest, finds_the_word_that_was_meant) {
  EXPECT_EQ(nearest("facter", keys), "factor");
  EXPECT_EQ(nearest("max_atempts", keys), "max_attempts");
  EXPECT_EQ(nearest("maxattempts", keys), "max_attempts");
  EXPECT_EQ(nearest("Jitter", keys), "jitter") << "case does not count";
  EXPECT_EQ(nearest("jiter", keys), "jitter");
  EXPECT_EQ(nearest("jitetr", keys), "jitter") << "swapped neighbours are one edit";
  EXPECT_EQ(nearest("intial", keys), "initial");
}

TEST(TextNearest, finds_nothing_when_nothing_is_close) {
  EXPECT_EQ(nearest("", keys), "");
  EXPECT_EQ(nearest("colour", keys), "");
  EXPECT_EQ(nearest("zz", keys), "");
  EXPECT_EQ(nearest(std::string(65, 'x'), keys), "") << "bounded";
  EXPECT_EQ(nearest("factor", std::span<const std::string_view>{}), "");
}

TEST(TextNearest, the_closest_wins_and_the_first_of_equals) {
  constexpr std::string_view words[] = {"fixed", "mixed", "fixes"};
  EXPECT_EQ(nearest("fixed", words), "fixed");
  EXPECT_EQ(nearest("fixe", words), "fixed");
}

TEST(TextNearest, words_are_joined_for_a_sentence) {
  constexpr std::string_view three[] = {"a", "b", "c"};
  EXPECT_EQ(join_words(three), "a, b or c");
  EXPECT_EQ(join_words(three, "and"), "a, b and c");
  EXPECT_EQ(join_words(std::span{three}.first(2)), "a or b");
  EXPECT_EQ(join_words(std::span{three}.first(1)), "a");
  EXPECT_EQ(join_words({}), "");
}

TEST(TextPlace, columns_count_characters) {
  const std::string text = "a\u00e9\u20acb\nx\xff\xfey";
  const auto place_at = [&](std::size_t offset) {
    const Place place = place_of_offset(text, offset);
    return std::pair{place.line, place.column};
  };
  EXPECT_EQ(place_at(0), (std::pair{1U, 1U}));
  EXPECT_EQ(place_at(1), (std::pair{1U, 2U}));
  EXPECT_EQ(place_at(3), (std::pair{1U, 3U}));
  EXPECT_EQ(place_at(6), (std::pair{1U, 4U}));
  EXPECT_EQ(place_at(8), (std::pair{2U, 1U}));
  EXPECT_EQ(place_at(10), (std::pair{2U, 3U})) << "a broken byte is one character";
  EXPECT_EQ(place_at(10'000), place_at(text.size()));
}

TEST(TextPlace, excerpts_are_safe_to_show) {
  EXPECT_EQ(excerpt("policy: standard", 9).text, "policy: standard");
  EXPECT_EQ(excerpt("policy: standard", 9).caret, 9U);
  EXPECT_EQ(excerpt("a\tb\x1b[31m\x7f", 3).text, "a b\uFFFD[31m\uFFFD");
  EXPECT_EQ(excerpt("a\xff\xc3z", 2).text, "a\uFFFD\uFFFDz");
  EXPECT_EQ(excerpt("\xed\xa0\x80", 1).text.find('\xed'), std::string::npos) << "half of a surrogate pair is not UTF-8";
}

TEST(TextPlace, a_long_line_is_shown_in_part) {
  const std::string line = std::string(500, 'a') + "X" + std::string(500, 'b');
  const auto [text, caret] = excerpt(line, 501);
  EXPECT_LT(text.size(), 140U);
  EXPECT_TRUE(text.starts_with("…"));
  EXPECT_TRUE(text.ends_with("…"));
  // The caret counts characters; all of them but the first "…" (three bytes) are one byte here.
  EXPECT_EQ(text.at(caret - 1 + 2), 'X');
  EXPECT_EQ(excerpt(line, 3).caret, 3U);
  EXPECT_EQ(excerpt("short", 4'000'000'000U).caret, excerpt("", 4'000'000'000U).caret)
      << "beyond the end is no problem";
}

TEST(TextPlace, shortens_by_characters) {
  EXPECT_EQ(shorten("abc", 3), "abc");
  EXPECT_EQ(shorten("abcd", 3), "abc…");
  EXPECT_EQ(shorten("ééé", 2), "éé…");
  EXPECT_EQ(shorten("a\nb", 5), "a b");
  EXPECT_EQ(shorten("", 5), "");
}

TEST(TextPattern, patterns_are_unanchored_and_case_sensitive) {
  const auto pattern = compile_pattern("disk (full|failure)");
  ASSERT_TRUE(pattern.has_value());
  EXPECT_TRUE((*pattern)->matches("write: disk full, sorry"));
  EXPECT_FALSE((*pattern)->matches("write: Disk full"));
  EXPECT_TRUE((*compile_pattern("(?i)DISK"))->matches("disk"));
  EXPECT_TRUE((*compile_pattern("^$"))->matches(""));
}

TEST(TextPattern, errors_say_what_is_wrong) {
  EXPECT_EQ(compile_pattern("a(b").error(), "missing ): a(b");
  EXPECT_FALSE(compile_pattern("(?=look)").has_value()) << "RE2 has no look-around";
  EXPECT_FALSE(compile_pattern("((a{1000}){1000}){1000}").has_value()) << "memory is bounded";
}

}  // namespace
}  // namespace reprise::text
